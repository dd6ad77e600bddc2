"""Suspended jobs restart where they are expected to complete sooner: those that may, and nobody else.

What they are expected to need comes from time limits alone: each job has a name of its own, so that no earlier run
counts. `gain_s` is a minute: an urgent job with a limit of a minute is never worth a restart, one of an hour is.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from evidence import begin, check, runs, written
from restart_comparison import GAIN_S, Scene, are, compare, new_name, prepared, restarting, urgent
from slurm_conf import SNS_YAML, restart, suspending_urgent

from cluster import Cluster

#: A job that runs until `goes_on`.
SCRIPT = "echo start >> work/$SLURM_JOB_ID; until [ -e work/go ]; do sleep 0.3; done; echo end >> work/$SLURM_JOB_ID"
MAY_RESTART = "--sns-restartable --requeue"
#: How a decision is explained to the job's owner.
EXPLAINED = (
    r"expected to complete in .+ here \(.+ suspended, .+ to run\), in .+ on {node} from the beginning: {what}, "
    r"at most .+ of work lost"
)
SHORT_LIMIT_MIN, LONG_LIMIT_MIN = 1, 60


@pytest.fixture
def restarts_on(cluster: Cluster) -> Iterator[Cluster]:
    with suspending_urgent(cluster, sns_yaml=restarting("on")):
        yield cluster


@pytest.fixture
def restarts_proposed(cluster: Cluster) -> Iterator[Cluster]:
    with suspending_urgent(cluster, sns_yaml=restarting("propose")):
        yield cluster


def submit(cluster: Cluster, *options: str) -> list[int]:
    """Submit a job of a quarter of a node for each of these options, and wait until they run."""
    begin(cluster)
    common = "-N1 -n7 -t90 --mem-per-cpu=1G"
    numbers = cluster.submit_all([(f"{common} -J {new_name()} {each}", SCRIPT) for each in options])
    cluster.wait_for("they run", lambda: are(cluster, numbers, "RUNNING"))
    return numbers


def goes_on(cluster: Cluster) -> None:
    """Let the jobs end."""
    cluster.run("touch work/go", "alice")


def restarts(cluster: Cluster, number: int) -> int:
    """Slurm's count of the job's restarts."""
    return int(cluster.fields(number)["Restarts"])


def counted(cluster: Cluster, what: str = "restarts") -> int:
    """The restarts, or what was `proposed`, by `sns status`."""
    return sum(each[what] for each in cluster.status()["restarts"])


def decisions(cluster: Cluster, number: int, action: str) -> list[dict[str, Any]]:
    """The job's decisions of this kind, by `sns explain`."""
    found = cluster.try_explain(number).get("decisions", ())
    return [each for each in found if each["action"] == action]


def is_explained(cluster: Cluster, number: int, decision: dict[str, Any], what: str) -> bool:
    """Whether the decision and the owner's `sns explain` say what was done and why, and the terms agree with it."""
    (node,) = decision["nodes"]
    why = EXPLAINED.format(node=node, what=what)
    stays, goes = decision["considered"]["considered"]
    gain_s = stays["figures"]["completes in s"] - goes["figures"]["completes in s"]
    told = cluster.run(f"sns explain {number}", "alice")
    return bool(re.search(why, decision["reason"]) and re.search(why, told)) and gain_s >= GAIN_S


def until_restarted(cluster: Cluster, number: int) -> str:
    """Wait until the job runs again, and return its node."""
    cluster.wait_for(
        "it is restarted", lambda: restarts(cluster, number) == 1 and cluster.job(number).state == "RUNNING"
    )
    (node,) = cluster.job(number).nodes
    return node


