"""Compares the rendered resctrl.yaml with what the nodes report: each line of it that a node does not agree with.

A line that breaks a guarantee is wrong: fewer ways than the scheduler gives away, no resctrl. One that costs something
(some jobs run without ways of their own, bandwidth is not limited) is a warning. How many GB/s a node has, no machine
reports.

A node that nobody enforces yet has no groups of ours: nothing is said of it. What an agent's work shows for a moment is
right, too: a group that it has just made has all ways until its masks are written, and no tasks until then.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import yaml

from slurm_sns.closids import FEWEST, closids_for_jobs
from slurm_sns.config import grammar
from slurm_sns.slurm.check import Finding, merged, warning
from slurm_sns.slurm.check.node_reports import NodeReport, NodeReports, ReportedGroup

MOUNT = "mount -t resctrl resctrl /sys/fs/resctrl"
#: One node type of resctrl.yaml.
NodeTypeEntry = Mapping[str, Any]
#: The ways of a group by cache domain.
WaysByDomain = Mapping[str, int]

CHANGED = "somebody has changed schemata, or the node works with another sns.yaml: sns node show"


def _line(name: str) -> str:
    """The title of a finding about this line of resctrl.yaml."""
    return f"NODES: resctrl.yaml, {name}"


def findings(rendered: str, found: NodeReports) -> Iterator[Finding]:
    """Compare the text of resctrl.yaml with the reports."""
    for why in found.unreadable:
        yield Finding(ok=False, what="node reports can be read", found=why, advice="let that node report again")
    node_types = yaml.safe_load(rendered)["node_types"]
    types = {name: each for each in node_types for name in grammar.node_names(each["nodes"])}
    yield from merged(_findings(types, found.reports))


def _findings(types: Mapping[str, NodeTypeEntry], reports: Mapping[str, NodeReport]) -> Iterator[tuple[str, Finding]]:
    for name, report in reports.items():
        if name not in types:
            advice = "sns.yaml, nodes: add it; or let it report under its name in Slurm: sns node show --node NAME"
            yield name, warning(False, "NODES: in no node type of resctrl.yaml", "a report", "", advice)
        elif types[name]["gres"]:
            for finding in _compared(types[name], report):
                yield name, finding
    for name, node_type in types.items():
        if node_type["gres"] and name not in reports:
            advice = "on the node: sns node show --json; give its output to --node-reports, too"
            yield name, warning(False, "NODES: not compared with resctrl.yaml", "no report", "", advice)


def _compared(node_type: NodeTypeEntry, report: NodeReport) -> Iterator[Finding]:
    """Compare the lines of a node type, in their order."""
    if report.missing:
        # What a report says stands in `found` alone, which is printed with care.
        found = "; ".join(report.missing)
        advice = "on each of them: sns node show"
        yield Finding(ok=False, what="NODES: resctrl is mounted", found=found, wanted=MOUNT, advice=advice)
        return
    found, wanted = ",".join(sorted(report.mount_options)), ",".join(sorted(node_type["mount_options"]))
    yield warning(
        found == wanted,
        _line("mount_options"),
        found or "none",
        wanted or "none",
        f"on each of them, while no job runs there: umount /sys/fs/resctrl && {MOUNT}",
    )
    if "llc" in node_type["gres"]:
        yield _ways(node_type, report)
    if "membw" in node_type["gres"]:
        yield warning(
            report.bandwidth is not None,
            _line("gres: membw"),
            "no bandwidth control" if report.bandwidth is None else "bandwidth control",
            "bandwidth control",
            "the scheduler still counts the bandwidth; no job is kept from using more than it counts for that job",
        )
    yield _closids(node_type, report)
    has_ways = "llc" in node_type["gres"] and bool(report.caches)
    if has_ways:
        yield from _least_ways(node_type, report.caches[0].least_ways)
    yield from _group_names(node_type, report)
    if has_ways:
        yield from _Ways(node_type, report).findings()


def _ways(node_type: NodeTypeEntry, report: NodeReport) -> Finding:
    wanted = node_type["gres"]["llc"]
    if not report.caches:
        advice = "sns.yaml, nodes: llc_ways: 0, because no cache of these machines can be partitioned"
        return Finding(ok=False, what=_line("gres: llc"), found="no cache control", wanted=str(wanted), advice=advice)
    there = report.caches[0].ways
    return Finding(
        there >= wanted,
        _line("gres: llc"),
        str(there),
        str(wanted),
        advice=f"sns.yaml, nodes: llc_ways: {there}"
        + ("; the ways above that are spare: they go to the jobs that are there" if there > wanted else ""),
        warning=there > wanted,
    )


def _closids(node_type: NodeTypeEntry, report: NodeReport) -> Finding:
    others = sum(group.kind == "other" for group in report.groups)
    jobs = closids_for_jobs(report.closids, others)
    besides = f", {others} of them in groups of others" if others else ""
    usable = report.closids - others
    is_countable = "llc" in node_type["gres"] and usable >= FEWEST
    counting = (
        f"; sns.yaml, nodes: closids: {usable}, and no more jobs with ways are planned there" if is_countable else ""
    )
    return warning(
        jobs >= node_type["job_groups"]["most"],
        _line("closids"),
        f"{report.closids}{besides}",
        f"at least {node_type['closids']}",
        f"at most {jobs} jobs of a node have ways or bandwidth of their own; the others run unpartitioned{counting}",
    )


def _least_ways(node_type: NodeTypeEntry, least: int) -> Iterator[Finding]:
    """The shared group can have its ways, and so can each job; `least` is the fewest of a mask."""
    of_shared = node_type["shared_group"]["ways"]
    if of_shared:
        advice = f"sns.yaml, spread_n_share: shared_ways: {least}"
        found = f"masks of at least {least} ways"
        yield Finding(of_shared >= least, _line("shared_group: ways"), found, str(of_shared), advice=advice)
    wanted = node_type["job_groups"]["least_ways"]
    advice = "jobs that ask for fewer get more than the scheduler counts; the last of them may run unpartitioned"
    yield warning(least <= wanted, _line("job_groups: least_ways"), str(least), f"at most {wanted}", advice)


def _group_names(node_type: NodeTypeEntry, report: NodeReport) -> Iterator[Finding]:
    jobs, most = len(_of_kind(report, "job")), node_type["job_groups"]["most"]
    if jobs:
        advice = (
            "jobs that ask for one way (--gres=llc:1) or for bandwidth alone have groups, too: each takes a CLOSID "
            "that a job with profile may lack; a group whose job has ended: the next layout removes it"
        )
        yield warning(jobs <= most, _line("job_groups: most"), str(jobs), f"at most {most}", advice)
    strays = _of_kind(report, "stray")
    if strays:
        name, prefix = node_type["shared_group"]["name"], node_type["job_groups"]["prefix"]
        advice = "each has a CLOSID until the next layout removes it; without an agent on the node: rmdir"
        found = ", ".join(sorted(group.name for group in strays))
        yield warning(False, _line("names of groups"), found, f"{name}, {prefix} with a number", advice)


class _Ways:
    """The ways in force on a node with a cache that can be partitioned."""

    def __init__(self, node_type: NodeTypeEntry, report: NodeReport) -> None:
        cache = report.caches[0]
        self._all, self._least = (1 << cache.ways) - 1, cache.least_ways
        self._shared_ways: int = node_type["shared_group"]["ways"]
        self._job_ways: int = node_type["job_groups"]["ways"]
        self._least_of_job: int = node_type["job_groups"]["least_ways"]
        self._has_jobs = bool(_of_kind(report, "job"))
        self._others = {group.name: _masks(group) for group in _of_kind(report, "other")}
        shared = _of_kind(report, "shared")
        self._shared: WaysByDomain | None = _masks(shared[0]) if shared else None
        #: Of each job the ways that are its own. In a domain without any it has exactly those of the shared group.
        self._jobs = {group.name: self._own(group) for group in _of_kind(report, "job")}

    def findings(self) -> Iterator[Finding]:
        if self._has_jobs:
            advice = "jobs without profile run in the root group, on all ways: the next layout makes the group"
            has_shared = self._shared is not None
            yield Finding(has_shared, _line("shared_group: name"), "none", "beside groups of jobs", advice=advice)
        if self._shared:
            yield from self._shared_in_force(self._shared)
        if any(self._jobs.values()):
            yield from self._jobs_in_force()
        if self._others:
            yield self._groups_of_others()

    def _own(self, group: ReportedGroup) -> WaysByDomain:
        shared = self._shared or {}
        return {
            domain: mask
            for domain, mask in _masks(group).items()
            if mask != shared.get(domain, 0) and not (group.tasks == 0 and mask == self._all)
        }

    def _shared_in_force(self, shared: WaysByDomain) -> Iterator[Finding]:
        if self._shared_ways:
            yield self._shared_number(shared)
        overlapped = [
            name
            for name, own in self._jobs.items()
            if any(self._is_taken(mask, shared.get(domain, 0)) for domain, mask in own.items())
        ]
        found = f"also in {', '.join(sorted(overlapped))}"
        what = f"{_line('shared_group: ways')} are no job's"
        yield Finding(not overlapped, what, found, "in no group of a job", advice=CHANGED)

    def _shared_number(self, shared: WaysByDomain) -> Finding:
        in_force = {domain: mask.bit_count() for domain, mask in shared.items()}
        too_many = [ways for domain, ways in in_force.items() if ways > self._most_shared(domain, ways)]
        fewest = min(in_force.values(), default=self._shared_ways)
        is_enough = fewest >= self._shared_ways
        found = max(too_many) if is_enough and too_many else fewest
        what = f"{_line('shared_group: ways')} in force"
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
        what = f"{_line('job_groups: ways')} are one job's each"
        found = f"several have the same: {', '.join(sorted(overlapping))}"
        yield Finding(not overlapping, what, found, "no two jobs have the same", advice=CHANGED)

        fewest = min(mask.bit_count() for own in self._jobs.values() for mask in own.values())
        advice = f"right for a job that asks for fewer (--gres=llc:1) only; else {CHANGED}"
        what, wanted = f"{_line('job_groups: least_ways')} in force", f"at least {self._least_of_job}"
        yield warning(fewest >= self._least_of_job, what, str(fewest), wanted, advice)

        # Of ways that sns.yaml does not count, the spare ones, jobs may have all.
        together = max(_union(self._jobs, domain).bit_count() for own in self._jobs.values() for domain in own)
        most = max(self._job_ways, self._all.bit_count() - self._shared_ways)
        what = f"{_line('job_groups: ways')} in force"
        yield warning(together <= most, what, str(together), f"at most {most}", CHANGED)

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
        what, wanted = f"{_line('job_groups: ways')} are no one else's", "in no group of others"
        advice = "who has made these groups gives them other ways, or sns.yaml, nodes: a smaller llc_ways"
        found = f"also in {', '.join(sorted(of_jobs or too_large))}"
        return Finding(not of_jobs, what, found, wanted, advice=advice, warning=not of_jobs and bool(too_large))


def _of_kind(report: NodeReport, kind: str) -> list[ReportedGroup]:
    return [group for group in report.groups if group.kind == kind]


def _masks(group: ReportedGroup) -> WaysByDomain:
    return {domain: int(mask, 16) for domain, mask in group.masks.items()}


def _union(groups: Mapping[str, WaysByDomain], domain: str) -> int:
    union = 0
    for masks in groups.values():
        union |= masks.get(domain, 0)
    return union


def _overlap(first: WaysByDomain, second: WaysByDomain) -> bool:
    return any(mask & second.get(domain, 0) for domain, mask in first.items())
