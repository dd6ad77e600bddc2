"""One cycle: queue depth, withheld capacity, several nodes, node sets, alternatives."""

from dataclasses import replace

from clusters import alternative, job, node, placed, plan

from slurm_sns.model import Alternative, Node, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, fits_ever


def test_a_cycle_looks_at_queue_depth_jobs_matched_or_not():
    waiting = [job(1, 64, 1), job(2), job(3)]

    assert placed(plan([node("A")], waiting, "first-fit", queue_depth=2)) == {2: "A"}


def test_an_unmatched_head_keeps_others_off_the_node_with_the_most_free_memory():
    nodes = [node("A", free=(2, 8)), node("B", free=(2, 16))]
    waiting = [job(1, 4, 8), job(2, 1, 12), job(3, 1, 8)]

    assert placed(plan(nodes, waiting, "first-fit", reservations=1)) == {3: "A"}
    assert placed(plan(nodes, waiting, "first-fit", reservations=0)) == {2: "B", 3: "A"}


def test_what_is_left_beside_withheld_capacity_can_be_used():
    nodes = [node("A", cores=8, gb=64, free=(4, 64))]
    waiting = [job(1, 5, 8), job(2, 1, 8)]

    assert placed(plan(nodes, waiting, "first-fit")) == {}  # 4 - 5 cores: the node has left the cycle
    waiting = [job(1, 2, 65 - 8), job(2, 1, 8)]
    assert placed(plan(nodes, waiting, "first-fit")) == {1: "A"}


def test_capacity_is_withheld_only_on_a_node_whose_configured_size_could_hold_the_job():
    nodes = [node("small", cores=2, gb=64), node("large", cores=8, gb=32, free=(2, 8))]
    waiting = [job(1, 4, 8), job(2, 1, 64), job(3, 1, 1)]

    assert placed(plan(nodes, waiting, "best-fit-memory")) == {2: "small"}


def test_a_matched_job_uses_up_its_reserving_position():
    nodes = [node("A", free=(2, 32))]
    waiting = [job(1, 1, 1), job(2, 4, 1), job(3, 1, 1)]

    assert placed(plan(nodes, waiting, "first-fit", reservations=1)) == {1: "A", 3: "A"}
    assert placed(plan(nodes, waiting, "first-fit", reservations=2)) == {1: "A"}


def test_a_node_without_room_for_one_core_and_one_gb_takes_no_part():
    tiny = job(1, alternatives=(Alternative(1, Resources(1, 100)),))

    assert placed(plan([node("A", free=(4, 0.5)), node("B", free=(4, 1))], [tiny], "first-fit")) == {1: "B"}


def test_a_job_on_n_nodes_gets_n_distinct_nodes_the_best_ones_or_none():
    nodes = [node("A", free=(4, 32)), node("B", free=(4, 8)), node("C", free=(4, 16)), node("D", free=(1, 4))]

    assert placed(plan(nodes, [job(1, 2, 4, nodes=2)], "best-fit-memory")) == {1: "B+C"}
    assert placed(plan(nodes, [job(1, 2, 4, nodes=3)], "best-fit-memory")) == {1: "A+B+C"}
    assert placed(plan(nodes, [job(1, 2, 4, nodes=4)], "best-fit-memory")) == {}


def test_an_unmatched_job_on_n_nodes_withholds_on_n_nodes_or_on_all_there_are():
    nodes = [node("A"), node("B"), node("C", free=(3, 32)), node("D", free=(0, 32))]
    wide = job(1, 4, 32, nodes=3)

    assert placed(plan(nodes, [wide, job(2)], "first-fit")) == {}
    assert placed(plan([*nodes, node("E", cores=2)], [wide, job(2)], "first-fit")) == {2: "E"}


def test_only_allowed_nodes_are_used():
    waiting = [job(1, allowed=frozenset({"B", "gone"})), job(2, allowed=frozenset())]

    assert placed(plan([node("A"), node("B")], waiting, "first-fit")) == {1: "B"}


def test_a_failure_on_some_nodes_says_nothing_of_other_nodes():
    waiting = [job(1, 4, 4, allowed=frozenset({"A"})), job(2, 4, 4)]

    assert placed(plan([node("A", free=(3, 32)), node("B")], waiting, "first-fit", reservations=0)) == {2: "B"}


