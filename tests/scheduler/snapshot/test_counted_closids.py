"""CLOSIDs live: how many a node has by sns.yaml, and how many its jobs with ways have."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ENFORCE, FOREIGN, NOW, free, job, look, node, pinned, planned, running, situation

from slurm_sns.model import Plan, Resources
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.scheduler.observation import JobState, ObservedJob, ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.free_nodes import count_closids
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules

#: Both nodes have CLOSIDs for two jobs.
LIMITED = replace(ENFORCE, closids={"c1": 4, "c2": 4})
#: It keeps all of its speed with two ways, and draws 1 GB/s.
FRUGAL = Program("mine", (Run(1, 1, 100.0, (2, 20), (1.0, 1.0), (1.0, 1.0), Provenances(*[Provenance.ASSUMED] * 3)),))


def with_ways(name: str, used: int = 0) -> ObservedNode:
    return replace(node(name), capacity=Resources(28, 128_000, 20, 118), allocated=Resources(0, 0, used))


def seen(*jobs, nodes=None, settings=LIMITED) -> Situation:
    nodes = (with_ways("c1"), with_ways("c2")) if nodes is None else nodes
    return situation(look(*jobs, nodes=nodes), settings=settings)


def closids(of: Situation) -> dict[str, tuple[int, int]]:
    """Of each node, those that it has for jobs and those that are free."""
    return {each.name: (each.capacity.closids, each.free.closids) for each in of.snapshot.nodes}


def test_without_the_setting_nothing_is_counted() -> None:
    shown = look(running(1, "c1", ways=4), nodes=[with_ways("c1", 4)])
    assert count_closids(shown, {}) is shown
    assert closids(seen(running(1, "c1", ways=4), settings=ENFORCE)) == {"c1": (0, 0), "c2": (0, 0)}


def test_the_root_and_the_shared_group_have_two_of_them() -> None:
    assert closids(seen()) == {"c1": (2, 2), "c2": (2, 2)}


def test_a_node_without_a_limit_has_as_many_as_ways_and_one_without_ways_has_none() -> None:
    nodes = (with_ways("c1"), with_ways("c2"), node("c3"))
    assert closids(seen(nodes=nodes, settings=replace(ENFORCE, closids={"c1": 4}))) == {
        "c1": (2, 2),
        "c2": (20, 20),
        "c3": (0, 0),
    }


def test_each_job_with_ways_that_has_the_node_counts_also_those_that_pass_through() -> None:
    ours, by_hand = running(1, "c1", "c2", ways=4), running(2, "c1", ways=3, **FOREIGN)
    without_ways = running(3, "c1", bandwidth_gbps=9, **FOREIGN)
    now = seen(ours, by_hand, without_ways)
    assert closids(now) == {"c1": (2, 0), "c2": (2, 1)}


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"state": JobState.SUSPENDED}, 1),  # it keeps its gres
        ({"is_completing": True, "end_s": int(NOW)}, 0),  # nothing is free there until it is over
        ({"state": JobState.ENDED}, 2),
        ({"state": JobState.PENDING, "allocated": ()}, 2),
    ],
    ids=["suspended", "completing", "ended", "waiting"],
)
def test_a_closid_is_in_use_for_as_long_as_the_ways_are(fields, left: int) -> None:
    assert closids(seen(running(1, "c1", ways=4, **FOREIGN, **fields)))["c1"] == (2, left)


def test_a_placed_job_with_ways_counts_before_slurm_starts_it() -> None:
    placed = pinned(1, "c1", ways=4)
    now = seen(placed)
    assert closids(now) == {"c1": (2, 1), "c2": (2, 2)}
    assert [each.demand.closids for each in now.snapshot.active] == [1]


def test_an_active_job_says_its_closid() -> None:
    now = seen(running(1, "c1", ways=4), running(2, "c1"))
    assert [each.demand.closids for each in now.snapshot.active] == [1, 0]


def test_more_jobs_than_closids_leave_none_free_and_other_jobs_still_go_there() -> None:
    """Slurm starts pass-through jobs without asking us."""
    by_hand = [running(at, "c1", ways=2, **FOREIGN) for at in (1, 2, 3)]
    placed = pinned(4, "c1", ways=2)
    now = seen(*by_hand, placed, job(5), nodes=[with_ways("c1", 6)])
    assert closids(now) == {"c1": (2, 0)}
    assert planned(now) == [5]
    assert free(now)["c1"][0] == 27
    starts = spread_n_share().plan(now.snapshot).starts
    assert [start.job_id for start in starts] == [5]


class TestProfiledJobs:
    """Whole cycles of jobs with a profile."""

    def plan(self, *jobs: ObservedJob, nodes: tuple[ObservedNode, ...], settings: Settings = LIMITED) -> Plan:
        policy = spread_n_share()
        spreading = SpreadRules(policy.alternatives, programs={"mine": FRUGAL})
        return policy.plan(read_situation(look(*jobs, nodes=nodes), {}, settings, NOW, spreading).snapshot)

    def cycle(self, *jobs: ObservedJob) -> list[int]:
        return [start.job_id for start in self.plan(*jobs, nodes=(with_ways("c1"),)).starts]

    def test_they_go_until_every_closid_is_in_use_and_the_next_when_one_has_ended(self) -> None:
        waiting = [job(at, words="program=mine", nodes_max=None) for at in (7, 8, 9)]
        one, other = (running(at, "c1", ways=2, **FOREIGN) for at in (1, 2))
        assert self.cycle(*waiting) == [7, 8]
        assert self.cycle(one, *waiting) == [7]
        assert self.cycle(one, other, *waiting) == []
        assert self.cycle(one, other, *waiting, job(10)) == [10]

    @settings(max_examples=60)
    @given(
        limits=st.fixed_dictionaries({}, optional={"c1": st.integers(3, 9), "c2": st.integers(3, 9)}),
        there=st.lists(st.tuples(st.sampled_from(["c1", "c2"]), st.integers(0, 2)), max_size=8),
        waiting=st.integers(0, 20),
    )
    def test_no_node_gets_more_jobs_with_ways_than_it_has_closids(self, limits, there, waiting) -> None:
        runs = [running(at, name, ways=ways, **FOREIGN) for at, (name, ways) in enumerate(there, start=1)]
        nodes = tuple(with_ways(name, sum(ways for where, ways in there if where == name)) for name in ("c1", "c2"))
        asking = [job(at, words="program=mine", nodes_max=None) for at in range(100, 100 + waiting)]
        plan = self.plan(*runs, *asking, nodes=nodes, settings=replace(ENFORCE, closids=limits))
        for name, closids in limits.items():
            before = sum(ways > 0 for where, ways in there if where == name)
            started = sum(name in start.nodes for start in plan.starts if start.alternative.demand.ways)
            assert started <= max(0, closids - 2 - before)
