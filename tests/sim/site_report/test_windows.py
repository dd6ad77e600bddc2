"""A recorded trace is cut into weeks: what runs and waits at the begin is there first, and no job is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.model import Node, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.site_report.replays import SLURM_ALONE, Piece, live_rules, run_piece
from slurm_sns.sim.site_report.windows import DAY_S, FEWEST, WEEK_S, chosen, cut, weeks_of, work_of
from slurm_sns.sim.trace import TraceArrays

NODES = NodeArrays.of(
    [Node(name, Resources(4, 16 << 10), Resources(4, 16 << 10), 1, ()) for name in ("a", "b")],
)


def trace(*jobs: tuple[int, int, int], limit_s: int = 0, cores: int = 1, priority: tuple[int, ...] = ()) -> TraceArrays:
    """Jobs of one kind: submit, recorded start and run of each."""
    submit, start, run = np.array(jobs, np.int64).T
    return TraceArrays(
        np.arange(len(jobs)),
        submit.copy(),
        run.copy(),
        limit=np.full(len(jobs), limit_s, np.int64),
        kind=np.zeros(len(jobs), np.int32),
        kinds=[(1, cores, 1024, "")],
        project=np.zeros(len(jobs), np.int32),
        projects=[""],
        priority=np.array(priority, np.int64),
        recorded_start=start.copy(),
        partition=np.zeros(len(jobs), np.int32),
        partitions=["main"],
    )


def test_a_job_that_runs_at_the_begin_is_there_first_with_what_is_left_of_its_run_and_limit():
    # Ended before, running, waiting, the week's own, in the day behind it, later.
    jobs = trace(
        *((0, 0, 50), (10, 40, 200), (20, 130, 60), (150, 160, 5), (1100, 1100, 5), (1000 + 2 * DAY_S, 0, 5)),
        limit_s=300,
        priority=(1, 2, 3, 4, 5, 6),
    )
    window = cut(jobs, 100, 900)
    assert window.trace.identity.tolist() == [1, 2, 3, 4]
    assert window.trace.submit.tolist() == [0, 1, 50, 1000]
    assert window.trace.run.tolist() == [140, 60, 5, 5]
    assert window.trace.limit.tolist() == [240, 300, 300, 300]
    assert window.trace.priority.tolist() == [6, 3, 4, 5]
    assert window.measured.tolist() == [False, False, True, False]
    assert window.recorded_wait_s.tolist() == [30, 110, 10, 0]
    assert (window.running, window.waiting) == (1, 1)


def test_the_weeks_begin_where_the_record_is_complete():
    # A dump of two weeks has the jobs that ended in them, also one that was submitted a month before.
    month = 30 * DAY_S
    starts = [month + at * DAY_S for at in range(15)]
    weeks = weeks_of(trace((0, DAY_S, month), *((start, start, 100) for start in starts)))
    assert weeks.begins_s == [month + 100, month + 100 + WEEK_S]
    assert weeks.length_s == WEEK_S


def test_a_dump_without_a_full_week_is_one_window():
    weeks = weeks_of(trace((0, 0, 10), (500, 500, 10), (1000, 1000, 10)))
    assert (weeks.begins_s, weeks.length_s) == ([10], 991)


def test_weeks_are_chosen_by_chance_up_to_the_work_but_enough_for_an_interval():
    work = np.array([5.0, 0, 5, 5, 5, 5, 5, 5, 5])
    assert chosen(work, 1, None, 0) == chosen(work, 1, None, 0)
    assert len(chosen(work, 1, None, 0)) == FEWEST
    assert len(chosen(work, 35, None, 0)) == 7
    assert len(chosen(work, 1, 2, 0)) == 2
    assert chosen(work, 1, len(work), 0) == [0, 2, 3, 4, 5, 6, 7, 8]  # a week without jobs is none
    assert len({tuple(chosen(work, 1, None, seed)) for seed in range(20)}) > 3


def test_a_week_in_which_many_wait_is_more_work():
    quiet, busy = (trace((0, 0, 1), *((5, 5 + wait_s, 1) for _ in range(99))) for wait_s in (0, 10**6))
    assert work_of(busy, weeks_of(quiet))[0] > 2 * work_of(quiet, weeks_of(quiet))[0]


times = st.integers(0, 3 * DAY_S)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(times, times, st.integers(1, DAY_S)), min_size=1, max_size=30),
    times,
    st.integers(1, 2 * DAY_S),
    st.sampled_from([SLURM_ALONE, 1, 60]),
    st.booleans(),
)
@pytest.mark.long
def test_no_replay_of_a_week_loses_a_job(jobs, begin_s, length_s, interval_s, has_priorities):
    recorded = sorted((submit, submit + wait, run) for submit, wait, run in jobs)
    priorities = {"priority": tuple(range(len(jobs)))} if has_priorities else {}
    window = cut(trace(*recorded, cores=3, **priorities), begin_s, length_s)
    measured = [submit for submit, *_ in recorded if begin_s <= submit < begin_s + length_s]
    assert np.count_nonzero(window.measured) == len(measured)
    if len(window.trace):
        live = live_rules("max-jobs")
        found = run_piece(Piece(0, interval_s, window, NODES, live, looks=True))
        assert len(found.wait_s) == len(measured)
        assert (found.wait_s >= 0).all()
