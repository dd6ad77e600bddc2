"""What we would start on a cluster of Slurm's alone, and what Slurm does then: look after look."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import BOB, ENFORCE, FOREIGN, NOW, comment, job, look, node

from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.advice import AdviceLook, AdviceOutcome, AdviceSummary, Adviser, Comparison
from slurm_sns.scheduler.observation import JobState, ObservedJob


def waiting(identity: int, cores: int = 28, **fields) -> ObservedJob:
    return job(identity, **{**FOREIGN, "tasks": cores, "cpus": cores, "reason": "Resources", **fields})


def started(identity: int, at_s: float, *nodes: str, **fields) -> ObservedJob:
    shown = {"state": JobState.RUNNING, "start_s": int(at_s), "allocated": nodes, "reason": "", **fields}
    return waiting(identity, **shown)


def one_node(taken: bool = False):
    return (node("c1", taken=(28, 28_000) if taken else (0, 0)),)


class Looks:
    """An adviser that looks at one cluster, at moments after `NOW`."""

    def __init__(self) -> None:
        self.adviser = Adviser(max_jobs(MatchingParameters()), ENFORCE)
        self.summary = AdviceSummary()

    def at(self, seconds: float, *jobs: ObservedJob, nodes=None) -> AdviceLook:
        seen = self.adviser.look(look(*jobs, nodes=one_node() if nodes is None else nodes), NOW + seconds)
        self.summary.add(seen)
        return seen


def advised(of: AdviceLook) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.label, each.nodes) for each in of.advices]


def test_a_job_is_advised_on_the_nodes_on_which_it_fits_now_and_the_others_wait() -> None:
    seen = Looks().at(0, waiting(1), waiting(2))
    assert advised(seen) == [("1", ("c1",))]
    assert (seen.pending, seen.managed, seen.outcomes, seen.waiting) == (2, 2, (), ())
    assert seen.advices[0].heuristic != ""


def test_jobs_of_slurms_own_are_none_of_ours() -> None:
    others = (
        waiting(1, is_batch=False),
        waiting(2, asks_for=("gres",)),
        waiting(3, partitions=("elsewhere",)),
        waiting(4, priority=0),
        waiting(5, admin_comment=comment()),
    )
    seen = Looks().at(0, *others)
    assert (advised(seen), seen.pending, seen.managed) == ([], 5, 0)
    assert sum(seen.left_to_slurm.values()) == 5
    assert seen.left_to_slurm["partition elsewhere is not managed"] == 1
    assert seen.left_to_slurm["it asks for gres (--gres, --gpus)"] == 1


def test_nodes_that_slurm_keeps_for_a_candidate_are_planned_on_and_those_for_a_job_of_its_own_are_not() -> None:
    kept = [node("c1", is_planned=True), node("c2", is_planned=True), node("c3", taken=(28, 28_000))]
    large, small = waiting(1, 84, nodes_min=3, nodes_max=3, tasks_per_node=28), waiting(2, cores=4, reason="Priority")
    assert Looks().at(0, large, small, nodes=kept).situation.snapshot.unavailable == {}
    for jobs in ((large, small, waiting(3, asks_for=("gres",))), (waiting(3, is_batch=False), small), (small,)):
        seen = Looks().at(0, *jobs, nodes=kept)
        assert seen.situation.snapshot.unavailable == {"c1": "planned", "c2": "planned"}


@pytest.mark.parametrize(
    ("after_s", "where", "comparison", "same_nodes"),
    [
        (1, "c1", Comparison.SAME, True),
        (-5, "c1", Comparison.SAME, True),
        (50, "c1", Comparison.EARLIER, True),
        (50, "c2", Comparison.EARLIER, False),
    ],
)
def test_slurms_start_is_compared_with_the_first_advice(after_s, where, comparison, same_nodes) -> None:
    looks = Looks()
    looks.at(0, waiting(1))
    looks.at(30, waiting(1))
    seen = looks.at(60, started(1, NOW + after_s, where), nodes=one_node(taken=True))
    assert seen.outcomes == (AdviceOutcome("1", comparison, max(0.0, after_s), (where,), same_nodes, ("main",), 28),)
    assert looks.summary.mean_earlier_s == (50 if comparison is Comparison.EARLIER else None)
    assert (looks.summary.advised, looks.summary.still_waiting, looks.summary.looks) == (1, 0, 3)
    assert looks.at(90, started(1, NOW + after_s, where)).outcomes == (), "an outcome is told once"


def test_a_job_that_has_ended_in_the_meantime_has_started_too() -> None:
    looks = Looks()
    looks.at(0, waiting(1))
    (outcome,) = looks.at(60, started(1, NOW + 20, "c1", state=JobState.ENDED)).outcomes
    assert (outcome.comparison, outcome.seconds) == (Comparison.EARLIER, 20)


def test_while_it_waits_the_jobs_are_named_that_slurm_has_started_there() -> None:
    looks = Looks()
    looks.at(0, waiting(1))
    assert looks.at(30, waiting(1)).waiting[0].since_s == 30
    later = looks.at(60, waiting(1), started(2, NOW + 40, "c1", user_id=BOB), nodes=one_node(taken=True))
    assert [(each.advice.label, each.since_s, each.others) for each in later.waiting] == [("1", 60, ("2",))]
    assert looks.summary.still_waiting == 1
    again = looks.at(90, waiting(1), started(2, NOW + 40, "c1", user_id=BOB), nodes=one_node(taken=True))
    assert again.waiting[0].others == (), "each is named once"


@pytest.mark.parametrize("left", [(), (waiting(1, state=JobState.ENDED),)])
def test_a_job_that_nobody_saw_start_is_gone(left: tuple[ObservedJob, ...]) -> None:
    looks = Looks()
    looks.at(0, waiting(1))
    (outcome,) = looks.at(30, *left).outcomes
    assert (outcome.label, outcome.comparison, outcome.seconds) == ("1", Comparison.GONE, None)


def test_a_job_that_slurm_started_and_we_let_wait_is_told() -> None:
    looks = Looks()
    looks.at(0, waiting(1), nodes=one_node(taken=True))
    seen = looks.at(30, started(1, NOW + 10, "c1"), nodes=one_node(taken=True))
    assert seen.outcomes == (AdviceOutcome("1", Comparison.LATER, nodes=("c1",), partitions=("main",), cpus=28),)
    assert looks.summary.counts[Comparison.LATER] == 1


def test_an_array_is_followed_task_by_task() -> None:
    looks = Looks()
    array = {"array_id": 7, "array_task": None}
    assert advised(looks.at(0, waiting(7, array_tasks="0-3,9", **array))) == [("7_0", ("c1",))]
    task = started(8, NOW + 20, "c1", array_id=7, array_task=0)
    seen = looks.at(30, task, waiting(7, array_tasks="1-3,9", **array))
    assert ([each.label for each in seen.outcomes], advised(seen)) == (["7_0"], [("7_1", ("c1",))])
    (gone,) = looks.at(60, waiting(7, array_tasks="2-3,9", **array)).outcomes
    assert (gone.label, gone.comparison) == ("7_1", Comparison.GONE)


STATES = st.sampled_from([JobState.PENDING, JobState.RUNNING, JobState.ENDED])


@given(st.lists(st.dictionaries(st.integers(1, 4), STATES), min_size=1, max_size=5))
def test_each_advice_has_at_most_one_outcome_and_none_is_lost(days) -> None:
    looks = Looks()
    for number, states in enumerate(days):
        at_s = 30 * number
        jobs = [
            waiting(each) if state is JobState.PENDING else started(each, NOW + at_s - 10, "c1", state=state)
            for each, state in states.items()
        ]
        looks.at(at_s, *jobs)
    summary = looks.summary
    ended = sum(summary.counts[each] for each in (Comparison.SAME, Comparison.EARLIER, Comparison.GONE))
    assert summary.advised == ended + summary.still_waiting
