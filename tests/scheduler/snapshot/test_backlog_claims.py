"""A job of Slurm's own gets its turn between ours, and no more than that."""

from dataclasses import replace

import pytest
from live import ENFORCE, FOREIGN, NOW, SLURMS, SUBMIT, job, look, node, pinned, planned, running, situation

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import Backfill, ObservedJob
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG
from slurm_sns.scheduler.snapshot.eligibility import KEPT

OURS_BEFORE, OURS_BEHIND = job(1, submit_s=SUBMIT - 1), job(2, submit_s=SUBMIT + 1)


def slurms(identity: int = 9, **fields) -> ObservedJob:
    """A job that is not ours and waits for two nodes."""
    shown = {**FOREIGN, "priority": 700, "reason": "Resources", "begin_s": SUBMIT, "is_alone": True}
    return job(identity, **{"tasks": 2, "nodes_min": 2, "nodes_max": 2, **shown, **fields})


def allowed(of) -> dict[int, frozenset[str]]:
    return {each.id: each.allowed for each in of.snapshot.waiting}


BUSY = (node("c1", taken=(28, 28_000)), node("c2"))
HOUR, DAY = 3600, 86_400


def holding(identity: int, name: str, cores: int, memory_mb: int, ends_in_s: int = HOUR // 2, **fields) -> ObservedJob:
    """A job of Slurm's own that holds this much of a node until its time limit."""
    shown = {**FOREIGN, "cpus": cores, "occupies": Resources(cores, memory_mb), "walltime_s": 2 * HOUR}
    return running(identity, name, **{**shown, "end_s": int(NOW) + ends_in_s, **fields})


RUNNING = holding(8, "c1", 28, 28_000)
SMALL = tuple(holding(80 + at, f"c{at}", 1, 1000) for at in (1, 2, 3, 4))


def test_jobs_behind_it_leave_the_nodes_that_it_waits_for_and_those_before_it_do_not() -> None:
    seen = situation(look(OURS_BEFORE, OURS_BEHIND, RUNNING, slurms(), nodes=BUSY))
    assert planned(seen) == [1]
    assert (seen.blocked, seen.follow_ups) == ({2: KEPT}, ())


def test_it_takes_no_more_nodes_than_it_needs_those_that_are_free_first() -> None:
    nodes = [*BUSY, node("c3", taken=(1, 1000)), node("c4", taken=(9, 1000))]
    others = RUNNING, holding(83, "c3", 1, 1000), holding(84, "c4", 9, 1000)
    assert allowed(situation(look(OURS_BEHIND, slurms(), *others, nodes=nodes))) == {2: {"c1", "c4"}}


def test_it_gets_only_nodes_on_which_it_may_run() -> None:
    nodes = [node(name, taken=(1, 1000)) for name in ("c1", "c2", "c3", "c4")]
    picky = slurms(excluded=("c1",))
    assert allowed(situation(look(OURS_BEHIND, picky, *SMALL, nodes=nodes))) == {2: {"c1", "c4"}}
    wants = slurms(pinned_to=("c3", "c4"))
    assert allowed(situation(look(OURS_BEHIND, wants, *SMALL, nodes=nodes))) == {2: {"c1", "c2"}}
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
    assert (first.blocked, first.backlog.could_start) == ({2: KEPT}, {9: NOW})
    later = situation(waits, now_s=NOW + 10, before=first.backlog)
    assert later.blocked == {2: KEPT}
    over = situation(waits, now_s=NOW + 11, before=later.backlog)
    assert planned(over) == [2]
    busy = look(OURS_BEHIND, RUNNING, slurms(), nodes=BUSY)
    assert planned(situation(busy, now_s=NOW + 60, before=over.backlog)) == [2], "and does not come again"


def test_a_clock_that_was_set_back_makes_its_turn_no_longer() -> None:
    waits = look(OURS_BEHIND, slurms())
    before = situation(waits, now_s=NOW + HOUR).backlog
    for second in (0, 10):
        now = situation(waits, now_s=NOW + second, before=before)
        assert now.blocked == {2: KEPT}
        before = now.backlog
    assert planned(situation(waits, now_s=NOW + 11, before=before)) == [2]


def test_while_it_could_not_start_its_turn_does_not_run_out() -> None:
    busy = look(OURS_BEHIND, RUNNING, slurms(), nodes=BUSY)
    assert situation(busy).backlog.could_start == {}
    assert situation(busy, now_s=NOW + HOUR).blocked == {2: KEPT}, "it runs beyond its limit"


def test_jobs_behind_it_may_use_its_nodes_if_they_end_before_it_could_start() -> None:
    short, long = replace(OURS_BEHIND, walltime_s=HOUR // 2), replace(OURS_BEHIND, id=3, walltime_s=HOUR // 2 + 60)
    seen = situation(look(short, long, RUNNING, slurms(), nodes=BUSY))
    assert (planned(seen), seen.blocked) == ([2], {3: KEPT})


def test_it_waits_for_the_nodes_that_are_ready_first() -> None:
    nodes = [node(f"c{at}", taken=(28, 28_000)) for at in (1, 2, 3)]
    late, early, soon = (holding(80 + at, f"c{at}", 28, 28_000, ends) for at, ends in ((1, 900), (2, 300), (3, 600)))
    jobs = [replace(OURS_BEHIND, id=at, walltime_s=walltime_s) for at, walltime_s in ((2, 600), (3, 660))]
    assert allowed(situation(look(*jobs, late, early, soon, slurms(), nodes=nodes))) == {
        2: {"c1", "c2", "c3"},
        3: {"c1"},
    }


def test_of_several_that_end_after_each_other_the_last_one_that_is_needed_counts() -> None:
    nodes = [node("c1", taken=(28, 28_000)), node("c2")]
    parts = holding(81, "c1", 14, 14_000, 300), holding(82, "c1", 14, 14_000, 900)
    half = slurms(is_alone=False, tasks=28, nodes_min=2, nodes_max=2)
    behind = replace(OURS_BEHIND, walltime_s=900)
    assert planned(situation(look(behind, *parts, half, nodes=nodes))) == [2]
    assert planned(situation(look(replace(behind, walltime_s=901), *parts, half, nodes=nodes))) == []


LATE = holding(8, "c1", 28, 28_000, DAY + HOUR)


def test_however_far_away_its_start_is_jobs_behind_it_that_end_before_may_run() -> None:
    behind = [replace(OURS_BEHIND, id=at, walltime_s=walltime_s) for at, walltime_s in ((2, DAY), (3, 2 * DAY))]
    seen = situation(look(*behind, LATE, slurms(), nodes=BUSY))
    assert (planned(seen), seen.blocked) == ([2], {3: KEPT})


UNLIMITED = replace(OURS_BEHIND, walltime_s=None)
BEYOND = {
    "beyond bf_window": look(UNLIMITED, LATE, slurms(), nodes=BUSY),
    "no time limit": look(UNLIMITED, replace(LATE, walltime_s=None), slurms(), nodes=BUSY),
    "no end": look(UNLIMITED, replace(LATE, end_s=0), slurms(), nodes=BUSY),
}


@pytest.mark.parametrize("seen", BEYOND.values(), ids=BEYOND)
def test_where_slurms_backfill_has_no_plan_others_get_its_nodes_as_often_as_backfill_comes(seen) -> None:
    """Once in bf_interval: a look at which all may use them, as Slurm's backfill would let them."""
    before, opened = NO_BACKLOG, []
    for second in range(100):
        now = situation(seen, now_s=NOW + second, before=before)
        before = now.backlog
        if planned(now) == [2]:
            opened.append(second)
    assert opened == [30, 60, 90]


def test_a_clock_that_was_set_back_keeps_nothing_longer() -> None:
    seen = BEYOND["no time limit"]
    first = situation(seen, now_s=NOW + 1000)
    assert planned(situation(seen, before=first.backlog)) == [2]


def test_how_far_ahead_slurm_plans_is_the_sites_choice() -> None:
    seen = look(UNLIMITED, LATE, slurms(), nodes=BUSY, backfill=Backfill(window_s=2 * DAY))
    first = situation(seen)
    assert situation(seen, now_s=NOW + 60, before=first.backlog).blocked == {2: KEPT}


def test_what_we_have_placed_comes_free_after_its_time_limit() -> None:
    placed = pinned(5, "c1", tasks=28, walltime_s=600)
    behind = [replace(OURS_BEHIND, id=at, walltime_s=walltime_s) for at, walltime_s in ((2, 600), (3, 660))]
    seen = situation(look(*behind, placed, slurms()))
    assert (planned(seen), seen.blocked) == ([2], {3: KEPT})


def test_of_each_queue_the_job_of_the_highest_priority_is_the_first() -> None:
    nodes = [*BUSY, node("c3")]
    first, second = slurms(priority=900, pinned_to=("c1", "c2")), slurms(10, priority=800, pinned_to=("c1", "c3"))
    assert allowed(situation(look(OURS_BEHIND, RUNNING, second, first, nodes=nodes))) == {2: {"c3"}}


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


@pytest.mark.parametrize("reason", ["PartitionNodeLimit", "PartitionTimeLimit", "PartitionDown", "AssocGrpCpuLimit"])
def test_an_old_plan_for_a_job_that_a_limit_keeps_from_starting_keeps_no_nodes(reason: str) -> None:
    """Its owner has moved it to a partition with too few nodes."""
    plan = slurms(reason=reason, planned_on=("c1", "c2"), start_s=int(NOW) + 600)
    assert allowed(situation(look(OURS_BEHIND, plan))) == {2: {"c1", "c2"}}


def test_a_node_that_slurm_keeps_for_a_job_that_it_does_not_show_is_left_alone() -> None:
    seen = situation(look(OURS_BEFORE, nodes=[replace(node("c1"), is_planned=True), node("c2")]))
    assert seen.snapshot.unavailable == {"c1": "planned"}


def test_what_we_placed_ourselves_keeps_nothing_twice() -> None:
    placed = pinned(5, "c1", planned_on=("c1",), start_s=int(NOW), reason="Resources")
    seen = situation(look(OURS_BEHIND, placed))
    assert allowed(seen) == {2: {"c1", "c2"}}


def test_a_job_that_its_owner_took_from_us_has_its_turn_as_slurms() -> None:
    taken = slurms(**SLURMS)
    assert situation(look(OURS_BEHIND, RUNNING, taken, nodes=BUSY)).blocked == {2: KEPT}


def test_observing_a_job_does_not_stand_in_its_own_way() -> None:
    seen = situation(look(slurms(is_alone=False)), settings=replace(ENFORCE, mode="observe"))
    assert planned(seen) == [9]
