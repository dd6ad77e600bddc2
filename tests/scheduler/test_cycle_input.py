"""From an observation of Slurm to the jobs that can be planned, the capacity that is taken, and the corrections."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import (
    ENFORCE,
    NOW,
    SUBMIT,
    free,
    job,
    look,
    node,
    pinned,
    planned,
    record,
    rewritten,
    running,
    situation,
    tasks,
)

from slurm_sns.model import Release, Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.cycle_input import read_situation
from slurm_sns.scheduler.observe.follow_up import MOST_FAILURES, OWNER_RELEASED, Advise, Unpin
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import JobState, ObservedPartition, ObservedReservation
from slurm_sns.scheduler.observe.reconcile import reconcile
from slurm_sns.scheduler.observe.records import NO_MEMORY, JobRecord, OwnMemory, Stage, TakenBack

#: What is sent when an owner has released job 1.
ADVISED = (Advise(1, OWNER_RELEASED),)
WHOLE = {"memory_per_cpu_mb": None, "memory_per_node_mb": 128_000}

# --- free capacity


def test_what_slurm_has_allocated_is_not_free() -> None:
    seen = situation(look(running(1, "c1"), nodes=[node("c1", taken=(3, 3000)), node("c2")]))
    assert free(seen) == {"c1": (25, 125_000), "c2": (28, 128_000)}


def test_a_suspended_job_holds_its_memory_when_slurm_says_so() -> None:
    seen = situation(look(running(1, "c1"), nodes=[node("c1", taken=(0, 3000))]))
    assert free(seen) == {"c1": (28, 125_000)}


def test_a_placed_job_is_taken_before_slurm_starts_it() -> None:
    placed = pinned(1, "c1", tasks=3, nodes_max=None, tasks_per_node=3)
    assert free(situation(look(placed), record(1))) == {"c1": (25, 125_000), "c2": (28, 128_000)}


def test_an_overdue_job_still_counts_as_taken_because_it_may_start_before_it_is_unpinned() -> None:
    seen = situation(look(pinned(1, "c1")), record(1, placed_s=0))
    assert free(seen)["c1"] == (27, 127_000)
    assert planned(seen) == []


def test_a_job_that_is_split_by_slurm_counts_with_the_most_that_it_may_take_on_each_node() -> None:
    placed = pinned(1, "c1", "c2", tasks=16, nodes_min=2, nodes_max=2)
    assert free(situation(look(placed), record(1, nodes=("c1", "c2")))) == {"c1": (13, 113_000), "c2": (13, 113_000)}


@pytest.mark.parametrize(
    "held",
    [job(1, pinned_to=("c1",)), pinned(1, "c1", restarts=1), job(1, priority=9), pinned(1, "c9")],
    ids=["held by its owner", "requeued", "released by its owner", "on a node that is gone"],
)
def test_a_job_that_slurm_is_not_about_to_start_takes_nothing(held) -> None:
    assert free(situation(look(held), record(1))) == {"c1": (28, 128_000), "c2": (28, 128_000)}


def test_running_jobs_without_profile_are_taken_to_draw_bandwidth() -> None:
    profiled = replace(running(1, "c1"), cpus=8, bandwidth_gbps=40)
    both = node("c1", taken=(12, 3000))
    both = replace(
        both, capacity=both.capacity._replace(bandwidth_gbps=118), allocated=both.allocated._replace(bandwidth_gbps=40)
    )
    seen = read_situation(
        look(profiled, running(2, "c1"), nodes=[both]), {}, replace(ENFORCE, unmanaged_gbps_per_core=1.5), NOW
    )
    assert seen.snapshot.nodes[0].free.bandwidth_gbps == 118 - 40 - 6


def test_a_node_that_cannot_be_used_is_left_out_with_its_reason() -> None:
    seen = situation(look(job(1), nodes=[node("c1", unavailable="drain: disk"), node("c2")]))
    assert list(free(seen)) == ["c2"]
    assert seen.snapshot.unavailable == {"c1": "drain: disk"}
    assert planned(seen) == [1]


@pytest.mark.parametrize("since_s", [0, 1, 99])
def test_no_job_is_placed_on_a_node_on_which_a_job_is_completing(since_s) -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW - since_s))
    waiting = [job(number) for number in (1, 2)]
    plan = max_jobs(MatchingParameters()).plan(situation(look(ending, *waiting)).snapshot)
    assert [start.nodes for start in plan.starts] == [("c2",), ("c2",)]


def test_the_capacity_of_a_node_on_which_a_job_is_completing_is_coming() -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW))
    seen = situation(look(ending, nodes=[node("c1"), node("c2", unavailable="down")]))
    assert seen.snapshot.unavailable == {"c2": "down"}
    assert free(seen) == {"c1": (0, 0)}
    assert seen.snapshot.nodes[0].capacity.cores == 28


def test_a_job_of_two_nodes_keeps_the_free_one_while_a_job_is_completing_on_the_other() -> None:
    ending = replace(running(8, "c1"), is_completing=True, end_s=int(NOW))
    both = job(1, tasks=56, cpus=56, nodes_min=2, nodes_max=2)
    plan = max_jobs(MatchingParameters()).plan(situation(look(ending, both, tasks(2, 28))).snapshot)
    assert plan.starts == ()
    assert plan.report.withheld_for == (1,)


# --- which jobs may use which nodes


def reservation(start_s: float, end_s: float, *nodes: str) -> ObservedReservation:
    return ObservedReservation("maintenance", frozenset(nodes), int(start_s), int(end_s))


@pytest.mark.parametrize(
    ("walltime_s", "start_s", "end_s", "usable"),
    [
        (3600, NOW + 3599, NOW + 9999, {"c2"}),
        (3600, NOW + 3600, NOW + 9999, {"c1", "c2"}),
        (3600, NOW - 100, NOW + 1, {"c2"}),
        (3600, NOW - 100, NOW, {"c1", "c2"}),
        (None, NOW + 10**8, NOW + 10**9, {"c2"}),
    ],
    ids=["begins before the end", "begins after the end", "has begun", "is over", "no time limit"],
)
def test_nodes_reserved_before_the_job_would_end_are_not_for_it(walltime_s, start_s, end_s, usable) -> None:
    seen = situation(look(job(1, walltime_s=walltime_s), reservations=(reservation(start_s, end_s, "c1"),)))
    assert seen.snapshot.waiting[0].allowed == usable


def test_reservations_add_up() -> None:
    both = (reservation(0, NOW + 9, "c1"), reservation(NOW + 5, NOW + 9, "c2"))
    long, short = job(1), job(2, walltime_s=4)
    seen = situation(look(long, short, reservations=both))
    assert [each.allowed for each in seen.snapshot.waiting] == [frozenset(), {"c2"}]


MIXED = (node("c1"), node("c2"), node("s1", 4, 32_768), node("s2", 4, 32_768))


def test_a_job_may_use_the_nodes_of_its_partition_only() -> None:
    seen = situation(look(job(1), job(2, partitions=("small",)), nodes=MIXED))
    assert [each.allowed for each in seen.snapshot.waiting] == [{"c1", "c2"}, {"s1", "s2"}]


def test_a_job_of_one_node_may_use_any_node_of_its_partitions() -> None:
    seen = situation(look(tasks(1, 4, partitions=("main", "small")), nodes=MIXED))
    assert seen.snapshot.waiting[0].allowed == {"c1", "c2", "s1", "s2"}


def test_a_job_of_several_nodes_is_planned_in_one_of_its_partitions_because_slurm_runs_it_in_one() -> None:
    two = job(1, extra="sns:1 fixed", tasks=2, nodes_min=2, nodes_max=2, partitions=("small", "main"))
    large = replace(two, id=2, tasks=40, nodes_min=2, nodes_max=2)
    seen = situation(look(two, large, nodes=MIXED))
    assert [each.allowed for each in seen.snapshot.waiting] == [{"s1", "s2"}, {"c1", "c2"}]


# --- queue order


def test_an_over_aged_job_comes_first_and_the_oldest_of_them_before_all() -> None:
    old = NOW - 21_601
    jobs = [job(1, submit_s=int(NOW)), job(2, submit_s=int(old)), job(3, submit_s=int(old) - 5, nice=100)]
    seen = situation(look(*jobs))
    assert planned(seen) == [3, 2, 1]
    assert [each.over_aged for each in seen.snapshot.waiting] == [True, True, False]


def test_age_counts_from_when_the_job_could_begin() -> None:
    delayed = job(1, submit_s=5, begin_s=int(NOW) - 60)
    assert not situation(look(delayed)).snapshot.waiting[0].over_aged


def test_nobody_is_over_aged_without_an_age_limit() -> None:
    seen = situation(look(job(1, submit_s=0)), settings=replace(ENFORCE, age_limit_s=None))
    assert not seen.snapshot.waiting[0].over_aged


TIERS = (ObservedPartition("main", tier=1), ObservedPartition("urgent", tier=2))


def test_the_queue_goes_by_tier_then_qos_then_nice_then_submit_time() -> None:
    jobs = [
        job(1),
        job(2, submit_s=SUBMIT - 1),
        job(3, nice=-1),
        job(4, nice=5, qos="high"),
        job(5, nice=9, partitions=("urgent",)),
    ]
    nodes = [node("c1", partitions=frozenset({"main", "urgent"}))]
    seen = situation(look(*jobs, nodes=nodes, partitions=TIERS, qos_priorities=(("high", 10), ("normal", 0))))
    assert planned(seen) == [5, 4, 3, 2, 1]


def test_a_job_of_several_partitions_has_the_best_of_their_tiers() -> None:
    jobs = [job(1), job(2, partitions=("main", "urgent"))]
    assert planned(situation(look(*jobs, partitions=TIERS))) == [2, 1]


def test_a_placement_that_was_taken_back_does_not_leave_our_boost_in_the_queue_order() -> None:
    boosted = job(2, nice=-60_000)
    seen = situation(look(job(1), boosted), record(2, Stage.HELD, nice=0))
    assert planned(seen) == [1, 2]
    assert seen.records[2].nice == 0


def test_an_owner_who_changes_the_nice_of_a_waiting_job_moves_it() -> None:
    seen = situation(look(job(1, nice=50), job(2)), record(1, Stage.HELD, nice=0))
    assert planned(seen) == [2, 1]
    assert seen.records[1].nice == 50


def test_a_hint_for_a_heuristic_reaches_the_planner() -> None:
    seen = situation(look(job(1, extra="sns:1 heuristic=mix-fit")))
    assert seen.snapshot.waiting[0].heuristic == "mix-fit"


# --- shares


def test_a_project_uses_what_its_running_and_placed_jobs_hold() -> None:
    holds = Resources(4, 4000)
    jobs = [
        running(1, "c1", occupies=holds),
        pinned(2, "c1", occupies=holds),
        running(3, "c1", occupies=holds, extra="", account="chemistry"),
        job(4, occupies=holds),
    ]
    projects = situation(look(*jobs), record(2)).snapshot.projects
    assert {name: each.used for name, each in projects.items()} == {
        "physics": Resources(8, 8000),
        "chemistry": Resources(4, 4000),
    }


def test_shares_come_from_the_settings_or_else_from_slurm() -> None:
    told = replace(ENFORCE, shares={"physics": 3.0})
    seen = look(job(1), shares=(("physics", 7.0), ("biology", 2.0)))
    assert {name: each.share for name, each in situation(seen, settings=told).snapshot.projects.items()} == {
        "physics": 3.0
    }
    assert {name: each.share for name, each in situation(seen).snapshot.projects.items()} == {
        "physics": 7.0,
        "biology": 2.0,
    }


# --- jobs that cannot be planned now


@pytest.mark.parametrize(
    ("hindered", "why"),
    [
        (job(1, waits_for_others=True), "waits for its dependency"),
        (job(1, begin_s=int(NOW) + 60), "may begin in 60 s"),
    ],
)
def test_a_job_that_may_not_start_yet_waits_without_being_planned(hindered, why) -> None:
    seen = situation(look(hindered))
    assert (planned(seen), seen.blocked, seen.corrections) == ([], {1: why}, ())


def test_a_job_whose_begin_time_has_come_is_planned() -> None:
    assert planned(situation(look(job(1, begin_s=int(NOW))))) == [1]


def test_a_job_in_its_back_off_waits_with_the_reason_of_its_last_failure() -> None:
    failed = record(1, Stage.HELD, retry_s=NOW + 20, note="Slurm did not start it: Resources")
    assert situation(look(job(1)), failed).blocked == {1: "Slurm did not start it: Resources; tried again in 20 s"}


def test_a_clock_that_was_stepped_back_makes_no_pause_longer_than_the_longest() -> None:
    failed = record(1, Stage.HELD, retry_s=NOW + 3600, note="Slurm did not start it: Resources")
    assert planned(situation(look(job(1)), failed)) == [1]
    at_most = replace(failed, retry_s=NOW + ENFORCE.backoff_max_s)
    assert planned(situation(look(job(1)), at_most)) == []
    assert planned(situation(look(job(1)), failed, now_s=NOW + 20)) == [1]


@pytest.mark.parametrize(
    ("never", "why"),
    [
        (job(1, partitions=("small",)), "no node in partition small"),
        (job(1, partitions=("main", "plain")), "partition plain is not managed"),
        (
            job(1, extra="sns:1 fixed", nodes_min=1, nodes_max=3),
            "asks for 1 to 3 nodes: how many it gets is Slurm's choice",
        ),
    ],
)
def test_a_held_job_that_cannot_be_managed_after_all_is_given_to_slurm_with_the_reason(never, why) -> None:
    seen = situation(look(never))
    assert (planned(seen), seen.blocked) == ([], {1: why})
    assert seen.corrections == (Release(1, f"left to Slurm: {why}"),)
    again = situation(look(never), *seen.records.values())
    assert again.corrections == seen.corrections, "it is released again where Slurm refused the first time"
    free_now = situation(look(replace(never, priority=1000)), *seen.records.values())
    assert [each.stage for each in free_now.records.values()] == [Stage.RELEASED]
    assert (free_now.corrections, free_now.jobs) == (ADVISED, {})


def test_a_placed_job_takes_no_more_than_its_nodes_have_whatever_its_owner_wrote_since() -> None:
    huge = pinned(1, "c1", memory_per_cpu_mb=2**40, cpus_per_task=65_000, tasks=2**31, ways=2**24)
    seen = situation(look(huge, pinned(2, "c1", memory_per_cpu_mb=2**40)), record(1), record(2))
    assert free(seen) == {"c1": (-1, -128_000), "c2": (28, 128_000)}


def test_a_job_that_gets_all_memory_of_nodes_that_differ_in_it_is_slurms_choice() -> None:
    """With --mem=0, also if the owner sets it later, the memory of a job depends on the nodes that Slurm takes."""
    unlike = (node("c1"), node("c2", memory_mb=64_000))
    whole = job(1, memory_per_cpu_mb=None)
    assert planned(situation(look(whole))) == [1]
    (release,) = situation(look(whole, nodes=unlike)).corrections
    why = (
        "it gets all the memory of its nodes, and the nodes of its partitions differ in memory: Slurm must choose them"
    )
    assert release.reason.startswith(f"left to Slurm: {why}")


# --- records and corrections, by status


def test_a_new_job_of_ours_is_recorded_as_held() -> None:
    seen = situation(look(job(1, nice=7, restarts=2)))
    assert seen.records == {1: JobRecord(1, SUBMIT, Stage.HELD, nice=7, restarts=2)}
    assert seen.corrections == ()


def test_a_waiting_job_of_which_a_placement_is_recorded_is_planned_again() -> None:
    seen = situation(look(job(1)), record(1, nodes=("c1",), failures=2))
    assert planned(seen) == [1]
    assert (seen.records[1].stage, seen.records[1].nodes, seen.records[1].failures) == (Stage.HELD, (), 2)


def test_a_record_of_another_submission_with_the_same_number_is_forgotten() -> None:
    of_old = record(1, Stage.HELD, submit_s=5, failures=3, retry_s=NOW + 99)
    seen = situation(look(job(1)), of_old)
    assert planned(seen) == [1]
    assert seen.records[1] == JobRecord(1, SUBMIT, Stage.HELD)
    assert situation(look(job(1, extra="")), of_old).statuses[1] is JobStatus.FOREIGN


def test_a_job_that_its_owner_held_stays_held_without_its_placement() -> None:
    """With our boost, the owner could put the job before all others at any time, by releasing it."""
    seen = situation(look(job(1, pinned_to=("c1",), nice=-60_000)), record(1, nodes=("c1",), nice=7))
    why = "held by its owner after it was placed"
    assert (planned(seen), seen.corrections) == (
        [],
        (Unpin(1, 7, why, hold=False, was_held=True, checks_hold=True, mark="sns:1 advised"),),
    )
    assert (seen.records[1].stage, free(seen)["c1"]) == (Stage.OWNER_HELD, (28, 128_000))


def test_the_nice_value_that_its_owner_gives_a_placed_job_is_kept_when_the_placement_is_taken_back() -> None:
    seen = situation(look(job(1, pinned_to=("c1",), nice=10_000)), record(1, nodes=("c1",), nice=7))
    assert [each.nice for each in seen.corrections] == [10_000]


def test_a_placed_job_keeps_its_record() -> None:
    known = record(1, nodes=("c1",))
    seen = situation(look(pinned(1, "c1")), known)
    assert (seen.records, seen.corrections) == ({1: known}, ())


@pytest.mark.parametrize(("extra", "nice"), [("sns:1 nice=7", 7), ("sns:1", 0), ("sns:1 advised", 0)])
def test_a_job_that_runs_with_our_boost_and_without_a_record_gets_one_with_the_nice_of_its_owner(extra, nice) -> None:
    seen = situation(look(running(1, "c1", nice=-2_000_000_000, extra=extra)))
    assert seen.records == {1: JobRecord(1, SUBMIT, Stage.RUNNING, ("c1",), nice=nice)}
    assert situation(look(running(1, "c1", nice=-5, extra=""))).records == {}


def test_a_placed_job_without_a_record_gets_one_with_the_nice_of_its_owner() -> None:
    seen = situation(look(pinned(1, "c1", restarts=2)))
    assert seen.records == {1: JobRecord(1, SUBMIT, Stage.PLACED, ("c1",), NOW, restarts=2, nice=0)}


def test_an_overdue_job_is_unpinned_backs_off_and_keeps_the_reason_that_slurm_gives() -> None:
    seen = situation(look(pinned(1, "c1", reason="Resources")), record(1, placed_s=0, nice=3, failures=1))
    why = "placed on c1, but Slurm did not start it: Resources"
    assert seen.corrections == (Unpin(1, 3, why, checks_hold=True),)
    assert seen.records[1] == JobRecord(
        1, SUBMIT, Stage.HOLDING, ("c1",), placed_s=0, nice=3, failures=2, retry_s=NOW + 10, note=why
    )


def test_a_hold_of_ours_that_slurm_undid_is_set_once_more() -> None:
    """The backfill of Slurm 25.11 and before may write back a priority that it read before we held the job."""
    overdue = situation(look(pinned(1, "c1")), record(1, placed_s=0, nice=3))
    undone = job(1, priority=1500, nice=3)
    again = situation(look(undone), *overdue.records.values(), now_s=NOW + 1)
    assert again.corrections == (Unpin(1, 3, "Slurm undid our hold"),)
    assert planned(again) == []
    held = situation(look(job(1, nice=3)), *again.records.values(), now_s=NOW + 20)
    assert planned(held) == [1]
    released = situation(look(undone), *again.records.values(), now_s=NOW + 2)
    assert (released.corrections, released.records[1].stage) == (ADVISED, Stage.RELEASED), "then it was its owner"


MEMORY_GIVEN = {"given_memory_mb": 128_000, "memory_per_cpu_mb": 500}


@pytest.mark.parametrize(("shown_mb", "restored"), [(128_000, OwnMemory(500, None)), (None, NO_MEMORY)])
def test_the_memory_0_that_an_owner_writes_into_a_job_with_whole_nodes_stays(shown_mb, restored: OwnMemory) -> None:
    """pyslurm shows None for MinMemoryNode=0, the whole memory of each node."""
    placed = pinned(1, "c1", memory_per_cpu_mb=None, memory_per_node_mb=shown_mb)
    (unpin,) = situation(look(placed), record(1, placed_s=0, **MEMORY_GIVEN)).corrections
    assert unpin.own_memory == restored


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_mode_that_holds_nothing_holds_no_job_once_more(mode: str) -> None:
    undone = job(1, priority=1500)
    seen = situation(look(undone), record(1, Stage.HOLDING), settings=replace(ENFORCE, mode=mode))
    assert (seen.corrections, seen.records[1].stage) == ((), Stage.RELEASED)


def test_a_hold_of_an_administrators_that_came_between_is_theirs_to_release() -> None:
    held = situation(look(job(1, reason="JobHeldAdmin")), record(1, Stage.HOLDING))
    assert held.records[1].stage is Stage.HELD
    released = situation(look(job(1, priority=1500)), *held.records.values(), now_s=NOW + 9000)
    assert (released.corrections, released.records[1].stage) == (ADVISED, Stage.RELEASED)


def test_a_job_that_its_owner_releases_after_the_look_that_saw_it_held_is_slurms() -> None:
    overdue = situation(look(pinned(1, "c1")), record(1, placed_s=0))
    held = situation(look(job(1)), *overdue.records.values(), now_s=NOW + 1)
    released = situation(look(job(1, priority=1500)), *held.records.values(), now_s=NOW + 2)
    assert (released.corrections, released.records[1].stage) == (ADVISED, Stage.RELEASED)


def test_the_back_off_doubles_up_to_its_limit() -> None:
    pauses = []
    for failures in range(MOST_FAILURES):
        seen = situation(look(pinned(1, "c1")), record(1, placed_s=0, failures=failures))
        pauses.append(seen.records[1].retry_s - NOW)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_job_whose_placements_fail_time_after_time_is_given_to_slurm() -> None:
    failed = record(1, Stage.HELD, failures=MOST_FAILURES, note="Resources")
    seen = situation(look(job(1)), failed)
    assert planned(seen) == []
    assert seen.corrections == (Release(1, "left to Slurm after 8 placements that failed: Resources"),)
    assert situation(look(job(1)), replace(failed, failures=MOST_FAILURES - 1)).corrections == ()


@pytest.mark.parametrize("reason", ["AssocMaxJobsLimit", "QOSMaxCpuPerUserLimit", "PartitionDown"])
def test_a_job_at_a_limit_that_passes_is_tried_ever_more_seldom_and_never_given_away(reason: str) -> None:
    pauses, known = [], record(1, placed_s=0)
    for _ in range(3 * MOST_FAILURES):
        known = situation(look(pinned(1, "c1", reason=reason)), known).records[1]
        pauses.append(known.retry_s - NOW)
        assert situation(look(job(1)), known).corrections == ()
        known = replace(known, stage=Stage.PLACED)
    assert pauses == [5, 10, 20, 40, 80, 160] + [300] * (3 * MOST_FAILURES - 6)
    assert known.note == f"placed on c1, but Slurm did not start it: {reason}"


@pytest.mark.parametrize(
    ("job", "note"), [(pinned(1, "c1"), "placed on c1"), (pinned(1, "c1", restarts=1), "requeued")]
)
def test_an_unpin_that_did_not_reach_slurm_is_sent_again_and_counts_once(job, note: str) -> None:
    after = situation(look(job), record(1, placed_s=0))
    again = situation(look(job), *after.records.values(), now_s=NOW + 1)
    assert again.corrections == after.corrections
    assert again.records == after.records
    assert again.corrections[0].reason.startswith(note)


def test_a_requeued_job_is_unpinned_and_starts_afresh() -> None:
    seen = situation(look(pinned(1, "c1", restarts=1)), record(1, nice=3, failures=4, retry_s=NOW + 99))
    assert seen.corrections == (Unpin(1, 3, "requeued", checks_hold=True),)
    assert (seen.records[1].stage, seen.records[1].restarts, seen.records[1].failures) == (Stage.HOLDING, 1, 0)
    held_again = situation(look(job(1, restarts=1)), *seen.records.values())
    assert planned(held_again) == [1]


def test_a_requeued_job_is_known_again_though_slurm_gives_it_a_new_submit_time() -> None:
    requeued = pinned(1, "c1", restarts=1, submit_s=SUBMIT + 50)
    seen = situation(look(requeued), record(1, nice=3))
    assert (seen.corrections, seen.records[1].submit_s) == ((Unpin(1, 3, "requeued", checks_hold=True),), SUBMIT + 50)
    held_again = situation(look(replace(requeued, priority=0, nice=3, pinned_to=())), *seen.records.values())
    assert held_again.records == {1: replace(seen.records[1].without_nodes(), stage=Stage.HELD)}


def test_a_job_that_its_owner_released_is_slurms() -> None:
    seen = situation(look(job(1, priority=1000)), record(1, Stage.HELD))
    assert (planned(seen), seen.jobs, seen.corrections) == ([], {}, ADVISED), "as its mark says from now on"
    held_again = situation(look(job(1)), *seen.records.values())
    assert (planned(held_again), held_again.jobs, held_again.corrections) == ([], {}, ()), "and it is their hold"


@pytest.mark.parametrize(
    "seen_as", [{"priority": 1000}, {"state": JobState.RUNNING}, {"state": JobState.ENDED}], ids=str
)
def test_a_job_that_was_given_to_slurm_is_ours_again_once_slurmctld_has_lost_that(seen_as) -> None:
    """A slurmctld that is killed goes on from an earlier state, in which the filter holds the job (seen)."""
    given = situation(look(job(1, extra="sns:1 advised", **seen_as)), record(1, Stage.RELEASED, nodes=()))
    lost = situation(look(job(1)), *given.records.values())
    assert (planned(lost), lost.records[1].stage, lost.records[1].is_noted) == ([1], Stage.HELD, False)
    held = situation(look(job(1, extra="sns:1 advised")), *given.records.values())
    assert (planned(held), held.corrections) == ([], ()), "a later hold is its owner's"


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING])
def test_a_hold_that_follows_a_look_at_a_free_job_whose_mark_says_slurms_no_longer_is_its_owners(state) -> None:
    """Under the kill switch the word is not written into the mark again."""
    known = record(1, Stage.RELEASED, nodes=(), is_noted=True)
    rewritten = situation(look(job(1, priority=1000, state=state, extra="sns:1 nice=7")), known)
    held = situation(look(job(1, extra="sns:1 nice=7")), *rewritten.records.values())
    assert (planned(held), held.corrections) == ([], ())


def test_a_job_without_a_record_that_carries_our_boost_has_its_owners_nice_value_on_record() -> None:
    waiting = situation(look(job(1, nice=-2_000_000_000, extra="sns:1 nice=7")))
    assert waiting.records[1].nice == 7
    held = pinned(1, "c1", priority=0, reason="BadConstraints", extra="sns:1 nice=7 advised")
    changed = situation(look(held))
    assert (changed.records[1].nice, changed.records[1].nodes) == (7, ("c1",))


def test_a_placement_that_slurmctld_has_gone_back_to_is_taken_off_the_job() -> None:
    """Our record knows of no nodes any more; left on the job, they would be all that it may run on."""
    seen = situation(look(pinned(1, "c1")), record(1, Stage.HELD))
    assert [(each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, 0)]


def test_a_placed_job_that_its_owner_held_keeps_no_memory_of_ours_when_slurmctld_has_lost_that_it_was_taken_back() -> (
    None
):
    known = record(1, Stage.OWNER_HELD, memory_per_cpu_mb=500, given_memory_mb=128_000, is_noted=True)
    seen = situation(look(pinned(1, "c1", priority=0, **WHOLE)), known)
    assert [each.own_memory.per_cpu_mb for each in seen.corrections] == [500]


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin"])
def test_a_placed_job_that_slurmctld_has_gone_back_to_holding_loses_its_placement_and_stays_held(reason: str) -> None:
    known = record(1, Stage.RELEASED, nodes=(), is_noted=True)
    seen = situation(look(pinned(1, "c1", priority=0, reason=reason)), known)
    assert [(each.hold, each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, False, 0)]
    assert planned(seen) == []


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin"])
def test_a_hold_that_somebody_set_and_lifted_before_we_looked_is_theirs_when_slurmctld_goes_back_to_it(
    reason: str,
) -> None:
    """We hold no job that still has our nodes and our boost."""
    known = situation(look(job(1)), record(1, Stage.HOLDING)).records[1]
    held = situation(look(pinned(1, "c1", priority=0, reason=reason)), known)
    assert [(each.hold, each.keeps_nodes, each.nice) for each in held.corrections] == [(False, False, 0)]
    kept = situation(look(job(1, extra="sns:1 advised", reason=reason)), *held.records.values())
    assert (planned(kept), kept.corrections) == ([], ())
    impossible = situation(look(pinned(1, "c1", priority=0, reason="BadConstraints")), known)
    assert [each.hold for each in impossible.corrections] == [True]


def taken_back_from(**placed) -> JobRecord:
    """The record of job 1, held again after its placement on c1, and after its requeue."""
    requeued = situation(look(pinned(1, "c1", restarts=1, submit_s=SUBMIT + 50)), record(1, **placed))
    return situation(look(job(1, restarts=1, submit_s=SUBMIT + 50)), *requeued.records.values()).records[1]


def test_a_requeued_job_that_slurmctld_has_gone_back_to_releasing_is_held_again_without_its_placement() -> None:
    """It runs with its own nice value, so only our record tells our nodes from its owner's."""
    known = taken_back_from(memory_per_cpu_mb=500, given_memory_mb=128_000)
    free = pinned(1, "c1", nice=0, restarts=1, submit_s=SUBMIT + 50, **WHOLE)
    seen = situation(look(free), known)
    assert [(each.hold, each.keeps_nodes, each.own_memory.per_cpu_mb) for each in seen.corrections] == [
        (True, False, 500)
    ]
    assert planned(situation(look(job(1, restarts=1, submit_s=SUBMIT + 50)), *seen.records.values())) == [1]


