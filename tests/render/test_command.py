"""`sns render` as a user meets it: exit codes, one line on stderr, what it prints."""

import json
from pathlib import Path

import pytest

from slurm_sns.cli import main

SMALLEST = "partitions: [main]\nnodes: [{names: c1, partitions: [main], cores: 4, memory_mb: 4000}]\n"
FILES = [
    "filter.lua",
    "gres.conf",
    "plugstack.conf",
    "resctrl.yaml",
    "slurm.conf",
    "sns-exporter.service",
    "sns-scheduler.service",
    "sns-watchdog.service",
    "sns-web.service",
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sns.yaml"
    path.write_text(SMALLEST)
    return path


@pytest.fixture
def sns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def sns(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["sns", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return sns


def test_the_files_are_written_once(sns, tmp_path: Path, config: Path) -> None:
    code, output, errors = sns("render", tmp_path / "out", "--config", config)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [f"{tmp_path / 'out' / name}: written" for name in FILES]
    code, output, errors = sns("render", tmp_path / "out", "--config", config)
    assert (code, output, errors) == (0, f"{tmp_path / 'out'}: up to date, 9 files\n", "")


def test_check_tells_by_its_exit_code_and_writes_nothing(sns, tmp_path: Path, config: Path) -> None:
    target = tmp_path / "out"
    assert sns("render", target, "--config", config, "--check")[0] == 1
    assert not target.exists()
    assert sns("render", target, "--config", config)[0] == 0
    assert sns("render", target, "--config", config, "--check")[0] == 0
    (target / "gres.conf").unlink()
    code, output, _ = sns("render", target, "--config", config, "--check")
    assert (code, output) == (1, f"{target / 'gres.conf'}: differs\n")


def test_json_lists_what_changed(sns, tmp_path: Path, config: Path) -> None:
    code, output, _ = sns("render", tmp_path / "out", "--config", config, "--json")
    assert code == 0
    assert json.loads(output) == {
        "directory": str(tmp_path / "out"),
        "changed": FILES,
        "unchanged": [],
        "written": True,
    }


@pytest.mark.parametrize("text", ["", "mode: [", "mod: enforce\n" + SMALLEST, "\x00"])
def test_a_wrong_configuration_ends_with_2_and_one_line(sns, tmp_path: Path, config: Path, text: str) -> None:
    config.write_text(text)
    code, output, errors = sns("render", tmp_path / "out", "--config", config)
    assert (code, output) == (2, "")
    assert errors.startswith(f"sns: error: {config}")
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_configuration_that_is_not_there_ends_with_2(sns, tmp_path: Path) -> None:
    code, _, errors = sns("render", tmp_path / "out", "--config", tmp_path / "none.yaml")
    assert code == 2
    assert errors.startswith(f"sns: error: {tmp_path / 'none.yaml'} cannot be read")


def test_the_sites_slurm_conf_is_safe(sns, tmp_path: Path, config: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=site\n")
    code, _, errors = sns("render", tmp_path, "--config", config)
    assert code == 2
    assert "slurm.conf was not written by sns render" in errors
    assert (tmp_path / "slurm.conf").read_text() == "ClusterName=site\n"
