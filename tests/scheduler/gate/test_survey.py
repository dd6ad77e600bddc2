"""What an observation of Slurm's jobs means: the orders that follow, the jobs to plan, and why the others wait."""

from dataclasses import fields, replace

import pytest
from gate_jobs import JOBS, gated_jobs, placed_jobs
from gate_jobs import NOW as GATES_NOW
from hypothesis import given
from hypothesis import strategies as st
from live import (
    ADVISED,
    ENFORCE,
    FOREIGN,
    GATE,
    HELD,
    NOW,
    SLURMS,
    SUBMIT,
    comment,
    job,
    look,
    pinned,
    planned,
    running,
    sent,
    situation,
    tried,
)

from slurm_sns.scheduler.gate.failed_placements import MOST_FAILURES, Try, failed, not_started
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.gate.leases import renewals
from slurm_sns.scheduler.gate.orders import OPEN, GateOrder, OrderKind
from slurm_sns.scheduler.gate.survey import survey
from slurm_sns.scheduler.observation import JobState

ADVISE, OBSERVE = replace(ENFORCE, mode="advise"), replace(ENFORCE, mode="observe")


def told(of) -> dict[int, str]:
    """Why each order is sent, by job id."""
    return {order.job_id: why for order, why in of.follow_ups}


# --- jobs that wait


@pytest.mark.parametrize(
    ("hindered", "why"),
    [
        (job(1, **HELD), "held (JobHeldUser)"),
        (job(1, priority=0), "held (priority 0)"),
        (job(1, waits_for_others=True), "waits for its dependency"),
        (job(1, reason="Dependency"), "waits for its dependency (Dependency)"),
        (job(1, reason="DependencyNeverSatisfied"), "waits for its dependency (DependencyNeverSatisfied)"),
        (job(1, admin_comment=comment(begin_s=int(NOW) + 60)), "may begin in 60 s"),
    ],
)
def test_a_gated_job_that_may_not_start_yet_waits_without_being_planned(hindered, why: str) -> None:
    seen = situation(look(hindered))
    assert (planned(seen), seen.blocked, seen.follow_ups) == ([], {1: why}, ())


@pytest.mark.parametrize("mark", [comment(), comment(begin_s=int(NOW)), comment(restarts=2)])
def test_a_gated_job_is_planned_once_its_owners_time_has_come(mark: str) -> None:
    assert planned(situation(look(job(1, admin_comment=mark, reason="BeginTime")))) == [1]


def test_a_job_in_its_back_off_waits_with_the_reason_of_its_last_failure() -> None:
    why = "Slurm did not start it: Resources"
    assert situation(look(job(1)), tried(1, retry_s=NOW + 20, note=why)).blocked == {1: f"{why}; tried again in 20 s"}


def test_a_clock_that_was_stepped_back_makes_no_pause_longer_than_the_longest() -> None:
    assert planned(situation(look(job(1)), tried(1, retry_s=NOW + 3600))) == [1]
    at_most = tried(1, retry_s=NOW + ENFORCE.backoff_max_s)
    assert planned(situation(look(job(1)), at_most)) == []
    assert planned(situation(look(job(1)), at_most, now_s=NOW + ENFORCE.backoff_max_s)) == [1]


def test_the_back_off_doubles_up_to_its_limit() -> None:
    pauses, before = [], None
    for _ in range(MOST_FAILURES):
        before = failed(job(1), before, "refused", ENFORCE, NOW)
        pauses.append(before.retry_s - NOW)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]
    assert before.failures == MOST_FAILURES


@pytest.mark.parametrize("reason", ["AssocMaxJobsLimit", "PartitionDown", "DependencyNeverSatisfied"])
def test_a_job_that_slurm_may_start_later_is_tried_ever_more_seldom_and_never_given_away(reason: str) -> None:
    known = None
    for _ in range(3 * MOST_FAILURES):
        known = not_started(pinned(1, "c1", reason=reason), known, ENFORCE, NOW)
        assert situation(look(job(1)), known).follow_ups == ()
    assert known.retry_s == NOW + ENFORCE.backoff_max_s
    assert known.note == f"placed on c1, but Slurm did not start it: {reason}"
    assert known.tried_s == NOW - 1, "when it was placed"


def test_a_job_whose_placements_fail_time_after_time_is_given_to_slurm() -> None:
    seen = situation(look(job(1)), tried(1, failures=MOST_FAILURES, note="Resources"))
    assert (planned(seen), sent(seen)) == ([], {1: "free"})
    assert told(seen)[1] == "left to Slurm after 8 placements failed: Resources"
    assert situation(look(job(1)), tried(1, failures=MOST_FAILURES - 1)).follow_ups == ()


@pytest.mark.parametrize(
    ("seen", "known"),
    [
        (job(1, submit_s=SUBMIT + 1), tried(1)),
        (job(2), tried(1)),
        (pinned(1, "c1", restarts=1), tried(1)),
        (running(1, "c1"), tried(1)),
        (job(1, **SLURMS), tried(1)),
        (job(1, **FOREIGN), tried(1)),
    ],
    ids=["another job with this id", "gone", "requeued", "started", "slurms", "foreign"],
)
def test_a_try_of_a_job_that_waits_for_us_no_more_is_forgotten(seen, known: Try) -> None:
    assert situation(look(seen), known).surveyed.tries == {}
    assert situation(look(job(1)), known).surveyed.tries == {1: known}


