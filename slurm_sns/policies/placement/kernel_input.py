"""Turn a queue of jobs into the arrays that the kernel reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Job, Project, Resources
from slurm_sns.policies.placement.fair_order import NEWCOMER, WaitingQueue
from slurm_sns.policies.placement.kernel_arrays import NOBODY, AlternativeArrays, Flags, JobKinds, KernelNodes, Queue
from slurm_sns.policies.placement.kinds_of_jobs import Allowed
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, WAYS, NodeArrays
from slurm_sns.policies.placement.node_state_kernel import PER_UNIT

#: Number of nodes, demand, exclusive, number of the set of allowed nodes.
AlternativeKey = tuple[int, Resources, bool, int]
#: Alternatives, number of the set of allowed nodes, row of the heuristic that the jobs name.
KindKey = tuple[tuple[Alternative, ...], int, int]

#: The tables begin with room for this many entries, and double when they are full.
FIRST_ROOM = 64


def slowdown_units(alternative: Alternative) -> int:
    """The predicted slowdown in whole units of 1e-9, so that a sum does not depend on the order of its terms."""
    return round(alternative.slowdown * PER_UNIT)


def kernel_nodes(node_arrays: NodeArrays, masks: Flags) -> KernelNodes:
    """The nodes as the kernel reads them; `masks` are the sets of nodes to which alternatives are restricted."""
    regions = node_arrays.regions
    return KernelNodes(node_arrays.capacity, masks, regions.weight, regions.switch, regions.weighs)


class KindTable:
    """The numbers of the distinct alternatives and kinds of jobs on these nodes, given as they are met.

    New entries go into the same arrays while these have room; `generation` counts the arrays that were replaced by
    larger ones. `choices` are the alternatives behind the kernel's choices, `cases` the cases of their demands, `own`
    the rows of the heuristics that jobs name, `least_cores` the fewest cores that any alternative demands on a node (0
    before there is one). `rows` gives the row of a heuristic; a job with an unknown name gets the member's heuristic.
    If `weighs` is False, slowdowns decide nothing.
    """

    def __init__(self, node_arrays: NodeArrays, rows: Mapping[str, int], *, weighs: bool) -> None:
        """Begin with empty tables."""
        resources, nodes = node_arrays.capacity.shape
        self._node_arrays = node_arrays
        self._rows = rows
        self._weighs = weighs
        self.generation = 0
        self.choices: list[Alternative] = []
        self.cases: set[int] = set()
        self.own: set[int] = set()
        self.least_cores = 0
        self._alternatives: dict[AlternativeKey, int] = {}
        self._kinds: dict[KindKey, int] = {}
        self._sets: dict[Allowed, int] = {None: NOBODY}
        self._masks = np.zeros((1, nodes), np.bool_)
        self._alternative_arrays = AlternativeArrays(
            nodes=np.zeros(FIRST_ROOM, np.int64),
            demand=np.zeros((FIRST_ROOM, resources), np.int64),
            exclusive=np.zeros(FIRST_ROOM, np.bool_),
            allowed=np.zeros(FIRST_ROOM, np.int64),
            case=np.zeros(FIRST_ROOM, np.int64),
            simple=np.zeros(FIRST_ROOM, np.bool_),
        )
        self._kind_arrays = JobKinds(
            first=np.zeros(FIRST_ROOM + 1, np.int64),
            alternative=np.zeros(FIRST_ROOM, np.int64),
            slowdown=np.zeros(FIRST_ROOM, np.int64),
            own=np.zeros(FIRST_ROOM, np.int64),
        )

    def __len__(self) -> int:
        return len(self._kinds)

    def arrays(self) -> tuple[KernelNodes, AlternativeArrays, JobKinds]:
        """The tables; later entries are in the same arrays as long as `generation` stays the same."""
        return kernel_nodes(self._node_arrays, self._masks), self._alternative_arrays, self._kind_arrays

    def kind(self, job: Job) -> int:
        """The number of the job's kind."""
        own = self._rows.get(job.heuristic or "", NOBODY)
        number = self._sets.get(job.allowed)
        if number is None:
            number = self._sets[job.allowed] = self._new_set(job.allowed)
        key = (job.alternatives, number, own)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._new_kind(job.alternatives, number, own)
        return kind

    def _new_set(self, allowed: Allowed) -> int:
        """The row of the masks for a new set of allowed nodes; NOBODY for a set that holds every node."""
        mask = self._node_arrays.allows(allowed)
        if mask is None or mask.all():
            return NOBODY
        row = len({each for each in self._sets.values() if each != NOBODY})
        self._masks = self._with_room(self._masks, row + 1)
        self._masks[row] = mask
        return row

    def _new_kind(self, alternatives: tuple[Alternative, ...], allowed: int, own: int) -> int:
        kind, begin = len(self._kinds), len(self.choices)
        end = begin + len(alternatives)
        first, alternative, slowdown, owns = self._kind_arrays
        first, owns = self._with_room(first, kind + 2), self._with_room(owns, kind + 1)
        alternative, slowdown = self._with_room(alternative, end), self._with_room(slowdown, end)
        self._kind_arrays = JobKinds(first, alternative, slowdown, owns)
        first[kind + 1] = end
        owns[kind] = own
        for at, each in enumerate(alternatives, begin):
            alternative[at] = self._alternative(each, allowed)
            slowdown[at] = slowdown_units(each) if self._weighs else 0
        self.choices.extend(alternatives)
        if own != NOBODY:
            self.own.add(own)
        return kind

    def _alternative(self, of: Alternative, allowed: int) -> int:
        key = (of.nodes, of.demand, of.exclusive, allowed)
        number = self._alternatives.get(key)
        if number is None:
            number = self._alternatives[key] = len(self._alternatives)
            case = (of.demand[WAYS] > 0) + 2 * (of.demand[BANDWIDTH] > 0)
            simple = not of.exclusive and allowed == NOBODY and not any(of.demand[WAYS:])
            self._alternative_arrays = AlternativeArrays(
                *(self._with_room(column, number + 1) for column in self._alternative_arrays)
            )
            values: tuple[Any, ...] = (of.nodes, of.demand, of.exclusive, allowed, case, simple)
            for column, value in zip(self._alternative_arrays, values, strict=True):
                column[number] = value
            self.cases.add(case)
            self.least_cores = min(self.least_cores, of.demand.cores) if number else of.demand.cores
        return number

    def _with_room(self, array: NDArray[Any], entries: int) -> NDArray[Any]:
        """The array if it has room for this many entries, otherwise a copy with room for twice as many."""
        if entries <= len(array):
            return array
        self.generation += 1
        longer = np.zeros((2 * entries, *array.shape[1:]), array.dtype)
        longer[: len(array)] = array
        return longer


