"""A job that may preempt others is Slurm's, in which alone running jobs can be stopped; all others stay ours."""

from dataclasses import replace

import pytest
from live import ADVISED, ENFORCE, FOREIGN, job, look, node, pinned, planned, running, sent, situation

from slurm_sns.scheduler.observation import ObservedPartition, PreemptionRules

MAIN = ObservedPartition("main", tier=1, preempt_mode="REQUEUE")
URGENT = ObservedPartition("urgent", tier=10, preempt_mode="REQUEUE")
BOTH = frozenset({"main", "urgent"})
SHARED = (node("c1", partitions=BOTH), node("c2"))
TIERS = PreemptionRules("preempt/partition_prio", "REQUEUE")
BY_QOS = PreemptionRules("preempt/qos", "REQUEUE", (("urgent", frozenset({"low", "normal"})),))
WHY = "it may preempt jobs: partition urgent has a higher PriorityTier than main on the same nodes"


def tiers(*jobs, main=MAIN, urgent=URGENT, nodes=SHARED, rules=TIERS, **settings):
    seen = look(*jobs, nodes=nodes, partitions=(main, urgent), preemption=rules)
    return situation(seen, settings=replace(ENFORCE, **settings))


def qos(*jobs, rules=BY_QOS):
    return situation(look(*jobs, preemption=rules))


def test_a_job_of_a_higher_tier_is_given_to_slurm_with_the_reason_and_the_others_are_planned() -> None:
    seen = tiers(job(1, partitions=("urgent",)), job(2))
    assert [(order.job_id, order.kind, why) for order, why in seen.follow_ups] == [(1, "free", f"left to Slurm: {WHY}")]
    assert (planned(seen), seen.blocked) == ([2], {1: WHY})


def test_one_such_partition_of_several_is_enough() -> None:
    assert planned(tiers(job(1, partitions=("main", "urgent")))) == []


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_where_nothing_is_held_such_a_job_is_not_planned_either(mode: str) -> None:
    seen = tiers(job(1, partitions=("urgent",), **(FOREIGN if mode == "observe" else ADVISED)), mode=mode)
    assert (planned(seen), seen.follow_ups) == ([], ())


@pytest.mark.parametrize(
    "otherwise",
    [
        {"rules": PreemptionRules()},
        {"rules": PreemptionRules("preempt/none", "REQUEUE")},
        {"rules": replace(TIERS, mode="OFF")},
        {"rules": replace(TIERS, mode="GANG")},
        {"urgent": replace(URGENT, tier=1)},
        {"main": replace(MAIN, preempt_mode="OFF")},
        {"nodes": (node("c1"), node("u1", partitions=frozenset({"urgent"})))},
    ],
    ids=["no type", "none", "off", "turns only", "same tier", "its partition is spared", "no node in common"],
)
def test_a_job_that_slurm_would_not_let_preempt_stays_ours(otherwise) -> None:
    assert planned(tiers(job(1, partitions=("urgent",)), **otherwise)) == [1]


@pytest.mark.parametrize("mode", ["REQUEUE", "CANCEL", "GANG,SUSPEND", ""])
def test_however_the_others_are_stopped_it_preempts(mode: str) -> None:
    assert planned(tiers(job(1, partitions=("urgent",)), rules=replace(TIERS, mode=mode))) == []


def test_a_partition_that_cannot_be_read_may_be_of_any_tier() -> None:
    seen = situation(look(job(1, partitions=("urgent",)), nodes=SHARED, partitions=(MAIN,), preemption=TIERS))
    assert seen.blocked == {1: "it may preempt jobs: partition urgent cannot be read"}


def test_a_job_whose_qos_may_preempt_is_slurms() -> None:
    seen = qos(job(1, qos="urgent"), job(2, qos="low"), job(3, qos="low,urgent"))
    assert planned(seen) == [2]
    assert seen.blocked[1] == "it may preempt jobs: QOS urgent may preempt low, normal"


def test_a_job_that_shows_no_qos_has_a_default_that_may_be_any() -> None:
    assert planned(qos(job(1))) == []
    assert planned(qos(job(1), rules=replace(BY_QOS, of_qos=()))) == [1]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (replace(BY_QOS, of_qos=None), "until slurmdbd tells which QOS may, every job counts as one that may"),
        (replace(BY_QOS, mode="WITHIN,REQUEUE"), "PreemptMode is WITHIN,REQUEUE"),
        (PreemptionRules("preempt/sites_own", "REQUEUE"), "PreemptType is preempt/sites_own"),
    ],
)
def test_where_it_is_not_known_who_may_everybody_may(rules: PreemptionRules, why: str) -> None:
    assert qos(job(1, qos="low"), rules=rules).blocked == {1: f"it may preempt jobs: {why}"}


def test_what_is_placed_already_and_what_runs_stays_as_it_is() -> None:
    seen = look(
        pinned(1, "c1", partitions=("urgent",)),
        running(2, "c1", partitions=("urgent",)),
        nodes=SHARED,
        partitions=(MAIN, URGENT),
        preemption=TIERS,
    )
    assert situation(seen).follow_ups == ()


def test_a_job_that_was_preempted_comes_back_to_us() -> None:
    back = pinned(1, "c1", restarts=1)
    seen = look(back, nodes=SHARED, partitions=(MAIN, URGENT), preemption=TIERS)
    assert sent(situation(seen)) == {1: "regate"}
