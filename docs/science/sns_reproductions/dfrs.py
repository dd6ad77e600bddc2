"""The pages on dynamic fractional resource scheduling share this: the runs of all algorithms, factors, and statistics.

An instance is one trace with one rescheduling penalty: its workload, the seed or the week, the load where the trace is
scaled, and the penalty in seconds.

* ("scaled", seed, load, penalty): a synthetic trace, its gaps scaled to an offered load;
* ("scaled-by-means", seed, load, penalty): the same with another reading of "load" (`by_means`);
* ("unscaled", seed, penalty): the same trace with the model's own gaps;
* ("hpc2n", week, penalty): a week of the log HPC2N.

Besides the paper's nine algorithms two variants are run: EASY that starts a job early only on nodes which the first job
of the queue will not need, as in the program of the paper's authors, and GREEDY that tries waiting jobs again at every
event. Degradation factors are over the nine.

The traces of one seed at several loads have the same jobs, so they are not independent of each other: they are one
unit. A statistic's interval is by the jackknife: from its values with one unit left out at a time, and Student's t. For
a mean of units it is the ordinary interval of a mean.

Sources: Dynamic fractional resource scheduling (IPDPS 2010), sections IV and V; J. Tukey, "Bias and confidence in
not-quite large samples", Annals of Mathematical Statistics 29 (1958).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from itertools import permutations
from math import inf, sqrt
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slurm_sns.errors import BadInput
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, GREEDY_RETRY_AT_EVENTS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, exactly, interval, t_quantile
from slurm_sns.sim.pages.running import Options, shared_file
from slurm_sns.sim.replay.fluid_replay import BATCH, replay_batch, replay_fluid
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.fluid_trace import PARTS, whole_nodes
from slurm_sns.sim.workloads import hpc2n
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_NODES, offered_load, paper_trace, scaled

# --- instances

SCALED, BY_MEANS, UNSCALED, HPC2N = "scaled", "scaled-by-means", "unscaled", "hpc2n"
LOG = "HPC2N-2002-2.2-cln.swf.gz"
#: The weeks of the log.
WEEKS = 182
#: The two rescheduling penalties of the paper.
FREE, FIVE_MINUTES = 0, 300
QUICK_LOADS = (0.1, 0.5, 0.9)

#: A piece of work: see above.
Instance = tuple[str | int | float, ...]
#: Instances that are not independent of each other: those of one seed or week.
Unit = tuple[Instance, ...]
#: What came out of an instance: see `run`.
Found = Mapping[str, Any]


def units_of(
    workload: str, numbers: Iterable[int], loads: Sequence[float] = (), penalty_s: int = FIVE_MINUTES
) -> list[Unit]:
    """A unit for each seed or week, with an instance for each load where traces are scaled."""
    scales: Sequence[tuple[float, ...]] = [(load,) for load in loads] or [()]
    return [tuple((workload, number, *scale, penalty_s) for scale in scales) for number in numbers]


def weeks_of_log(step: int) -> dict[str, list[Unit]]:
    """The units of HPC2N, from each week to the one so many weeks later; no workload if the log is missing."""
    try:
        shared_file("traces", LOG)
    except BadInput:
        return {}
    return {HPC2N: units_of(HPC2N, range(1, WEEKS + 1, step))}


def trace_of(instance: Instance) -> tuple[TraceArrays, int]:
    """The trace of an instance, and on how many nodes it runs.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    match instance:
        case (workload, int(seed), float(load), _) if workload == SCALED:
            return scaled(paper_trace(np.random.default_rng(seed)), PAPER_NODES, load), PAPER_NODES
        case (workload, int(seed), float(load), _) if workload == BY_MEANS:
            return by_means(paper_trace(np.random.default_rng(seed)), load), PAPER_NODES
        case (workload, int(seed), _) if workload == UNSCALED:
            return paper_trace(np.random.default_rng(seed)), PAPER_NODES
        case (workload, int(week), _) if workload == HPC2N:
            return _weeks(shared_file("traces", LOG))[week - 1], hpc2n.NODES
    raise BadInput(f"instance {instance} is unknown; valid: those of module sns_reproductions.dfrs")


