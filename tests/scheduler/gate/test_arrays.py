"""Job arrays: their tasks are planned straight from the record, never more than the array's limit allows."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from hypothesis import given
from hypothesis import strategies as st
from live import ENFORCE, FOREIGN, GATE, HELD, NOW, job, look, node, pinned, planned, running, sent, situation, tried

from slurm_sns.errors import Refused
from slurm_sns.scheduler.gate.arrays import listed
from slurm_sns.task_ids import task_id, task_of


def array(identity: int, expression: str, words: str = "", **fields):
    return job(identity, words, array_id=identity, array_tasks=expression, **fields)


def task(identity: int, of: int, number: int, **fields):
    return job(identity, array_id=of, array_task=number, **fields)


def numbers(seen, of: int = 1) -> list[int]:
    """The planned tasks of an array's record."""
    return [found[1] for found in map(task_of, planned(seen)) if found is not None and found[0] == of]


def folded(tasks: list[int], step: int | None = None) -> str:
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


@given(st.integers(0, 1000), st.integers(2, 50), st.integers(2, 100))
def test_steps_are_followed(first: int, step: int, number: int) -> None:
    tasks = list(range(first, first + step * number, step))
    assert list(listed(folded(tasks, step))) == tasks


@given(st.sets(st.integers(0, 4000), min_size=2, max_size=60).map(sorted), st.integers(4, 64))
def test_wherever_slurm_cuts_an_expression_off_only_tasks_of_it_are_read(tasks: list[int], length: int) -> None:
    expression = folded(tasks)
    if len(expression) > length:
        expression = expression[:length] + "..."
    read = list(listed(expression))
    assert read == tasks[: len(read)]


@given(st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 2))
def test_the_id_of_a_task_is_none_of_slurms_and_says_which_task_it_is(array_id: int, number: int) -> None:
    found = task_id(array_id, number)
    assert (found >= 2**32, task_of(found), task_of(array_id)) == (True, (array_id, number), None)


# --- what is planned of a record


def test_the_tasks_of_a_gated_record_are_planned_under_ids_and_addresses_of_their_own() -> None:
    seen = situation(look(array(1, "3-9,12")))
    assert numbers(seen) == [3, 4, 5, 6, 7, 8, 9, 12]
    first = seen.job(task_id(1, 3))
    assert (first.task, first.label, first.task_address, first.is_array_record) == ((1, 3), "1_3", "1_3", False)
    assert (seen.job(1).task_address, task(8, 1, 3).task_address) == ("", "")
    assert (seen.blocked, seen.follow_ups, set(seen.jobs)) == ({}, (), {1})


def test_no_more_tasks_are_planned_than_the_nodes_could_hold() -> None:
    assert numbers(situation(look(array(1, "0-9999")))) == list(range(2 * 28))


def test_a_node_that_is_out_or_too_small_holds_no_task() -> None:
    nodes = [node("c1"), node("c2", unavailable="drain"), node("c3", cores=3)]
    seen = situation(look(array(1, "0-99", tasks=4, cpus=4, nodes_max=None), nodes=nodes))
    assert len(numbers(seen)) == 7


def test_tasks_of_several_nodes_and_tasks_that_are_to_be_alone_need_more() -> None:
    nodes = [node(f"c{number}") for number in range(6)]
    assert len(numbers(situation(look(array(1, "0-99", tasks=56, cpus=56, nodes_max=None), nodes=nodes)))) == 3
    assert len(numbers(situation(look(array(1, "0-99", "exclusive"), nodes=nodes)))) == 6


def test_an_account_has_no_more_than_a_cycle_looks_at_but_each_array_has_one() -> None:
    nodes = [node(f"c{number}") for number in range(100)]
    many = [array(number, "0-999") for number in range(1, 5)]
    seen = look(*many, array(9, "0-999", account="chemistry"), nodes=nodes)

    def of_each(queue_depth: int, *, names_tasks: bool = False) -> list[int]:
        shown = replace(seen, names_tasks=names_tasks)
        told = situation(shown, settings=replace(ENFORCE, queue_depth=queue_depth))
        return [len(numbers(told, of)) for of in (1, 2, 3, 4, 9)]

    assert of_each(20_000) == [1000, 1, 1, 1, 1000]
    assert of_each(50) == of_each(50, names_tasks=True) == [50, 1, 1, 1, 50]
    assert of_each(20_000, names_tasks=True) == [1000] * 5, "one RPC places several tasks"


