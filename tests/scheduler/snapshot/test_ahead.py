"""Jobs that wait for other jobs alone are placed ahead while nothing waits for room."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from hypothesis import given
from hypothesis import strategies as st
from live import ALICE, BOB, ENFORCE, FOREIGN, HELD, NOW, job, look, node, pinned, running, situation, tasks, tried

from slurm_sns.model import Alternative, Plan, Resources, Start
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.observation import JobState, ObservedReservation
from slurm_sns.scheduler.snapshot.ahead import MOST_AHEAD, ahead_of_time, to_take_back
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD
from slurm_sns.task_ids import task_of

AFTER = {"waits_for_others": True, "reason": "Dependency"}
#: A job that is placed ahead already.
AHEAD = {"begin_s": 0, **AFTER}
THREE = tuple(node(name) for name in ("c1", "c2", "c3"))


def array(limit: int, expression: str = "3-19", **fields):
    return job(7, array_id=7, array_tasks=expression, array_limit=limit, **fields)


def sibling(task: int, **fields):
    return running(100 + task, "c1", array_id=7, array_task=task, array_limit=3, **fields)


def busy(name: str):
    return node(name, taken=(1, 1000))


def started(*starts: tuple[int, str]) -> Plan:
    one = Alternative(1, Resources(1, 1000))
    return Plan(actions=tuple(Start(job_id, (name,), one) for job_id, name in starts))


NONE_STARTED = Plan()


def ahead(*jobs, plan=NONE_STARTED, nodes=THREE, settings=ENFORCE, tries=(), **shown):
    """The jobs that are to be placed ahead, tasks by their numbers, and the nodes that they may have."""
    seen = ahead_of_time(
        situation(look(*jobs, nodes=nodes, **shown), *tries, settings=settings), plan, settings, NEVER_SPREAD
    )
    if seen is None:
        return [], []
    ids = [each.id for each in seen.snapshot.waiting]
    assert all(seen.job(job_id) is not None for job_id in ids)
    return [(task_of(job_id) or (0, job_id))[1] for job_id in ids], [each.name for each in seen.snapshot.nodes]


def test_a_job_that_waits_for_its_dependency_alone_is_planned_on_nodes_on_which_nothing_runs():
    nodes = [busy("c1"), node("c2"), node("c3")]
    assert ahead(running(1, "c1"), job(2, **AFTER), nodes=nodes) == ([2], ["c2", "c3"])


def test_nothing_is_placed_ahead_where_something_runs_on_each_node():
    assert ahead(running(1, "c1"), job(2, **AFTER), nodes=[busy("c1")]) == ([], [])


def test_it_does_not_get_the_nodes_that_this_cycle_has_filled():
    assert ahead(job(1), job(2, **AFTER), plan=started((1, "c1"))) == ([2], ["c2", "c3"])


def test_it_does_not_get_a_node_that_a_reservation_has_later():
    later = ObservedReservation("upgrade", frozenset({"c2"}), int(NOW) + 90_000, int(NOW) + 99_000)
    assert ahead(job(2, **AFTER), reservations=(later,)) == ([2], ["c1", "c3"])


@pytest.mark.parametrize(
    "fields",
    [
        HELD,
        {"reason": "DependencyNeverSatisfied"},
        {"deadline_s": 1, "state": JobState.ENDED},
        {"partitions": ("plain",)},
    ],
)
def test_a_job_that_waits_for_anything_else_as_well_is_not_placed_ahead(fields):
    assert ahead(job(2, **{**AFTER, **fields})) == ([], [])


def test_a_job_whose_placement_failed_is_not_placed_ahead():
    assert ahead(job(2, **AFTER), tries=[tried(2)]) == ([], [])


def test_nothing_is_placed_ahead_while_a_job_of_ours_waits_for_room():
    assert ahead(job(1), job(2, **AFTER)) == ([], [])


def test_nothing_is_placed_ahead_while_a_job_of_slurms_own_waits_for_room():
    slurms = tasks(1, 9, **FOREIGN, planned_on=("c1",), start_s=100_900, reason="Resources")
    assert ahead(slurms, job(2, **AFTER)) == ([], [])


@pytest.mark.parametrize(("runs", "placed", "expected"), [(3, 0, 3), (3, 3, 3), (3, 5, 1), (3, 6, 0), (0, 0, 3)])
def test_a_limited_array_has_two_waves_of_tasks_ahead_of_those_that_run(runs, placed, expected):
    siblings = [sibling(at) for at in range(runs)]
    waiting = [pinned(200 + at, "c2", array_id=7, array_task=30 + at, array_limit=3, **AHEAD) for at in range(placed)]
    first = 3 if runs + placed >= 3 else 6  # those that the limit leaves room for are planned as ever
    plan = NONE_STARTED if first == 3 else started(*(((7 << 32) + 1 + at, "c1") for at in (3, 4, 5)))
    found, _ = ahead(array(3), *siblings, *waiting, plan=plan)
    assert found == list(range(first, first + expected))


def test_a_task_with_an_id_of_its_own_is_placed_ahead_before_its_arrays_record():
    split = job(50, array_id=7, array_task=2, array_limit=3)
    found, _ = ahead(split, array(3), *(sibling(at) for at in (0, 1, 30)))
    assert found == [50, 3, 4]


@given(st.integers(0, 40), st.integers(0, 90))
def test_there_are_never_more_than_the_most_ahead_and_owners_take_turns(placed, waiting):
    before = [pinned(1000 + at, "c1", **AHEAD) for at in range(placed)]
    jobs = [job(at + 1, **AFTER) for at in range(waiting)]
    found, _ = ahead(*before, *jobs, job(500, user_id=BOB, **AFTER))
    assert len(found) == max(0, min(waiting + 1, MOST_AHEAD - placed))
    assert 500 in found or len(found) < 2


def taken_back(*jobs, plan=NONE_STARTED, nodes=THREE) -> list[int]:
    return [each.id for each in to_take_back(situation(look(*jobs, nodes=nodes)), plan)[0]]


def test_placements_ahead_stay_while_nothing_waits_for_room():
    assert taken_back(pinned(1, "c1", **AHEAD), job(2), plan=started((2, "c2"))) == []


def test_all_placements_ahead_are_taken_back_when_a_job_waits_for_room_and_no_others():
    assert taken_back(pinned(1, "c1", **AHEAD), pinned(3, "c2"), pinned(4, "c3", **AHEAD), job(2)) == [1, 4]


def test_a_placement_ahead_is_taken_back_when_its_node_is_not_available():
    gone = replace(node("c1"), unavailable="down")
    assert taken_back(pinned(1, "c1", **AHEAD), pinned(2, "c2", **AHEAD), nodes=[gone, node("c2")]) == [1]


# --- the loop


def statuses(site: Site) -> dict[int, Status]:
    return dict(situation(site.slurm.observe(), now_s=site.slurm.time_s).statuses)


def chain(site: Site, links: int) -> None:
    for link in range(1, links + 1):
        site.slurm.submit(1, run_s=2.0, waits_for_others=link > 1)
        if link > 1:
            site.slurm.after[link] = link - 1


def test_each_link_of_a_chain_starts_in_the_tick_in_which_the_one_before_ends_though_no_cycle_comes_between():
    site = Site(FakeSlurm({"c1": 4, "c2": 4}))
    chain(site, 5)
    site.scheduler(ENFORCE).cycle()
    site.slurm.sleep(0.1)
    assert list(statuses(site).values()) == [Status.RUNNING, *[Status.AHEAD] * 4]
    for _ in range(4):
        site.slurm.sleep(2.5)
    assert [job_id for job_id, _ in site.slurm.started] == [1, 2, 3, 4, 5]


def test_a_job_that_waits_for_room_gets_that_of_placements_ahead_a_cycle_later():
    site = Site(FakeSlurm({"c1": 4, "c2": 4}))
    chain(site, 2)
    site.slurm.change(1, walltime_s=3600)
    site.slurm.run_s[1] = 900.0
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2, 1.0)
    assert statuses(site)[2] is Status.AHEAD
    site.slurm.submit(4, user_id=BOB)
    scheduler.repeat(3, 1.0)
    assert (3, ("c2",)) in site.slurm.started
    assert statuses(site)[2] is Status.GATED
    assert not site.slurm.jobs[2].pinned_to


@pytest.mark.parametrize("limit", [1, 3])
def test_a_limited_array_runs_as_many_tasks_as_it_may_in_each_tick(limit):
    site = Site(FakeSlurm({"c1": 8, "c2": 8, "c3": 8}))
    site.slurm.submit_array("0-11", run_s=1.0, array_limit=limit, user_id=ALICE)
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(2 + 12 // limit, 1.0)
    site.slurm.sleep(1.0)
    assert len(site.slurm.ended) == 12
    assert max(site.slurm.in_use) == limit