@dataclass(frozen=True)
class TabulatedQueue:
    """The jobs that a cycle can look at, as arrays; job i of the arrays is `jobs[i]`."""

    jobs: Sequence[Job]
    queue: Queue


def tabulate(
    waiting: WaitingQueue, node_arrays: NodeArrays, depth: int, kind_of: Callable[[Job], int]
) -> TabulatedQueue:
    """The queue's arrays; `kind_of` gives the number of a job's kind."""
    names = sorted(waiting.by_project)
    lists = [waiting.by_project[name][:depth] for name in names]
    jobs = [*waiting.over_aged[:depth], *(job for each in lists for job in each)]
    aged = min(len(waiting.over_aged), depth)
    head = np.full(len(names), NOBODY, dtype=np.int64)
    following = np.arange(1, len(jobs) + 1, dtype=np.int32)
    at = aged
    for number, each in enumerate(lists):
        if each:
            head[number] = at
            at += len(each)
            following[at - 1] = NOBODY
    projects, whole, used = _projects(names, waiting, node_arrays)
    return TabulatedQueue(
        jobs,
        Queue(
            over_aged=np.arange(aged, dtype=np.int64),
            head=head,
            following=following,
            kind=np.fromiter(map(kind_of, jobs), np.int32, len(jobs)),
            project=np.fromiter((projects.get(job.project, NOBODY) for job in jobs), np.int32, len(jobs)),
            order=_ranks(jobs) if len(names) > 1 else np.zeros(len(jobs), np.int64),
            whole=whole,
            used=used,
            withholds=np.fromiter((job.withholds for job in jobs), np.bool_, len(jobs)),
        ),
    )


def _projects(
    names: Iterable[str], waiting: WaitingQueue, node_arrays: NodeArrays
) -> tuple[
    dict[str, int], np.ndarray[tuple[int, int], np.dtype[np.float64]], np.ndarray[tuple[int, int], np.dtype[np.int64]]
]:
    """The number of each project by name; share times all cores and memory; the cores and memory it holds."""
    projects: list[Project] = [waiting.projects.get(name, NEWCOMER) for name in names]
    total = node_arrays.total
    whole = [(total.cores * each.share, total.memory_mb * each.share) for each in projects]
    used = [(each.used.cores, each.used.memory_mb) for each in projects]
    return (
        {name: number for number, name in enumerate(names)},
        np.array(whole, dtype=np.float64).reshape(len(projects), 2),
        np.array(used, dtype=np.int64).reshape(len(projects), 2),
    )


def _ranks(jobs: Sequence[Job]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """One integer per job; the integers compare as the jobs' `order` does."""
    ranks = {order: rank for rank, order in enumerate(sorted({job.order for job in jobs}))}
    return np.fromiter((ranks[job.order] for job in jobs), np.int64, len(jobs))
