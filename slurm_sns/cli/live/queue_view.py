"""What `sns queue` shows: on a terminal a table that fits its width, in a pipe all columns, one job on each line.

WHY is a word or two in the table, which is read, and the whole sentence in a pipe, where it is looked for.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from slurm_sns.cli.live.start_words import by_limits, start_range
from slurm_sns.cli.live.terminal import RUNS, new_table, plain
from slurm_sns.cli.live.waiting_words import cell
from slurm_sns.durations import duration
from slurm_sns.log import printable
from slurm_sns.node_lists import folded

Row = Mapping[str, Any]

#: Job names, and all but WHY in a very long queue, are cut to this length: the columns behind them matter more.
LONGEST_NAME = 24
#: Marks an over-aged job: it goes before all others, and capacity is withheld for it.
OVER_AGED = "!"
#: More jobs are shown as lines cut at the terminal's width: rich takes a minute to lay out 100,000 rows, these 2 s.
MOST_LAID_OUT = 500


class QueueColumn(NamedTuple):
    """A column: how it reads a row, and the narrowest terminal that shows it."""

    name: str
    value: Callable[[Row, float], str]
    width: int = 0
    side: Literal["left", "right"] = "left"


COLUMNS = (
    QueueColumn("POS", lambda row, _: _position(row), side="right"),
    QueueColumn("JOBID", lambda row, _: row["label"], side="right"),
    QueueColumn("USER", lambda row, _: row["user"]),
    QueueColumn("ACCOUNT", lambda row, _: row["account"], 100),
    QueueColumn("PARTITION", lambda row, _: row["partition"], 150),
    QueueColumn("NAME", lambda row, _: row["name"][:LONGEST_NAME], 132),
    QueueColumn("SIZE", lambda row, _: size(row), 60),
    QueueColumn("SINCE", lambda row, now_s: duration(since_s(row, now_s)), side="right"),
    QueueColumn("STATE", lambda row, _: row["state"], 120),
    QueueColumn("NODES", lambda row, _: folded(row["nodes"]), 70),
    QueueColumn("START", start_range, 80),
    QueueColumn("BY-LIMITS", by_limits, 132),
    QueueColumn("WHY", lambda row, _: cell(row)),
)


def table(rows: Sequence[Row], now_s: float, width: int, hidden: int = 0, *, heading: bool = True) -> RenderableType:
    """The jobs for a terminal of that width. `hidden` is the number of further jobs that the rows leave out."""
    if not rows:
        return "no jobs"
    columns = [column for column in COLUMNS if column.width <= width]
    laid_out = _laid_out if len(rows) <= MOST_LAID_OUT else _CutLines
    shown = laid_out(columns, rows, now_s, heading=heading)
    return Group(shown, Text(f"... and {hidden} more")) if hidden else shown


def _laid_out(columns: Sequence[QueueColumn], rows: Sequence[Row], now_s: float, *, heading: bool) -> RenderableType:
    """The table, in which a long WHY is wrapped, and other cells give way to it."""
    shown = new_table()
    shown.show_header = heading
    for column in columns:
        wraps = column.name == "WHY"
        shown.add_column(column.name, justify=column.side, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis")
    for row in rows:
        shown.add_row(*(plain(column.value(row, now_s)) for column in columns), style=row_style(row))
    return shown


class _CutLines:
    """The same as lines, cut at the terminal's width."""

    def __init__(self, columns: Sequence[QueueColumn], rows: Sequence[Row], now_s: float, *, heading: bool) -> None:
        self._styles = [""] * heading + [row_style(row) for row in rows]
        self._columns = [self._cells(column, rows, now_s, heading=heading) for column in columns]

    @staticmethod
    def _cells(column: QueueColumn, rows: Sequence[Row], now_s: float, *, heading: bool) -> list[str]:
        """A column's cells, all of the same width."""
        most = sys.maxsize if column.name == "WHY" else LONGEST_NAME
        texts = [column.name] * heading + [_cut(printable(column.value(row, now_s)), most) for row in rows]
        width = max(map(cell_len, texts))
        if column.side == "right":
            return [" " * (width - cell_len(text)) + text for text in texts]
        return [text + " " * (width - cell_len(text)) for text in texts]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        styles = {name: console.get_style(name) for name in set(self._styles)}
        for name, cells in zip(self._styles, zip(*self._columns, strict=True), strict=True):
            yield Segment(_cut(" ".join(cells).rstrip(), options.max_width) + "\n", styles[name])


def _cut(text: str, most: int) -> str:
    """The text, cut to so many cells of a terminal."""
    return text if cell_len(text) <= most else set_cell_size(text, most - 1) + "…"


def plain_lines(rows: Sequence[Row], now_s: float, *, heading: bool = True) -> Iterator[str]:
    """A heading and one line for each job: all columns in fixed order, SINCE in seconds, spaces only in the last."""
    if not rows:
        yield from ["no jobs"] * heading  # without headings, lines are counted
        return
    columns = [_plain_column(column, rows, now_s) for column in COLUMNS[:-1]]
    columns.append([printable(row["reason"]) for row in rows])
    if heading:
        columns = [[_word(column.name), *cells] for column, cells in zip(COLUMNS, columns, strict=True)]
    form = "  ".join(f"%-{max(map(len, cells))}s" for cells in columns)
    for each in zip(*columns, strict=True):
        yield (form % each).rstrip()


def _plain_column(column: QueueColumn, rows: Sequence[Row], now_s: float) -> list[str]:
    """A column's cells in a pipe, each a word."""
    if column.name == "SINCE":
        return [f"{since_s(row, now_s):.0f}" for row in rows]
    texts = [column.value(row, now_s) for row in rows]
    words = {text: _word(text) for text in set(texts)}  # a long queue has few different ones
    return [words[text] for text in texts]


def size(row: Row) -> str:
    """`2x8c,16G` is two nodes with eight cores and 16 GiB each; for a job that is not planned, its number of CPUs."""
    demand = row["demand"]
    if demand is None:
        return f"{row['cpus']}cpu"
    nodes = f"{demand['nodes']}x" if demand["nodes"] > 1 else ""
    extra = "".join(f",{demand[key]}{unit}" for key, unit in (("ways", "w"), ("bandwidth_gbps", "GB/s")) if demand[key])
    extra += "".join(f",{count}gpu{kind and f':{kind}'}" for kind, count in demand["gpus"].items())
    return f"{nodes}{demand['cores']}c,{demand['memory_mb'] / 1024:.3g}G{extra}"


def _position(row: Row) -> str:
    if row["position"] is None:
        return "-"
    return f"{OVER_AGED if row['over_aged'] else ''}{row['position']}"


def since_s(row: Row, now_s: float) -> float:
    """The seconds since the job started or, before that, was submitted."""
    since_s = row["start_s"] if row["state"] in RUNS and row["start_s"] else row["submit_s"]
    return max(0.0, now_s - float(since_s))


def row_style(row: Row) -> str:
    """The line's style in rich's words: of an over-aged job, of one that runs, or none."""
    if row["over_aged"]:
        return "yellow"
    return "dim" if row["state"] in RUNS else ""


def _word(text: str) -> str:
    """The text as one word for awk: spaces become `_`, an empty text becomes `-`."""
    return printable(text).replace(" ", "_") or "-"
