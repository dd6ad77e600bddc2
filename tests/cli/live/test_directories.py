"""The daemons' directories, and what root writes there: nobody else's to write, and no link is followed."""

import os
from pathlib import Path

import pytest

from slurm_sns.cli.live import process
from slurm_sns.cli.live.installation import file_system
from slurm_sns.config import configuration
from slurm_sns.errors import SnsError


def test_what_the_daemons_write_is_theirs_alone_to_read_but_everybody_reaches_the_socket(
    write_config, tmp_path: Path
) -> None:
    paths = {"state_dir": str(tmp_path / "new" / "state"), "run_dir": str(tmp_path / "new" / "run")}
    os.umask(0o077)  # as in the units
    process.make_directories(configuration.load(write_config(paths=paths)))
    (tmp_path / "file").touch()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("new/run", "new/state", "file")]
    assert modes == [0o755, 0o700, 0o600]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
@pytest.mark.parametrize("name", ["state", "run"])
def test_a_directory_in_which_others_may_write_is_refused(write_config, tmp_path: Path, name: str, mode: int) -> None:
    (tmp_path / "run").mkdir()
    paths = {"state_dir": str(tmp_path / "state"), "run_dir": str(tmp_path / "run")}
    settings = configuration.load(write_config(paths=paths))
    (tmp_path / name).chmod(mode)
    with pytest.raises(SnsError, match=f"{name} has mode {mode:04o} .* nobody else may write there"):
        process.make_directories(settings)


def test_disable_follows_no_link(sns, config: Path, tmp_path: Path) -> None:
    (config.parent / "state" / "disabled").symlink_to(tmp_path / "made-by-root")
    assert "cannot be changed" in sns("disable", "--config", config)[2]
    assert not (tmp_path / "made-by-root").exists()


def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = f"/dev/sda1 / ext4 rw 0 0\nctl:/state {tmp_path} nfs4 rw 0 0\nshort\n"
    assert file_system(tmp_path / "slurmctld", mounts) == "nfs4"
    assert file_system(Path("/usr"), mounts) == "ext4"
    assert file_system(Path("/usr"), "") == ""
