"""What jobs ask of each node, as pyslurm was seen to show them (Slurm 26.05.5, nodes of 28 cores)."""

import pytest
from live import FOREIGN, geometry, job, node, pinned

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.snapshot.geometry import is_fixed, placed_demand

NODES = tuple(node(f"c{number}") for number in range(1, 5))
FIXED = "fixed"


def shape(of: Alternative) -> tuple[int, int, int | None]:
    return of.nodes, of.demand.cores, of.tasks_per_node


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"tasks": 16, "nodes_max": None}, (1, 16, 16)),
        ({"tasks": 28, "nodes_max": None}, (1, 28, 28)),
        ({"tasks": 40, "nodes_min": 2, "nodes_max": None}, (2, 20, 20)),
        ({"tasks": 57, "nodes_min": 3, "nodes_max": None}, (3, 19, 19)),
        ({"tasks": 112, "nodes_min": 4, "nodes_max": None}, (4, 28, 28)),
        ({"tasks": 1}, (1, 1, None)),
        ({"tasks": 16, "nodes_min": 2, "nodes_max": 2, "words": FIXED}, (2, 15, None)),
        ({"tasks": 2, "nodes_min": 2, "nodes_max": 2, "words": FIXED}, (2, 1, None)),
        ({"tasks": 4, "nodes_min": 4, "nodes_max": 4, "words": FIXED}, (4, 1, None)),
        ({"tasks": 40, "nodes_min": 2, "nodes_max": 2, "words": FIXED}, (2, 28, None)),
        ({"tasks": 16, "nodes_min": 4, "nodes_max": 4, "tasks_per_node": 4, "words": FIXED}, (4, 4, None)),
        ({"tasks": 9, "nodes_min": 3, "nodes_max": 3, "tasks_per_node": 4, "words": FIXED}, (3, 4, None)),
        ({"tasks": 6, "nodes_min": 2, "nodes_max": 2, "tasks_per_node": 4, "words": FIXED}, (2, 4, None)),
        ({"tasks": 4, "nodes_min": 1, "nodes_max": None, "words": FIXED}, (1, 4, None)),
        ({"tasks": 4, "nodes_min": 2, "nodes_max": None, "words": FIXED}, (2, 3, None)),
    ],
    ids=[
        "-n16",
        "-n28",
        "-n40",
        "-n57",
        "-n112",
        "-n1",
        "-N2 -n16",
        "-N2",
        "-N4 -n4",
        "-N2 -n40",
        "--ntasks-per-node=4 -n16",
        "--ntasks-per-node=4 -n9",
        "-N2 --ntasks-per-node=4 -n6",
        "-n4 -m cyclic",
        "-n4 -N2-4",
    ],
)
def test_a_job_that_says_only_its_tasks_is_spread_evenly_and_any_other_keeps_its_geometry(asked, expected) -> None:
    assert shape(geometry(job(1, **asked), NODES)) == expected


@pytest.mark.parametrize("asked", [{"words": FIXED}, FOREIGN])
def test_how_many_nodes_a_range_gets_is_slurms_choice(asked) -> None:
    with pytest.raises(Infeasible, match="asks for 1 to 3 nodes"):
        geometry(job(1, nodes_min=1, nodes_max=3, **asked), NODES)


def test_without_our_record_slurms_alone_says_who_chose_the_geometry() -> None:
    assert shape(geometry(job(1, tasks=16, nodes_max=None, **FOREIGN), NODES)) == (1, 16, 16)
    assert shape(geometry(job(1, tasks=16, nodes_min=2, nodes_max=2, **FOREIGN), NODES)) == (2, 15, None)
    of_its_own = job(1, tasks=16, nodes_min=4, nodes_max=4, tasks_per_node=4, **FOREIGN)
    assert shape(geometry(of_its_own, NODES)) == (4, 4, None)


def test_a_job_that_we_spread_before_is_spread_anew() -> None:
    """Slurm shows our tasks per node from then on."""
    before = job(1, tasks=40, nodes_min=2, nodes_max=2, tasks_per_node=20)
    larger = (node("c1", 64, 512_000), node("c2"))
    assert shape(geometry(before, larger)) == (1, 40, 40)


