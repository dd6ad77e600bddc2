"""The compiled replay of pools: its samples, the log of visits that grows, ticks, and what it refuses.

That it gives the results of the event engine under the oracle is tested in tests/policies/rescheduling.
"""

from dataclasses import replace

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters
from slurm_sns.sim.replay import pool_replay
from slurm_sns.sim.replay.pool_replay import replay_pools
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.nodes_csv import read_site
from slurm_sns.sim.traces.pool_trace import read_pool_trace

PAPER = ReschedulingParameters()
OFTEN = ReschedulingParameters(averages="suspended")
JOB_TIMES = ("end", "first_start", "start", "waited", "suspended", "wasted", "first_suspended")
JOB_COLUMNS = (*JOB_TIMES, "place", "pool", "suspensions", "restarts")
VISIT_TIMES = ("joined", "start", "suspended", "ran")

#: Job 1 is suspended from 100 to 250. Job 4 is suspended at 460, moves to B, and is suspended there from 1000 to 1100.
CASE = """\
1,0,300,1,2,A,0
2,0,200,1,2,B,0
3,100,150,2,4,A,1
4,400,900,1,2,A,0
5,460,400,2,4,A,1
6,1000,100,2,4,B,1
"""


@pytest.fixture
def site(write):
    return read_site(write("nodes.csv", "name,cores,mem_gb,pool\na1,2,8,A\nb1,2,8,B\n"))


@pytest.fixture
def read(write, site):
    def read(lines: str) -> TraceArrays:
        return read_pool_trace(write("t.csv", f"job_id,submit_s,run_s,cores,mem_gb,pool,priority\n{lines}"), site)

    return read


@pytest.fixture
def busy(read):
    """Eight days, and in each hour a job that is suspended, in A and B by turns. More than a dozen of them move."""
    lines = ["0,0,60,2,0,A,0", "1,10,900,2,0,A,1"]  # the first sample: 900 s
    for hour in range(1, 200):
        begin_s, (one, other) = 3600 * hour, "AB" if hour % 2 else "BA"
        lines += [
            f"{10 * hour},{begin_s},1000,2,0,{one},0",
            f"{10 * hour + 1},{begin_s + 7 * (hour % 9)},800,2,0,{one},1",
            f"{10 * hour + 2},{begin_s + 90},100,1,0,{other},{hour % 3 // 2}",
        ]
    return read("\n".join(lines) + "\n")


def require_same(one: TraceRun, other: TraceRun) -> None:
    for name in (*JOB_COLUMNS, "cores_used", "suspended_jobs"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    for name, column in one.visits()._asdict().items():
        assert column.tolist() == getattr(other.visits(), name).tolist(), name
    for name, column in one.details._asdict().items():
        assert column.tolist() == getattr(other.details, name).tolist(), name


# Samples


def test_cores_in_use_and_suspended_jobs_are_sampled_each_minute(site, read):
    run = replay_pools(site, read(CASE), PAPER, sample_until_s=1500)
    # The minutes from 0: jobs 1 and 2; from 120 on job 3 instead of 1; from 300 on job 1; from 420 on also job 4; ...
    assert run.cores_used.tolist() == [2, 2, 3, 3, 2, 1, 1, 2, *[3] * 7, 1, 1, 2, 2, *[1] * 6, 0]
    assert run.suspended_jobs.tolist() == [0, 0, 1, 1, 1, *[0] * 12, 1, 1, *[0] * 7]


def test_a_sample_is_taken_after_the_events_of_its_minute(site, read):
    """Job 1 ends at 60 and job 2 is submitted then. Job 2 is suspended from 120 to 240."""
    lines = "1,0,60,2,0,A,0\n2,60,180,1,0,A,0\n3,120,120,2,0,A,1\n"
    run = replay_pools(site, read(lines), PAPER, sample_until_s=420)
    assert run.cores_used.tolist() == [2, 1, 2, 2, 1, 1, 0, 0]
    assert run.suspended_jobs.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]


def test_before_the_first_submit_and_after_the_last_end_samples_are_0(site, read):
    run = replay_pools(site, read("1,90,60,2,0,A,0\n"), PAPER, sample_until_s=300)
    assert run.cores_used.tolist() == [0, 0, 2, 0, 0, 0]


