"""The alternatives of a live job, best first: Spread-n-Share's for a spreadable one, its own geometry for any other.

A job is spreadable (docs/develop/life-of-a-job.md) if its owner gave a hint of Spread-n-Share, and no geometry besides
the number of tasks. A job of one task is never spread, but it shares nodes by its program's profile like the others.
So does a job that asks for GPUs: it is not spread, because more nodes may mean more GPUs.

A job's size is all that its alternatives are made from. Owners choose it, and a new size costs work. So each user may
have a number of new sizes in a cycle; jobs of further new sizes wait for the next cycles. A known size does not count,
and it stays known while jobs of that size wait: all of a user's sizes are found in a few cycles, and no other user
waits for them. The limit counts sizes, not time: what is put off does not depend on the machine.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from sys import maxsize

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.gpus import JOB, NODE, GpuRequest
from slurm_sns.model import Alternative, Reason, Resources, WaitKind
from slurm_sns.policies.base import Choice, JobRequest, MakeAlternatives, NodeType, Request, own_geometry
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.geometry import (
    extremes,
    geometry,
    is_fixed,
    live_request,
    per_node_mb,
    takes_all_memory,
    wants_more_cpus,
)
from slurm_sns.scheduler.snapshot.node_sets import NodeKinds
from slurm_sns.submit.hints import Hints, asks_for_spreading

#: A new size takes 0.1 ms of processor time, one whose program has a profile 0.6 ms (measured, 1,000 nodes of one
#: kind): the new sizes of one user take at most a sixteenth of the usual interval, 1 s.
MOST_NEW = 100


@dataclass(frozen=True, slots=True)
class _Found:
    """The alternatives of a size, or why there are none, and the profile that they were made with."""

    profile: Program | None
    choice: Choice | Infeasible

    def is_made_with(self, profile: Program | None) -> bool:
        """Whether the alternatives were made with this profile."""
        return self.profile is profile or self.profile == profile


class KnownAlternatives:
    """The alternatives that the cycles of one scheduler found.

    A size that no job had during a whole cycle is forgotten, so no more sizes are kept than two cycles had jobs.
    """

    def __init__(self, most_new: int = MOST_NEW) -> None:
        """`most_new` is how many sizes of a user may be new in a cycle."""
        self._most_new = most_new
        self._now: dict[Hashable, _Found] = {}
        self._before: dict[Hashable, _Found] = {}
        self._new: Counter[int] = Counter()

    def begin_cycle(self) -> None:
        """Start a cycle: what the last cycle asked for stays known in this one."""
        self._before, self._now = self._now, {}
        self._new.clear()

    def choice(
        self, size: Hashable, profile: Program | None, user_id: int, find: Callable[[], Choice | Infeasible]
    ) -> Choice | Infeasible:
        """The alternatives of a job of this size; `find` makes them where they are not known for this profile.

        Raises:
            Closed: they are not known, and this user has no further new sizes in this cycle.
        """
        known = self._now.get(size)
        if known is None:
            known = self._before.get(size)
        elif known.is_made_with(profile):
            return known.choice  # nearly every job of a long queue: it is hashed once
        if known is None or not known.is_made_with(profile):
            self._count(user_id)
            known = _Found(profile, find())
        self._now[size] = known
        return known.choice

    def _count(self, user_id: int) -> None:
        if self._new[user_id] >= self._most_new:
            why = f"its owner has jobs of more than {self._most_new} new sizes: this one is looked at in a later cycle"
            raise Closed(Reason(why, WaitKind.NEW_SIZES))
        self._new[user_id] += 1


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """How jobs are spread: how the policy makes their alternatives, and the profiles of the known programs.

    `program` names the program of a job without --sns-program; {user}, {name} and {processes} are filled in. `known`
    holds the alternatives that earlier cycles found, and each cycle changes it; None where a single cycle is planned.
    Jobs of the partitions `never_in` keep their geometry: their cores are shared.
    """

    alternatives: MakeAlternatives = own_geometry
    program: str = "{name}"
    programs: Mapping[str, Program] = field(default_factory=dict)
    known: KnownAlternatives | None = None
    never_in: frozenset[str] = frozenset()


NEVER_SPREAD = SpreadRules()


class Spreader:
    """Finds the alternatives of one cycle's jobs. Jobs with equal requests share the result, also across cycles."""

    def __init__(self, spreading: SpreadRules) -> None:
        self._spreading = spreading
        self._known = spreading.known or KnownAlternatives(maxsize)  # a single cycle puts nothing off
        self._known.begin_cycle()

    def choice(self, job: ObservedJob, kinds: NodeKinds) -> Choice:
        """The alternatives of this job on some of the nodes of these kinds, which are all that it may ever use.

        Raises:
            Infeasible: the job can never run there, or not on nodes of our choice.
            Closed: its owner has too many jobs of new sizes in this cycle.
        """
        hints = job.hints
        is_asking = hints is not None and asks_for_spreading(hints)
        program = program_of(job, hints, self._spreading.program) if hints is not None and is_asking else ""
        found = self._known.choice(
            (_asked(job), program, kinds),
            self._spreading.programs.get(program),
            job.user_id,
            lambda: self._choice(job, hints, program, kinds),
        )
        if isinstance(found, Infeasible):
            raise type(found)(str(found))
        return found

    def _choice(self, job: ObservedJob, hints: Hints | None, program: str, kinds: NodeKinds) -> Choice | Infeasible:
        try:
            own = replace(geometry(job, kinds), exclusive=job.wants_empty_nodes)
            if not self._spreading.never_in.isdisjoint(job.partitions):
                return own_geometry(JobRequest(own), ())
            if job.gpus is not None:
                return self._with_gpus(job, job.gpus, own, program=program, kinds=kinds)
            asked = None if hints is None or keeps_geometry(job) else request(job, hints, kinds)
            of_job = JobRequest(own, asked, self._spreading.programs.get(program), program)
            return self._spreading.alternatives(of_job, types_of(kinds))
        except Infeasible as never:
            return type(never)(str(never))  # without its traceback, which would keep the whole observation in memory

    def _with_gpus(
        self, job: ObservedJob, of_job: GpuRequest, own: Alternative, *, program: str, kinds: NodeKinds
    ) -> Choice:
        """The alternatives of a job with GPUs, on nodes that have enough: at scale 1, by its program's profile."""
        gpus, hints = own.demand.gpus, job.hints
        able = tuple(kind for kind in kinds if Resources(0, 0, gpus=gpus).within(kind.capacity))
        asked = None
        if hints is not None and asks_for_spreading(hints) and not is_fixed(job):
            # What is asked of the whole job is asked of its one node; the policy also looks at what it then drops.
            of_node = replace(job, gpus=of_job._replace(by=NODE)) if of_job.by == JOB else job
            asked = live_request(of_node, able, alpha=hints.alpha, max_scale=1, exclusive=own.exclusive)
        bare = replace(own, demand=own.demand._replace(gpus=()))
        requested = JobRequest(bare, asked, self._spreading.programs.get(program), program)
        found = self._spreading.alternatives(requested, types_of(able))
        # The policy counts no GPUs. At scale 1 each alternative has as many nodes, and tasks on them, as the own one.
        whole = tuple(replace(each, demand=each.demand._replace(gpus=gpus)) for each in found.alternatives)
        kept = tuple(each for each in whole if not (of_job.memory_mb and takes_all_memory(job, each)))
        if not kept:
            raise Infeasible("asks for empty nodes and for memory with each GPU: how much it gets is Slurm's choice")
        return found._replace(alternatives=kept)