@pytest.mark.parametrize(
    "chosen",
    [{"pinned_to": ("c2",), "priority": 1000}, {"pinned_to": ("c1",)}],
    ids=["other nodes", "the same nodes, and held"],
)
def test_a_node_list_that_slurmctld_cannot_have_gone_back_to_is_its_owners(chosen: dict) -> None:
    seen = situation(look(job(1, restarts=1, submit_s=SUBMIT + 50, **chosen)), taken_back_from())
    assert [each for each in seen.corrections if isinstance(each, Unpin) and not each.keeps_nodes] == []


def test_nodes_that_its_owner_gave_a_placed_job_stay_when_slurmctld_goes_back_to_our_boost() -> None:
    left = situation(look(job(1, priority=1000, pinned_to=("c2",), extra="sns:1 advised")), record(1, Stage.RELEASED))
    seen = situation(look(pinned(1, "c2")), *left.records.values())
    assert [(each.hold, each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, True, 0)]


#: The job as it was on c1 after its requeue: with its own nice value.
ON_ITS_NODES_BEFORE = pinned(1, "c1", nice=0, restarts=1, submit_s=SUBMIT + 50)


@pytest.mark.parametrize("placed_s", [NOW, 0], ids=["placed again", "being taken back"])
def test_the_placement_of_a_requeued_job_before_its_last_one_is_taken_back_once_slurmctld_has_gone_back_to_it(
    placed_s: float,
) -> None:
    known = replace(taken_back_from(), stage=Stage.PLACED, nodes=("c2",), placed_s=placed_s)
    last = situation(look(replace(ON_ITS_NODES_BEFORE, pinned_to=("c2",), nice=-2_000_000_000)), known)
    seen = situation(look(ON_ITS_NODES_BEFORE), *last.records.values())
    later = situation(look(ON_ITS_NODES_BEFORE), *seen.records.values(), now_s=NOW + 60)
    assert [(each.hold, each.keeps_nodes) for each in later.corrections] == [(True, False)]


