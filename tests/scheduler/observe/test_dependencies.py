"""A held job that waits for others: fulfilled as soon as we see it, hopeless as soon as Slurm says it."""

from dataclasses import replace

import pytest
from live import job, look, planned, running, situation

from slurm_sns.model import Release
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Dependency, JobState

OPEN = "waits for its dependency"


def dependent(*waits_for: Dependency, any_suffices: bool = False):
    return job(9, waits_for_others=True, waits_for=waits_for, any_suffices=any_suffices)


def on(job_id: int, kind: str = "afterok", state: str = "unfulfilled", task: int | None = None) -> Dependency:
    return Dependency(kind, job_id, task, state)


def ended(identity: int, *, well: bool = True, **fields):
    return job(identity, state=JobState.ENDED, has_succeeded=well, **fields)


@pytest.mark.parametrize(
    ("waits", "others", "is_planned"),
    [
        (dependent(on(1)), [running(1, "c1")], False),
        (dependent(on(1)), [running(1, "c1", is_completing=True)], False),
        (dependent(on(1)), [ended(1)], True),
        (dependent(on(1)), [ended(1, well=False)], False),
        (dependent(on(1)), [], False),
        (dependent(on(1, "afterany")), [ended(1, well=False)], True),
        (dependent(on(1, "afternotok")), [ended(1, well=False)], False),
        (dependent(on(1, "after")), [ended(1)], False),
        (dependent(), [], False),
        (dependent(on(1), on(2)), [ended(1)], False),
        (dependent(on(1), on(2)), [ended(1), ended(2)], True),
        (dependent(on(1), on(2, state="fulfilled")), [ended(1)], True),
        (dependent(on(1), on(2), any_suffices=True), [ended(1), running(2, "c1")], True),
        (dependent(on(1), on(2), any_suffices=True), [running(1, "c1"), running(2, "c1")], False),
        (dependent(on(1)), [ended(1, array_id=1, array_task=3), ended(2, array_id=1, array_task=0)], True),
        (dependent(on(1)), [ended(1, array_id=1, array_task=3), job(2, array_id=1, array_task=0)], False),
        (dependent(on(1)), [ended(2, array_id=1, array_task=0), job(1, array_id=1, array_tasks="3-9")], False),
        (dependent(on(1, task=0)), [ended(2, array_id=1, array_task=0), job(1, array_id=1, array_tasks="3-9")], True),
        (dependent(on(1, task=4)), [ended(2, array_id=1, array_task=0), job(1, array_id=1, array_tasks="3-9")], False),
    ],
)
def test_a_job_is_planned_when_what_it_waits_for_is_seen(waits, others, is_planned: bool) -> None:
    seen = situation(look(waits, *others))
    assert (9 in planned(seen)) is is_planned
    assert seen.blocked.get(9) == (None if is_planned else OPEN)


@pytest.mark.parametrize(
    "waits",
    [
        dependent(on(1, state="failed")),
        dependent(on(1), on(2, state="failed")),
        dependent(on(1, state="failed"), on(2, state="failed"), any_suffices=True),
    ],
)
def test_a_job_whose_dependency_can_never_be_fulfilled_is_given_to_slurm(waits) -> None:
    seen = situation(look(waits))
    assert seen.corrections == (Release(9, "left to Slurm: its dependency can never be fulfilled"),)
    assert planned(seen) == []


def test_a_dependency_that_has_failed_stays_so_when_slurm_has_forgotten_the_task_that_failed() -> None:
    hopeless = dependent(on(1, state="failed"))
    seen = situation(look(hopeless, ended(1, array_id=1, array_task=3)))
    assert seen.corrections == (Release(9, "left to Slurm: its dependency can never be fulfilled"),)


def test_what_slurm_calls_an_admins_hold_after_a_dependency_failed_is_ours_and_released() -> None:
    hopeless = replace(dependent(on(1, state="failed")), reason="JobHeldAdmin")
    assert [type(each) for each in situation(look(hopeless)).corrections] == [Release]
    held = replace(dependent(on(1)), reason="JobHeldAdmin")
    assert situation(look(held)).corrections == ()


def test_one_failure_is_not_the_end_where_another_job_suffices() -> None:
    seen = situation(look(dependent(on(1, state="failed"), on(2), any_suffices=True)))
    assert (seen.corrections, seen.blocked) == ((), {9: OPEN})


def test_an_admins_hold_stays_where_another_job_suffices() -> None:
    """One dependency has failed; the other is fulfilled, and Slurm may say so or not yet."""
    waits = dependent(on(1, state="failed"), on(2), any_suffices=True)
    seen = situation(look(replace(waits, reason="JobHeldAdmin"), ended(2)))
    assert (seen.corrections, planned(seen)) == ((), [])
    assert seen.statuses[9] is JobStatus.ADMIN_HELD


def test_slurms_hold_after_all_of_several_dependencies_failed_is_ours() -> None:
    waits = dependent(on(1, state="failed"), on(2, state="failed"), any_suffices=True)
    seen = situation(look(replace(waits, reason="JobHeldAdmin")))
    assert [type(each) for each in seen.corrections] == [Release]
