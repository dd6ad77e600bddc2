"""The numbers of charts: how one is written, which points can be drawn, where an axis has its ticks."""

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

from slurm_sns.report.document import ChartPoint

#: An axis has about so many ticks.
TICKS = 5
#: Below this part of their size, two numbers are too near each other for ticks between them.
LEAST_SPAN = 1e-9


def number(value: float) -> str:
    """Three digits at least, and no more than are needed: `1,234`, `12.3`, `0.0123`."""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"


def points_of(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """The points whose value can be drawn; one that is no finite number is a gap."""
    return [point for point in points if isfinite(point.value)]


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most `low` to at least `high`, in steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span < LEAST_SPAN * max(1.0, abs(low)):  # nearly one number
        span = max(1.0, abs(low))
        high = low + span
    power = 10.0 ** floor(log10(span / TICKS))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * TICKS >= span * 0.999)
    return [each * step for each in range(floor(low / step), ceil(high / step) + 1)]
