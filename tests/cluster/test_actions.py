"""Orders other than placements on a real Slurm: suspend, resume, requeue, release."""

import shlex

import pytest
from limits import until_running

from cluster import PYTHON, Cluster

#: Arguments: `NAME JOBID [POOL or REASON]`. Prints `done`, or why the order was not carried out.
ORDER = """
import sys
from slurm_sns.model import Release, Requeue, Resume, Suspend
from slurm_sns.scheduler.observe.follow_up import Advise
from slurm_sns.scheduler.orders import EndHold
from slurm_sns.slurm.executor import SlurmExecutor

name, number, *more = sys.argv[1:]
kinds = {"suspend": Suspend, "resume": Resume, "requeue": Requeue, "release": Release, "end-hold": EndHold}
kinds["advise"] = Advise
(answer,) = SlurmExecutor().execute((kinds[name](int(number), *more),))
print(answer.refused or answer.unreachable or "done")
"""


def order(cluster: Cluster, *words: object) -> str:
    """Have the executor carry out one order as SlurmUser, and return its answer."""
    return cluster.run(f"{PYTHON} -c {shlex.quote(ORDER)} {' '.join(map(str, words))}", "slurm").strip()


def started(cluster: Cluster, options: str) -> int:
    """A running job in a partition that is not managed: Slurm itself has started it."""
    number = cluster.submit(f"-p plain -t 5 -n2 --mem-per-cpu=1G {options}", "sleep 300")
    until_running(cluster, number)
    return number


def test_a_job_is_suspended_and_runs_on(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "")
    assert order(cluster, "suspend", number) == "done"
    assert cluster.fields(number)["JobState"] == "SUSPENDED"
    assert order(cluster, "suspend", number) == "done", "Slurm does not mind"
    assert order(cluster, "resume", number) == "done"
    assert cluster.fields(number)["JobState"] == "RUNNING"


def test_a_requeued_job_waits_in_its_own_partition(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue")
    assert order(cluster, "requeue", number) == "done"
    cluster.wait_for("it is requeued", lambda: cluster.fields(number)["Restarts"] == "1")
    assert cluster.fields(number)["Partition"] == "plain"


def test_a_suspended_job_that_is_requeued_waits_and_nobody_holds_it(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue")
    assert order(cluster, "suspend", number) == "done"
    assert order(cluster, "requeue", number) == "done"
    cluster.wait_for("it is requeued", lambda: cluster.fields(number)["Restarts"] == "1")
    assert cluster.fields(number)["Priority"] != "0"


def test_a_job_that_is_requeued_in_another_partition_waits_there_and_is_held(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue -w s1")
    assert order(cluster, "requeue", number, "main") == "done"
    asked = cluster.fields(number)
    assert (asked["Partition"], asked["Priority"], asked["ReqNodeList"]) == ("main", "0", "(null)")
    cluster.wait_for("nothing completes any more", lambda: cluster.fields(number)["JobState"] == "PENDING")
    assert cluster.fields(number)["Priority"] == "0"


@pytest.mark.parametrize("name", ["suspend", "resume", "requeue"])
def test_an_order_for_a_job_that_waits_is_refused(planned_by_hand: Cluster, name: str) -> None:
    number = planned_by_hand.submit("-t 5 -n1 --begin=now+1hour", "true")
    assert order(planned_by_hand, name, number) != "done"
    assert planned_by_hand.fields(number)["JobState"] == "PENDING"


def test_a_job_that_may_not_restart_is_not_requeued(planned_by_hand: Cluster) -> None:
    number = started(planned_by_hand, "--no-requeue")
    assert order(planned_by_hand, "requeue", number) != "done"
    assert planned_by_hand.fields(number)["JobState"] == "RUNNING"


def test_of_a_job_that_is_free_already_a_release_changes_the_mark_alone(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = cluster.submit("-t 5 -n1 --nice=7 --begin=now+1hour", "true")
    cluster.run(f"scontrol release {number}", "alice")
    before = cluster.fields(number)
    assert order(cluster, "release", number, "tested") == "done"
    after = cluster.fields(number)
    assert " Extra=sns:1 advised " in cluster.run(f"scontrol show job -o {number}")
    # Slurm's own pass changes these, AccrueTime at its first look at the job.
    slurms_own = {"LastSchedEval", "Reason", "Priority", "AccrueTime"}
    assert {name for name in before if before[name] != after[name]} <= slurms_own
    assert "0" not in (before["Priority"], after["Priority"])


def test_the_mark_of_a_job_that_its_owner_released_says_so_while_it_waits_runs_and_in_an_array(
    planned_by_hand: Cluster,
) -> None:
    cluster = planned_by_hand
    waits, runs, array = (
        cluster.submit(f"-t 5 -n1 --mem-per-cpu=1G {options}", "sleep 300")
        for options in ("--begin=now+1hour", "", "--begin=now+1hour -a 0-2")
    )
    assert "held" in order(cluster, "advise", waits, "released")
    for number in (waits, runs, array):
        cluster.run(f"scontrol release {number}", "alice")
    until_running(cluster, runs)
    for number in (waits, runs, array):
        assert order(cluster, "advise", number, "released") == "done"
        assert " Extra=sns:1 advised " in cluster.run(f"scontrol show job -o {number}")
        assert cluster.fields(number)["Priority"] != "0"


def test_the_end_of_a_hold_frees_what_was_given_to_slurm_and_nothing_else(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    ours, given = (cluster.submit("-t 5 -n1 --begin=now+1hour", "true") for _ in range(2))
    assert order(cluster, "release", given, "tested") == "done"
    cluster.run(f"scontrol uhold {given}", "alice")
    assert [cluster.fields(each)["Priority"] for each in (ours, given)] == ["0", "0"]
    assert [order(cluster, "end-hold", each) for each in (ours, given)] == ["done", "done"]
    assert cluster.fields(ours)["Priority"] == "0"
    assert cluster.fields(given)["Priority"] != "0"
