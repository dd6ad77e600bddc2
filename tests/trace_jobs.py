"""Traces of values for the event engine, made job by job."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, fits_ever
from slurm_sns.sim.trace import SHORTEST_RUN_S, SMALLEST_MEMORY_MB, TOO_LARGE, Trace, TraceJob, half_up


def trace_of(name: str, jobs: Iterable[TraceJob], dropped: Counter[str], node_arrays: NodeArrays) -> Trace:
    """The trace of the jobs that the nodes can hold when all are empty; the others are dropped.

    Raises:
        BadInput: no job is left.
    """
    possible: dict[Alternative, bool] = {}
    kept = []
    for each in jobs:
        alternative = each.job.alternatives[0]
        if alternative not in possible:
            possible[alternative] = fits_ever(node_arrays, alternative)
        if possible[alternative]:
            kept.append(each)
        else:
            dropped[TOO_LARGE] += 1
    if not kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items())) or "it has none"
        raise BadInput(f"{name}: no job can run on these nodes: {reasons}")
    kept.sort(key=lambda each: each.job.submit_s)
    return Trace(tuple(kept), dict(sorted(dropped.items())))


class JobMaker:
    """Makes the jobs of one trace, with arrival times scaled; jobs of equal shape share one alternative."""

    def __init__(self, load_factor: float) -> None:
        """`load_factor` (the paper's beta) multiplies arrival times: below 1 raises the load."""
        # The exact decimal fraction: 0.58 * 25 s is 14.5 s and rounds up; as a binary fraction it would round down.
        self._load_factor = Fraction(repr(load_factor))
        self._shapes: dict[tuple[int, int, int], tuple[Alternative]] = {}

    def job(
        self,
        identity: int,
        submit_s: float,
        run_s: float,
        *,
        nodes: int,
        cores: int,
        memory_mb: int,
        project: str = "",
        heuristic: str | None = None,
    ) -> TraceJob:
        """A job of `nodes` nodes with these cores and this memory on each; times are rounded half up to seconds.

        Its expected run time is its true one.
        """
        shape = (nodes, cores, max(memory_mb, SMALLEST_MEMORY_MB))
        if shape not in self._shapes:
            self._shapes[shape] = (Alternative(nodes=nodes, demand=Resources(cores, shape[2])),)
        arrival_s = half_up(submit_s if self._load_factor == 1 else Fraction(submit_s) * self._load_factor)
        whole_run_s = max(half_up(run_s), SHORTEST_RUN_S)
        job = Job(
            id=identity,
            submit_s=arrival_s,
            alternatives=self._shapes[shape],
            order=(arrival_s,),
            project=project,
            heuristic=heuristic,
            expected_run_s=whole_run_s,
        )
        return TraceJob(job, whole_run_s)
