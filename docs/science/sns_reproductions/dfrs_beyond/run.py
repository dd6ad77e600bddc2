"""Run DFRS closer to a site than in the paper's model, and against what a site has today.

On each instance (module dfrs, always with a penalty of 5 minutes) are run EASY that knows all run times, EASY with
users' estimates, on whole nodes and on shared ones, and Slurm's gang scheduling: the jobs on a node have equal time
slices, GREEDY chooses the nodes, and what finds no memory is tried again at each event. Three algorithms of DFRS are
run in the paper's model and in each of the `variants` of claims.yaml, some of which only serve to find the cause of a
result.

*Shared nodes.* EASY gives each task its cores and its memory. A node is shared by tasks of several jobs, but has one of
each job at most; of the nodes with room those with the least free memory are taken (best-fit-memory).

*Factors.* An algorithm's degradation factor in a variant is its largest bounded stretch over the smallest one that EASY
or DFRS has on the same jobs in the paper's model.

*Estimates* of the synthetic traces are the "f-model" with f = 4 (Mu'alem and Feitelson, IEEE TPDS 12, 2001). Real ones
differ from it: they are a few round numbers below a maximum.

*Unequal nodes.* A few wide jobs find too few nodes with enough memory. They are left out of all runs on unequal nodes,
and of the runs with which these are compared: EASY and DFRS on equal nodes. EASY counts whole nodes.

*Time limits.* A job's limit is the number of seconds for which it may have nodes, and a promise: after it the nodes are
free. At a yield below 1, and while it serves a rescheduling penalty, a job needs more of these seconds than at full
speed. A site can let the limits kill such jobs. Or it can extend each limit by what its job has lost, and break the
promise. Jobs that run longer than their limits even at full speed say nothing about DFRS (the site of the log let
them). They are counted apart, and have no limit in these runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import gcd
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, GANG
from slurm_sns.policies.dfrs.fluid_arrays import Floats
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays, amounts
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, Quantity
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.fluid_replay import BATCH, SiteVariant, replay_batch, replay_fluid
from slurm_sns.sim.replay.trace_replay import replay_in_order
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS, on_whole_nodes, whole_nodes
from sns_reproductions import dfrs
from sns_reproductions.dfrs import HPC2N, SCALED, Found, Instance, Table, Unit

# --- variants

#: What a site has today.
TODAY = EASY, ESTIMATING_EASY, SHARING_EASY, GANG_SCHEDULING = (
    "EASY",
    "EASY with estimates",
    "EASY with estimates on shared nodes",
    "gang scheduling",
)
#: The algorithms of DFRS that are run: the best one of the paper with a penalty, and the two ideas that it joins.
DFRS = ASAP_PER, GREEDY_PMTN, PER = "DYNMCB8-ASAP-PER", "GREEDY-PMTN", "DYNMCB8-PER"
#: The variants with which the others are compared, and one that makes jobs starve.
PAPER, FEWER, UNLIKE = "the paper's model", "jobs that fit everywhere", "unlike memory"
#: How EASY chooses among shared nodes.
BEST_MEMORY = "best-fit-memory"
#: The largest factor of an estimate in the f-model; its authors write f + 1.
MOST_OVERESTIMATED = 5

#: Kinds of nodes: the share of all nodes, and the CPU and memory of each as multiples of a reference node's.
Shape = Sequence[Sequence[float]]
EQUAL: Shape = ((1, 1, 1),)


class FluidVariant(NamedTuple):
    """What differs from the paper's model, and the algorithms that are run.

    Caps of running jobs change at multiples of `apply_s` (0: at once). Each job's CPU need is measured with one of the
    relative `errors`, by chance. `nodes` are those on which the jobs run. If `few`, only the jobs are run that fit on
    the nodes of all variants. Memory needs above `most_memory`, a fraction of a reference node, are lowered to it. A
    variant that `is_cause` only tests the cause of a result.
    """

    apply_s: float = 0
    errors: Sequence[float] = (0.0,)
    nodes: Shape = EQUAL
    few: bool = False
    most_memory: float = 1.0
    is_cause: bool = False
    algorithms: Sequence[str] = DFRS

    @property
    def baseline(self) -> str:
        """The paper's model with the same jobs."""
        return FEWER if self.few else PAPER


