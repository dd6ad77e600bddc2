"""The state table of CONTRIBUTING.md on a real Slurm; commands of users and administrators lead to each row.

"released by its owner" and "requeued" while the scheduler is away are in test_modes_and_failure.py.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import PYTHON, Cluster


def row(cluster: Cluster, number: int) -> dict[str, Any]:
    """The job's row of `sns queue`; empty if it is not a job that we hold or have placed."""
    return next((each for each in cluster.queue() if each["job_id"] == number), {})


def state(cluster: Cluster, number: int) -> str:
    return str(row(cluster, number).get("state", "not ours"))


def decisions(cluster: Cluster, number: int) -> list[dict[str, Any]]:
    """The decisions about the job; empty before the scheduler has seen it."""
    return list(cluster.try_explain(number).get("decisions", []))


def notes(cluster: Cluster, number: int) -> list[str]:
    """The reasons of the decisions about the job, without its placements."""
    return [each["reason"] for each in decisions(cluster, number) if each["action"] == "note"]


def placements(cluster: Cluster, number: int) -> int:
    return sum(each["action"] == "start" for each in decisions(cluster, number))


def wait_for_state(cluster: Cluster, numbers: list[int], wanted: str) -> None:
    cluster.wait_for(wanted, lambda: {state(cluster, each) for each in numbers} == {wanted}, timeout_s=90)