@pytest.mark.parametrize("nice", [50, -2_000_000_000])
def test_the_nodes_of_an_earlier_placement_are_its_owners_where_the_job_has_another_nice_value(nice: int) -> None:
    known = replace(taken_back_from(), stage=Stage.PLACED, nodes=("c2",), placed_s=NOW)
    seen = situation(look(replace(ON_ITS_NODES_BEFORE, nice=nice)), known)
    assert seen.statuses[1] in (JobStatus.RELEASED, JobStatus.CHANGED)
    assert [each for each in seen.corrections if isinstance(each, Unpin) and not each.keeps_nodes] == []


@pytest.mark.parametrize("stage", [Stage.HOLDING, Stage.HELD])
def test_an_earlier_placement_that_slurmctld_has_gone_back_to_is_taken_back(stage: Stage) -> None:
    """Slurm did not start the job on c1, and before that not on c2."""
    known = record(1, stage, nodes=("c1",), restarts=1, taken_back=TakenBack(("c2",)))
    if stage is Stage.HELD:
        known = situation(look(job(1, restarts=1)), known).records[1]
    seen = situation(look(pinned(1, "c2", restarts=1)), known)
    assert [(each.hold, each.keeps_nodes) for each in seen.corrections] == [(True, False)]


@pytest.mark.parametrize("stage", [Stage.RELEASED, Stage.OWNER_HELD])
def test_a_placed_job_with_its_own_nice_value_that_slurmctld_has_gone_back_to_holding_loses_its_placement(
    stage: Stage,
) -> None:
    left = situation(look(job(1, extra="sns:1 advised")), record(1, stage))
    seen = situation(look(pinned(1, "c1", nice=50, priority=0)), *left.records.values())
    assert [(each.hold, each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, False, 50)]