def variants_of(data: Mapping[str, Any]) -> dict[str, FluidVariant]:
    """The variants by name."""
    return {name: FluidVariant(**what) for name, what in data["variants"].items()}


def label(variant: str, name: str) -> str:
    """An algorithm in a variant, for results, tables and claims."""
    return f"{name}, {variant}"


# --- the page

LOADS, QUICK_LOADS = (0.3, 0.7, 0.9), (0.3, 0.9)
MOST_SEEDS = 30
#: Weeks from one that is run to the next.
WEEK_STEP, QUICK_WEEK_STEP = 6, 30
#: The quantiles of the figure of time limits, and those of its table.
DRAWN_PERCENT = np.array([*range(50, 100, 5), 97, 99])
QUANTILES = (50, 90, 95, 99, 99.9, 100)
HEADER = ("workload", "variant", "algorithm", "average_factor", "low", "high", "largest_stretch", "mean_stretch")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    units = instances(options)
    found = dfrs.results(options, units.values(), partial(run_variants, variants=variants_of(data)), "dfrs-beyond")
    weeks = dfrs.results(options, [units.get(HPC2N, [])], run_limits, "dfrs-beyond-limits")
    return results_of(options, data, units, found, list(weeks.values()))


def instances(options: Options) -> dict[str, list[Unit]]:
    """The instances of each workload, with at most MOST_SEEDS seeds; without the log there are none of HPC2N."""
    loads, step = (QUICK_LOADS, QUICK_WEEK_STEP) if options.quick else (LOADS, WEEK_STEP)
    seeds = range(1, min(options.seeds, MOST_SEEDS) + 1)
    return {SCALED: dfrs.units_of(SCALED, seeds, loads), **dfrs.weeks_of_log(step)}


def results_of(
    options: Options,
    data: Mapping[str, Any],
    units: Mapping[str, Sequence[Unit]],
    found: Mapping[Instance, Found],
    weeks: Sequence[Found],
) -> PageResults:
    """Draw the figures; the results, from those of the instances and of the weeks with time limits."""
    variants = variants_of(data)
    baselines = {label(name, each): what.baseline for name, what in variants.items() for each in what.algorithms}
    quantities: dict[str, Quantity] = {}
    rows, worst = [], {}
    for workload, own in units.items():
        told = data["workloads"][workload]
        largest, mean = (
            {key: dfrs.values(own, found, "runs", key, which) for key in baselines} for which in ("largest", "mean")
        )
        factors = factors_of(largest, baselines)
        known = dfrs.quantities(factors, {}, f"{told} ")
        quantities |= known
        for variant, what in variants.items():
            for name in what.algorithms:
                key, easy = label(variant, name), label(what.baseline, EASY)
                factor = known[f"{told} average of {key}"]
                better = known[f"{told} average of {easy}"].mean / factor.mean
                means = (float(each[key].mean()) for each in (largest, mean))
                rows.append((told, variant, name, *factor, *means, better))
        starved = label(UNLIKE, GREEDY_PMTN)
        ran = ({"instance": each, **found[each]["runs"][starved]} for unit in own for each in unit)
        worst[told] = max(ran, key=itemgetter("largest"))
        if workload == SCALED:
            loads = [float(instance[2]) for instance in own[0]]
            drawn = [variant for variant, what in variants.items() if not what.is_cause]
            panels = {
                name: {EASY: factors[label(PAPER, EASY)], **{each: factors[label(each, name)] for each in drawn}}
                for name in DFRS
            }
            dfrs.draw_by_load(options, "factors", panels, loads)
    limits = limits_of(options, data, weeks) if weeks else []
    return PageResults(
        quantities | {f"{row[0]} {row[1]}": row[2] if row[3] == "" else Interval(*row[2:]) for row in limits},
        [
            DataTable("variants", (*HEADER, "times_better_than_easy"), rows),
            *([DataTable("limits", ("algorithm", "measure", "value", "low", "high"), limits)] if weeks else []),
        ],
        {
            "loads": loads,
            "weeks": len(units.get(HPC2N, ())),
            "log": dfrs.LOG,
            "jobs": sum(each["jobs"] for each in found.values()),
            "left_out": sum(each["left_out"] for each in found.values()),
            # Jobs that run longer than their limits at full speed, and the others.
            "longer": sum(week["longer"] for week in weeks),
            "limited": sum(len(week["run_s"]) for week in weeks),
            "algorithms": [*TODAY, *DFRS],
            "dfrs": DFRS,
            "baselines": {name: what.baseline for name, what in variants.items()},
            "worst": worst,
            "most_overestimated": MOST_OVERESTIMATED,
        },
        len(units[SCALED]),
    )


