"""Where suspended jobs would start now: only what is really free, and their owners' own requests."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from live import ENFORCE, look, node, running, situation

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.restarts.candidates import as_waiting
from slurm_sns.scheduler.restarts.places import find_places
from slurm_sns.scheduler.snapshot.spreading import SpreadRules
from slurm_sns.submit.record import MemoryRequest

SETTINGS = replace(ENFORCE, partitions=frozenset({"main", "small"}))
POLICY = max_jobs()


def suspended(number: int, cores: int, at: str, **fields) -> ObservedJob:
    asked = {"tasks": cores, "cpus": cores, "memory_per_cpu_mb": 100, "occupies": Resources(cores, 100 * cores)}
    return running(number, at, **{"state": JobState.SUSPENDED, **asked, **fields})


def waiting(number: int, cores: int) -> ObservedJob:
    return replace(
        suspended(number, cores, "c1"),
        state=JobState.PENDING,
        allocated=(),
        pinned_to=(),
        occupies=Resources(0, 0),
        admin_comment=f"sns:2 g={suspended(number, cores, 'c1').record.gate_s}",
        begin_s=suspended(number, cores, "c1").record.gate_s,
    )


def places(nodes, jobs, queue=(), partitions=("main",)):
    seen = situation(look(*jobs, *queue, nodes=nodes), settings=SETTINGS)
    plan = POLICY.plan(seen.snapshot)
    asked = [(job, partitions) for job in jobs]
    rules = {"settings": SETTINGS, "spreading": SpreadRules(POLICY.alternatives), "plan_again": POLICY.plan}
    return find_places(asked, seen, plan, **rules), plan


@given(
    free=st.lists(st.integers(0, 8), min_size=2, max_size=5),
    jobs=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 4)), min_size=1, max_size=5),
    queue=st.lists(st.integers(1, 8), max_size=4),
)
def test_no_place_is_on_a_node_of_the_job_or_takes_more_than_this_cycle_leaves(free, jobs, queue):
    names = [f"c{at + 1}" for at in range(len(free))]
    nodes = [node(name, 8, 8000, taken=(8 - left, 0)) for name, left in zip(names, free, strict=True)]
    held = [suspended(at + 1, cores, names[where % len(names)]) for at, (cores, where) in enumerate(jobs)]
    found, plan = places(nodes, held, [waiting(50 + at, cores) for at, cores in enumerate(queue)])
    taken: Counter[str] = Counter()
    for start in plan.starts:
        for name in start.nodes:
            taken[name] += start.alternative.demand.cores
    for job_id, place in found.items():
        assert set(place.nodes).isdisjoint(held[job_id - 1].allocated)
        for name in place.nodes:
            taken[name] += place.demand.cores
    assert all(taken[name] <= left for name, left in zip(names, free, strict=True))


def test_a_place_may_be_in_another_partition_of_the_group_but_never_in_both_at_once():
    nodes = [node("c1", 8, 8000, taken=(8, 0)), node("c2", 8, 8000, taken=(4, 0)), node("s1", 8, 8000)]
    (of_one,) = places(nodes, [suspended(1, 8, "c1")], partitions=("main", "small"))[0].values()
    assert (of_one.partition, of_one.nodes) == ("small", ("s1",))
    assert places(nodes, [suspended(1, 8, "c1")])[0] == {}


def test_it_is_placed_by_its_owners_own_request():
    noted = {"tasks_per_node": 0, "given_tasks_per_node": 4, "own_memory": MemoryRequest(2000, is_by_cpu=True)}
    job = suspended(1, 8, "c1", noted={**noted, "given_memory_mb": 9000}, tasks_per_node=4, min_cpus_per_node=4)
    asked = as_waiting(replace(job, memory_per_cpu_mb=None, memory_per_node_mb=9000), ("main",))
    assert (asked.tasks_per_node, asked.min_cpus_per_node) == (None, 1)
    assert (asked.memory_per_cpu_mb, asked.memory_per_node_mb) == (2000, None)
    assert (asked.state, asked.pinned_to, asked.allocated) == (JobState.PENDING, (), ())


def test_jobs_that_wait_come_first():
    nodes = [node("c1", 8, 8000, taken=(8, 0)), node("c2", 8, 8000)]
    found, plan = places(nodes, [suspended(1, 8, "c1")], [waiting(50, 4)])
    assert [start.nodes for start in plan.starts] == [("c2",)]
    assert found == {}
    (place,) = places(nodes, [suspended(1, 4, "c1")], [waiting(50, 4)])[0].values()
    assert place.nodes == ("c2",)
