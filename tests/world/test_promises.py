"""The checker of promises: a history that keeps them all, and the deliberate defects that it has to find.

Each promise is tried in the test module of its subject, by a small history that breaks it and one that is near and
keeps it.
"""

import pytest

from world.hand_made import Case
from world.mutants import MUTANTS, name_of, shows
from world.run import run, violations
from world.schedule import drawn


def test_a_job_that_is_held_placed_started_and_ended_breaks_no_promise(case: Case) -> None:
    case.submit()
    case.ran(3.0)
    case.add(20, "purge", 1, "slurm")
    assert case.found() == []


def test_each_deliberate_defect_has_a_name_and_a_sentence_and_leaves_nothing_behind() -> None:
    before = violations(run(drawn(0)))
    assert len({each.name for each in MUTANTS}) == len(MUTANTS) >= 20
    for each in MUTANTS:
        assert each.sentence.endswith(".")
        with each.put_in():
            pass
    assert violations(run(drawn(0))) == before


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("recorded after the rpc", "not recorded"),
        ("nice not restored", "not restored"),
        ("heartbeat before the answers", "heartbeat not honest"),
        ("watchdog keeps its first offset", "held too long"),
        ("filter ignores a stale heartbeat", "held while off"),
    ],
)
def test_a_deliberate_defect_is_found_by_some_schedule(name: str, promise: str) -> None:
    """Those that the first few schedules show; `python -m world mutants` tries all of them."""
    mutant = next(each for each in MUTANTS if each.name == name)
    shown = shows(mutant, range(1000))
    assert shown is not None
    assert name_of(shown.sentence) == promise
