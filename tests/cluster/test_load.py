"""Many jobs on a controller of a thousand nodes without slurmd.

No job is lost or stuck, no node is over capacity, and the scheduler's memory does not grow without bound.
"""

from collections.abc import Iterator

import pytest

from thousand import Thousand, thousand

#: The number of jobs gated at a time, and for how long other jobs come and go around them.
GATED = 1500
CHURN_S = 40
#: Caches and memory pools may grow at first; a scheduler that leaks a snapshot of these jobs in every cycle grows by
#: far more.
GROWTH_KB = 300 * 1024


@pytest.fixture(scope="module")
def controller() -> Iterator[Thousand]:
    with thousand() as found:
        found.start_scheduler()
        yield found
        found.run("sns-daemon stop scheduler; scancel -u alice")


def none_waits(controller: Thousand) -> bool:
    return controller.load("look")["pending"] == 0


def test_a_thousand_placements_at_once_survive_a_killed_scheduler(controller: Thousand) -> None:
    """The placements go through several processes, which end with the scheduler; the next scheduler goes on."""
    controller.run("scontrol update partition=main state=DOWN")
    controller.load("fill", 1200, "small")
    assert controller.load("look")["gated"] == 1200
    controller.run("scontrol update partition=main state=UP")
    placed = "grep -c ' placed on ' /var/log/sns/scheduler.log || true"
    controller.wait_for("some are placed", lambda: int(controller.run(placed)) > 0)
    controller.run("sns-daemon kill scheduler")
    controller.wait_for("its senders are gone", lambda: not controller.run("pgrep -f slurm_sns.slurm.[s]ender || true"))
    controller.start_scheduler()
    controller.wait_for("all are allocated", lambda: none_waits(controller))
    seen = controller.load("look")
    assert (seen["allocated"], seen["over"], seen["elsewhere"]) == (1200, [], [])
    controller.run("scancel -u alice")
    controller.wait_for("no jobs", lambda: not controller.run("squeue -h | head -n 1"))


def test_under_load_no_job_is_lost_or_stuck_and_memory_does_not_grow_without_bound(controller: Thousand) -> None:
    controller.load("fill", 2000 + GATED, "large")
    controller.wait_for("the nodes are full", lambda: controller.load("look")["allocated"] > 1000)
    controller.load("churn", 5, GATED)  # caches that are made at their first use are made now
    before_kb, before = controller.resident_kb(), controller.status()
    did = controller.load("churn", CHURN_S, GATED)
    after_kb = controller.resident_kb()
    seen = controller.load("look")
    assert did["ended"] > 0
    assert did["cancelled"] > 0
    assert did["submitted"] > 0
    assert seen["over"] == [], "no node is over its cores or memory"
    assert seen["gated"] > 0
    assert after_kb - before_kb < GROWTH_KB
    controller.wait_for("others were placed", lambda: controller.status()["placed"] > before["placed"])
    # Every job starts once there is room: none is lost, none is stuck.
    left = controller.load("drain", 300)
    assert (left["pending"], left["over"]) == (0, [])
