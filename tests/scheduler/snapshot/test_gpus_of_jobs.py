"""What jobs with GPUs demand of their nodes, and how many GPUs are free there."""

from dataclasses import replace

import pytest
from live import NOW, job, node, pinned, situation, tasks

from slurm_sns.errors import Infeasible
from slurm_sns.gpus import JOB, NODE, TASK, GpuRequest
from slurm_sns.model import Resources, gpus_of
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.registry import specification
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import placed_demand
from slurm_sns.scheduler.snapshot.node_sets import kinds_of
from slurm_sns.scheduler.snapshot.spreading import Spreader, SpreadRules


def with_gpus(name: str, *, used: dict[str, int] | None = None, ways: int = 0, **by_type: int) -> ObservedNode:
    """A node with GPUs of these types, some of which are in use."""
    seen = node(name)
    return replace(
        seen,
        capacity=seen.capacity._replace(gpus=gpus_of(by_type), ways=ways),
        allocated=seen.allocated._replace(gpus=gpus_of(used or {})),
    )


NODES = (node("c1"), with_gpus("c2", a=4), with_gpus("c3", a=2, b=2))
ASSUMED = Provenances(Provenance.ASSUMED, Provenance.ASSUMED, Provenance.ASSUMED)
#: Twice as fast on two nodes.
SCALING = Program(
    "mg",
    tuple(
        Run(16, scale, time_s, (2, 10, 20), (0.5, 0.9, 1.0), (40.0, 30.0, 20.0), ASSUMED)
        for scale, time_s in ((1, 100.0), (2, 50.0))
    ),
)
TWO = GpuRequest(NODE, (("", 2),))


def alternatives(of: ObservedJob, nodes=NODES, policy: str = "max-jobs", **rules):
    spreading = SpreadRules(specification(policy).policy().alternatives, **rules)
    return Spreader(spreading).choice(of, kinds_of(nodes)).alternatives


@pytest.mark.parametrize(
    ("asked", "of_job", "nodes", "gpus"),
    [
        (TWO, {}, 1, {"": 2}),
        (GpuRequest(NODE, (("a", 1), ("b", 2))), {}, 1, {"a": 1, "b": 2}),
        (GpuRequest(TASK, (("a", 1),)), {"tasks": 4, "cpus": 4, "nodes_max": None}, 1, {"a": 4}),
        (GpuRequest(TASK, (("a", 1),)), {"tasks": 6, "cpus": 6, "nodes_max": None}, 2, {"a": 3}),
        (TWO, {"tasks": 4, "cpus": 4, "nodes_max": None}, 1, {"": 2}),
        (GpuRequest(JOB, (("a", 4),)), {"tasks": 3, "cpus": 3, "nodes_max": None}, 1, {"a": 4}),
        (GpuRequest(TASK, (("a", 1),)), {"tasks": 4, "cpus": 4, "nodes_min": 2, "nodes_max": 2}, 2, {"a": 3}),
    ],
)
def test_the_gpus_of_a_job_are_demanded_of_each_of_its_nodes(asked, of_job, nodes, gpus) -> None:
    there = (*NODES, with_gpus("c4", a=4))
    words = "fixed" if of_job.get("nodes_min") == 2 else ""
    (way,) = alternatives(job(1, words, gpus=asked, **of_job), there)
    assert (way.nodes, way.demand.gpus) == (nodes, gpus_of(gpus))
    assert sum(way.demand.within(each.capacity) for each in there) >= nodes


def test_cores_and_memory_that_go_with_each_gpu_are_demanded() -> None:
    asked = GpuRequest(NODE, (("a", 2),), cpus=4, memory_mb=5000)
    (way,) = alternatives(job(1, gpus=asked, memory_per_cpu_mb=None))
    assert way.demand == Resources(8, 10_000, gpus=gpus_of({"a": 2}))


def test_a_job_keeps_to_one_node_where_only_that_says_how_its_gpus_lie() -> None:
    with pytest.raises(Infeasible, match="--gpus"):
        alternatives(job(1, "fixed", tasks=2, nodes_min=2, nodes_max=2, gpus=GpuRequest(JOB, (("a", 4),))))
    with pytest.raises(Infeasible):
        alternatives(tasks(1, 40, gpus=GpuRequest(JOB, (("a", 4),))))


@pytest.mark.parametrize("asked", [{"": 5}, {"a": 5}, {"b": 3}, {"c": 1}], ids=str)
def test_more_gpus_than_any_node_has_are_slurms_to_refuse(asked) -> None:
    with pytest.raises(Infeasible):
        alternatives(job(1, gpus=GpuRequest(NODE, tuple(asked.items()))))


def test_a_profile_gives_a_job_with_gpus_ways_and_spreads_it_never() -> None:
    nodes = (node("c1"), with_gpus("c2", a=4, ways=20), with_gpus("c3", a=4, ways=20))
    for by in (NODE, JOB):
        hinted = tasks(1, 16, "program=mg", gpus=GpuRequest(by, (("a", 2),)))
        ways = alternatives(hinted, nodes, "combined", programs={"mg": SCALING})
        assert {(way.nodes, way.scale) for way in ways} == {(1, 1)}
        assert all(way.demand.gpus == gpus_of({"a": 2}) for way in ways)
        assert ways[0].demand.ways > 0


def test_what_a_placed_job_will_take_has_its_gpus() -> None:
    placed = pinned(1, "c2", gpus=TWO)
    assert placed_demand(placed, NODES[1:2]).gpus == gpus_of({"": 2})
    changed = pinned(1, "c2", "c3", tasks=2, gpus=GpuRequest(JOB, (("a", 4),)))
    assert placed_demand(changed, NODES[1:]).gpus == gpus_of({"a": 4}), "whatever its owner has made of it since"


def test_free_gpus_are_what_running_and_placed_jobs_leave() -> None:
    nodes = (
        with_gpus("c1", a=4, used={"a": 1}),
        with_gpus("c2", a=2, b=2, used={"a": 1, "b": 2}),
        with_gpus("c3", a=4),
    )
    ending = job(3, state=JobState.RUNNING, is_completing=True, allocated=("c3",), gpus=TWO)
    seen = situation(Observation((pinned(1, "c1", gpus=TWO), ending), nodes)).snapshot
    assert [each.free.gpus for each in seen.nodes] == [
        (("gpu", 1), ("gpu:a", 3)),
        (("gpu", 1), ("gpu:a", 1)),
        (),
    ]


def test_gpus_that_are_used_up_keep_no_other_job_from_the_node() -> None:
    placed = (pinned(1, "c1", gpus=TWO), pinned(2, "c1", gpus=TWO))
    (free,) = (each.free for each in situation(Observation(placed, (with_gpus("c1", a=2),))).snapshot.nodes)
    assert Resources(1, 1000).within(free)


def test_a_running_job_has_its_gpus() -> None:
    running = job(1, state=JobState.RUNNING, allocated=("c2",), gpus=TWO, start_s=int(NOW), occupies=Resources(1, 1000))
    (active,) = situation(Observation((running,), NODES)).snapshot.active
    assert active.demand.gpus == gpus_of({"": 2})
    huge = replace(running, tasks=2**32 - 1, gpus=GpuRequest(TASK, (("", 999_999_999),)))
    (active,) = situation(Observation((huge,), NODES)).snapshot.active
    assert active.demand.gpus == (("gpu", 1 << 24),)