@pytest.mark.parametrize(("until_s", "samples"), [(0, 0), (59, 1), (60, 2), (119, 2), (1500, 26), (6000, 101)])
def test_samples_are_taken_up_to_the_last_whole_minute(site, read, until_s, samples):
    run = replay_pools(site, read(CASE), PAPER, sample_until_s=until_s)
    assert len(run.cores_used) == len(run.suspended_jobs) == samples
    assert run.end.tolist() == [450, 200, 250, 1460, 860, 1100]


# The log of visits


def test_a_log_of_visits_that_is_too_small_is_grown_until_it_holds_them(site, busy, monkeypatch):
    expected = replay_pools(site, busy, OFTEN, sample_until_s=86_400, details=100_000)
    assert expected.restarts.sum() > pool_replay.GROWTH  # from 1 on it is grown twice
    monkeypatch.setattr(pool_replay, "FEWEST_VISITS", 1)
    monkeypatch.setattr(pool_replay, "VISITS_PER_JOB", 0)
    require_same(replay_pools(site, busy, OFTEN, sample_until_s=86_400, details=100_000), expected)


def test_a_log_of_visits_that_is_just_large_enough_is_not_grown(site, busy, monkeypatch):
    expected = replay_pools(site, busy, OFTEN)
    monkeypatch.setattr(pool_replay, "FEWEST_VISITS", int(expected.restarts.sum()))
    monkeypatch.setattr(pool_replay, "VISITS_PER_JOB", 0)
    monkeypatch.setattr(pool_replay, "GROWTH", None)  # growing it would fail
    require_same(replay_pools(site, busy, OFTEN), expected)


def test_decisions_to_take_need_no_more_room_than_there_are_suspended_jobs(site, read, monkeypatch):
    """At 310 jobs 4 and 5 are suspended. Job 5 moves to B first and suspends job 6: that makes three decisions."""
    lines = (
        "1,0,20,2,0,A,1\n2,10,200,2,0,A,2\n3,250,1,2,0,B,1\n"  # samples: 200 s in A, 0 s in B
        "4,300,900,1,0,A,1\n5,305,900,1,0,A,1\n6,305,900,2,0,B,0\n7,310,100,2,0,A,2\n"
    )
    expected = replay_pools(site, read(lines), PAPER, details=100)
    assert expected.details.decisions[1:, :4].tolist() == [[310, 4, 0, 1], [310, 3, 0, 1], [310, 5, 1, 1]]
    working = pool_replay._working
    monkeypatch.setattr(pool_replay, "_working", lambda *given: working(*given)._replace(pending=np.zeros(2, np.int32)))
    require_same(replay_pools(site, read(lines), PAPER, details=100), expected)


def test_details_are_kept_as_far_as_there_is_room_and_change_nothing(site, busy):
    whole = replay_pools(site, busy, OFTEN, details=100_000)
    short = replay_pools(site, busy, OFTEN, details=3)
    for name, rows in short.details._asdict().items():
        assert rows.tolist() == getattr(whole.details, name)[:3].tolist(), name
    assert short.end.tolist() == whole.end.tolist()


def test_parts_of_a_replay_make_the_whole_and_report_progress(site, busy, monkeypatch):
    expected = replay_pools(site, busy, OFTEN, sample_until_s=86_400)
    monkeypatch.setattr(pool_replay, "PART", 7)
    reports: list[int] = []
    require_same(replay_pools(site, busy, OFTEN, sample_until_s=86_400, progress=reports.append), expected)
    assert reports == sorted(reports)
    assert (len(reports) > 10, reports[-1]) == (True, len(busy))


# Ticks


def test_a_thousand_ticks_a_second_give_the_same_as_seconds(site, busy):
    finer = replace(busy, submit=1000 * busy.submit, run=1000 * busy.run, ticks_per_s=1000)
    coarse, fine = (replay_pools(site, trace, OFTEN, sample_until_s=86_400, details=100_000) for trace in (busy, finer))
    for name in JOB_COLUMNS:
        was = getattr(coarse, name)
        assert getattr(fine, name).tolist() == (in_ticks(was) if name in JOB_TIMES else was).tolist(), name
    for name, column in fine.visits()._asdict().items():
        was = getattr(coarse.visits(), name)
        assert column.tolist() == (1000 * was if name in VISIT_TIMES else was).tolist(), name
    assert fine.cores_used.tolist() == coarse.cores_used.tolist()
    assert fine.suspended_jobs.tolist() == coarse.suspended_jobs.tolist()
    assert fine.details.decisions[:, 1:].tolist() == coarse.details.decisions[:, 1:].tolist()
    assert fine.details.terms[:, :4].tolist() == coarse.details.terms[:, :4].tolist()
    assert fine.details.terms[:, 4:7].tolist() == (1000 * coarse.details.terms[:, 4:7]).tolist()