def factors_of(largest: Table, baselines: Mapping[str, str]) -> dict[str, Any]:
    """The degradation factors, from the largest stretches: over the best of EASY and DFRS in the baseline."""
    best = {plain: np.min([largest[label(plain, name)] for name in (EASY, *DFRS)], axis=0) for plain in (PAPER, FEWER)}
    return {key: largest[key] / best[baseline] for key, baseline in baselines.items()}


# --- the runs of the variants


def run_variants(instance: Instance, variants: Mapping[str, FluidVariant]) -> Found:
    """All variants on one instance.

    `runs` has by `label` the largest and the mean bounded stretch, and how the job went that has the largest one.
    `left_out` is the number of jobs that do not fit on the nodes of all variants.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    trace, count = dfrs.trace_of(instance)
    few = fitting(trace, [nodes_like(what.nodes, count) for what in variants.values()])
    runs = {}
    for variant, what in variants.items():
        jobs = few if what.few else trace
        for name in what.algorithms:
            runs[label(variant, name)] = _stretches(_replayed(jobs, count, name, what, instance))
    return {"jobs": len(trace), "left_out": len(trace) - len(few), "runs": runs}


def _replayed(jobs: TraceArrays, count: int, name: str, what: FluidVariant, instance: Instance) -> TraceRun:
    """The jobs in a variant. Errors and estimates depend on the seed or week alone: they are the same at each load."""
    rng = np.random.default_rng(int(instance[1]))
    if name == EASY:
        return replay_batch(count, jobs, dfrs.EASY)
    if name == ESTIMATING_EASY:
        return replay_batch(count, jobs, dfrs.EASY, expected_run_s=estimates(jobs, rng))
    if name == SHARING_EASY:
        return replay_sharing(count, jobs, estimates(jobs, rng))
    memory = np.minimum(jobs.memory, round(what.most_memory * PARTS))
    known, over_true = measured(replace(jobs, memory=memory), what.errors, rng)
    site = SiteVariant(what.apply_s, over_true)
    return replay(nodes_like(what.nodes, count), known, name, int(instance[-1]), site)


def replay(nodes: NodeArrays, trace: TraceArrays, name: str, penalty_s: float, site: SiteVariant) -> TraceRun:
    """The trace under one of DFRS's algorithms, or under gang scheduling, at a site."""
    algorithm = GANG if name == GANG_SCHEDULING else ALGORITHMS[f"dfrs-{name.lower()}"]
    return replay_fluid(nodes, trace, algorithm, period_s=dfrs.PERIOD_S, penalty_s=penalty_s, variant=site)


