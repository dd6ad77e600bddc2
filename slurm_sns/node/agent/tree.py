"""The resctrl tree of a node for its agent: caches and bandwidth, divided among the node's jobs.

`Partition` divides them. Each layout starts from the one before; the first one after a start, and after a failure, from
what the tree shows. The lock of the tree is held from reading what is in force to the last write; threads are moved
after that. A job without ways or bandwidth of its own has no group: its threads belong to the shared group, where a
monitoring group counts them apart if the machine has one left.

`NodeTree` goes on and tries again, whatever happens to the tree. It may be missing, appear later, be mounted anew (a
node or an emulator was restarted), or refuse a change. An agent that only observes writes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from slurm_sns.closids import closids_for_jobs
from slurm_sns.errors import SnsError
from slurm_sns.node.apply import Applied, apply, run_inside, shapes, standing
from slurm_sns.node.group_writes import SHARED, BandwidthNeeds, Draw, group_of, masks
from slurm_sns.node.resctrl.groups import CannotMake, Files, GroupGone, Groups, ResctrlError
from slurm_sns.node.resctrl.machine import Cache, Machine, discover
from slurm_sns.node.ways.layout import DomainLayouts, Layout, Need, Shape, domain_layouts, ways_for_jobs
from slurm_sns.node.ways.masks import union

#: How many cores with these CPUs (None: all) each cache of this level has, by its id; empty if that is not known.
CoresByCache = Callable[[Sequence[int] | None, int], Mapping[int, int]]


class JobNeeds(NamedTuple):
    """What a job is to have: ways of each cache domain that it uses, GB/s on the node.

    `cores` are its cores in each domain, None if they are not known: then it uses every domain. `since` is smaller for
    jobs that came earlier. `sampled_ways`: it has no more than these ways for the moment; 0: all that it can have.
    """

    job_id: int
    ways: int
    gbps: float = 0
    cores: Mapping[int, int] | None = None
    since: int = 0
    sampled_ways: int = 0


@dataclass(frozen=True)
class NodeLimits:
    """The ways of the shared group; the bandwidth of a cache domain in GB/s.

    Where that is not known no job's bandwidth is limited.
    """

    shared_ways: int
    peak_gbps: float | None = None


class Partition:
    """The tree of `groups` on this machine."""

    def __init__(self, groups: Groups, machine: Machine, limits: NodeLimits) -> None:
        self.groups, self.machine, self.limits = groups, machine, limits
        self.planned = DomainLayouts({}, {})
        #: The layouts in force: those planned, narrowed for a job that is being sampled.
        self._in_force: Mapping[int, Layout] = {}
        self._has_groups: frozenset[int] = frozenset()
        self._is_known = False
        self._ways_for_jobs: int | None = None

    @property
    def ways_for_jobs(self) -> int:
        """The ways of a domain that jobs can have together, by the last layout; 0 if it cannot be partitioned.

        Raises:
            ResctrlError: there has been no layout yet, and the tree cannot be read.
        """
        if self._ways_for_jobs is None:
            self._note_room(shapes(self.machine, self.groups))
        return self._ways_for_jobs or 0

    def closids_for_jobs(self) -> int:
        """How many jobs can have a CLOSID; 0 if the tree is gone."""
        try:
            return closids_for_jobs(self.machine.closids, len(self.groups.foreign()))
        except ResctrlError:
            return 0

    @property
    def limits_bandwidth(self) -> bool:
        """Whether the bandwidth of jobs is limited here."""
        return self.machine.bandwidth is not None and self.limits.peak_gbps is not None

    def bring_about(self, jobs: Sequence[JobNeeds]) -> Applied:
        """Lay out the jobs, which are all that are here, and put that into force. Threads come after: `move`.

        Raises:
            ResctrlError: a write was refused. What is written stays, and is safe; call again.
        """
        with self.groups.lock():
            self.lay_out(jobs)
            return self.apply(jobs)

    def lay_out(self, jobs: Sequence[JobNeeds]) -> None:
        """Plan the layouts of the domains; nothing is written."""
        needs = [Need(job.job_id, job.ways, job.since, tuple(self._cores(job))) for job in jobs]
        if self._is_known:
            before: Mapping[int, Mapping[int, int]] = self.planned.guaranteed()
        else:
            before = standing(self.machine, self.groups, {job.job_id: job.ways for job in jobs})
        found = shapes(self.machine, self.groups)
        self._note_room(found)
        self.planned = domain_layouts(before, needs, self.limits.shared_ways, found)

    def apply(self, jobs: Sequence[JobNeeds]) -> Applied:
        """Put the planned layouts and the bandwidth of the jobs into force.

        Raises:
            ResctrlError: as `bring_about`.
        """
        self._is_known = False  # until all is written
        sampled = {job.job_id: job.sampled_ways for job in jobs if job.sampled_ways}
        layouts = {domain: self._narrowed(each, sampled) for domain, each in self.planned.layouts.items()}
        applied = apply(self.groups, self.machine, layouts, self._bandwidth(jobs))
        self._in_force, self._is_known = layouts, True
        present = set(self.groups.names())
        self._has_groups = frozenset(job.job_id for job in jobs if group_of(job.job_id) in present)
        self._forget_monitors(jobs)
        return applied

    def move(self, job_id: int, list_threads: Callable[[], Iterable[int]]) -> None:
        """Put the job's threads where they belong: into its group, else into the shared group.

        Raises:
            ResctrlError: a thread may not be moved, or the tree is gone.
        """
        if job_id in self._has_groups:
            self.groups.move_all(group_of(job_id), list_threads)
            return
        if SHARED not in self.groups.names():
            return
        with self.groups.lock():
            self.groups.move_all(SHARED, list_threads)
            if self.monitor_of(job_id):
                inside = self.groups.tasks(SHARED, group_of(job_id))
                self.groups.move(SHARED, sorted(set(list_threads()) - set(inside)), group_of(job_id))

    def place(self, job_id: int, threads: Iterable[int]) -> bool:
        """Put these threads of the job where they belong; False if it is not counted apart there.

        A job of the shared group is counted apart while the machine has an RMID left.

        Raises:
            ResctrlError: as `move`.
        """
        if job_id not in self._has_groups and self.machine.monitoring is not None and SHARED in self.groups.names():
            with suppress(CannotMake), self.groups.lock():
                self.groups.make(SHARED, group_of(job_id))
        self.move(job_id, partial(tuple, threads))
        return self.has_group(job_id) or self.monitor_of(job_id)

    def monitor_of(self, job_id: int) -> bool:
        """Whether the job has a monitoring group in the shared group."""
        return job_id not in self._has_groups and group_of(job_id) in self.groups.monitors(SHARED)

    def has_group(self, job_id: int) -> bool:
        """Whether the job has a group of its own."""
        return job_id in self._has_groups

    def ways_of(self, job_id: int) -> int:
        """The ways that the job has for itself in each domain that it uses, the fewest of them; 0 if it has none.

        The layout has ways for a job, too, whose group the kernel did not make: it runs in the shared group.
        """
        if job_id not in self._has_groups:
            return 0
        granted = [each.granted[job_id] for each in self._in_force.values() if job_id in each.granted]
        return min((mask.bit_count() for mask in granted), default=0)

    def ways_in_tree(self, job_id: int) -> int:
        """The ways of the group that the tree shows for the job, whoever made it; 0 without a group.

        Raises:
            ResctrlError: the tree cannot be read.
        """
        try:
            shown = masks(self.machine, self.groups.read(group_of(job_id)))
        except GroupGone:
            return 0
        return min((mask.bit_count() for mask in shown.values()), default=0)

    def shared_ways(self) -> int:
        """The ways of the shared group; 0 if the cache cannot be partitioned."""
        return min((each.shared.bit_count() for each in self._in_force.values()), default=0)

    def confine_system(self) -> None:
        """Move what runs in the root group into the shared group. What they start later inherits it."""
        if SHARED in self.groups.names():
            self.groups.move_all(SHARED, self.groups.root_tasks)

    def is_in_order(self) -> bool:
        """Whether the groups in the tree are those that were made; their masks are not looked at."""
        try:
            present = set(self.groups.names())
        except ResctrlError:
            return False
        wanted = {group_of(job_id) for job_id in self._has_groups} | ({SHARED} if self._in_force else set())
        return self._is_known and present == wanted

    def _note_room(self, found: Mapping[int, Shape]) -> None:
        each = (ways_for_jobs(self.limits.shared_ways, shape) for shape in found.values())
        self._ways_for_jobs = min(each, default=0)

    def _cores(self, job: JobNeeds) -> Mapping[int, int]:
        if job.cores is not None:
            return job.cores
        domains = {domain for cache in self.machine.last_level for domain in cache.domains}
        if self.machine.bandwidth is not None:
            domains |= set(self.machine.bandwidth.domains)
        return dict.fromkeys(sorted(domains), 1)

    def _bandwidth(self, jobs: Sequence[JobNeeds]) -> BandwidthNeeds | None:
        if self.limits.peak_gbps is None:
            return None
        draws = {job.job_id: Draw(job.gbps, self._cores(job)) for job in jobs}
        return BandwidthNeeds(draws, self.limits.peak_gbps)

    def _narrowed(self, layout: Layout, sampled: Mapping[int, int]) -> Layout:
        """The layout in which each sampled job has only so many of its ways. The rest of them is nobody's."""
        shareable = union(cache.shareable for cache in self.machine.last_level)
        runs = {
            job_id: run_inside(layout.granted[job_id], ways, shareable)
            for job_id, ways in sampled.items()
            if job_id in layout.granted and ways < layout.granted[job_id].bit_count()
        }
        narrow = {job_id: mask for job_id, mask in runs.items() if mask}
        if not narrow:
            return layout
        return replace(layout, guaranteed={**layout.guaranteed, **narrow}, granted={**layout.granted, **narrow})

    def _forget_monitors(self, jobs: Sequence[JobNeeds]) -> None:
        """Remove the monitoring groups of jobs that have ended or have a group of their own now."""
        if SHARED not in self.groups.names():
            return
        wanted = {group_of(job.job_id) for job in jobs if job.job_id not in self._has_groups}
        for name in self.groups.monitors(SHARED):
            if name not in wanted:
                self.groups.remove(SHARED, name)