@pytest.mark.parametrize(
    ("shown", "way"),
    [
        ({"tasks": 8, "nodes_min": 2, "nodes_max": 2}, (2, 7, None)),
        ({"tasks": 3, "nodes_min": 1, "nodes_max": None}, (1, 3, 3)),
        ({"tasks": 40, "nodes_min": 3, "nodes_max": 3, "tasks_per_node": 20}, (3, 20, None)),
        ({"tasks": 10, "nodes_min": 2, "nodes_max": 2, "tasks_per_node": 20}, (2, 10, None)),
        ({"tasks": 2, "cpus_per_task": 28, "nodes_min": 2, "nodes_max": 2}, (2, 28, None)),  # Slurm's own estimate
    ],
)
def test_a_number_of_nodes_that_its_owner_gave_a_held_job_is_kept(shown, way) -> None:
    assert shape(geometry(job(1, **shown), NODES)) == way
    assert is_fixed(job(1, **shown)) is (way[2] is None)


def test_a_range_of_nodes_that_its_owner_gave_a_held_job_is_slurms_choice() -> None:
    with pytest.raises(Infeasible, match="asks for 2 to 3 nodes"):
        geometry(job(1, tasks=8, nodes_min=2, nodes_max=3), NODES)


@pytest.mark.parametrize("asked", [{}, {"nodes_max": 2}, {"nodes_max": 2, "tasks_per_node": 1, "words": FIXED}])
def test_a_job_with_fewer_tasks_than_nodes_is_slurms_choice(asked) -> None:
    with pytest.raises(Infeasible, match="asks for 2 nodes and has fewer tasks, 1"):
        geometry(job(1, tasks=1, nodes_min=2, **{"nodes_max": None, **asked}), NODES)


def test_no_node_stays_empty() -> None:
    nodes = tuple(node(f"c{number}", 3) for number in range(1, 5))
    assert shape(geometry(job(1, tasks=9, nodes_max=None), nodes)) == (3, 3, 3)
    nodes = tuple(node(f"c{number}", 4) for number in range(1, 6))
    assert shape(geometry(job(1, tasks=17, nodes_max=None), nodes)) == (5, 4, 4)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ({"memory_per_cpu_mb": 4500}, Resources(8, 36_000)),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 1000}, Resources(8, 1000)),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": None}, Resources(8, 128_000)),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 0}, Resources(8, 128_000)),
    ],
    ids=["per CPU", "per node", "none", "all of it (--mem=0)"],
)
def test_memory_goes_with_the_cpus_or_with_the_node_or_is_all_of_it(memory, expected) -> None:
    assert geometry(job(1, tasks=4, cpus_per_task=2, nodes_max=None, **memory), NODES).demand == expected


def test_memory_per_node_stays_the_same_where_a_job_is_spread() -> None:
    spread = geometry(job(1, tasks=40, nodes_max=None, memory_per_cpu_mb=None, memory_per_node_mb=1000), NODES)
    assert spread == Alternative(2, Resources(20, 1000), tasks_per_node=20)


def test_memory_can_decide_the_number_of_nodes() -> None:
    assert shape(geometry(job(1, tasks=16, nodes_max=None, memory_per_cpu_mb=16_000), NODES)) == (2, 8, 8)


def test_slurm_gives_whole_cores_and_counts_the_memory_of_all_their_threads() -> None:
    smt = (node("c1", threads_per_core=2),)
    assert geometry(job(1, tasks=3, nodes_max=None), smt).demand == Resources(2, 4000)
    assert geometry(job(1, tasks=3, cpus_per_task=2, nodes_max=None), smt).demand == Resources(3, 6000)


@pytest.mark.parametrize(
    "asked",
    [
        {"tasks": 113, "nodes_max": None},
        {"tasks": 1, "cpus_per_task": 29},
        {"tasks": 1, "memory_per_cpu_mb": None, "memory_per_node_mb": 131_072},
        {"tasks": 5, "nodes_min": 5, "nodes_max": 5, "words": FIXED},
        {"tasks": 58, "nodes_min": 2, "nodes_max": 2, "tasks_per_node": 29, "words": FIXED},
    ],
)
def test_what_no_nodes_could_ever_hold_is_infeasible_and_the_message_says_how_large_they_are(asked) -> None:
    with pytest.raises(Infeasible, match="fit on no nodes of partition main: 4 nodes, the largest with 28 cores"):
        geometry(job(1, **asked), NODES)


def test_a_partition_without_nodes_holds_nothing() -> None:
    with pytest.raises(Infeasible, match="no node in partition main"):
        geometry(job(1), ())


def test_a_placed_job_takes_on_each_node_what_its_tasks_there_need() -> None:
    spread = pinned(1, "c1", "c2", tasks=40, nodes_max=None, tasks_per_node=20)
    assert placed_demand(spread, NODES[:2]) == Resources(20, 20_000)
    split_by_slurm = pinned(1, "c1", "c2", tasks=16, nodes_min=2, nodes_max=2, words=FIXED)
    assert placed_demand(split_by_slurm, NODES[:2]) == Resources(15, 15_000)