@pytest.mark.parametrize("submitted_s", [SUBMIT, SUBMIT + 60], ids=["not requeued", "requeued again"])
def test_a_job_is_known_though_slurmctld_has_lost_its_requeue(submitted_s: int) -> None:
    known = taken_back_from(memory_per_cpu_mb=500, given_memory_mb=128_000)
    if submitted_s == SUBMIT:
        again = replace(running(1, "c1", pinned_to=("c1",), nice=-2_000_000_000), **WHOLE)
        known = situation(look(again), known).records[1]
        assert (known.stage, known.restarts, known.difference) == (Stage.RUNNING, 0, "")
    requeued = situation(look(pinned(1, "c1", restarts=1, submit_s=SUBMIT + 60, **WHOLE)), known)
    assert [(each.hold, each.own_memory.per_cpu_mb) for each in requeued.corrections] == [(True, 500)]


def test_a_job_is_known_though_slurmctld_has_lost_its_requeue_and_the_clock_was_set_back_before_that() -> None:
    known = situation(look(pinned(1, "c1", restarts=1, submit_s=SUBMIT - 60)), record(1)).records[1]
    again = situation(look(running(1, "c1", pinned_to=("c1",))), known).records[1]
    assert (again.nodes, again.restarts, again.submit_s) == (("c1",), 0, SUBMIT)
    requeued = situation(look(pinned(1, "c1", restarts=1, submit_s=SUBMIT - 50)), again)
    assert [(each.hold, each.keeps_nodes) for each in requeued.corrections] == [(True, False)]


