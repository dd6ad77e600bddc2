"""Job arrays: tasks are split off ahead of need, never more than the array's limit, and placed one by one."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from hypothesis import given
from hypothesis import strategies as st
from live import ENFORCE, NOW, job, look, node, pinned, planned, record, running, situation

from slurm_sns.errors import Refused
from slurm_sns.model import Release
from slurm_sns.scheduler.observe.arrays import Split, Tasks, listed, next_tasks, splits
from slurm_sns.scheduler.observe.follow_up import Unpin
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.records import Stage


def array(identity: int, expression: str, **fields):
    return job(identity, array_id=identity, array_tasks=expression, **fields)


def task(identity: int, of: int, number: int, **fields):
    return job(identity, array_id=of, array_task=number, **fields)


def folded(tasks: list[int], step: int | None) -> str:
    """As Slurm writes them: ranges, or one range with a step."""
    if step is not None:
        return f"{tasks[0]}-{tasks[-1]}:{step}"
    parts: list[list[int]] = []
    for number in tasks:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


# --- expressions


@pytest.mark.parametrize(
    ("expression", "tasks"),
    [
        ("7", [7]),
        ("0-3", [0, 1, 2, 3]),
        ("0-15:4,20", [0, 4, 8, 12, 20]),
        ("1-2,5,9-11", [1, 2, 5, 9, 10, 11]),
        ("17,40-41,190,...", [17, 40, 41, 190]),
        ("17,40...", [17]),  # may be the beginning of 401
        ("1234...", []),
    ],
)
def test_an_expression_is_read_and_of_one_that_is_cut_off_what_is_whole(expression: str, tasks: list[int]) -> None:
    assert list(listed(expression)) == tasks


@given(st.sets(st.integers(0, 4000), min_size=2, max_size=200).map(sorted), st.integers(0, 300))
def test_the_next_tasks_are_the_first_ones_and_never_all_of_them(tasks: list[int], most: int) -> None:
    assert next_tasks(folded(tasks, None), most) == tuple(tasks[: min(most, len(tasks) - 1)])


@given(st.integers(0, 1000), st.integers(2, 50), st.integers(2, 100), st.integers(0, 300))
def test_steps_are_followed(first: int, step: int, number: int, most: int) -> None:
    tasks = list(range(first, first + step * number, step))
    assert next_tasks(folded(tasks, step), most) == tuple(tasks[: min(most, number - 1)])


@given(st.sets(st.integers(0, 4000), min_size=2, max_size=60).map(sorted), st.integers(4, 64))
def test_wherever_slurm_cuts_an_expression_off_only_tasks_of_it_are_read(tasks: list[int], length: int) -> None:
    expression = folded(tasks, None)
    if len(expression) > length:
        expression = expression[:length] + "..."
    read = list(listed(expression))
    assert read == tasks[: len(read)]


# --- what is split off


def test_an_array_that_we_hold_is_not_planned_but_split() -> None:
    seen = situation(look(array(1, "0-9")))
    assert planned(seen) == []
    assert seen.splits == (Split(1, tuple(range(9)), nice=0, extra="sns:1"),), "the last task keeps the array's id"
    assert seen.blocked[1] == "its tasks are planned one by one; 0 are next"
    assert seen.records[1].stage is Stage.HELD


def test_one_command_splits_no_more_tasks_off_than_its_arguments_can_name() -> None:
    array = job(41, array_id=41, array_tasks="1-100000")
    (split,) = splits([(array, 100_000)], Tasks(), 1_000_000)
    assert split.tasks == tuple(range(1, 1001))


def test_never_more_is_split_off_than_the_nodes_could_hold() -> None:
    (split,) = situation(look(array(1, "0-9999", nice=7))).splits
    assert split == Split(1, tuple(range(2 * 28)), nice=7, extra="sns:1")


def test_a_node_that_is_out_or_too_small_holds_no_task() -> None:
    nodes = [node("c1"), node("c2", unavailable="drain"), node("c3", cores=3)]
    (split,) = situation(look(array(1, "0-99", tasks=4, cpus=4, nodes_max=None), nodes=nodes)).splits
    assert len(split.tasks) == 7


def test_tasks_of_several_nodes_and_tasks_that_are_to_be_alone_need_more() -> None:
    nodes = [node(f"c{number}") for number in range(6)]
    wide = array(1, "0-99", tasks=56, cpus=56, nodes_max=None)
    assert len(situation(look(wide, nodes=nodes)).splits[0].tasks) == 3
    alone = array(1, "0-99", extra="sns:1 exclusive")
    assert len(situation(look(alone, nodes=nodes)).splits[0].tasks) == 6


def test_what_is_split_off_is_refilled_when_half_of_it_is_placed() -> None:
    def held(number: int):
        return [task(100 + at, 1, at) for at in range(number)]

    assert situation(look(array(1, "56-99"), *held(29))).splits == ()
    (split,) = situation(look(array(1, "56-99"), *held(28))).splits
    assert split.tasks == tuple(range(56, 56 + 28))


def test_an_array_does_not_wait_for_a_task_that_may_begin_later_only() -> None:
    """Such as a requeued one, or one that its owner has put off."""
    rest = array(1, "5-9", array_limit=1)
    assert situation(look(rest, task(8, 1, 4))).splits == ()
    (split,) = situation(look(rest, task(8, 1, 4, begin_s=10**10))).splits
    assert split.tasks == (5,)


def test_an_account_has_no_more_ahead_than_a_cycle_looks_at_but_each_array_has_one() -> None:
    nodes = [node(f"c{number}") for number in range(100)]
    many = [array(number, "0-999") for number in range(1, 5)]
    other = array(9, "0-999", account="chemistry")
    seen = situation(look(*many, other, nodes=nodes))
    assert {each.array_id: len(each.tasks) for each in seen.splits} == {1: 999, 2: 1, 3: 1, 4: 1, 9: 999}
    shallow = situation(look(*many, other, nodes=nodes), settings=replace(ENFORCE, queue_depth=50))
    assert {each.array_id: len(each.tasks) for each in shallow.splits} == {1: 50, 2: 1, 3: 1, 4: 1, 9: 50}


def test_an_array_that_may_not_be_planned_yet_is_not_split() -> None:
    late = array(1, "0-9", begin_s=10**9)
    waits = array(2, "0-9", waits_for_others=True)
    assert situation(look(late, waits)).splits == ()


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_observe_and_advise_split_nothing_and_plan_the_next_task(mode: str) -> None:
    extra = "sns:1" if mode == "advise" else ""
    seen = situation(look(array(1, "0-9", priority=9, extra=extra)), settings=replace(ENFORCE, mode=mode))
    assert (planned(seen), seen.splits) == ([1], ())


def test_an_array_that_its_owner_released_is_slurms() -> None:
    seen = situation(look(array(1, "0-9", priority=9)), record(1, Stage.HELD))
    assert (planned(seen), seen.splits, seen.jobs) == ([], (), {})
    task = job(8, array_id=1, array_task=3)
    later = situation(look(task, array(1, "0-2,4-9", priority=9)), *seen.records.values())
    assert planned(later) == [], "nor a task of it that its owner holds later"
    assert {each.job_id for each in later.corrections} == {1}, "whose mark may say so"


def test_tasks_whose_placement_was_taken_back_still_count_as_split_off() -> None:
    """Slurm shows the number of nodes that the placement needed."""
    tried = [task(100 + at, 1, at, tasks=4, cpus=4, nodes_min=2, nodes_max=None, tasks_per_node=2) for at in range(5)]
    rest = array(1, "5-99", tasks=4, cpus=4, nodes_min=1, nodes_max=None)
    seen = situation(look(rest, *tried), *(record(each.id, Stage.HELD) for each in tried))
    untried = [replace(each, nodes_min=1, tasks_per_node=None) for each in tried]
    before = situation(look(rest, *untried), *(record(each.id, Stage.HELD) for each in untried))
    assert [len(each.tasks) for each in seen.splits] == [len(each.tasks) for each in before.splits]


def test_a_task_that_slurmctld_has_lost_the_release_of_is_ours_again_whatever_its_array_is() -> None:
    task = job(8, array_id=1, array_task=3)
    records = [record(1, Stage.RELEASED), record(8, Stage.RELEASED, is_noted=True)]
    seen = situation(look(task), *records)
    assert planned(seen) == [8]


@pytest.mark.parametrize(("extra", "status"), [("sns:1", JobStatus.WAITING), ("sns:1 advised", JobStatus.RELEASED)])
def test_a_task_that_was_split_off_just_before_we_released_its_array_is_ours(extra: str, status: JobStatus) -> None:
    """The release writes `advised` into the array's mark, which tasks that are split off later have from it."""
    rest = array(1, "0-2,4-9", priority=9, extra="sns:1 advised")
    seen = situation(look(rest, task(8, 1, 3, extra=extra)), record(1, Stage.RELEASED))
    assert seen.statuses[8] is status