def fill(cluster: Cluster) -> int:
    """Fill partition main with a pass-through job, and return its number."""
    filler = cluster.submit("-N4 --exclusive", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    return filler


def limit(cluster: Cluster, **limits: str) -> None:
    """Change partition main, as an administrator does."""
    cluster.run("scontrol update PartitionName=main " + " ".join(f"{name}={value}" for name, value in limits.items()))


@pytest.fixture
def limited(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, for a test that changes partition main and its nodes."""
    yield cluster
    limit(cluster, State="UP", MaxNodes="UNLIMITED", MaxTime="UNLIMITED", MaxCPUsPerNode="UNLIMITED")
    for node in ("c1", "c2", "c3", "c4"):
        if "DRAIN" in cluster.run(f"sinfo -h -n {node} -o %T").upper():
            cluster.run(f"scontrol update NodeName={node} State=RESUME")


def test_a_waiting_job_is_placed_one_that_its_owner_took_is_slurms_and_one_that_an_admin_holds_is_left(
    cluster: Cluster,
) -> None:
    filler = fill(cluster)
    waiting, released, overwritten, held = cluster.submit_all([("-n4 --mem=1G", "sleep 2")] * 4)
    wait_for_state(cluster, [waiting, released, overwritten, held], "ours, waiting")
    cluster.run(f"scontrol release {released}; scontrol update JobId={overwritten} Extra=mine", "alice")
    cluster.run(f"scontrol hold {held}")
    wait_for_state(cluster, [released, overwritten], "not ours")
    wait_for_state(cluster, [held], "held by Slurm or an administrator")
    assert state(cluster, waiting) == "ours, waiting"
    seen = cluster.jobs()
    assert not seen[released].is_held
    assert not seen[overwritten].is_held
    assert cluster.fields(overwritten)["Extra"] == "mine"
    assert notes(cluster, overwritten) == ["its owner overwrote the mark in Extra"]

    cluster.run(f"scancel {filler}")
    ended = cluster.wait_for_end([waiting, released, overwritten])
    assert ended[waiting].pinned_to == ended[waiting].nodes
    assert ended[released].pinned_to == ended[overwritten].pinned_to == ()
    assert placements(cluster, waiting) == 1
    assert placements(cluster, overwritten) == 0
    assert cluster.job(held).reason == "JobHeldAdmin"
    assert placements(cluster, held) == 0
    cluster.run(f"scontrol uhold {held}")
    assert cluster.wait_for_end([held])[held].state == "COMPLETED"
    assert placements(cluster, held) == 1


def test_a_placed_job_is_counted_left_when_its_owner_holds_it_and_taken_back_when_slurm_does_not_start_it(
    limited: Cluster,
) -> None:
    cluster = limited
    # Slurm starts no more jobs in main, for a reason that we cannot see: together with this job's core, a placed job
    # would exceed the partition's MaxCPUsPerNode.
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    limit(cluster, MaxCPUsPerNode="4")
    cluster.run("sed 's/^scheduler:/&\\n  place_timeout_s: 3600/' /etc/slurm/sns.yaml > /tmp/sns-patient.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()

    placed = cluster.submit_all([("-n4 --mem=100G", "sleep 2")] * 4)
    wait_for_state(cluster, placed, "placed, Slurm is starting it")
    seen = cluster.jobs()
    assert sorted(seen[each].pinned_to for each in placed) == [("c1",), ("c2",), ("c3",), ("c4",)]
    fifth = cluster.submit("-n4 --mem=100G", "sleep 3")
    cluster.wait_for("it finds no place", lambda: "no place" in row(cluster, fifth).get("reason", ""))

    owners = placed[0]
    (node,) = seen[owners].pinned_to
    cluster.run(f"scontrol hold {owners}", "alice")
    wait_for_state(cluster, [owners], "held by its owner after we placed it")
    wait_for_state(cluster, [fifth], "placed, Slurm is starting it")
    assert cluster.job(fifth).pinned_to == (node,), "a placement that its owner holds is forgotten"
    assert (cluster.job(owners).is_held, cluster.job(owners).pinned_to) == (True, ()), "and the job stays held"

    cluster.run(f"scontrol update NodeName={node} State=DRAIN Reason=test")
    cluster.daemon("stop", "watchdog")  # it would release them to Slurm if the scheduler took long to start
    cluster.daemon("kill", "scheduler")
    cluster.daemon("start", "scheduler")
    late = [*placed[1:], fifth]

    def all_held() -> bool:
        seen = cluster.jobs()
        return all(seen[each].is_held for each in late)

    cluster.wait_for("they are taken back", all_held, timeout_s=180)
    cluster.wait_for("explain says why", lambda: "tried again in" in row(cluster, fifth).get("reason", ""))
    said = notes(cluster, fifth)[0]
    assert said.startswith(f"placed on {node}, but Slurm did not start it: "), said
    assert said.rsplit(": ", 1)[1] not in ("", "no reason given"), "with Slurm's own reason"
    limit(cluster, MaxCPUsPerNode="UNLIMITED")
    cluster.run(f"scancel {filler}")
    ended = cluster.wait_for_end(late, timeout_s=180)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    assert all(node not in job.nodes for job in ended.values())
    assert state(cluster, owners) == "held by its owner after we placed it"
    assert cluster.fields(fifth)["Nice"] == "0", "its own again since it ran"


def test_a_placement_that_slurm_finds_impossible_and_holds_is_taken_back(limited: Cluster) -> None:
    cluster = limited
    limit(cluster, MaxCPUsPerNode="2")
    number = cluster.submit("-n4 --mem=1G", "true")
    cluster.wait_for("it is taken back", lambda: bool(notes(cluster, number)), timeout_s=90)
    assert notes(cluster, number)[0].endswith("but Slurm did not start it: BadConstraints")
    limit(cluster, MaxCPUsPerNode="UNLIMITED")
    assert cluster.wait_for_end([number])[number].state == "COMPLETED"


def test_a_job_that_its_partition_does_not_let_start_waits_unplaced_and_is_told_why(limited: Cluster) -> None:
    cluster = limited
    limit(cluster, State="DOWN")
    long, wide, plain = cluster.submit_all([("-n1 -t20", "true"), ("-N2 -n2 -t5", "true"), ("-n1 -t5", "true")])

    def reasons() -> list[str]:
        return [row(cluster, each).get("reason", "") for each in (long, wide, plain)]

    cluster.wait_for("explain says so", lambda: reasons() == ["partition main is down"] * 3)
    limit(cluster, State="UP", MaxTime="10", MaxNodes="1")
    cluster.wait_for_end([plain])
    assert reasons()[:2] == [
        "partition main allows 10 minutes, the job asks for 20",
        "partition main gives 1 to 1 nodes, the job needs 2",
    ]
    assert all(cluster.job(each).is_held for each in (long, wide))
    limit(cluster, MaxTime="UNLIMITED", MaxNodes="UNLIMITED")
    assert {job.state for job in cluster.wait_for_end([long, wide]).values()} == {"COMPLETED"}
    assert [placements(cluster, each) for each in (long, wide, plain)] == [1, 1, 1]


def test_a_job_that_ended_and_is_requeued_is_held_again_with_its_own_memory(cluster: Cluster) -> None:
    number = cluster.submit("-n2 --mem=1G --sns-exclusive", "true")
    cluster.wait_for_end([number])
    assert cluster.fields(number)["MinMemoryNode"] == "125G"
    cluster.run(f"scontrol requeue {number}")
    cluster.wait_for("it is noticed", lambda: "requeued" in notes(cluster, number), timeout_s=90)
    cluster.wait_for("it is placed again", lambda: placements(cluster, number) == 2, timeout_s=90)
    asked = [line for line in cluster.run("cat /var/log/sns/scheduler.log").splitlines() if f"job {number}:" in line]
    assert [line.split(": ", 1)[1].split(" on ")[0] for line in asked] == ["placed", "requeued", "placed"]
    assert cluster.wait_for_end([number])[number].state == "COMPLETED"


def test_a_suspended_job_keeps_its_memory_and_gives_its_cores(cluster: Cluster) -> None:
    running = cluster.submit_all([("-p small -n4 --mem=20G", "sleep 3600")] * 2)
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in running} == {"RUNNING"})
    (node,) = cluster.job(running[0]).nodes
    cluster.run(f"scontrol suspend {running[0]}")
    small = cluster.submit("-p small -n1 --mem=1G", "true")
    assert cluster.wait_for_end([small])[small].nodes == (node,)
    large = cluster.submit("-p small -n1 --mem=20G", "true")
    cluster.wait_for("it finds no place", lambda: "no place" in row(cluster, large).get("reason", ""))
    assert state(cluster, running[0]) == "suspended"
    cluster.run(f"scontrol resume {running[0]}")


#: Cancels the jobs, submits another one, and logs its rows of the queue while all cancelled jobs are completing. This
#: is one process: to start the commands one by one, a busy machine may need longer than Slurm waits before it kills.
WATCH = """
import json, pathlib, subprocess, sys, time
from slurm_sns.sockets.unix_socket import ask

def run(command):
    return subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout

stubborn, seen = sys.argv[1:], []
run("scancel " + " ".join(stubborn))
number = int(run("runuser -u alice -- sbatch --parsable -D /tmp -o /dev/null -p small -n4 --wrap true"))
while True:
    rows = ask(pathlib.Path("/run/sns/scheduler.sock"), {"command": "queue"})
    if len(run("squeue -h -t COMPLETING -o %i").split()) < len(stubborn):
        break
    seen += [row for row in rows if row["job_id"] == number]  # still completing now, so also when we asked
    time.sleep(0.1)
print(json.dumps([number, seen]))
"""


def test_a_job_that_is_long_in_ending_keeps_its_node_to_itself(cluster: Cluster) -> None:
    """Jobs that ignore SIGTERM are completing for KillWait (10 s) after their cancellation."""
    cluster.run("rm -f deaf-*", "alice")
    deaf = "trap '' TERM; touch deaf-$SLURM_JOB_ID; while true; do sleep 1; done"
    stubborn = cluster.submit_all([("-p small --exclusive", deaf)] * 2)
    cluster.wait_for("they are deaf", lambda: len(cluster.run("ls | grep deaf- || true", "alice").split()) == 2)
    watched = cluster.run(f"{PYTHON} -c {shlex.quote(WATCH)} {' '.join(map(str, stubborn))}")
    number, seen = json.loads(watched)
    assert {each["state"] for each in seen} == {"ours, waiting"}
    why = {each["reason"] for each in seen}
    assert any("is still completing on s" in each for each in why), why
    assert cluster.wait_for_end([number])[number].state == "COMPLETED"
    assert placements(cluster, number) == 1


def test_a_job_without_its_mark_is_released_by_the_watchdog_too(cluster: Cluster) -> None:
    fill(cluster)
    number = cluster.submit("-n4", "true")
    wait_for_state(cluster, [number], "ours, waiting")
    cluster.daemon("kill", "scheduler")
    cluster.run(f"scontrol update JobId={number} Extra=mine", "alice")
    cluster.wait_for("the watchdog releases it", lambda: not cluster.job(number).is_held, timeout_s=90)
