"""The lines of the result files of a simulation, byte-identical for the same input."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.results.columns import CYCLES, JOBS, header
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB

#: How many jobs are converted to text at a time.
PART = 1 << 16


def result_files(run: TraceRun, node_arrays: NodeArrays, *, spreads: bool = False) -> dict[str, Iterable[str]]:
    """The lines of jobs.csv and cycles.csv; `spreads`: the policy uses scale factors, so that they are written."""
    return {
        "jobs.csv": chain([header(JOBS)], _job_lines(run, node_arrays.names, spreads=spreads)),
        "cycles.csv": chain([header(CYCLES)], _cycle_lines(run)),
    }


def _job_lines(run: TraceRun, names: Sequence[str], *, spreads: bool) -> Iterator[str]:
    """Ways and bandwidth are empty where a job demands none, the scale where the policy uses none."""
    trace = run.trace
    sizes = [[_size(each, spreads=spreads) for each in of_kind] for of_kind in trace.choices]
    is_single = [all(each.nodes == 1 for each in of_kind) for of_kind in trace.choices]
    times = (_as_text(column) for column in (trace.submit, run.start, run.end))
    columns = (trace.identity, *times, run.place, trace.kind, run.choice)
    for begin in range(0, len(trace), PART):
        rows = zip(*(column[begin : begin + PART].tolist() for column in columns), strict=True)
        for job, (identity, submit, start, end, place, kind, choice) in enumerate(rows, start=begin):
            nodes = names[place] if is_single[kind] else "+".join(names[node] for node in run.nodes(job))
            yield f"{identity},{submit},{start},{end},{nodes},{sizes[kind][choice]}"


def _size(alternative: Alternative, *, spreads: bool) -> str:
    """What a job holds on each of its nodes, and its scale: the end of a line."""
    demand, scale = alternative.demand, alternative.scale if spreads else ""
    shared = f"{demand.ways or ''},{demand.bandwidth_gbps or ''}"
    return f"{demand.cores},{gigabytes(demand.memory_mb)},{shared},{scale}\n"


def _as_text(seconds: NDArray[Any]) -> NDArray[Any]:
    """Whole seconds without decimals, others to the nanosecond."""
    if seconds.dtype == np.int64:
        return seconds
    return np.array([int(each) if each.is_integer() else round(each, 9) for each in seconds.tolist()], dtype=object)


def _cycle_lines(run: TraceRun) -> Iterator[str]:
    winners: dict[int, str] = {}
    for time_s, waiting, started, chosen, bits in zip(*(each.tolist() for each in run.cycles), strict=True):
        if bits not in winners:
            winners[bits] = "+".join(member for at, member in enumerate(run.members) if bits >> at & 1)
        yield f"{time_s},{waiting},{started},{run.members[chosen] if chosen >= 0 else ''},{winners[bits]}\n"


def gigabytes(memory_mb: int) -> str:
    """The memory in GB, exact: a MiB is a binary fraction of a GB."""
    whole, rest = divmod(memory_mb, MIB_PER_GB)
    return str(whole) if not rest else repr(memory_mb / MIB_PER_GB)


def decimal(number: float) -> str:
    """The number with up to six decimals, without zeros at the end."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
