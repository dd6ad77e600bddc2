import heapq
from collections import Counter
from dataclasses import replace
from math import inf

import pytest
from gate_jobs import GATE, HINTS, JOBS, NOW, TIMEOUT_S, TIMES, gated, gated_jobs, job_with
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_sns.scheduler.gate import leases, orders
from slurm_sns.scheduler.gate.job_status import Status, own_begin_s, status_of
from slurm_sns.scheduler.gate.leases import DatabaseQueue
from slurm_sns.submit.record import Record

LEASE = leases.leases(30, 7200, 100)


def gated_until(job_id, gate_s, **fields):
    comment = f"sns:2 g={gate_s}"
    return replace(job_with(), **{"id": job_id, "admin_comment": comment, "begin_s": gate_s, **fields})


def renewed(jobs, interval_s=1.0, queue=leases.EMPTY_QUEUE, now_s=NOW):
    pairs = [(job, status_of(job, now_s, TIMEOUT_S)) for job in jobs]
    return [(job.id, gate_s) for job, gate_s in leases.renewals(pairs, now_s, LEASE, interval_s, queue)]


def test_the_first_lease_is_two_heartbeat_timeouts_and_at_least_a_minute():
    assert [leases.first_lease_s(timeout_s) for timeout_s in (2, 30, 30.2, 86_400)] == [60, 60, 61, 172_800]


@pytest.mark.parametrize(
    ("gated_jobs", "length_s"),
    [(0, 7200), (10_000, 7200), (18_000, 7200), (18_001, 7800), (50_000, 20_400), (108_000, 43_200), (10**6, 43_200)],
)
def test_a_lease_is_two_hours_or_long_enough_for_the_number_of_jobs_and_at_most_twelve(gated_jobs, length_s):
    assert leases.leases(30, 7200, gated_jobs).length_s == length_s


def test_a_lease_is_never_shorter_than_two_first_leases():
    assert leases.leases(86_400, 7200, 1).length_s == 2 * 172_800


@given(st.integers(1, 2**32), st.integers(0, 10**7))
def test_a_gate_is_more_than_half_a_lease_and_at_most_a_whole_one_away(job_id, later_s):
    gate_s = leases.next_gate_s(gated_until(job_id, NOW), NOW + later_s, LEASE)
    assert LEASE.half_s < gate_s - (NOW + later_s) <= LEASE.length_s


def test_the_gates_of_jobs_with_consecutive_ids_are_spread_evenly():
    gates = (leases.next_gate_s(gated_until(job_id, NOW), NOW, LEASE) for job_id in range(5000, 15_000))
    by_minute = Counter(
        (gate_s - NOW - 1) // 60 for gate_s in gates
    )  # the first one is a second away from half a lease
    assert min(by_minute.values()) >= 150  # 10,000 jobs on 60 minutes: 167 each
    assert max(by_minute.values()) <= 185


@given(JOBS)
def test_no_gate_is_past_or_beyond_what_the_deadline_leaves(job):
    """But for the begin time that its owner wants."""
    gate_s, record = leases.next_gate_s(job, NOW, LEASE), job.record
    own_s = None if record is None else own_begin_s(job, record, NOW)
    if gate_s is not None:
        assert NOW < gate_s <= max(leases.latest_s(job), own_s or 0)
    else:
        assert leases.latest_s(job) < NOW + 1


def test_a_deadline_leaves_time_for_the_limit_or_the_shortest_limit_and_a_minute():
    late = {"deadline_s": NOW + 7200}
    assert leases.latest_s(gated(**late, walltime_s=3600)) == NOW + 3540
    assert leases.latest_s(gated(**late, walltime_s=3600, time_min_s=600)) == NOW + 6540
    assert leases.latest_s(gated(**late)) == -inf
    assert leases.latest_s(gated(walltime_s=3600)) == inf


def test_no_gate_opens_before_its_owners_begin_time_whatever_the_deadline():
    job = job_with(Record(gate_s=NOW + 60, begin_s=NOW + 90), begin_s=NOW + 60, deadline_s=NOW + 700, walltime_s=600)
    assert leases.next_gate_s(job, NOW, leases.leases(15, 7200, 1)) == NOW + 90


def test_a_gate_at_the_last_moment_before_a_deadline_is_not_renewed_again():
    job = gated_until(7, NOW + 540, deadline_s=NOW + 1200, walltime_s=600)
    assert renewed([job]) == []
    assert renewed([replace(job, deadline_s=NOW + 1300)]) == [(7, NOW + 640)]
    assert renewed([gated_until(7, NOW - 5, deadline_s=NOW + 600, walltime_s=600)]) == []


