"""The runs beyond the DFRS paper: closer to a site than the paper's model, and against what a site has today.

On each instance (module runs, always with a penalty of 5 minutes) are run:

* EASY that knows all run times, EASY with users' estimates, and Slurm's gang scheduling: the jobs on a node have equal
  time slices, GREEDY chooses the nodes, and what finds no memory is tried again at each event;
* three algorithms of DFRS in the paper's model and in each variant of it (`VARIANTS`);
* some of these once more with one thing changed, to find the cause of a result (`CAUSES`).

Estimates. Those of HPC2N are the owners' time limits. The synthetic traces have none: each run time is multiplied by a
number drawn uniformly from 1 to 5. This is the "f-model" with f = 4. Real estimates differ from it: they are a few
round numbers below a maximum.

Unequal nodes have as much CPU and memory together as the equal ones. A task that needs more memory than a node has
cannot run there, so that a few wide jobs do not fit. They are left out of all runs on unequal nodes, and of the runs
with which these are compared: EASY and DFRS on equal nodes. EASY counts whole nodes and needs equal ones.

Sources: A. Mu'alem and D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling
the IBM SP2 with backfilling", IEEE TPDS 12 (2001); D. Tsafrir and D. Feitelson, "The dynamics of backfilling: solving
the mystery of why increased inaccuracy may help", IISWC 2006.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.dfrs.algorithms import GANG
from slurm_sns.policies.dfrs.fluid_arrays import Floats
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays, amounts
from slurm_sns.sim.replay.batch_replay import replay_batch
from slurm_sns.sim.replay.fluid_replay import FluidRun, SiteVariant, replay_fluid
from slurm_sns.sim.reproduce.dfrs.runs import (
    ASAP_PER,
    EASY,
    FLUID,
    GREEDY_PMTN,
    PAPER_NAMES,
    PER,
    PERIOD_S,
    Found,
    Instance,
    trace_of,
)
from slurm_sns.sim.results.fluid_results import bounded_stretch
from slurm_sns.sim.traces.fluid_trace import PARTS, FluidTrace

#: What a site has today.
ESTIMATING_EASY, GANG_SCHEDULING = "easy-with-estimates", "gang-scheduling"
TODAY = (EASY, ESTIMATING_EASY, GANG_SCHEDULING)
#: The algorithms of DFRS that are run: the best one of the paper with a penalty, and the two ideas that it joins.
DFRS = (ASAP_PER, GREEDY_PMTN, PER)
NAMES = {**PAPER_NAMES, ESTIMATING_EASY: "EASY with estimates", GANG_SCHEDULING: "gang scheduling"}
#: The compiled algorithms.
_FLUID = {**FLUID, GANG_SCHEDULING: GANG}

MINUTE_S = 60
ERROR = 0.1
#: The largest factor of an estimate in the f-model; its authors write f + 1.
MOST_OVERESTIMATED = 5

#: Kinds of nodes: the share of all nodes, and the CPU and memory of each as multiples of a reference node's.
Shape = Sequence[tuple[float, float, float]]
EQUAL: Shape = ((1, 1, 1),)
#: Half of the nodes are half as large, the others are one and a half times as large.
GENERATIONS: Shape = ((0.5, 0.5, 0.5), (0.5, 1.5, 1.5))
LARGE_FIRST: Shape = GENERATIONS[::-1]
#: Three quarters of the nodes have little memory, the others have much. Tasks that need all memory of a reference node
#: find half as many places as on equal nodes.
UNLIKE_MEMORY: Shape = ((0.75, 1, 0.6), (0.25, 1, 2.2))
UNEQUAL = (GENERATIONS, UNLIKE_MEMORY)


class FluidVariant(NamedTuple):
    """What differs from the paper's model, and the algorithms that are run.

    Caps of running jobs change at multiples of `apply_s` (0: at once). Each job's CPU need is measured with one of the
    relative `errors`, by chance. `nodes` are those on which the jobs run. If `few`, only the jobs are run that fit on
    all `UNEQUAL` nodes. Memory needs above `most_memory`, a fraction of a reference node, are lowered to it.
    """

    apply_s: float = 0
    errors: Sequence[float] = (0.0,)
    nodes: Shape = EQUAL
    few: bool = False
    most_memory: float = 1.0
    algorithms: Sequence[str] = DFRS


PAPER, MINUTE, ERRORS, BOTH = "the paper's model", "caps once a minute", "needs 10 % wrong", "caps and needs"
FEWER, TWO, UNLIKE, ALL = "jobs that fit everywhere", "two generations", "unlike memory", "caps, needs, two generations"
VARIANTS: Mapping[str, FluidVariant] = {
    PAPER: FluidVariant(algorithms=(*TODAY, *DFRS)),
    MINUTE: FluidVariant(apply_s=MINUTE_S),
    ERRORS: FluidVariant(errors=(-ERROR, ERROR)),
    BOTH: FluidVariant(apply_s=MINUTE_S, errors=(-ERROR, ERROR)),
    FEWER: FluidVariant(few=True, algorithms=(*TODAY, *DFRS)),
    TWO: FluidVariant(nodes=GENERATIONS, few=True),
    UNLIKE: FluidVariant(nodes=UNLIKE_MEMORY, few=True),
    ALL: FluidVariant(MINUTE_S, (-ERROR, ERROR), GENERATIONS, few=True),
}
#: The cause of a result is what changes it.
LITTLE, LITTLE_EQUAL, LITTLE_UNLIKE = "10 % memory", "at most 30 % memory", "unlike, at most 30 % memory"
TEN_MINUTES, TOO_LOW, TOO_HIGH = "caps every ten minutes", "needs 10 % too low", "needs 10 % too high"
LARGE = "two generations, large nodes first"
CAUSES: Mapping[str, FluidVariant] = {
    LITTLE: FluidVariant(most_memory=0.1, algorithms=(GANG_SCHEDULING, *DFRS)),
    LITTLE_EQUAL: FluidVariant(few=True, most_memory=0.3),
    LITTLE_UNLIKE: FluidVariant(nodes=UNLIKE_MEMORY, few=True, most_memory=0.3),
    TEN_MINUTES: FluidVariant(apply_s=PERIOD_S),
    TOO_LOW: FluidVariant(errors=(-ERROR,)),
    TOO_HIGH: FluidVariant(errors=(ERROR,)),
    LARGE: FluidVariant(nodes=LARGE_FIRST, few=True),
}
EVERY: Mapping[str, FluidVariant] = {**VARIANTS, **CAUSES}


def baseline(variant: str) -> str:
    """The paper's model with the same jobs."""
    return FEWER if EVERY[variant].few else PAPER


