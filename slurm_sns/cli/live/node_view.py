"""What `sns node show`, `sns node layout` and `sns agent --show` print: facts, one on each line, and a table."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from slurm_sns.cli.live.terminal import new_table, plain, show

if TYPE_CHECKING:
    from slurm_sns.node.agent.shown_types import AgentJson

Answer = Mapping[str, Any]

#: MB values: what the number is of, and how a value is written.
UNITS = {
    "percent": "percent of what a group's cores draw unthrottled",
    "eighth_gbps": "eighths of GB/s in each domain",
    "mib": "MiB/s in each domain",
}
#: What runs in a group, by its kind.
KINDS = {
    "root": "all that nobody has put into a group",
    "shared": "jobs without ways of their own, the system",
    "job": "a job",
    "stray": "none of a job; the next layout removes it",
    "other": "of another program",
}


def report_parts(report: Answer) -> Iterator[RenderableType]:
    """The report of a node."""
    yield f"[bold]node {plain(report['node'])}[/]  resctrl at {plain(report['root'])}"
    for why in report["missing"]:
        yield f"[bold red]! missing: {plain(why)}[/]"
    yield _facts(report)
    if report["groups"]:
        yield Text()
        yield _groups(report)


def _facts(report: Answer) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    if not report["missing"]:
        for name, text in _offers(report):
            facts.add_row(name, plain(text))
    for name, why_not in report["counters"].items():
        facts.add_row(name.replace("_", " "), plain(f"not counted: {why_not}" if why_not else "counted"))
    return facts


def _offers(report: Answer) -> Iterator[tuple[str, str]]:
    """What resctrl offers, by name."""
    yield "mount options", ", ".join(report["mount_options"]) or "none"
    for cache in report["caches"]:
        yield f"cache {cache['name']}", _cache(cache)
    if not report["caches"]:
        yield (
            "cache",
            "no cache control: no L3 or L2 in schemata; rdt=!l3cat on the kernel's command line hides it, too",
        )
    yield "bandwidth", _bandwidth(report["bandwidth"])
    yield "monitoring", _monitoring(report["monitoring"])
    for_jobs, others = report["closids_for_jobs"], sum(group["kind"] == "other" for group in report["groups"])
    taken = f", groups of others {others}" if others else ""
    yield "CLOSIDs", f"{report['closids']}: the root group 1, the shared group 1{taken}, jobs {for_jobs}"


def _cache(cache: Answer) -> str:
    devices = f", {cache['shareable']} of them used by devices, too" if int(cache["shareable"], 16) else ""
    form = "any ways" if cache["is_sparse"] else "adjacent ways"
    return (
        f"{cache['ways']} ways (mask {cache['mask']}{devices}) in each of {_domains(cache)}; "
        f"a group has {form}, at least {cache['least_ways']}; {cache['closids']} CLOSIDs"
    )


def _bandwidth(found: Answer | None) -> str:
    if found is None:
        return "no bandwidth control (MBA): no MB in schemata; jobs are not limited"
    limits = f"from {found['least']} to {found['most']} in steps of {found['step']}"
    return f"{UNITS[found['unit']]}, {limits}, in {_domains(found)}; {found['closids']} CLOSIDs"


def _monitoring(found: Answer | None) -> str:
    if found is None:
        return "none: what a group moves and occupies is not counted"
    return f"{', '.join(found['features'])} in {_domains(found)}; {found['rmids']} RMIDs"


def _domains(of: Answer) -> str:
    numbers = of["domains"]
    return f"{len(numbers)} {'domain' if len(numbers) == 1 else 'domains'} ({', '.join(map(str, numbers))})"


def _groups(report: Answer) -> Table:
    resources = list(dict.fromkeys(name for group in report["groups"] for name in group["schemata"]))
    with_occupancy = any(group["occupied_bytes"] is not None for group in report["groups"])
    figures = ("TASKS", "MIB IN CACHE") if with_occupancy else ("TASKS",)
    shown = new_table("GROUP", *resources, *figures, "OF", right=figures, overflow="fold")
    for group in report["groups"]:
        cells = [values(group["schemata"].get(name, {})) for name in resources]
        occupied = group["occupied_bytes"]
        in_cache = ["-" if occupied is None else f"{occupied / 2**20:.1f}"] if with_occupancy else []
        shown.add_row(plain(group["name"] or "(root)"), *cells, str(group["tasks"]), *in_cache, KINDS[group["kind"]])
    return shown


def values(by_domain: Mapping[str, str | int]) -> str:
    """The values of a line of schemata: one for all domains, or `domain=value` of each."""
    if len(set(by_domain.values())) == 1:
        return str(next(iter(by_domain.values())))
    return " ".join(f"{domain}={value}" for domain, value in by_domain.items()) or "-"


def layout_parts(answer: Answer) -> Iterator[RenderableType]:
    """The layout of a node, and what would be written."""
    if answer["is_changing"]:
        yield "[yellow]! another program holds the lock of the tree and may be changing it: ask again to be sure[/]"
    for domain, groups in answer["domains"].items():
        yield Text(f"cache domain {domain}", style="bold")
        yield _layout(groups, answer["mask"])
        yield ""
    for name, why in answer["without"].items():
        yield f"[yellow]! job {name} has no ways of its own: {plain(why)}[/]"
    if answer["moved"]:
        yield f"jobs whose own ways change: {', '.join(map(str, answer['moved']))}"
    yield Text("would be written, in this order" if answer["changes"] else "nothing would be written", style="bold")
    for change in answer["changes"]:
        yield from _change(change)


def _layout(groups: Answer, mask: str | None) -> Table:
    """The groups of one cache domain; without cache control their bandwidth alone."""
    shown = new_table("GROUP", *(["WAYS", "OWN", "MASK"] if mask else []), "MB", no_wrap=True)
    for name, group in groups.items():
        ways = [_picture(mask, group), group["guaranteed"] or "-", group["granted"] or "-"] if mask else []
        shown.add_row(plain(name), *ways, "-" if group["bandwidth"] is None else str(group["bandwidth"]))
    return shown


def _picture(mask: str, group: Answer) -> str:
    """The ways, the highest first, as in the mask: `#` its own, `+` others that it may use now."""
    own, granted = int(group["guaranteed"] or "0", 16), int(group["granted"] or "0", 16)
    places = reversed(range(int(mask, 16).bit_length()))
    return "".join("#" if own >> way & 1 else "+" if granted >> way & 1 else "." for way in places)


def _change(change: Answer) -> Iterator[str]:
    group = plain(change["group"])
    if change["do"] == "move":
        yield f"  move {change['threads']} threads to {group}"
    elif change["do"] == "write":
        for line in change["schemata"].splitlines():
            yield f"  write {group}/schemata  {plain(line)}"
    else:
        yield f"  {change['do']} {group}"


def print_shown(shown: "AgentJson", as_json: bool) -> None:
    """Print what an agent says of its node."""
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    ways = f"{shown['ways']} ways" if shown["ways"] else f"not partitioned: {shown['why_unpartitioned']}"
    connected = "connected" if shown["is_connected"] else "not connected"
    print(f"{shown['node']}: {shown['mode']}, {ways}; the controller is {connected}, {shown['reports']} reports wait")
    if shown["trouble"]:
        print(f"trouble: {shown['trouble']}")
    figures = ("HERE (s)", "WAYS", "GB/S", "THREADS")
    jobs = new_table("JOB", *figures, "MEASURED", "UNPARTITIONED BECAUSE", right=figures, pad_edge=True)
    for job in shown["jobs"]:
        measured = ", ".join(f"{each['ways']}: {_figure(each['ipc'])}" for each in job["points"])
        jobs.add_row(
            str(job["job"]),
            f"{job['here_s']:.0f}",
            f"{job['ways']}{' sampled' if job['is_sampled'] else ''}",
            str(job["bandwidth_gbps"]),
            str(job["threads"]),
            measured,
            job["why_shared"],
        )
    if shown["jobs"]:
        show(jobs)


def _figure(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
