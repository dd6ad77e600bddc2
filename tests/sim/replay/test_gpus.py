"""Replays of jobs with GPUs: each policy runs all of them, and no node has more of anything than it has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.portfolio import plainly

from slurm_sns.model import Resources, gpus_of
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.matching.max_jobs import max_jobs, rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.replay.backfilling_loop import EASY, FCFS
from slurm_sns.sim.replay.trace_replay import replay, replay_as_slurm, replay_in_order
from slurm_sns.sim.results.result_files import result_files
from slurm_sns.sim.traces.trace_builder import NO_SUCH_GPUS, RecordBuilder

OF_NODES = ({}, {"a": 2}, {"a": 1, "b": 2}, {"": 3})
NODES = NodeArrays.sized(
    [f"n{at}" for at in range(8)], [Resources(4, 8192, gpus=gpus_of(OF_NODES[at % 4])) for at in range(8)]
)
DEMANDS = [gpus_of(each) for each in ({}, {"": 1}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}, {"": 3}, {"c": 1})]


def matching(*portfolio):
    rules = rules_of(MatchingParameters(portfolio=portfolio))
    return lambda trace: replay(NODES, trace, rules, interval_s=7)


def in_order(algorithm):
    rules = Rules(("first-fit",), queue_depth=100, reservations=0, weighs=True)
    return lambda trace: replay_in_order(NODES, trace, rules, algorithm, interval_s=1)


POLICIES = {
    "first-fit": matching("first-fit"),
    "best-fit": matching("best-fit-cores"),
    "max-jobs": matching("mix-fit", "idlest", "worse-fit-memory"),
    "fcfs": in_order(FCFS),
    "easy": in_order(EASY),
    "slurm": lambda trace: replay_as_slurm(NODES, trace, SlurmParameters()),
}


def trace_of(rows):
    """Jobs of (submit_s, run_s, nodes, cores, place in DEMANDS)."""
    builder = RecordBuilder(NODES, 1.0)
    submit_s, run_s, nodes, cores, gpus = np.array(rows, np.float64).T
    builder.add(
        identity=np.arange(len(rows), dtype=np.float64),
        submit_s=submit_s,
        run_s=run_s,
        nodes=nodes,
        cores=cores,
        memory_mb=np.full(len(rows), 1024.0),
        gpus=(gpus.astype(np.int64), DEMANDS),
    )
    return builder.records("drawn")


def most_held(run):
    """The largest amount of each resource that is held on each node at the start of any job."""
    most = np.zeros_like(NODES.capacity)
    for moment_s in np.unique(run.start_s):
        held = np.zeros_like(NODES.capacity)
        for job in np.flatnonzero((run.start_s <= moment_s) & (run.end_s > moment_s)).tolist():
            nodes = np.array(run.nodes(job))
            held[:, nodes] += NODES.taken(run.alternative(job), nodes)
        most = np.maximum(most, held)
    return most


ROWS = st.tuples(
    st.integers(0, 100), st.integers(1, 90), st.sampled_from([1, 1, 1, 2]), st.integers(1, 4), st.integers(0, 6)
)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=40))
def test_all_jobs_run_and_no_node_is_over_capacity(policy, rows):
    trace = trace_of(rows)
    run = POLICIES[policy](trace)

    assert len(trace) == len(rows)
    assert (run.start_s >= trace.submit_s).all()
    assert (most_held(run) <= NODES.capacity).all()


@pytest.mark.parametrize("portfolio", [None, ("best-fit-gpus",), ("mix-fit", "best-fit-gpus", "idlest")])
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=40) | st.lists(ROWS.map(lambda row: (*row[:4], 0)), min_size=1))
def test_replay_and_engine_start_the_same_jobs_on_the_same_nodes_with_gpus_and_without(portfolio, rows):
    chosen, trace = MatchingParameters(portfolio), trace_of(rows)
    rules = rules_of(chosen)
    done = replay(NODES, trace, rules, interval_s=7)
    plain = Simulation(
        NODES, trace.values(), plainly(max_jobs(chosen)), queue_depth=rules.queue_depth, interval_s=7
    ).run()

    members = portfolio or ("best-fit-gpus", *PAPER_PORTFOLIO)
    assert done.members == members
    fast, slow = (result_files(each, NODES) for each in (done, plain.as_run(trace, members)))
    for name in ("jobs.csv", "cycles.csv"):
        assert list(fast[name]) == list(slow[name])


@pytest.mark.parametrize("policy", POLICIES)
def test_as_many_jobs_run_at_a_time_as_there_are_gpus_for(policy):
    run = POLICIES[policy](trace_of([(0, 1000, 1, 1, 4)] * 6))

    assert np.count_nonzero(run.start_s < 1000) == 4  # two nodes have two of the type


def test_a_job_with_gpus_that_no_node_has_or_not_so_many_is_left_out():
    trace = trace_of([(0, 60, 1, 1, 7), (0, 60, 4, 1, 4), (0, 60, 2, 1, 4)])

    assert trace.dropped == {NO_SUCH_GPUS: 1, "larger than any nodes": 1}
    assert [each.demand.gpus for (each,) in trace.choices] == [gpus_of({"b": 1})]
