"""What sbatch reads besides single options: time limits, hints, a script's lines, and which of two memories counts."""

import pytest

from slurm_sns.coverage.sbatch_options import directives, options, submission, time_limit_s
from slurm_sns.errors import BadInput


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [
        ("90", 5400),
        ("90:00", 5400),
        ("0:30", 60),
        ("1:30:00", 5400),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("1-12:30:00", 131_400),
        ("0", None),
        ("UNLIMITED", None),
    ],
)
def test_a_time_limit_is_read_as_sbatch_reads_it(text: str, limit_s: int | None) -> None:
    assert time_limit_s(text) == limit_s


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-5", "1-", "1.5", "9" * 30])
def test_another_time_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match=r"--time .*: valid are minutes"):
        time_limit_s(text)


def test_a_scripts_options_end_at_its_first_command() -> None:
    script = "#!/bin/sh\n#SBATCH -n 40 --mem=4G # why\n\n  # a comment\n#SBATCH -J 'a b'\necho\n#SBATCH -n 3\n"
    assert directives(script) == ["-n", "40", "--mem=4G", "-J", "a b"]


def test_hints_are_options_too_and_the_last_of_two_memories_counts() -> None:
    assert submission(["--sns-restartable=600"]).options == (("restartable", "600"),)
    assert submission(["--sns-restartable"]).options == (("restartable", ""),)
    job = submission(["--sns-alpha=0.9", "--sns-exclusive", "--mem=4G", "--mem-per-cpu=1G"])
    assert job.options == (("alpha", "0.9"), ("exclusive", ""))
    assert (job.min_mem_per_node, job.min_mem_per_cpu) == (None, 1024)


def test_words_behind_the_script_are_the_scripts_own() -> None:
    assert options(["-n4", "job.sh", "-n5"]) == ([("ntasks", "4")], ["job.sh", "-n5"])


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["-F", "nodes.txt"], "req_nodes", "nodes.txt"),
        (["--nodefile=nodes.txt"], "req_nodes", "nodes.txt"),
        (["--hint=nomultithread"], "threads_per_core", 1),
        (["--hint=memory_bound,multithread"], "threads_per_core", 1),
        (["--hint=multithread"], "threads_per_core", None),
        (["--ntasks-per-board=2"], "ntasks_per_board", 2),
        (["--tasks-per-node=4"], "ntasks_per_node", 4),
        (["-N", "1k-2k"], "max_nodes", 2048),
        (["--exclus"], "shared", 0),
        (["--exclus=user"], "shared", 2),
        (["--wait-all-nodes=1", "-n2"], "num_tasks", 2),
    ],
)
def test_an_option_sets_what_it_sets_for_sbatch(words: list[str], field: str, value: object) -> None:
    assert getattr(submission(words), field) == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-N", "many"], "-N 'many': valid are a number of nodes and a range, as 2 and 2-4"),
        (["-N", "9" * 13], "-N '9+': valid are a number of nodes"),
        (["-c", "many"], "--cpus-per-task 'many': valid are whole numbers, as 4 or 4k"),
        (["--no"], "option --no not a unique prefix"),
        (["--mem"], "option --mem requires argument"),
    ],
)
def test_a_value_that_sbatch_would_not_take_is_named_with_its_option(words: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=f"^{said}"):
        submission(words)
