"""Puts the layouts of a node's caches, and the bandwidth of its jobs, into force.

Each job with ways has a group `job<id>`; jobs without ways, pass-through jobs and the system share the group `shared`.
The root group keeps what it has: it is not ours, and after a crash it is what everything falls back to.

The tree itself is the only memory. `apply` reads what is in force and writes what differs, so that after each write
every job has at least its guaranteed ways for itself (group_writes.py). Who is killed in between calls `apply` again.
The order: groups that are no longer wanted are removed (threads that are left in them go to the shared group first),
new groups are made, masks and bandwidth are written. Threads come last and are the caller's (`Groups.move_all`),
because a new group may use the whole cache until its masks are written. `apply` takes the lock of the tree; a caller
that holds it from reading the masks in force to moving the threads keeps other programs out all that time.
"""

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from slurm_sns.closids import closids_for_jobs
from slurm_sns.node.group_writes import SHARED, BandwidthNeeds, group_of, group_writes, job_of, masks
from slurm_sns.node.resctrl.groups import CannotMake, GroupGone, Groups
from slurm_sns.node.resctrl.machine import Machine
from slurm_sns.node.resctrl.schemata import lines
from slurm_sns.node.ways.layout import Layout, Shape
from slurm_sns.node.ways.masks import Span, spans, union, window


@dataclass(frozen=True)
class Applied:
    """What `apply` did.

    `made` are jobs whose group is new: their threads have to be moved (after a restart those of all jobs, because the
    last run may have ended between the two). `without` are jobs that should have had a group and have none, with the
    reason: their threads belong into the shared group. `refused` are those among them for whose group the kernel had no
    room: it may have some later. `overlapped` are groups that took ways before another group had given them back,
    because no other order exists.
    """

    made: tuple[int, ...] = ()
    without: Mapping[int, str] = field(default_factory=dict)
    refused: tuple[int, ...] = ()
    overlapped: tuple[str, ...] = ()


def shapes(machine: Machine, groups: Groups) -> dict[int, Shape]:
    """What can be laid out in each domain of the last-level cache.

    Of the ways that others do not have exclusively, it is the longest run; a domain without one that the kernel would
    take is left out. A CLOSID each is kept for the root group, the shared group and every group of others.
    """
    jobs = closids_for_jobs(machine.closids, len(groups.foreign()))
    unshared = [masks(machine, schemata) for schemata in groups.unshared()]
    found = {}
    for cache in machine.last_level[:1]:
        for domain in cache.domains:
            left = spans(cache.mask & ~union(taken.get(domain, 0) for taken in unshared))
            longest = max(left, key=lambda span: span.ways, default=Span(0, 0))
            if longest.ways >= cache.least_bits:
                found[domain] = Shape(longest.mask, cache.least_bits, cache.shareable, cache.is_sparse, jobs)
    return found


def standing(machine: Machine, groups: Groups, ways: Mapping[int, int]) -> dict[int, dict[int, int]]:
    """Guaranteed masks inside the masks in force, by domain and job: what the next layout after a restart starts from.

    `ways` is what each job owns. The tree shows what was granted, which contains that. Any run of as many ways serves:
    the job has it already. Of several it is the one with the fewest shareable ways, then the lowest.
    """
    found: dict[int, dict[int, int]] = {domain: {} for cache in machine.last_level for domain in cache.domains}
    shareable = union(cache.shareable for cache in machine.last_level)
    for job_id, owned in ways.items():
        with suppress(GroupGone):
            for domain, mask in masks(machine, groups.read(group_of(job_id))).items():
                if run := run_inside(mask, owned, shareable):
                    found[domain][job_id] = run
    return found


def run_inside(mask: int, ways: int, shareable: int) -> int:
    """The run of so many ways in a mask with the fewest shareable ones, of several the lowest; 0 if there is none."""
    runs = [run for start in range(mask.bit_length()) if (run := window(start, ways)) & ~mask == 0]
    return min(runs, key=lambda run: (run & shareable).bit_count(), default=0) if ways else 0


