import pytest
from clusters import alternative, job, node, queue

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.lack import Lack

TWO_MACHINES = (node("A"), node("B"))


def explained(nodes, waiting, job_id, *portfolio, **parameters):
    parameters["portfolio"] = portfolio
    return max_jobs(MatchingParameters(**parameters)).explain(Snapshot(tuple(nodes), tuple(waiting)), job_id)


def test_each_member_says_which_nodes_it_chose_at_which_position_and_who_won():
    waiting = queue((1, 16), (1, 16), *[(1, 4)] * 6)

    answer = explained(TWO_MACHINES, waiting, 2, "best-fit-memory", "worse-fit-memory")

    assert answer.chosen == "worse-fit-memory"
    best, worse = answer.members
    assert (best.nodes, best.position, best.jobs_matched, best.won) == (("A",), 1, 6, False)
    assert (worse.nodes, worse.position, worse.jobs_matched, worse.won) == (("B",), 1, 8, True)
    assert answer.reason == "by worse-fit-memory, which matched 8 jobs (the most of 2 heuristics)"


def test_the_nearest_nodes_come_with_what_was_missing_at_the_jobs_turn():
    waiting = (job(1, 2, 8), job(2, 4, 8), job(3, 4, 30))
    nodes = [node("A"), node("B", free=(1, 4)), node("C", free=(2, 32))]

    (member,) = explained(nodes, waiting, 2, "first-fit", reservations=0).members

    assert member.nodes is None
    (tried,) = member.tried
    assert (tried.nodes_needed, tried.nodes_fitting, tried.fits_if_empty) == (1, 0, True)
    assert tried.nearest == (
        Lack("A", Resources(2, 0)),
        Lack("C", Resources(2, 0)),
        Lack("B", Resources(3, 4096)),
    )


def test_withheld_capacity_in_the_way_is_named_and_so_are_the_nodes_withheld():
    nodes = [node("A", free=(4, 16))]
    waiting = (job(1, 4, 32), job(2, 1, 1))

    (head,) = explained(nodes, waiting, 1, "mix-fit").members
    (blocked,) = explained(nodes, waiting, 2, "mix-fit").members

    assert head.withheld_for_it == ("A",)
    assert head.tried[0].withheld_in_the_way == ()
    assert head.tried[0].nearest == (Lack("A", Resources(0, 16 * 1024)),)
    assert blocked.tried[0].withheld_in_the_way == (1,)


def test_fewer_fitting_nodes_than_needed_are_counted():
    (member,) = explained(TWO_MACHINES, (job(1, 4, 8, nodes=3),), 1, "mix-fit").members

    assert (member.tried[0].nodes_needed, member.tried[0].nodes_fitting) == (3, 2)
    assert not member.tried[0].fits_if_empty


def test_a_job_that_the_cycle_did_not_reach_has_no_position():
    (member,) = explained(TWO_MACHINES, (job(1), job(2)), 2, "mix-fit", queue_depth=1).members

    assert member.position is None
    assert member.nodes is None


def test_the_alternative_taken_is_told():
    wide_or_narrow = job(1, alternatives=(alternative(4, 8, nodes=3), alternative(2, 8)))

    (member,) = explained(TWO_MACHINES, (wide_or_narrow,), 1, "mix-fit").members

    assert member.alternative == 1


def test_a_job_that_is_not_waiting_cannot_be_explained():
    with pytest.raises(BadInput, match="job 9 is not among the 1 waiting jobs"):
        explained(TWO_MACHINES, (job(1),), 9, "mix-fit")


def test_a_node_that_lacks_one_resource_is_nearer_than_one_that_lacks_two():
    nodes = [node("both", free=(3, 31)), node("cores", free=(1, 32))]

    (member,) = explained(nodes, (job(1, 4, 32),), 1, "mix-fit").members

    assert [lack.node for lack in member.tried[0].nearest] == ["cores", "both"]


def test_it_shows_the_best_nodes_with_the_scores_that_decided() -> None:
    nodes = [node("a", 4, 32), node("b", 8, 64), node("c", 6, 16)]

    by_cores, by_memory = explained(nodes, [job(1, 2, 4)], 1, "worse-fit-cores", "best-fit-memory").members

    assert by_cores.best == (("b", -8), ("c", -6), ("a", -4))
    assert [each.node for each in by_memory.best] == ["c", "a", "b"]
    assert by_memory.nodes == ("c",)
