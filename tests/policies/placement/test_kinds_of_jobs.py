"""Results that are computed once for each kind of job."""

from dataclasses import replace

import pytest

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind


def alternatives(cores: int) -> tuple[Alternative, ...]:
    """New objects at each call."""
    return (Alternative(1, Resources(cores, 1024)),)


JOB = Job(id=1, submit_s=0, alternatives=alternatives(4), allowed=frozenset({"c1"}), heuristic="mix-fit")


def test_jobs_of_one_kind_share_one_result_whether_or_not_they_share_their_objects() -> None:
    asked: list[int] = []
    once = OncePerKind(lambda job: asked.append(job.id))
    alike = replace(JOB, id=2), replace(JOB, id=3, alternatives=alternatives(4), allowed=frozenset(["c1"]))
    for job in (JOB, *alike):
        once.of(job)
    assert asked == [1]


@pytest.mark.parametrize(
    "change", [{"alternatives": alternatives(5)}, {"allowed": None}, {"allowed": frozenset()}, {"heuristic": None}]
)
def test_a_job_that_differs_in_what_makes_a_kind_gets_a_result_of_its_own(change: dict) -> None:
    once = OncePerKind(lambda job: job.id)
    assert (once.of(JOB), once.of(replace(JOB, id=2, **change))) == (1, 2)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_results_are_right_whatever_is_remembered(most: int) -> None:
    """Each job is freed before the next is made: an identity not kept alive would come back with other values."""
    once = OncePerKind(lambda job: job.alternatives[0].demand.cores, most)
    for number in range(2000):
        cores = number % 7
        assert once.of(Job(id=number, submit_s=0, alternatives=alternatives(cores))) == cores


def test_no_more_is_remembered_than_the_limit() -> None:
    asked: list[int] = []
    once = OncePerKind(lambda job: asked.append(job.id), most=2)
    for number in (1, 2, 1, 2, 3, 1):
        once.of(replace(JOB, id=number, heuristic=str(number)))
    assert asked == [1, 2, 3, 1]
