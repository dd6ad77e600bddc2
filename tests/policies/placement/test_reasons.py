from clusters import alternative, job, node, plan

from slurm_sns.model import Alternative, Node, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.reasons import MOST_NEAREST


def why(nodes, waiting, **parameters):
    parameters.setdefault("reservations", 0)
    return dict(plan(nodes, waiting, "first-fit", **parameters).waiting)


def test_a_job_without_room_is_told_the_nearest_node_and_what_it_lacks():
    nodes = [node("c1", 16, 64, free=(2, 1)), node("c2", 16, 64, free=(1, 64)), node("c3", 16, 64, free=(12, 64))]

    assert why(nodes, [job(1, 16, 62.5)]) == {
        1: "no allowed node has 16 cores and 64000 MiB free; nearest: c3 lacks 4 cores"
    }


def test_a_job_behind_the_queue_depth_is_told_so():
    nodes = [node("c1", 2, 2)]

    assert why(nodes, [job(1), job(2, 2, 1), job(3)], queue_depth=2) == {
        2: "no allowed node has 2 cores and 1024 MiB free; nearest: c1 lacks 1 core",
        3: "behind the first 2 jobs of the queue (queue_depth)",
    }


def test_when_no_node_has_room_left_every_job_is_told_what_the_nodes_lack():
    nodes = [node("c1", 1, 1)]

    lack = "no allowed node has 1 core and 1024 MiB free; nearest: c1 lacks 1 core and 1024 MiB"
    assert why(nodes, [job(1), job(2), job(3)], queue_depth=2) == {2: lack, 3: lack}


def test_a_node_lacks_no_more_than_a_job_demands_even_where_more_is_withheld_than_is_left():
    nodes = [node("c1", 16, 16, free=(8, 1))]

    assert why(nodes, [job(1, 16, 1), job(2, 4, 8)], reservations=1)[2] == (
        "no allowed node has 4 cores and 8192 MiB free; nearest: c1 lacks 4 cores and 8192 MiB"
    )


def test_jobs_of_many_different_sizes_are_told_the_nearest_node_up_to_a_number_of_sizes_and_the_others_when_asked():
    nodes = [node("c1", 4, 2 * MOST_NEAREST, free=(0, 32))]
    waiting = [job(size, 1, size) for size in range(1, MOST_NEAREST + 3)]

    reasons = why(nodes, waiting)
    told = [size for size, reason in reasons.items() if "nearest: c1 lacks 1 core" in reason]
    assert told == [*range(1, MOST_NEAREST + 1)]
    assert reasons[MOST_NEAREST + 1] == f"no allowed node has 1 core and {1024 * (MOST_NEAREST + 1)} MiB free"
    policy, snapshot = max_jobs(MatchingParameters(reservations=0)), Snapshot(tuple(nodes), tuple(waiting))
    explained = policy.explain(snapshot, policy.plan(snapshot), MOST_NEAREST + 1)
    assert any("nearest: c1 lacks 1 core" in each for each in explained.details)


def test_a_job_on_several_nodes_is_told_how_many_fit():
    nodes = [node("c1"), node("c2"), node("c3", free=(3, 32))]

    assert why(nodes, [job(1, 4, 8, nodes=3)]) == {1: "needs 3 nodes with 4 cores and 8192 MiB each; nodes that fit: 2"}


def test_capacity_withheld_for_another_job_is_named():
    nodes = [node("c1", free=(4, 16))]

    assert why(nodes, [job(1, 4, 32), job(2, 1, 1)], reservations=1) == {
        1: "finds no place yet; capacity is withheld for it on c1",
        2: "would fit, but capacity is withheld for job 1",
    }


def test_a_job_larger_than_every_node_here_now_is_told_so():
    assert why([node("c1")], [job(1, 64, 8)]) == {
        1: "needs 64 cores and 8192 MiB; of the nodes that can be planned on now 0 are large enough"
    }


def test_a_job_that_wants_empty_nodes_is_told_which_is_not_empty():
    waiting = [
        job(1, alternatives=(alternative(1, 1, exclusive=True),)),
        job(2, alternatives=(alternative(1, 1, 2, exclusive=True),)),
    ]

    assert why([node("c1", free=(3, 32)), node("c2", free=(3, 32))], waiting) == {
        1: "no allowed node is empty and has 1 core and 1024 MiB; nearest: c1 is not empty",
        2: "needs 2 empty nodes with 1 core and 1024 MiB each; nodes that fit: 0",
    }


def test_a_job_below_the_smallest_job_waits_for_a_node_with_room_for_that():
    assert why([node("c1", free=(4, 0.75))], [job(1, 1, 0.5)]) == {
        1: "no allowed node has 1 core and 512 MiB free; nearest: c1 has no room for even 1 core and 1024 MiB"
    }


def test_ways_and_bandwidth_that_are_missing_are_named():
    full = Node("c1", Resources(8, 8192, 11, 100), Resources(8, 8192, 2, 30))
    wants = Alternative(nodes=1, demand=Resources(1, 1024, 4, 50))

    (reason,) = why([full], [job(1, alternatives=(wants,))]).values()

    assert reason.endswith("nearest: c1 lacks 2 ways and 20 GB/s of bandwidth")
