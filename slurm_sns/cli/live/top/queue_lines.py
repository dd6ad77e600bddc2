"""The queue as lines: which jobs, in which order, found by which words. A line is made only when it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from slurm_sns.cli.live.queue_view import COLUMNS, QueueColumn, Row
from slurm_sns.cli.live.squeue_options import JobFilter, SqueueFormat, in_order
from slurm_sns.cli.live.top.cell_text import cells, fitted
from slurm_sns.cli.live.waiting_words import cell
from slurm_sns.scheduler.answers.folded_arrays import label_parts, with_folded_arrays
from slurm_sns.scheduler.gate.arrays import listed

#: The widest that a column becomes. WHY, the last one, takes what is left of the line.
WIDEST = {
    "POS": 7,
    "JOBID": 18,
    "USER": 10,
    "ACCOUNT": 12,
    "PARTITION": 14,
    "NAME": 24,
    "SIZE": 18,
    "SINCE": 7,
    "STATE": 14,
    "NODES": 14,
    "START": 16,
    "BY-LIMITS": 10,
}
#: WHY has at least so many cells. For that, other columns become narrower, but not than that, and not those of times,
#: of which a part says nothing.
LEAST_WHY, NARROWEST = 12, 6
NEVER_CUT = ("POS", "SINCE", "START", "BY-LIMITS")
GAP = "  "


class JobChoice(NamedTuple):
    """Which jobs are shown in which order, as squeue's options say."""

    filter: JobFilter = JobFilter()
    sort: str | None = None

    def of(self, rows: Sequence[Row], *, folded: bool) -> list[Row]:
        """The chosen rows in order; with `folded`, tasks of an array that wait alike are one."""
        chosen = self.filter.of(rows)
        return in_order(with_folded_arrays(chosen) if folded else chosen, self.sort)


@dataclass(frozen=True)
class ListedJobs:
    """The jobs of one overview, and the words by which each is found."""

    rows: Sequence[Row]
    choice: JobChoice

    @cached_property
    def folded(self) -> "FoundJobs":
        """With arrays folded."""
        return FoundJobs(self.choice.of(self.rows, folded=True))

    @cached_property
    def single(self) -> "FoundJobs":
        """Each task alone."""
        return FoundJobs(self.choice.of(self.rows, folded=False))


@dataclass(frozen=True)
class FoundJobs:
    """Rows with their texts in small letters."""

    rows: list[Row]
    texts: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", [_text(row) for row in self.rows])

    def with_words(self, typed: str) -> list[Row]:
        """The rows in which each of the typed words stands somewhere."""
        found = self.rows
        texts = self.texts
        for word in typed.lower().split():
            kept = [at for at, text in enumerate(texts) if word in text]
            found, texts = [found[at] for at in kept], [texts[at] for at in kept]
        return found


def _text(row: Row) -> str:
    names = (row["label"], row["user"], row["name"], row["account"], row["partition"], row["state"], row["reason"])
    return "\n".join((*names, cell(row))).lower()


class LineForm(Protocol):
    """How the queue's lines look; `lines` gives those that are on the screen, and the heading above them (or none)."""

    heading: bool

    def lines(self, rows: Sequence[Row], now_s: float, width: int) -> tuple[str | None, list[str]]:
        """The heading and a line for each row, cut to the width."""


class ColumnLines:
    """The columns of `sns queue` that fit the width. A column is as wide as what it has shown so far needs."""

    def __init__(self, *, heading: bool = True) -> None:
        self.heading = heading
        self._needed: dict[str, int] = {}

    def lines(self, rows: Sequence[Row], now_s: float, width: int) -> tuple[str | None, list[str]]:
        """The heading and a line for each row."""
        columns = [column for column in COLUMNS if column.width <= width + 1]  # the cursor's mark stands at the left
        texts = [[column.value(row, now_s) for column in columns] for row in rows]
        for at, column in enumerate(columns[:-1]):
            shown = max((cells(text[at]) for text in texts), default=0)
            needed = max(len(column.name), shown, self._needed.get(column.name, 0))
            self._needed[column.name] = min(needed, max(WIDEST[column.name], len(column.name)))
        widths = self._widths(columns, width)
        heading = _joined([column.name for column in columns], columns, widths) if self.heading else None
        return heading, [_joined(text, columns, widths) for text in texts]

    def _widths(self, columns: Sequence[QueueColumn], width: int) -> list[int]:
        """What each column needs; where WHY is left too little, the widest ones get less."""
        widths = {column.name: self._needed[column.name] for column in columns[:-1]}
        left = width - sum(widths.values()) - len(GAP) * len(widths)
        while left < LEAST_WHY:
            widest = max(widths.keys() - set(NEVER_CUT), key=lambda name: (widths[name], name))
            if widths[widest] <= NARROWEST:
                break
            widths[widest] -= 1
            left += 1
        return [*widths.values(), max(0, left)]


def _joined(texts: Sequence[str], columns: Sequence[QueueColumn], widths: Sequence[int]) -> str:
    parts = zip(texts, columns, widths, strict=True)
    return GAP.join(fitted(text, width, right=column.side == "right") for text, column, width in parts)


class FormatLines:
    """squeue's format (`-o`)."""

    def __init__(self, text: str, *, heading: bool = True) -> None:
        self._format, self.heading = SqueueFormat(text), heading

    def lines(self, rows: Sequence[Row], now_s: float, width: int) -> tuple[str | None, list[str]]:
        """The heading and a line for each row."""
        heading = next(self._format.lines([], now_s)) if self.heading else None
        made = [fitted(line, width) for line in self._format.lines(rows, now_s, heading=False)]
        return None if heading is None else fitted(heading, width), made


def place_of(rows: Sequence[Row], job: Row) -> int | None:
    """Where the job stands; None if it is not there.

    Tasks of an array in one line have another label when one of them starts, or when arrays are folded or not: then it
    is the line that has the task; and of several tasks, one of the same array that waits.
    """
    exact = next((at for at, row in enumerate(rows) if row["label"] == job["label"]), None)
    number, task, tasks = label_parts(job)
    if exact is not None or (task is None and not tasks):
        return exact
    sought, begin = _tasks(job), f"{number}_"
    alike = [(at, row) for at, row in enumerate(rows) if row["label"].startswith(begin)]
    found = [(at, row) for at, row in alike if not sought.isdisjoint(_tasks(row))]
    waiting = [(at, row) for at, row in found or (alike if tasks else []) if row["waits"] is not None]
    return next((at for at, _ in waiting or found), None)


def _tasks(row: Row) -> set[int]:
    """The tasks of an array that the row's label has."""
    _, task, tasks = label_parts(row)
    return set(listed(tasks)) if tasks else {task} if task is not None else set()
