"""EASY where nodes are shared: over CS, over Spread-n-Share's alternatives, over a heuristic."""

import pytest
from clusters import job, node, placed
from oracles.batch.policies import easy
from programs import GB, PAPER_NODE, alternatives_of, paper_nodes, program

from slurm_sns.model import ActiveJob, ActiveState, Alternative, Resources, Snapshot
from slurm_sns.policies.base import JobRequest, NodeType, Request
from slurm_sns.policies.baselines.parameters import EasyParameters
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION


def runs(identity: int, name: str, demand: Resources, until_s: float) -> ActiveJob:
    return ActiveJob(identity, ActiveState.RUNNING, (name,), demand, since_s=0, expected_end_s=until_s)


def test_over_cs_a_job_shares_the_head_jobs_node_as_long_as_it_leaves_room():
    """Node a: 2 of 4 cores until 100. The head job needs 3 cores on each of two nodes: both at 100."""
    nodes = (node("a", free=(2, 16)), node("b"))
    active = (runs(90, "a", Resources(2, 16 * GB), 100),)
    waiting = (
        job(1, cores=3, gb=8, nodes=2),
        job(2, cores=1, gb=1, expected_run_s=500),  # stays on b, where 3 cores are left
        job(3, cores=2, gb=1, expected_run_s=100),  # is gone at 100
        job(4, cores=1, gb=1, expected_run_s=500),  # stays on a, where 3 cores are left at 100
        job(5, cores=1, gb=1, expected_run_s=100),  # is gone at 100
        job(6, cores=1, gb=1, expected_run_s=500),  # b would have 2 cores at 100
    )

    made = easy(EasyParameters(placement="cs")).plan(Snapshot(nodes, waiting, active=active))

    assert placed(made) == {2: "b", 3: "b", 4: "a", 5: "a"}
    assert made.waiting[6] == "would delay job 1; job 1 is expected to start in 100 s"


def test_over_cs_the_job_that_would_leave_too_little_waits():
    nodes = (node("a", free=(2, 16)), node("b"))
    active = (runs(90, "a", Resources(2, 16 * GB), 100),)
    waiting = (job(1, cores=3, gb=8, nodes=2), job(2, cores=2, gb=1, expected_run_s=500))

    made = easy(EasyParameters(placement="cs")).plan(Snapshot(nodes, waiting, active=active))

    assert not made.starts
    assert made.waiting[2] == "would delay job 1; job 1 is expected to start in 100 s"


def test_over_cs_a_job_whose_geometry_is_open_has_one_alternative_for_each_scale():
    types = (NodeType(Resources(4, 32 * GB), 4),)
    asked = JobRequest(Alternative(2, Resources(4, GB)), Request(8, memory_per_cpu_mb=256))

    choice = easy(EasyParameters(placement="cs"), REPRODUCTION).alternatives(asked, types)

    assert [(each.scale, each.nodes, each.demand.cores) for each in choice.alternatives] == [(1, 2, 4), (2, 4, 2)]


def keeps_with(ways: int, processes: int):
    """A program that keeps 0.9 of its performance with so many of 20 ways."""
    curves = {"ways": (2, ways, 20), "ipc": (0.3, 0.9, 1.0), "bandwidth": (5.0, 5.0, 5.0)}
    return program({1: 100.0}, f"p{ways}", processes=processes, **curves)


def profiled(identity: int, ways: int, processes: int, **fields):
    return job(identity, alternatives=alternatives_of(keeps_with(ways, processes), processes), **fields)


@pytest.mark.parametrize(
    ("ways", "run_s", "is_started"),
    [(6, 5000, True), (7, 5000, False), (7, 60, True)],
    ids=["14 ways are left for the head job", "13 ways would be left", "it ends before"],
)
def test_over_sns_cache_ways_are_kept_for_the_head_job(ways, run_s, is_started):
    """One node, 12 of its 20 ways are held until 100. The head job has cores now, and needs 14 ways."""
    (n0,) = paper_nodes(1, free={"n0": Resources(24, 100 * GB, 8, 90)})
    active = (runs(90, "n0", Resources(4, 28 * GB, 12, 28), 100),)
    waiting = (profiled(1, 14, 16), profiled(2, ways, 4, expected_run_s=run_s))
    assert waiting[0].alternatives[0].demand == Resources(16, GB, 14, 5)

    made = easy(EasyParameters(placement="sns"), REPRODUCTION).plan(Snapshot((n0,), waiting, active=active))

    assert placed(made) == ({2: "n0"} if is_started else {})
    assert made.waiting[1].endswith("job 1 is expected to start in 100 s")


def test_over_sns_a_slower_alternative_must_end_by_the_head_jobs_start_too():
    nodes = paper_nodes(1, free={"n0": Resources(12, 64 * GB, 10, 60)})
    active = (runs(90, "n0", Resources(16, 64 * GB, 10, 58), 120),)
    head = job(1, alternatives=(Alternative(1, PAPER_NODE, exclusive=True),))
    fast, slow = Alternative(1, Resources(4, GB, 12, 5)), Alternative(1, Resources(4, GB, 6, 5), slowdown=1.5)

    def started(run_s: float) -> list[tuple[int, float]]:
        waiting = (head, job(2, alternatives=(fast, slow), expected_run_s=run_s))
        made = easy(EasyParameters(placement="sns"), REPRODUCTION).plan(Snapshot(nodes, waiting, active=active))
        return [(start.job_id, start.alternative.slowdown) for start in made.starts]

    assert started(80) == [(2, 1.5)]  # 12 ways are not free; with 6 it ends at 120
    assert started(81) == []


def test_over_sns_the_alternatives_come_from_the_programs_profile():
    asked = JobRequest(Alternative(1, Resources(16, GB)), Request(16, memory_per_node_mb=GB), keeps_with(14, 16))

    choice = easy(EasyParameters(placement="sns"), REPRODUCTION).alternatives(asked, (NodeType(PAPER_NODE, 4),))

    assert [each.demand.ways for each in choice.alternatives] == [14]


def test_over_a_heuristic_a_job_gets_a_place_beside_the_head_jobs_if_its_first_is_the_head_jobs():
    """Both nodes have 2 of 4 cores free: a until 50, b until 200. The head job needs 3 cores: on a at 50."""
    nodes = (node("a", free=(2, 16)), node("b", free=(2, 16)))
    active = (runs(90, "a", Resources(2, 16 * GB), 50), runs(91, "b", Resources(2, 16 * GB), 200))
    waiting = (job(1, cores=3), job(2, cores=2, expected_run_s=1000), job(3, cores=2, expected_run_s=1000))

    made = easy(EasyParameters(placement="first-fit")).plan(Snapshot(nodes, waiting, active=active))

    assert placed(made) == {2: "b"}
    assert made.waiting[3] == "would delay job 1; job 1 is expected to start in 50 s"


def test_the_head_jobs_place_is_found_anew_when_a_job_starts_on_it():
    """At 50 the head job could have a or b. A long job on a leaves it b, and then nothing else may stay on b."""
    nodes = (node("a", free=(2, 16)), node("b", free=(2, 16)))
    active = (runs(90, "a", Resources(2, 16 * GB), 50), runs(91, "b", Resources(2, 16 * GB), 50))
    waiting = (job(1, cores=3), job(2, cores=2, expected_run_s=1000), job(3, cores=2, expected_run_s=1000))

    made = easy(EasyParameters(placement="first-fit")).plan(Snapshot(nodes, waiting, active=active))

    assert placed(made) == {2: "a"}
