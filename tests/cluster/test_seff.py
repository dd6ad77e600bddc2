"""`sns seff` about programs whose memory is known: one task, tasks on two nodes, steps at the same time and in turn."""

import shlex
from collections.abc import Iterator

import json_output
import pytest

from cluster import Cluster

PATIENCE_S = 180
#: Holds MiB for seconds: so many, and so many more for each rank before it. An interpreter has about 10 MiB of its own.
PROGRAM = """
import os, sys, time
mb, more, seconds = map(int, sys.argv[1:])
held = b"x" * (mb + more * int(os.environ.get("SLURM_PROCID", 0)) << 20)
time.sleep(seconds)
"""
HOLD = f"python3 -c {shlex.quote(PROGRAM)}"
#: Slurm looks at memory every second, so that a program of twelve seconds is seen.
OFTEN = "-p plain --acctg-freq=task=1"
#: What an interpreter and Slurm's own steps may have beside what a program holds.
SPARE_MB = 40


class Case:
    """How a job is submitted and runs, and what its fullest node has at the peak."""

    def __init__(self, options: str, script: str, peak_mb: int, asked_mb: int) -> None:
        self.options, self.script, self.peak_mb, self.asked_mb = options, script, peak_mb, asked_mb


CASES = {
    "batch": Case("-n1 --mem=1G", f"{HOLD} 300 0 12", 300, 1024),
    "children": Case("-n1 --mem=1G", f"{HOLD} 150 0 12 & {HOLD} 100 0 12 & wait", 250, 1024),
    "two nodes": Case("-N2 -n4 --ntasks-per-node=2 --mem=2G", f"srun {HOLD} 50 50 12", 350, 2048),
    "one node": Case("-N1 -n3 --mem-per-cpu=1G", f"srun {HOLD} 100 0 12", 300, 3072),
    "at once": Case(
        "-N1 -n2 --mem=4G", f"for mb in 250 150; do srun -n1 --exact --mem=1G {HOLD} $mb 0 12 & done; wait", 400, 4096
    ),
    "in turn": Case("-N1 -n1 --mem=2G", f"srun {HOLD} 100 0 8; srun {HOLD} 300 0 8", 300, 2048),
}


@pytest.fixture(scope="module")
def jobs(shared_cluster: Cluster) -> Iterator[dict[str, int]]:
    """The numbers of alice's jobs, which have ended and are in accounting."""
    cluster = shared_cluster
    numbers = cluster.submit_all([(f"{OFTEN} {case.options}", case.script) for case in CASES.values()])
    listed = ",".join(map(str, numbers))

    def states() -> list[str]:
        return cluster.run(f"sacct -nPX -j {listed} -o State", "alice").split()

    cluster.wait_for("they are in accounting", lambda: states() == ["COMPLETED"] * len(CASES), PATIENCE_S)
    yield dict(zip(CASES, numbers, strict=True))
    cluster.run("scancel -u alice")


@pytest.mark.parametrize("name", CASES)
def test_the_memory_of_a_known_program_is_within_the_bounds(
    shared_cluster: Cluster, jobs: dict[str, int], name: str
) -> None:
    [job] = json_output.read("sns seff", shared_cluster.run(f"sns seff {jobs[name]} --json", "alice"))
    memory, case = job["memory"], CASES[name]
    assert job["asked_mb"] == case.asked_mb
    assert memory is not None, "accounting has no memory: do the nodes have the capability SYS_PTRACE?"
    assert memory["at_least_mb"] <= case.peak_mb + SPARE_MB
    assert memory["at_most_mb"] >= case.peak_mb
    assert memory["about_mb"] >= 0.5 * case.peak_mb


def test_one_task_and_steps_in_turn_are_numbers(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    for name in ("batch", "children", "in turn"):
        [job] = json_output.read("sns seff", shared_cluster.run(f"sns seff {jobs[name]} --json", "alice"))
        assert CASES[name].peak_mb <= job["memory"]["at_most_mb"] <= CASES[name].peak_mb + 2 * SPARE_MB


def test_users_ask_about_their_own_jobs(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    number = jobs["batch"]
    answer = shared_cluster.try_run(f"sns seff {number}", "bob")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"sns: error: job {number}: no such job in accounting, or not yours\n"
    assert f"job {number}: COMPLETED" in shared_cluster.run(f"sns seff {number}", "slurm")
