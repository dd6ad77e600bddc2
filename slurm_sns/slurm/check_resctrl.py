"""Compares the rendered resctrl.yaml with what the nodes report: each line of it that a node does not agree with. Pure.

A line that breaks a guarantee is wrong: fewer ways than the scheduler gives away, no resctrl. One that costs something
(some jobs run without ways of their own, bandwidth is not limited) is a warning. How many GB/s a node has, no machine
reports. What the groups that are there have is compared in check_groups.py.
"""

from collections.abc import Iterator, Mapping

import yaml

from slurm_sns.closids import FEWEST, closids_for_jobs
from slurm_sns.config import grammar
from slurm_sns.slurm.check import merged
from slurm_sns.slurm.check_finding import Finding
from slurm_sns.slurm.check_groups import NodeType, group_findings, line, warning
from slurm_sns.slurm.node_reports import NodeReport, NodeReports

MOUNT = "mount -t resctrl resctrl /sys/fs/resctrl"


def findings(rendered: str, found: NodeReports) -> Iterator[Finding]:
    """Compare the text of resctrl.yaml with the reports."""
    for why in found.unreadable:
        yield Finding(ok=False, what="node reports can be read", found=why, advice="let that node report again")
    types = {name: each for each in yaml.safe_load(rendered)["node_types"] for name in _names(each)}
    yield from merged(_findings(types, found.reports))


def _names(node_type: NodeType) -> tuple[str, ...]:
    return grammar.node_names(node_type["nodes"])


def _findings(types: Mapping[str, NodeType], reports: Mapping[str, NodeReport]) -> Iterator[tuple[str, Finding]]:
    for name, report in reports.items():
        if name not in types:
            advice = "sns.yaml, nodes: add it; or let it report under its name in Slurm: sns node show --node NAME"
            yield name, warning("NODES: in no node type of resctrl.yaml", "a report", "", advice)
        elif types[name]["gres"]:
            for finding in _compared(types[name], report):
                yield name, finding
    for name, node_type in types.items():
        if node_type["gres"] and name not in reports:
            advice = "on the node: sns node show --json; give its output to --node-reports, too"
            yield name, warning("NODES: not compared with resctrl.yaml", "no report", "", advice)


def _compared(node_type: NodeType, report: NodeReport) -> Iterator[Finding]:
    """Compare the lines of a node type, in their order."""
    if report.missing:
        # What a report says stands in `found` alone, which is printed with care.
        found = "; ".join(report.missing)
        advice = "on each of them: sns node show"
        yield Finding(ok=False, what="NODES: resctrl is mounted", found=found, wanted=MOUNT, advice=advice)
        return
    yield _mount_options(node_type, report)
    if "llc" in node_type["gres"]:
        yield _ways(node_type, report)
    if "membw" in node_type["gres"]:
        yield _bandwidth(report)
    yield _closids(node_type, report)
    if "llc" in node_type["gres"] and report.caches:
        if node_type["shared_group"]["ways"]:
            yield _shared_ways(node_type, report)
        yield _least_ways(node_type, report)
    yield from group_findings(node_type, report)


def _mount_options(node_type: NodeType, report: NodeReport) -> Finding:
    found, wanted = ",".join(sorted(report.mount_options)), ",".join(sorted(node_type["mount_options"]))
    return warning(
        line("mount_options"),
        found or "none",
        wanted or "none",
        f"on each of them, while no job runs there: umount /sys/fs/resctrl && {MOUNT}",
        is_well=found == wanted,
    )


def _ways(node_type: NodeType, report: NodeReport) -> Finding:
    wanted = node_type["gres"]["llc"]
    if not report.caches:
        advice = "sns.yaml, nodes: llc_ways: 0, because no cache of these machines can be partitioned"
        return Finding(ok=False, what=line("gres: llc"), found="no cache control", wanted=str(wanted), advice=advice)
    there = report.caches[0].ways
    return Finding(
        there >= wanted,
        line("gres: llc"),
        str(there),
        str(wanted),
        advice=f"sns.yaml, nodes: llc_ways: {there}"
        + ("; the ways above that are spare: they go to the jobs that are there" if there > wanted else ""),
        warning=there > wanted,
    )


def _bandwidth(report: NodeReport) -> Finding:
    return warning(
        line("gres: membw"),
        "no bandwidth control" if report.bandwidth is None else "bandwidth control",
        "bandwidth control",
        "the scheduler still counts the bandwidth; no job is kept from using more than it counts for that job",
        is_well=report.bandwidth is not None,
    )


def _closids(node_type: NodeType, report: NodeReport) -> Finding:
    others = sum(group.kind == "other" for group in report.groups)
    jobs = closids_for_jobs(report.closids, others)
    besides = f", {others} of them in groups of others" if others else ""
    usable = report.closids - others
    is_countable = "llc" in node_type["gres"] and usable >= FEWEST
    counting = (
        f"; sns.yaml, nodes: closids: {usable}, and no more jobs with ways are planned there" if is_countable else ""
    )
    return warning(
        line("closids"),
        f"{report.closids}{besides}",
        f"at least {node_type['closids']}",
        f"at most {jobs} jobs of a node have ways or bandwidth of their own; the others run unpartitioned{counting}",
        is_well=jobs >= node_type["job_groups"]["most"],
    )


def _shared_ways(node_type: NodeType, report: NodeReport) -> Finding:
    """The shared group can have its ways."""
    wanted, least = node_type["shared_group"]["ways"], report.caches[0].least_ways
    return Finding(
        wanted >= least,
        line("shared_group: ways"),
        f"masks of at least {least} ways",
        str(wanted),
        advice=f"sns.yaml, sns: shared_ways: {least}",
    )


def _least_ways(node_type: NodeType, report: NodeReport) -> Finding:
    least, wanted = report.caches[0].least_ways, node_type["job_groups"]["least_ways"]
    advice = "jobs that ask for fewer get more than the scheduler counts; the last of them may run unpartitioned"
    return warning(line("job_groups: least_ways"), str(least), f"at most {wanted}", advice, is_well=least <= wanted)
