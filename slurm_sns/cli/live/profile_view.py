"""What `sns profile` shows of learning: which profile serves, what is measured, how often and how surely."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LearntAnswer = Mapping[str, Any]


def in_short(of: LearntAnswer | None) -> str:
    """The state of learning in a few words; empty where nothing is learnt."""
    if of is None:
        return ""
    found = ["measured" if of["serves"] == "measured" else "imported" if of["serves"] else "no profile yet"]
    if of["re_measurement"] is not None:
        found.append("is measured again")
    elif not of["is_explored"] and of["serves"] != "imported":
        found.append("exploration goes on")
    if of["exploring"] is not None:
        found.append(f"explores scale {of['exploring']['scale']} now")
    return ", ".join(found)


def learnt(program: str, processes: int, of: LearntAnswer) -> "Iterator[RenderableType]":
    """What is learnt of one (program, processes)."""
    yield f"{program}, {processes} processes: {_serving(of)}"
    yield from _notes(of)
    if of["measured"]:
        yield _table(of["measured"])
    if of["re_measurement"]:
        yield "measured again so far:"
        yield _table(of["re_measurement"])
    if of["measured"] or of["re_measurement"]:
        yield "each number: mean of the runs, +- their standard deviation, (how many runs)"


def _serving(of: LearntAnswer) -> str:
    if of["serves"] == "measured":
        return "jobs run by what is measured here"
    if of["serves"] == "imported":
        return "jobs run by the imported profile"
    return "no profile yet"


def _notes(of: LearntAnswer) -> Iterator[str]:
    exploring = of["exploring"]
    if exploring is not None:
        who = "a job" if exploring["job_id"] is None else f"job {exploring['job_id']}"
        how = "its ways are changed while it runs" if exploring["samples"] else "it is timed"
        yield f"  {who} explores scale {exploring['scale']} now: {how}"
    if of["re_measurement"] is not None:
        yield "  it is measured again; the profile of before serves meanwhile"
    elif of["is_explored"]:
        yield "  all scales are explored"
    if of["strange_runs"]:
        yield f"  the last {of['strange_runs']} runs differ from the profile"
    for scale, runs in of["given_up"].items():
        yield f"  the last {runs} exploring runs at scale {scale} gave no measurement"


def _table(scales: Sequence[Mapping[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table(box=None)
    for column in ("scale", "time s", "ways", "IPC", "GB/s"):
        table.add_column(column)
    for each in scales:
        rows = [
            (str(point["ways"]), _number(point["ipc"]), _number(point["bandwidth_gbps"])) for point in each["points"]
        ]
        head = (str(each["scale"]), _number(each["time_s"]))
        for place, row in enumerate(rows or [("", "", "")]):
            table.add_row(*(head if place == 0 else ("", "")), *row)
    return table


def _number(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    spread = f" +- {found['spread']:.2g}" if found["count"] > 1 else ""
    return f"{found['mean']:.4g}{spread} ({found['count']:.0f})"
