"""A job of Slurm's own gets its turn between ours, and no more than that."""

from dataclasses import replace

import pytest
from live import ENFORCE, NOW, SUBMIT, job, look, node, planned, record, running, situation

from slurm_sns.scheduler.observed import ObservedJob
from slurm_sns.scheduler.reach import KEPT

OURS_BEFORE, OURS_BEHIND = job(1, submit_s=SUBMIT - 1), job(2, submit_s=SUBMIT + 1)


def slurms(identity: int = 9, **fields) -> ObservedJob:
    """A job that is not ours and waits for two nodes."""
    shown = {"extra": "", "priority": 700, "reason": "Resources", "begin_s": SUBMIT, "is_alone": True}
    return replace(job(identity, tasks=2, nodes_min=2, nodes_max=2), **{**shown, **fields})


def allowed(of) -> dict[int, frozenset[str]]:
    return {each.id: each.allowed for each in of.snapshot.waiting}


BUSY = (node("c1", taken=(28, 28_000)), node("c2"))
RUNNING = running(8, "c1", extra="", cpus=28)


def test_jobs_behind_it_leave_the_nodes_that_it_waits_for_and_those_before_it_do_not() -> None:
    seen = situation(look(OURS_BEFORE, OURS_BEHIND, RUNNING, slurms(), nodes=BUSY))
    assert planned(seen) == [1]
    assert (seen.blocked, seen.corrections) == ({2: KEPT}, ())


def test_it_takes_no_more_nodes_than_it_needs_those_that_are_free_first() -> None:
    nodes = [*BUSY, node("c3", taken=(1, 1000)), node("c4", taken=(9, 1000))]
    assert allowed(situation(look(OURS_BEHIND, slurms(), nodes=nodes))) == {2: {"c1", "c4"}}


def test_it_gets_only_nodes_on_which_it_may_run() -> None:
    nodes = [node(name, taken=(1, 1000)) for name in ("c1", "c2", "c3", "c4")]
    picky = slurms(excluded=("c1",))
    assert allowed(situation(look(OURS_BEHIND, picky, nodes=nodes))) == {2: {"c1", "c4"}}
    wants = slurms(pinned_to=("c3", "c4"))
    assert allowed(situation(look(OURS_BEHIND, wants, nodes=nodes))) == {2: {"c1", "c2"}}
    away = [replace(each, unavailable="drain" if each.name == "c4" else "") for each in nodes]
    assert allowed(situation(look(OURS_BEHIND, wants, nodes=away))) == {2: {"c1", "c2", "c3", "c4"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": 0},
        {"reason": "Priority"},
        {"reason": "Licenses"},
        {"begin_s": int(NOW) + 60},
        {"waits_for_others": True},
        {"is_countable": False},
        {"partitions": ("small",)},
    ],
    ids=str,
)
def test_a_job_that_could_not_start_if_the_nodes_were_free_keeps_none(fields) -> None:
    assert planned(situation(look(OURS_BEHIND, RUNNING, slurms(**fields), nodes=BUSY))) == [2]


def test_a_job_that_is_not_alone_keeps_as_much_as_two_nodes_have_for_it() -> None:
    shared = slurms(is_alone=False, tasks=2, nodes_min=None, nodes_max=None)
    assert allowed(situation(look(OURS_BEHIND, shared, nodes=BUSY))) == {2: {"c1"}}


def test_its_turn_is_over_when_it_could_have_started_and_slurm_did_not_start_it() -> None:
    waits = look(OURS_BEHIND, slurms())
    first = situation(waits)
    assert (first.blocked, first.could_start) == ({2: KEPT}, {9: NOW})
    later = situation(waits, now_s=NOW + 10, could_start=first.could_start)
    assert later.blocked == {2: KEPT}
    over = situation(waits, now_s=NOW + 11, could_start=later.could_start)
    assert planned(over) == [2]
    busy = look(OURS_BEHIND, RUNNING, slurms(), nodes=BUSY)
    assert planned(situation(busy, now_s=NOW + 60, could_start=over.could_start)) == [2], "and does not come again"


def test_while_it_could_not_start_its_turn_does_not_run_out() -> None:
    busy = look(OURS_BEHIND, RUNNING, slurms(), nodes=BUSY)
    assert situation(busy).could_start == {}
    assert situation(busy, now_s=NOW + 3600, could_start={}).blocked == {2: KEPT}


def test_a_job_that_ends_before_slurms_plan_for_another_may_run_there() -> None:
    short, long = replace(OURS_BEHIND, walltime_s=600), replace(OURS_BEHIND, id=3, walltime_s=601)
    kept = [replace(each, is_planned=True) for each in (node("c1"), node("c2"))]
    plan = slurms(reason="Priority", is_countable=False, planned_on=("c1", "c2"), start_s=int(NOW) + 600)
    seen = situation(look(short, long, plan, nodes=kept))
    assert allowed(seen) == {2: {"c1", "c2"}}
    assert seen.blocked == {3: KEPT}
    assert planned(situation(look(OURS_BEFORE, plan, nodes=kept))) == [1]


def test_a_plan_whose_time_has_come_is_kept_until_the_job_starts_or_slurm_plans_again() -> None:
    late = slurms(planned_on=("c1", "c2"), start_s=int(NOW) - 5)
    assert situation(look(replace(OURS_BEHIND, walltime_s=60), late)).blocked == {2: KEPT}


def test_a_node_that_slurm_keeps_for_a_job_that_it_does_not_show_is_left_alone() -> None:
    seen = situation(look(OURS_BEFORE, nodes=[replace(node("c1"), is_planned=True), node("c2")]))
    assert seen.snapshot.unavailable == {"c1": "planned"}


def test_what_we_placed_ourselves_keeps_nothing_twice() -> None:
    placed = job(
        5, priority=1500, nice=-500, pinned_to=("c1",), planned_on=("c1",), start_s=int(NOW), reason="Resources"
    )
    seen = situation(look(OURS_BEHIND, placed), record(5))
    assert allowed(seen) == {2: {"c1", "c2"}}


def test_a_job_that_its_owner_took_from_us_has_its_turn_as_slurms() -> None:
    taken = slurms(extra="sns:1 fixed")
    assert situation(look(OURS_BEHIND, RUNNING, taken, nodes=BUSY)).blocked == {2: KEPT}


def test_observing_a_job_does_not_stand_in_its_own_way() -> None:
    seen = situation(look(slurms(is_alone=False)), settings=replace(ENFORCE, mode="observe"))
    assert planned(seen) == [9]
