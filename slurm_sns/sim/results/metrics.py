"""The metrics of a simulation.

Wait = start - submit; slowdown = (wait + run) / run. Queue length and utilisation are integrals over time from the
first to the last submit, divided by that span. The load is all that the jobs demand, divided by the same span. If all
jobs are submitted at once there is no span, and these metrics are None.

Source: Max-Jobs paper (JSSPP 2013), section 5; the bounded stretch: Casanova et al., dynamic fractional resource
scheduling (bound 30 s).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.results.run import Cycles, TraceRun

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


class Timings(NamedTuple):
    """Of each job: its submit, start and end, and cores and memory over all its nodes."""

    submit_s: Column
    start_s: Column
    end_s: Column
    held: Column  #: (2, jobs)


def measure(run: TraceRun, node_arrays: NodeArrays) -> Metrics:
    """The metrics of one run."""
    submit, start, end = (column.astype(np.float64) for column in (run.records.submit_s, run.start_s, run.end_s))
    return measure_jobs(Timings(submit, start, end, run.held(node_arrays)), run.cycles, node_arrays, run.members)


def measure_jobs(timings: Timings, cycles: Cycles, node_arrays: NodeArrays, members: Sequence[str]) -> Metrics:
    """The same from its parts."""
    submit, start, end, taken = timings
    run = end - start
    first, last = float(submit.min()), float(submit.max())
    running = inside(start, end, first, last)

    def fraction(resource: int, seconds: Column) -> float | None:
        capacity = float(node_arrays.capacity[resource].sum())
        return float((taken[resource] * seconds).sum()) / (capacity * (last - first)) if last > first else None

    def percent(resource: int) -> float | None:
        demanded = fraction(resource, run)
        return None if demanded is None else 100 * demanded

    busy = cycles.winners[cycles.waiting > 0]
    idle = len(cycles.waiting) - len(busy)
    wins = {member: int(np.count_nonzero(busy >> at & 1)) for at, member in enumerate(members)}
    return Metrics(
        mean_wait_s=float((start - submit).mean()),
        mean_slowdown=float(((end - submit) / run).mean()),
        max_bounded_stretch=float((np.maximum(end - submit, STRETCH_BOUND_S) / np.maximum(run, STRETCH_BOUND_S)).max()),
        mean_queue_length=float(inside(submit, start, first, last).sum()) / (last - first) if last > first else None,
        utilisation_cores=fraction(CORES, running),
        utilisation_memory=fraction(MEMORY, running),
        load_cores=percent(CORES),
        load_memory=percent(MEMORY),
        cycles=len(cycles.waiting),
        cycles_with_waiting=len(busy),
        wins=wins,
        wins_all_cycles={member: count + idle for member, count in wins.items()},
    )


def inside(begin: Column, end: Column, first: float, last: float) -> Column:
    """How many seconds of each interval lie between first and last."""
    seconds: Column = np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
    return seconds
