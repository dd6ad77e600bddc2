"""A node as its agent sees it, for tests: jobs come and go, each layout starts from the one before, threads follow."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from slurm_sns.node.agent.tree import JobNeeds, NodeLimits, Partition
from slurm_sns.node.apply import Applied
from slurm_sns.node.group_writes import group_of, job_of, masks
from slurm_sns.node.resctrl.groups import Files, Groups
from slurm_sns.node.resctrl.machine import discover
from slurm_sns.node.ways.layout import DomainLayouts, Layout
from slurm_sns.node.ways.masks import spans, union

#: Two memory controllers of the paper's node have 118.26 GB/s together (STREAM).
PEAK_GBPS = 59.13
SHARED_WAYS = 2


class Running(NamedTuple):
    """A job on the node: its ways and GB/s, and its cores in each cache domain; None: four in every domain."""

    job_id: int
    ways: int
    gbps: float = 0
    cores: Mapping[int, int] | None = None


class Agent:
    """The agent's partition of a node, and the threads of its jobs."""

    def __init__(self, root: Path, files: Files | None = None, shared_ways: int = SHARED_WAYS) -> None:
        self.machine, limits = discover(root), NodeLimits(shared_ways, PEAK_GBPS)
        self._partition = Partition(Groups(root, files=files), self.machine, limits)

    def threads(self, job: Running) -> Sequence[int]:
        """The job's threads. Here it has one, whose number is 1000 more than the job's."""
        return [1000 + job.job_id]

    def cores(self, job: Running) -> Mapping[int, int]:
        if job.cores is not None:
            return job.cores
        resources = [*self.machine.last_level, *([self.machine.bandwidth] if self.machine.bandwidth else [])]
        return dict.fromkeys(sorted({domain for each in resources for domain in each.domains}), 4)

    @property
    def planned(self) -> DomainLayouts:
        return self._partition.planned

    @property
    def groups(self) -> Groups:
        return self._partition.groups

    @groups.setter
    def groups(self, groups: Groups) -> None:
        self._partition.groups = groups

    @property
    def shared_ways(self) -> int:
        return self._partition.limits.shared_ways

    @shared_ways.setter
    def shared_ways(self, ways: int) -> None:
        self._partition.limits = replace(self._partition.limits, shared_ways=ways)

    @property
    def layouts(self) -> Mapping[int, Layout]:
        return self.planned.layouts

    def lay_out(self, *jobs: Running) -> None:
        self._partition.lay_out(self._needs(jobs))

    def lay_out_after_a_restart(self, *jobs: Running) -> None:
        """All that is known of the time before is what the tree shows."""
        self._partition = Partition(self.groups, self.machine, self._partition.limits)
        self.lay_out(*jobs)

    def apply(self, *jobs: Running) -> Applied:
        """Bring the layouts into force and move the jobs' threads."""
        applied = self._partition.apply(self._needs(jobs))
        for job in jobs:
            self._partition.move(job.job_id, lambda job=job: self.threads(job))
        return applied

    def masks(self) -> dict[str, dict[int, int]]:
        """The ways in force by group and domain."""
        return {name: masks(self.machine, self.groups.read(name)) for name in self.groups.names()}

    def owners(self) -> set[int]:
        """The jobs that own ways in a domain."""
        return {job for each in self.layouts.values() for job in each.guaranteed}

    def is_in_force(self) -> bool:
        """Whether every group has the ways that the layouts say."""
        return all(
            shown[domain] == wanted(each, name)
            for name, shown in self.masks().items()
            for domain, each in self.layouts.items()
        )

    def _needs(self, jobs: Sequence[Running]) -> list[JobNeeds]:
        return [JobNeeds(job.job_id, job.ways, job.gbps, self.cores(job), since=job.job_id) for job in jobs]


def wanted(plan: Layout, name: str) -> int:
    """The mask that a group is to have."""
    job_id = job_of(name)
    return plan.shared if job_id is None else plan.granted.get(job_id, plan.shared)


def unguarded(agent: Agent, ways: Mapping[int, int], inhabited: Collection[str]) -> list[tuple[int, int]]:
    """The jobs, with the domain, that have fewer ways for themselves than they own.

    Only the groups in which threads are count: the ways of the others are in nobody's way. Their masks are valid, too.
    """
    shown = {name: by_domain for name, by_domain in agent.masks().items() if name in inhabited}
    if not agent.machine.last_level[0].is_sparse:
        assert all(len(spans(mask)) == 1 for by_domain in shown.values() for mask in by_domain.values())
    found = []
    for job, owned in ways.items():
        for domain in [domain for domain, each in agent.layouts.items() if job in each.guaranteed]:
            others = union(by_domain[domain] for name, by_domain in shown.items() if name != group_of(job))
            if (shown[group_of(job)][domain] & ~others).bit_count() < owned:
                found.append((job, domain))
    return found


# Each mix runs after the one above it. Domain 0 is on every machine; job 2 has its cores there alone.
MIXES: Mapping[str, tuple[Running, ...]] = {
    "nothing runs": (),
    "a job arrives: 3 ways, 40 GB/s": (Running(1, 3, 40),),
    "a second one, on domain 0 alone: 2 ways, 5 GB/s": (Running(1, 3, 40), Running(2, 2, 5, {0: 4})),
    "a third one without a need of bandwidth: 1 way": (Running(1, 3, 40), Running(2, 2, 5, {0: 4}), Running(3, 1)),
    "the first one ends": (Running(2, 2, 5, {0: 4}), Running(3, 1)),
    "one with bandwidth alone": (Running(2, 2, 5, {0: 4}), Running(3, 1), Running(4, 0, 10)),
    "one that is too large for the machine": (Running(2, 2, 5, {0: 4}), Running(5, 100, 30)),
    "all end": (),
}
_GOLDEN = Path(__file__).parent / "golden"


def assert_is_accepted(name: str, text: str, tmp_path: Path) -> None:
    """The text is that of the golden file; if it is not, say how to accept it."""
    golden, made = _GOLDEN / f"{name}.txt", tmp_path / f"{name}.txt"
    made.write_text(text)
    accept = f"\nThis differs from {golden}. If it is right, accept it:\n    cp {made} {golden}"
    assert text == (golden.read_text() if golden.is_file() else ""), accept