@pytest.mark.parametrize("fields", [HELD, {"waits_for_others": True}, {"begin_s": GATE + 9}, {"begin_s": 0}])
def test_a_record_that_may_not_be_planned_now_has_no_task_planned(fields) -> None:
    seen = situation(look(array(1, "0-9", **fields)))
    assert (planned(seen), set(seen.blocked)) == ([], {1})


def test_a_failed_placement_of_a_task_makes_the_record_pause() -> None:
    assert planned(situation(look(array(1, "0-9")), tried(1, retry_s=NOW + 9))) == []


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_observe_and_advise_plan_the_next_task_as_the_record(mode: str) -> None:
    mark = {**FOREIGN, "admin_comment": "sns:2 free=advise" if mode == "advise" else ""}
    seen = situation(look(array(1, "0-9", **mark)), settings=replace(ENFORCE, mode=mode))
    assert (planned(seen), seen.tasks, seen.follow_ups) == ([1], {}, ())


def test_an_array_that_can_never_run_is_freed_whole() -> None:
    assert sent(situation(look(array(1, "0-9", partitions=("plain",))))) == {1: "free"}


def test_tasks_stand_in_the_queue_where_their_array_does() -> None:
    jobs = [job(2), task(9, 1, 1), task(8, 1, 3), array(1, "5,7"), job(0)]
    assert planned(situation(look(*jobs))) == [0, 9, 8, task_id(1, 5), task_id(1, 7), 2]


def test_jobs_and_tasks_are_named_as_squeue_names_them() -> None:
    jobs = [job(7), task(8, 1, 0), array(1, "1-9"), array(2, "1-9", array_limit=5), array(3, "1,5,...")]
    assert [each.label for each in jobs] == ["7", "1_0", "1_[1-9]", "2_[1-9%5]", "3_[1,5,...]"]


# --- limits


@pytest.mark.parametrize(
    ("placed", "runs", "single"), [(0, 0, 0), (0, 1, 0), (1, 2, 1), (2, 2, 0), (2, 2, 1), (2, 3, 0), (3, 4, 1)]
)
def test_what_is_placed_and_runs_counts_for_the_limit(placed: int, runs: int, single: int) -> None:
    jobs = [pinned(100 + at, "c1", array_id=1, array_task=at) for at in range(placed)]
    jobs += [running(200 + at, "c1", array_id=1, array_task=50 + at) for at in range(runs)]
    jobs += [task(300 + at, 1, 70 + at, array_limit=5) for at in range(single)]
    seen = situation(look(array(1, "100-199", array_limit=5), *jobs))
    room = max(0, 5 - placed - runs)
    assert len(planned(seen)) == room
    assert room or seen.blocked[1] == "at most 5 tasks of its array run at a time"


def test_a_limit_that_was_lowered_holds_for_tasks_with_jobs_of_their_own() -> None:
    waiting = [task(100 + at, 1, at, array_limit=2) for at in (3, 1, 2)]  # not in order
    seen = situation(
        look(*waiting, running(200, "c1", array_id=1, array_task=0, array_limit=2)), now_s=NOW // 180 * 180
    )
    assert planned(seen) == [101]
    assert seen.blocked == dict.fromkeys((102, 103), "at most 2 tasks of its array run at a time")


def test_a_task_that_finds_no_room_does_not_keep_the_rest_of_its_array_waiting_for_ever() -> None:
    """Its owner has enlarged it; of an array with a limit of one, each gets its turn."""
    jobs = array(1, "5-9", array_limit=1), task(8, 1, 4, array_limit=1, cpus=20, tasks=20)
    turns = {tuple(planned(situation(look(*jobs), now_s=NOW + 60 * minute))) for minute in range(2)}
    assert turns == {(8,), (task_id(1, 5),)}