def apply(
    groups: Groups, machine: Machine, layouts: Mapping[int, Layout], bandwidth: BandwidthNeeds | None = None
) -> Applied:
    """Put the layouts of the domains into force; a domain without a layout stays as it is.

    Where code and data have masks of their own (CDP), both get the job's mask. A job without ways whose bandwidth is to
    be limited gets a group with the shared ways, as long as CLOSIDs last. Nothing is written when all is in force.

    Raises:
        ResctrlError: a write was refused or the shared group cannot be made. What is written stays, and is safe.
    """
    with groups.lock():
        application = _Application(groups, machine, layouts, bandwidth)
        try:
            return application.run()
        except GroupGone:  # somebody removed a group of ours between two of our calls: look again, once
            return application.run()


class _Application:
    """One pass over the tree, or two."""

    def __init__(
        self, groups: Groups, machine: Machine, layouts: Mapping[int, Layout], bandwidth: BandwidthNeeds | None
    ) -> None:
        self._groups, self._machine, self._layouts, self._bandwidth = groups, machine, layouts, bandwidth
        self._made: dict[str, None] = {}
        self._without: dict[str, str] = {}
        self._refused: list[str] = []

    def run(self) -> Applied:
        names = [*([SHARED] if self._layouts else []), *map(group_of, self._jobs())]
        present = self._groups.names()
        self._remove(present, names)
        new = self._make([name for name in names if name not in present], has_jobs=names != [SHARED])
        now = {name: self._groups.read(name) for name in names if name not in self._without}
        writes = group_writes(self._machine, self._shaped(), self._bandwidth, now, new)
        for write in writes:
            self._groups.write(write.name, lines(write.schemata))
        return Applied(
            made=tuple(job_id for name in self._made if (job_id := job_of(name)) is not None),
            without={job_id: why for name, why in self._without.items() if (job_id := job_of(name)) is not None},
            refused=tuple(job_id for name in self._refused if (job_id := job_of(name)) is not None),
            overlapped=tuple(sorted({write.name for write in writes if write.overlaps})),
        )

    def _jobs(self) -> Sequence[int]:
        """The jobs that get a group: those with ways first, then those whose bandwidth is limited, as CLOSIDs last."""
        with_ways = dict.fromkeys(job_id for layout in self._layouts.values() for job_id in layout.guaranteed)
        needs = self._bandwidth.jobs if self._bandwidth and self._machine.bandwidth else {}
        others = [job_id for job_id, draw in needs.items() if draw.gbps > 0 and job_id not in with_ways]
        most = closids_for_jobs(self._machine.closids, len(self._groups.foreign()))
        left = max(most - len(with_ways), 0)
        self._without = dict.fromkeys(map(group_of, others[left:]), f"all {most} CLOSIDs for jobs are taken")
        return [*with_ways, *others[:left]]

    def _remove(self, present: Sequence[str], wanted: Sequence[str]) -> None:
        for name in present:
            if name in wanted:
                continue
            if SHARED in present and name != SHARED:  # else its threads go where all others are: to the root group
                self._groups.move_all(SHARED, partial(self._groups.tasks, name))
            self._groups.remove(name)

    def _make(self, names: Sequence[str], *, has_jobs: bool) -> Set[str]:
        """Make groups; the result are those that are new. Without jobs of its own a node needs no shared group."""
        new: dict[str, None] = {}  # in their order
        self._refused = []
        for name in names:
            try:
                if self._groups.make(name):
                    new[name] = None
            except CannotMake as problem:
                if name == SHARED and has_jobs:
                    raise
                self._without[name] = str(problem)
                self._refused.append(name)
        self._made |= new
        return new.keys()

    def _shaped(self) -> dict[int, tuple[Layout, Shape]]:
        """The layouts with the ways that a group may have on its way to its place."""
        found = shapes(self._machine, self._groups) if self._layouts else {}
        nothing = Shape(0, 1, 0, False, 0)
        return {domain: (layout, found.get(domain, nothing)) for domain, layout in self._layouts.items()}