def test_that_the_mark_of_its_array_was_seen_to_say_so_does_not_make_a_task_ours_again() -> None:
    """People have taken the word out of the array's mark, and hold a task that they have split off since."""
    seen = look(array(1, "0-2,4-9", priority=9), task(8, 1, 3))
    found = situation(seen, record(1, Stage.RELEASED, is_noted=True))
    later = situation(seen, *found.records.values())
    assert later.statuses[8] is JobStatus.RELEASED


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_tasks_that_a_mode_releases_have_records_of_their_own_before_their_arrays_says_released(mode: str) -> None:
    off = replace(ENFORCE, mode=mode)
    seen = situation(look(array(1, "0-2"), task(8, 1, 3)), settings=off)
    assert {each.job_id for each in seen.corrections} == {1, 8}
    released = {**seen.records, 1: replace(seen.records[1], stage=Stage.RELEASED)}
    again = situation(look(array(1, "0-2", priority=9), task(8, 1, 3)), *released.values(), settings=off)
    assert [each.job_id for each in again.corrections] == [8]


def test_a_task_of_a_released_array_stays_slurms_when_slurm_has_forgotten_the_one_with_the_arrays_id() -> None:
    """While no scheduler runs, its owner holds a task, and the others end; the watchdog finds the array's record."""
    held = task(8, 1, 3)
    seen = situation(look(held), record(1, Stage.RELEASED))
    assert seen.statuses[8] is JobStatus.RELEASED
    reused = situation(look(replace(held, submit_s=held.submit_s + 9)), record(1, Stage.RELEASED))
    assert reused.statuses[8] is JobStatus.WAITING


