"""What `sns status` shows: on a terminal one page, in a pipe one fact on each line.

The lines of the plain text are `key: value`. The keys must not change, because scripts may look for them. `node NAME`
lines say used/total of each resource.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slurm_sns.cli.live.terminal import new_table, plain
from slurm_sns.durations import duration
from slurm_sns.log import printable
from slurm_sns.node_lists import folded

Answer = Mapping[str, Any]

#: A cycle ends about every second, later on a busy controller. An answer older than this gets a warning.
QUIET_S = 15.0
#: Most groups of equally full nodes on a page: a cluster has more nodes than a terminal has lines.
MOST_GROUPS = 16
BAR_WIDTH = 16
#: Most warnings of one kind.
MOST_WARNINGS = 5
#: A narrower terminal has no room for bars beside the numbers.
WITH_BARS = 90
#: Each resource: its name in the answer, its name for people, and the divisor of its unit (GiB: 1024 MiB).
RESOURCES = (
    ("cores", "cores", 1),
    ("memory_mb", "memory GiB", 1024),
    ("ways", "ways", 1),
    ("bandwidth_gbps", "GB/s", 1),
)
#: The same for what is shown only where it is counted.
CLOSIDS = ("closids", "CLOSIDs", 1)
#: GPUs are counted by type: this and the type are the key.
GPUS = "gpus:"
OF_ACCOUNT = ("share", "cores", "memory GiB")


def warnings(answer: Answer, now_s: float) -> list[str]:
    """The problems that need attention, the worst first."""
    found = scheduler_warnings(answer, now_s)
    out = len(answer["nodes_unavailable"])
    if out:
        found.append(f"{out} {'node is' if out == 1 else 'nodes are'} not used")
    found += _agents_warnings(answer.get("agents"))
    found += _at_most([f"{name}: {why}" for name, why in answer["unreadable"].items()], "records that cannot be read")
    found += _at_most(
        [f"{name} {how}" for name, how in answer["differences"].items()], "jobs that run otherwise than planned"
    )
    return found


def scheduler_warnings(answer: Answer, now_s: float) -> list[str]:
    """Whether the scheduler is turned off, in trouble or silent."""
    found = []
    if answer["disabled"]:
        found.append("disabled: jobs pass through to Slurm until sns enable")
    if answer["trouble"]:
        found.append(str(answer["trouble"]))
    if now_s - answer["at_s"] > QUIET_S:
        found.append(
            f"no sign of life for {duration(now_s - answer['at_s'])}: jobs pass through while the heartbeat is stale"
        )
    return found


def _agents_warnings(agents: Answer | None) -> list[str]:
    """What is wrong with the agents; nothing where there are none."""
    if agents is None:
        return []
    found = []
    if agents["away"]:
        names, number = folded(agents["away"]), len(agents["away"])
        found.append(f"{number} {'agent does' if number == 1 else 'agents do'} not answer: {names}")
    found += _at_most([f"agent of {name}: {why}" for name, why in agents["troubles"].items()], "agents with trouble")
    if confined := agents.get("confined"):
        found.append(f"jobs share the cores of {folded(confined)}, but some may not use all: run sns check")
    unpartitioned = _by_reason(agents["unpartitioned"])
    found += _at_most([f"unpartitioned: {names}: {why}" for why, names in unpartitioned.items()], "reasons")
    return found


def _at_most(lines: list[str], what: str) -> list[str]:
    """The first few of these lines, and how many more there are."""
    more = len(lines) - MOST_WARNINGS
    return lines if more <= 0 else [*lines[:MOST_WARNINGS], f"{more} more {what}; the log names each"]


def plain_lines(answer: Answer, now_s: float) -> Iterator[str]:
    """One fact on each line."""
    yield f"mode: {answer['mode']}"
    yield f"kill switch: {'on' if answer['disabled'] else 'off'}"
    yield f"heartbeat: {duration(now_s - answer['at_s'])} ago"
    yield f"started: {duration(now_s - answer['began_s'])} ago"
    yield f"cycles: {answer['cycles']}"
    yield f"cycle: {_cycle(answer)}"
    some = [name for name in ("completing", "suspended") if answer.get(name)]
    for name in ("waiting", "placing", "running", *some, "held", "placed"):
        yield f"{name}: {answer[name]}"
    yield f"gates: {_gates(answer['gates'], now_s)}"
    if answer.get("estimates"):
        yield f"estimates: {_estimates(answer['estimates'])}"
    for each in answer.get("restarts", []):
        yield f"restarts {printable(each['user'])}: {_restarts([each])}"
    if answer.get("sharing"):
        yield f"sharing: {_sharing(answer['sharing'])}"
    yield f"nodes: {answer['nodes']}"
    if "agents" in answer:
        yield f"agents: {_agents(answer)}"
        yield f"learning: {_learning(answer)}"
    for key, name, unit in (*RESOURCES, *_closids(answer), *_gpus(answer)):
        yield f"{name}: {_share(answer, key, unit)}"
    if answer["matched"]:
        yield f"last matches: {printable(_matches(answer))}"
    for name, project in sorted(answer["projects"].items()):
        use = ", ".join(map(" ".join, zip(OF_ACCOUNT, _use(project), strict=True)))
        yield f"account {printable(name)}: {use}"
    full = {name: group for group in answer["node_groups"] for name in group["names"]}
    for name, group in sorted(full.items()):
        shares = (f"{what} {_share(group, key, unit)}" for what, key, unit in _kinds(group))
        yield f"node {printable(name)}: {', '.join(shares)}"
    for name, why in sorted(answer["nodes_unavailable"].items()):
        yield f"node {printable(name)}: not used: {printable(why)}"
    for warning in warnings(answer, now_s):
        yield f"warning: {printable(warning)}"


def page(answer: Answer, now_s: float, width: int) -> RenderableType:
    """The page for a terminal of that width."""
    parts: list[RenderableType] = [_head(answer, now_s)]
    parts += [Text(f"! {printable(each)}", style="bold red", overflow="fold") for each in warnings(answer, now_s)]
    parts += [_facts(answer, now_s), Text(), _nodes(answer, with_bars=width >= WITH_BARS)]
    if answer["nodes_unavailable"]:
        parts += [Text(), _unavailable(answer)]
    if answer["projects"]:
        parts += [Text(), _accounts(answer)]
    return Group(*parts)


def _head(answer: Answer, now_s: float) -> Text:
    head = Text("slurm_sns ", style="bold")
    off = answer["disabled"]
    head.append("disabled" if off else answer["mode"], style="bold red" if off else "bold green")
    since = duration(now_s - answer["began_s"])
    late = now_s - answer["at_s"]
    head.append(f"  up {since}  ", style="default")
    head.append(f"heartbeat {duration(late)} ago", style="red" if late > QUIET_S else "default")
    return head


def _facts(answer: Answer, now_s: float) -> Table:
    facts = Table.grid(padding=(0, 2))
    jobs = [f"[bold]{answer[name]}[/] {name}" for name in ("waiting", "placing", "running")]
    jobs += [f"[bold]{answer[name]}[/] {name}" for name in ("completing", "suspended") if answer.get(name)]
    if answer["held"]:
        jobs.append(f"[bold]{answer['held']}[/] of the waiting ones held")
    facts.add_row("jobs", ", ".join(jobs) + f"; [bold]{answer['placed']}[/] placed since the start")
    facts.add_row("gates", _gates(answer["gates"], now_s))
    if answer.get("estimates"):
        facts.add_row("estimates", _estimates(answer["estimates"]))
    if answer.get("restarts"):
        facts.add_row("restarts", _restarts(answer["restarts"]))
    if answer.get("sharing"):
        facts.add_row("sharing", _sharing(answer["sharing"]))
    facts.add_row("cycle", f"{_cycle(answer)}; {answer['cycles']} so far")
    if answer["matched"]:
        facts.add_row("matches", plain(_matches(answer)))
    if "agents" in answer:
        facts.add_row("agents", _agents(answer))
        facts.add_row("learning", _learning(answer))
    return facts


def _gates(gates: Answer, now_s: float) -> str:
    """How many jobs wait behind a gate, and how their leases are renewed."""
    if not gates["gated"]:
        return "none"
    nearest = duration(gates["nearest_s"] - now_s)
    return f"{gates['gated']}, {gates['renewed_per_minute']} renewed in the last minute, the nearest opens in {nearest}"


def _estimates(record: Answer) -> str:
    """How often the truth lay in the range that was told."""
    starts = record["starts"]
    share = round(100 * record["inside"] / starts)
    return f"{share}% of last week's {starts} {'start' if starts == 1 else 'starts'} lay in their range"


def _restarts(restarts: list[Answer]) -> str:
    """How many suspended jobs were restarted in 24 hours, and how many restarts were only proposed."""
    done, proposed = (sum(each[name] for each in restarts) for name in ("restarts", "proposed"))
    lost, would = (sum(each[name] for each in restarts) for name in ("lost_core_h", "proposed_core_h"))
    told = [f"{done} in 24 h, at most {lost:.1f} core-hours lost"] if done or not proposed else []
    told += [f"{proposed} proposed in 24 h, at most {would:.1f} core-hours"] if proposed else []
    return "; ".join(told)


def _sharing(sharing: Answer) -> str:
    """How many jobs share cores, the slowest of them, and the pauses of 24 hours against what these may lose."""
    jobs, pauses = sharing["jobs"], sharing["pauses"]
    told = f"{jobs} {'job shares' if jobs == 1 else 'jobs share'} cores" if jobs else "no job shares cores"
    told += f", each with {sharing['least_yield']:.2g} of its own or more" if jobs else ""
    lost = f"at most {sharing['lost_core_h']:.1f} of {sharing['most_lost_core_h']:.1f} core-hours lost"
    return f"{told}; {pauses} {'pause' if pauses == 1 else 'pauses'} in 24 h, {lost}"


def _agents(answer: Answer) -> str:
    return f"{answer['agents']['connected']} of {answer['agents']['nodes']} answer"


def _learning(answer: Answer) -> str:
    told = answer["learning"]
    runs, nodes = told["exploring_runs"], told["exploring_nodes"]
    exploring = f"{runs} exploring {'run' if runs == 1 else 'runs'} on {nodes} {'node' if nodes == 1 else 'nodes'}"
    return f"{told['programs']} programs, {exploring}"


def _nodes(answer: Answer, *, with_bars: bool) -> Table:
    """One line for all nodes together, then one for each group of equally full nodes, the fullest first."""
    kinds = _kinds(answer)
    shown = new_table("NODES", no_wrap=True)
    for name, *_ in kinds:
        shown.add_column(name.upper(), justify="right", no_wrap=True)
        if with_bars:
            shown.add_column("")
    groups = sorted(answer["node_groups"], key=lambda group: -_full(group, "cores"))
    shown.add_row(f"all {answer['nodes']}", *_cells(answer, kinds, with_bars=with_bars), style="bold")
    for group in groups[:MOST_GROUPS]:
        shown.add_row(plain(folded(group["names"])), *_cells(group, kinds, with_bars=with_bars))
    if len(groups) > MOST_GROUPS:
        left = sum(len(group["names"]) for group in groups[MOST_GROUPS:])
        shown.add_row(f"... and {left} less full ones")
    return shown


def _cells(of: Answer, kinds: list[tuple[str, str, int]], *, with_bars: bool) -> Iterator[RenderableType]:
    for _, key, unit in kinds:
        there = _amount(of["capacity"], key) > 0
        yield Text(_share(of, key, unit) if there else "-")
        if with_bars:
            full = _full(of, key)
            style = "red" if full > 0.95 else "yellow" if full > 0.7 else "green"
            bar = ProgressBar(1.0, full, width=BAR_WIDTH, complete_style=style, finished_style=style)
            yield bar if there else ""


def _unavailable(answer: Answer) -> Table:
    shown = new_table("NOT USED", "WHY", overflow="fold")
    for why, names in _by_reason(answer["nodes_unavailable"]).items():
        shown.add_row(plain(names), plain(why))
    return shown


def _by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons of nodes, each with its nodes as a list."""
    names: dict[str, list[str]] = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(name)
    return {why: folded(alike) for why, alike in names.items()}


