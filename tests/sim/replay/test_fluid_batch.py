"""FCFS and EASY on whole nodes, by the compiled loop and by the policies: the reference results, the rules."""

import csv
import gzip
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.batch.policies import easy, fcfs

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.baselines.parameters import EasyParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.replay.fluid_replay import BATCH, replay_batch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Trace, TraceArrays, TraceJob, of_values
from slurm_sns.sim.traces.fluid_trace import PARTS

REFERENCE = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[3].parent / "shared")) / "reference" / "dfrs"
TASK = Resources(1, 1024)

needs_reference = pytest.mark.skipif(
    not (REFERENCE / "sim-jobs.csv.gz").is_file(), reason=f"{REFERENCE} is missing (SNS_SHARED names the folder)"
)


def trace_of(*jobs: tuple[float, float, int]) -> TraceArrays:
    """Jobs of (submit, run time, tasks)."""
    submit_s, run_s, tasks = zip(*jobs, strict=True) if jobs else ((), (), ())
    needs = np.full(len(jobs), PARTS, np.int64)
    return TraceArrays(
        np.arange(len(jobs)),
        np.array(submit_s, np.float64),
        np.array(run_s, np.float64),
        tasks=np.array(tasks, np.int64),
        cores=needs,
        memory=needs,
    )


def by_policy(nodes: int, trace: TraceArrays, algorithm: str, *, expected_run_s=None) -> TraceRun:
    """The same by the policy: each task alone on one of the nodes, which are all alike."""
    expected_run_s = trace.run_s if expected_run_s is None else expected_run_s
    rows = zip(trace.submit_s.tolist(), trace.run_s.tolist(), trace.tasks.tolist(), list(expected_run_s), strict=True)
    jobs = [
        TraceJob(
            Job(
                at,
                submit_s,
                (Alternative(tasks, TASK, exclusive=True),),
                expected_run_s=float(expected_s) or None,
            ),
            run_s,
        )
        for at, (submit_s, run_s, tasks, expected_s) in enumerate(rows)
    ]
    node_arrays = NodeArrays(tuple(f"n{at}" for at in range(nodes)), amounts([TASK] * nodes))
    policies = {
        "fcfs": fcfs,
        "easy": easy,
        "easy-extra-nodes-only": lambda: easy(EasyParameters(extra_nodes_only=True)),
    }
    values = Trace(tuple(jobs), {})
    return PlannedSimulation(node_arrays, values, policies[algorithm]()).run().as_run(of_values(values))


def reference(name: str) -> dict[str, list[dict[str, str]]]:
    """The rows of a file of the reference results, by trace."""
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with gzip.open(REFERENCE / name, "rt") as file:
        for row in csv.DictReader(file):
            rows[row["trace"]].append(row)
    return rows


@pytest.mark.long
@needs_reference
@pytest.mark.parametrize("run", [replay_batch, by_policy])
@pytest.mark.parametrize("algorithm", ["fcfs", "easy"])
def test_every_job_starts_and_ends_as_in_the_reference(run, algorithm):
    expected = reference("sim-jobs.csv.gz")
    for number, rows in reference("sim-traces.csv.gz").items():
        trace = trace_of(*((float(row["submit_s"]), float(row["run_s"]), int(row["tasks"])) for row in rows))
        jobs = [row for row in expected[number] if row["algorithm"] == algorithm.upper()]
        assert [int(row["job"]) for row in jobs] == list(range(len(trace)))

        ran = run(8, trace, algorithm)

        assert ran.start_s == pytest.approx([float(row["start_s"]) for row in jobs], abs=1e-4)
        assert ran.end_s == pytest.approx([float(row["end_s"]) for row in jobs], abs=1e-4)


