"""The resctrl tree of a node for its agent: whatever happens to the tree, the agent goes on and tries again.

The tree may be missing, appear later, be mounted anew (a node or an emulator was restarted), or refuse a change. An
agent that only observes writes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from slurm_sns.errors import SnsError
from slurm_sns.node.agent.partition import JobNeeds, NodeLimits, Partition, is_monitored
from slurm_sns.node.group_writes import SHARED, group_of
from slurm_sns.node.resctrl.groups import Files, Groups
from slurm_sns.node.resctrl.machine import Cache, Machine, discover

OBSERVES = "the agent only observes"

#: How many cores with these CPUs (None: all) each cache of this level has, by its id; empty if that is not known.
CoresByCache = Callable[[Sequence[int] | None, int], Mapping[int, int]]


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
        self.why_not = OBSERVES if observes else ""
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
        if self.partition is None or not self.partition.machine.last_level or (cpus is not None and not cpus):
            return {}
        machine = self.partition.machine
        cache = machine.last_level[0]
        found = cores(cpus, int(cache.name[1]))
        # Bandwidth is limited by the same domains, or the job counts in all of them.
        are_same = machine.bandwidth is None or machine.bandwidth.domains == cache.domains
        return found if are_same and found.keys() <= set(cache.domains) else {}

    def core_counts(self, cores: Mapping[int, int]) -> tuple[int, ...]:
        """These cores by cache domain, in the order of the domains; empty if none is known."""
        if self.partition is None or not self.partition.machine.last_level or not cores:
            return ()
        return tuple(cores.get(domain, 0) for domain in self.partition.machine.last_level[0].domains)

    def limits_bandwidth(self, job_id: int) -> bool:
        """Whether the job's bandwidth is limited."""
        return self.partition is not None and self.partition.limits_bandwidth and self.partition.has_group(job_id)

    def least_ways(self) -> int:
        """The fewest ways of a mask."""
        return max((each.least_bits for each in self._last_level()), default=1)

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
            if is_monitored(self.partition, job_id, threads) or self.partition.machine.monitoring is None:
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

    def _last_level(self) -> Sequence[Cache]:
        return () if self.partition is None else self.partition.machine.last_level

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
