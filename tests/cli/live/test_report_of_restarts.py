"""`sns report --config` on a scheduler that restarts suspended jobs, or only proposes restarts."""

import os
from fractions import Fraction

from json_output import read

from slurm_sns.model import Node, Plan, Resources, Snapshot
from slurm_sns.restarts.decision import Basis, RestartDecision, Term
from slurm_sns.scheduler.ports import RestartNote
from slurm_sns.scheduler.restarts.words import explained
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions

BEGAN_S = 1_795_000_000
SNAPSHOT = Snapshot((Node("c1", Resources(4, 100), Resources(2, 50)),), ())


def note(stays_s: int, restarts_s: int, *, is_proposal: bool = True) -> RestartNote:
    stays = Term("main", Basis.PREEMPTORS, 0, stays_s, Fraction(1, 3))
    place = Term("main", Basis.PLACE, 0, 0, restarts_s, ("c2",))
    decision = RestartDecision(stays, (place,), 0)
    return RestartNote("suspended for 2 min", explained(decision, 7200.0), ("c2",), is_proposal)


def record(config, *restarts: dict[int, RestartNote]) -> None:
    decisions = StoredDecisions(open_store(f"sqlite:///{config.parent / 'state' / 'sns.db'}"), 30, 500)
    for at, each in enumerate(restarts):
        owners = dict.fromkeys(each, os.getuid())
        more = {"owners": owners, "explanations": {}, "tasks": {}}
        decisions.record(BEGAN_S + 3600 * at, SNAPSHOT, Plan(), {}, restarts=each, **more)


def test_it_says_what_was_proposed_what_it_gains_and_what_it_loses(sns, write_config) -> None:
    config = write_config(mode="enforce", rescheduling={"restart": "propose"})
    record(config, {7: note(36_000, 3600)}, {8: note(7200, 3600), 7: note(10_000, 1000, is_proposal=False)})
    found = read("sns report", sns("report", "--config", config, "--json")[1])["restarts"]
    assert (found["restarts"], found["proposals"]) == (1, 2)
    assert [(each["job"], each["proposal"], each["lost_core_h"]) for each in found["decisions"]] == [
        ("7", True, 2.0),
        ("8", True, 2.0),
        ("7", False, 2.0),
    ]
    _, output, _ = sns("report", "--config", config)
    told = " ".join(output.split())
    assert "1 restarts of suspended jobs, and 2 that were only proposed; of 2 jobs" in told
    assert "expected to complete 4.2 h sooner on average, at a cost of 6.0 core-hours of work at most" in told


def test_without_any_it_says_why_that_may_be(sns, write_config) -> None:
    config = write_config(mode="enforce", rescheduling={"restart": "on"})
    record(config)
    _, output, _ = sns("report", "--config", config)
    assert "no restart and no proposal" in " ".join(output.split())