def in_ticks(seconds: np.ndarray) -> np.ndarray:
    """Times of -1 mean never."""
    return np.where(seconds < 0, seconds, 1000 * seconds)


def test_the_window_ends_between_seconds_where_ticks_are_finer(site, read):
    """Job 2 completes in B at 200.250; at 6200.250 it is in the window of 6000 s, and 1 ms later it is not."""
    for submit_s, samples in (("6200.25", [0, 1]), ("6200.251", [0])):
        lines = f"2,0,200.25,1,2,B,0\n4,6000,900,1,2,A,0\n5,{submit_s},400,2,4,A,1\n"
        trace = read(lines)
        assert trace.ticks_per_s == 1000
        run = replay_pools(site, trace, PAPER, details=10)
        assert run.details.terms[:, 2].tolist() == samples


# Nodes


def test_nodes_and_pools_are_places_in_the_sites_lists_though_pools_are_interleaved(write):
    site = read_site(write("n.csv", "name,cores,mem_gb,pool\nb1,1,8,B\na1,1,8,A\nb2,1,8,B\na2,1,8,A\n"))
    lines = "1,0,100,1,0,A,0\n2,0,100,1,0,A,0\n3,0,100,1,0,B,0\n4,0,100,1,0,B,0\n"
    trace = read_pool_trace(write("t.csv", f"job_id,submit_s,run_s,cores,mem_gb,pool,priority\n{lines}"), site)
    run = replay_pools(site, trace, PAPER)
    assert [site.nodes.names[node] for node in run.place] == ["a1", "a2", "b1", "b2"]
    assert run.visits().node.tolist() == run.place.tolist()
    assert [site.pools[pool] for pool in run.pool] == ["A", "A", "B", "B"]


def test_one_job_alone_is_a_trace(site, read):
    run = replay_pools(site, read("7,5,10,1,0,B,3\n"), PAPER)
    assert {name: getattr(run, name).tolist() for name in JOB_COLUMNS} == {
        "end": [15],
        "first_start": [5],
        "start": [5],
        "waited": [0],
        "suspended": [0],
        "wasted": [0],
        "first_suspended": [-1],
        "place": [1],
        "pool": [1],
        "suspensions": [0],
        "restarts": [0],
    }
    assert [column.tolist() for column in run.visits()] == [[0], [1], [5], [5], [1], [0], [10]]


# What is refused


def test_times_that_are_too_long_together_are_refused_in_one_line(site, read):
    """Forty jobs of 126 years, one after the other: in microseconds their waits together exceed 64 bits."""
    trace = read("".join(f"{number},0,3999999999.999999,2,0,A,0\n" for number in range(40)))
    assert trace.ticks_per_s == 1_000_000
    with pytest.raises(BadInput) as refused:
        replay_pools(site, trace, PAPER)
    assert str(refused.value) == ("jobs would end after 1.2e+11 s; valid: shorter run times, or times in whole seconds")


def test_the_same_times_in_whole_seconds_are_replayed_exactly(site, read):
    run = replay_pools(site, read("".join(f"{number},0,3999999999,2,0,A,0\n" for number in range(40))), PAPER)
    assert run.end.tolist() == [3_999_999_999 * (number + 1) for number in range(40)]
    assert run.waited.tolist() == [3_999_999_999 * number for number in range(40)]


def test_too_many_different_sizes_of_jobs_are_refused_in_one_line(site, read, monkeypatch):
    monkeypatch.setattr(pool_replay, "MOST_QUEUES", 5)
    assert replay_pools(site, read("1,0,9,1,1,A,0\n2,0,9,1,2,A,0\n3,0,8,1,2,B,0\n"), PAPER).end.tolist() == [9, 9, 8]
    with pytest.raises(BadInput) as refused:
        replay_pools(site, read("1,0,9,1,1,A,0\n2,0,9,1,2,A,0\n3,0,9,1,2,A,1\n"), PAPER)
    assert str(refused.value) == "the jobs have 3 different sizes; valid: at most 2"


def test_a_job_that_no_node_of_its_pool_can_hold_is_refused(site, read):
    trace = read("7,0,10,1,2,A,0\n")
    with pytest.raises(
        BadInput, match="1 jobs never ran, the first is 7; valid: jobs that an empty node of their pool"
    ):
        replay_pools(site, replace(trace, cores=np.array([3])), PAPER)
