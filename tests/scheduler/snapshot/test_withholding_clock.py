"""Capacity is withheld for a user's jobs for a while, then not for longer, so that nodes do not stand idle for ever."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from live import ALICE, BOB, ENFORCE, NOW, job, look, node, running, situation

from slurm_sns.model import Alternative, Plan, Report, Resources, Start
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import UNTIL_START, MatchingParameters
from slurm_sns.scheduler.snapshot.situation import NOTHING_WITHHELD, WithholdingClock

USERS = {1: ALICE, 2: ALICE, 3: BOB}
LIMIT_S = 100.0


def after(
    before: WithholdingClock, *withheld: int, now_s: float = NOW, starts: tuple[int, ...] = ()
) -> WithholdingClock:
    way = Alternative(1, Resources(1, 1024))
    plan = Plan(tuple(Start(job_id, ("c1",), way) for job_id in starts), report=Report(withheld_for=withheld))
    return before.after(plan, USERS, now_s, LIMIT_S)


def pauses(of: WithholdingClock, now_s: float) -> dict[int, float]:
    return {user_id: of.pause_s(user_id, now_s, LIMIT_S) for user_id in (ALICE, BOB)}


def test_a_users_time_begins_when_capacity_is_withheld_and_ends_after_the_limit() -> None:
    known = after(NOTHING_WITHHELD, 1)
    assert pauses(known, NOW + 99) == {ALICE: 0, BOB: 0}
    assert pauses(known, NOW + 100) == {ALICE: 400, BOB: 0}
    assert pauses(known, NOW + 499) == {ALICE: 1, BOB: 0}


def test_another_job_of_the_user_does_not_renew_it() -> None:
    known = after(after(NOTHING_WITHHELD, 1), 2, now_s=NOW + 90)
    assert pauses(known, NOW + 110) == {ALICE: 390, BOB: 0}


def test_after_the_pause_it_begins_anew() -> None:
    known = after(after(NOTHING_WITHHELD, 1), now_s=NOW + 500)
    assert known == NOTHING_WITHHELD


def test_a_job_that_got_its_place_ends_its_users_time() -> None:
    known = after(after(NOTHING_WITHHELD, 1), now_s=NOW + 50, starts=(2,))
    assert known.since_s == {ALICE: NOW}, "a job for which nothing was withheld does not"
    assert after(after(NOTHING_WITHHELD, 1, 3), now_s=NOW + 50, starts=(1,)).since_s == {BOB: NOW}


def test_a_clock_that_is_set_back_makes_no_pause_longer() -> None:
    known = after(NOTHING_WITHHELD, 1, now_s=NOW + 1000)
    assert pauses(known, NOW)[ALICE] == 0
    assert after(known, now_s=NOW) == NOTHING_WITHHELD


def test_without_a_limit_nothing_is_counted() -> None:
    known = NOTHING_WITHHELD.after(Plan(report=Report(withheld_for=(1,))), USERS, NOW, None)
    assert known == NOTHING_WITHHELD
    assert WithholdingClock({ALICE: NOW}).pause_s(ALICE, NOW + 1000, None) == 0


@pytest.mark.parametrize(("end_s", "counted"), [(int(NOW) + 900, {}), (0, {ALICE: NOW})], ids=["known", "unknown"])
def test_a_place_from_a_jobs_start_on_is_not_counted_and_where_no_start_is_known_the_other_rule_is(
    end_s: int, counted: dict[int, float]
) -> None:
    busy = running(8, "c1", end_s=end_s, walltime_s=1000, occupies=Resources(28, 28_000), user_id=BOB)
    both = job(1, tasks=56, cpus=56, nodes_min=2, nodes_max=2)
    seen = situation(look(busy, both, nodes=[node("c1", taken=(28, 28_000)), node("c2")]))
    plan = max_jobs(MatchingParameters(withhold=UNTIL_START)).plan(seen.snapshot)
    assert plan.waiting[1].startswith("finds no place yet")
    assert NOTHING_WITHHELD.after(plan, USERS, NOW, LIMIT_S).since_s == counted


def with_a_wide_job(limit_s: float | None) -> Site:
    """Two nodes, of which one is busy for long; the first of the queue wants both, and small jobs want the other."""
    site = Site(FakeSlurm({"c1": 28, "c2": 28}))
    site.slurm.submit(28, run_s=100_000, account="biology")
    site.scheduler(ENFORCE).repeat(2, 1.0)
    site.slurm.submit(56, account="physics")
    site.slurm.submit(*[28] * 40, account="chemistry", user="bob", user_id=BOB, run_s=20)
    site.scheduler(replace(ENFORCE, withhold_limit_s=limit_s)).repeat(500, 1.0)
    return site


@pytest.mark.long
def test_nodes_stand_idle_for_a_job_that_finds_no_place_no_longer_than_the_limit() -> None:
    site = with_a_wide_job(50.0)
    idle = sum(28 for used in site.slurm.in_use[2:] if used == 28) / 28
    assert idle == pytest.approx(100, abs=20), "twice 50 s in 500, and a second between two jobs"
    reasons = [view.plan.waiting.get(2, "") for view in site.views]
    assert any("capacity is withheld for it on c2" in why for why in reasons)
    paused = "its owner's jobs have used up withhold_limit_s; again possible in 150 s"
    assert any(f"no capacity is withheld for it: {paused}" in why for why in reasons)


@pytest.mark.long
def test_without_a_limit_they_do_as_in_the_paper() -> None:
    assert set(with_a_wide_job(None).slurm.in_use[2:]) == {28}