def _accounts(answer: Answer) -> Table:
    figures = [each.upper() for each in OF_ACCOUNT]
    shown = new_table("ACCOUNT", *figures, right=figures)
    for name, project in sorted(answer["projects"].items()):
        shown.add_row(plain(name), *_use(project))
    return shown


def _kinds(of: Answer) -> list[tuple[str, str, int]]:
    """The resources of which there is any capacity: (name, key, unit)."""
    there = [each for each in RESOURCES if of["capacity"][each[0]]]
    return [(name, key, unit) for key, name, unit in (*there, *_closids(of), *_gpus(of))]


def _closids(of: Answer) -> tuple[tuple[str, str, int], ...]:
    """CLOSIDs where they are counted."""
    return (CLOSIDS,) if of["capacity"]["closids"] else ()


def _gpus(of: Answer) -> Iterator[tuple[str, str, int]]:
    """GPUs of each type, where there are any; those without a type have an empty one."""
    for kind in of["capacity"]["gpus"]:
        yield f"{GPUS}{kind}", f"GPUs {kind}".strip(), 1


def _amount(of: Answer, key: str) -> Any:
    return of["gpus"].get(key.removeprefix(GPUS), 0) if key.startswith(GPUS) else of[key]


def _share(of: Answer, key: str, unit: int) -> str:
    capacity, free = _amount(of["capacity"], key), _amount(of["free"], key)
    return f"{(capacity - free) / unit:.0f}/{capacity / unit:.0f}"


def _full(of: Answer, key: str) -> float:
    """The used part, from 0 to 1. It is limited to that, because withheld capacity can make free negative."""
    capacity = _amount(of["capacity"], key)
    return min(1.0, max(0.0, 1 - _amount(of["free"], key) / capacity)) if capacity else 0.0


def _cycle(answer: Answer) -> str:
    times = [f"{answer[key] * 1000:.0f} ms" for key in ("cycle_s", "cycle_p50_s", "cycle_p99_s")]
    return f"{times[0]}, median {times[1]}, p99 {times[2]}"


def _matches(answer: Answer) -> str:
    members = ", ".join(f"{name} {count}" for name, count in answer["matched"].items())
    return f"{members}; dispatched: {answer['chosen']}"


def _use(project: Answer) -> tuple[str, str, str]:
    """The figures of an account that `OF_ACCOUNT` names."""
    used = project["used"]
    return f"{project['share']:g}", str(used["cores"]), f"{used['memory_mb'] / 1024:.1f}"
