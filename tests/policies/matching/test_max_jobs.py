import pytest
from clusters import job, node, placed, plan, queue

from slurm_sns.model import Node, Resources, Snapshot, gpus_of
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters

TWO_MACHINES = (node("A"), node("B"))
WORSE_FIT_WINS = queue((1, 16), (1, 16), *[(1, 4)] * 6)


def test_the_schedule_that_matches_the_most_jobs_is_dispatched():
    result = plan(TWO_MACHINES, WORSE_FIT_WINS, "best-fit-memory", "worse-fit-memory")

    assert result.report.matched == {"best-fit-memory": 6, "worse-fit-memory": 8}
    assert result.report.chosen == "worse-fit-memory"
    assert len(result.starts) == 8


def test_a_tie_goes_to_the_member_that_comes_first_and_all_that_reach_the_maximum_win():
    result = plan(TWO_MACHINES, WORSE_FIT_WINS, "best-fit-memory", "mix-fit", "worse-fit-memory")

    assert result.report.chosen == "mix-fit"
    assert result.report.winners == ("mix-fit", "worse-fit-memory")


@pytest.mark.parametrize("make", [max_jobs, combined])
def test_where_a_node_has_gpus_the_default_portfolio_begins_with_best_fit_gpus_and_a_named_one_stands(make):
    size = Resources(8, 32768, gpus=gpus_of({"a": 4}))
    plain, gpus = (node("plain"),), (node("plain"), Node("gpus", size, size))
    default, named = make(), make(MatchingParameters(PAPER_PORTFOLIO))

    def members(policy, nodes):
        return tuple(policy.plan(Snapshot(nodes, queue((1, 8)))).report.matched)

    # The same policy, when nodes with GPUs come and go.
    assert members(default, plain) == members(named, gpus) == members(default, plain) == PAPER_PORTFOLIO
    assert members(default, gpus) == ("best-fit-gpus", *PAPER_PORTFOLIO)
    assert members(make(MatchingParameters(PAPER_PORTFOLIO), portfolio=("mix-fit",)), gpus) == ("mix-fit",)
    assert members(make(portfolio=("mix-fit",)), gpus) == ("mix-fit",)


def test_a_jobs_own_heuristic_replaces_the_members_choice_in_every_schedule():
    machines = (node("small", free=(4, 8)), node("large", free=(4, 32)))
    waiting = [job(1, 1, 2, heuristic="worse-fit-memory"), job(2, 1, 2)]

    result = plan(machines, waiting, "best-fit-memory")

    assert placed(result) == {1: "large", 2: "small"}
    assert result.starts[0].reason.startswith("own heuristic worse-fit-memory")


def test_the_pools_default_heuristic_is_used_by_jobs_that_name_none():
    machines = (node("small", free=(4, 8)), node("large", free=(4, 32)))
    waiting = [job(1, 1, 2), job(2, 1, 2, heuristic="best-fit-memory")]

    result = plan(machines, waiting, "best-fit-cores", default_heuristic="worse-fit-memory")

    assert placed(result) == {1: "large", 2: "small"}


def test_every_start_and_every_waiting_job_has_a_reason():
    result = plan(TWO_MACHINES, WORSE_FIT_WINS, "best-fit-memory", "worse-fit-cores")

    assert {start.reason for start in result.starts} == {
        "by worse-fit-cores, which matched 8 jobs (the most of 2 heuristics)"
    }


def test_a_plan_of_nothing_is_empty():
    result = plan([], [])

    assert result.starts == ()
    assert result.waiting == {}