@pytest.mark.parametrize(
    ("restarts", "submitted_s", "status"),
    [(0, SUBMIT, JobStatus.PLACED), (1, SUBMIT + 60, JobStatus.PLACED), (1, SUBMIT + 50, JobStatus.RELEASED)],
    ids=["requeue lost", "requeued again", "its owner's nodes"],
)
def test_a_placement_that_came_after_a_requeue_is_lost_with_it(
    restarts: int, submitted_s: int, status: JobStatus
) -> None:
    """The job was placed on c1, requeued, and placed on c2; slurmctld has gone back to its first placement."""
    known = replace(taken_back_from(), stage=Stage.RUNNING, nodes=("c2",))
    seen = situation(look(pinned(1, "c1", nice=0, restarts=restarts, submit_s=submitted_s)), known)
    assert seen.statuses[1] is status
    if status is JobStatus.PLACED:
        assert seen.records[1].nodes == ("c1",)


def test_the_record_of_an_earlier_job_with_the_same_id_is_not_taken_for_an_earlier_run() -> None:
    later = situation(look(job(1, submit_s=SUBMIT + 60)), replace(taken_back_from(), failures=3))
    assert later.records[1].failures == 0


def test_a_requeued_job_whose_owner_overwrote_its_mark_and_cleared_our_nodes_loses_our_nice_value() -> None:
    requeued = pinned(1, extra="mine", restarts=1, submit_s=SUBMIT + 60)
    seen = situation(look(requeued), record(1, nodes=("c1",), nice=50))
    assert [(each.hold, each.nice) for each in seen.corrections] == [(False, 50)]


def test_a_job_that_completes_for_its_requeue_ran_where_we_put_it_though_its_owner_gives_it_other_nodes() -> None:
    completing = replace(running(1, "c1", pinned_to=("c2",), nice=-60_000, restarts=1), is_completing=True)
    known = situation(look(completing), record(1, nodes=("c1",), nice=50)).records[1]
    assert (known.stage, known.nodes) == (Stage.RUNNING, ("c1",))
    requeued = situation(look(pinned(1, "c2", restarts=1, submit_s=SUBMIT + 60, priority=0)), known)
    assert [(each.hold, each.keeps_nodes, each.nice) for each in requeued.corrections] == [(False, True, 50)]


@pytest.mark.parametrize(("restarts", "is_ours_again"), [(0, True), (1, False)])
def test_a_hold_of_a_job_that_has_run_since_it_was_given_to_slurm_is_its_owners(
    restarts: int, is_ours_again: bool
) -> None:
    """slurmctld has lost our word in its mark; but a job that runs is no longer held by us."""
    left = situation(look(job(1, extra="sns:1 advised", priority=9)), record(1, Stage.RELEASED))
    lost = situation(look(job(1, restarts=restarts)), *left.records.values())
    assert (planned(lost) == [1]) == is_ours_again


def test_nodes_that_came_back_with_a_requeue_that_slurmctld_lost_are_ours_though_the_job_was_released_since() -> None:
    known = situation(look(job(1, restarts=1, submit_s=SUBMIT + 50, priority=9)), taken_back_from())
    again = pinned(1, "c1", nice=0, restarts=1, submit_s=SUBMIT + 60)
    seen = situation(look(again), *known.records.values())
    assert [(each.hold, each.keeps_nodes) for each in seen.corrections if isinstance(each, Unpin)] == [(False, False)]


@pytest.mark.parametrize(("extra", "holds"), [("sns:1", [True]), ("mine", [])])
def test_a_job_that_slurm_found_impossible_again_is_held_for_us_only_if_its_mark_is_ours(
    extra: str, holds: list[bool]
) -> None:
    known = record(1, Stage.HOLDING, nodes=("c1",))
    seen = situation(look(job(1, extra=extra, reason="BadConstraints")), known)
    assert [each.hold for each in seen.corrections] == holds


def test_a_placement_is_known_again_where_slurmctld_goes_back_after_the_mark_was_seen_without_our_word() -> None:
    owners = situation(look(job(1, extra="sns:1 advised", restarts=1)), record(1, Stage.OWNER_HELD, nodes=("c1",)))
    ours = situation(look(job(1, restarts=1)), *owners.records.values())
    assert planned(ours) == [1]
    back = situation(look(pinned(1, "c1", nice=0, restarts=1, submit_s=SUBMIT + 60)), *ours.records.values())
    assert [(each.hold, each.keeps_nodes) for each in back.corrections] == [(True, False)]


@pytest.mark.parametrize(("extra", "is_ours"), [("mine", True), ("sns:1", False)])
def test_a_held_task_with_a_mark_was_split_off_before_its_array_was_released_without_one(
    extra: str, is_ours: bool
) -> None:
    """One that was split off since would have the array's own text; with a mark, its owner may have held it since."""
    array = job(1, array_id=1, array_tasks="0-1", extra=extra, priority=900)
    task = job(5, array_id=1, array_task=3)
    seen = situation(look(array, task), record(1, Stage.RELEASED))
    assert (seen.statuses[5] is JobStatus.WAITING) == is_ours


def test_a_task_without_a_mark_keeps_its_nodes_where_those_of_its_array_count_as_ours() -> None:
    """The owner had written a mark into the array by hand, after some of its tasks had started."""
    array = pinned(1, "c2", array_id=1, array_task=0, extra="sns:1 advised", nice=0, restarts=1)
    task = job(5, extra="", array_id=1, array_task=1, priority=900, pinned_to=("c2",), restarts=1)
    seen = situation(look(array, task), record(1, Stage.RELEASED, nodes=("c2",), restarts=1))
    assert [each.job_id for each in seen.corrections if isinstance(each, Unpin)] == [1]


@pytest.mark.parametrize("stage", [None, Stage.HELD, Stage.RUNNING, Stage.RELEASED, Stage.OWNER_HELD])
@pytest.mark.parametrize("reason", ["job requeued in held state", "job requeued in special exit state"])
def test_a_job_that_was_requeued_and_held_in_one_command_stays_held(stage: Stage | None, reason: str) -> None:
    held = job(1, restarts=1, submit_s=SUBMIT + 60, reason=reason)
    records = () if stage is None else (record(1, stage, is_noted=stage is Stage.RELEASED),)
    seen = situation(look(held), *records)
    again = situation(look(held), *seen.records.values())
    assert (planned(seen), planned(again), seen.corrections, again.corrections) == ([], [], (), ())
    freed = situation(look(replace(held, priority=900, reason="")), *again.records.values())
    assert freed.statuses[1] is JobStatus.RELEASED


def test_a_placed_job_that_was_requeued_and_held_loses_its_placement_and_stays_held() -> None:
    held = pinned(1, "c1", priority=0, restarts=1, submit_s=SUBMIT + 60, reason="job requeued in held state")
    seen = situation(look(held), record(1, Stage.RUNNING, nodes=("c1",)))
    assert [(each.hold, each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, False, 0)]


def test_a_placed_job_without_a_record_whose_owner_clears_its_nodes_loses_our_boost() -> None:
    seen = situation(look(job(1, nice=-60_000, priority=900)))
    assert (seen.statuses[1], [each.nice for each in seen.corrections]) == (JobStatus.CHANGED, [0])


@pytest.mark.parametrize(("priority", "status"), [(0, JobStatus.WAITING), (900, JobStatus.RELEASED)])
def test_our_hold_that_met_a_job_which_had_just_started_is_ours_after_its_requeue(
    priority: int, status: JobStatus
) -> None:
    """The answer to the look that would have ended the hold was lost."""
    seen = situation(look(running(1, "c1", priority=priority, pinned_to=())), record(1, Stage.HOLDING))
    requeued = job(1, restarts=1, submit_s=SUBMIT + 60)
    assert situation(look(requeued), *seen.records.values()).statuses[1] is status


def test_a_task_that_its_owner_split_off_with_the_nodes_of_the_arrays_placement_keeps_them() -> None:
    last = pinned(1, "c1", array_id=1, array_task=0)
    task = job(5, extra="mine", array_id=1, array_task=1, pinned_to=("c1",))
    seen = situation(look(last, task), record(1, nodes=("c1",), placed_s=NOW))
    assert [type(each) for each in seen.corrections] == [Release]
    assert (seen.statuses[5], seen.records[5].nodes) == (JobStatus.MARK_LOST, ())


@pytest.mark.parametrize(("nodes", "keeps"), [(("c1",), [False]), (("c2",), [])])
def test_a_job_of_ours_that_slurm_found_impossible_on_its_last_nodes_is_placed_again(
    nodes: tuple[str, ...], keeps: list[bool]
) -> None:
    """Slurm tries no job that we hold: slurmctld has gone back. Without our nice value, other nodes are its owner's."""
    held = situation(look(job(1)), record(1, Stage.HOLDING, nodes=("c1",)))
    seen = situation(look(pinned(1, *nodes, nice=100, priority=0, reason="BadConstraints")), *held.records.values())
    assert [each.keeps_nodes for each in seen.corrections if isinstance(each, Unpin)] == keeps


