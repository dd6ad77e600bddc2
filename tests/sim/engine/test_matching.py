"""Time in the simulator: finishes, submits, cycles, and what the metrics make of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_jobs import JobMaker, trace_of

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.results.metrics import measure
from slurm_sns.sim.trace import Trace, TraceJob, of_values

GB = 1024


def node_arrays_of(*nodes: tuple[int, float]) -> NodeArrays:
    names = tuple(f"n{at}" for at in range(len(nodes)))
    return NodeArrays(names, amounts([Resources(cores, int(gb * GB)) for cores, gb in nodes]))


def replay(node_arrays, *jobs, portfolio=("first-fit",), interval_s=30, shares=None, age_limit_s=None, **parameters):
    """Jobs are (submit_s, run_s, nodes, cores, gb, project)."""
    maker = JobMaker(1.0)
    made = [
        maker.job(at, submit, run, nodes=nodes, cores=cores, memory_mb=int(gb * GB), project=project)
        for at, (submit, run, nodes, cores, gb, project) in enumerate(jobs)
    ]
    trace = trace_of("test", made, Counter(), node_arrays)
    chosen = MatchingParameters(portfolio=portfolio, **parameters)
    simulation = Simulation(
        node_arrays,
        trace,
        max_jobs(chosen),
        queue_depth=chosen.queue_depth,
        interval_s=interval_s,
        shares=shares,
        age_limit_s=age_limit_s,
    )
    return simulation.run()


def one_core(submit_s, run_s, project=""):
    return (submit_s, run_s, 1, 1, 1, project)


def starts(outcome):
    return [placed.start_s for placed in outcome.placements]


ONE_SLOT = node_arrays_of((1, 1))


def test_a_job_starts_in_the_first_cycle_not_before_its_submit():
    assert starts(replay(ONE_SLOT, one_core(0, 5), one_core(31, 5), one_core(90, 5))) == [0, 60, 90]


def test_a_node_is_free_in_a_cycle_at_the_second_of_the_finish():
    assert starts(replay(ONE_SLOT, one_core(0, 60), one_core(1, 60))) == [0, 60]
    assert starts(replay(ONE_SLOT, one_core(0, 61), one_core(1, 60))) == [0, 90]


def test_a_cycle_runs_only_after_a_submit_a_finish_or_a_match():
    outcome = replay(ONE_SLOT, one_core(0, 300), one_core(10, 100))

    assert [cycle.time_s for cycle in outcome.cycles] == [0, 30, 300, 330, 420]
    assert [cycle.waiting for cycle in outcome.cycles] == [1, 1, 1, 0, 0]


def test_the_project_that_holds_less_goes_first():
    jobs = [one_core(0, 1000, "p"), one_core(0, 90, "p"), one_core(5, 50, "p"), one_core(6, 50, "q")]

    assert starts(replay(node_arrays_of((2, 2)), *jobs)) == [0, 0, 150, 90]


def test_what_a_project_has_given_back_no_longer_counts():
    # p's own job has ended when the node is free again; so p, whose job is older, is first.
    jobs = [one_core(0, 60, "p"), one_core(5, 60, "p"), one_core(6, 60, "q")]

    assert starts(replay(ONE_SLOT, *jobs)) == [0, 60, 120]


def test_the_shares_decide_between_projects_that_hold_as_much():
    jobs = [*(one_core(0, run, name) for name, run in [("p", 1000), ("q", 1000), ("r", 90)])]
    jobs += [one_core(5, 50, "p"), one_core(6, 50, "q")]

    assert starts(replay(node_arrays_of((3, 3)), *jobs)) == [0, 0, 0, 90, 150]
    assert starts(replay(node_arrays_of((3, 3)), *jobs, shares={"q": 10.0})) == [0, 0, 0, 150, 90]


def test_a_job_that_has_waited_longer_than_the_limit_goes_first_whatever_its_project_holds():
    jobs = [one_core(0, 1000, "p"), one_core(0, 90, "p"), one_core(5, 50, "p"), one_core(6, 50, "q")]

    assert starts(replay(node_arrays_of((2, 2)), *jobs, age_limit_s=85)) == [0, 0, 150, 90]
    assert starts(replay(node_arrays_of((2, 2)), *jobs, age_limit_s=84)) == [0, 0, 90, 150]


def test_capacity_is_withheld_for_an_over_aged_job_without_any_reservation():
    # One of the two cores is always busy: small jobs come as quickly as they end, until 600.
    jobs = [*(one_core(at, 60) for at in range(0, 600, 30)), (595, 10, 1, 2, 1, ""), (600, 10, 1, 1, 1, "")]
    jobs.insert(1, (5, 10, 1, 2, 1, ""))
    large = 1

    assert starts(replay(node_arrays_of((2, 99)), *jobs, reservations=0))[large] == 630
    assert starts(replay(node_arrays_of((2, 99)), *jobs, reservations=0, age_limit_s=60))[large] == 120


def metrics_of(outcome, node_arrays):
    jobs = tuple(TraceJob(each.job, each.end_s - each.start_s) for each in outcome.placements)
    return measure(outcome.as_run(of_values(Trace(jobs, {})), ["first-fit"]), node_arrays)


def test_metrics_by_hand():
    node_arrays = node_arrays_of((2, 4))
    outcome = replay(node_arrays, (0, 60, 1, 2, 2, ""), (0, 30, 1, 1, 4, ""), (120, 30, 1, 1, 1, ""))

    metrics = metrics_of(outcome, node_arrays)

    assert starts(outcome) == [0, 60, 120]
    assert metrics.mean_wait_s == 20
    assert metrics.mean_slowdown == pytest.approx((1 + 3 + 1) / 3)
    assert metrics.max_bounded_stretch == 3
    assert metrics.mean_queue_length == 60 / 120
    assert metrics.utilisation_cores == (60 * 2 + 30 * 1) / (2 * 120)
    assert metrics.utilisation_memory == (60 * 2 + 30 * 4) / (4 * 120)
    assert metrics.load_cores == 100 * (60 * 2 + 30 * 1 + 30 * 1) / (2 * 120)
    assert (metrics.cycles, metrics.cycles_with_waiting) == (6, 4)
    assert (metrics.wins, metrics.wins_all_cycles) == ({"first-fit": 4}, {"first-fit": 6})


def test_without_a_span_of_arrivals_there_is_no_load():
    node_arrays = node_arrays_of((2, 4))

    metrics = metrics_of(replay(node_arrays, one_core(0, 60)), node_arrays)

    assert (metrics.load_cores, metrics.utilisation_cores, metrics.mean_queue_length) == (None, None, None)


@st.composite
def traces(draw):
    job = st.tuples(
        st.integers(0, 300),
        st.integers(0, 400),
        st.integers(1, 2),
        st.integers(1, 4),
        st.integers(1, 8),
        st.sampled_from(["p", "q"]),
    )
    return draw(st.lists(job, min_size=1, max_size=25))


@settings(max_examples=50)
@given(
    traces(),
    st.lists(st.sampled_from(list(HEURISTICS)), min_size=1, max_size=3, unique=True).map(tuple),
    st.integers(0, 3),
    st.integers(1, 6),
)
def test_nobody_is_lost_no_node_is_over_capacity_at_any_moment_and_the_same_again(jobs, portfolio, reservations, depth):
    node_arrays = node_arrays_of((4, 8), (4, 16), (8, 8))
    options = {"portfolio": portfolio, "reservations": reservations, "queue_depth": depth}

    outcome = replay(node_arrays, *jobs, **options)

    assert sorted(placed.job.id for placed in outcome.placements) == list(range(len(jobs)))
    for moment in {placed.start_s for placed in outcome.placements}:
        held = np.zeros_like(node_arrays.capacity)
        for placed in outcome.placements:
            if placed.start_s <= moment < placed.end_s:
                held[:, placed.nodes] += node_arrays.taken(placed.alternative, placed.nodes)
        assert (held <= node_arrays.capacity).all()
    for placed in outcome.placements:
        submit_s, run_s = jobs[placed.job.id][:2]
        assert placed.start_s >= submit_s
        assert placed.start_s % 30 == 0
        assert placed.end_s == placed.start_s + max(run_s, 1)
    again = replay(node_arrays, *jobs, **options)
    assert [(p.start_s, p.nodes.tolist()) for p in again.placements] == [
        (p.start_s, p.nodes.tolist()) for p in outcome.placements
    ]
