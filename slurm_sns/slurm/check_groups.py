"""Compares the rendered resctrl.yaml with the groups that a node reports. Pure.

A node that nobody enforces yet has no groups of ours: nothing is said of it. What an agent's work shows for a moment is
right, too: a group that it has just made has all ways until its masks are written, and no tasks until then.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from slurm_sns.slurm.check_finding import Finding
from slurm_sns.slurm.node_reports import Group, NodeReport

#: One node type of resctrl.yaml.
NodeType = Mapping[str, Any]
#: The ways of a group by cache domain.
Masks = Mapping[str, int]

CHANGED = "somebody has changed schemata, or the node works with another sns.yaml: sns node show"


def line(name: str) -> str:
    """The title of a finding about this line of resctrl.yaml."""
    return f"NODES: resctrl.yaml, {name}"


def warning(what: str, found: str, wanted: str, advice: str, *, is_well: bool = False) -> Finding:
    """A warning, or if `is_well` that there is none."""
    return Finding(ok=True, warning=not is_well, what=what, found=found, wanted=wanted, advice=advice)


def group_findings(node_type: NodeType, report: NodeReport) -> Iterator[Finding]:
    """Compare names and number of the groups and, where a cache is partitioned, their ways."""
    yield from _names(node_type, report)
    if "llc" in node_type["gres"] and report.caches:
        yield from _Ways(node_type, report).findings()


def _names(node_type: NodeType, report: NodeReport) -> Iterator[Finding]:
    jobs, most = len(_of_kind(report, "job")), node_type["job_groups"]["most"]
    if jobs:
        advice = (
            "jobs that ask for one way (--gres=llc:1) or for bandwidth alone have groups, too: each takes a CLOSID "
            "that a job with profile may lack; a group whose job has ended: the next layout removes it"
        )
        yield warning(line("job_groups: most"), str(jobs), f"at most {most}", advice, is_well=jobs <= most)
    strays = _of_kind(report, "stray")
    if strays:
        name, prefix = node_type["shared_group"]["name"], node_type["job_groups"]["prefix"]
        advice = "each has a CLOSID until the next layout removes it; without an agent on the node: rmdir"
        yield warning(line("names of groups"), _named(strays), f"{name}, {prefix} with a number", advice)


class _Ways:
    """The ways in force on a node with a cache that can be partitioned."""

    def __init__(self, node_type: NodeType, report: NodeReport) -> None:
        cache = report.caches[0]
        self._all, self._least = (1 << cache.ways) - 1, cache.least_ways
        self._shared_ways: int = node_type["shared_group"]["ways"]
        self._job_ways: int = node_type["job_groups"]["ways"]
        self._least_of_job: int = node_type["job_groups"]["least_ways"]
        self._has_jobs = bool(_of_kind(report, "job"))
        self._others = {group.name: _masks(group) for group in _of_kind(report, "other")}
        shared = _of_kind(report, "shared")
        self._shared: Masks | None = _masks(shared[0]) if shared else None
        #: Of each job the ways that are its own. In a domain without any it has exactly those of the shared group.
        self._jobs = {group.name: self._own(group) for group in _of_kind(report, "job")}

    def findings(self) -> Iterator[Finding]:
        if self._has_jobs:
            yield self._shared_group()
        if self._shared:
            yield from self._shared_in_force(self._shared)
        if any(self._jobs.values()):
            yield from self._jobs_in_force()
        if self._others:
            yield self._groups_of_others()

    def _own(self, group: Group) -> Masks:
        shared = self._shared or {}
        return {
            domain: mask
            for domain, mask in _masks(group).items()
            if mask != shared.get(domain, 0) and not (group.tasks == 0 and mask == self._all)
        }

    def _shared_group(self) -> Finding:
        advice = "jobs without profile run in the root group, on all ways: the next layout makes the group"
        return Finding(
            self._shared is not None, line("shared_group: name"), "none", "beside groups of jobs", advice=advice
        )

    def _shared_in_force(self, shared: Masks) -> Iterator[Finding]:
        if self._shared_ways:
            yield self._shared_number(shared)
        overlapped = [
            name
            for name, own in self._jobs.items()
            if any(self._is_taken(mask, shared.get(domain, 0)) for domain, mask in own.items())
        ]
        found = f"also in {', '.join(sorted(overlapped))}"
        what = f"{line('shared_group: ways')} are no job's"
        yield Finding(not overlapped, what, found, "in no group of a job", advice=CHANGED)

    def _shared_number(self, shared: Masks) -> Finding:
        in_force = {domain: mask.bit_count() for domain, mask in shared.items()}
        too_many = [ways for domain, ways in in_force.items() if ways > self._most_shared(domain, ways)]
        fewest = min(in_force.values(), default=self._shared_ways)
        is_enough = fewest >= self._shared_ways
        found = max(too_many) if is_enough and too_many else fewest
        what = f"{line('shared_group: ways')} in force"
        is_warning = is_enough and bool(too_many)
        return Finding(is_enough, what, str(found), str(self._shared_ways), advice=CHANGED, warning=is_warning)

    def _most_shared(self, domain: str, ways: int) -> int:
        """How many ways the shared group may have. Without any job that owns ways there, it has the whole cache."""
        wanted = max(self._shared_ways, self._least)
        if any(domain in own for own in self._jobs.values()):
            return wanted
        free = self._all
        for masks in self._others.values():
            free &= ~masks.get(domain, 0)
        longest = max(map(len, f"{free:b}".split("0")))  # others may have theirs exclusively
        return ways if ways >= longest else wanted

    def _is_taken(self, mask: int, shared: int) -> bool:
        """Whether the shared group has ways of this job; with `shared_ways: 0`, whether it leaves none to the job.

        Then it has the ways that no job owns, which the jobs may use as well, or the fewest that the kernel takes.
        """
        if self._shared_ways:
            return bool(mask & shared)
        return not mask & ~shared and shared.bit_count() > self._least

    def _jobs_in_force(self) -> Iterator[Finding]:
        overlapping = {
            name
            for (first, ways), (second, others) in combinations(self._jobs.items(), 2)
            if _overlap(ways, others)
            for name in (first, second)
        }
        what = f"{line('job_groups: ways')} are one job's each"
        found = f"several have the same: {', '.join(sorted(overlapping))}"
        yield Finding(not overlapping, what, found, "no two jobs have the same", advice=CHANGED)

        fewest = min(mask.bit_count() for own in self._jobs.values() for mask in own.values())
        advice = f"right for a job that asks for fewer (--gres=llc:1) only; else {CHANGED}"
        what, wanted = f"{line('job_groups: least_ways')} in force", f"at least {self._least_of_job}"
        yield warning(what, str(fewest), wanted, advice, is_well=fewest >= self._least_of_job)

        # Of ways that sns.yaml does not count, the spare ones, jobs may have all.
        together = max(_union(self._jobs, domain).bit_count() for own in self._jobs.values() for domain in own)
        most = max(self._job_ways, self._all.bit_count() - self._shared_ways)
        what = f"{line('job_groups: ways')} in force"
        yield warning(what, str(together), f"at most {most}", CHANGED, is_well=together <= most)

    def _groups_of_others(self) -> Finding:
        """Ways of jobs that groups of others have, too; or where no job runs, whether enough are left for jobs."""
        of_jobs = [
            name for name, ways in self._others.items() if any(_overlap(ways, own) for own in self._jobs.values())
        ]
        too_large = [
            name
            for name, ways in self._others.items()
            if any((self._all & ~mask).bit_count() < self._job_ways for mask in ways.values())
        ]
        what, wanted = f"{line('job_groups: ways')} are no one else's", "in no group of others"
        advice = "who has made these groups gives them other ways, or sns.yaml, nodes: a smaller llc_ways"
        found = f"also in {', '.join(sorted(of_jobs or too_large))}"
        return Finding(not of_jobs, what, found, wanted, advice=advice, warning=not of_jobs and bool(too_large))


def _of_kind(report: NodeReport, kind: str) -> list[Group]:
    return [group for group in report.groups if group.kind == kind]


def _named(groups: list[Group]) -> str:
    return ", ".join(sorted(group.name for group in groups))


def _masks(group: Group) -> Masks:
    return {domain: int(mask, 16) for domain, mask in group.masks.items()}


def _union(groups: Mapping[str, Masks], domain: str) -> int:
    union = 0
    for masks in groups.values():
        union |= masks.get(domain, 0)
    return union


def _overlap(first: Masks, second: Masks) -> bool:
    return any(mask & second.get(domain, 0) for domain, mask in first.items())