def test_a_task_without_a_mark_that_was_given_to_slurm_is_slurms_after_its_requeue() -> None:
    """It does not look like a task that we have split off, and whose mark its owner has overwritten."""
    array = job(1, array_id=1, array_tasks="0-1")
    requeued = job(5, extra="", array_id=1, array_task=3, restarts=1, submit_s=SUBMIT + 60)
    seen = situation(look(array, requeued), record(1, Stage.HELD), record(5, Stage.RELEASED))
    assert (seen.statuses[5], seen.corrections) == (JobStatus.RELEASED, ())


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("stage", [Stage.PLACED, Stage.RUNNING, Stage.RELEASED])
def test_a_new_job_with_the_id_of_one_that_slurmctld_has_lost_is_its_owners(stage: Stage, restarts: int) -> None:
    """It may have been requeued, and the clock set back, before we look."""
    known = record(1, stage, nodes=("c1",), restarts=1 - restarts)
    new = job(1, extra="", restarts=restarts, submit_s=SUBMIT + 60 if restarts else SUBMIT - 60)
    seen = situation(look(new), known)
    status = JobStatus.RELEASED if stage is Stage.RELEASED else JobStatus.FOREIGN  # both are left to Slurm
    assert (seen.statuses[1], seen.corrections) == (status, ())


def test_a_requeued_job_whose_owner_overwrote_its_mark_and_cleared_our_nodes_loses_our_memory() -> None:
    requeued = job(1, extra="mine", priority=900, restarts=1, submit_s=SUBMIT + 60, **WHOLE)
    known = record(1, Stage.RUNNING, nodes=("c1",), memory_per_cpu_mb=500, given_memory_mb=128_000)
    seen = situation(look(requeued), known)
    assert [(each.hold, each.own_memory.per_cpu_mb) for each in seen.corrections] == [(False, 500)]


def test_a_requeued_job_without_a_mark_that_was_given_to_slurm_stays_slurms_when_its_owner_writes_one() -> None:
    requeued = job(1, extra="", restarts=1, submit_s=SUBMIT + 60)
    seen = situation(look(requeued), record(1, Stage.RELEASED))
    again = situation(look(replace(requeued, extra="sns:1")), *seen.records.values())
    assert (planned(again), again.corrections) == ([], ())


@pytest.mark.parametrize(("reason", "keeps"), [("JobHeldUser", False), ("BadConstraints", True)])
def test_nodes_of_the_owners_that_slurm_found_impossible_are_no_earlier_placement(reason: str, keeps: bool) -> None:
    changed = pinned(1, "c2", priority=0, reason=reason)
    held = situation(look(job(1)), record(1, Stage.HOLDING, nodes=("c1",)))
    seen = situation(look(changed), *held.records.values())
    assert [each.keeps_nodes for each in seen.corrections if isinstance(each, Unpin)] == [keeps]


def test_nodes_that_the_owner_gives_before_the_placement_is_taken_back_stay() -> None:
    """slurmctld was down when we were about to take it back."""
    changed = pinned(1, "c1", "c2", reason="AssocGrpCpuLimit")
    seen = situation(look(changed), record(1, Stage.HOLDING, nodes=("c1",)))
    assert [(each.hold, each.keeps_nodes) for each in seen.corrections] == [(False, True)]


def test_words_of_marks_are_sent_after_everything_else() -> None:
    released, overdue = job(1, priority=9), pinned(2, "c1")
    seen = situation(look(released, overdue), record(1, Stage.HELD), record(2, placed_s=0))
    assert [each.job_id for each in seen.corrections] == [2, 1]


def test_a_suspended_job_that_its_owner_released_is_left_alone() -> None:
    suspended = replace(job(1, priority=9), state=JobState.SUSPENDED, allocated=("c1",))
    assert situation(look(suspended), record(1, Stage.HELD)).corrections == ()


def test_a_placed_job_that_its_owner_held_is_ours_again_once_slurmctld_has_lost_both() -> None:
    left = situation(look(job(1, extra="sns:1 advised")), record(1, Stage.OWNER_HELD))
    lost = situation(look(job(1)), *left.records.values())
    assert (planned(lost), lost.records[1].stage, lost.records[1].is_noted) == ([1], Stage.HELD, False)


@pytest.mark.parametrize(
    ("seen_as", "is_ours_again"),
    [
        ({}, True),
        ({"pinned_to": ("c1",)}, False),
        ({"pinned_to": ("c2",), "restarts": 1}, False),
        ({"nice": -60_000}, False),
        (WHOLE, False),
    ],
    ids=["as we held it", "our nodes", "nodes of the run before", "our nice value", "our memory"],
)
def test_a_job_that_its_owner_held_is_ours_again_once_slurmctld_has_lost_its_placement(
    seen_as: dict, is_ours_again: bool
) -> None:
    """Its placement was never taken back, so that slurmctld must have lost it; a part of it shows that it has not."""
    known = record(1, Stage.OWNER_HELD, memory_per_cpu_mb=500, given_memory_mb=128_000)
    assert planned(situation(look(job(1, **seen_as)), known)) == [1] * is_ours_again


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_job_with_nodes_of_its_owners_is_given_to_slurm_again_once_slurmctld_has_lost_that_it_was(
    restarts: int,
) -> None:
    known = record(1, Stage.RELEASED, nodes=("c1",), restarts=restarts, is_noted=True)
    lost = situation(look(job(1, pinned_to=("c3",), restarts=restarts)), known)
    assert lost.corrections == (Release(1, "left to Slurm: its owner asks for a node list", ("c3",)),)
    held = situation(look(job(1, pinned_to=("c3",), restarts=restarts, extra="sns:1 advised")), known)
    assert held.corrections == (), "a later hold is its owner's"


@pytest.mark.parametrize("stage", [Stage.RELEASED, Stage.OWNER_HELD])
def test_a_node_list_that_is_written_after_ours_was_taken_back_is_its_owners(stage: Stage) -> None:
    priority = 1000 if stage is Stage.RELEASED else 0
    without = situation(look(job(1, priority=priority, extra="sns:1 advised")), record(1, stage))
    chosen = pinned(1, "c1", nice=0, priority=priority, extra="sns:1 advised")
    for seen in (chosen, replace(chosen, priority=1000)):
        again = situation(look(seen), *without.records.values())
        assert [each for each in again.corrections if not each.keeps_nodes] == []


def test_a_held_job_whose_owner_overwrote_the_mark_is_released_until_it_is_free() -> None:
    overwritten = job(1, extra="mine")
    seen = situation(look(overwritten), record(1, Stage.HELD))
    assert seen.corrections == (Release(1, "its owner overwrote the mark in Extra"),)
    assert situation(look(overwritten), *seen.records.values()).corrections == seen.corrections
    free_now = situation(look(replace(overwritten, priority=1000)), *seen.records.values())
    assert (free_now.corrections, free_now.records[1].stage) == ((), Stage.RELEASED)


def test_a_running_job_keeps_its_record_so_that_a_requeue_is_noticed() -> None:
    known = record(1, restarts=1)
    seen = situation(look(running(1, "c1", restarts=1)), known)
    assert seen.records == {1: replace(known, stage=Stage.RUNNING)}


@pytest.mark.parametrize(
    ("runs", "how"),
    [
        (running(1, "c1", "c2", tasks=16), ""),
        (running(1, "c2", "c1", tasks=16), ""),
        (running(1, "c1", tasks=8, pinned_to=("c1", "c2")), "runs on c1, planned on c1,c2; runs 8 tasks, planned 16"),
        (running(1, "c1", "c2", tasks=20), "runs 20 tasks, planned 16"),
        (running(1, "c1", "c3", tasks=16, pinned_to=("c1", "c2")), "runs on c1,c3, planned on c1,c2"),
    ],
)
def test_a_running_job_is_compared_once_with_its_placement(runs, how: str) -> None:
    seen = situation(look(runs), record(1, nodes=("c1", "c2"), tasks=16))
    assert seen.records[1].difference == how
    assert seen.differences == ({1: how} if how else {})
    later = situation(look(replace(runs, tasks=1)), *seen.records.values())
    assert later.records == seen.records, "Slurm may shrink a job that runs"


def test_the_record_of_a_job_that_slurm_has_forgotten_is_forgotten() -> None:
    assert situation(look(), record(1)).records == {}


def test_a_job_that_ended_is_out_of_the_queue_but_remembered_because_it_can_be_requeued() -> None:
    known = record(1, nice=3, memory_per_cpu_mb=500)
    ended = situation(look(job(1, state=JobState.ENDED, pinned_to=("c1",))), known)
    assert (ended.records, ended.jobs, ended.corrections) == ({1: known}, {}, ())
    requeued = pinned(1, "c1", restarts=1, submit_s=SUBMIT + 50, memory_per_node_mb=128_000)
    seen = situation(look(requeued), *ended.records.values())
    assert seen.corrections == (Unpin(1, 3, "requeued", known.own_memory, checks_hold=True),)


