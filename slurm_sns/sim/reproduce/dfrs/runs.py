"""The DFRS paper's simulations: all algorithms on one instance, which is one trace with one rescheduling penalty.

The pages share the results. An instance is identified by its workload, the seed or the week, the load where the trace
is scaled, and the penalty in seconds:

* ("scaled", seed, load, penalty): a synthetic trace, its gaps scaled to an offered load;
* ("scaled-by-means", seed, load, penalty): the same with another reading of "load", a variant (`by_means`);
* ("unscaled", seed, penalty): the same trace with the model's own gaps;
* ("hpc2n", week, penalty): a week of the log HPC2N.

Besides the paper's nine algorithms two variants are run: EASY that starts a job early only on nodes which the first job
of the queue will not need, as in the program of the paper's authors, and GREEDY that tries waiting jobs again at every
event. Degradation factors are over the nine.

Source: Dynamic fractional resource scheduling (IPDPS 2010), sections IV and V.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, GREEDY_RETRY_AT_EVENTS
from slurm_sns.policies.dfrs.fluid_arrays import Floats, Integers
from slurm_sns.sim.pages.running import Options, shared_file
from slurm_sns.sim.replay.batch_replay import replay_batch
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.results.fluid_results import bounded_stretch
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace, whole_nodes
from slurm_sns.sim.workloads import hpc2n
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_LOADS, PAPER_NODES, offered_load, paper_trace, scaled

SCALED, BY_MEANS, UNSCALED, HPC2N = "scaled", "scaled-by-means", "unscaled", "hpc2n"
LOG = "HPC2N-2002-2.2-cln.swf.gz"
#: The weeks of the log.
WEEKS = 182
PERIOD_S = 600
#: The two rescheduling penalties of the paper.
FREE, FIVE_MINUTES = 0, 300

#: The names of the paper's tables by those of `sns simulate --policy`, in the paper's order.
PAPER_NAMES: Mapping[str, str] = {
    "fcfs": "FCFS",
    "easy": "EASY",
    "dfrs-greedy": "GREEDY",
    "dfrs-greedy-pmtn": "GREEDY-PMTN",
    "dfrs-greedy-pmtn-migr": "GREEDY-PMTN-MIGR",
    "dfrs-dynmcb8": "DYNMCB8",
    "dfrs-dynmcb8-per": "DYNMCB8-PER",
    "dfrs-dynmcb8-asap-per": "DYNMCB8-ASAP-PER",
    "dfrs-dynmcb8-stretch-per": "DYNMCB8-STRETCH-PER",
}
FCFS, EASY, GREEDY, GREEDY_PMTN, GREEDY_PMTN_MIGR, DYNMCB8, PER, ASAP_PER, STRETCH_PER = PAPER_NAMES
EXTRA_NODES_EASY, RETRYING_GREEDY = "easy-extra-nodes-only", "dfrs-greedy-retry-at-events"
BATCH = (FCFS, EASY, EXTRA_NODES_EASY)
FLUID = {name: ALGORITHMS[name] for name in PAPER_NAMES if name in ALGORITHMS} | {
    RETRYING_GREEDY: GREEDY_RETRY_AT_EVENTS
}

#: The variants, each with the algorithm of the paper that it may be, and what the pages say of them.
VARIANTS = {EXTRA_NODES_EASY: EASY, RETRYING_GREEDY: GREEDY}
VARIANTS_TOLD = (
    f"Two variants are run, too. *{EXTRA_NODES_EASY}* starts a job before its turn only on nodes that the first job of "
    "the queue will not need, as the program of the paper's authors seems to do. EASY also starts a job that will end "
    f"before the reservation of the first one. *{RETRYING_GREEDY}* tries jobs that found no place again at each event, "
    "without a back-off. The variants do not count among the nine algorithms."
)

#: A piece of work: see above.
Instance = tuple[str | int | float, ...]
#: Instances that are not independent of each other: those of one seed or week.
Unit = tuple[Instance, ...]
#: What came out of it: `jobs`, `load`, and under `algorithms` an `AlgorithmRun` as a mapping for each algorithm.
Found = Mapping[str, Any]


class AlgorithmRun(NamedTuple):
    """One algorithm on one instance.

    The makespan is from the first submit to the last end. Memory is in node memories: `memory_paused` is that of all
    tasks, once for each preemption; `memory_moved` that of the tasks that left a node in a migration, once.
    """

    max_stretch: float
    mean_stretch: float
    makespan_s: float
    preemptions: int
    migrations: int
    tasks_moved: int
    memory_paused: float
    memory_moved: float


class Changes(NamedTuple):
    """How often each job of a trace was preempted and migrated, and how many of its tasks left a node by migration."""

    preemptions: Integers
    migrations: Integers
    tasks_moved: Integers


def run(instance: Instance) -> Found:
    """All algorithms on one instance.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    trace, nodes = trace_of(instance)
    penalty_s = int(instance[-1])
    found: dict[str, AlgorithmRun] = {}
    none = np.zeros(len(trace), np.int64)
    for name in BATCH:
        found[name] = outcome(trace, replay_batch(nodes, trace, name).end_s, Changes(none, none, none))
    for name, algorithm in FLUID.items():
        fluid = replay_fluid(whole_nodes(nodes), trace, algorithm, period_s=PERIOD_S, penalty_s=penalty_s)
        changes = Changes(fluid.preemptions, fluid.migrations, fluid.tasks_moved)
        found[name] = outcome(trace, fluid.end_s, changes)
    algorithms = {name: each._asdict() for name, each in found.items()}
    return {"jobs": len(trace), "load": offered_load(trace, nodes), "algorithms": algorithms}


