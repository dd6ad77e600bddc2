"""Which live jobs are spread or share by a profile, and what they are given."""

from dataclasses import replace

import pytest
from live import comment

from slurm_sns.errors import Infeasible
from slurm_sns.model import Resources
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.registry import specification
from slurm_sns.scheduler.observation import JobState, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import placed_demand, whole_memory_mb
from slurm_sns.scheduler.snapshot.node_sets import kinds_of
from slurm_sns.scheduler.snapshot.spreading import Spreader, SpreadRules

ASSUMED = Provenances(Provenance.ASSUMED, Provenance.ASSUMED, Provenance.ASSUMED)


def run(scale: int, time_s: float) -> Run:
    return Run(16, scale, time_s, (2, 10, 20), (0.5, 0.9, 1.0), (40.0, 30.0, 20.0), ASSUMED)


#: Twice as fast on two nodes: a scaling program that needs 10 ways for nine tenths of its speed.
SCALING = Program("mg", (run(1, 100.0), run(2, 50.0)))
NODES = tuple(
    ObservedNode(f"c{number}", frozenset({"main"}), Resources(28, 128_000, 20, 118), Resources(0, 0))
    for number in range(1, 5)
)
JOB = ObservedJob(
    1, 2001, 100, JobState.PENDING, user="alice", name="mg", partitions=("main",), tasks=16, memory_per_cpu_mb=1000
)


def hinted(words: str, **fields) -> ObservedJob:
    return replace(JOB, admin_comment=comment(words), **fields)


def ways(job: ObservedJob, policy: str = "combined", **fields):
    spreading = SpreadRules(specification(policy).policy().alternatives, programs={"mg": SCALING})
    return Spreader(replace(spreading, **fields)).choice(job, kinds_of(NODES))


def test_a_hinted_job_of_a_known_program_is_spread_with_its_ways_and_bandwidth() -> None:
    found = ways(hinted("program=mg"))
    first, second = found.alternatives
    assert (first.scale, first.nodes, first.tasks_per_node) == (2, 2, 8)
    assert first.demand == Resources(8, 8000, 10, 30)
    assert (second.scale, second.nodes, second.demand) == (1, 1, Resources(16, 16_000, 10, 30))
    assert found.explanation.summary[0].startswith("Program mg is scaling")


def test_without_program_the_sites_template_names_it() -> None:
    assert len(ways(hinted("alpha=0.9")).alternatives) == 2
    assert len(ways(hinted("alpha=0.9"), program="{user}.{name}").alternatives) == 1


@pytest.mark.parametrize(
    ("words", "job"),
    [
        ("", {}),
        ("heuristic=mix-fit", {}),
        ("program=mg fixed", {"tasks_per_node": 8, "nodes_min": 2, "nodes_max": 2}),
    ],
    ids=["no hint of Spread-n-Share", "another hint", "geometry of its own"],
)
def test_any_other_job_keeps_its_own_geometry(words: str, job: dict) -> None:
    found = ways(hinted(words, **job))
    assert [way.demand.ways for way in found.alternatives] == [0]
    assert found.explanation is None


def test_an_unknown_program_is_never_spread() -> None:
    (way,) = ways(hinted("program=what")).alternatives
    assert (way.nodes, way.demand) == (1, Resources(16, 16_000))


def test_a_job_that_was_placed_before_is_spread_as_if_it_was_not() -> None:
    again = hinted("program=mg", tasks_per_node=8, nodes_min=2, nodes_max=2)
    assert ways(again).alternatives == ways(hinted("program=mg")).alternatives


def test_max_jobs_spreads_nothing() -> None:
    (way,) = ways(hinted("program=mg"), policy="max-jobs").alternatives
    assert (way.nodes, way.demand.ways) == (1, 0)


@pytest.mark.parametrize("policy", ["max-jobs", "sns", "combined"])
@pytest.mark.parametrize("words", ["exclusive", "program=mg exclusive", "program=mg exclusive fixed"])
def test_who_asks_to_be_alone_is_alone_under_every_policy(policy: str, words: str) -> None:
    assert all(way.exclusive for way in ways(hinted(words), policy=policy).alternatives)


def test_ce_gives_every_job_its_nodes_for_itself() -> None:
    for words in ("", "program=mg"):
        assert all(way.exclusive for way in ways(hinted(words), policy="ce").alternatives)


def test_a_placed_job_takes_the_gres_that_it_was_given() -> None:
    placed = replace(JOB, pinned_to=("c1",), tasks_per_node=16, ways=10, bandwidth_gbps=30)
    assert placed_demand(placed, NODES[:1]) == Resources(16, 16_000, 10, 30)


def test_to_be_alone_it_asks_for_all_the_memory_of_the_smallest_of_its_nodes() -> None:
    smaller = replace(NODES[0], capacity=Resources(28, 96_000))
    assert whole_memory_mb((*NODES, smaller)) == 96_000


@pytest.mark.parametrize("policy", ["max-jobs", "ce", "cs", "combined"])
def test_jobs_that_share_the_work_get_what_each_would_get_alone(policy: str) -> None:
    """Jobs that are alike but for one thing, one after another, on all nodes and on some."""
    spreading = SpreadRules(specification(policy).policy().alternatives, programs={"mg": SCALING})
    shared = Spreader(spreading)
    changes = (
        {},
        {"tasks": 8},
        {"cpus_per_task": 2},
        {"tasks": 1, "nodes_min": 2},
        {"tasks_per_node": 4, "nodes_max": 2},
        {"memory_per_cpu_mb": 500},
        {"memory_per_cpu_mb": None, "memory_per_node_mb": 9000},
        {"name": "other"},
        {"tasks": 1000},
        {"words": "alpha=0.5"},
        {"words": "exclusive"},
    )
    jobs = [hinted(**{"words": "alpha=0.9", **change}) for change in changes]
    for job in (*jobs, *jobs):
        for nodes in (NODES, NODES[:2]):
            assert told(shared, job, nodes) == told(Spreader(spreading), job, nodes)


def told(spreader: Spreader, job: ObservedJob, nodes: tuple[ObservedNode, ...]) -> object:
    try:
        return spreader.choice(job, kinds_of(nodes))
    except Infeasible as never:
        return str(never)
