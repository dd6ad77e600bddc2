"""The DFRS paper's synthetic traces: jobs of the Lublin-Feitelson model with CPU and memory needs, at a chosen load.

A trace has 1,000 jobs for 128 nodes of four cores. Its clock begins with its first submit, before and after a scaling.

Offered load = sum(run time * tasks) / (nodes * last submit): a task counts as a whole node, whatever its CPU need. The
last submit is measured from the first one, which is at 0. The 0.1 to 0.9 of the paper are this load of the whole trace.

Times are whole seconds. Scaled submit times are rounded, each by itself and halves up, so that no error adds up: the
load is off by half a second in the last submit, some millionths for a trace of days. The model's own times are whole
seconds, too, and these are the same numbers for a simulation in floats and one in exact arithmetic. Jobs whose gap
becomes shorter than a second may be submitted at the same moment.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-C.
"""

from dataclasses import replace

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS
from slurm_sns.sim.workloads.lublin import PAPER_SET, SETS, ModelJobs, lublin_jobs

#: The jobs of each of the paper's 100 traces, and its nodes.
PAPER_JOBS, PAPER_NODES = 1000, 128
PAPER_LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: A node of the paper: quad-core, and 8 GB where the paper counts bytes (section IV-A, footnote 1).
NODE_CORES, NODE_GB = 4, 8
#: Thirty years: longer traces cannot be simulated.
LONGEST_SPAN_S = 1e9
#: A sequential task uses one core, any other task all of them.
SEQUENTIAL_NEED = PARTS // NODE_CORES
#: Of the jobs, 55 % need a tenth of a node's memory per task, the others x tenths with x uniform in 2 to 10.
SMALL_MEMORY_SHARE = 0.55
MEMORY_STEP = PARTS // 10
LEAST_STEPS, MOST_STEPS = 2, 10


def paper_trace(rng: np.random.Generator, *, jobs: int = PAPER_JOBS, nodes: int = PAPER_NODES) -> TraceArrays:
    """One of the paper's unscaled traces: batch and interactive jobs merged by submit time, with their needs."""
    return annotate(lublin_jobs(SETS[PAPER_SET], jobs, nodes, rng), rng)


def annotate(jobs: ModelJobs, rng: np.random.Generator) -> TraceArrays:
    """The jobs with CPU and memory needs as fractions of a node, numbered from 1, their first submit at 0.

    The needs do not depend on the times: all scaled forms of a trace have the same jobs.
    """
    count = len(jobs.submit_s)
    small = rng.random(count) < SMALL_MEMORY_SHARE
    steps = np.where(small, 1, rng.integers(LEAST_STEPS, MOST_STEPS, count, endpoint=True))
    return TraceArrays(
        identity=np.arange(1, count + 1),
        submit=(jobs.submit_s - jobs.submit_s[0]).astype(np.float64),
        run=jobs.run_s.astype(np.float64),
        tasks=jobs.tasks,
        cores=np.where(jobs.tasks == 1, SEQUENTIAL_NEED, PARTS),
        memory=steps * MEMORY_STEP,
    )


def offered_load(trace: TraceArrays, nodes: int) -> float:
    """The work of the jobs, one whole node per task, divided by what the nodes do until the last submit.

    Infinite if all jobs are submitted at one moment.
    """
    span_s = float(trace.submit_s[-1] - trace.submit_s[0])
    work_s = float((trace.run_s * trace.tasks).sum())
    return work_s / (nodes * span_s) if span_s else float("inf")


def scaled(trace: TraceArrays, nodes: int, load: float) -> TraceArrays:
    """The trace with all gaps between submits multiplied by one number that gives it this offered load on these nodes.

    Raises:
        BadInput: no number gives this load, because all jobs are submitted at one moment, before or after the scaling,
            or the trace would be too long.
    """
    factor = offered_load(trace, nodes) / load
    span_s = np.floor((trace.submit_s[-1] - trace.submit_s[0]) * factor + 0.5) if np.isfinite(factor) else 0.0
    if not span_s > 0:
        raise BadInput(f"load {load:g}: all jobs are submitted in one second; valid: more jobs, or a lower load")
    if span_s > LONGEST_SPAN_S:
        raise BadInput(f"load {load:g}: the trace would last {span_s:.2g} s; valid: a higher load")
    submit_s = np.floor((trace.submit_s - trace.submit_s[0]) * factor + 0.5)
    return replace(trace, submit=submit_s)
