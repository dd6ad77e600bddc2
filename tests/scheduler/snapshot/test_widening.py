"""Waiting jobs that may run in more partitions from now on: in those of their group."""

from dataclasses import replace

import pytest
from live import ENFORCE, HELD, NOW, SUBMIT, job, look, node, pinned, running, situation

from slurm_sns.scheduler.observation import DatabaseQueue, ObservedPartition, PartitionAccess, PreemptionRules
from slurm_sns.scheduler.snapshot.widening import Widening

SETTINGS = replace(
    ENFORCE,
    partitions=frozenset({"main", "old", "older", "other"}),
    pools=(("main", "old"),),
    queued_check_s=600.0,
)
NODES = [node("c1", partitions=frozenset({"main"})), node("o1", partitions=frozenset({"old"}))]
NODES += [node("o2", partitions=frozenset({"older"})), node("x1", partitions=frozenset({"other"}))]
PARTITIONS = tuple(ObservedPartition(name) for name in ("main", "old", "older", "other"))
WAITED = SUBMIT  # 1,000 s ago


def found(*jobs, settings=SETTINGS, partitions=PARTITIONS, nodes=NODES, **more) -> dict[int, Widening]:
    return dict(situation(look(*jobs, nodes=nodes, partitions=partitions, **more), settings=settings).widenings)


def others(*jobs, **more) -> tuple[str, ...]:
    (one,) = found(*jobs, **more).values()
    return one.others


def test_a_job_that_has_waited_may_run_in_the_others_of_its_group() -> None:
    assert found(job(1)) == {1: Widening(("old",), "it has waited for 17 min")}
    assert found(job(1, partitions=("old",))) == {1: Widening(("main",), "it has waited for 17 min")}


def test_it_is_given_them_when_it_has_waited_for_so_long_since_its_owner_wanted_it_to_begin() -> None:
    young = job(1, submit_s=int(NOW) - 599)
    begun = job(2, admin_comment="sns:2 g=107000 b=99401")
    assert found(young, begun) == {}
    assert set(found(replace(young, submit_s=young.submit_s - 1), replace(begun, submit_s=0))) == {1}
    later = replace(SETTINGS, queued_check_s=599.0)
    assert set(found(young, begun, settings=later)) == {1, 2}


def test_a_requeued_job_need_not_wait_for_that() -> None:
    again = job(1, submit_s=int(NOW), restarts=1, admin_comment="sns:2 g=107000 r=1")
    assert found(again) == {1: Widening(("old",), "it has been requeued")}
    never_waiting = replace(SETTINGS, queued_check_s=0.0)
    assert found(again, settings=never_waiting) == {}
    assert set(found(again, job(2), settings=replace(never_waiting, restarts=True))) == {1}


def test_a_job_in_two_partitions_of_three_gets_the_third() -> None:
    three = replace(SETTINGS, pools=(("main", "old", "older"),))
    assert others(job(1, partitions=("older", "main")), settings=three) == ("old",)
    assert others(job(1, partitions=("old",)), settings=three) == ("main", "older")
    assert found(job(1, partitions=("old", "older", "main")), settings=three) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"partitions": ("other",)},
        {"partitions": ("main", "other")},
        {"partitions": ("old", "main")},
        HELD,
        {"waits_for_others": True},
        {"begin_s": int(NOW) + 500},
        {"admin_comment": "sns:2 g=107000 p=main"},
        {"admin_comment": "sns:2 g=107000 p=main", "partitions": ("old",)},  # its owner has moved it since
        {"admin_comment": "sns:2 g=107000 p=main", "restarts": 1},
        {"admin_comment": "sns:2 free=clean-stop"},
        {"admin_comment": ""},
        {"tasks": 1000, "cpus": 1000, "nodes_max": 1},
    ],
)
def test_a_job_stays_where_it_is_if_it_is_in_no_group_or_had_its_turn_or_is_not_to_be_placed_now(fields) -> None:
    assert found(job(1, **fields)) == {}


def test_what_is_placed_or_runs_stays_as_it_is() -> None:
    assert found(pinned(1, "c1"), running(2, "o1")) == {}


def test_nothing_is_widened_where_it_is_off_or_nothing_is_changed() -> None:
    for off in ({"queued_check_s": 0.0}, {"pools": ()}, {"mode": "observe"}, {"mode": "advise"}):
        assert found(job(1), settings=replace(SETTINGS, **off)) == {}


