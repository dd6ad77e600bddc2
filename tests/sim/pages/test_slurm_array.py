"""Work as a job array: with submitit's executor for this machine, and with commands that stand in for Slurm's."""

import pytest
from submitit import LocalExecutor

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages import slurm_array
from slurm_sns.sim.pages.running import no_report
from slurm_sns.sim.pages.slurm_array import SlurmArray, in_array


def test_the_results_come_back_in_the_order_of_the_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_array, "MOST_TASKS", 2)
    told = []

    found = in_array(LocalExecutor(tmp_path), abs, [-3, -2, 1], lambda *now: told.append(now))

    assert found == [3, 2, 1]
    assert told[0] == (0, 3)
    assert told[-1] == (3, 3)


def test_a_task_that_fails_is_one_line_with_its_own_words_and_its_log(tmp_path):
    with pytest.raises(SnsError, match=r"^task .* failed: .*'seven'.*its log: .*err.*--resume") as caught:
        in_array(LocalExecutor(tmp_path), int, ["7", "seven"], no_report)
    assert "\n" not in str(caught.value)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A PATH with nothing but commands that are given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return add


@pytest.mark.usefixtures("commands")
def test_without_slurm_the_error_says_so(tmp_path):
    with pytest.raises(BadInput, match="there is no srun here; valid: --slurm on a machine that submits to Slurm"):
        SlurmArray(tmp_path / "array", 4)(abs, [1])


def test_what_sbatch_refuses_is_told_in_its_words(tmp_path, commands):
    commands("srun", "")
    commands("sbatch", "echo 'sbatch: error: invalid partition specified: fast' >&2; exit 1")

    with pytest.raises(BadInput, match=r"^Slurm refuses the array: .*invalid partition specified: fast$"):
        SlurmArray(tmp_path / "array", 4, partition="fast")(abs, [1, 2])


def test_the_array_asks_for_what_was_given(tmp_path, commands):
    commands("srun", "")
    executor = SlurmArray(tmp_path / "array", 4, partition="main", minutes=7, memory_gb=3).executor()
    text = executor._make_submission_file_text("run", "id")

    for line in ("--partition=main", "--time=7", "--mem=3G", "--cpus-per-task=1"):
        assert f"#SBATCH {line}\n" in text
    assert "srun" not in text


@pytest.mark.usefixtures("commands")
def test_nothing_to_do_asks_nobody(tmp_path):
    assert SlurmArray(tmp_path / "array", 4)(abs, []) == []