#: Four nodes: job 0 holds two until 100, job 1 needs more than are free. The third job is 50 s long, the fourth 500 s.
HEAD_NEEDS_ALL = trace_of((0, 100, 2), (1, 10, 4), (2, 50, 1), (3, 500, 1))
HEAD_NEEDS_THREE = trace_of((0, 100, 2), (1, 10, 3), (2, 50, 1), (2, 500, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("trace", "algorithm", "starts"),
    [
        (HEAD_NEEDS_ALL, "fcfs", [0, 100, 110, 110]),
        (HEAD_NEEDS_ALL, "easy", [0, 100, 2, 110]),
        (HEAD_NEEDS_ALL, "easy-extra-nodes-only", [0, 100, 110, 110]),
        (HEAD_NEEDS_THREE, "fcfs", [0, 100, 100, 110]),
        (HEAD_NEEDS_THREE, "easy", [0, 100, 2, 2]),
        (HEAD_NEEDS_THREE, "easy-extra-nodes-only", [0, 100, 2, 52]),
    ],
)
def test_who_starts_beside_the_head_job(trace, algorithm, starts):
    assert replay_batch(4, trace, algorithm).start_s.tolist() == starts


def test_a_job_may_end_just_when_the_head_job_starts():
    assert replay_batch(2, trace_of((0, 100, 1), (1, 10, 2), (2, 98, 1)), "easy").start_s.tolist() == [0, 100, 2]
    assert replay_batch(2, trace_of((0, 100, 1), (1, 10, 2), (2, 99, 1)), "easy").start_s.tolist() == [0, 100, 110]


def test_jobs_end_before_others_are_submitted_at_the_same_instant():
    assert replay_batch(1, trace_of((0, 10, 1), (10, 5, 1)), "easy").start_s.tolist() == [0, 10]


def test_estimates_that_are_too_long_keep_jobs_from_being_backfilled():
    run = replay_batch(4, HEAD_NEEDS_ALL, "easy", expected_run_s=np.array([100, 10, 99, 500]))

    assert run.start_s.tolist() == [0, 100, 110, 110]


def test_a_job_that_outlives_its_estimate_is_expected_to_end_at_once():
    """Job 0 is expected until 1 and runs until 100: at 2 the head job seems to start at once."""
    run = replay_batch(4, HEAD_NEEDS_ALL, "easy", expected_run_s=np.array([1, 10, 50, 500]))

    assert run.start_s.tolist() == [0, 100, 110, 110]


def test_a_job_without_an_estimate_is_backfilled_on_extra_nodes_only():
    unknown = np.array([100, 10, 0, 0])

    assert replay_batch(4, HEAD_NEEDS_ALL, "easy", expected_run_s=unknown).start_s.tolist() == [0, 100, 110, 110]
    assert replay_batch(4, HEAD_NEEDS_THREE, "easy", expected_run_s=unknown).start_s.tolist() == [0, 100, 2, 52]


def test_an_unknown_end_is_after_all_known_ones():
    run = replay_batch(4, HEAD_NEEDS_ALL, "easy", expected_run_s=np.array([0, 10, 50, 500]))

    assert run.start_s.tolist() == [0, 503, 2, 3]


NODES = 5
JOBS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 30), st.integers(1, NODES), st.integers(-10, 20) | st.none()),
    min_size=1,
    max_size=14,
)


def made(jobs) -> tuple[TraceArrays, np.ndarray]:
    """A trace and estimates, from jobs of (seconds after the one before, run time, tasks, error of the estimate)."""
    submit_s = np.cumsum([gap for gap, *_ in jobs])
    trace = trace_of(*((at, run, tasks) for at, (_, run, tasks, _) in zip(submit_s, jobs, strict=True)))
    return trace, np.array([0 if error is None else max(run + error, 1) for _, run, _, error in jobs])