def test_a_gate_is_renewed_below_half_a_lease_also_while_its_job_is_held():
    half = NOW + LEASE.half_s
    jobs = [gated_until(1, half), gated_until(2, half - 1), gated_until(3, half - 2, priority=0, reason="JobHeldUser")]
    assert [job_id for job_id, _ in renewed(jobs)] == [3, 2]


def test_the_owners_begin_time_is_the_gate_unless_it_comes_within_the_first_lease():
    far, near = NOW + 400_000, NOW + 59
    assert leases.next_gate_s(gated(begin_s=far), NOW, LEASE) == far
    assert leases.next_gate_s(gated(begin_s=NOW + 60), NOW, LEASE) == NOW + 60
    assert leases.next_gate_s(gated(begin_s=near), NOW, LEASE) == NOW + 60


def test_a_gate_at_the_owners_time_is_renewed_when_that_comes_within_half_the_first_lease():
    def until(left_s):
        return job_with(Record(HINTS, gate_s=NOW + left_s, begin_s=NOW + left_s), begin_s=NOW + left_s)

    assert renewed([until(31)]) == []
    assert renewed([until(30)]) == []
    assert renewed([until(29)]) == [(7, NOW + 60)]


def test_a_gate_beside_the_owners_time_is_not_renewed_at_every_look():
    job = job_with(Record(HINTS, gate_s=NOW + 60, begin_s=NOW + 29), begin_s=NOW + 60)
    assert renewed([job]) == []
    assert [job_id for job_id, _ in renewed([job], now_s=NOW + 29)] == [7]


def test_lapsed_gates_come_first_in_queue_order_then_the_next_to_lapse():
    jobs = [gated_until(1, NOW + 900), gated_until(2, NOW + 40), gated_until(3, NOW - 1), gated_until(4, NOW + 20)]
    jobs += [gated_until(5, NOW - 100), gated_until(6, NOW + 800), gated_until(8, GATE + LEASE.half_s)]
    assert [job_id for job_id, _ in renewed(jobs)] == [3, 5, 4, 2, 6, 1]


@pytest.mark.long
def test_the_renewals_of_a_second_are_bounded_and_a_long_pause_is_not_made_up_for():
    routine = [gated_until(job_id, NOW + 1000) for job_id in range(1, 2000)]
    lapsed = [gated_until(job_id, NOW - 1) for job_id in range(1, 9000)]
    assert len(renewed(routine)) == leases.MOST_PER_S
    assert len(renewed(routine, interval_s=3600)) == leases.MOST_PER_S * leases.MOST_INTERVAL_S
    assert len(renewed(routine, interval_s=0.001)) == 1
    assert len(renewed(lapsed)) == leases.MOST_URGENT_PER_S
    assert len(renewed(lapsed + routine)) == leases.MOST_URGENT_PER_S + leases.MOST_PER_S


def test_while_messages_for_slurmdbd_pile_up_only_what_lapses_soon_is_renewed():
    jobs = [gated_until(1, NOW + 601), gated_until(2, NOW + 600), gated_until(3, NOW + 30), gated_until(4, NOW - 1)]
    filling, quiet = DatabaseQueue(2501, 10_000), DatabaseQueue(2500, 10_000)
    assert [job_id for job_id, _ in renewed(jobs, queue=filling)] == [4, 3, 2]
    assert [job_id for job_id, _ in renewed(jobs, queue=quiet)] == [4, 3, 2, 1]


@pytest.mark.long
@given(gated_jobs(), TIMES)
def test_a_renewed_gate_is_gated_and_not_due_again(job, begin_s):
    job = replace(job, begin_s=begin_s)
    status = status_of(job, NOW, TIMEOUT_S)
    assume(status in (Status.GATED, Status.LAPSED))
    found = leases.renewals([(job, status)], NOW, LEASE, 1.0)
    assume(found)
    order = orders.renew(job, found[0][1], NOW)
    after = replace(job, admin_comment=order.admin_comment, begin_s=order.begin_s)
    assert status_of(after, NOW, TIMEOUT_S) is Status.GATED
    assert not leases.is_due(after, after.record, NOW, LEASE)
    assert own_begin_s(after, after.record, NOW) == own_begin_s(job, job.record, NOW)


