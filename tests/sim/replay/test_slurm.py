"""Slurm alone: what its main pass and its backfill do, by the compiled passes and by the plain ones."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.batch.slurm import PlainSlurm, limit_of

from slurm_sns.model import Alternative, Job, Node, Resources, gpus_of
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, fits_ever
from slurm_sns.sim.replay.trace_replay import replay_as_slurm
from slurm_sns.sim.trace import Trace, TraceJob, of_values

Starts = dict[int, tuple[int, tuple[int, ...]]]

#: The main pass runs in the second of an end, and in the second after a submission.
AT_ONCE = {"epilog": True, "batch_sched_delay_s": 0}


def compiled(nodes: NodeArrays, jobs, parameters: SlurmParameters, priority=None) -> Starts:
    trace = of_values(Trace(tuple(jobs), {}))
    if priority is not None:
        trace = replace(trace, priority=np.array([priority[each.job.id] for each in jobs], np.int64))
    run = replay_as_slurm(nodes, trace, parameters)
    return {
        int(name): (start, tuple(run.nodes(at)))
        for at, (name, start) in enumerate(zip(trace.identity.tolist(), run.start_s.tolist(), strict=True))
    }


def plain(nodes: NodeArrays, jobs, parameters: SlurmParameters, priority=None) -> Starts:
    return PlainSlurm(nodes, jobs, parameters, priority or {}).run().starts


def of(cores: int, count: int = 1, *, names: str = "abcdef", weights=(0,) * 6) -> NodeArrays:
    """So many nodes of this size."""
    size = Resources(cores, 8192)
    return NodeArrays.of([Node(names[at], size, size, weights[at], ()) for at in range(count)])


def job(identity: int, submit_s: int, run_s: int, cores: int, **more) -> TraceJob:
    """A job whose limit is `limit_s`, or its run time."""
    nodes, limit_s = more.pop("nodes", 1), more.pop("limit_s", run_s)
    alternative = Alternative(nodes, Resources(cores, 1024), exclusive=more.pop("exclusive", False))
    return TraceJob(Job(identity, submit_s, (alternative,), (submit_s,), expected_run_s=limit_s, **more), run_s)


@pytest.fixture(params=[compiled, plain], ids=["compiled", "plain"])
def starts(request):
    """The second in which each job starts."""

    def starts(nodes, jobs, priority=None, **parameters) -> list[int]:
        found = request.param(nodes, jobs, SlurmParameters(**AT_ONCE | parameters), priority)
        return [found[each.job.id][0] for each in jobs]

    return starts


@pytest.fixture(params=[compiled, plain], ids=["compiled", "plain"])
def places(request):
    """The nodes of each job."""

    def places(nodes, jobs) -> list[tuple[int, ...]]:
        found = request.param(nodes, jobs, SlurmParameters(**AT_ONCE))
        return [found[each.job.id][1] for each in jobs]

    return places


#: A node of 4 cores with a job on 3 of them until second 600, and one that waits for all 4.
BUSY = job(1, 0, 600, 3)
HEAD = job(2, 1, 600, 4)


def test_backfill_waits_for_its_interval(starts):
    # The backfill of second 0 has started job 1. Job 3 comes in second 2, the next backfill is in second 30.
    assert starts(of(4), [BUSY, HEAD, job(3, 2, 60, 1)]) == [0, 600, 30]
    assert starts(of(4), [BUSY, HEAD, job(3, 2, 60, 1)], bf_interval_s=5) == [0, 600, 5]


#: A job on the whole node in each of the seconds 0 to 3, for 10 s each.
SHORT = [job(number, number - 1, 10, 4) for number in range(1, 5)]


def test_an_end_is_seen_in_the_next_second_or_with_an_epilog_at_once(starts):
    assert starts(of(4), SHORT) == [0, 10, 20, 30]
    assert starts(of(4), SHORT, epilog=False) == [0, 11, 22, 33]


def test_the_main_pass_waits_for_batch_sched_delay(starts):
    # The backfill of second 0 starts job 1. The main passes are in the seconds 1 and 5, and at last in 9.
    jobs = [job(number, second_s, 10, 1) for number, second_s in enumerate([0, 0, 2, 3, 6], 1)]
    more = {"batch_sched_delay_s": 4, "epilog": False}
    assert starts(of(8), jobs, **more) == [0, 0, 5, 5, 9]
    assert starts(of(8), jobs, **more | {"epilog": True}) == [0, 0, 5, 5, 9]


def test_expected_ends_are_looked_at_in_groups(starts):
    # The first end is expected at 60. Its group reaches until 60 + 30 + 30, where that of job 2 is expected. So the
    # node is booked for job 4 from 120 on, although it needs the end of job 1 only, and job 5 ends before that.
    busy = [job(number, 0, 100, 2, limit_s=limit_s) for number, limit_s in ((1, 60), (2, 120), (3, 180))]
    assert starts(of(7), [*busy, job(4, 1, 60, 3), job(5, 2, 60, 1)], bf_interval_s=5)[3:] == [100, 5]


def test_a_job_that_would_delay_the_one_before_it_waits(starts):
    assert starts(of(4), [BUSY, HEAD, job(3, 2, 60, 1, limit_s=1200)]) == [0, 600, 1200]


def test_a_job_that_may_end_in_the_second_in_which_a_booking_begins_waits(starts):
    assert starts(of(4), [BUSY, HEAD, job(3, 30, 60, 1, limit_s=540)])[2] == 30
    assert starts(of(4), [BUSY, HEAD, job(3, 60, 60, 1, limit_s=540)])[2] == 1200


def test_a_node_is_booked_as_a_whole(starts):
    # Job 2 needs 2 cores from second 600 on. Job 3 could have the fourth core all the time; the node is not its.
    assert starts(of(4), [BUSY, job(2, 1, 600, 2), job(3, 2, 6000, 1)]) == [0, 600, 600]


def test_every_waiting_job_is_booked_not_only_the_first(starts):
    # Jobs 2 and 3 are booked for 600 and 1200. Job 4 would end before 1260, but not before 1200.
    jobs = [BUSY, HEAD, job(3, 2, 600, 4), job(4, 3, 1199, 1)]
    assert starts(of(4), jobs) == [0, 600, 1200, 1800]


def test_what_a_backfill_has_started_is_taken_for_jobs_alike_behind_it(starts):
    # In second 30 job 3 starts. Job 4, which asks for the same, is booked for its end, so job 5 would be in its way.
    jobs = [job(1, 0, 600, 2), job(2, 1, 600, 5), job(3, 2, 120, 2), job(4, 3, 120, 2), job(5, 4, 180, 1)]
    assert starts(of(5), jobs) == [0, 600, 30, 150, 150]


def test_jobs_that_are_not_tested_are_not_started(starts):
    jobs = [BUSY, HEAD, job(3, 2, 600, 4), job(4, 3, 60, 1)]
    assert starts(of(4), jobs, bf_max_job_test=2)[3] == 1800
    assert starts(of(4), jobs, bf_max_job_test=3)[3] == 30


def test_behind_the_window_nothing_is_booked(starts):
    jobs = [BUSY, HEAD, job(3, 2, 1200, 1)]
    assert starts(of(4), jobs, bf_window_s=300) == [0, 1230, 30]


def test_priority_comes_before_submit(starts):
    jobs = [job(1, 0, 60, 4), job(2, 1, 60, 4), job(3, 2, 60, 4)]
    assert starts(of(4), jobs, priority={1: 1, 2: 1, 3: 5}) == [0, 120, 60]


def test_a_job_past_its_limit_is_expected_to_end_at_once(starts):
    # Job 1 runs until 600, its limit is 60. So job 3 is always in the way of job 2.
    jobs = [job(1, 0, 600, 3, limit_s=60), HEAD, job(3, 100, 60, 1)]
    assert starts(of(4), jobs) == [0, 600, 1200]


def test_who_finds_no_place_blocks_the_nodes_that_it_may_use_and_no_others(starts, places):
    # Job 2 waits for all of node a. So job 3 does not get the fourth core there, but goes to b; job 4 may use c alone.
    only_a, a_or_b, only_c = frozenset("a"), frozenset("ab"), frozenset("c")
    jobs = [
        job(1, 0, 600, 3, allowed=only_a),
        job(2, 0, 600, 4, allowed=only_a),
        job(3, 1, 600, 1, allowed=a_or_b),
        job(4, 2, 600, 4, allowed=only_c),
    ]
    assert places(of(4, 3), jobs) == [(0,), (0,), (1,), (2,)]
    assert starts(of(4, 3), jobs) == [0, 600, 1, 3]


def test_one_node_is_the_tightest_several_are_the_first(places):
    busy = [job(1, 0, 600, 1), job(2, 0, 600, 2, allowed=frozenset("c"))]
    assert places(of(4, 3), [*busy, job(3, 1, 60, 1), job(4, 1, 60, 1, nodes=2)])[2:] == [(2,), (0, 1)]


def test_nodes_come_from_the_tightest_run_of_neighbours(places):
    busy = [job(1, 0, 600, 4, allowed=frozenset("c")), job(2, 0, 600, 4, allowed=frozenset("e"))]
    # a and b, d, and f are runs. Two runs of equal size: the first. No run of three: the largest, then the next.
    assert places(of(4, 6), [*busy, job(3, 1, 60, 1)])[2:] == [(3,)]
    assert places(of(4, 6), [*busy, job(3, 1, 60, 1, nodes=2)])[2:] == [(0, 1)]
    assert places(of(4, 6), [*busy, job(3, 1, 60, 1, nodes=3)])[2:] == [(0, 1, 3)]


def test_lighter_nodes_come_first(places):
    assert places(of(4, 3, weights=(2, 1, 1)), [job(1, 0, 60, 1), job(2, 0, 60, 1, nodes=3)]) == [(1,), (0, 1, 2)]


def test_an_exclusive_job_waits_for_an_empty_node(starts):
    assert starts(of(4), [job(1, 0, 60, 1), job(2, 1, 60, 1, exclusive=True), job(3, 2, 60, 1)]) == [0, 60, 120]


# --- properties


@st.composite
def clusters(draw) -> NodeArrays:
    """Six nodes of two sizes, with GPUs or without; they may differ in weight and lie under two switches."""
    weighs, is_connected = draw(st.booleans()), draw(st.booleans())
    nodes, gpus = [], draw(st.sampled_from([({}, {}), ({"a": 2}, {"a": 1, "b": 2})]))
    for at, name in enumerate("abcdef"):
        size = Resources(4 + 4 * (at % 2), 8192, 10, 20, gpus=gpus_of(gpus[at % 2]))
        nodes.append(Node(name, size, size, at % 3 if weighs else 0, (f"s{at // 3}",) if is_connected else ()))
    return NodeArrays.of(nodes)


@st.composite
def cases(draw):
    """Nodes, jobs that they can run, parameters, and priorities or None."""
    nodes = draw(clusters())
    sizes = st.tuples(st.sampled_from([1, 1, 2, 3]), st.sampled_from([1, 2, 4, 5]), st.sampled_from([1024, 3000, 7000]))
    gpus = st.sampled_from([{}, {}, {}, {"": 1}, {"a": 1}, {"b": 1}]).map(gpus_of)
    some = draw(st.lists(st.tuples(sizes, st.sampled_from([0, 0, 3]), st.booleans(), gpus), min_size=1, max_size=4))
    jobs = []
    for at in range(draw(st.integers(1, 30))):
        (count, cores, memory_mb), ways, is_alone, own = draw(st.sampled_from(some))
        run_s = draw(st.integers(1, 700))
        limit_s = draw(st.sampled_from([None, 30, 200, 900, 3000]))
        asked = Alternative(count, Resources(cores, memory_mb, ways, gpus=own), exclusive=is_alone)
        allowed = draw(st.sampled_from([None, None, frozenset("abcd")]))
        submit_s = draw(st.integers(0, 400))
        if fits_ever(nodes, asked, allowed):
            one = Job(at, submit_s, (asked,), (submit_s,), allowed=allowed, expected_run_s=limit_s)
            jobs.append(TraceJob(one, run_s))
    jobs.sort(key=lambda each: each.job.submit_s)
    parameters = SlurmParameters(
        bf_interval_s=draw(st.sampled_from([1, 30, 90])),
        bf_max_job_test=draw(st.sampled_from([1, 3, 500])),
        bf_window_s=draw(st.sampled_from([100, 1000, 86_400])),
        bf_resolution_s=draw(st.sampled_from([1, 60, 300])),
        bf_window_linear_s=draw(st.sampled_from([0, 0, 30, 100])),
        batch_sched_delay_s=draw(st.sampled_from([0, 1, 3, 50])),
        epilog=draw(st.booleans()),
    )
    priority = draw(st.sampled_from([None, {each.job.id: each.job.id * 7 % 5 for each in jobs}]))
    return nodes, jobs, parameters, priority


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(cases())
def test_the_compiled_passes_start_jobs_as_the_plain_ones(case):
    nodes, jobs, parameters, priority = case
    if jobs:
        assert compiled(nodes, jobs, parameters, priority) == plain(nodes, jobs, parameters, priority)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(cases())
def test_no_job_is_lost_and_no_node_over_capacity(case):
    nodes, jobs, parameters, priority = case
    if not jobs:
        return
    found = compiled(nodes, jobs, parameters, priority)

    assert set(found) == {each.job.id for each in jobs}
    held = {each.job.id: each.job.alternatives[0] for each in jobs}
    ends = {each.job.id: found[each.job.id][0] + each.run_s for each in jobs}
    for moment_s, _ in found.values():
        left = nodes.capacity.astype(np.int64).copy()
        for identity, (start_s, of_job) in found.items():
            if start_s <= moment_s < ends[identity]:
                asked = held[identity]
                left[:, of_job] -= (
                    nodes.capacity[:, of_job] if asked.exclusive else nodes.taken(asked, np.array(of_job))
                )
        assert (left >= 0).all()


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(cases())
def test_bookings_of_a_node_do_not_overlap_and_last_as_long_as_their_jobs(case):
    nodes, jobs, parameters, priority = case
    limits = {each.job.id: limit_of(each.job) for each in jobs}
    for now_s, booked in PlainSlurm(nodes, jobs, parameters, priority or {}).run().plans:
        for node in range(6):
            of_node = sorted(each for each in booked if node in each.nodes)
            of_node.sort(key=lambda each: each.begin_s)
            assert all(one.end_s <= next_one.begin_s for one, next_one in pairwise(of_node))
        for each in booked:
            assert each.begin_s <= each.planned_s
            assert now_s < each.planned_s <= now_s + parameters.bf_window_s
            assert each.planned_s + limits[each.job] <= each.end_s


def test_the_main_pass_of_a_submission_comes_in_the_next_cycle_that_there_is():
    """Job 2 is submitted between cycles, after the backfill of the first cycle: only the main pass sees it soon."""
    nodes, jobs = of(2), [job(1, 0, 600, 1), job(2, 3, 600, 1)]
    trace = of_values(Trace(tuple(jobs), {}))
    run = replay_as_slurm(nodes, trace, SlurmParameters(bf_interval_s=300), interval_s=10)
    assert run.start_s.tolist() == [0, 20]