# --- the orders of the state table


@pytest.mark.parametrize(
    ("seen", "kind", "why"),
    [
        (
            pinned(1, "c1", noted={"placed_s": 0}, begin_s=0, reason="Resources"),
            "regate",
            "did not start it: Resources",
        ),
        (pinned(1, "c1", reason="AssocGrpCpuLimit"), "regate", "did not start it: AssocGrpCpuLimit"),
        (pinned(1, "c1", reason="BadConstraints", priority=0), "regate", "did not start it: BadConstraints"),
        (pinned(1, "c1", restarts=1), "regate", "requeued after it ran"),
        (pinned(1, "c1", begin_s=GATE), "regate", "only a part of the change"),
        (pinned(1, "c1", **HELD), "regate", "held after we placed it"),
        (pinned(1, "c1", begin_s=GATE + 9), "regate", "changed by its owner"),
        (pinned(1, "c1", pinned_to=("c2",)), "free", "changed by its owner"),
        (job(1, pinned_to=("c1",)), "free", "its owner asks for a node list"),
        (job(1, asks_for=("gres", "switches")), "free", "its owner asks for gres, switches"),
        (job(1, ways=3), "free", "its owner asks for gres"),
        (job(1, begin_s=SUBMIT), "free", "its owner opened or changed it"),
        (job(1, unreadable="gres cannot be read"), "free", "its record cannot be read: gres cannot be read"),
        (job(1, begin_s=GATE + 9), "renew", "waits for a begin time of its owner"),
        (job(1, begin_s=0, deadline_s=int(NOW) + 9), "free", "its deadline is near"),
        (running(1, "c1", priority=2_000_000_000), "unboost", ""),
    ],
)
def test_what_follows_from_the_status_of_a_job_is_sent_with_the_reason(seen, kind: str, why: str) -> None:
    found = situation(look(seen))
    assert sent(found) == {1: kind}
    assert why in told(found)[1]
    assert planned(found) == []


@pytest.mark.parametrize(
    "seen",
    [
        job(1),
        job(1, **HELD),
        pinned(1, "c1"),
        running(1, "c1"),
        job(1, begin_s=0),
        job(1, **FOREIGN),
        job(1, **SLURMS, **HELD),
        job(1, is_special=True),
        job(1, state=JobState.ENDED),
    ],
)
def test_nothing_follows_for_a_job_that_is_as_it_should_be_or_not_ours(seen) -> None:
    """A lapsed gate is among the renewals, which are sent first."""
    assert situation(look(seen)).follow_ups == ()


def test_a_job_that_is_not_ours_is_neither_planned_nor_shown_nor_touched() -> None:
    seen = situation(
        look(job(1, **FOREIGN), job(2, **SLURMS), job(3, state=JobState.ENDED), running(4, "c1", **SLURMS))
    )
    assert (planned(seen), seen.jobs, seen.follow_ups, seen.blocked) == ([], {}, (), {})


def test_the_owners_begin_time_becomes_the_gate_and_is_noted() -> None:
    own = int(NOW) + 5000
    ((order, _),) = situation(look(job(1, begin_s=own))).follow_ups
    assert (order.kind, order.begin_s, order.admin_comment) == (OrderKind.RENEW, own, f"sns:2 g={own} b={own}")


def test_a_job_that_slurm_has_opened_is_renewed_before_it_is_planned() -> None:
    seen = situation(look(job(1, begin_s=0)))
    assert (planned(seen), seen.blocked) == ([], {1: Status.LAPSED.value})
    ((renewed, gate_s),) = renewals([(seen.jobs[1], seen.statuses[1])], NOW, seen.surveyed.lease, 1.0)
    assert (renewed.id, gate_s > NOW + 3600) == (1, True)


# --- sns release


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (job(1), "free"),
        (job(1, **HELD), "free"),
        (job(1, begin_s=0), "free"),
        (pinned(1, "c1"), "free"),
        (job(1, array_id=1, array_tasks="0-9"), "free"),
        (job(1, **SLURMS), None),
        (running(1, "c1"), None),
    ],
)
def test_a_job_that_its_owner_gives_to_slurm_is_freed_if_it_waits(seen, kind: str | None) -> None:
    found = situation(look(seen, job(2)), asked={1})
    assert sent(found) == ({} if kind is None else {1: kind})
    assert planned(found) == [2], "only that job"
    for order, _ in found.follow_ups:
        assert "free=opened-by-its-owner" in order.admin_comment


# --- modes


def test_advise_plans_the_jobs_that_the_filter_has_marked_and_changes_none() -> None:
    marked = job(1, **ADVISED)
    seen = situation(look(marked, job(2, **FOREIGN), job(3, **SLURMS)), settings=ADVISE)
    assert (planned(seen), seen.follow_ups) == ([1], ())


