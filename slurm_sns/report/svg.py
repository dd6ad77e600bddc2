"""The geometry of a chart as SVG: rectangles, lines and words by coordinates. The template writes them.

It is drawn here rather than by matplotlib for three reasons: every installation has it; its colours are those of the
page, so they follow the reader's light or dark mode; and its words are text, which a browser finds, enlarges and reads
aloud in the reader's own font. Equal charts give equal coordinates, which have one decimal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite
from typing import Literal, NamedTuple

from slurm_sns.report.document import ChartPoint, ReportChart
from slurm_sns.report.scales import number, points_of, ticks

#: The width of all drawings: on a phone a unit is about a pixel less a quarter, on a desk one and a fifth.
WIDTH = 480
#: The height of the area of lines, and the margins around it.
LINES_HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 200, 62, 14, 44, 12
#: The height of a bar, of the name above the bars of one place, and the room for a value at its right.
BAR, NAME, VALUE = 15, 18, 110
#: So many letters of a name are drawn; the title of its bars has all of them.
MOST_LETTERS = 58
#: The series are told apart by so many colours and dashes.
STYLES = 6
#: A description names at most so many values.
MOST_TOLD = 40


class Word(NamedTuple):
    """Text at a point. `anchor` as in SVG; `turned` by a quarter to the left."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    turned: bool = False


class Box(NamedTuple):
    """A bar of the series of that style; `title` is shown when one points at it."""

    x: float
    y: float
    width: float
    height: float
    style: int
    title: str


class Path(NamedTuple):
    """A line through points `x,y x,y`. The style is that of its series; `grid` and `whisker` belong to none."""

    points: str
    style: int | Literal["grid", "whisker", "axis"]


class Area(NamedTuple):
    """The area between the ends of intervals."""

    points: str
    style: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart to be written as SVG, `WIDTH` wide. `legend` has the names and styles if there are several series."""

    title: str
    description: str
    height: float
    legend: Sequence[tuple[str, int]] = ()
    boxes: list[Box] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    width: float = WIDTH


def drawn(chart: ReportChart) -> Drawing | None:
    """The chart's drawing; None where there is nothing to draw."""
    shown = {name: points for name, points in chart.series.items() if points_of(points)}
    if not shown:
        return None
    return _bars(chart, shown) if chart.kind == "bars" else _lines(chart, shown)


_Series = dict[str, Sequence[ChartPoint]]
#: The style, the name in the legend and the point of each bar, by place.
_Bars = dict[str, list[tuple[int, str, ChartPoint]]]


def _legend(shown: _Series) -> list[tuple[str, int]]:
    return [(name, at % STYLES) for at, name in enumerate(shown)] if len(shown) > 1 else []


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values from `ticks[0]` to `ticks[-1]`, which are drawn from `begin` to `end`."""

    ticks: Sequence[float]
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Where the value is drawn."""
        low, high = self.ticks[0], self.ticks[-1]
        return round(self.begin + (self.end - self.begin) * (value - low) / (high - low), 1)


def _extent(series: _Series) -> tuple[float, float]:
    """The least and the largest value, with the ends of intervals; 0 is always among them."""
    values = [
        each
        for points in series.values()
        for point in points_of(points)
        for each in (point.value, point.low, point.high)
        if each is not None and isfinite(each)
    ]
    return min(0.0, *values), max(0.0, *values)


def _bars(chart: ReportChart, shown: _Series) -> Drawing:
    """Horizontal bars by place, each place below its name: names may be as long as a screen of a phone is wide."""
    axis = _Axis(ticks(*_extent(shown)), 4, WIDTH - VALUE)
    places = dict.fromkeys(str(point.at) for points in shown.values() for point in points_of(points))
    bars: _Bars = {place: [] for place in places}
    for at, (name, points) in enumerate(shown.items()):
        for point in points_of(points):
            bars[str(point.at)].append((at % STYLES, name if len(shown) > 1 else "", point))
    height = sum(NAME + BAR * len(each) + 6 for each in bars.values())
    drawing = Drawing(chart.title, _told_bars(chart, bars), height + BOTTOM, _legend(shown))
    _grid_upright(drawing, axis, height, chart.labels[1])
    y = 0.0
    for place, each in bars.items():
        drawing.words.append(Word(8, y + NAME - 5, _cut(place)))
        y += NAME
        for style, name, point in each:
            _bar(drawing, axis, y, point, style=style, name=", ".join(filter(None, (place, name))))
            y += BAR
        y += 6
    return drawing


def _bar(drawing: Drawing, axis: _Axis, y: float, point: ChartPoint, *, style: int, name: str) -> None:
    zero, end = axis.at(0), axis.at(point.value)
    title = f"{name}: {_value(point)}"
    drawing.boxes.append(Box(min(zero, end), y, round(abs(end - zero), 1), BAR - 3, style, title))
    right = max(zero, end)
    if point.low is not None and point.high is not None and isfinite(point.low) and isfinite(point.high):
        low, high, middle = axis.at(point.low), axis.at(point.high), y + (BAR - 3) / 2
        for path in (
            f"{low},{middle} {high},{middle}",
            f"{low},{middle - 3} {low},{middle + 3}",
            f"{high},{middle - 3} {high},{middle + 3}",
        ):
            drawing.paths.append(Path(path, "whisker"))
        right = max(right, high)
    drawing.words.append(Word(right + 5, y + BAR - 4.5, number(point.value)))


