"""plugins/pyslurm/build.sh builds pyslurm where there is one for the release, our own library where there is none."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "plugins" / "pyslurm" / "build.sh"


def built(folder: Path, number: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script with headers of this release, a `pip` and a `make` that only say how they are called."""
    headers = folder / "include" / "slurm"
    headers.mkdir(parents=True)
    (headers / "slurm_version.h").write_text(f"#define SLURM_VERSION_NUMBER {number}\n")
    for name in ("pip", "make", "python"):
        (folder / name).write_text('#!/bin/sh\necho "${0##*/} $*" | tee -a "${0%/*}/calls"\n')
        (folder / name).chmod(0o755)
    (folder / "platlib" / "pyslurm").mkdir(parents=True)
    (folder / "python").write_text(f"#!/bin/sh\necho {folder}/platlib\n")
    variables = {
        "SLURM_INCLUDE": str(headers.parent),
        "SLURM_LIB": str(folder),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    command = ["bash", str(SCRIPT), str(folder / "pip"), *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", ["0x180b05", "0x190509"])
def test_our_own_library_is_built_where_there_is_no_pyslurm(tmp_path: Path, number: str) -> None:
    done = built(tmp_path, number)
    assert (done.returncode, done.stderr) == (0, "")
    call = (tmp_path / "calls").read_text()
    assert call.startswith("make -C ")
    assert f"libslurm install PYTHON={tmp_path}/python SLURM_INCLUDE={tmp_path}/include SLURM_LIB={tmp_path}" in call


@pytest.mark.parametrize("number", ["0x190b02", "0x1a0505"])
def test_pyslurm_is_built_where_there_is_one(tmp_path: Path, number: str) -> None:
    assert built(tmp_path, number).returncode == 0
    assert (tmp_path / "calls").read_text() == "pip install --no-cache-dir --force-reinstall pyslurm==25.11.2\n"
    assert (tmp_path / "platlib" / "pyslurm" / "built_for_slurm").read_text() == f"{number}\n"


@pytest.mark.parametrize(("number", "arguments"), [("0x180b05", ("wheel",)), ("0x180500", ()), ("0x1a0b00", ())])
def test_it_says_what_it_does_not_build(tmp_path: Path, number: str, arguments: tuple[str, ...]) -> None:
    done = built(tmp_path, number, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("build.sh: ")
    assert not (tmp_path / "calls").exists()
