from dataclasses import replace

import pytest
from gate_jobs import (
    GATE,
    HINTS,
    JOBS,
    NOW,
    TIMEOUT_S,
    TIMES,
    gated,
    gated_jobs,
    job_with,
    placed,
    placed_jobs,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from live import applied as applied_at

from slurm_sns.errors import Infeasible
from slurm_sns.gpus import TASK, GpuRequest
from slurm_sns.scheduler.gate import orders
from slurm_sns.scheduler.gate.job_status import Status, has_nodes_of, is_held, status_of
from slurm_sns.scheduler.gate.orders import BOOST, LEAST_BOOSTED, OPEN, GateOrder, OrderKind, Placement
from slurm_sns.scheduler.observation import JobState
from slurm_sns.submit import record as records
from slurm_sns.submit.record import MemoryRequest, Record

_PLACEMENTS = st.builds(
    Placement,
    nodes=st.sampled_from([("c5",), ("c5", "c6")]),
    tasks_per_node=st.none() | st.integers(1, 9),
    memory_mb=st.none() | st.just(32_000),
    ways=st.integers(0, 3),
    bandwidth_gbps=st.integers(0, 3),
)
_LATER = NOW + 5000


def applied(job, order):
    return applied_at(job, order, NOW)


def seen(job):
    return status_of(job, NOW, TIMEOUT_S)


def test_a_placement_pins_opens_boosts_and_notes_in_one_order():
    job = gated(tasks=8, memory_per_cpu_mb=4000, admin_comment="note;sns:2 program=mg g=1764063600")
    order = orders.place(job, Placement(("c1", "c2"), 4, 64_000, 3, 12), NOW + 0.7, has_boost=True)
    assert order == GateOrder(
        7,
        OrderKind.PLACE,
        admin_comment="note;sns:2 program=mg g=1764063600 n=c1,c2 at=1764060000 t=0 tg=4 mo=4000c mg=64000 w=3 bw=12",
        begin_s=OPEN,
        nodes=("c1", "c2"),
        tasks_per_node=4,
        tasks=8,
        gres=(3, 12),
        memory=MemoryRequest(64_000),
        site_factor=BOOST,
    )


def test_an_owners_gpus_stay_beside_the_ways_of_a_placement_and_when_these_are_taken_back():
    job = gated(own_gres="gres/gpu:a:2")
    order = orders.place(job, Placement(("c1",), ways=3, bandwidth_gbps=12), NOW, has_boost=True)
    assert (order.gres, order.own_gres) == ((3, 12), "gres/gpu:a:2")
    bare = orders.place(job, Placement(("c1",)), NOW, has_boost=True)
    assert (bare.gres, bare.own_gres) == (None, ""), "what Slurm has stays as it is"
    noted = placed({"ways": 3, "bandwidth_gbps": 12}, own_gres="gres/gpu:a:2", ways=3, bandwidth_gbps=12)
    for back in (orders.regate(noted, GATE, NOW), orders.free(noted, "clean stop", NOW)):
        assert (back.gres, back.own_gres) == ((0, 0), "gres/gpu:a:2")
    changed = replace(noted, own_gres="gres/gpu:a:4", ways=0, bandwidth_gbps=0)  # by its owner, who has replaced all
    assert orders.regate(changed, GATE, NOW).gres is None


def test_the_cpus_that_go_with_gpus_are_known_when_the_owners_tasks_per_node_come_back():
    asked = GpuRequest(TASK, (("a", 1),), cpus=3)
    noted = placed({"tasks_per_node": 0, "given_tasks_per_node": 4}, tasks=4, tasks_per_node=4, gpus=asked)
    assert orders.regate(noted, GATE, NOW).cpus_of_gpus == 12
    assert orders.regate(replace(noted, tasks_per_node=2), GATE, NOW).cpus_of_gpus == 0, "its owner has changed it"


def test_without_a_site_factor_there_is_no_boost():
    assert orders.place(gated(), Placement(("c1",)), NOW, has_boost=False).site_factor is None


def test_a_job_without_a_record_or_with_too_many_nodes_cannot_be_placed():
    with pytest.raises(Infeasible, match="has no record"):
        orders.place(job_with(), Placement(("c1",)), NOW, has_boost=True)
    with pytest.raises(Infeasible, match="9000 nodes"):
        orders.place(gated(), Placement(tuple(f"node{n:05}" for n in range(9000))), NOW, has_boost=True)


@given(gated_jobs(), _PLACEMENTS, st.booleans())
def test_a_placed_job_is_seen_as_placed(job, placement, has_boost):
    job = replace(job, reason="")  # Slurm's reason until its next pass
    placed_as = Status.AHEAD if job.waits_for_others else Status.PLACED
    after = applied(job, orders.place(job, placement, NOW, has_boost=has_boost))
    assert seen(after) is (Status.HELD_PLACED if is_held(job) else placed_as)


@given(gated_jobs(), _PLACEMENTS)
def test_what_a_placement_changed_is_as_before_once_it_is_taken_back(job, placement):
    job = replace(
        job,
        priority=min(job.priority, 2526),
        memory_per_node_mb=None if job.memory_per_cpu_mb else job.memory_per_node_mb,
    )
    after = applied(job, orders.place(job, placement, NOW, has_boost=True))
    back = applied(after, orders.regate(after, _LATER, NOW))
    own_mb = job.memory_per_node_mb
    if job.memory_per_cpu_mb is None and placement.memory_mb is not None:
        own_mb = own_mb or 0  # to Slurm, no memory and the whole memory are one
    noted = replace(job.record, gate_s=_LATER, restarts=max(job.restarts, job.record.restarts))
    comment = records.written(job.admin_comment, noted)
    assert back == replace(job, admin_comment=comment, begin_s=_LATER, memory_per_node_mb=own_mb)


@given(placed_jobs())
def test_a_job_that_is_gated_again_is_gated(job):
    order = orders.follow_up(job, seen(job), _LATER, NOW)
    assume(order is not None and order.kind is OrderKind.REGATE)
    after = applied(job, order)
    # What its owner asks for beside the placement is looked at next, and makes it Slurm's.
    keeps_owners = after.pinned_to or after.ways or after.bandwidth_gbps or after.has_other_gres or not after.is_plain
    assert seen(after) is (Status.TAKEN if keeps_owners else Status.GATED)
    assert not after.record.is_placed
    assert after.priority < LEAST_BOOSTED


@given(placed_jobs() | gated_jobs() | JOBS, st.text())
def test_a_freed_job_is_slurms_with_nothing_of_ours_on_it(job, why):
    order = orders.free(job, why, NOW)
    assume(order is not None)
    after, was = applied(job, order), job.record
    assert seen(after) is Status.SLURMS
    assert not has_nodes_of(after, was)
    assert not was.is_placed or after.priority < LEAST_BOOSTED
    assert after.begin_s <= NOW or after.begin_s != was.gate_s or after.begin_s == was.begin_s
    assert not (
        was.ways and (after.ways, after.bandwidth_gbps, after.has_other_gres) == (was.ways, was.bandwidth_gbps, 0)
    )
    assert was.given_tasks_per_node is None or after.tasks_per_node != was.given_tasks_per_node
    assert orders.free(after, why, NOW) is None


@given(gated_jobs(), TIMES)
def test_a_renewed_job_is_gated(job, begin_s):
    job = replace(job, begin_s=begin_s)
    assume(seen(job) in (Status.GATED, Status.LAPSED, Status.OWN_TIME))
    assert seen(applied(job, orders.renew(job, _LATER, NOW))) is Status.GATED


@given(placed_jobs() | gated_jobs() | JOBS, _PLACEMENTS)
def test_an_order_that_is_applied_twice_does_what_it_does_once(job, placement):
    found = [orders.follow_up(job, seen(job), gate_s, NOW) for gate_s in (_LATER, None)]
    found += [orders.free(job, "stop", NOW), orders.renew(job, _LATER, NOW), orders.unboost(job)]
    if job.record is not None:
        found.append(orders.place(job, placement, NOW, has_boost=True))
    for order in filter(None, found):
        once = applied(job, order)
        assert applied(once, order) == once


@given(placed_jobs() | JOBS)
def test_a_field_that_is_not_as_the_record_says_is_left_alone(job):
    for order in (orders.regate(job, _LATER, NOW), orders.free(job, "stop", NOW)):
        if order is None:
            continue
        record = job.record
        assert order.nodes in (None, ())
        assert (order.nodes is None) == (set(job.pinned_to) != set(record.nodes) or not job.pinned_to)
        if job.tasks_per_node != record.given_tasks_per_node:
            assert order.tasks_per_node is order.tasks is None
        if job.memory_per_cpu_mb is not None or job.memory_per_node_mb != record.given_memory_mb:
            assert order.memory is None
        if job.has_other_gres or (job.ways, job.bandwidth_gbps) != (record.ways, record.bandwidth_gbps):
            assert order.gres is None
        assert order.site_factor == (0 if record.is_placed else None)


@given(placed_jobs() | gated_jobs() | JOBS)
def test_after_a_few_orders_every_job_is_at_rest(job):
    for _ in range(3):
        order = orders.follow_up(job, seen(job), _LATER, NOW)
        if order is None:
            break
        job = applied(job, order)
    assert orders.follow_up(job, seen(job), _LATER, NOW) is None


@given(placed_jobs() | gated_jobs())
def test_the_text_of_others_stays_in_the_field(job):
    for order in (orders.regate(job, _LATER, NOW), orders.free(job, "stop", NOW), orders.renew(job, _LATER, NOW)):
        assert order is None or order.admin_comment.startswith("a site's note;sns:2")


def test_a_placed_job_with_its_owners_nodes_is_freed_and_keeps_them():
    order = orders.follow_up(placed(pinned_to=("c9",)), Status.CHANGED, _LATER, NOW)
    assert order == GateOrder(7, OrderKind.FREE, "sns:2 program=mg free=node-list", site_factor=0)


def test_a_placed_job_with_its_owners_begin_time_is_gated_again_and_the_time_is_noted():
    own = NOW + 90_000
    order = orders.follow_up(placed(begin_s=own), Status.CHANGED, own, NOW)
    assert order == GateOrder(7, OrderKind.REGATE, f"sns:2 program=mg g={own} b={own}", own, nodes=(), site_factor=0)


def test_a_requeued_job_is_gated_again_and_slurms_delay_is_not_noted_as_its_owners():
    order = orders.follow_up(placed(restarts=2, begin_s=NOW + 121), Status.REQUEUED, _LATER, NOW)
    assert order.admin_comment == f"sns:2 program=mg g={_LATER} r=2"
    assert order.nodes == ()


def test_a_requeued_job_with_its_owners_nodes_is_freed():
    order = orders.follow_up(placed(restarts=2, pinned_to=("c9",)), Status.REQUEUED, _LATER, NOW)
    assert order.kind is OrderKind.FREE
    assert order.nodes is None


def test_freeing_opens_our_gate_and_leaves_the_owners_begin_time():
    own = NOW + 90_000
    noted = job_with(Record(HINTS, gate_s=GATE, begin_s=own), begin_s=GATE)
    at_own_time = job_with(Record(HINTS, gate_s=own, begin_s=own), begin_s=own)
    assert orders.free(gated(), "stop", NOW).begin_s == OPEN
    assert orders.free(gated(begin_s=own), "stop", NOW).begin_s is None
    assert orders.free(noted, "stop", NOW).begin_s == own
    assert applied(at_own_time, orders.free(at_own_time, "stop", NOW)).begin_s == own
    assert orders.free(gated(begin_s=0), "stop", NOW).begin_s is None


def test_what_its_owner_has_opened_begins_now_though_an_older_begin_time_of_theirs_lies_ahead():
    job = job_with(Record(HINTS, gate_s=GATE, begin_s=GATE), begin_s=NOW - 1)
    assert seen(job) is Status.TAKEN
    assert orders.free(job, "opened by its owner", NOW).begin_s is None


def test_a_text_of_its_owners_that_looks_like_a_grant_stays_on_a_job_that_is_not_placed():
    job = gated(extra="sns:grant=1:abc")
    assert orders.free(job, "stopped", NOW).extra is None
    assert orders.place(job, Placement(("c1",)), NOW, has_boost=True).extra is None


def test_a_job_is_given_partitions_after_its_own_which_its_record_keeps_whatever_follows():
    job = gated(partitions=("main",), admin_comment="note;sns:2 program=mg g=1764063600 b=1764060900 r=2", restarts=2)
    order = orders.widen(job, ("old", "older"))
    noted = "note;sns:2 program=mg g=1764063600 b=1764060900 r=2 p=main"
    assert order == GateOrder(7, OrderKind.WIDEN, noted, partitions=("main", "old", "older"))
    job = applied(job, order)
    assert seen(job) is Status.GATED
    for follow in (
        lambda job: orders.renew(job, _LATER, NOW),
        lambda job: orders.place(job, Placement(("c1",)), NOW, has_boost=True),
        lambda job: orders.regate(job, _LATER, NOW),
        lambda job: orders.free(job, "stop", NOW),
    ):
        job = applied(job, follow(job))
        assert job.record.own_partitions == ("main",)
        assert job.partitions == ("main", "old", "older")


def test_no_job_is_given_partitions_that_is_slurms_or_placed_or_not_ours():
    for job in (job_with(Record(free_why="advise")), placed(), job_with()):
        assert orders.widen(job, ("old",)) is None


def test_a_held_job_is_freed_and_nothing_of_its_hold_is_touched():
    job = placed(priority=0, reason="JobHeldUser")
    assert applied(job, orders.free(job, "stop", NOW)).priority == 0


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUSPENDED, JobState.ENDED])
def test_a_job_that_does_not_wait_is_not_freed(state):
    assert orders.free(replace(placed(), state=state), "stop", NOW) is None


def test_a_running_job_loses_its_boost_once_and_keeps_its_record():
    job = replace(placed(priority=2526 + BOOST), state=JobState.RUNNING)
    order = orders.follow_up(job, seen(job), _LATER, NOW)
    assert order == GateOrder(7, OrderKind.UNBOOST, site_factor=0)
    assert orders.follow_up(applied(job, order), Status.RUNNING, _LATER, NOW) is None


@pytest.mark.parametrize("job", [placed(priority=0), placed(begin_s=GATE), gated(begin_s=0), gated(begin_s=GATE + 1)])
def test_a_job_whose_gate_would_be_beyond_its_deadline_is_freed(job):
    order = orders.follow_up(job, seen(job), None, NOW)
    assert order.kind is OrderKind.FREE
    assert "free=deadline" in order.admin_comment


def test_nobody_renews_or_gates_a_job_that_is_slurms_or_placed_or_not_ours():
    slurms = job_with(Record(free_why="advise"))
    assert orders.renew(slurms, _LATER, NOW) is orders.regate(slurms, _LATER, NOW) is None
    assert orders.renew(placed(), _LATER, NOW) is None
    assert orders.renew(job_with(), _LATER, NOW) is orders.regate(job_with(), _LATER, NOW) is None
