"""Progress by CPU shares, by hand: what is done before, in and after a penalty."""

from fractions import Fraction

import numpy as np
import pytest

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.sim.engine.planned import Shared
from slurm_sns.sim.progress.progress import PlacedRun

PENALTY_S = 30


@pytest.fixture
def shared() -> Shared:
    """A job with 100 s of work that begins at 0, and at 40 is resumed with a penalty."""
    alternative = Alternative(1, Resources(1, 1024))
    job = Job(7, 0, (alternative,))
    progress = Shared({7: 100})
    progress.start(PlacedRun(job, alternative, np.array([0]), start_s=0, end_s=0))
    progress.stop(7, 40)
    assert progress.pace(7, 1, 40, penalty_s=PENALTY_S).end_s == 40 + PENALTY_S + 60
    return progress


def test_a_new_share_in_a_penalty_counts_from_its_end_on(shared):
    assert shared.pace(7, Fraction(1, 2), 50).end_s == 70 + 60 * 2
    assert shared.virtual_s(7, 70) == 40
    assert shared.virtual_s(7, 80) == 45


def test_a_pause_in_a_penalty_ends_it_and_the_next_resume_has_its_own(shared):
    assert shared.stop(7, 50).end_s == float("inf")
    assert shared.virtual_s(7, 1000) == 40
    assert shared.pace(7, 1, 60, penalty_s=PENALTY_S).end_s == 60 + PENALTY_S + 60


def test_a_move_in_a_penalty_begins_another_one(shared):
    assert shared.pace(7, 1, 60, penalty_s=PENALTY_S).end_s == 60 + PENALTY_S + 60
    assert shared.virtual_s(7, 90) == 40


def test_a_new_share_after_a_penalty_counts_at_once(shared):
    assert shared.pace(7, Fraction(1, 3), 80).end_s == 80 + 50 * 3