class NodeTree:
    """The tree at `root`, if there is one. `missing` says what is missing there, in the order in which to repair it."""

    def __init__(
        self,
        root: Path,
        limits: Callable[[Machine], NodeLimits],
        *,
        missing: Callable[[], Sequence[str]],
        log: Callable[[str], None],
        observes: bool = False,
        files: Files | None = None,
    ) -> None:
        self.root, self._limits, self._missing, self._log = root, limits, missing, log
        self._observes, self._files = observes, files
        #: The device of the tree at the last look, None if there was none; -1 before the first look.
        self._mounted: int | None = -1
        self.partition: Partition | None = None
        #: Why nothing is partitioned here; empty if it is.
        self.why_not = "the agent only observes" if observes else ""
        #: What went wrong with the last change; empty if nothing did.
        self.trouble = ""
        #: The jobs whose groups the last `bring_about` has made.
        self.made: tuple[int, ...] = ()
        #: The jobs for whose groups the kernel had no room then: to be tried again.
        self.refused: tuple[int, ...] = ()
        self._without: dict[int, str] = {}
        self._unmonitored: set[int] = set()

    def look(self) -> bool:
        """See which tree is there; True if it is another one than at the last look: nothing of ours is in it yet."""
        mounted = _device(self.root)
        if mounted == self._mounted and (self.partition is not None or mounted is None or self._observes):
            return False
        changed, self._mounted, self.partition = mounted != self._mounted, mounted, None
        if self._observes:
            return changed
        try:
            reasons = self._missing()
            if not reasons and mounted is not None:
                machine = discover(self.root)
                if machine.last_level or machine.bandwidth:
                    self.partition = Partition(Groups(self.root, files=self._files), machine, self._limits(machine))
                else:
                    reasons = [f"{self.root} offers neither cache ways nor bandwidth"]
        except SnsError as problem:
            reasons = [str(problem)]
        why_not = "; ".join(reasons) if self.partition is None else ""
        if why_not != self.why_not:
            self._log(f"the caches of this node are not partitioned: {why_not}" if why_not else "partitions the caches")
        self.why_not = why_not
        return changed or self.partition is not None

    def ways_for_jobs(self) -> int:
        """The ways that jobs can have together; 0 where nothing is partitioned. Read anew with each layout."""
        try:
            return 0 if self.partition is None else self.partition.ways_for_jobs
        except SnsError:
            return 0

    def known_cores(self, cpus: Sequence[int] | None, cores: CoresByCache) -> Mapping[int, int]:
        """How many cores with these CPUs (None: all) each cache domain has; empty if that is not known of all of them.

        Without CPUs it is not known either: nothing limits the job to any.
        """
        cache = self._last_level
        if self.partition is None or cache is None or (cpus is not None and not cpus):
            return {}
        found = cores(cpus, int(cache.name[1]))
        # Bandwidth is limited by the same domains, or the job counts in all of them.
        bandwidth = self.partition.machine.bandwidth
        are_same = bandwidth is None or bandwidth.domains == cache.domains
        return found if are_same and found.keys() <= set(cache.domains) else {}

    def core_counts(self, cores: Mapping[int, int]) -> tuple[int, ...]:
        """These cores by cache domain, in the order of the domains; empty if none is known."""
        cache = self._last_level
        return () if cache is None or not cores else tuple(cores.get(domain, 0) for domain in cache.domains)

    def limits_bandwidth(self, job_id: int) -> bool:
        """Whether the job's bandwidth is limited."""
        return self.partition is not None and self.partition.limits_bandwidth and self.partition.has_group(job_id)

    def least_ways(self) -> int:
        """The fewest ways of a mask."""
        return 1 if self._last_level is None else self._last_level.least_bits

    def bring_about(self, jobs: Sequence[JobNeeds]) -> bool:
        """Put this into force; False if that is to be tried again (`trouble` says why)."""
        self.made = self.refused = ()
        if self.partition is None:
            return True
        try:
            applied = self.partition.bring_about(jobs)
        except SnsError as problem:
            self._say(str(problem))
            return False
        self.made, self.refused = applied.made, applied.refused
        self._unmonitored.intersection_update(job.job_id for job in jobs)
        self._without = {**self.partition.planned.without, **applied.without}
        self._say("")
        return True

    def place(self, job_id: int, threads: Iterable[int]) -> None:
        """Put threads of a job where they belong. What is refused is tried again with the next call."""
        if self.partition is None:
            return
        try:
            if self.partition.place(job_id, threads) or self.partition.machine.monitoring is None:
                self._unmonitored.discard(job_id)
            elif job_id not in self._unmonitored:
                self._unmonitored.add(job_id)
                self._log(f"job {job_id} is not counted apart: no monitoring group is left")
        except SnsError as problem:
            self._say(str(problem))

    def confine_system(self) -> None:
        """Move what runs in the root group into the shared group."""
        if self.partition is not None:
            try:
                self.partition.confine_system()
            except SnsError as problem:
                self._say(str(problem))

    def is_in_order(self) -> bool:
        """Whether the tree has the groups that were made."""
        return self.partition is None or self.partition.is_in_order()

    def group_of(self, job_id: int) -> Path | None:
        """The directory in whose files the job is counted; None if it is not counted apart."""
        if self.partition is None:
            return None
        try:
            if self.partition.has_group(job_id):
                return self.partition.groups.directory(group_of(job_id))
            if self.partition.monitor_of(job_id):
                return self.partition.groups.directory(SHARED, group_of(job_id))
        except SnsError:
            pass  # the tree has gone
        return None

    def has_ways(self, job_id: int) -> int:
        """The ways that the job has for itself in each domain; 0 if it has none."""
        return 0 if self.partition is None else self.partition.ways_of(job_id)

    def ways_in_tree(self, job_id: int) -> int:
        """The ways of a group of the job that is there already; 0 if there is none.

        One that has more than jobs can have was made and not written: an agent was killed in between.
        """
        try:
            found = 0 if self.partition is None else self.partition.ways_in_tree(job_id)
        except SnsError:
            return 0
        return found if found <= self.ways_for_jobs() else 0

    def shared_ways(self) -> int:
        """The ways of the shared group; 0 where nothing is partitioned."""
        return 0 if self.partition is None else self.partition.shared_ways()

    def why_without(self, job_id: int) -> Sequence[str]:
        """Why the job has no ways: the node's reasons, then those of the layout."""
        return (self.why_not, self.trouble, self._without.get(job_id, ""))

    @property
    def _last_level(self) -> Cache | None:
        """The cache that jobs share, if it can be partitioned; where code and data are apart, they are alike."""
        return None if self.partition is None else next(iter(self.partition.machine.last_level), None)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self._log(trouble or "all is in force again")
        self.trouble = trouble


def _device(root: Path) -> int | None:
    """The device of the tree, which another mount does not have as long as this one stands; None if there is none."""
    try:
        return root.stat().st_dev if (root / "info").is_dir() else None
    except OSError:
        return None
