"""A scheduler gives jobs that have waited the other partitions of their group, and Slurm is asked once for each job."""

from dataclasses import replace

import pytest
from fake_slurm import Crash, FakeSlurm, Site
from live import BOB, ENFORCE

from slurm_sns.errors import Outdated, Refused, Unreachable
from slurm_sns.scheduler.dispatch.dispatcher import MOST_FOLLOW_UPS
from slurm_sns.scheduler.observation import ObservedPartition

ALIKE = replace(ENFORCE, pools=(("main", "small"),), queued_check_s=2.0)


@pytest.fixture
def site() -> Site:
    """Partition main with a node of 4 cores, and small with one that nobody uses."""
    site = Site(FakeSlurm({"c1": 4, "s1": 4}))
    site.slurm.shown = {"partitions": (ObservedPartition("main"), ObservedPartition("small"))}
    return site


def partitions(site: Site, number: int) -> tuple[str, ...]:
    return site.slurm.jobs[number].partitions


def test_a_job_that_has_waited_starts_in_the_other_partition(site: Site) -> None:
    site.slurm.submit(4, 4, run_s=100.0)
    loop = site.scheduler(ALIKE)
    loop.repeat(2, 1.0)
    assert partitions(site, 2) == ("main",)
    site.log.clear()
    site.slurm.sleep(1.0)
    loop.cycle()
    assert (partitions(site, 1), partitions(site, 2)) == (("main",), ("main", "small"))
    note = "may start in main and small from now on: it has waited for 2 s"
    assert site.log == [f"job 2: {note}"]
    assert site.decisions.cycles[-1][2] == {2: note}
    loop.repeat(2, 1.0)
    assert site.slurm.started == [(1, ("c1",)), (2, ("s1",))]
    record = site.slurm.jobs[2].record
    assert (record.own_partitions, record.nodes) == (("main",), ("s1",))


def test_what_its_owner_changes_afterwards_stays(site: Site) -> None:
    site.slurm.submit(4, 4, run_s=100.0)
    loop = site.scheduler(ALIKE)
    loop.cycle()
    site.slurm.sleep(2.0)
    loop.cycle()
    site.slurm.change(2, partitions=("main",))
    loop.repeat(20, 10.0)
    assert partitions(site, 2) == ("main",)
    assert [order.kind.value for order in site.slurm.orders].count("widen") == 1


def test_a_job_that_becomes_slurms_keeps_them(site: Site) -> None:
    site.slurm.submit(4, 4, run_s=100.0)
    loop = site.scheduler(ALIKE)
    loop.cycle()
    site.slurm.sleep(2.0)
    loop.cycle()
    loop.stop()
    assert partitions(site, 2) == ("main", "small")
    assert site.slurm.jobs[2].admin_comment == "sns:2 p=main free=clean-stop"


def test_under_the_kill_switch_and_in_other_modes_no_job_is_given_any(site: Site) -> None:
    for mode, switch in (("enforce", True), ("observe", False), ("advise", False)):
        site.slurm.submit(4, 4, run_s=1000.0)
        site.slurm.sleep(2.0)
        site.switch.on = switch
        site.scheduler(replace(ALIKE, mode=mode)).repeat(2, 1.0)
    assert {each.partitions for each in site.slurm.jobs.values()} == {("main",)}


def test_what_slurm_refuses_is_asked_once_and_is_a_line_of_the_log(site: Site) -> None:
    def refuse(order) -> None:
        asked.append(order.job_id)
        raise Refused("User's group not permitted to use this partition")

    asked: list[int] = []
    site.slurm.submit(4, 4, run_s=100.0)
    site.slurm.widen = refuse
    loop = site.scheduler(ALIKE)
    loop.cycle()
    site.log.clear()
    site.slurm.sleep(2.0)
    loop.repeat(5, 10.0)
    assert asked == [2]
    assert site.log == [
        "job 2: could not be given the partitions main and small: User's group not permitted to use this partition"
    ]
    site.slurm.sleep(100.0)
    loop.repeat(2, 1.0)
    assert [each for each, _ in site.slurm.started] == [1, 2]


def test_a_job_that_has_just_changed_is_given_them_later(site: Site) -> None:
    def outdated(_order) -> None:
        del site.slurm.widen
        raise Outdated("it has changed since it was looked at")

    site.slurm.submit(4, 4, run_s=100.0)
    site.slurm.widen = outdated
    loop = site.scheduler(ALIKE)
    loop.cycle()
    site.slurm.sleep(2.0)
    loop.repeat(2, 1.0)
    assert partitions(site, 2) == ("main", "small")


def test_of_many_due_at_once_users_take_turns_and_the_next_cycle_goes_on(site: Site) -> None:
    site.slurm.starts_nothing = True
    site.slurm.submit(4, run_s=100.0)
    loop = site.scheduler(ALIKE)
    loop.cycle()
    many = MOST_FOLLOW_UPS + 10
    site.slurm.submit(*many * [4])
    site.slurm.submit(4, user_id=BOB, user="bob")
    site.slurm.shown = {"partitions": (ObservedPartition("main"), ObservedPartition("small"))}
    site.slurm.sleep(2.0)

    def widened() -> list[int]:
        return [each.id for each in site.slurm.jobs.values() if each.record.own_partitions]

    loop.cycle()
    assert len(widened()) == MOST_FOLLOW_UPS
    assert many + 2 in widened()
    loop.cycle()
    assert len(widened()) == many + 1


def test_an_arrays_record_is_widened_as_a_whole(site: Site) -> None:
    site.slurm.submit(4, run_s=100.0)
    array = site.slurm.submit_array("3-5", 4)
    loop = site.scheduler(ALIKE)
    loop.cycle()
    site.slurm.sleep(2.0)
    loop.cycle()
    assert partitions(site, array) == ("main", "small")
    loop.repeat(2, 1.0)
    assert ("s1",) in [nodes for _, nodes in site.slurm.started]
    assert {each.partitions for each in site.slurm.jobs.values() if each.array_id} == {("main", "small")}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("problem", [Unreachable("no answer"), Crash()])
def test_wherever_that_fails_the_job_runs_once(site: Site, problem, after: bool) -> None:
    site.slurm.submit(4, 4, run_s=100.0)
    site.scheduler(ALIKE).cycle()
    site.slurm.sleep(2.0)

    def widen(order) -> None:
        if after:
            site.slurm.apply(order)
        del site.slurm.widen
        raise problem

    site.slurm.widen = widen
    with pytest.raises(type(problem)):
        site.scheduler(ALIKE).cycle()
    site.scheduler(ALIKE).repeat(4, 1.0)
    assert site.slurm.started == [(1, ("c1",)), (2, ("s1",))]
