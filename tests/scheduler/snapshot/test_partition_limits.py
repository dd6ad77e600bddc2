"""No job is placed in a partition that would not let it start, and explain says which limit it is."""

from dataclasses import replace

import pytest
from live import job, look, node, planned, situation, tasks

from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.observation import ObservedPartition
from slurm_sns.scheduler.snapshot.geometry import alike

MAIN, SMALL = ObservedPartition("main"), ObservedPartition("small")
MIXED = (node("c1"), node("c2"), node("s1", 4, 32_768))


def seen(of, *partitions: ObservedPartition, **fields):
    return situation(look(of, nodes=MIXED, partitions=partitions, **fields))


@pytest.mark.parametrize("state", ["DOWN", "INACTIVE"])
def test_in_a_partition_that_starts_nothing_a_job_waits(state: str) -> None:
    waits = seen(job(1), replace(MAIN, state=state))
    assert (planned(waits), waits.blocked, waits.follow_ups) == ([], {1: f"partition main is {state.lower()}"}, ())


def test_a_partition_that_drains_starts_the_jobs_that_it_has() -> None:
    assert planned(seen(job(1), replace(MAIN, state="DRAIN"))) == [1]


def test_a_job_of_two_partitions_goes_to_the_one_that_is_open() -> None:
    both = tasks(1, 4, partitions=("main", "small"))
    assert seen(both, MAIN, SMALL).snapshot.waiting[0].allowed == {"c1", "c2", "s1"}
    assert seen(both, replace(MAIN, state="DOWN"), SMALL).snapshot.waiting[0].allowed == {"s1"}


def test_a_job_that_fits_only_in_the_closed_one_of_its_partitions_waits_and_is_not_given_away() -> None:
    waits = seen(job(1, cpus_per_task=20, partitions=("main", "small")), replace(MAIN, state="DOWN"), SMALL)
    assert (planned(waits), waits.follow_ups) == ([], ())
    assert waits.blocked[1].startswith("partition main is down; 1 tasks of 20 CPUs fit on no nodes of partition small")


@pytest.mark.parametrize(
    ("walltime_s", "why"),
    [
        (3600, ""),
        (3660, "partition main allows 60 minutes, the job asks for 61"),
        (None, "partition main allows 60 minutes, the job has no time limit"),
    ],
)
def test_a_job_longer_than_its_partition_allows_waits(walltime_s: int | None, why: str) -> None:
    waits = seen(job(1, walltime_s=walltime_s), replace(MAIN, walltime_s=3600))
    assert waits.blocked == ({1: why} if why else {})


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"nodes_max": 2}, ""),
        ({"nodes_max": 1}, "partition main gives 1 to 1 nodes, the job needs 2"),
        ({"nodes_min": 3}, "partition main gives 3 nodes or more, the job needs 2"),
    ],
)
def test_a_job_of_another_number_of_nodes_than_its_partition_gives_waits(limits, why: str) -> None:
    two = job(1, words="fixed", tasks=2, nodes_min=2, nodes_max=2)
    assert seen(two, replace(MAIN, **limits)).blocked == ({1: why} if why else {})


def test_a_job_of_any_number_of_nodes_waits_where_a_partition_gives_only_so_many_and_says_what_to_do() -> None:
    """Slurm starts no job that says more nodes than its partition gives, however few it would take."""
    free = tasks(1, 4, has_open_nodes=True)
    assert planned(seen(free, MAIN)) == [1]
    waits = seen(free, replace(MAIN, nodes_max=2))
    assert (planned(waits), waits.follow_ups) == ([], ())
    assert waits.blocked[1].endswith(
        "gives at most 2 nodes, and the job says any number; valid: scontrol update JobId=JOBID NumNodes=1-2"
    )
    assert planned(seen(tasks(1, 4), replace(MAIN, nodes_max=2))) == [1]


@pytest.mark.parametrize(
    ("flag", "limits"),
    [
        ("PartitionTimeLimit", {"walltime_s": 60}),
        ("PartitionMaxNodes", {"nodes_max": 1}),
        ("PartitionMinNodes", {"nodes_min": 3}),
    ],
)
def test_a_qos_can_free_its_jobs_of_a_limit(flag: str, limits) -> None:
    two = job(1, words="fixed", tasks=2, nodes_min=2, nodes_max=2, qos="free")
    assert planned(seen(two, replace(MAIN, **limits), qos_freedoms=(("free", frozenset({flag})),))) == [1]
    assert planned(seen(two, replace(MAIN, **limits), qos_freedoms=(("other", frozenset({flag})),))) == []


# --- never, or later