def test_while_messages_for_slurmdbd_pile_up_no_job_is_widened() -> None:
    assert found(job(1), database_queue=DatabaseQueue(2501, 10_000)) == {}
    assert set(found(job(1), database_queue=DatabaseQueue(2500, 10_000))) == {1}


def test_a_job_of_several_nodes_is_widened_too() -> None:
    nodes = [node(f"{name[0]}{number}", partitions=frozenset({name})) for name in ("main", "old") for number in (1, 2)]
    wide = job(1, nodes_min=2, nodes_max=2, tasks=2, cpus=2)
    assert others(wide, nodes=nodes) == ("old",)


def test_a_deadline_or_an_arrays_record_are_no_hindrance() -> None:
    assert others(job(1, deadline_s=int(NOW) + 20_000)) == ("old",)
    assert others(job(41, array_id=41, array_tasks="3-9")) == ("old",)


@pytest.mark.parametrize(
    "closed",
    [
        {"state": "DOWN"},
        {"state": "DRAIN"},
        {"walltime_s": 1800},
        {"access": PartitionAccess(accounts=frozenset({"chemistry"}))},
        {"access": PartitionAccess(accounts_denied=frozenset({"physics"}))},
        {"access": PartitionAccess(qos=frozenset({"high"}))},
        {"access": PartitionAccess(qos_denied=frozenset({"normal"}))},
        {"access": PartitionAccess(groups=frozenset({"staff"}))},
    ],
)
def test_a_partition_that_is_closed_to_the_job_is_left_out(closed) -> None:
    three = replace(SETTINGS, pools=(("main", "old", "older"),))
    partitions = tuple(replace(each, **closed) if each.name == "old" else each for each in PARTITIONS)
    mine = job(1, account="physics", qos="normal")
    assert found(mine, partitions=partitions) == {}
    assert others(mine, settings=three, partitions=partitions) == ("older",)


def test_a_partition_that_lets_in_the_jobs_account_qos_and_the_groups_of_its_own_is_not() -> None:
    access = PartitionAccess(
        frozenset({"staff"}), frozenset({"physics"}), frozenset({"physics"}), frozenset({"normal"})
    )
    partitions = tuple(replace(each, access=access) for each in PARTITIONS)
    assert others(job(1, account="physics", qos="normal"), partitions=partitions) == ("old",)


def test_a_job_is_not_widened_where_we_could_no_longer_place_it() -> None:
    takes_all = job(1, memory_per_cpu_mb=None, memory_per_node_mb=0, is_alone=True)
    smaller = [*NODES[:1], replace(NODES[1], capacity=NODES[1].capacity._replace(memory_mb=64_000))]
    assert others(takes_all) == ("old",)
    assert found(takes_all, nodes=smaller) == {}
    tiers = (PARTITIONS[0], replace(PARTITIONS[1], tier=2))
    shared = [node("c1", partitions=frozenset({"main", "old"}))]
    preempts = PreemptionRules("preempt/partition_prio", "REQUEUE")
    assert others(job(1), partitions=tiers, nodes=shared) == ("old",)
    assert found(job(1), partitions=tiers, nodes=shared, preemption=preempts) == {}


def test_a_partition_whose_nodes_could_never_hold_the_job_is_left_out() -> None:
    large = job(1, tasks=20, cpus=20, nodes_max=1)
    small = [NODES[0], replace(NODES[1], capacity=NODES[1].capacity._replace(cores=16))]
    assert others(large) == ("old",)
    assert found(large, nodes=small) == {}


def test_a_job_whose_own_partition_is_down_may_start_in_the_others() -> None:
    partitions = (replace(PARTITIONS[0], state="DOWN"), *PARTITIONS[1:])
    assert others(job(1), partitions=partitions) == ("old",)


@pytest.mark.parametrize("state", ["DRAIN", "INACTIVE"])
def test_a_job_whose_own_partition_takes_no_new_jobs_stays_for_slurm_would_drop_it_from_the_list(state: str) -> None:
    partitions = (replace(PARTITIONS[0], state=state), *PARTITIONS[1:])
    assert found(job(1), partitions=partitions) == {}
