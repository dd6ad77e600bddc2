"""From a queue of jobs to the arrays that the kernel reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_sns.model import Alternative, Job, Project
from slurm_sns.policies.placement.arrays import NOBODY, Kinds, Machines, Queue, Ways
from slurm_sns.policies.placement.pool import Pool
from slurm_sns.policies.placement.queue import NEWCOMER, WaitingQueue

Allowed = frozenset[str] | None
KindKey = tuple[tuple[Alternative, ...], Allowed, int]


@dataclass
class KindTable:
    """Numbers the distinct ways and kinds as they are met."""

    ways: dict[tuple[Alternative, Allowed], int] = field(default_factory=dict)
    kinds: dict[KindKey, int] = field(default_factory=dict)
    sets: dict[frozenset[str], int] = field(default_factory=dict)
    _lists: list[list[int]] = field(default_factory=list)
    _by_identity: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def kind(self, alternatives: tuple[Alternative, ...], allowed: Allowed, own: int) -> int:
        """The number of this kind. The values must outlive the table: they are known again by identity first."""
        identity = (id(alternatives), id(allowed), own)
        number = self._by_identity.get(identity)
        if number is None:
            number = self._by_identity[identity] = self._by_value(alternatives, allowed, own)
        return number

    def _by_value(self, alternatives: tuple[Alternative, ...], allowed: Allowed, own: int) -> int:
        key = (alternatives, allowed, own)
        if key not in self.kinds:
            self.kinds[key] = len(self.kinds)
            self._lists.append([self.ways.setdefault((each, allowed), len(self.ways)) for each in alternatives])
            if allowed is not None:
                self.sets.setdefault(allowed, len(self.sets))
        return self.kinds[key]

    def arrays(self, pool: Pool) -> tuple[Machines, Ways, Kinds]:
        """The tables of all that were numbered so far, for these nodes."""
        masks = np.zeros((len(self.sets), len(pool.names)), dtype=np.bool_)
        for allowed, row in self.sets.items():
            masks[row] = pool.allows(allowed)
        resources = len(pool.capacity)
        demand = np.array([way.demand for way, _ in self.ways], dtype=np.int64).reshape(len(self.ways), -1)
        exclusive = np.array([way.exclusive for way, _ in self.ways], dtype=np.bool_)
        allowed_set = np.array([NOBODY if a is None else self.sets[a] for _, a in self.ways], dtype=np.int64)
        ways = Ways(
            nodes=np.array([way.nodes for way, _ in self.ways], dtype=np.int64),
            demand=np.ascontiguousarray(demand[:, :resources]) if len(demand) else np.zeros((0, resources), np.int64),
            exclusive=exclusive,
            allowed=allowed_set,
            simple=~exclusive & (allowed_set == NOBODY) & ~(demand[:, 2:] > 0).any(axis=1),
        )
        first = np.zeros(len(self._lists) + 1, np.int64)
        np.cumsum([len(each) for each in self._lists], out=first[1:])
        kinds = Kinds(
            first=first,
            way=np.array([way for each in self._lists for way in each], dtype=np.int64),
            own=np.array([own for _, _, own in self.kinds], dtype=np.int64),
        )
        return Machines(pool.capacity, masks), ways, kinds


@dataclass(frozen=True)
class TabulatedQueue:
    """The jobs that a cycle can look at, as arrays; job i of the arrays is `jobs[i]`."""

    jobs: Sequence[Job]
    queue: Queue


def tabulate(waiting: WaitingQueue, pool: Pool, depth: int, table: KindTable, rows: dict[str, int]) -> TabulatedQueue:
    """The queue's arrays; `rows` numbers the heuristics, and a name that it does not know is the member's."""
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
    kind = np.fromiter(
        (table.kind(job.alternatives, job.allowed, rows.get(job.heuristic or "", NOBODY)) for job in jobs),
        np.int32,
        len(jobs),
    )
    projects, whole, used = _projects(names, waiting, pool)
    return TabulatedQueue(
        jobs,
        Queue(
            over_aged=np.arange(aged, dtype=np.int64),
            head=head,
            following=following,
            kind=kind,
            project=np.fromiter((projects.get(job.project, NOBODY) for job in jobs), np.int32, len(jobs)),
            order=_ranks(jobs) if len(names) > 1 else np.zeros(len(jobs), np.int64),
            whole=whole,
            used=used,
        ),
    )


def _projects(
    names: Iterable[str], waiting: WaitingQueue, pool: Pool
) -> tuple[
    dict[str, int], np.ndarray[tuple[int, int], np.dtype[np.float64]], np.ndarray[tuple[int, int], np.dtype[np.int64]]
]:
    """The projects' numbers, in the order of their names; share times all cores and memory; what they hold."""
    projects: list[Project] = [waiting.projects.get(name, NEWCOMER) for name in names]
    total = pool.total
    whole = [(total.cores * each.share, total.memory_mb * each.share) for each in projects]
    used = [(each.used.cores, each.used.memory_mb) for each in projects]
    return (
        {name: number for number, name in enumerate(names)},
        np.array(whole, dtype=np.float64).reshape(len(projects), 2),
        np.array(used, dtype=np.int64).reshape(len(projects), 2),
    )


def _ranks(jobs: Sequence[Job]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The jobs' orders as numbers that compare alike."""
    ranks = {order: rank for rank, order in enumerate(sorted({job.order for job in jobs}))}
    return np.fromiter((ranks[job.order] for job in jobs), np.int64, len(jobs))
