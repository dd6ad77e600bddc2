"""Time each decision of DYNMCB8 on the unscaled traces, and draw the times against the number of jobs.

The simulation of any policy runs the traces. At each decision the compiled kernel is timed on the jobs and nodes as
they are then: the search for the largest yield, with its packings, and the yields of all jobs. The times are CPU times
of this machine; how many jobs there are at each decision does not depend on it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment
from slurm_sns.policies.dfrs.instant import Instant, YieldDecision, arrays_of
from slurm_sns.policies.dfrs.instant_kernel import decide as decide_in_place
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece
from slurm_sns.sim.trace import Trace, TraceArrays, TraceJob
from slurm_sns.sim.traces.fluid_trace import whole_nodes
from sns_reproductions import dfrs

#: [jobs, observations, seconds in total, seconds at most], by number of jobs.
Timed = Sequence[Sequence[float]]


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Time the decisions and draw the figure."""
    units = dfrs.units_of(dfrs.UNSCALED, range(1, options.seeds + 1))
    found = dfrs.results(options, [units], timed, "dfrs-time")
    of_traces = [found[instance] for [instance] in units]
    by_jobs = merged(of_traces)
    jobs, _, mean_s, largest_s = np.array(by_jobs).T
    lines = {"mean": (jobs, 1000 * mean_s), "largest": (jobs, 1000 * largest_s)}
    figures.curves(options.out, "times", {"": lines}, ("jobs in the system", "ms"))
    table = DataTable("times", ("jobs", "observations", "mean_s", "largest_s"), by_jobs)
    return PageResults(measured(of_traces, data["small"]), [table], seeds=options.seeds)


def timed(piece: Piece) -> list[list[float]]:
    """The decisions on one trace, by the number of jobs in the system, as `Timed`."""
    trace, nodes = dfrs.trace_of(piece)
    policy = TimedDfrs(ALGORITHMS[dfrs.DYNMCB8])
    PlannedSimulation(whole_nodes(nodes), as_values(trace), policy, penalty_s=int(piece[-1])).run()
    jobs, took_s = np.array(policy.seen).T
    by_jobs = ((count, took_s[jobs == count]) for count in np.unique(jobs).tolist())
    return [[count, len(times), float(times.sum()), float(times.max())] for count, times in by_jobs]


class TimedDfrs(Dfrs):
    """DFRS; `seen` has of each decision the number of jobs and the kernel's CPU time in seconds."""

    def __init__(self, algorithm: Algorithm) -> None:
        """Start without decisions."""
        super().__init__(algorithm)
        self.seen: list[tuple[int, float]] = []

    def decide(self, at: Instant) -> YieldDecision:
        """The decision, which is made twice: the first time the kernel may have to be compiled or loaded."""
        decided = super().decide(at)
        cluster = arrays_of(at)
        clock = DecisionMoment(float(at.now_s), at.is_run, float(at.period_s), float(at.next_run_s))
        began = time.thread_time()
        decide_in_place(self.algorithm, cluster, clock)
        self.seen.append((len(at.jobs), time.thread_time() - began))
        return decided


def as_values(trace: TraceArrays) -> Trace:
    """The trace as the simulation of any policy reads it."""
    columns = (trace.identity, trace.submit_s, trace.run_s, trace.tasks, trace.cores, trace.memory)
    jobs = (
        TraceJob(Job(identity, submit_s, (Alternative(tasks, Resources(cpu, memory)),)), run_s)
        for identity, submit_s, run_s, tasks, cpu, memory in zip(*(each.tolist() for each in columns), strict=True)
    )
    return Trace(tuple(jobs), {})


def merged(of_traces: Sequence[Timed]) -> list[tuple[int, int, float, float]]:
    """The decisions of all traces by number of jobs: (jobs, observations, mean seconds, largest)."""
    rows = np.concatenate(of_traces)
    by_jobs = ((int(jobs), rows[rows[:, 0] == jobs]) for jobs in np.unique(rows[:, 0]))
    return [
        (jobs, int(of[:, 1].sum()), float(of[:, 2].sum() / of[:, 1].sum()), float(of[:, 3].max()))
        for jobs, of in by_jobs
    ]


def measured(of_traces: Sequence[Timed], small: int) -> dict[str, Quantity]:
    """The quantities; *few* jobs are at most `small`, *many* are more."""
    traces = [np.array(rows) for rows in of_traces]
    few, many = ([rows[(rows[:, 0] <= small) == is_few] for rows in traces] for is_few in (True, False))
    counts = [rows[:, 1].sum() for rows in traces]
    many_counts, many_s = (dfrs.replicates(np.sum, [rows[:, at].sum() for rows in many]) for at in (1, 2))
    return {
        "observations": dfrs.jackknife(dfrs.replicates(np.mean, counts)),
        "many_pct": dfrs.jackknife(100 * dfrs.ratio(many_counts, dfrs.replicates(np.sum, counts))),
        "most_jobs": dfrs.jackknife(dfrs.replicates(np.max, [rows[:, 0].max() for rows in traces])),
        "few_most_s": dfrs.jackknife(dfrs.replicates(np.max, [rows[:, 3].max(initial=0) for rows in few])),
        "many_mean_s": dfrs.jackknife(dfrs.ratio(many_s, many_counts)),
        "many_most_s": dfrs.jackknife(dfrs.replicates(np.max, [rows[:, 3].max(initial=0) for rows in many])),
    }