def test_the_first_alternative_that_fits_is_taken():
    choosy = job(1, alternatives=(alternative(8, 8), alternative(2, 8, nodes=2), alternative(4, 8)))
    result = plan([node("A"), node("B")], [choosy], "first-fit")

    assert result.starts[0].alternative == choosy.alternatives[1]
    assert result.starts[0].nodes == ("A", "B")


def test_an_exclusive_alternative_wants_empty_nodes_and_takes_them_whole():
    alone = job(1, alternatives=(alternative(1, 1, exclusive=True),))
    nodes = [node("A", free=(3, 32)), node("B")]

    assert placed(plan(nodes, [alone, job(2, 2, 2), job(3, 2, 2)], "first-fit")) == {1: "B", 2: "A"}


def test_ways_and_bandwidth_must_fit_too_when_they_are_demanded():
    nodes = [
        Node("A", Resources(8, 8192, 11, 100), Resources(8, 8192, 3, 100)),
        Node("B", Resources(8, 8192, 11, 100), Resources(8, 8192, 11, 40)),
        Node("C", Resources(8, 8192, 11, 100), Resources(8, 8192, 4, 50)),
    ]
    wants = Alternative(nodes=1, demand=Resources(1, 1024, 4, 50))

    assert placed(plan(nodes, [job(1, alternatives=(wants,)), job(2)], "first-fit")) == {1: "C", 2: "A"}


def test_over_aged_jobs_come_first_oldest_first_and_always_withhold():
    nodes = [node("A", free=(2, 16)), node("B", free=(2, 16))]
    old = [job(8, 4, 8, submit_s=5, over_aged=True), job(9, 4, 8, submit_s=3, over_aged=True)]

    result = plan(nodes, [job(1), *old], "first-fit", reservations=0)

    assert placed(result) == {}
    assert result.waiting[9].endswith("withheld for it on A")
    assert result.waiting[8].endswith("withheld for it on B")


def test_a_job_that_nothing_could_ever_hold_is_known_before_it_waits():
    node_arrays = NodeArrays.of([node("A"), node("B", cores=8)])
    large = Alternative(1, Resources(8, 32 * 1024))

    assert fits_ever(node_arrays, large)
    assert not fits_ever(node_arrays, replace(large, nodes=2))
    assert not fits_ever(node_arrays, large, frozenset({"A"}))
    assert not fits_ever(node_arrays, large, frozenset({"gone"}))


def test_a_node_left_without_room_for_the_smallest_job_leaves_the_cycle():
    tiny = job(2, alternatives=(Alternative(1, Resources(1, 512)),))

    assert placed(plan([node("A", gb=8), node("B")], [job(1, 1, 7.25), tiny], "first-fit")) == {1: "A", 2: "B"}


def test_nothing_is_withheld_on_a_node_that_has_left_the_cycle():
    nodes = [node("A", gb=64), node("B", free=(3, 32)), node("C", cores=1, gb=1)]
    waiting = [job(1, 4, 1), job(2, 4, 8), job(3, 1, 1)]

    # Job 1 leaves 63 GB but no core on A: for job 2 capacity is withheld on B, where job 3 would have fitted first.
    assert placed(plan(nodes, waiting, "first-fit", reservations=2)) == {1: "A", 3: "C"}


def test_a_failure_on_three_nodes_says_nothing_of_two():
    waiting = [job(1, 4, 4, nodes=3), job(2, 4, 4, nodes=2)]

    assert placed(plan([node("A"), node("B")], waiting, "first-fit", reservations=0)) == {2: "A+B"}


def test_among_many_equal_nodes_a_job_on_several_gets_the_first():
    nodes = [node(f"n{at:02}", free=(4, 8 + 8 * (at % 3 == 1))) for at in range(60)]

    assert placed(plan(nodes, [job(1, 1, 1, nodes=3)], "worse-fit-memory")) == {1: "n01+n04+n07"}
    assert placed(plan(nodes, [job(1, 1, 1, nodes=3)], "best-fit-memory")) == {1: "n00+n02+n03"}
