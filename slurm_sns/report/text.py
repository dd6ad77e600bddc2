"""A report as text for a terminal: sentences, tables without lines, charts of letters. Texts of users are harmless."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slurm_sns.log import printable
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable
from slurm_sns.report.scales import number, points_of

#: A narrower terminal breaks the lines.
LEAST_WIDTH = 40
#: So many cells long are a bar and the line of a chart at most, and the name of a bar.
LONGEST_BAR, LONGEST_LINE, LONGEST_NAME = 40, 60, 30
#: The heights of a line, from nothing to the largest value.
HEIGHTS = " .:-=+*#"


def as_text(page: ReportPage, width: int) -> str:
    """The page in lines of at most this width, or of `LEAST_WIDTH`."""
    width = max(LEAST_WIDTH, width)
    lines = [*_heading(page.title, "=", width), *_sentences(page.summary, width)]
    for section in page.sections:
        lines += ["", *_heading(section.title, "-", width), *_section(section, width)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _heading(title: str, line: str, width: int) -> Iterator[str]:
    lines = list(_wrapped(title, width))
    yield from lines
    yield line * max(map(cell_len, lines))


def _section(section: ReportSection, width: int) -> Iterator[str]:
    yield from _sentences(section.sentences, width)
    for table in section.tables:
        yield ""
        yield from _table(table, width)
        yield from _sentences([table.note] if table.note else [], width)
    for chart in section.charts:
        if any(points_of(points) for points in chart.series.values()):
            yield ""
            yield from _chart(chart, width)


def _sentences(sentences: Iterable[str], width: int) -> Iterator[str]:
    for each in sentences:
        yield from _wrapped(each, width)


def _wrapped(sentence: str, width: int) -> Iterator[str]:
    """Lines of at most this many cells: some letters take two, others none."""
    for line in Text(printable(sentence)).wrap(_console(width), width):
        yield line.plain.rstrip()


def _table(table: ReportTable, width: int) -> list[str]:
    shown = Table(box=None, pad_edge=False)
    for at, column in enumerate(table.columns):
        justify: Literal["left", "right"] = "right" if at in table.numbers else "left"
        shown.add_column(Text(printable(column).upper()), justify=justify, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    console = _console(width)
    with console.capture() as captured:
        console.print(shown)
    return captured.get().splitlines()


def _console(width: int) -> Console:
    return Console(width=width, color_system=None, legacy_windows=False)


def _chart(chart: ReportChart, width: int) -> Iterator[str]:
    """The title, which says what the numbers are, and the chart."""
    along, upward = chart.labels
    by = f", by {along}" if chart.kind == "bars" else f" over {along}"
    yield from _wrapped(f"{chart.title} ({upward}{by if along else ''})", width)
    yield from _bars(chart, width) if chart.kind == "bars" else _lines(chart, width)


def _bars(chart: ReportChart, width: int) -> Iterator[str]:
    rows = list(_in_order(chart))
    most = max(abs(point.value) for _, _, point in rows) or 1.0
    values = [_value(point) for _, _, point in rows]
    free = width - max(map(len, values)) - 5
    parts = 2 if len(chart.series) > 1 else 1
    longest = (free - 2) // (parts + 1)  # for a name, or for a bar at least
    names = [_cut(at, longest) + (f": {_cut(name, longest)}" if parts > 1 else "") for at, name, _ in rows]
    room = max(map(cell_len, names))
    for name, value, (_, _, point) in zip(names, values, rows, strict=True):
        bar = "#" * round(max(1, min(LONGEST_BAR, free - room)) * abs(point.value) / most)
        yield f"  {set_cell_size(name, room)}  {bar}{' ' if bar else ''}{value}"


def _in_order(chart: ReportChart) -> Iterator[tuple[str, str, ChartPoint]]:
    """The points by their place, and there in the order of the legend."""
    places = dict.fromkeys(str(point.at) for points in chart.series.values() for point in points_of(points))
    for place in places:
        for name, points in chart.series.items():
            yield from ((place, name, point) for point in points_of(points) if str(point.at) == place)


def _cut(name: str, most: int = LONGEST_NAME) -> str:
    most = max(4, min(LONGEST_NAME, most))
    name = printable(name)
    return name if cell_len(name) <= most else f"{set_cell_size(name, most - 3)}..."


def _value(point: ChartPoint) -> str:
    if point.low is None or point.high is None:
        return number(point.value)
    return f"{number(point.value)} ({number(point.low)} to {number(point.high)})"


def _lines(chart: ReportChart, width: int) -> Iterator[str]:
    shown = {name: [each.value for each in points_of(points)] for name, points in chart.series.items()}
    most = max(max(values) for values in shown.values() if values)
    rows = [
        (name, values, f"{number(min(values))} to {number(max(values))}") for name, values in shown.items() if values
    ]
    free = width - max(len(extent) for _, _, extent in rows) - 6
    names = [_cut(name, free // 2) for name, _, _ in rows]
    room = max(map(cell_len, names))
    for name, (_, values, extent) in zip(names, rows, strict=True):
        line = "".join(_height(each, most) for each in _thinned(values, max(1, min(LONGEST_LINE, free - room))))
        yield f"  {set_cell_size(name, room)} |{line}| {extent}"


def _thinned(values: Sequence[float], most: int) -> Iterator[float]:
    """At most so many values: each is the mean of its neighbours."""
    count = min(most, len(values))
    for at in range(count):
        part = values[at * len(values) // count : (at + 1) * len(values) // count]
        yield sum(part) / len(part)


def _height(value: float, most: float) -> str:
    """The letter for this value: a blank only for nothing."""
    if value <= 0 or most <= 0:
        return HEIGHTS[0]
    return HEIGHTS[max(1, min(len(HEIGHTS) - 1, round(value / most * (len(HEIGHTS) - 1))))]