def keeps_geometry(job: ObservedJob) -> bool:
    """Whether the job has a geometry of its own, so that its number of nodes may not be chosen."""
    hints, has_gpus = job.hints, job.gpus is not None
    return is_fixed(job) or wants_more_cpus(job) or has_gpus or hints is None or not asks_for_spreading(hints)


def request(job: ObservedJob, hints: Hints, kinds: NodeKinds) -> Request:
    """What the job asks for, in the terms of Spread-n-Share; a job that names no memory gets a whole node's."""
    limits = extremes(kinds)
    return Request(
        tasks=job.tasks,
        cpus_per_task=job.cpus_per_task,
        threads_per_core=limits.least_threads,
        memory_per_cpu_mb=job.memory_per_cpu_mb,
        memory_per_node_mb=per_node_mb(job, limits),
        alpha=hints.alpha,
        max_scale=hints.max_scale,
        exclusive=job.wants_empty_nodes,
    )


def types_of(kinds: NodeKinds) -> tuple[NodeType, ...]:
    """The node types of these kinds: nodes of equal capacity, whatever their threads."""
    counts: Counter[Resources] = Counter()
    for kind in kinds:
        counts[kind.capacity] += kind.number
    return tuple(NodeType(capacity, number) for capacity, number in counts.items())


def program_of(job: ObservedJob, hints: Hints, template: str) -> str:
    """The key of the job's profile: its owner's hint, else the site's template with its fields filled in."""
    if hints.program is not None:
        return hints.program
    values = {"{user}": job.user, "{name}": job.name, "{processes}": str(job.tasks * job.cpus_per_task)}
    for name, value in values.items():
        template = template.replace(name, value)
    return template


#: All that a job's alternatives are made from, besides its program and the nodes; `partitions` only for messages.
_asked = attrgetter(
    "tasks",
    "cpus",
    "cpus_per_task",
    "min_cpus_per_node",
    "nodes_min",
    "nodes_max",
    "tasks_per_node",
    "memory_per_cpu_mb",
    "memory_per_node_mb",
    "gpus",
    "partitions",
    "is_alone",
    "hints",
)
