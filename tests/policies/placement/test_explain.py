import pytest
from clusters import alternative, job, node, queue

from slurm_sns.errors import BadInput
from slurm_sns.model import Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters

TWO_MACHINES = (node("A"), node("B"))


def explained(nodes, waiting, job_id, *portfolio, **parameters):
    parameters["portfolio"] = portfolio
    policy, snapshot = max_jobs(MatchingParameters(**parameters)), Snapshot(tuple(nodes), tuple(waiting))
    return policy.explain(snapshot, policy.plan(snapshot), job_id)


def test_each_member_says_which_nodes_it_chose_at_which_place_and_who_won():
    waiting = queue((1, 16), (1, 16), *[(1, 4)] * 6)

    answer = explained(TWO_MACHINES, waiting, 2, "best-fit-memory", "worse-fit-memory")

    assert answer.summary == ("In that cycle 8 jobs waited; worse-fit-memory matched the most and was dispatched.",)
    best, worse = answer.considered
    assert (best.name, best.outcome) == ("best-fit-memory", "on A")
    assert best.figures == {"jobs matched": 6, "place in queue": 2}
    assert (worse.name, worse.outcome) == ("worse-fit-memory", "on B")
    assert worse.figures == {"jobs matched": 8, "place in queue": 2}
    assert answer.details == ()


def test_the_nearest_nodes_come_with_what_was_missing_at_the_jobs_turn():
    waiting = (job(1, 2, 8), job(2, 4, 8), job(3, 4, 30))
    nodes = [node("A"), node("B", free=(1, 4)), node("C", free=(2, 32))]

    answer = explained(nodes, waiting, 2, "first-fit", reservations=0)

    assert answer.considered[0].outcome == "finds no nodes"
    assert answer.details == (
        "It needs 4 cores and 8192 MiB. Nodes that had this free at its turn: 0; needed: 1.",
        "  nearest: A lacks 2 cores",
        "  nearest: C lacks 2 cores",
        "  nearest: B lacks 3 cores and 4096 MiB",
    )


def test_withheld_capacity_in_the_way_is_named_and_so_are_the_nodes_withheld():
    nodes = [node("A", free=(4, 16))]
    waiting = (job(1, 4, 32), job(2, 1, 1))

    head = explained(nodes, waiting, 1, "mix-fit")
    blocked = explained(nodes, waiting, 2, "mix-fit")

    assert head.considered[0].outcome == "finds no nodes; capacity withheld on A"
    assert head.details[1:] == ("  nearest: A lacks 16384 MiB",)
    assert "  it would fit, but capacity is withheld for job 1" in blocked.details


def test_fewer_fitting_nodes_than_needed_are_counted():
    answer = explained(TWO_MACHINES, (job(1, 4, 8, nodes=3),), 1, "mix-fit")

    assert "Nodes that had this free at its turn: 2; needed: 3." in answer.details[0]
    assert answer.details[-1] == "  the nodes that can be planned on now are too small or too few for it, even empty"


def test_a_job_that_the_cycle_did_not_reach_has_no_place():
    (member,) = explained(TWO_MACHINES, (job(1), job(2)), 2, "mix-fit", queue_depth=1).considered

    assert member.figures["place in queue"] == "not reached"
    assert member.outcome == "finds no nodes"


def test_a_job_is_explained_by_the_alternative_that_was_taken():
    wide_or_narrow = job(1, alternatives=(alternative(4, 8, nodes=3), alternative(2, 8)))

    (member,) = explained(TWO_MACHINES, (wide_or_narrow,), 1, "mix-fit").considered

    assert member.outcome == "on A"


def test_a_heuristic_of_its_own_is_told():
    answer = explained(TWO_MACHINES, (job(1, heuristic="first-fit"),), 1, "mix-fit")

    assert answer.summary[1] == "The job has a heuristic of its own, first-fit: every schedule uses it."


def test_a_job_that_is_not_waiting_cannot_be_explained():
    with pytest.raises(BadInput, match="job 9 is not among the 1 waiting jobs"):
        explained(TWO_MACHINES, (job(1),), 9, "mix-fit")


def test_a_node_that_lacks_one_resource_is_nearer_than_one_that_lacks_two():
    nodes = [node("both", free=(3, 31)), node("cores", free=(1, 32))]

    answer = explained(nodes, (job(1, 4, 32),), 1, "mix-fit")

    assert [line.split()[1] for line in answer.details[1:]] == ["cores", "both"]


def test_it_shows_the_best_nodes_with_the_scores_that_decided() -> None:
    nodes = [node("a", 4, 32), node("b", 8, 64), node("c", 6, 16)]

    by_cores, by_memory = explained(nodes, [job(1, 2, 4)], 1, "worse-fit-cores", "best-fit-memory").considered

    assert by_cores.reason == "best nodes (smallest score): b -8, c -6, a -4"
    assert [each.split()[0] for each in by_memory.reason.partition(": ")[2].split(", ")] == ["c", "a", "b"]
    assert by_memory.outcome == "on c"