def test_a_task_that_is_slurms_counts_for_no_limit_of_ours() -> None:
    seen = situation(look(array(1, "1-9", array_limit=1), task(100, 1, 0, **FOREIGN)))
    assert numbers(seen) == [1]


# --- the loop


def cluster(**cores: int) -> Site:
    return Site(FakeSlurm(cores))


def test_all_tasks_of_an_array_run_once_where_they_were_planned() -> None:
    site = cluster(c1=4, c2=4)
    site.slurm.submit_array("0-29", run_s=2.0)
    scheduler = site.scheduler(ENFORCE)
    ran: dict[int, tuple[str, ...]] = {}
    for _ in range(40):
        scheduler.cycle()
        site.slurm.sleep(1.0)
        ran |= {job.array_task: job.allocated for job in site.slurm.jobs.values() if job.allocated}
    assert (len(site.slurm.started), len(site.slurm.ended), site.slurm.jobs) == (30, 30, {})
    placed = {task_of(start.job_id)[1]: start.nodes for _, plan, *_ in site.decisions.cycles for start in plan.starts}
    assert (ran, sorted(ran)) == (placed, list(range(30)))
    assert {order.address for order in site.slurm.orders if order.kind == "place"} == {f"1_{at}" for at in range(30)}


def test_each_decision_names_the_task() -> None:
    site = cluster(c1=1)
    site.slurm.submit_array("7-9")
    site.scheduler(ENFORCE).cycle()
    assert site.decisions.tasks == {task_id(1, 7): (1, 7)}
    assert site.log[0].startswith("job 1_7: placed on c1")


@pytest.mark.parametrize("limit", [1, 3])
def test_the_loop_never_passes_an_arrays_limit(limit: int) -> None:
    site = cluster(c1=8)
    site.slurm.submit_array("0-19", run_s=2.0, array_limit=limit)
    scheduler = site.scheduler(ENFORCE)
    for _ in range(70):
        scheduler.cycle()
        assert sum(each.begin_s <= site.slurm.now() for each in site.slurm.jobs.values()) <= limit
        site.slurm.sleep(1.0)
    assert len(site.slurm.ended) == 20


@pytest.mark.long
def test_an_array_whose_tasks_all_wait_is_renewed_as_one() -> None:
    site = cluster(c1=1)
    site.slurm.submit(1, run_s=10_000)
    site.slurm.submit_array("0-99")
    site.scheduler(ENFORCE).repeat(4000, 2.0)
    assert len(site.slurm.jobs) == 2
    renewed = [order for order in site.slurm.orders if order.kind == "renew"]
    assert {(order.job_id, order.address) for order in renewed} == {(2, "")}
    assert len(renewed) <= 3


def test_the_kill_switch_frees_the_record_and_splits_nothing_off() -> None:
    site = cluster(c1=2)
    site.slurm.submit_array("0-99")
    scheduler = site.scheduler(ENFORCE)
    site.switch.on = True
    scheduler.cycle()
    assert {job_id: job.record.free_why for job_id, job in site.slurm.jobs.items()} == {1: "disabled"}
    assert site.slurm.jobs[1].array_tasks == "0-99"


def test_a_task_that_was_cancelled_in_the_meantime_is_a_line_of_the_log() -> None:
    class Gone(FakeSlurm):
        def place(self, order) -> None:
            if order.address:
                raise Refused("scontrol: Job has already finished")
            super().place(order)

    site = Site(Gone({"c1": 2}))
    site.slurm.submit_array("0-99")
    site.slurm.submit(1)
    view = site.scheduler(ENFORCE).cycle()
    assert "job 1_0: Slurm refused the placement on c1: scontrol: Job has already finished" in site.log
    assert view.plan.starts == ()
    assert site.history.tries[1].failures == 1, "the record pauses, however many of its tasks were refused"
