"""Fill a GPU cluster with tasks of its log, and replay the log on a part of it, as docs/science/gpu-cluster.md says.

The log is cluster-trace-gpu-v2023 (Weng and others, Beware of Fragmentation, USENIX ATC 2023), which is not part of the
project (`shared_file`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Node
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.heuristic_names import BEST_FIT_GPUS, MIX_FIT
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, Quantity, found_of
from slurm_sns.sim.pages.running import Options, PageResults, shared_file
from slurm_sns.sim.replay.backfilling_loop import EASY
from slurm_sns.sim.replay.trace_replay import replay, replay_in_order
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import Trace, TraceArrays, of_values
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpu_tasks import GpuTask, GpuTasks, gpus_on, read_gpu_nodes, read_gpu_tasks
from sns_reproductions.beside_easy.run import WITHHOLD_S, ReplayedWaits
from sns_reproductions.netbatch_sweeps import INTERVAL_S

FOLDER, NODES, TASKS = ("traces", "gpu-2023"), "openb_node_list_all_node.csv.gz", "openb_pod_list_default.csv.gz"
#: What a share of a GPU is taken for: a whole GPU; or its task is left out.
ROUNDED, WITHOUT = "shares as whole GPUs", "without shares"
VARIANTS = (ROUNDED, WITHOUT)
LEFT_OUT = "share of a GPU"
#: The even-numbered tasks, of which `best-fit-gpus` was chosen on none; those of several GPUs are there so often that
#: they ask for about half of all GPUs.
SEVERAL = "many tasks of several GPUs"
OFTEN = 8
CHOSEN_ON = "chosen on"

#: Tasks are added until the GPUs that they demand are so many percent of the capacity, as in the authors' scripts.
MOST_DEMAND = 130
#: The demands that are looked at.
DEMANDS = tuple(range(70, MOST_DEMAND + 1, 5))

#: In time: every so many nodes of each kind, and the loads of their GPUs in percent; OWN: all nodes, and the arrivals
#: as they are.
EVERY = 50
OWN = 0
LOADS, QUICK_LOADS = (OWN, 70, 80, 90, 100), (OWN, 90)
DAY_S = 86_400
#: Factors of arrival times are sought below this one, in so many steps.
MOST_FACTOR, HALVINGS = 1 << 20, 40
QUICK_TASKS = 2000
#: A day of a log that is shorter is a part of it.
FEWEST_BLOCKS = 8
#: A replay is looked at so many times.
LOOKS = 400

FIRST_FIT, BEST_CORES, BEST_MEMORY = "first-fit", "best-fit-cores", "best-fit-memory"
MAX_JOBS, BY_EASY = "Max-Jobs", "EASY"
#: First-fit, on the nodes in a random order: whether it hangs on that of the list.
SHUFFLED = "first-fit, shuffled nodes"
#: The heuristics by which a policy places tasks.
PORTFOLIOS = {
    FIRST_FIT: (FIRST_FIT,),
    BEST_CORES: (BEST_CORES,),
    BEST_MEMORY: (BEST_MEMORY,),
    MIX_FIT: (MIX_FIT,),
    MAX_JOBS: PAPER_PORTFOLIO,
}
#: Those with the heuristic that ranks by free GPUs first.
FOR_GPUS = "Max-Jobs for GPUs"
SEEING = {BEST_FIT_GPUS: (BEST_FIT_GPUS,), FOR_GPUS: (BEST_FIT_GPUS, *PAPER_PORTFOLIO)}
MEASURES = ("allocated", "unusable", "stranded")
Run = Callable[[NodeArrays, TraceArrays], TraceRun]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _matching(portfolio: tuple[str, ...], **withholding: Any) -> Run:
    rules = rules_of(MatchingParameters(portfolio=portfolio, **withholding))
    return lambda nodes, jobs: replay(nodes, jobs, rules, interval_s=INTERVAL_S)


def _easy(nodes: NodeArrays, jobs: TraceArrays) -> TraceRun:
    rules = placing(BEST_CORES, SpreadingParameters()).rules
    return replay_in_order(nodes, jobs, rules, EASY, interval_s=INTERVAL_S)


#: As demand rises nothing ends: no capacity is withheld, and there is nothing to backfill.
FILLING: dict[str, Run] = {
    name: _matching(portfolio, reservations=0)
    for name, portfolio in (PORTFOLIOS | {SHUFFLED: (FIRST_FIT,)} | SEEING).items()
}
IN_TIME: dict[str, Run] = {
    BY_EASY: _easy,
    **{name: _matching(portfolio, withhold_up_to_s=WITHHOLD_S) for name, portfolio in (PORTFOLIOS | SEEING).items()},
}
#: What is compared in percent, job by job.
PAIRS = [
    *((name, BY_EASY) for name in IN_TIME if name != BY_EASY),
    *((MAX_JOBS, name) for name in PORTFOLIOS if name != MAX_JOBS),
    *((FOR_GPUS, name) for name in (FIRST_FIT, MAX_JOBS)),
]


# --- the cluster and its tasks


def log_file(name: str) -> TraceFile:
    """A file of the log.

    Raises:
        BadInput: it is missing.
    """
    return TraceFile.of(str(shared_file(*FOLDER, name)))


@lru_cache(maxsize=1)
def cluster() -> tuple[Node, ...]:
    """The nodes of the log."""
    return read_gpu_nodes(log_file(NODES))


@lru_cache(maxsize=8)
def tasks_on(nodes: tuple[Node, ...], variant: str) -> GpuTasks:
    """The tasks of the log that these nodes can hold.

    Raises:
        BadInput: none of them asks for GPUs.
    """
    if variant == SEVERAL:
        found = tasks_on(nodes, variants()[-1]).only(lambda task: task.line % 2 == 0, CHOSEN_ON)
        often = (each for task in found.tasks for each in [task] * (OFTEN if task.gpus > 1 else 1))
        return replace(found, tasks=tuple(often))
    found = read_gpu_tasks(log_file(TASKS), nodes)
    found = found if variant == ROUNDED else found.only(lambda task: not task.is_share, LEFT_OUT)
    if not any(task.gpus for task in found.tasks):
        raise BadInput(f"{found.name}: {variant} no task asks for a GPU; valid: one or more")
    return found


def variants() -> tuple[str, ...]:
    """The variants of the log: one where no task asks for a part of a GPU, or all that ask for GPUs do."""
    asks = {task.is_share for task in tasks_on(cluster(), ROUNDED).tasks if task.gpus}
    return VARIANTS if len(asks) > 1 else (ROUNDED,)


def judged_on() -> tuple[str, ...]:
    """Those on which `best-fit-gpus` is judged: the last of `variants`, and SEVERAL where there are such tasks."""
    last = variants()[-1]
    has_several = any(task.gpus > 1 and task.line % 2 == 0 for task in tasks_on(cluster(), last).tasks)
    return (last, SEVERAL) if has_several else (last,)


def part_of(nodes: Sequence[Node], every: int) -> tuple[Node, ...]:
    """Every so many nodes of each kind, so that the parts of all kinds stay as they are; in the order of the list."""
    order = sorted(range(len(nodes)), key=lambda at: (nodes[at].capacity.gpus, nodes[at].capacity, at))
    return tuple(nodes[at] for at in sorted(order[every // 2 :: every]))


class Measuring(NamedTuple):
    """How idle GPUs are judged: by the tasks with GPUs of the log, of which each kind counts as often as it is there.

    Amounts are cores, memory and GPUs: `capacity` of the nodes, shape (3, nodes), `demand` of the kinds, shape
    (3, kinds). `allowed` are the nodes that a kind may use, shape (kinds, nodes), and `weight` its part of all tasks.
    """

    capacity: Integers
    demand: Integers
    allowed: NDArray[np.bool_]
    weight: Floats

    @classmethod
    def of(cls, nodes: Sequence[Node], tasks: Sequence[GpuTask]) -> "Measuring":
        """By these tasks, on these nodes."""
        kinds = Counter((task.demand, task.allowed) for task in tasks if task.gpus)
        demand = np.array([_amounts(demand) for demand, _ in kinds], np.int64).T
        allowed = [[of is None or node.name in of for node in nodes] for _, of in kinds]
        capacity = np.array([_amounts(node.capacity) for node in nodes], np.int64).T
        return cls(capacity, demand, np.array(allowed, np.bool_), np.array([*kinds.values()]) / kinds.total())

    def judge(self, free: Integers) -> Floats:
        """How many GPUs are allocated, unusable and stranded where this is free, shape (3, nodes).

        An idle GPU is unusable for a task that its node cannot hold now. It is stranded if the node has as many idle
        GPUs as the task asks for, of a model that it may use: only cores or memory are missing. Both are means over the
        tasks.
        """
        has_gpus = self.allowed & (free[2] >= self.demand[2][:, np.newaxis])
        has_rest = (free[:2, np.newaxis] >= self.demand[:2, :, np.newaxis]).all(axis=0)
        idle = free[2] * self.weight[:, np.newaxis]
        unusable, stranded = idle[~(has_gpus & has_rest)].sum(), idle[has_gpus & ~has_rest].sum()
        return np.array([(self.capacity[2] - free[2]).sum(), unusable, stranded], np.float64)

    def percent(self, run: TraceRun, held: Integers, at_s: float) -> Floats:
        """The same of a run at a moment, in percent of all GPUs; `held` is by job, shape (3, jobs)."""
        there = (run.start_s <= at_s) & (run.end_s > at_s)
        free = self.capacity.copy()
        for row in range(len(free)):
            np.subtract.at(free[row], run.place[there], held[row, there])
        percent: Floats = 100 * self.judge(free) / self.capacity[2].sum()
        return percent.round(9)  # equal sums are equal whatever their order


def _amounts(of: Any) -> tuple[int, int, int]:
    return of.cores, of.memory_mb, gpus_on(of)


def held_by(trace: TraceArrays) -> Integers:
    """The cores, memory and GPUs of each job, all of which run on one node; shape (3, jobs)."""
    return np.array([_amounts(first.demand) for (first, *_) in trace.choices], np.int64)[trace.kind].T


# --- as demand rises


def demanded(tasks: Sequence[GpuTask], gpus: int, seed: int) -> TraceArrays:
    """Tasks drawn at random, with replacement, until they demand MOST_DEMAND % of the GPUs.

    Those with which the demand reaches k % of the GPUs come before the cycle k, together; none ends before all have
    come.
    """
    draw = np.random.default_rng(seed)
    most = -(-gpus * MOST_DEMAND // 100)
    mean = sum(task.gpus for task in tasks) / len(tasks)
    drawn = draw.integers(len(tasks), size=int(2 * most / mean) + 100)
    total = np.cumsum([tasks[at].gpus for at in drawn])
    count = int(np.searchsorted(total, most)) + 1
    percent = np.minimum(np.ceil(100 * total[:count] / gpus), MOST_DEMAND).astype(int)
    submits = np.maximum(percent, 1) * INTERVAL_S - INTERVAL_S // 2
    jobs = [
        tasks[at].job(int(submit), 10 * MOST_DEMAND * INTERVAL_S) for at, submit in zip(drawn, submits, strict=False)
    ]
    numbered = [replace(each, job=replace(each.job, id=number)) for number, each in enumerate(jobs)]
    return of_values(Trace(tuple(numbered), {}))


def fill(piece: tuple[str, int]) -> dict[str, Any]:
    """By policy what is allocated, unusable and stranded at each of DEMANDS; the piece is the variant and the seed."""
    variant, seed = piece
    nodes = tuple(node for node in cluster() if gpus_on(node.capacity))
    tasks = tasks_on(nodes, variant).tasks
    jobs = demanded(tasks, _gpus(nodes), seed)
    shuffled = [nodes[at] for at in np.random.default_rng(seed).permutation(len(nodes))]
    held = held_by(jobs)
    found = {}
    for name, policy in FILLING.items():
        listed = shuffled if name == SHUFFLED else nodes
        run, measuring = policy(NodeArrays.of(listed), jobs), Measuring.of(listed, tasks)
        found[name] = [measuring.percent(run, held, percent * INTERVAL_S).tolist() for percent in DEMANDS]
    return found


# --- in time


@dataclass(frozen=True)
class TimedCluster:
    """Nodes, the tasks that they can hold, those that ran as jobs in time, and how long a block of the log lasts."""

    nodes: tuple[Node, ...]
    tasks: tuple[GpuTask, ...]
    jobs: TraceArrays
    block_s: float


def load_of(jobs: TraceArrays, gpus: int) -> float:
    """The part of the GPUs that would be busy from the first submit to the last if each job began at once."""
    held, last = held_by(jobs)[2], int(jobs.submit[-1])
    busy = np.minimum(jobs.run, last - jobs.submit)
    return float((held * busy).sum() / (gpus * last))


def factor_for(jobs: TraceArrays, gpus: int, percent: int) -> float:
    """By what arrival times are multiplied for this load, by bisection: the smaller, the higher the load."""

    def is_higher(factor: float) -> bool:
        moved = jobs.at_load(factor, np.inf, TASKS)
        return moved.submit[-1] > 0 and load_of(moved, gpus) > percent / 100

    low, high = 0.0, 1.0
    while is_higher(high) and high < MOST_FACTOR:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = round((low + high) / 2, 6)
        low, high = (middle, high) if is_higher(middle) else (low, middle)
    return high


def in_time(variant: str, load: int, most: int) -> TimedCluster:
    """The log at a load; with `most` only its first tasks."""
    nodes = part_of(cluster(), EVERY) if load else cluster()
    tasks = tasks_on(nodes, variant)
    jobs = tasks.trace()
    jobs = jobs.only(slice(most)) if most else jobs
    factor = factor_for(jobs, _gpus(nodes), load) if load else 1.0
    jobs = jobs.at_load(factor, np.inf, TASKS)
    return TimedCluster(nodes, tasks.tasks, jobs, min(factor * DAY_S, int(jobs.submit[-1]) / FEWEST_BLOCKS))


def _gpus(nodes: Sequence[Node]) -> int:
    return sum(gpus_on(node.capacity) for node in nodes)


def waits_of(run: TraceRun, measuring: Measuring, block_s: float) -> ReplayedWaits:
    """What a replay gives; the wide jobs are those of several GPUs."""
    trace, held = run.trace, held_by(run.trace)
    wait_s = (run.start_s - trace.submit_s).astype(np.float64)
    waits_for_gpus = held[2] > 0
    looks = [
        measuring.percent(run, held, at_s)
        for at_s in np.linspace(0, int(trace.submit[-1]), LOOKS + 1)[1:].tolist()
        if (waits_for_gpus & (trace.submit_s <= at_s) & (run.start_s > at_s)).any()
    ]
    block: Integers = np.unique((trace.submit_s // block_s).astype(np.int64), return_inverse=True)[1]
    stranded = float(np.mean([each[2] for each in looks])) if looks else 0.0
    slowdown = bounded_stretch(wait_s + trace.run_s, trace.run_s.astype(np.float64))
    return ReplayedWaits(wait_s, slowdown, held[2] > 1, block, stranded)


def pass_time(piece: tuple[str, int, int]) -> dict[str, Any]:
    """The log at a load under all policies; the piece is the variant, the load, and how many tasks, 0 for all."""
    timed = in_time(*piece)
    arrays, measuring = NodeArrays.of(timed.nodes), Measuring.of(timed.nodes, timed.tasks)
    found = {name: waits_of(policy(arrays, timed.jobs), measuring, timed.block_s) for name, policy in IN_TIME.items()}
    return {
        "load": 100 * load_of(timed.jobs, _gpus(timed.nodes)),
        "jobs": len(timed.jobs),
        "nodes": len(timed.nodes),
        "gpus": _gpus(timed.nodes),
        "days": float(timed.jobs.submit[-1]) / DAY_S,
        "dropped": dict(timed.jobs.dropped),
        "figures": {name: {**each.figures(), "longest_s": float(each.wait_s.max())} for name, each in found.items()},
        "above": {
            f"{one} above {other}": {metric: tuple(value) for metric, value in found[one].above(found[other]).items()}
            for one, other in PAIRS
            if piece[1]
        },
    }


# --- the page


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Fill the cluster, replay the log, and draw the figures."""
    seeds = range(1, options.seeds + 1)
    most = QUICK_TASKS if options.quick else 0
    loads = QUICK_LOADS if options.quick else LOADS
    asked = variants()  # a missing log is reported before any work
    cells = [*product(asked, loads)] if tasks_on(cluster(), ROUNDED).has_times else []
    fillings = (*asked, *judged_on()[1:])
    filled = options.results("filled", fill, product(fillings, seeds))
    timed = options.results("timed", pass_time, [(*cell, most) for cell in cells])
    columns = {
        variant: {policy: np.array([filled[variant, seed][policy] for seed in seeds], np.float64) for policy in FILLING}
        for variant in fillings
    }
    return results_of(options, columns, {(variant, load): found for (variant, load, _), found in timed.items()})