def replay_sharing(count: int, trace: TraceArrays, expected_run_s: Floats) -> TraceRun:
    """EASY on so many reference nodes that jobs share; each task is on a node of its own, with all of its CPU need."""
    # One core is the largest share of a node of which all CPU needs are multiples.
    core = gcd(PARTS, *np.unique(trace.cores).tolist())
    sizes, kind = np.unique(np.stack([trace.tasks, trace.cores // core, trace.memory]), axis=1, return_inverse=True)
    nodes = whole_nodes(count)
    nodes = NodeArrays(nodes.names, amounts([Resources(PARTS // core, PARTS)] * count))
    records = replace(
        on_whole_nodes(trace, nodes),
        kind=kind.astype(np.int32).ravel(),
        kinds=[(tasks, cores, memory, "") for tasks, cores, memory in sizes.T.tolist()],
        given_choices=None,
        limit=expected_run_s,
    )
    return replay_in_order(
        nodes, records, Rules((BEST_MEMORY,), len(trace), reservations=0), BATCH[dfrs.EASY], interval_s=1
    )


def nodes_like(shape: Shape, count: int) -> NodeArrays:
    """So many nodes of these kinds, in the order of the kinds."""
    kinds = [
        (round(share * count), Resources(round(cpu * PARTS), round(memory * PARTS))) for share, cpu, memory in shape
    ]
    capacity = [resources for many, resources in kinds for _ in range(many)]
    return NodeArrays(tuple(f"n{at}" for at in range(len(capacity))), amounts(capacity))


def fitting(trace: TraceArrays, clusters: Sequence[NodeArrays]) -> TraceArrays:
    """The jobs whose tasks all find memory on each of the clusters when it is empty."""
    fits = np.ones(len(trace), np.bool_)
    for nodes in clusters:
        places = np.zeros(len(trace), np.int64)
        for memory in nodes.capacity[MEMORY].tolist():
            places += memory // trace.memory
        fits &= trace.tasks <= places
    return trace.only(fits)


def measured(trace: TraceArrays, errors: Sequence[float], rng: np.random.Generator) -> tuple[TraceArrays, Floats]:
    """The trace with CPU needs as they were measured, and by job the measured need over the true one.

    No need is measured to be more than a reference node.
    """
    cpu = np.rint(trace.cores * (1 + rng.choice(np.asarray(errors), len(trace)))).astype(np.int64)
    cpu = np.minimum(cpu, PARTS)
    return replace(trace, cores=cpu), cpu / trace.cores


def estimates(trace: TraceArrays, rng: np.random.Generator) -> Floats:
    """The users' estimates of the run times: the time limits where there are any, else the f-model's."""
    drawn: Floats = trace.run_s * rng.uniform(1, MOST_OVERESTIMATED, len(trace))
    return np.where(trace.limit > 0, trace.limit, drawn) if len(trace.limit) else drawn


def _stretches(ran: TraceRun) -> dict[str, float]:
    """The largest and the mean bounded stretch, and how the job went that has the largest one."""
    trace = ran.trace
    stretch = bounded_stretch(ran.end_s - trace.submit_s, trace.run_s)
    job = int(stretch.argmax())
    return {
        "largest": float(stretch[job]),
        "mean": float(stretch.mean()),
        "run_s": float(trace.run_s[job]),
        "wait_s": float(ran.start_s[job] - trace.submit_s[job]),
        "turnaround_s": float(ran.end_s[job] - trace.submit_s[job]),
        "preemptions": int(ran.preemptions[job]) if len(ran.preemptions) else 0,
    }


# --- time limits

#: A wall time is a sum of floats.
ROUNDING_S = 1e-3
BY_ALGORITHM = ("wall_s", "free_wall_s", "killed", "limited_wall_s")
OVER_RUN, OVER_LIMIT = "wall time / run time", "wall time / limit"


def run_limits(instance: Instance) -> Found:
    """One week of HPC2N without limits, without a penalty, and with limits that kill.

    `run_s`, `limit_s` and `tasks` are by job. By algorithm and job: `wall_s`, how long it has nodes without limits;
    `free_wall_s`, the same without a penalty; `killed` and `limited_wall_s`, with limits. Only jobs that end within
    their limits at full speed are among these; `longer` is the number of the others.
    """
    trace, count = dfrs.trace_of(instance)
    penalty_s, nodes = int(instance[-1]), nodes_like(EQUAL, count)
    within = trace.run <= trace.limit
    limits = SiteVariant(limit_s=np.where(within, trace.limit, np.inf))
    columns = {"run_s": trace.run, "limit_s": trace.limit, "tasks": trace.tasks}
    found: dict[str, Any] = {name: column[within].tolist() for name, column in columns.items()}
    for name in DFRS:
        limited = replay(nodes, trace, name, penalty_s, limits)
        usual, free = (replay(nodes, trace, name, each_s, SiteVariant()) for each_s in (penalty_s, dfrs.FREE))
        of_jobs = (usual.wall_s, free.wall_s, limited.killed, limited.wall_s)
        for key, column in zip(BY_ALGORITHM, of_jobs, strict=True):
            found.setdefault(key, {})[name] = column[within].tolist()
    return {**found, "longer": int(np.count_nonzero((trace.limit > 0) & ~within))}


def sums(week: Found, name: str, much_slower: float) -> dict[str, float]:
    """The sums of one week under one algorithm; times are in node-seconds, the others are numbers of jobs."""
    run_s, limit_s, tasks = (np.asarray(week[key]) for key in ("run_s", "limit_s", "tasks"))
    wall_s, free_wall_s, killed, limited_wall_s = (np.asarray(week[key][name]) for key in BY_ALGORITHM)
    late_s = np.maximum(wall_s - limit_s, 0.0)
    columns = {
        "jobs": np.ones(len(tasks)),
        "killed": killed,
        "wasted_s": killed * limited_wall_s * tasks,
        "used_s": limited_wall_s * tasks,
        "late": late_s > ROUNDING_S,
        "late_s": late_s * tasks,
        "promised_s": limit_s * tasks,
        "lost_s": (wall_s - run_s) * tasks,
        "run_s": run_s * tasks,
        "slower": wall_s > much_slower * run_s,
        "late_without_penalty": free_wall_s - limit_s > ROUNDING_S,
    }
    return {key: float(np.sum(column)) for key, column in columns.items()}


def shares_of(data: Mapping[str, Any], weeks: Sequence[Found], name: str) -> dict[str, Interval]:
    """Of an algorithm each of the `shares`, a percentage that one of the sums is of another, over all weeks."""
    of_weeks = [sums(week, name, data["much_slower"]) for week in weeks]
    total = {key: dfrs.replicates(np.sum, [each[key] for each in of_weeks]) for key in of_weeks[0]}
    return {
        share["told"]: dfrs.jackknife(100 * dfrs.ratio(total[share["part"]], total[share["whole"]]))
        for share in data["shares"].values()
    }


def limits_of(options: Options, data: Mapping[str, Any], weeks: Sequence[Found]) -> list[tuple[Any, ...]]:
    """Draw the wall times; a table of the shares, and of quantiles of wall times, over run times and limits."""
    run_s, limit_s = (np.concatenate([week[key] for week in weeks]) for key in ("run_s", "limit_s"))
    panels: dict[str, dict[str, tuple[Floats, Floats]]] = {OVER_RUN: {}, OVER_LIMIT: {}}
    rows: list[tuple[Any, ...]] = []

    def add_quantiles(name: str, measure: str, of_jobs: Floats) -> None:
        for percent, value in zip(QUANTILES, np.percentile(of_jobs, QUANTILES).tolist(), strict=True):
            rows.append((name, f"{measure}, {percent:g} % quantile", value, "", ""))

    for name in DFRS:
        rows += ((name, measure, *share) for measure, share in shares_of(data, weeks, name).items())
        wall_s = np.concatenate([week["wall_s"][name] for week in weeks])
        for over, of_jobs in ((OVER_RUN, wall_s / run_s), (OVER_LIMIT, wall_s / limit_s)):
            panels[over][name] = (DRAWN_PERCENT, np.percentile(of_jobs, DRAWN_PERCENT))
            add_quantiles(name, over, of_jobs)
    add_quantiles("", "limit / run time", limit_s / run_s)
    figures.curves(options.out, "limits", panels, ("% of jobs with at most this", "factor"))
    return rows