def _grid_upright(drawing: Drawing, axis: _Axis, height: float, label: str) -> None:
    for tick in axis.ticks:
        x = axis.at(tick)
        drawing.paths.append(Path(f"{x},0 {x},{height}", "axis" if tick == 0 else "grid"))
        anchor: Literal["start", "middle"] = "start" if x < 10 else "middle"
        drawing.words.append(Word(x, height + 15, number(tick), anchor))
    drawing.words.append(Word(4, height + 35, label))


def _lines(chart: ReportChart, shown: _Series) -> Drawing:
    """Lines over an axis of numbers, with the areas of their intervals; a gap is a value that is no number."""
    places = [_place(point, at) for points in shown.values() for at, point in enumerate(points)]
    low, high = _extent(shown)
    down = _Axis(ticks(low, high), TOP + LINES_HEIGHT, TOP)
    begin, end = min(places), max(places)
    if 0 < begin < end / 20:  # an axis that nearly begins at 0 does so
        begin = 0.0
    within = [tick for tick in ticks(begin, end) if begin <= tick <= end]
    along = _Axis((begin, end if end > begin else begin + 1), LEFT, WIDTH - RIGHT)
    drawing = Drawing(chart.title, _told_lines(chart, shown), TOP + LINES_HEIGHT + BOTTOM, _legend(shown))
    for tick in down.ticks:
        y = down.at(tick)
        drawing.paths.append(Path(f"{LEFT},{y} {WIDTH - RIGHT},{y}", "axis" if tick == 0 else "grid"))
        drawing.words.append(Word(LEFT - 6, y + 4, number(tick), "end"))
    foot = TOP + LINES_HEIGHT
    for tick in within:
        x = along.at(tick)
        drawing.paths.append(Path(f"{x},{foot} {x},{foot + 4}", "axis"))
        drawing.words.append(Word(x, foot + 18, number(tick), "middle"))
    drawing.words.append(Word((LEFT + WIDTH - RIGHT) / 2, foot + 37, chart.labels[0], "middle"))
    drawing.words.append(Word(14, TOP + LINES_HEIGHT / 2, chart.labels[1], "middle", turned=True))
    for at, points in enumerate(shown.values()):
        for part in _parts(points):
            drawing.areas.extend(_area(part, along, down, at % STYLES))
            through = " ".join(f"{along.at(x)},{down.at(point.value)}" for x, point in part)
            # A point alone is a short line.
            drawing.paths.append(Path(through if len(part) > 1 else f"{through} {through}", at % STYLES))
    return drawing


_Placed = tuple[float, ChartPoint]


def _place(point: ChartPoint, at: int) -> float:
    return float(point.at) if isinstance(point.at, int | float) else float(at)


def _parts(points: Sequence[ChartPoint]) -> Iterator[list[_Placed]]:
    """The points between the gaps, with their places."""
    placed = [(_place(point, at), point) for at, point in enumerate(points)]
    for is_drawn, part in groupby(placed, key=lambda each: isfinite(each[1].value)):
        if is_drawn:
            yield list(part)


def _area(part: list[_Placed], along: _Axis, down: _Axis, style: int) -> Iterator[Area]:
    ends = [(x, point.low, point.high) for x, point in part if point.low is not None and point.high is not None]
    if len(ends) > 1:
        upper = [f"{along.at(x)},{down.at(high)}" for x, _, high in ends]
        lower = [f"{along.at(x)},{down.at(low)}" for x, low, _ in reversed(ends)]
        yield Area(" ".join([*upper, *lower]), style)


def _told_bars(chart: ReportChart, bars: _Bars) -> str:
    told = [
        f"{', '.join(filter(None, (place, name)))}: {_value(point)}"
        for place, each in bars.items()
        for _, name, point in each
    ]
    more = f"; and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return f"{chart.labels[1]}. {'; '.join(told[:MOST_TOLD])}{more}."


def _told_lines(chart: ReportChart, shown: _Series) -> str:
    told = []
    for name, points in shown.items():
        values = [point.value for point in points_of(points)]
        told.append(
            f"{name}: from {number(values[0])} to {number(values[-1])}, at least {number(min(values))}, at most "
            f"{number(max(values))}"
        )
    return f"{chart.labels[1]} over {chart.labels[0]}. {'; '.join(told)}."


def _value(point: ChartPoint) -> str:
    if point.low is None or point.high is None:
        return number(point.value)
    return f"{number(point.value)} ({number(point.low)} to {number(point.high)})"


def _cut(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 3]}..."