def by_means(trace: TraceArrays, load: float) -> TraceArrays:
    """The trace scaled to a load that is computed from the mean run time and the mean number of tasks.

    In the model large jobs run longer, so that the mean of run time * tasks is larger than the product of the means,
    1.8 times on average over the paper's traces. The load as defined elsewhere is larger by this factor.
    """
    factor = float((trace.run_s * trace.tasks).mean() / (trace.run_s.mean() * trace.tasks.mean()))
    return scaled(trace, PAPER_NODES, load * factor)


@cache
def _weeks(path: Path) -> tuple[TraceArrays, ...]:
    """The weeks of the log; a process that runs several of them reads it once."""
    return hpc2n.weeks(hpc2n.read_hpc2n(TraceFile.of(str(path))))


# --- runs

#: The paper's algorithms, in its order, by the names of `sns simulate --policy`.
NINE = ("fcfs", "easy", *ALGORITHMS)
FCFS, EASY, GREEDY, GREEDY_PMTN, GREEDY_PMTN_MIGR, DYNMCB8, PER, ASAP_PER, STRETCH_PER = NINE
FLUID = {**ALGORITHMS, "dfrs-greedy-retry-at-events": GREEDY_RETRY_AT_EVENTS}
PERIOD_S = 600


def run(instance: Instance) -> Found:
    """All algorithms on one instance: `jobs`, `load`, and under `algorithms` the `outcome` of each.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    trace, nodes = trace_of(instance)
    found = {name: outcome(replay_batch(nodes, trace, name)) for name in BATCH}
    for name, algorithm in FLUID.items():
        found[name] = outcome(
            replay_fluid(whole_nodes(nodes), trace, algorithm, period_s=PERIOD_S, penalty_s=int(instance[-1]))
        )
    return {"jobs": len(trace), "load": offered_load(trace, nodes), "algorithms": found}


def outcome(ran: TraceRun) -> dict[str, float | int]:
    """What the jobs' ends amount to, and how often jobs were preempted and migrated, and tasks left a node.

    The makespan is from the first submit to the last end. Memory is in node memories: `memory_paused` is that of all
    tasks, once for each preemption; `memory_moved` that of the tasks that left a node in a migration, once.
    """
    trace = ran.trace
    stretch = bounded_stretch(ran.end_s - trace.submit_s, trace.run_s)
    memory = trace.memory / PARTS
    return {
        "max_stretch": float(stretch.max()),
        "mean_stretch": float(stretch.mean()),
        "makespan_s": float(ran.end_s.max() - trace.submit_s[0]),
        "preemptions": int(ran.preemptions.sum()),
        "migrations": int(ran.migrations.sum()),
        "tasks_moved": int(ran.tasks_moved.sum()),
        "memory_paused": float((ran.preemptions * trace.tasks * memory).sum()),
        "memory_moved": float((ran.tasks_moved * memory).sum()),
    }


def results(
    options: Options, units: Iterable[Sequence[Unit]], function: Callable[[Instance], Any] = run, folder: str = "dfrs"
) -> dict[Instance, Any]:
    """What the function finds for each instance; pages share the results in a folder.

    Raises:
        SnsError: the folder cannot be read or written.
    """
    pieces = (each for of_workload in units for unit in of_workload for each in unit)
    return options.results(folder, function, pieces, shared=True)


# --- values

#: One row for each unit, one column for each load.
Values = NDArray[np.float64]
#: Values by algorithm.
Table = Mapping[str, Values]


def values(units: Sequence[Unit], found: Mapping[Instance, Any], *keys: str) -> Values:
    """A number of each instance: what its result has under these keys, from the outermost to the innermost."""
    return np.array([[reduce(getitem, keys, found[each]) for each in unit] for unit in units], np.float64)


def degradation(units: Sequence[Unit], found: Mapping[Instance, Found]) -> dict[str, Values]:
    """The degradation factors: each algorithm's largest stretch over the smallest of the paper's nine algorithms."""
    names = found[units[0][0]]["algorithms"]
    largest = {name: values(units, found, "algorithms", name, "max_stretch") for name in names}
    best = np.min([largest[name] for name in NINE], axis=0)
    return {name: of / best for name, of in largest.items()}


def draw_by_load(options: Options, stem: str, panels: Mapping[str, Table], loads: Sequence[float]) -> None:
    """Average degradation factors against load: a line for each entry of a panel."""
    drawn = {
        title: {legend: [(load, interval(of[:, at])) for at, load in enumerate(loads)] for legend, of in lines.items()}
        for title, lines in panels.items()
    }
    figures.logarithmic_lines(options.out, stem, drawn, ("load", "average degradation factor"))


# --- statistics

#: A statistic of all units, then of all units but one, for each of them; of a single unit that alone.
Replicates = NDArray[np.float64]
Statistic = Callable[[Values], Any]
FIGURES: Mapping[str, Statistic] = {"average": np.mean, "deviation": np.std, "largest": np.max, "median": np.median}


def replicates(statistic: Statistic, of_units: ArrayLike) -> Replicates:
    """The statistic of the values. What is computed from several statistics is computed from their replicates."""
    of = np.asarray(of_units, np.float64)
    left_out = range(len(of)) if len(of) > 1 else ()
    return np.array([statistic(of), *(statistic(np.delete(of, unit, axis=0)) for unit in left_out)], np.float64)


def ratio(one: Replicates, other: Replicates) -> Replicates:
    """The one over the other; nan where that is 0."""
    divided: Replicates = np.divide(one, other, out=np.full(len(one), np.nan), where=other != 0)
    return divided


def jackknife(of: Replicates) -> Interval:
    """The statistic of all units with its 95 % confidence interval; of a single unit the interval is unbounded."""
    whole, count = float(of[0]), len(of) - 1
    if count == 0:
        return Interval(whole, -inf, inf)
    spread = of[1:] - np.mean(of[1:])
    half = t_quantile(count - 1) * sqrt((count - 1) / count * float((spread**2).sum()))
    return Interval(whole, whole - half, whole + half)


def quantities(
    table: Table, gaps: Mapping[str, Mapping[str, Any]], prefix: str = "", *, is_random: bool = True
) -> dict[str, Interval]:
    """The quantities of some units; their names begin with the prefix.

    They are `FIGURE of A` for each of FIGURES, `average of A - B` and `average of A / B` for each pair, and the gaps.
    `FIGURE of GAP` is the smallest figure of the names in `worse` minus the largest of those in `better`: above 0 if
    all of these have smaller ones. Where a gap has no `worse` or `better`, it is the rest of the nine.
    """
    of = {figure: {name: replicates(each, table[name]) for name in table} for figure, each in FIGURES.items()}
    found = {f"{figure} of {name}": each for figure, by_name in of.items() for name, each in by_name.items()}
    for (one, ours), (other, theirs) in permutations(of["average"].items(), 2):
        found[f"average of {one} - {other}"] = ours - theirs
        found[f"average of {one} / {other}"] = ratio(ours, theirs)
    for told, gap in gaps.items():
        figure, given = gap.get("figure", "average"), {*gap.get("worse", ()), *gap.get("better", ())}
        rest = [name for name in NINE if name in table and name not in given]
        worse, better = ([of[figure][name] for name in gap.get(side, rest)] for side in ("worse", "better"))
        found[f"{figure} of {told}"] = np.min(worse, axis=0) - np.max(better, axis=0)
    return {prefix + name: jackknife(each) if is_random else exactly(each[0]) for name, each in found.items()}


def beside(printed: float, ours: Interval) -> tuple[Any, ...]:
    """For a table: the printed figure, ours with its interval, and ours over the printed one."""
    return (printed, ours.mean, ours.low, ours.high, ours.mean / printed if printed else "")
