"""`sns seff` about programs whose memory is known: one task, tasks on two nodes, steps at the same time and in turn.

And about an emulated program that agents have measured, first alone on its node and then beside another one.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import json_output
import pytest

from cluster import Cluster
from slurm_sns.config.profiles_yaml import read_profiles

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
#: So long a measured program is alone, and so long it has a neighbour: more than seff compares.
EACH_S = 14
#: What is measured may differ from the truth by this share.
WITHIN = 0.05
PROGRAMS = Path(__file__).parents[2] / "containers" / "programs.yaml"
#: Who sees what was measured of alice's job.
USERS = {"alice": True, "bob": False, "slurm": True}


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


def measured_s(cluster: Cluster, node: str, job_id: int) -> float:
    """For how long the agent of the node has measured the job by now."""
    shown = json.loads(cluster.run("sns agent --show --json", node=node))
    return sum(point["seconds"] for job in shown["jobs"] if job["job"] == job_id for point in job["points"])


@pytest.fixture
def beside(shared_cluster: Cluster) -> int:
    """A job that lives on its cache: alone on its node for a while, then beside one that took the spare ways."""
    cluster = shared_cluster
    if cluster.try_run("test -e /sys/fs/resctrl/schemata", node="c1").returncode:
        pytest.skip("c1 has no emulated resctrl (the host has no /dev/fuse, or SNS_RESCTRL=0), so no agent runs there")
    cluster.run("sns profile import /usr/src/slurm_sns/containers/programs.yaml", "slurm")
    known = "sns profile show lattice --json"
    cluster.wait_for("its profile is known", lambda: not cluster.try_run(known, "alice").returncode)
    cluster.wait_for("the agents are connected", lambda: not cluster.status()["agents"]["away"])
    endless = "--work-seconds 600"
    asked = "-n12 --mem-per-cpu=200 --sns-program=lattice --sns-alpha=0.9"
    number = cluster.submit(asked, f"sns-emulated lattice {endless}")
    cluster.wait_for("it runs", lambda: cluster.job(number).state == "RUNNING")
    [node] = cluster.job(number).nodes
    cluster.wait_for("it is measured alone", lambda: measured_s(cluster, node, number) > EACH_S, 120)
    other = cluster.submit(f"-n12 --mem-per-cpu=200 -w {node} --gres=llc:4", f"sns-emulated stream {endless}")
    cluster.wait_for("the other one runs", lambda: cluster.job(other).state == "RUNNING")
    until_s = measured_s(cluster, node, number) + EACH_S
    cluster.wait_for("it is measured beside", lambda: measured_s(cluster, node, number) > until_s, 120)
    cluster.run("scancel -u alice")

    def is_told() -> bool:
        answer = cluster.run(f"sns seff {number} --json", "alice")
        return json.loads(answer)[0]["measured"] is not None

    cluster.wait_for("what was measured is kept", is_told, 60)
    return number


def test_what_agents_measured_is_shown_with_the_cost_of_the_neighbour(shared_cluster: Cluster, beside: int) -> None:
    [job] = json_output.read("sns seff", shared_cluster.run(f"sns seff {beside} --json", "alice"))
    use = job["measured"]
    few, many = use["least_ways"], use["most_ways"]
    assert 0 < job["ways"] <= few < many, "alone it had the ways that the other one took"
    [truth] = next(each for each in read_profiles(PROGRAMS) if each.name == "lattice").runs
    assert use["ipc_alone"] == pytest.approx(truth.ipc_at(many), rel=WITHIN)
    assert use["ipc_beside"] == pytest.approx(truth.ipc_at(few), rel=WITHIN)
    assert use["ipc_beside"] < use["ipc"] < use["ipc_alone"]
    assert truth.bandwidth_at(many) * (1 - WITHIN) < use["bandwidth_gbps"] < truth.bandwidth_at(few) * (1 + WITHIN)
    assert use["neighbours_cost"] == pytest.approx(1 - truth.ipc_at(few) / truth.ipc_at(many), abs=WITHIN / 2)
    text = shared_cluster.run(f"sns seff {beside}", "alice")
    assert f"had {few} to {many}" in text
    assert "beside other jobs" in text
    seen = {user: shared_cluster.ask({"command": "measured", "job_ids": [beside]}, user=user) for user in USERS}
    assert {user: bool(answer["jobs"]) for user, [answer] in seen.items()} == USERS
