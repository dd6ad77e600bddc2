"""Nodes that are kept for a job until it can start: `withhold: until-start`."""

from dataclasses import replace

from clusters import GB, job, node, placed
from oracles.portfolio import plainly

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Resources, Snapshot
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import UNTIL_START, MatchingParameters, ways_to_withhold
from slurm_sns.policies.placement.heuristic_names import IDLEST

PARAMETERS = MatchingParameters(("first-fit",), withhold=UNTIL_START)


def running(end_s: int, *nodes: str, cores: int, gb: float = 0) -> ActiveJob:
    held = Resources(cores, int(gb * GB))
    return ActiveJob(900 + end_s, ActiveState.RUNNING, nodes, held, 0, expected_end_s=end_s)


def kept(policy, snapshot: Snapshot) -> list[tuple[int, list[int], float | None]]:
    """What is withheld: the job, its nodes, and from when on; by the kernel as in plain Python."""
    found = []
    for of in (policy, plainly(policy)):
        plan = of.plan(snapshot)
        entries = plan.record.withheld(plan.record.members[plan.report.chosen])
        found.append([(each.job.id, each.nodes.tolist(), each.start_s) for each in entries])
    assert found[0] == found[1]
    return found[0]


def test_nodes_kept_whole_give_nothing_back():
    """Nobody knows when the over-aged job can start; nobody runs on what is kept for it, and so nothing ends there."""
    waiting = (job(1, 4, 32, over_aged=True, expected_run_s=10), job(2, 1, 2, expected_run_s=10))
    snapshot = Snapshot((node("a", free=(1, 8)), node("b", free=(1, 1))), waiting)

    assert kept(combined(PARAMETERS, portfolio=(IDLEST,)), snapshot) == [(1, [0], None)]


def test_a_job_without_cache_ways_does_not_wait_for_ways_that_are_withheld():
    listed = replace(node("a", 8, free=(4, 16)), capacity=Resources(8, 32 * GB, 11), free=Resources(4, 16 * GB, 2))
    ways = job(1, alternatives=(Alternative(1, Resources(1, GB, 5)),), expected_run_s=10)
    snapshot = Snapshot((listed,), (ways, job(2, 4, expected_run_s=10)), active=(running(10, "a", cores=2),))

    assert kept(max_jobs(PARAMETERS), snapshot) == [(1, [0], None), (2, [0], 10.0)]


def test_what_ends_before_the_start_may_pass_and_what_leaves_the_place_free_too():
    nodes = (node("a", 4, free=(2, 32)), node("b", 4, free=(1, 32)))
    waiting = (
        job(1, 4, expected_run_s=100),  # on a from 20 on
        job(2, 2, expected_run_s=21),  # would be on a then
        job(3, 1, expected_run_s=20),
        job(4, 1, expected_run_s=1000),  # on b
    )
    active = (running(20, "a", cores=2), running(30, "b", cores=3))
    plan = max_jobs(PARAMETERS).plan(Snapshot(nodes, waiting, active=active))

    assert placed(plan) == {3: "a", 4: "b"}
    assert kept(max_jobs(PARAMETERS), Snapshot(nodes, waiting, active=active)) == [(1, [0], 20.0)]


def test_no_job_is_passed_over_behind_one_without_a_place_where_projects_share():
    waiting = (job(1, 4, project="p"), job(2, 2, project="q"), job(3, 4, project="p"))
    snapshot = Snapshot((node("a", 4, free=(2, 32)),), waiting)
    for withhold in ways_to_withhold():
        policy = max_jobs(MatchingParameters(("first-fit",), reservations=0, withhold=withhold))
        assert placed(policy.plan(snapshot)) == {2: "a"}
