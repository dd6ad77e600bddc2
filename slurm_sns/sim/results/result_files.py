"""The lines of the result files of a simulation, byte-identical for the same input."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.results.amounts import gigabytes
from slurm_sns.sim.results.columns import CYCLES, JOBS, header
from slurm_sns.sim.results.lines import Lists, Numbers, Texts, lines
from slurm_sns.sim.run import TraceRun


def result_files(run: TraceRun, node_arrays: NodeArrays, *, spreads: bool = False) -> dict[str, Iterable[str]]:
    """The lines of jobs.csv and cycles.csv, many at a time; `spreads`: the policy uses scale factors."""
    return {
        "jobs.csv": chain([header(JOBS)], _job_lines(run, node_arrays.names, spreads=spreads)),
        "cycles.csv": chain([header(CYCLES)], _cycle_lines(run)),
    }


def _job_lines(run: TraceRun, names: Sequence[str], *, spreads: bool) -> Iterator[str]:
    """Ways and bandwidth are empty where a job demands none, the scale where the policy uses none."""
    trace = run.trace
    alternatives = [each for of_kind in trace.choices for each in of_kind]
    first = np.cumsum([0, *map(len, trace.choices)], dtype=np.int32)
    chosen = first[trace.kind] + run.choice
    nodes = np.array([each.nodes for each in alternatives], np.int32)
    return lines(
        Numbers(trace.identity),
        *map(_seconds, (trace.submit, run.start, run.end)),
        Lists(run.place, names, nodes[chosen], run.spread),
        Texts(chosen, [_size(each, spreads=spreads) for each in alternatives]),
    )


def _size(alternative: Alternative, *, spreads: bool) -> str:
    """What a job holds on each of its nodes, and its scale: the end of a line."""
    demand, scale = alternative.demand, alternative.scale if spreads else ""
    shared = f"{demand.ways or ''},{demand.bandwidth_gbps or ''}"
    return f"{demand.cores},{gigabytes(demand.memory_mb)},{shared},{scale}"


def _seconds(seconds: NDArray[Any]) -> Numbers | Texts:
    """Whole seconds without decimals, others to the nanosecond."""
    return _moments(seconds, lambda each: str(int(each) if each.is_integer() else round(each, 9)))


def _moments(seconds: NDArray[Any], text: Callable[[float], str]) -> Numbers | Texts:
    """Integers as they are, floats by their texts."""
    if seconds.dtype == np.int64:
        return Numbers(seconds)
    return Texts(np.arange(len(seconds)), [text(each) for each in seconds.tolist()])


def _cycle_lines(run: TraceRun) -> Iterator[str]:
    time_s, waiting, started, chosen, winners = run.cycles
    bits, best = np.unique(winners, return_inverse=True)
    sets = ["+".join(member for at, member in enumerate(run.members) if each >> at & 1) for each in bits.tolist()]
    nobody = np.where(chosen < 0, len(run.members), chosen)
    return lines(
        _moments(time_s, str),
        Numbers(waiting),
        Numbers(started),
        Texts(nobody, [*run.members, ""]),
        Texts(best, sets),
    )
