"""A node takes no more jobs with ways of their own than it has CLOSIDs for."""

from dataclasses import replace

import pytest
from clusters import GB, job, placed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.batch.policies import easy
from programs import paper_nodes, paper_programs, snapshot

from slurm_sns.closids import are_counted, closids_for_jobs, counted, with_closid
from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Node, Plan, Resources, Snapshot
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.baselines.parameters import EasyParameters
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep, exploring
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION

PROGRAMS = paper_programs()
POLICIES = {"sns": spread_n_share(REPRODUCTION), "combined": combined(spreading=REPRODUCTION)}


def with_closids(nodes: tuple[Node, ...], most: int, free: int | None = None) -> tuple[Node, ...]:
    """The nodes with so many CLOSIDs for jobs."""
    return tuple(
        replace(
            each,
            capacity=each.capacity._replace(closids=most),
            free=each.free._replace(closids=most if free is None else free),
        )
        for each in nodes
    )


def with_ways(job_id: int, ways: int = 2, *, closids: int = 1, cores: int = 1) -> Job:
    return job(job_id, alternatives=(Alternative(1, Resources(cores, GB, ways, 1, closids)),))


def on(node: str, plan: Plan) -> list[int]:
    return [job_id for job_id, where in placed(plan).items() if where == node]


@pytest.mark.parametrize(
    ("closids", "foreign", "for_jobs"), [(16, 0, 14), (16, 1, 13), (8, 0, 6), (4, 0, 2), (2, 0, 0), (1, 3, 0)]
)
def test_the_root_group_the_shared_group_and_foreign_groups_take_a_closid_each(closids, foreign, for_jobs):
    assert closids_for_jobs(closids, foreign) == for_jobs


@pytest.mark.parametrize(
    ("ways", "closids", "for_jobs"),
    [(20, 8, 6), (20, 0, 20), (0, 8, 0), (0, 0, 0)],
    ids=["limited", "no limit: each job has a way", "no ways", "neither"],
)
def test_a_node_whose_closids_are_not_known_has_no_limit(ways, closids, for_jobs):
    assert counted(ways, closids) == for_jobs


def test_only_jobs_with_ways_demand_a_closid_and_only_where_closids_are_counted():
    ways, none = Resources(4, 1024, 3, 10), Resources(4, 1024, 0, 10)

    assert with_closid(ways, is_counted=True) == ways._replace(closids=1)
    assert with_closid(ways, is_counted=False) == ways
    assert with_closid(none, is_counted=True) == none
    assert are_counted([none, Resources(4, 1024, 3, 10, 1)])
    assert not are_counted([none, ways])


@pytest.mark.parametrize("program", ["mg", "ep", "bfs"])
def test_every_alternative_of_a_profiled_job_demands_one_closid_where_they_are_counted(program):
    nodes = paper_nodes(8)
    plain = snapshot(nodes, PROGRAMS[program]).waiting[0].alternatives
    limited = snapshot(with_closids(nodes, 3), PROGRAMS[program]).waiting[0].alternatives

    assert {each.demand.closids for each in plain} == {0}
    assert limited == tuple(replace(each, demand=each.demand._replace(closids=1)) for each in plain)


def test_an_exploring_job_demands_a_closid_too():
    capacity = Resources(28, 128 * GB, 20, 118, 3)

    first, *_ = exploring(ExplorationStep(1, samples=True), (), Request(tasks=16), (NodeType(capacity, 8),))

    assert (first.demand.ways, first.demand.closids) == (20, 1)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
