"""The batch baselines of the DFRS paper on a trace of fractional needs: each task has a whole node.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-B: FCFS, and EASY with perfect knowledge of run
times. `easy-extra-nodes-only` is EASY as in the program of the paper's authors (vcsim).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.sim.replay.batch_loop import (
    EASY,
    EASY_EXTRA_NODES,
    FCFS,
    FREE,
    STATES,
    BatchJobs,
    BatchState,
    Column,
    run_batch,
)
from slurm_sns.sim.traces.fluid_trace import FluidTrace

#: The algorithms by name.
ALGORITHMS = {"fcfs": FCFS, "easy": EASY, "easy-extra-nodes-only": EASY_EXTRA_NODES}


class BatchRun(NamedTuple):
    """When each job started and ended, in seconds, in the trace's order."""

    start_s: Column
    end_s: Column


def replay_batch(
    nodes: int, trace: FluidTrace, algorithm: str, *, expected_run_s: NDArray[np.float64] | None = None
) -> BatchRun:
    """Replay the trace on this many nodes that are all alike. The jobs' needs are not read.

    `expected_run_s` has one entry per job, nan where nothing is known; None means the true run times.

    Raises:
        BadInput: the algorithm is unknown, a job has more tasks than there are nodes, or a column is not valid.
    """
    if algorithm not in ALGORITHMS:
        raise BadInput(f"algorithm '{algorithm}' is unknown; valid: {', '.join(ALGORITHMS)}")
    expected = np.array(trace.run_s if expected_run_s is None else expected_run_s, dtype=np.float64)
    expected[np.isnan(expected)] = np.inf
    _require_valid(nodes, trace, expected)
    count = len(trace)
    unknown = np.full((3, count), np.nan)
    jobs = BatchJobs(
        np.ascontiguousarray(trace.submit_s, dtype=np.float64),
        np.ascontiguousarray(trace.run_s, dtype=np.float64),
        expected,
        np.ascontiguousarray(trace.tasks, dtype=np.int64),
        *unknown,
    )
    machine = BatchState(np.zeros(nodes, np.int64), np.zeros(count, np.int64), np.zeros(STATES, np.int64))
    machine.state[FREE] = nodes
    run_batch(jobs, machine, ALGORITHMS[algorithm])
    return BatchRun(jobs.start_s, jobs.end_s)


def _require_valid(nodes: int, trace: FluidTrace, expected_run_s: Column) -> None:
    """Refuse what would stop the loop from ending.

    Raises:
        BadInput: naming the first job that is wrong, its value and what is valid.
    """
    if expected_run_s.shape != trace.run_s.shape:
        raise BadInput(f"expected_run_s has {len(expected_run_s)} entries; valid: {len(trace)}, one for each job")
    for name, column, is_wrong, valid in (
        ("tasks", trace.tasks, (trace.tasks < 1) | (trace.tasks > nodes), f"from 1 to {nodes}, the nodes"),
        ("run_s", trace.run_s, ~(np.isfinite(trace.run_s) & (trace.run_s >= 0)), "0 or more"),
        ("expected_run_s", expected_run_s, expected_run_s < 0, "0 or more, nan if nothing is known"),
        ("submit_s", trace.submit_s, ~np.isfinite(trace.submit_s), "a time in seconds"),
        ("submit_s", trace.submit_s, np.diff(trace.submit_s, prepend=-np.inf) < 0, "jobs by submit time"),
    ):
        if is_wrong.any():
            at = int(np.argmax(is_wrong))
            raise BadInput(f"job {trace.identity[at]}: {name} is {column[at]:g}; valid: {valid}")