def outcome(trace: FluidTrace, end_s: Floats, changes: Changes) -> AlgorithmRun:
    """What the jobs' ends and changes amount to."""
    stretch = bounded_stretch(trace, end_s)
    memory = trace.memory / PARTS
    return AlgorithmRun(
        float(stretch.max()),
        float(stretch.mean()),
        float(end_s.max() - trace.submit_s[0]),
        int(changes.preemptions.sum()),
        int(changes.migrations.sum()),
        int(changes.tasks_moved.sum()),
        float((changes.preemptions * trace.tasks * memory).sum()),
        float((changes.tasks_moved * memory).sum()),
    )


def trace_of(instance: Instance) -> tuple[FluidTrace, int]:
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
    raise BadInput(f"instance {instance} is unknown; valid: those of module sim.reproduce.dfrs.runs")


def by_means(trace: FluidTrace, load: float) -> FluidTrace:
    """The trace scaled to a load that is computed from the mean run time and the mean number of tasks.

    In the model large jobs run longer, so that the mean of run time * tasks is larger than the product of the means,
    1.8 times on average over the paper's traces. The load as defined elsewhere is larger by this factor.
    """
    factor = float((trace.run_s * trace.tasks).mean() / (trace.run_s.mean() * trace.tasks.mean()))
    return scaled(trace, PAPER_NODES, load * factor)


@cache
def _weeks(path: Path) -> tuple[FluidTrace, ...]:
    """The weeks of the log; a process that runs several of them reads it once."""
    return hpc2n.weeks(hpc2n.read_hpc2n(TraceFile.of(str(path))))


def scaled_units(
    seeds: int, penalty_s: int, loads: Sequence[float] = PAPER_LOADS, workload: str = SCALED
) -> list[Unit]:
    """The scaled traces: for each seed, those at these loads."""
    return [tuple((workload, seed, load, penalty_s) for load in loads) for seed in range(1, seeds + 1)]


def unscaled_units(seeds: int, penalty_s: int) -> list[Unit]:
    """The unscaled trace of each seed."""
    return [((UNSCALED, seed, penalty_s),) for seed in range(1, seeds + 1)]


def hpc2n_units(weeks: Sequence[int], penalty_s: int) -> list[Unit]:
    """These weeks of the log, counted from 1."""
    return [((HPC2N, week, penalty_s),) for week in weeks]


def has_log() -> bool:
    """Whether the log is there."""
    try:
        shared_file("traces", LOG)
    except BadInput:
        return False
    return True


def results(
    options: Options, units: Iterable[Unit], function: Callable[[Instance], Any] = run, folder: str = "dfrs"
) -> dict[Instance, Any]:
    """The function's result for each instance of these units; all pages keep them in the same folder.

    Raises:
        SnsError: the folder cannot be read or written.
    """
    return options.shared(folder, function, (instance for unit in units for instance in unit))