class _Day:
    """Gated jobs whose gates are renewed; looks only at those that are due, so that a day takes seconds."""

    def __init__(self, gates, lease, *, queue=leases.EMPTY_QUEUE):
        self.lease, self.queue = lease, queue
        self.left_s = leases.LAPSES_SOON_S + 1 if queue.length else lease.half_s
        self.jobs = {job_id: gated_until(job_id, gate_s) for job_id, gate_s in gates.items()}
        self.heap = [(self._due_s(job), job.id) for job in self.jobs.values()]
        heapq.heapify(self.heap)
        self.due = {}
        self.per_second = []

    def _due_s(self, job):
        return job.begin_s - self.left_s

    def second(self, now_s):
        while self.heap and self.heap[0][0] < now_s:
            job = self.jobs[heapq.heappop(self.heap)[1]]
            self.due[job.id] = (job, Status.GATED)
        assert all(job.begin_s > now_s for job, _ in self.due.values()), "a gate has lapsed"
        found = leases.renewals(self.due.values(), now_s, self.lease, 1.0, self.queue) if self.due else ()
        self.per_second.append(len(found))
        for job, gate_s in found:
            job_id = job.id
            del self.due[job_id]
            self.jobs[job_id] = gated_until(job_id, gate_s)
            heapq.heappush(self.heap, (self._due_s(self.jobs[job_id]), job_id))


@pytest.mark.long
def test_in_twelve_hours_no_gate_of_ten_thousand_jobs_lapses_and_the_rate_stays_bounded():
    lease = leases.leases(30, 7200, 10_000)
    # All are submitted in the last minute, so each gate is still that of its first lease.
    day = _Day({100 + n: NOW + 1 + lease.first_s * n // 10_000 + 1 for n in range(10_000)}, lease)
    for second in range(12 * 3600):
        day.second(NOW + second)
    settled = day.per_second[60:]
    assert max(day.per_second) <= leases.MOST_URGENT_PER_S + leases.MOST_PER_S
    assert max(settled) <= 6
    assert sum(settled) / len(settled) == pytest.approx(10_000 / lease.half_s, rel=0.02)


@pytest.mark.long
def test_in_twelve_hours_with_the_guard_on_no_gate_of_ten_thousand_jobs_lapses():
    lease = leases.leases(30, 7200, 10_000)
    gates = {n: leases.next_gate_s(gated_until(n, NOW), NOW, lease) for n in range(1, 10_001)}
    day = _Day(gates, lease, queue=DatabaseQueue(9000, 10_000))
    for second in range(12 * 3600):
        day.second(NOW + second)
    settled = day.per_second[2 * 3600 :]
    assert max(day.per_second) <= leases.MOST_PER_S
    assert sum(settled) / len(settled) < 1.05 * 10_000 / (lease.length_s - leases.LAPSES_SOON_S)


def test_a_gate_stands_at_the_estimated_start_where_that_is_later_than_the_lease():
    job = gated_until(1, NOW + 60)
    start_s = NOW + 5 * 3600

    assert leases.next_gate_s(job, NOW, LEASE, lambda _: start_s + 0.5) == start_s
    by_lease = leases.next_gate_s(job, NOW, LEASE)
    assert [leases.next_gate_s(job, NOW, LEASE, lambda _, at=at: at) for at in (None, NOW + 60)] == [by_lease] * 2


def test_such_a_gate_is_at_most_the_longest_lease_ahead_and_never_too_late_for_a_deadline():
    job = gated_until(1, NOW + 60)
    hurried = replace(job, deadline_s=NOW + 4 * 3600, walltime_s=3600)

    assert leases.next_gate_s(job, NOW, LEASE, lambda _: NOW + 90 * 3600) == NOW + leases.MOST_LEASE_S
    latest_s = NOW + 3 * 3600 - leases.DEADLINE_MARGIN_S
    assert leases.next_gate_s(hurried, NOW, LEASE, lambda _: NOW + 90 * 3600) == latest_s


def test_an_estimate_moves_a_gate_only_when_its_renewal_is_due():
    jobs = [(gated_until(at, NOW + left_s), Status.GATED) for at, left_s in ((1, 7000), (2, 600))]

    found = leases.renewals(jobs, NOW, LEASE, 1.0, by_limits=lambda _: NOW + 5 * 3600)

    assert [(job.id, gate_s) for job, gate_s in found] == [(2, NOW + 5 * 3600)]


def test_the_first_renewal_waits_for_the_estimate_until_half_of_the_first_lease_is_left():
    new, late = gated_until(1, NOW + LEASE.first_s - 1), gated_until(2, NOW + LEASE.first_s // 2 - 1)
    jobs = [(new, Status.GATED), (late, Status.GATED)]

    def renewed_with(by_limits):
        return [job.id for job, _ in leases.renewals(jobs, NOW, LEASE, 1.0, by_limits=by_limits)]

    assert renewed_with(lambda _: None) == [2]
    assert renewed_with(lambda _: NOW + 60) == [2, 1]
    assert renewed_with(leases.no_estimates) == [2, 1], "where nothing is estimated"