def test_a_job_that_started_on_nodes_of_its_owner_stays_held_when_they_hold_it_after_a_requeue() -> None:
    runs = situation(look(running(1, "c2")), record(1, nodes=("c1",)))
    held = job(1, pinned_to=("c2",), restarts=1)
    seen = situation(look(held), *runs.records.values())
    assert (planned(seen), seen.corrections) == ([], ())


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [((), "JobHeldUser"), ((), ""), (("c2",), "JobHeldUser"), (("c2",), "JobHeldAdmin"), (("c2",), "")],
)
def test_a_requeued_job_gets_its_own_memory_back_also_if_its_owner_has_changed_its_nodes(nodes, reason: str) -> None:
    """Its owner's hold stays, and so does an administrator's."""
    known = record(1, Stage.RUNNING, memory_per_cpu_mb=500, given_memory_mb=128_000)
    now = job(1, pinned_to=nodes, restarts=1, reason=reason, priority=0 if reason else 9, **WHOLE)
    seen = situation(look(now), known)
    (unpin,) = seen.corrections
    assert unpin.own_memory == known.own_memory
    assert (unpin.hold, unpin.was_held, unpin.keeps_nodes) == (False, bool(reason), bool(nodes))
    given = rewritten(now, memory_per_cpu_mb=500, memory_per_node_mb=None, extra="sns:1 advised")
    later = situation(look(given), *seen.records.values())
    assert later.corrections == ()
    assert situation(look(replace(given, **WHOLE)), *later.records.values()).corrections == (), "now it is its owner's"


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin"])
def test_a_job_that_started_on_nodes_of_its_owner_does_not_keep_our_nice_value_while_they_hold_it(reason: str) -> None:
    """It was requeued so soon that nobody saw it run."""
    runs = situation(look(running(1, "c2", nice=-60_000, is_completing=True)), record(1, nodes=("c1",)))
    held = job(1, pinned_to=("c2",), restarts=1, nice=-60_000, reason=reason)
    seen = situation(look(held), *runs.records.values())
    assert [(each.hold, each.keeps_nodes, each.nice) for each in seen.corrections] == [(False, True, 0)]
    restored = rewritten(held, nice=0, extra="sns:1 advised")
    assert situation(look(restored), *seen.records.values()).corrections == ()


OURS = {"ways": 18, "bandwidth_gbps": 118}
GIVEN = {"given_ways": 18, "given_bandwidth_gbps": 118}


@pytest.mark.parametrize("ours", [(GIVEN, OURS), ({"given_memory_mb": 128_000, "memory_per_cpu_mb": 500}, WHOLE)])
@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", ""])
def test_a_job_that_started_on_nodes_of_its_owner_loses_what_we_added_to_it_when_it_is_requeued(ours, reason) -> None:
    """A hold stays."""
    given, has = ours
    runs = situation(look(running(1, "c2", **has)), record(1, nodes=("c1",), **given))
    waits = job(1, pinned_to=("c2",), restarts=1, reason=reason, priority=0 if reason else 9, **has)
    seen = situation(look(waits), *runs.records.values())
    (unpin,) = seen.corrections
    assert (unpin.hold, unpin.keeps_nodes, unpin.keeps_gres) == (False, True, False)
    own = {"ways": 0, "bandwidth_gbps": 0, "memory_per_cpu_mb": 500, "memory_per_node_mb": None}
    restored = rewritten(waits, **own, extra="sns:1 advised")
    later = situation(look(restored), *seen.records.values())
    assert later.corrections == ()
    free = situation(look(replace(restored, priority=9)), *later.records.values())
    again = situation(look(replace(restored, priority=9, **has)), *free.records.values())
    assert again.corrections == (), "now it is its owner's"


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        (OURS, False),
        ({**OURS, "extra": "mine", "asks_for": ("gres",)}, False),  # without our mark any gres is among these
        ({**OURS, "extra": "mine", "asks_for": ("gres",), "has_other_gres": True}, True),
        ({**OURS, "asks_for": ("gres",), "has_other_gres": True}, True),
        ({"ways": 3}, True),
        ({"ways": 3, "extra": "mine", "asks_for": ("gres",)}, True),
        ({"asks_for": ("gres",), "has_other_gres": True}, True),
    ],
)
@pytest.mark.parametrize("why", [{"pinned_to": ("c2",)}, {"restarts": 1}, {"reason": "AssocGrpCpuLimit"}])
def test_gres_that_the_owner_has_set_since_the_placement_stays(fields, is_kept: bool, why) -> None:
    seen = situation(look(pinned(1, "c1", **{**why, **fields})), record(1, **GIVEN))
    assert [each.keeps_gres for each in seen.corrections] == [is_kept]


@pytest.mark.parametrize(("known", "is_kept"), [({"given_ways": 0, "given_bandwidth_gbps": 0}, True), ({}, False)])
def test_ways_on_a_job_that_got_none_are_its_owners_unless_what_it_got_is_not_known(known, is_kept: bool) -> None:
    (unpin,) = situation(look(pinned(1, "c1", restarts=1, ways=3)), record(1, **known)).corrections
    assert unpin.keeps_gres is is_kept


def test_a_job_to_which_its_owner_gave_gres_while_it_was_placed_is_given_to_slurm_with_it() -> None:
    overdue = situation(look(pinned(1, "c1", asks_for=("gres",))), record(1, placed_s=0))
    held = situation(look(job(1, asks_for=("gres",))), *overdue.records.values())
    assert held.corrections == (Release(1, "left to Slurm: its owner asks for gres"),)


def test_a_job_that_slurm_holds_because_of_our_memory_is_released_without_it_also_when_it_is_slurms() -> None:
    known = record(1, Stage.RELEASED, memory_per_cpu_mb=500, given_memory_mb=128_000)
    seen = situation(look(job(1, pinned_to=("c2",), restarts=1, reason="BadConstraints", **WHOLE)), known)
    unpin, release = seen.corrections
    assert (unpin.own_memory, unpin.keeps_nodes) == (known.own_memory, True)
    assert release == Release(1, unpin.reason, ("c2",))


def test_a_job_that_its_owner_gave_the_memory_of_a_node_keeps_it_when_it_is_slurms() -> None:
    known = record(1, Stage.HELD, memory_per_cpu_mb=500, given_memory_mb=128_000)
    released = situation(look(job(1, priority=9)), known)
    seen = situation(look(job(1, priority=9, **WHOLE)), *released.records.values())
    assert seen.corrections == ADVISED


@pytest.mark.parametrize(
    ("now", "is_restored"),
    [
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 128_000}, True),
        ({"memory_per_cpu_mb": None, "memory_per_node_mb": 64_000}, False),
        ({"memory_per_cpu_mb": 9000, "memory_per_node_mb": None}, False),
    ],
)
def test_memory_that_the_owner_has_set_since_the_placement_stays(now, is_restored) -> None:
    known = record(1, nice=3, memory_per_cpu_mb=500, given_memory_mb=128_000)
    (unpin,) = situation(look(pinned(1, "c1", restarts=1, **now)), known).corrections
    assert unpin.own_memory == (known.own_memory if is_restored else (None, None))


def test_a_job_that_its_owner_released_before_we_saw_it_stays_slurms_when_it_has_run() -> None:
    runs = replace(job(1, priority=9), state=JobState.RUNNING, allocated=("c1",))
    seen = situation(look(runs))
    assert seen.records[1].stage is Stage.RELEASED
    later = situation(look(job(1, restarts=1)), *seen.records.values())
    assert (planned(later), later.corrections) == ([], ()), "a hold of it is its owner's"


def test_a_job_that_its_owner_released_and_pinned_before_we_saw_it_stays_held_by_its_owner() -> None:
    seen = situation(look(job(1, priority=9, pinned_to=("c1",))))
    later = situation(look(job(1, pinned_to=("c1",))), *seen.records.values())
    assert (planned(later), later.corrections) == ([], ())


@pytest.mark.parametrize("stage", [Stage.HELD, Stage.HOLDING])
def test_a_job_that_was_released_from_our_hold_and_runs_stays_slurms_when_it_is_requeued(stage: Stage) -> None:
    runs = replace(job(1, priority=9), state=JobState.RUNNING, allocated=("c1",))
    seen = situation(look(runs), record(1, stage))
    later = situation(look(job(1, priority=9, restarts=1)), *seen.records.values())
    assert (planned(later), later.corrections) == ([], ADVISED)


@pytest.mark.parametrize("stage", [Stage.HELD, Stage.HOLDING])
def test_a_job_that_started_before_its_placement_was_taken_back_is_its_owners_to_hold(stage: Stage) -> None:
    seen = situation(look(running(1, "c1")), record(1, stage, nodes=("c1",)))
    assert seen.records[1].stage is Stage.RUNNING
    held = situation(look(job(1, pinned_to=("c1",), restarts=1)), *seen.records.values())
    assert (planned(held), held.records[1].stage) == ([], Stage.OWNER_HELD)


def test_a_job_that_an_administrator_holds_is_left_and_remembered() -> None:
    held = job(1, reason="JobHeldAdmin")
    seen = situation(look(held), record(1, Stage.HELD, failures=2))
    assert (planned(seen), seen.corrections, seen.records[1].failures) == ([], (), 2)
    assert planned(situation(look(replace(held, reason="JobHeldUser")), *seen.records.values())) == [1]


