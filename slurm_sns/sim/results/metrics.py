"""The metrics of a simulation.

Wait = start - submit; slowdown = (wait + run) / run. Queue length and utilisation are integrals over time from the
first to the last submit, divided by that span. The load is all that the jobs demand, divided by the same span. If all
jobs are submitted at once there is no span, and these metrics are None.

Source: Max-Jobs paper (JSSPP 2013), section 5; the bounded stretch: Casanova et al., dynamic fractional resource
scheduling (bound 30 s).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.run import TraceRun

#: Turnaround and run times below this count as this much; otherwise very short jobs would decide the maximum.
STRETCH_BOUND_S = 30

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one simulation; utilisation is a fraction of the capacity, load a percentage.

    `wins` counts, for each member, the cycles with a non-empty queue in which it has the most matches.
    `wins_all_cycles` counts every cycle that ran; in a cycle with an empty queue all members have the most matches.
    """

    mean_wait_s: float
    mean_slowdown: float
    max_bounded_stretch: float
    mean_queue_length: float | None
    utilisation_cores: float | None
    utilisation_memory: float | None
    load_cores: float | None
    load_memory: float | None
    cycles: int
    cycles_with_waiting: int
    wins: dict[str, int]
    wins_all_cycles: dict[str, int]


def measure(run: TraceRun, node_arrays: NodeArrays) -> Metrics:
    """The metrics of one run of jobs of whole cores, whose run times may depend on their alternatives."""
    cycles = run.cycles
    busy = cycles.winners[cycles.waiting > 0]
    wins = {member: int(np.count_nonzero(busy >> at & 1)) for at, member in enumerate(run.members)}
    run_s = run.trace.seconds(run.end - run.start)
    return metrics_of(run, node_arrays, cycles=(len(cycles.waiting), len(busy)), run_s=run_s, wins=wins)


def metrics_of(
    run: TraceRun,
    node_arrays: NodeArrays,
    *,
    cycles: tuple[int, int],
    wait_s: Column | None = None,
    run_s: Column | None = None,
    used_s: Sequence[float | None] | None = None,
    waited_s: float | None = None,
    wins: Mapping[str, int] | None = None,
) -> Metrics:
    """The metrics of a run; `cycles` are all, and those with a queue. Without `wins` there is no portfolio.

    What is not given: `wait_s` of each job is that until its start, and `run_s` that of the trace. `used_s` are the
    cores, and the memory, in use, times seconds: what jobs hold from start to end. `waited_s` is the time that jobs
    were in queues: until their starts. Both are from the first submit to the last.
    """
    trace, held = run.trace, run.held(node_arrays)
    submit_s, start_s, end_s = (trace.seconds(each) for each in (trace.submit, run.start, run.end))
    turnaround_s = trace.seconds(run.end - trace.submit)
    wait_s = trace.seconds(run.start - trace.submit) if wait_s is None else wait_s
    run_s = trace.seconds(trace.run) if run_s is None else run_s
    first, last = float(submit_s.min()), float(submit_s.max())
    span_s = last - first
    if used_s is None:
        used_s = [float((each * inside(start_s, end_s, first, last)).sum()) for each in held]
    if waited_s is None:
        waited_s = float(inside(submit_s, start_s, first, last).sum())

    def share(amount_s: float | None, resource: int) -> float | None:
        if amount_s is None or not span_s:
            return None
        return amount_s / (float(node_arrays.capacity[resource].sum()) * span_s)

    def load(resource: int) -> float | None:
        demanded = share(float((held[resource] * run_s).sum()), resource)
        return None if demanded is None else 100 * demanded

    wins, idle = dict(wins or {}), cycles[0] - cycles[1]
    return Metrics(
        mean_wait_s=float(wait_s.mean()),
        mean_slowdown=float((turnaround_s / run_s).mean()),
        max_bounded_stretch=float(bounded_stretch(turnaround_s, run_s).max()),
        mean_queue_length=waited_s / span_s if span_s else None,
        utilisation_cores=share(used_s[CORES], CORES),
        utilisation_memory=share(used_s[MEMORY], MEMORY),
        load_cores=load(CORES),
        load_memory=load(MEMORY),
        cycles=cycles[0],
        cycles_with_waiting=cycles[1],
        wins=wins,
        wins_all_cycles={member: count + idle for member, count in wins.items()},
    )


def bounded_stretch(turnaround_s: Column, run_s: Column) -> Column:
    """The bounded stretch of each job, from its time between submit and end, and how long it has to run."""
    stretch: Column = np.maximum(turnaround_s, STRETCH_BOUND_S) / np.maximum(run_s, STRETCH_BOUND_S)
    return stretch


def inside(begin: Column, end: Column, first: float, last: float) -> Column:
    """How many seconds of each interval lie between first and last."""
    seconds: Column = np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
    return seconds