class TestTwoClosids:
    """One node with two CLOSIDs for jobs, and room for many jobs in all else."""

    nodes = with_closids(paper_nodes(1), 2)

    def test_two_jobs_with_ways_are_planned_and_a_third_waits(self, policy: Portfolio):
        plan = policy.plan(Snapshot(self.nodes, tuple(with_ways(at) for at in (1, 2, 3))))

        assert sorted(placed(plan)) == [1, 2]
        assert plan.waiting[3] == (
            "no allowed node has 1 core, 2 ways, 1 GB/s, 1 CLOSID and 1024 MiB free; "
            "nearest: n0 lacks 1 CLOSID (each job with cache ways there has one)"
        )

    def test_a_job_without_ways_still_goes_there(self, policy: Portfolio):
        jobs = (*(with_ways(at) for at in (1, 2, 3)), job(4))

        assert sorted(placed(policy.plan(Snapshot(self.nodes, jobs)))) == [1, 2, 4]

    def test_the_next_goes_when_one_has_ended(self, policy: Portfolio):
        for free, started in ((0, []), (1, [1]), (2, [1, 2])):
            plan = policy.plan(Snapshot(with_closids(self.nodes, 2, free), tuple(with_ways(at) for at in (1, 2, 3))))
            assert sorted(placed(plan)) == started

    def test_an_exclusive_job_takes_the_whole_node(self, policy: Portfolio):
        alone = replace(with_ways(1, 20).alternatives[0], exclusive=True)

        plan = policy.plan(Snapshot(self.nodes, (job(1, alternatives=(alone,)), with_ways(2), job(3))))

        assert sorted(placed(plan)) == [1]

    def test_explain_names_the_closid_that_is_missing(self, policy: Portfolio):
        now = Snapshot(with_closids(self.nodes, 2, 0), (with_ways(1),))

        needs, nearest, *_ = policy.explain(now, policy.plan(now), 1).details

        assert "Nodes that had this free at its turn: 0; needed: 1." in needs
        assert nearest == "  nearest: n0 lacks 1 CLOSID (each job with cache ways there has one)"


def test_a_job_that_needs_another_node_does_not_keep_it_from_a_job_behind_it():
    nodes = with_closids(paper_nodes(2), 1)
    plan = POLICIES["combined"].plan(Snapshot(nodes, tuple(with_ways(at) for at in (1, 2, 3))))

    assert [len(on(each.name, plan)) for each in nodes] == [1, 1]


def test_easy_starts_the_first_job_when_a_closid_comes_free():
    """The head job has its place from the end of the job that has the CLOSID; a job without ways goes now."""
    policy = easy(EasyParameters("best-fit-ways"))
    nodes, demand = with_closids(paper_nodes(1), 1, 0), with_ways(9).alternatives[0].demand
    holder = ActiveJob(9, ActiveState.RUNNING, ("n0",), demand, 0, expected_end_s=100)
    queue = (replace(with_ways(1), expected_run_s=10), replace(with_ways(2), expected_run_s=10), job(3))

    plan = policy.plan(Snapshot(nodes, queue, active=(holder,)))

    assert placed(plan).keys() == {3}
    assert placed(policy.plan(Snapshot(with_closids(nodes, 1, 1), queue))).keys() == {1, 3}


@pytest.mark.long
@settings(max_examples=60)
@given(st.data())
def test_a_limit_that_cannot_bind_changes_no_plan(data):
    """As many CLOSIDs as ways: each job with ways demands a way, so the ways are gone first."""
    jobs, limited = [], []
    for at in range(data.draw(st.integers(1, 25))):
        ways, gbps = data.draw(st.sampled_from([0, 1, 2, 5])), data.draw(st.sampled_from([0, 1, 20]))
        demand = Resources(data.draw(st.integers(1, 4)), GB, ways, gbps)
        alternative = Alternative(data.draw(st.sampled_from([1, 1, 2])), demand, exclusive=data.draw(st.booleans()))
        jobs.append(job(at, alternatives=(alternative,)))
        counted_demand = with_closid(demand, is_counted=True)
        limited.append(job(at, alternatives=(replace(alternative, demand=counted_demand),)))
    nodes = paper_nodes(data.draw(st.integers(1, 3)))
    ways = nodes[0].capacity.ways
    for policy in POLICIES.values():
        expected = policy.plan(Snapshot(nodes, tuple(jobs)))
        found = policy.plan(Snapshot(with_closids(nodes, ways), tuple(limited)))
        assert placed(found) == placed(expected)
        assert found.report == expected.report
