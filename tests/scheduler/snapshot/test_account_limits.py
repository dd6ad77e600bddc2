"""No placement changes what Slurm limits for the job's owner: the job runs another way, or is left to Slurm."""

import pytest
from live import FOREIGN, job, look, node, planned, situation, tasks

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.base import Choice
from slurm_sns.scheduler.observation import NO_LIMITS, UNKNOWN, TresLimits
from slurm_sns.scheduler.snapshot.limits import AccountLimits

PLAIN = Resources(4, 4000)
SHARED = Alternative(1, PLAIN, tasks_per_node=4)
ALONE = Alternative(1, PLAIN, tasks_per_node=4, exclusive=True)
WIDE = Alternative(2, PLAIN, tasks_per_node=2)
MANAGED = Alternative(1, PLAIN._replace(ways=4, bandwidth_gbps=10), tasks_per_node=4)
JOB = tasks(1, 4, user="alice", qos="normal", has_open_nodes=True)


def limited(*names: str, **fields) -> TresLimits:
    """These are limited for alice."""
    return TresLimits(**{"of_users": {"alice": frozenset(names)}, **fields})


def permitted(limits: TresLimits, *ways: Alternative, of=JOB) -> list[Alternative]:
    return list(AccountLimits(limits).permitted(of, Choice(ways)).alternatives)


def test_where_nothing_is_limited_every_way_may_be_taken() -> None:
    ways = Choice((ALONE, SHARED, WIDE, MANAGED))
    for limits in (NO_LIMITS, limited(), limited("cpu", "gres/gpu")):
        assert AccountLimits(limits).permitted(JOB, ways) is ways


def test_whole_nodes_are_not_given_where_memory_is_limited_for_the_owner_or_by_any_qos() -> None:
    for limits in (limited("mem"), limited(of_qos={"other": frozenset({"mem"})}), UNKNOWN):
        assert permitted(limits, ALONE, SHARED) == [SHARED]
    assert permitted(limited(of_users={"alice": frozenset(), "bob": frozenset({"mem"})}), ALONE, SHARED) == [
        ALONE,
        SHARED,
    ]


def test_the_reason_says_what_is_limited_or_that_it_cannot_be_read() -> None:
    with pytest.raises(Infeasible, match="whole nodes change its memory, which is limited"):
        permitted(limited("mem"), ALONE)
    with pytest.raises(Infeasible, match="whole nodes change its memory, and it cannot be read whether"):
        permitted(UNKNOWN, ALONE)


def test_tasks_per_node_are_not_set_where_nodes_are_limited_unless_the_job_has_open_nodes() -> None:
    derived = tasks(1, 4, user="alice", has_open_nodes=False)
    assert permitted(limited("node"), SHARED) == [SHARED]
    assert permitted(limited("node"), Alternative(2, PLAIN), of=derived) == [Alternative(2, PLAIN)]
    with pytest.raises(Infeasible, match="tasks per node change its number of nodes, which is limited"):
        permitted(limited("node"), SHARED, of=derived)


def test_a_job_that_is_not_gated_is_planned_as_if_it_had_come_through_the_filter() -> None:
    seen = tasks(1, 4, user="alice", has_open_nodes=False, **FOREIGN)
    assert permitted(limited("node"), SHARED, of=seen) == [SHARED]


@pytest.mark.parametrize("tres", ["gres/llc", "gres/membw"])
def test_ways_and_bandwidth_are_not_asked_for_where_they_are_limited_for_the_job(tres: str) -> None:
    assert permitted(limited(tres), MANAGED, SHARED) == [SHARED]
    assert permitted(limited(of_qos={"normal": frozenset({tres})}), MANAGED, SHARED) == [SHARED]
    assert permitted(limited(of_qos={"other": frozenset({tres})}), MANAGED, SHARED) == [MANAGED, SHARED]
    assert permitted(limited(of_partitions={"main": frozenset({tres})}), MANAGED, SHARED) == [SHARED]
    assert permitted(UNKNOWN, MANAGED, SHARED) == [MANAGED, SHARED], "Slurm checks them"


def test_where_nodes_are_limited_a_job_is_not_spread() -> None:
    assert permitted(limited("node"), WIDE, SHARED) == [SHARED]
    assert permitted(limited("node"), WIDE) == [WIDE], "it needs two"


def test_a_job_that_can_run_in_no_other_way_is_left_to_slurm_with_the_reason() -> None:
    alone = job(1, words="exclusive", user="alice")
    now = situation(look(alone, nodes=[node("c1")], tres_limits=limited("mem")))
    ((order, why),) = now.follow_ups
    assert (planned(now), order.kind) == ([], "free")
    assert why.startswith("left to Slurm: whole nodes change its memory, which is limited")
    assert planned(situation(look(alone, nodes=[node("c1")]))) == [1]