def label(variant: str, name: str) -> str:
    """An algorithm in a variant, for tables and claims."""
    return f"{NAMES[name]}, {variant}"


def run(instance: Instance) -> Found:
    """All variants on one instance.

    `runs` has the largest and the mean bounded stretch by variant and algorithm, `left_out` the number of jobs that do
    not fit on all kinds of unequal nodes.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    trace, count = trace_of(instance)
    few = fitting(trace, [nodes_like(shape, count) for shape in UNEQUAL])
    runs: dict[str, dict[str, list[float]]] = {}
    for name, variant in EVERY.items():
        jobs = few if variant.few else trace
        runs[name] = {
            each: _stretches(jobs, _end_s(jobs, count, each, variant, instance)) for each in variant.algorithms
        }
    return {"jobs": len(trace), "left_out": len(trace) - len(few), "runs": runs}


def _end_s(jobs: FluidTrace, count: int, name: str, variant: FluidVariant, instance: Instance) -> Floats:
    """When each job ends. Errors and estimates depend on the seed or week alone: they are the same at each load."""
    rng = np.random.default_rng(int(instance[1]))
    if name == EASY:
        return replay_batch(count, jobs, EASY).end_s
    if name == ESTIMATING_EASY:
        return replay_batch(count, jobs, EASY, expected_run_s=estimates(jobs, rng)).end_s
    memory = np.minimum(jobs.memory, round(variant.most_memory * PARTS))
    known, ratio = measured(replace(jobs, memory=memory), variant.errors, rng)
    site = SiteVariant(variant.apply_s, ratio)
    return replay(nodes_like(variant.nodes, count), known, name, int(instance[-1]), site).end_s


def replay(nodes: NodeArrays, trace: FluidTrace, name: str, penalty_s: float, site: SiteVariant) -> FluidRun:
    """The trace under one of DFRS's algorithms, or under gang scheduling, at a site."""
    return replay_fluid(nodes, trace, _FLUID[name], period_s=PERIOD_S, penalty_s=penalty_s, variant=site)


def nodes_like(shape: Shape, count: int) -> NodeArrays:
    """So many nodes of these kinds, in the order of the kinds."""
    kinds = [
        (round(share * count), Resources(round(cpu * PARTS), round(memory * PARTS))) for share, cpu, memory in shape
    ]
    capacity = [resources for many, resources in kinds for _ in range(many)]
    return NodeArrays(tuple(f"n{at}" for at in range(len(capacity))), amounts(capacity))


def fitting(trace: FluidTrace, clusters: Sequence[NodeArrays]) -> FluidTrace:
    """The jobs whose tasks all find memory on each of the clusters when it is empty."""
    fits = np.ones(len(trace), np.bool_)
    for nodes in clusters:
        places = np.zeros(len(trace), np.int64)
        for memory in nodes.capacity[MEMORY].tolist():
            places += memory // trace.memory
        fits &= trace.tasks <= places
    columns = ("identity", "submit_s", "run_s", "tasks", "cpu", "memory", "limit_s")
    return replace(trace, **{name: getattr(trace, name)[fits] for name in columns})


def measured(trace: FluidTrace, errors: Sequence[float], rng: np.random.Generator) -> tuple[FluidTrace, Floats]:
    """The trace with CPU needs as they were measured, and by job the measured need over the true one.

    No need is measured to be more than a reference node.
    """
    cpu = np.rint(trace.cpu * (1 + rng.choice(np.asarray(errors), len(trace)))).astype(np.int64)
    cpu = np.minimum(cpu, PARTS)
    return replace(trace, cpu=cpu), cpu / trace.cpu


def estimates(trace: FluidTrace, rng: np.random.Generator) -> Floats:
    """The users' estimates of the run times: the time limits where there are any, else the f-model's."""
    drawn: Floats = trace.run_s * rng.uniform(1, MOST_OVERESTIMATED, len(trace))
    return np.where(np.isnan(trace.limit_s), drawn, trace.limit_s)


def _stretches(trace: FluidTrace, end_s: Floats) -> list[float]:
    """The largest and the mean bounded stretch."""
    stretch = bounded_stretch(trace, end_s)
    return [float(stretch.max()), float(stretch.mean())]
