"""Expected run times: quantiles of what the owner's program, the owner and all jobs used of their limits."""

import pytest

from slurm_sns.estimates import past_runs
from slurm_sns.estimates.past_runs import Kin, PastRun, PastRuns


def runs(owner: int, program: str, *shares: float) -> list[PastRun]:
    return [PastRun(at, at, owner, program, share) for at, share in enumerate(shares)]


TENTHS = [each / 10 for each in range(1, 10)]


def test_without_a_past_a_job_runs_until_its_limit():
    assert PastRuns().share(Kin(1, "a"), 0.25) == 1


def test_the_past_of_the_owners_program_goes_before_that_of_the_owner_and_of_all():
    past = PastRuns([*runs(1, "a", *[0.1] * 5), *runs(1, "b", *[0.5] * 20), *runs(2, "a", *[0.9] * 100)])

    assert past.share(Kin(1, "a"), 0.5) == 0.1
    assert past.share(Kin(1, "new"), 0.5) == 0.5
    assert past.share(Kin(3, "a"), 0.5) == 0.9


def test_it_is_a_quantile_and_not_a_mean():
    past = PastRuns(runs(1, "a", 0.01, 0.01, 0.01, 0.01, 1.0))

    assert [past.share(Kin(1, "a"), each) for each in (0.25, 0.75, 1)] == [0.01, 0.01, 1]


def test_four_runs_are_too_few():
    assert PastRuns(runs(1, "a", *[0.1] * 4)).share(Kin(1, "a"), 0.5) == 1


def test_of_a_running_job_only_longer_runs_count():
    past = PastRuns(runs(1, "a", *TENTHS))

    assert past.share(Kin(1, "a"), 0, ran=0.35) == 0.4
    assert past.share(Kin(1, "a"), 1, ran=0.35) == 0.9
    assert past.share(Kin(1, "a"), 0, ran=0.75) == 1, "two runs are too few"


def test_a_run_beyond_its_limit_counts_as_one_until_the_limit():
    assert PastRuns(runs(1, "a", *[1.3] * 5)).share(Kin(1, "a"), 0.5) == 1


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(past_runs, "MOST_GROUPS", 3)
    past = PastRuns(runs(1, "a", *[0.1] * 200))
    for owner in range(2, 50):
        for run in runs(owner, "a", *[0.7] * 5):
            past.add(run)

    assert past.share(Kin(49, "a"), 0.5) == 0.7
    assert len(past._groups) == 3
