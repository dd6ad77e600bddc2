"""The answer to `sns explain` as sentences and tables, and the formatting that the other views share.

Job names and similar texts come from users. They are printed so that neither the terminal nor rich interprets them.
"""

from collections.abc import Iterator
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table


def show(part: RenderableType) -> None:
    """Print one part. Its lines are not wrapped to a terminal's width if standard output is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=250)
    console.print(part)


def plain(text: object) -> str:
    """Text of users, with everything replaced or escaped that a terminal or rich's markup could interpret."""
    return escape("".join(c if c.isprintable() else "?" for c in str(text)))


def duration(seconds: float) -> str:
    """`3 s`, `12 min`, `5.2 h`, `3.1 d`."""
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86400:.1f} d"


def _side(column: str) -> Literal["left", "right"]:
    """The column's alignment: numbers to the right."""
    return "right" if column in ("JOBS MATCHED", "PLACE IN QUEUE") else "left"


def folded(nodes: list[str]) -> str:
    """Node names as Slurm folds them: c[1-4]."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(nodes)) if nodes else ""


def explanation(answer: dict[str, Any]) -> Iterator[RenderableType]:
    """The answer to `explain`, in paragraphs and one table of the portfolio."""
    cycle = answer["cycle"]
    yield from _what_it_is(answer)
    if answer["array"]:
        yield f"  {plain(answer['array'])}"
    if answer.get("learning"):  # only where there are agents
        yield f"  {plain(answer['learning'])}"
    for each in answer["decisions"]:
        what = f"placed on {folded(each['nodes'])}, " if each["action"] == "start" else ""
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        yield f"  {clock(each['at_s'])}  {what}{plain(each['reason'])}{times}"
    if answer["considered"] is not None:
        yield from considered_scales(answer["considered"])
    if cycle is None:
        return
    yield ""
    waiting, chosen = cycle["waiting_jobs"], plain(cycle["chosen"])
    yield f"In that cycle {waiting} jobs waited; {chosen} matched the most and was dispatched."
    if cycle["own_heuristic"]:
        yield f"The job has a heuristic of its own, {plain(cycle['own_heuristic'])}: every schedule uses it."
    yield portfolio_table(cycle)
    yield from _what_was_missing(cycle)
    for name, why in sorted(answer["unavailable"].items()):
        yield f"  node {plain(name)} cannot be used: {plain(why)}"


def _what_it_is(answer: dict[str, Any]) -> Iterator[str]:
    """The job's state and its nodes; for a pass-through job first why it is Slurm's own."""
    label, job, why = f"[bold]job {answer['label']}[/]", answer["job"], answer.get("pass_through")
    if job is None:
        yield f"{label}: no longer in Slurm"
        return
    state = plain(job["state"] + (f" on {folded(job['nodes'])}" if job["nodes"] else ""))
    reason = plain(job["reason"])
    if why is not None:
        yield f"{label} is Slurm's own: {plain(why)}"
        yield f"  {state}" + (f", Slurm's reason: {reason}" if reason else "")
        return
    yield f"{label}: {state}"
    if reason:
        yield f"  {reason}"


def considered_scales(considered: dict[str, Any]) -> Iterator[RenderableType]:
    """How a spreadable job's alternatives came about: its program's class, then each scale with demand and result."""
    name, alpha = plain(considered["program"]), considered["alpha"]
    yield ""
    if considered["kind"] is None:
        yield f"Program {name}: {plain(considered['note'])}."
        return
    kind = considered["kind"] + (f" (bound by {considered['bottleneck']})" if considered["bottleneck"] else "")
    processes = considered["profiled_processes"]
    yield (
        f"Program {name} is {kind}, fastest at scale {considered['ideal_scale']} (profile of {processes} processes). "
        f"It must keep {alpha:g} of its best performance (alpha)."
    )
    if considered["note"]:
        yield plain(considered["note"])
    yield scales_table(considered)


def scales_table(considered: dict[str, Any]) -> Table:
    """Each scale in the order in which it is tried: its demand on each node, and the figures that lead to it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    per_node = ("TASKS", "CORES", "MIB", "WAYS", "GB/S")
    for column in ("SCALE", "NODES", *per_node, "TIME S", "F-IPC", "T-IPC", "IPC", "SLOWDOWN"):
        table.add_column(column, justify="right")
    table.add_column("")
    for each in considered["considered"]:
        figures = (each[name] for name in ("corrected_time_s", "full_ipc", "target_ipc", "ipc", "slowdown"))
        counts = (each[name] for name in ("nodes", "tasks_per_node", "cores", "memory_mb", "ways", "bandwidth_gbps"))
        table.add_row(
            str(each["scale"]),
            *("" if count is None else str(count) for count in counts),
            *("" if figure is None else f"{figure:.4g}" for figure in figures),
            _result(each),
        )
    return table


def _result(scale: dict[str, Any]) -> str:
    if scale["dropped"]:
        return f"no: {plain(scale['dropped'])}"
    return "on empty nodes" if scale["exclusive"] else ""


def portfolio_table(cycle: dict[str, Any]) -> Table:
    """For each heuristic of the portfolio, what it did with the job."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("HEURISTIC", "JOBS MATCHED", "PLACE IN QUEUE", "NODES FOR THIS JOB", "BEST NODES (SMALLEST SCORE)"):
        table.add_column(name, justify=_side(name))
    for member in cycle["members"]:
        matched = f"{member['jobs_matched']}{' (most)' if member['won'] else ''}"
        place = "not reached" if member["position"] is None else str(member["position"] + 1)
        nodes = folded(member["nodes"]) if member["nodes"] else "none"
        if member["withheld_for_it"]:
            nodes += f"; capacity withheld on {folded(member['withheld_for_it'])}"
        dispatched = " *" if member["heuristic"] == cycle["chosen"] else ""
        best = ", ".join(f"{node} {score:.6g}" for node, score in member["best"])
        table.add_row(plain(member["heuristic"]) + dispatched, matched, place, plain(nodes), plain(best))
    return table


def _what_was_missing(cycle: dict[str, Any]) -> Iterator[str]:
    """For a job without a place in the dispatched schedule: the nearest nodes and what they lacked."""
    chosen = next(member for member in cycle["members"] if member["heuristic"] == cycle["chosen"])
    if chosen["nodes"]:
        return
    for tried in chosen["tried"]:
        fitting, needed = tried["nodes_fitting"], tried["nodes_needed"]
        yield f"It needs {plain(tried['size'])}. Nodes that had this free at its turn: {fitting}; needed: {needed}."
        for lack in tried["nearest"]:
            yield f"  nearest: {plain(_lack(lack))}"
        if tried["withheld_in_the_way"]:
            jobs = ", ".join(map(str, tried["withheld_in_the_way"]))
            yield f"  it would fit, but capacity is withheld for job {jobs}"
        if tried.get("withheld_for_others"):
            yield "  it would fit, but capacity is withheld for jobs of other users"
        if not tried["fits_if_empty"]:
            yield "  the nodes that can be planned on now are too small or too few for it, even empty"


def _lack(lack: dict[str, Any]) -> str:
    from slurm_sns.model import Resources
    from slurm_sns.policies.placement.lack import Lack

    return str(Lack(lack["node"], Resources(*lack["lacks"]), not_empty=lack["not_empty"]))


def clock(at_s: float) -> str:
    """Local date and time."""
    from datetime import datetime

    return datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