@pytest.mark.parametrize(
    ("changes", "main", "is_never"),
    [
        ({"walltime_s": 3660}, {"walltime_s": 3600}, True),
        ({"walltime_s": 3660, "time_min_s": 60}, {"walltime_s": 3600}, False),
        ({"walltime_s": None}, {"walltime_s": 3600}, False),
        ({"walltime_s": 3660}, {"walltime_s": 3600, "state": "DOWN"}, False),
        ({"tasks": 8, "nodes_min": 8, "nodes_max": 8, "partitions": ("main",)}, {}, True),
        ({"tasks": 2, "nodes_min": 2, "nodes_max": 2}, {"nodes_max": 1}, True),
        ({"tasks": 2, "nodes_max": None}, {"nodes_min": 2}, False),
        ({"memory_per_cpu_mb": 200_000}, {}, True),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 200_000}, {}, True),
        ({"memory_per_cpu_mb": 200_000, "partitions": ("main", "small")}, {}, True),
        ({"memory_per_cpu_mb": 200_000, "partitions": ("main", "plain")}, {}, False),
        ({"tasks": 60, "nodes_max": None}, {}, True),
        ({"tasks": 1, "cpus": 60}, {}, True),
        ({"tasks": 1}, {"state": "DOWN"}, False),
    ],
)
def test_a_job_never_starts_only_if_nothing_but_a_change_of_the_job_or_the_partition_helps(
    changes, main, is_never: bool
) -> None:
    told = seen(job(1, **changes), replace(MAIN, **main), SMALL)
    assert (1 in told.never) == is_never
    assert not is_never or told.never[1] == told.blocked[1]


def test_a_job_that_slurm_alone_could_split_in_uneven_parts_is_left_to_it_and_may_start() -> None:
    uneven = (node("c1", 28), node("c2", 4))
    told = situation(look(tasks(1, 32), nodes=uneven, partitions=(MAIN,)))
    assert told.blocked[1].startswith("32 tasks of 1 CPUs fit on no nodes")
    assert not told.never
    assert situation(look(tasks(1, 33), nodes=uneven, partitions=(MAIN,))).never


def test_slurm_may_give_larger_nodes_the_feature_that_a_job_asks_for_so_it_may_start() -> None:
    nodes = (node("c1", features=frozenset({"big"})), node("c2", memory_mb=256_000))
    asks = job(1, memory_per_cpu_mb=200_000, constraint="big")
    told = situation(look(asks, nodes=nodes, partitions=(MAIN,)))
    assert told.blocked[1].startswith("1 tasks of 1 CPUs fit on no nodes")
    assert not told.never


# --- nodes of different memory


def sized(name: str, memory_mb: int, *, taken: int = 0):
    return node(name, 28, memory_mb, taken=(taken, 0))


def test_a_job_alone_on_two_nodes_gets_two_of_the_same_memory() -> None:
    """One figure of memory holds for all its nodes: on a larger one another job would fit beside it."""
    nodes = (sized("c1", 64_000), sized("c2", 128_000), sized("c3", 128_000))
    alone = job(1, words="exclusive fixed", tasks=2, nodes_min=2, nodes_max=2)
    single = replace(alone, tasks=1, nodes_min=1, nodes_max=1)
    assert situation(look(alone, nodes=nodes)).snapshot.waiting[0].allowed == {"c2", "c3"}
    assert situation(look(single, nodes=nodes)).snapshot.waiting[0].allowed == {"c1", "c2", "c3"}


def test_among_groups_of_the_same_size_the_one_with_more_empty_nodes_is_taken() -> None:
    busy = [sized("a1", 64_000, taken=1), sized("a2", 64_000), sized("b1", 128_000), sized("b2", 128_000)]
    small = (Alternative(1, Resources(1, 1000)),)
    assert alike(busy, small) == {"b1", "b2"}
    assert alike([each for each in busy if each.name != "b1"], small) == {"a1", "a2"}
    assert alike([], small) == frozenset()


def test_a_group_that_could_not_hold_the_job_is_not_taken() -> None:
    nodes = [*(sized(name, 64_000) for name in ("a1", "a2", "a3")), sized("b1", 128_000), sized("b2", 128_000)]
    assert alike(nodes, (Alternative(2, Resources(1, 100_000)),)) == {"b1", "b2"}
    assert alike(nodes, (Alternative(3, Resources(1, 100_000)),)) == frozenset()


def test_a_job_alone_that_no_nodes_of_one_memory_could_hold_is_left_to_slurm() -> None:
    nodes = (sized("c1", 64_000), sized("c2", 128_000))
    alone = job(1, words="exclusive fixed", tasks=2, nodes_min=2, nodes_max=2)
    ((order, why),) = situation(look(alone, nodes=nodes)).follow_ups
    assert (order.kind, "with the same memory" in why) == ("free", True)