@pytest.mark.parametrize(("mode", "marks"), [(OBSERVE, FOREIGN), (ADVISE, ADVISED)])
def test_advise_and_observe_plan_no_job_of_which_slurm_says_that_it_has_met_a_limit(mode, marks) -> None:
    limited = job(1, reason="QOSMaxCpuPerUserLimit", **marks)
    seen = situation(look(limited, job(2, reason="Priority", **marks)), settings=mode)
    assert planned(seen) == [2]
    assert seen.blocked == {1: "has met a limit (QOSMaxCpuPerUserLimit)"}


def test_observe_plans_plain_batch_jobs_of_our_partitions_as_if_they_were_ours() -> None:
    jobs = [
        job(1, **FOREIGN),
        job(2, **FOREIGN, **HELD),
        job(3, **FOREIGN, is_batch=False),
        job(4, **FOREIGN, asks_for=("constraint",)),
        job(5, **FOREIGN, pinned_to=("c1",)),
        job(6, **FOREIGN, partitions=("main", "other")),
        running(7, "c1", **FOREIGN),
        job(8, **{**FOREIGN, "begin_s": int(NOW) + 60}),
    ]
    seen = situation(look(*jobs), settings=OBSERVE)
    assert (planned(seen), set(seen.jobs), seen.follow_ups) == ([1], {1, 8}, ())
    assert seen.blocked == {8: "may begin in 60 s"}


@pytest.mark.parametrize("mode", [ADVISE, OBSERVE])
def test_what_enforce_left_gated_or_placed_is_given_to_slurm_in_the_other_modes(mode) -> None:
    jobs = (job(1), pinned(2, "c1"), job(3, **HELD), job(4, array_id=4, array_tasks="0-9"), job(5, begin_s=0))
    seen = situation(look(*jobs), settings=mode)
    assert sent(seen) == dict.fromkeys(range(1, 6), "free")
    assert all("free=mode-not-enforce" in order.admin_comment for order, _ in seen.follow_ups)
    assert seen.follow_ups[0][0].begin_s == OPEN
    assert planned(seen) == []


@pytest.mark.parametrize("mode", [ADVISE, OBSERVE])
def test_advise_and_observe_correct_nothing_that_users_did(mode) -> None:
    jobs = [
        job(1, **ADVISED, **HELD),
        job(2, **ADVISED, pinned_to=("c1",)),
        job(3, **ADVISED, array_id=3, array_task=1),
    ]
    assert situation(look(*jobs), settings=mode).follow_ups == ()


# --- properties

ANY = JOBS | gated_jobs() | placed_jobs()
ANY_TRIES = st.lists(st.builds(Try, st.integers(1, 9), st.sampled_from([0, GATES_NOW - 9000]), st.integers(0, 9)))
ARRAY = st.sampled_from(
    [{}, {}, {"array_id": 3, "array_tasks": "1-3,9..."}, {"array_id": 3, "array_task": 5, "array_limit": 1}]
)


@given(
    st.lists(ANY, max_size=6, unique_by=lambda each: each.id),
    st.lists(ARRAY, min_size=6, max_size=6),
    ANY_TRIES,
    st.sampled_from([ENFORCE, ADVISE, OBSERVE]),
    st.tuples(*[st.sets(st.integers(1, 9), max_size=2)] * 2),
)
def test_whatever_jobs_there_are_each_has_one_status_and_no_more_than_one_order(
    jobs, arrays, tries, mode, named
) -> None:
    asked, refused = named
    jobs = [replace(each, user_id=each.id, **array) for each, array in zip(jobs, arrays, strict=False)]
    known = {each.job_id: each for each in tries}
    seen = survey(jobs, known, mode, GATES_NOW, asked, refused=refused)
    assert seen == survey(jobs, known, mode, GATES_NOW, asked, refused=refused), "the same values give the same result"
    assert seen.statuses.keys() == {each.id for each in jobs}
    ordered = [order.job_id for order, _ in seen.follow_ups]
    assert len(ordered) == len(set(ordered))
    wanted = {each.id for each in seen.candidates}
    assert not wanted & set(ordered)
    assert not wanted & seen.blocked.keys()
    if mode is ENFORCE:
        assert all(seen.statuses[each] is Status.GATED for each in wanted)
    by_id = {each.id: each for each in jobs}
    for job_id, settled in seen.settled.items():  # what the situation looks at no further, because it holds nothing
        assert seen.statuses[job_id] is Status.GATED
        assert settled == by_id[job_id]
        assert settled.state is JobState.PENDING
        assert settled.begin_s > GATES_NOW
        assert not settled.allocated
        assert not settled.pinned_to
        assert not settled.is_completing
    for order, _ in seen.follow_ups:
        assert by_id[order.job_id].record is not None, "a job without our record is left alone"
    known = ((each, seen.statuses[each.id]) for each in seen.ours.values())
    assert all(gate_s > GATES_NOW for _, gate_s in renewals(known, GATES_NOW, seen.lease, 1.0))


def test_no_order_can_name_a_priority_a_nice_value_or_a_hold() -> None:
    assert not {field.name for field in fields(GateOrder)} & {"priority", "nice", "hold"}