def results_of(
    options: Options, columns: Mapping[str, Mapping[str, Floats]], timed: Mapping[tuple[str, int], Any]
) -> PageResults:
    """The results, from what filling gave, shape (seeds, demands, measures), and from the replays."""
    known: dict[str, Quantity] = {}
    for (variant, of), (at, demand), (row, measure) in product(
        columns.items(), enumerate(DEMANDS), enumerate(MEASURES)
    ):
        for policy, values in of.items():
            known[f"{variant} {demand}: {policy}: {measure}"] = values[:, at, row]
        for one, other in permutations(of, 2):
            known[f"{variant} {demand}: {one} - {other}: {measure}"] = of[one][:, at, row] - of[other][:, at, row]
    for (variant, load), found in timed.items():
        for policy, each in found["figures"].items():
            known |= {f"{variant} load {load}: {policy}: {name}": value for name, value in each.items()}
        for pair, values in found["above"].items():
            known |= {f"{variant} load {load}: {pair}: {metric}": Interval(*value) for metric, value in values.items()}
        for one, other in permutations(found["figures"], 2):
            stranded = [found["figures"][name]["stranded"] for name in (one, other)]
            known[f"{variant} load {load}: {one} - {other}: stranded"] = stranded[0] - stranded[1]
    asked, loads = variants(), sorted({load for _, load in timed if load})
    _draw(options, known, {"allocated": tuple(columns), "waits": asked}, loads)
    return PageResults(
        known,
        fields={
            "variants": asked,
            "fillings": tuple(columns),
            "judged_on": judged_on(),
            "filling": tuple(FILLING),
            "in_time": tuple(IN_TIME),
            "demands": DEMANDS,
            "timed": timed,
            "raised": {cell: found for cell, found in timed.items() if cell[1]},
            "own": {variant: found for (variant, load), found in timed.items() if load == OWN},
            "gpus": _gpus(cluster()),
            "nodes": len(cluster()),
            "gpu_nodes": sum(gpus_on(node.capacity) > 0 for node in cluster()),
            "tasks": {variant: len(tasks_on(cluster(), variant).tasks) for variant in columns},
            "quick": options.quick,
        },
        seeds=options.seeds,
    )


def _draw(
    options: Options, known: Mapping[str, Quantity], of_figures: Mapping[str, Sequence[str]], loads: Sequence[int]
) -> None:
    """Draw the figures of these variants each."""
    allocated = {
        variant: {
            policy: [(demand, found_of(known[f"{variant} {demand}: {policy}: allocated"])) for demand in DEMANDS]
            for policy in FILLING
        }
        for variant in of_figures["allocated"]
    }
    figures.lines(options.out, "allocated", allocated, ("GPUs demanded (% of all)", "GPUs allocated (% of all)"))
    if not loads:
        return
    waits = {
        variant: {
            policy: [(load, found_of(known[f"{variant} load {load}: {policy}: mean_wait_s"])) for load in loads]
            for policy in IN_TIME
        }
        for variant in of_figures["waits"]
    }
    figures.lines(options.out, "waits", waits, ("load of the GPUs (%)", "mean wait (s)"))