def test_jobs_that_may_restart_do_so_where_there_is_room_and_no_others(restarts_on: Cluster) -> None:
    cluster = restarts_on
    filler = cluster.submit("-p plain -w c[2-4] -N3 --exclusive -t60", "sleep 3600", "bob")
    cluster.wait_for("there is room on c1 only", lambda: are(cluster, [filler], "RUNNING"))
    not_twice, not_asked = "--sns-restartable --no-requeue", "--requeue"
    numbers = submit(cluster, MAY_RESTART, not_twice, not_asked, MAY_RESTART)
    moving, *staying = numbers
    *_, by_hand = staying
    assert {cluster.job(number).nodes for number in numbers} == {("c1",)}

    ends_soon = urgent(cluster, "c1", SHORT_LIMIT_MIN, 3600)
    cluster.wait_for("they are suspended", lambda: are(cluster, numbers, "SUSPENDED"))
    cluster.wait_for("it is decided on", lambda: "it stays" in cluster.explain(moving)["job"]["reason"])
    cluster.run(f"scancel {ends_soon}")
    cluster.wait_for("they go on", lambda: are(cluster, numbers, "RUNNING"))
    assert {restarts(cluster, number) for number in numbers} == {0}

    before = counted(cluster)
    cluster.run(f"scontrol suspend {by_hand}; scancel {filler}")
    cluster.wait_for("there is room elsewhere", lambda: are(cluster, [filler], "CANCELLED"))
    lasts = urgent(cluster, "c1", LONG_LIMIT_MIN, 3600)
    node = until_restarted(cluster, moving)
    assert node != "c1"
    assert counted(cluster) == before + 1
    (decision,) = decisions(cluster, moving, "restart")
    assert is_explained(cluster, moving, decision, "restarted"), decision
    assert decision["nodes"] == [node]
    cluster.wait_for_cycles(3)
    assert are(cluster, staying, "SUSPENDED")
    goes_on(cluster)
    cluster.wait_for("it completes", lambda: are(cluster, [moving], "COMPLETED"))
    assert are(cluster, staying, "SUSPENDED")
    assert {restarts(cluster, number) for number in staying} == {0}

    cluster.run(f"scancel {lasts}")
    cluster.wait_for("c1 is theirs again", lambda: are(cluster, [lasts], "CANCELLED"))
    cluster.run(f"scontrol resume {by_hand}")
    check(cluster, numbers, restarted=frozenset({moving}))
    assert written(cluster)[moving] == ["start", "start", "end"]


def test_what_is_only_proposed_is_not_done_nor_anything_while_slurm_sns_is_disabled(restarts_proposed: Cluster) -> None:
    cluster = restarts_proposed
    (number,) = submit(cluster, MAY_RESTART)
    (node,) = cluster.job(number).nodes
    before = counted(cluster), counted(cluster, "proposed")
    urgent(cluster, node, LONG_LIMIT_MIN, 3600)
    cluster.wait_for("it is suspended", lambda: are(cluster, [number], "SUSPENDED"))
    cluster.wait_for("a restart is proposed", lambda: decisions(cluster, number, "proposal") != [])
    (decision,) = decisions(cluster, number, "proposal")
    assert is_explained(cluster, number, decision, "a restart is proposed"), decision
    cluster.wait_for_cycles(3)
    assert (cluster.job(number).state, restarts(cluster, number)) == ("SUSPENDED", 0)
    assert (counted(cluster), counted(cluster, "proposed")) == (before[0], before[1] + 1)

    cluster.run("sns disable", "slurm")
    cluster.run(f"""sed -i 's/restart: "propose"/restart: "on"/' {SNS_YAML}""")
    restart(cluster)
    cluster.wait_for_cycles(5)
    assert (cluster.job(number).state, restarts(cluster, number)) == ("SUSPENDED", 0)
    assert decisions(cluster, number, "restart") == []

    cluster.run("sns enable", "slurm")
    assert until_restarted(cluster, number) != node
    goes_on(cluster)
    assert [run.state for run in runs(cluster, [number])].count("COMPLETED") == 1


def test_suspended_jobs_complete_sooner_than_by_slurm_alone_and_nothing_is_lost(cluster: Cluster) -> None:
    with prepared(cluster):
        ours, alone = compare(cluster, Scene(work_s=12, done_s=3, urgent_s=40))
    assert ours.problems == alone.problems == ()
    assert ours.mean_suspended_s() < alone.mean_suspended_s(), (ours.figures(), alone.figures())
