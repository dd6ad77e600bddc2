"""Faults of every part: no job lost, none started twice, none over capacity, none left waiting for us alone."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from evidence import Log, begin, check, none_waits_for_us_longer_than_promised, waits_for_us, work, written

from cluster import Cluster

FAULTY = Path(__file__).with_name("faulty_scheduler.py").read_text()
#: Small jobs, so that there are always enough placements to fail in; one asks for nodes of its own.
MIX = ("-n2", "-n4 --mem=2G", "-N2 -n2", "-n1 --sns-alpha=0.9", "-p small -n1 --mem=1G")


@pytest.fixture
def faulty(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with what a faulty scheduler needs; afterwards the real daemons run again, as they should."""
    begin(cluster)
    cluster.run("mkdir -p /tmp/faults")
    cluster.write("/tmp/faults/sns", FAULTY)
    cluster.run("chmod 755 /tmp/faults/sns")
    yield cluster
    cluster.run("sns-daemon kill scheduler; sns-daemon kill watchdog; rm -rf /tmp/faults")


def start_faulty(cluster: Cluster, fault: str) -> None:
    """Start a scheduler that will fail; it may have failed before sns-daemon has seen it run."""
    cluster.try_run(f"PATH=/tmp/faults:$PATH SNS_FAULT={fault} sns-daemon start scheduler")


def die(cluster: Cluster, fault: str) -> None:
    """Start a scheduler that is killed where `fault` says, and wait until it is dead."""
    start_faulty(cluster, f"{fault}:kill")
    is_dead = "timeout 60 bash -c 'while sns-daemon status scheduler; do sleep 0.2; done'"
    assert cluster.try_run(is_dead).returncode == 0, f"it does not reach {fault}"


def submit_mix(cluster: Cluster, seconds: float = 1, times: int = 1) -> list[int]:
    return cluster.submit_all([(options, work(seconds)) for options in MIX * times])


# --- the scheduler is killed


#: After each effect of a cycle that places; saved are: what was seen, what is intended, what was placed.
EFFECTS = (
    "observe:after:1",
    *(f"save:after:{number}" for number in (1, 2)),
    *(f"place:after:{number}" for number in (1, 3)),
    *("save:after:3", "record:after:1", "beat:after:1"),
)


def test_killed_after_any_effect_of_a_cycle_no_job_is_lost_or_started_twice(
    faulty: Cluster, planned_by_hand: Cluster
) -> None:
    """One scheduler after the other dies, and the next one finds what it left, and new jobs."""
    cluster = faulty
    later = cluster.submit("-n1 --begin=now+1hour", work(1))
    runner = cluster.submit("-n1 --requeue", "echo start >> work/$SLURM_JOB_ID; until [ -e go ]; do sleep 0.2; done")
    numbers = []
    for effect in EFFECTS:
        numbers += submit_mix(cluster)
        die(cluster, effect)
    cluster.wait_for("the placed jobs start", lambda: cluster.job(runner).state == "RUNNING")

    cluster.run(f"scontrol update JobId={later} Extra=mine", "alice")
    die(cluster, "release:after:1")
    assert not cluster.job(later).is_held

    # An unpin is two of Slurm's commands; in between, the job is Slurm's.
    for effect in ("command:after:1", "unpin:after:1"):
        cluster.run(f"scontrol requeue {runner}")
        die(cluster, effect)
        numbers += submit_mix(cluster)
        cluster.daemon("start", "scheduler")
        cluster.wait_for("it runs again", lambda: cluster.job(runner).state == "RUNNING")
        cluster.daemon("kill", "scheduler")
    cluster.daemon("start", "scheduler")
    cluster.run("touch go", "alice")
    cluster.run(f"scontrol update JobId={later} StartTime=now", "alice")
    cluster.wait_for_end([*numbers, later, runner])
    check(cluster, [*numbers, later])
    assert written(cluster)[runner] == ["start"] * 3
    log = cluster.run("tail -n 200 /var/log/sns/scheduler.log")
    assert "jobs on record from the last run" in log


def test_killed_between_two_placements_the_rest_is_slurms_in_time(faulty: Cluster) -> None:
    """Nobody starts it again: what is held is released, what is pinned to nodes is unpinned or has started."""
    cluster, log = faulty, Log(faulty, "watchdog")
    cluster.daemon("kill", "scheduler")
    numbers = submit_mix(cluster, times=2)  # held: the heartbeat is still fresh
    assert all(job.is_held for job in cluster.jobs().values() if job.id in numbers)
    die(cluster, "place:after:3")
    none_waits_for_us_longer_than_promised(cluster, time.monotonic())
    cluster.wait_for_end(numbers)
    check(cluster, numbers)
    assert len(log.lines("no heartbeat")) == 1
