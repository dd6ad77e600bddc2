"""The content of a report, before it is text or HTML: sections of sentences, tables and charts. Plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


class ChartPoint(NamedTuple):
    """A point of a chart: its place on the axis (a name for bars), the value, and the ends of its interval, if any."""

    at: str | float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ReportChart:
    """Bars or lines: points by the legend. `labels` are those of the axes."""

    title: str
    kind: Literal["bars", "lines"]
    series: dict[str, Sequence[ChartPoint]]
    labels: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Cells are words that are ready to be shown; the columns of numbers are aligned at the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading with sentences, and what they speak of."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    charts: Sequence[ReportChart] = ()


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report: its title, the sentences that a reader of one minute needs, and the sections."""

    title: str
    summary: Sequence[str]
    sections: Sequence[ReportSection]