def test_an_array_that_can_never_run_is_released_whole() -> None:
    never = array(1, "0-9", partitions=("plain",))
    assert situation(look(never)).corrections == (Release(1, "left to Slurm: partition plain is not managed"),)


# --- limits


@pytest.mark.parametrize(
    ("busy", "held", "split"), [(0, 0, 5), (1, 0, 4), (3, 1, 1), (4, 0, 1), (4, 1, 0), (5, 0, 0), (7, 0, 0)]
)
def test_what_is_placed_runs_or_is_split_off_counts_for_the_limit(busy: int, held: int, split: int) -> None:
    jobs = [task(100 + at, 1, at, priority=9, pinned_to=("c1",), nice=-60_000) for at in range(busy // 2)]
    jobs += [replace(running(200 + at, "c1"), array_id=1, array_task=50 + at) for at in range(busy - busy // 2)]
    jobs += [task(300 + at, 1, 70 + at, array_limit=5) for at in range(held)]
    seen = situation(look(array(1, "100-199", array_limit=5), *jobs))
    assert sum(len(each.tasks) for each in seen.splits) == split


def test_a_limit_that_was_lowered_holds_for_the_tasks_that_are_split_off() -> None:
    held = [task(100 + at, 1, at, array_limit=2) for at in (3, 1, 2)]  # not in order
    busy = replace(running(200, "c1"), array_id=1, array_task=0, array_limit=2)
    seen = situation(look(*held, busy))
    assert planned(seen) == [101]
    assert seen.blocked == dict.fromkeys((102, 103), "at most 2 tasks of its array run at a time")


LARGE = {"cpus": 20, "tasks": 20}


def test_a_task_that_its_owner_has_changed_does_not_keep_the_others_from_being_split_off() -> None:
    rest = array(1, "5-9", array_limit=1)
    for changed in (LARGE, {"memory_per_cpu_mb": 9000}, {"walltime_s": 9}, {"partitions": ("small",)}):
        assert [each.tasks for each in situation(look(rest, task(8, 1, 4, **changed))).splits] == [(5,)]
    assert situation(look(rest, task(8, 1, 4, **LARGE), task(9, 1, 5))).splits == ()


def test_beside_a_task_that_its_owner_has_changed_the_next_ones_that_are_alike_are_planned() -> None:
    tasks = [task(100 + at, 1, at, array_limit=1, **(LARGE if at == 0 else {})) for at in range(4)]
    seen = situation(look(*tasks))
    assert planned(seen) == [100, 101]
    assert seen.blocked == dict.fromkeys((102, 103), "at most 1 tasks of its array run at a time")
    busy = replace(running(200, "c1"), array_id=1, array_task=9, array_limit=1)
    assert planned(situation(look(*tasks, busy))) == []


def test_of_many_kinds_of_changed_tasks_all_get_their_turn_beside_the_first() -> None:
    tasks = [task(100 + at, 1, at, array_limit=1, walltime_s=100 + at) for at in range(5)]
    turns = [planned(situation(look(*tasks), now_s=NOW + 60 * minute)) for minute in range(4)]
    assert {first for first, _ in turns} == {100}
    assert sorted(other for _, other in turns) == [101, 102, 103, 104]


def test_a_task_that_its_owner_released_is_slurms_and_counts_for_no_limit_of_ours() -> None:
    free = task(100, 1, 0, priority=9)
    seen = situation(look(array(1, "1-9", array_limit=1), free))
    assert [each.tasks for each in seen.splits] == [(1,)]


# --- tasks


def test_tasks_stand_in_the_queue_where_their_array_does() -> None:
    jobs = [job(2), task(9, 1, 1), task(8, 1, 3), task(1, 1, 7), job(0)]
    assert planned(situation(look(*jobs))) == [0, 9, 8, 1, 2]


def test_jobs_and_tasks_are_named_as_squeue_names_them() -> None:
    jobs = [job(7), task(8, 1, 0), array(1, "1-9"), array(2, "1-9", array_limit=5), array(3, "1,5,...")]
    assert [each.label for each in jobs] == ["7", "1_0", "1_[1-9]", "2_[1-9%5]", "3_[1,5,...]"]


def test_the_address_of_a_record_is_of_that_record_alone() -> None:
    jobs = [job(7), task(8, 1, 0), task(1, 1, 9), array(2, "1-9", array_limit=5)]
    assert [each.address for each in jobs] == ["7", "1_0", "1_9", "2_[1-9]"]


def test_a_placed_task_that_slurm_keeps_back_for_the_arrays_limit_has_not_failed() -> None:
    late = replace(pinned(8, "c1"), array_id=1, array_task=0, reason="JobArrayTaskLimit")
    for failures in (0, 7, 100):
        seen = situation(look(late), record(8, placed_s=0, failures=failures))
        assert isinstance(seen.corrections[0], Unpin)
        assert seen.records[8].failures < 8


def test_a_task_whose_mark_was_overwritten_before_we_knew_it_is_released() -> None:
    orphan = task(8, 1, 0, extra="mine")
    seen = situation(look(array(1, "1-9"), orphan), record(1, Stage.HELD))
    assert seen.statuses[8] is JobStatus.MARK_LOST
    assert [(each.job_id, type(each)) for each in seen.corrections] == [(8, Release)]


def test_a_task_without_a_mark_of_an_array_that_is_not_ours_is_not_touched() -> None:
    seen = situation(look(array(1, "1-9", extra=""), task(8, 1, 0, extra="")))
    assert (seen.corrections, seen.splits, planned(seen)) == ((), (), [])


# --- the loop


def test_all_tasks_of_an_array_run_once_where_they_were_planned() -> None:
    site = Site(FakeSlurm({"c1": 4, "c2": 4}))
    site.slurm.submit_array("0-29", run_s=2.0)
    site.scheduler(ENFORCE).repeat(40, 1.0)
    assert len(site.slurm.started) == 30
    assert sorted(site.slurm.ended) == list(range(1, 31))
    placed = {start.job_id: start.nodes for _, plan, *_ in site.decisions.cycles for start in plan.starts}
    assert dict(site.slurm.started) == placed


def test_the_loop_never_passes_an_arrays_limit() -> None:
    site = Site(FakeSlurm({"c1": 8}))
    site.slurm.submit_array("0-19", run_s=2.0, array_limit=3)
    scheduler = site.scheduler(ENFORCE)
    for _ in range(60):
        scheduler.cycle()
        assert sum(each.priority > 0 for each in site.slurm.jobs.values()) <= 3
        site.slurm.sleep(1.0)
    assert len(site.slurm.ended) == 20


def test_an_array_with_a_limit_goes_on_while_one_of_its_tasks_finds_no_room() -> None:
    """Its owner has enlarged the first task, which only c2 could hold, where a long job runs."""
    site = Site(FakeSlurm({"c1": 4, "c2": 8}))
    site.slurm.submit(8, run_s=60.0)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    array_id = site.slurm.submit_array("0-9", run_s=2.0, array_limit=1)
    scheduler.cycle()
    first = next(each.id for each in site.slurm.jobs.values() if each.array_task == 0)
    site.slurm.change(first, tasks=8, cpus=8, pinned_to=(), priority=0, nice=0, reason="JobHeldUser")
    site.history.records.clear()
    scheduler = site.scheduler(ENFORCE)
    for second in range(110):
        scheduler.cycle()
        of_array = [each for each in site.slurm.jobs.values() if each.array_id == array_id]
        assert sum(each.priority > 0 for each in of_array) <= 1
        site.slurm.sleep(1.0)
        if second == 50:
            assert len(site.slurm.ended) >= 9
            assert first in site.slurm.jobs
    assert first in site.slurm.ended


def test_where_tasks_of_two_kinds_have_room_no_more_are_placed_than_the_array_allows() -> None:
    site = Site(FakeSlurm({"c1": 8}))
    site.slurm.submit_array("0-19", run_s=2.0, array_limit=2)
    scheduler = site.scheduler(ENFORCE)
    for second in range(60):
        scheduler.cycle()
        assert sum(each.priority > 0 for each in site.slurm.jobs.values()) <= 2
        for each in list(site.slurm.jobs.values()):
            if each.array_task is not None and each.priority == 0 and (each.array_task + second) % 3 == 0:
                site.slurm.change(each.id, walltime_s=1000 + second)
        site.slurm.sleep(1.0)
    assert len(site.slurm.ended) == 20


def test_a_clean_stop_releases_the_array_and_the_tasks_that_were_split_off() -> None:
    site = Site(FakeSlurm({"c1": 2}))
    site.slurm.submit_array("0-99")
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert len(site.slurm.jobs) > 1
    scheduler.stop()
    assert all(each.priority > 0 for each in site.slurm.jobs.values())


def test_while_disabled_nothing_is_split_off() -> None:
    site = Site(FakeSlurm({"c1": 2}))
    site.slurm.submit_array("0-99")
    site.switch.on = True
    site.scheduler(ENFORCE).cycle()
    assert list(site.slurm.jobs) == [1]
    assert site.slurm.jobs[1].priority > 0


def test_tasks_that_were_cancelled_in_the_meantime_are_a_line_of_the_log() -> None:
    class Gone(FakeSlurm):
        def split(self, _split) -> None:
            raise Refused("scontrol: Job has already finished")

    site = Site(Gone({"c1": 2}))
    site.slurm.submit_array("0-99")
    site.slurm.submit(1)
    site.scheduler(ENFORCE).cycle()
    assert site.log[-1] == "array 1: Slurm refused to split tasks off: scontrol: Job has already finished"
    assert site.slurm.jobs[2].pinned_to == ("c1",)