def test_a_job_that_is_not_ours_is_neither_planned_nor_touched() -> None:
    seen = situation(look(job(1, extra=""), job(2, extra="", priority=1000)))
    assert (planned(seen), seen.jobs, seen.records, seen.corrections) == ([], {}, {}, ())


# --- modes

ADVISE, OBSERVE = replace(ENFORCE, mode="advise"), replace(ENFORCE, mode="observe")


def test_advise_plans_marked_jobs_that_wait_in_slurms_own_queue() -> None:
    marked = job(1, priority=1000, extra="sns:1 advised")
    seen = situation(look(marked, job(2, priority=1000, extra="")), settings=ADVISE)
    assert (planned(seen), seen.records, seen.corrections) == ([1], {}, ())


def test_observe_plans_plain_batch_jobs_of_our_partitions_as_if_they_were_ours() -> None:
    asked = {"priority": 1000, "extra": ""}
    jobs = [
        job(1, **asked),
        job(2, **{**asked, "priority": 0}),
        job(3, **asked, is_batch=False),
        job(4, **asked, asks_for=("constraint",)),
        job(5, **asked, pinned_to=("c1",)),
        job(6, **asked, partitions=("main", "other")),
        running(7, "c1", extra=""),
    ]
    seen = situation(look(*jobs), settings=OBSERVE)
    assert (planned(seen), set(seen.jobs), seen.records, seen.corrections) == ([1], {1}, {}, ())


@pytest.mark.parametrize("mode", [ADVISE, OBSERVE])
def test_observe_and_advise_correct_nothing_that_users_did(mode) -> None:
    marked = {"extra": "sns:1 advised"}
    jobs = [
        job(1, **marked),
        pinned(2, "c1", **marked),
        pinned(3, "c1", restarts=1, **marked),
        job(4, extra="mine"),
        job(5, array_id=5, array_tasks="0-9", **marked),
        job(6, pinned_to=("c1",), **marked),
    ]
    assert situation(look(*jobs), settings=mode).corrections == ()


@pytest.mark.parametrize("mode", [ADVISE, OBSERVE])
def test_a_job_that_the_filter_held_before_enforce_was_over_is_released_though_nobody_has_a_record_of_it(mode) -> None:
    over = "held in the mode enforce, which is no longer set"
    seen = situation(look(job(1), job(5, array_id=5, array_tasks="0-9")), settings=mode)
    assert seen.corrections == (Release(1, over), Release(5, over))


@pytest.mark.parametrize("mode", ["observe", "advise"])
@pytest.mark.parametrize("stage", [Stage.HELD, Stage.PLACED])
def test_a_job_that_a_killed_enforce_left_before_its_rpc_is_released(mode, stage) -> None:
    seen = situation(look(job(1)), record(1, stage), settings=replace(ENFORCE, mode=mode))
    assert [type(each) for each in seen.corrections] == [Release]


def test_a_job_that_slurm_holds_because_an_earlier_enforce_placed_it_is_unpinned_and_then_released() -> None:
    impossible = pinned(1, "c1", priority=0, reason="BadConstraints")
    seen = situation(look(impossible), record(1), settings=ADVISE)
    assert [type(each) for each in seen.corrections] == [Unpin, Release]
    assert not seen.corrections[0].hold


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_job_that_an_earlier_enforce_left_pinned_is_unpinned_and_not_held(mode) -> None:
    seen = situation(look(pinned(1, "c1")), record(1, placed_s=0), settings=replace(ENFORCE, mode=mode))
    assert [(each.job_id, each.hold) for each in seen.corrections] == [(1, False)]


def test_a_waiting_job_has_no_memory_of_a_placement_left_to_restore() -> None:
    seen = situation(look(job(1)), record(1, memory_per_cpu_mb=500, memory_per_node_mb=0))
    assert seen.records[1].own_memory == (None, None)


@pytest.mark.parametrize("mode", [ADVISE, OBSERVE])
def test_a_job_that_an_earlier_enforce_left_held_is_released(mode) -> None:
    seen = situation(look(job(1)), record(1, Stage.HELD), settings=mode)
    assert seen.corrections == (Release(1, "held in the mode enforce, which is no longer set"),)
    free_now = situation(look(job(1, priority=9)), *seen.records.values(), settings=mode)
    assert (free_now.records[1].stage, free_now.corrections) == (Stage.RELEASED, ())


# --- properties


@st.composite
def clusters(draw):
    """A few nodes and jobs in every status, with capacity that Slurm has not overcommitted."""
    names = ["c1", "c2", "c3"]
    nodes = [node(name, 4, 8000, taken=(draw(st.integers(0, 4)), draw(st.integers(0, 8)) * 1000)) for name in names]
    jobs, known = [], {}
    for identity in range(1, draw(st.integers(1, 12)) + 1):
        number = draw(st.integers(1, 6))
        kind = draw(st.sampled_from(["held", "placed", "overdue", "requeued", "owner", "running", "released"]))
        where = tuple(draw(st.sets(st.sampled_from(names), min_size=1, max_size=2)))
        fields = {"tasks": number, "nodes_max": None, "nice": draw(st.integers(-3, 3))}
        if kind in ("placed", "overdue", "requeued"):
            jobs.append(pinned(identity, *where, **{**fields, "restarts": int(kind == "requeued")}))
        elif kind == "running":
            jobs.append(running(identity, *where, **fields))
        else:
            fields["priority"] = 1000 if kind == "released" else 0
            jobs.append(job(identity, **fields, pinned_to=where if kind == "owner" else ()))
        if draw(st.booleans()):
            known[identity] = record(identity, nodes=where, placed_s=0 if kind == "overdue" else NOW - 1)
    return look(*jobs, nodes=nodes), known


@settings(max_examples=60)
@given(clusters())
def test_no_node_is_planned_over_what_slurm_and_placed_jobs_leave(case) -> None:
    observation, known = case
    seen = read_situation(observation, known, ENFORCE, NOW)
    plan = max_jobs(MatchingParameters()).plan(seen.snapshot)
    left = {each.name: each.free for each in seen.snapshot.nodes}
    for start in plan.starts:
        for name in start.nodes:
            left[name] = left[name].minus(start.alternative.demand)
            assert min(left[name]) >= 0


@settings(max_examples=60)
@given(clusters())
def test_a_job_is_planned_or_blocked_or_taken_and_never_two_of_them(case) -> None:
    observation, known = case
    seen = read_situation(observation, known, ENFORCE, NOW)
    taken = {each for each, what in seen.statuses.items() if what in (JobStatus.PLACED, JobStatus.OVERDUE)}
    running_ones = {each for each, what in seen.statuses.items() if what in (JobStatus.RUNNING, JobStatus.SUSPENDED)}
    groups = [set(planned(seen)), set(seen.blocked), taken, running_ones]
    assert sum(map(len, groups)) == len(set.union(*groups))
    waiting = {each for each, what in seen.statuses.items() if what is JobStatus.WAITING}
    assert groups[0] | groups[1] == waiting


@settings(max_examples=60)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing(case, random) -> None:
    observation, known = case
    shuffled = list(known.items())
    random.shuffle(shuffled)
    assert read_situation(observation, known, ENFORCE, NOW) == read_situation(observation, dict(shuffled), ENFORCE, NOW)


@settings(max_examples=60)
@given(clusters())
def test_a_second_look_at_the_same_cluster_changes_no_record(case) -> None:
    observation, known = case
    first = read_situation(observation, known, ENFORCE, NOW)
    unmoved = {each: record for each, record in first.records.items() if record.failures == 0 and not record.note}
    second = read_situation(observation, first.records, ENFORCE, NOW)
    assert {each: second.records[each] for each in unmoved} == unmoved


@settings(max_examples=60)
@given(clusters(), st.sampled_from([ENFORCE, ADVISE, OBSERVE]))
def test_what_each_job_is_and_what_to_correct_needs_the_jobs_and_our_records_alone(case, mode) -> None:
    observation, known = case
    seen, first = read_situation(observation, known, mode, NOW), reconcile(observation.jobs, known, mode, NOW)
    assert (first.statuses, first.records, first.ours) == (seen.statuses, seen.records, seen.jobs)
    assert seen.corrections[: len(first.corrections)] == first.corrections
    assert all(isinstance(each, Release) for each in seen.corrections[len(first.corrections) :])
    assert set(planned(seen)) <= {each.id for each in first.candidates}
    assert first.blocked.items() <= seen.blocked.items()
    assert set(seen.blocked) | set(planned(seen)) == {*first.blocked, *(each.id for each in first.candidates)}


def test_every_job_of_a_look_is_found_with_our_record_of_it_before() -> None:
    before = record(2, nodes=("c1",), placed_s=0)
    first = reconcile((job(1), pinned(2, "c1"), running(3, "c1", extra="")), {2: before}, ENFORCE, NOW)
    assert first.found == {1: (JobStatus.WAITING, None), 2: (JobStatus.OVERDUE, before), 3: (JobStatus.RUNNING, None)}
    assert ([each.id for each in first.candidates], list(first.ours)) == ([1], [1, 2])