@pytest.mark.parametrize("algorithm", BATCH)
@settings(max_examples=40)
@given(jobs=JOBS, knows=st.booleans())
def test_the_loop_and_the_policy_agree(algorithm, jobs, knows):
    trace, estimates = made(jobs)
    expected = None if knows else estimates

    loop = replay_batch(NODES, trace, algorithm, expected_run_s=expected)
    policy = by_policy(NODES, trace, algorithm, expected_run_s=expected)

    assert loop.start_s.tolist() == policy.start_s.tolist()
    assert loop.end_s.tolist() == policy.end_s.tolist()


@pytest.mark.long
@pytest.mark.parametrize("algorithm", BATCH)
@settings(max_examples=200)
@given(jobs=JOBS)
def test_no_more_nodes_are_used_than_there_are_and_every_job_runs_its_time(algorithm, jobs):
    trace, estimates = made(jobs)
    run = replay_batch(NODES, trace, algorithm, expected_run_s=estimates)
    start_s, end_s = run.start_s, run.end_s

    assert (end_s - start_s == trace.run_s).all()
    assert (start_s >= trace.submit_s).all()
    for time_s in start_s:
        assert trace.tasks[(start_s <= time_s) & (time_s < end_s)].sum() <= NODES


@settings(max_examples=200)
@given(jobs=JOBS)
def test_fcfs_starts_jobs_in_submit_order(jobs):
    trace, _ = made(jobs)

    assert (np.diff(replay_batch(NODES, trace, "fcfs").start_s) >= 0).all()


@pytest.mark.parametrize("algorithm", ["easy", "easy-extra-nodes-only"])
@settings(max_examples=200)
@given(jobs=JOBS, known=st.booleans())
def test_easy_never_delays_the_head_job_if_no_estimate_is_too_short(algorithm, jobs, known):
    """When it begins to be the head job, it could start at a time if nothing else started: it starts by then."""
    trace, estimates = made(jobs)
    expected = trace.run_s if known else np.fmax(estimates, trace.run_s)
    run = replay_batch(NODES, trace, algorithm, expected_run_s=expected)
    start_s, end_s = run.start_s, run.end_s

    for now_s in {*trace.submit_s.tolist(), *end_s.tolist()}:
        waiting = np.flatnonzero((trace.submit_s <= now_s) & (start_s > now_s))
        if len(waiting):
            head = waiting[0]
            before = (start_s < now_s) | ((start_s == now_s) & (np.arange(len(trace)) < head))
            running = np.flatnonzero(before & (end_s > now_s))
            assert start_s[head] <= could_start_s(trace, running, start_s + expected, head)


def could_start_s(trace: TraceArrays, running, expected_end_s, head: int) -> float:
    """When so many nodes are expected to be free as the head job needs."""
    free = NODES - trace.tasks[running].sum()
    for job in sorted(running, key=lambda job: expected_end_s[job]):
        free += trace.tasks[job]
        if free >= trace.tasks[head]:
            return float(expected_end_s[job])
    raise AssertionError("a job fits on all nodes")


@pytest.mark.parametrize("algorithm", BATCH)
def test_a_thousand_jobs_are_replayed(algorithm):
    random = np.random.default_rng(1)
    submit_s = np.sort(random.integers(0, 400_000, 1000))
    tasks, run_s = 2 ** random.integers(0, 8, 1000), random.integers(1, 20_000, 1000)
    trace = trace_of(*zip(submit_s.tolist(), run_s.tolist(), tasks.tolist(), strict=True))

    run = replay_batch(128, trace, algorithm)

    assert (run.start_s >= submit_s).all()
    assert (run.end_s - run.start_s == run_s).all()


@pytest.mark.parametrize("job", [(0, 10, 4), (0.5, 10, 1), (0, 0.5, 1)])
def test_a_job_that_cannot_be_replayed_on_whole_nodes_is_refused(job: tuple[float, float, int]) -> None:
    with pytest.raises(BadInput, match=r"^job 1 has .*; valid: at most 3 tasks, times in whole seconds$"):
        replay_batch(3, trace_of((0, 10, 3), job), "easy")
