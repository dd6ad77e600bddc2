"""The compute time of an allocation in the DFRS paper (section V): each decision of DYNMCB8 on the unscaled traces.

The simulation of any policy runs the traces. At each decision the compiled kernel is timed on the jobs and nodes as
they are then: the search for the largest yield, with its packings, and the yields of all jobs. The times are CPU times
of this machine; how many jobs there are at each decision does not depend on it.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment
from slurm_sns.policies.dfrs.instant import Instant, YieldDecision, arrays_of
from slurm_sns.policies.dfrs.instant_kernel import decide as decide_in_place
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options, Piece
from slurm_sns.sim.reproduce.dfrs.runs import DYNMCB8, FIVE_MINUTES, results, trace_of, unscaled_units
from slurm_sns.sim.reproduce.dfrs.statistics import NEAR, Statistic, Table, jackknife, largest, ratio
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.traces.fluid_trace import FluidTrace, whole_nodes
from slurm_sns.sim.traces.trace import Trace, TraceJob

#: The paper's numbers: observations on 100 traces, their percentage with at most 10 jobs, the most jobs, and seconds.
OBSERVATIONS, TRACES = 197_808, 100
SMALL, SMALL_PERCENT, MOST_JOBS = 10, 67.25, 102
SMALL_LARGEST_S, MEAN_S, LARGEST_S = 0.001, 0.25, 4.5
#: There is an observation for each submit and each end, fewer where they coincide: the number should be near.
NEAR_OBSERVATIONS = 0.05
HEADER = ("jobs", "observations", "mean_s", "largest_s")

#: [jobs, observations, seconds in total, seconds at most], by number of jobs.
Timed = Sequence[Sequence[float]]


def run(piece: Piece) -> list[list[float]]:
    """The decisions on one trace, by the number of jobs in the system, as `Timed`."""
    trace, nodes = trace_of(piece)
    policy = TimedDfrs(ALGORITHMS[DYNMCB8])
    PlannedSimulation(whole_nodes(nodes), as_values(trace), policy, penalty_s=int(piece[-1])).run()
    by_jobs: dict[int, list[float]] = {}
    for jobs, took_s in policy.seen:
        by_jobs.setdefault(jobs, []).append(took_s)
    return [[jobs, len(times), sum(times), max(times)] for jobs, times in sorted(by_jobs.items())]


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


def as_values(trace: FluidTrace) -> Trace:
    """The trace as the simulation of any policy reads it."""
    columns = (trace.identity, trace.submit_s, trace.run_s, trace.tasks, trace.cpu, trace.memory)
    return Trace(
        tuple(
            TraceJob(Job(identity, submit_s, (Alternative(tasks, Resources(cpu, memory)),)), run_s)
            for identity, submit_s, run_s, tasks, cpu, memory in zip(*(each.tolist() for each in columns), strict=True)
        ),
        {},
    )


def reproduce(options: Options) -> Page:
    """Time the decisions, draw the figure and return the page."""
    units = unscaled_units(options.seeds, FIVE_MINUTES)
    found = results(options, units, run, "dfrs-time")
    return page_of(options, [found[unit[0]] for unit in units])


def page_of(options: Options, timed: Sequence[Timed]) -> Page:
    """Draw the figure and return the page, from the decisions on each trace."""
    table, by_jobs = tabulate(timed), merged(timed)
    jobs = [row[0] for row in by_jobs]
    figures.curves(
        options.out,
        "times",
        {
            "": {
                "mean": (jobs, [1000 * row[2] for row in by_jobs]),
                "largest": (jobs, [1000 * row[3] for row in by_jobs]),
            }
        },
        ("jobs in the system", "ms"),
    )
    return Page(
        title="DFRS: compute time of an allocation (section V)",
        made=[
            (
                f"`sns reproduce dfrs-time`: each decision of DYNMCB8 on {len(timed)} unscaled traces of 1,000 jobs "
                "for 128 nodes, with a rescheduling penalty of 5 minutes. The times are CPU times of the compiled "
                "kernel alone: the search for the largest yield with all its packings, and the yields of all jobs."
            ),
            (
                "The times depend on the machine; the numbers of jobs and of decisions do not. "
                f"Intervals are over the traces. A printed share is met within a factor of {NEAR:g}, the number "
                f"of observations within {100 * NEAR_OBSERVATIONS:g} %."
            ),
        ],
        claims=_claims(table),
        drawings=[SavedFigure("times", "Compute time (ms) of an allocation by the number of jobs in the system.")],
        numbers=[DataTable("times", HEADER, by_jobs)],
        seeds=len(timed),
    )


def merged(timed: Sequence[Timed]) -> list[tuple[int, int, float, float]]:
    """The decisions of all traces by number of jobs: (jobs, observations, mean seconds, largest)."""
    rows = [row for of_trace in timed for row in of_trace]
    found = []
    for jobs in sorted({row[0] for row in rows}):
        here = [row for row in rows if row[0] == jobs]
        count = sum(row[1] for row in here)
        found.append((int(jobs), int(count), sum(row[2] for row in here) / count, max(row[3] for row in here)))
    return found


def tabulate(timed: Sequence[Timed]) -> Table:
    """Sums and largest values of each trace; `few` are decisions on at most `SMALL` jobs, `many` those on more."""

    def column(value: Callable[[Timed], float]) -> NDArray[np.float64]:
        return np.array([[value(rows)] for rows in timed], dtype=np.float64)

    def of_few(rows: Timed) -> Timed:
        return [row for row in rows if row[0] <= SMALL]

    def of_many(rows: Timed) -> Timed:
        return [row for row in rows if row[0] > SMALL]

    return {
        "few": column(lambda rows: sum(row[1] for row in of_few(rows))),
        "many": column(lambda rows: sum(row[1] for row in of_many(rows))),
        "many_s": column(lambda rows: sum(row[2] for row in of_many(rows))),
        "few_most_s": column(lambda rows: max((row[3] for row in of_few(rows)), default=0.0)),
        "many_most_s": column(lambda rows: max((row[3] for row in of_many(rows)), default=0.0)),
        "most_jobs": column(lambda rows: max(row[0] for row in rows)),
    }


def _claims(table: Table) -> list[Claim]:
    per_trace = OBSERVATIONS / TRACES
    more_percent = 100 - SMALL_PERCENT
    stated: list[tuple[str, str, Statistic, float, float]] = [
        (
            f"{OBSERVATIONS:,} observations on {TRACES} traces",
            "observations per trace",
            lambda of: float((of["few"] + of["many"]).mean()),
            per_trace * (1 - NEAR_OBSERVATIONS),
            per_trace * (1 + NEAR_OBSERVATIONS),
        ),
        (
            f"{SMALL_PERCENT} % of them are for {SMALL} or fewer jobs",
            "% of observations with more jobs",
            lambda of: 100 * float(of["many"].sum() / (of["few"] + of["many"]).sum()),
            more_percent / NEAR,
            more_percent * NEAR,
        ),
        (
            f"the others are for {SMALL + 1} to {MOST_JOBS} jobs",
            "most jobs",
            largest("most_jobs"),
            MOST_JOBS / NEAR,
            MOST_JOBS * NEAR,
        ),
        (
            f"{SMALL} or fewer jobs take less than {SMALL_LARGEST_S} s",
            "largest (s)",
            largest("few_most_s"),
            0,
            SMALL_LARGEST_S,
        ),
        (
            f"more jobs take about {MEAN_S} s on average",
            "mean (s): not slower",
            ratio("many_s", "many"),
            0,
            MEAN_S,
        ),
        (f"more jobs take under {LARGEST_S} s", "largest (s)", largest("many_most_s"), 0, LARGEST_S),
    ]
    return [
        Claim("sec. V", text, measure, jackknife(statistic, table), low, high)
        for text, measure, statistic, low, high in stated
    ]
