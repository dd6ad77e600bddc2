"""What becomes of the jobs of the version before."""

import pytest

from slurm_sns.scheduler.gate.adoption import Becomes, adoption
from slurm_sns.scheduler.observation.observed import JobState, ObservedJob
from slurm_sns.submit.record import read

GATE_S = 1_800_000_000
HELD = {"priority": 0, "reason": "JobHeldUser", "extra": "sns:1 alpha=0.9 fixed"}
BOOST = -2_000_000_000


def job(**fields):
    return ObservedJob(**{"id": 7, "user_id": 1, "submit_s": 1, "state": JobState.PENDING, **fields})


def test_a_job_that_was_held_is_gated_with_its_hints():
    found = adoption(job(**HELD, restarts=2, admin_comment="site's text"), GATE_S)
    assert found.becomes is Becomes.GATED
    assert found.admin_comment == f"site's text;sns:2 alpha=0.9 fixed g={GATE_S} r=2"
    assert read(found.admin_comment).hints.alpha == 0.9


@pytest.mark.parametrize(
    ("fields", "becomes", "nice"),
    [
        ({**HELD, "extra": "sns:1 advised"}, Becomes.SLURMS, None),
        ({"priority": 5, "extra": "sns:1 advised", "nice": BOOST}, Becomes.SLURMS, 0),
        ({"priority": 5, "extra": "sns:1", "pinned_to": ("c1",), "nice": BOOST}, Becomes.FREED, 0),
        ({"priority": 5, "extra": "sns:1 nice=100", "pinned_to": ("c1",), "nice": BOOST}, Becomes.FREED, 100),
        ({"priority": 5, "extra": "sns:1", "pinned_to": ("c1",), "nice": BOOST - 3}, Becomes.FREED, -3),
        ({"priority": 5, "extra": "sns:1", "pinned_to": ("c1",), "nice": -60_000}, Becomes.FREED, 0),
        ({**HELD, "pinned_to": ("c1",), "nice": BOOST}, Becomes.HELD, 0),
        ({**HELD, "reason": "JobHeldAdmin"}, Becomes.HELD, None),
        ({**HELD, "extra": "sns:1 what"}, Becomes.FREED, None),
        ({"priority": 5, "extra": "sns:1"}, Becomes.FREED, None),
    ],
)
def test_what_is_not_clear_is_given_to_slurm(fields, becomes, nice):
    found = adoption(job(**fields), GATE_S)
    assert (found.becomes, found.nice, found.admin_comment) == (becomes, nice, "")


@pytest.mark.parametrize(
    "fields",
    [
        {"extra": ""},
        {"extra": "my text sns:1"},
        {**HELD, "state": JobState.RUNNING},
        {**HELD, "admin_comment": f"sns:2 g={GATE_S}"},
    ],
)
def test_other_jobs_are_left_alone(fields):
    assert adoption(job(**fields), GATE_S) is None
