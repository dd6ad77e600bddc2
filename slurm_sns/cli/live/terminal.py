"""Answers on a terminal: harmless text, short durations and times, and what `sns explain` puts together.

Job names and similar texts come from users. They are printed so that neither the terminal nor rich interprets them. The
words of an explanation are the policy's own (placement.reasons, spread_n_share.scales).
"""

from collections.abc import Collection, Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from slurm_sns.cli.live.start_words import sentence
from slurm_sns.log import printable
from slurm_sns.node_lists import folded

#: The states of jobs that have started.
RUNS = ("running", "suspended", "completing")


def show(part: RenderableType) -> None:
    """Print one part. Its lines are not wrapped to a terminal's width if standard output is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=250)
    console.print(part)


def plain(text: object) -> str:
    """Text of users, with everything replaced or escaped that a terminal or rich's markup could interpret."""
    return escape(printable(str(text)))


def new_table(*columns: str, right: Collection[str] = (), pad_edge: bool = False, **options: Any) -> Table:
    """A table without lines, of these columns; those in `right` are right-justified, all have the `options` of rich."""
    made = Table(box=None, pad_edge=pad_edge)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", **options)
    return made


def explanation(answer: dict[str, Any], place_in_queue: str = "", *, now_s: float = 0.0) -> Iterator[RenderableType]:
    """The answer to `explain`, in paragraphs and tables; `place_in_queue` says how the queue is ordered."""
    yield from _what_it_is(answer, now_s)
    if place_in_queue:
        yield f"  {plain(place_in_queue)}"
    if answer["array"]:
        yield f"  {plain(answer['array'])}"
    if answer.get("learning"):  # only where there are agents
        yield f"  {plain(answer['learning'])}"
    for each in answer["decisions"]:
        what = f"placed on {folded(each['nodes'])}, " if each["action"] == "start" else ""
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        yield f"  {clock(each['at_s'])}  {what}{plain(each['reason'])}{times}"
    for told in (answer["considered"], answer["cycle"]):
        if told is not None:
            yield ""
            yield " ".join(map(plain, told["summary"]))
            if told["considered"]:
                yield _considered(told["heading"], told["considered"])
            yield from map(plain, told["details"])
    yield from starting_changes(answer.get("would_start", []))
    if answer["cycle"] is None:
        return
    for name, why in sorted(answer["unavailable"].items()):
        yield f"  node {plain(name)} cannot be used: {plain(why)}"


def starting_changes(changes: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each change with which the job would start now, below one that says what that is worth."""
    if not changes:
        return
    yield "It would start now with one of these changes (as of the last cycle; not promised):"
    yield from (f"  {plain(each['options'])}  on {folded(each['nodes'])}" for each in changes)


def _what_it_is(answer: dict[str, Any], now_s: float) -> Iterator[str]:
    """The job's state and its nodes; for a pass-through job first why it is Slurm's own."""
    label, job, why = f"[bold]job {answer['label']}[/]", answer["job"], answer.get("pass_through")
    if job is None:
        yield f"{label}: no longer in Slurm"
        return
    state = plain(job["state"] + (f" on {folded(job['nodes'])}" if job["nodes"] else ""))
    reason = plain(job["reason"])
    if why is not None:
        yield f"{label} is Slurm's own: {plain(why)}"
        whose = "" if job["state"] in RUNS else "Slurm's reason: "  # of a job that has started the words are ours
        yield f"  {state}" + (f", {whose}{reason}" if reason else "")
        return
    yield f"{label}: {state}"
    if reason:
        yield f"  {reason}"
    if starts := sentence(job, now_s):
        yield f"  {plain(starts)}"


def _considered(heading: str, rows: list[dict[str, Any]]) -> Table:
    """What was considered, in the policy's order: the figures of each, what came of it and why."""
    names = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    figures = [plain(name.upper()) for name in names]
    why = "WHY" if any(row["reason"] for row in rows) else ""
    shown = new_table(plain(heading.upper()), *figures, "OUTCOME", why, right=figures)
    for row in rows:
        cells = (_figure(row["figures"].get(name)) for name in names)
        shown.add_row(*map(plain, (row["name"], *cells, row["outcome"], row["reason"])))
    return shown


def _figure(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def clock(at_s: float) -> str:
    """Local date and time."""
    from datetime import datetime

    return datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def zoned_clock(at_s: float) -> str:
    """Local date and time to the minute, with the offset from UTC: `2026-11-27 21:18 +0100`."""
    from datetime import datetime

    return datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M %z")
