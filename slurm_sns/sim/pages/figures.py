"""Draw the figures of reproductions: the only module of the simulator that imports matplotlib.

Each figure is saved twice: as SVG, where the same numbers give the same bytes, and as a small PNG for the page.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike, NDArray

from slurm_sns.errors import SnsError
from slurm_sns.sim.pages.judge import Interval, Quantity, found_of

DOTS_PER_INCH = 90
PANEL_INCHES = (3.9, 2.9)
COLOURS = ("tab:blue", "tab:cyan", "tab:orange", "tab:red", "tab:green", "black", "tab:purple")
#: A panel has up to ten lines.
LINE_COLOURS = (*COLOURS, "tab:brown", "tab:pink", "tab:olive")
MARKERS = "osv^DxP<>*"
LEGEND_COLUMNS = 4

#: Legend -> (x, value with its interval).
Series = Mapping[str, Sequence[tuple[float, Interval]]]
#: What is drawn in a panel.
Panel = TypeVar("Panel")


class Block(NamedTuple):
    """A job on a machine as a rectangle: its corner (`core`, `memory`) and its size in cores and in units of memory."""

    core: float
    memory: float
    cores: float
    amount: float
    label: str


def lines(
    folder: Path, stem: str, panels: Mapping[str, Series], labels: tuple[str, str], *, logarithmic: bool = False
) -> None:
    """Lines with error bars, one panel for each entry."""
    with _figure_of(folder, stem, panels, labels) as (_, axes):
        for axis, series in axes:
            _draw_lines(axis, series)
            if logarithmic:
                axis.loglog()
                sizes = sorted({x for points in series.values() for x, _ in points})
                axis.set_xticks(sizes, [f"{size:,g}" if size < 1e6 else f"{size / 1e6:g} M" for size in sizes])
                axis.minorticks_off()
                axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.yaxis.set_major_formatter("{x:g}")
        axes[0][0].legend(fontsize="x-small")


def logarithmic_lines(
    folder: Path, stem: str, panels: Mapping[str, Series], labels: tuple[str, str], *, ticks: Sequence[int] = (1,)
) -> None:
    """Lines with error bars on a logarithmic axis of values; one legend below the panels, which have the same lines.

    `ticks` are the multiples of the powers of ten that are labelled: more than one for values of few decades.
    """
    with _figure_of(folder, stem, panels, labels) as (figure, axes):
        for axis, series in axes:
            _draw_lines(axis, series)
            axis.set_yscale("log")
            if len(ticks) > 1:
                axis.minorticks_off()
                axis.yaxis.set_major_locator(LogLocator(subs=ticks))
            axis.yaxis.set_major_formatter("{x:g}")
        drawn, names = axes[0][0].get_legend_handles_labels()
        figure.legend(drawn, names, loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize="x-small")


def bars(folder: Path, stem: str, groups: Mapping[str, Mapping[str, Quantity]], labels: tuple[str, str]) -> None:
    """Groups of bars with error bars: legend -> group -> value; the first legend has all groups."""
    figure = Figure(figsize=(2 * PANEL_INCHES[0], PANEL_INCHES[1]), layout="constrained")
    axis = figure.subplots()
    names = list(next(iter(groups.values())))
    width = 0.8 / len(groups)
    for at, (legend, values) in enumerate(groups.items()):
        found = [found_of(values[name]) for name in names if name in values]
        beside = (at - (len(groups) - 1) / 2) * width
        places = [place + beside for place, name in enumerate(names) if name in values]
        means = [value.mean for value in found]
        axis.bar(
            places, means, width, yerr=_spread(found), label=legend, color=COLOURS[at], error_kw={"linewidth": 0.8}
        )
    axis.set_xticks(range(len(names)), names)
    _label(axis, "", labels)
    axis.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, folder, stem)


def courses(folder: Path, stem: str, panels: Mapping[str, Sequence[float]], labels: tuple[str, str]) -> None:
    """One thin line in each panel, all with the same axis of values."""
    top = 1.05 * max(max(values) for values in panels.values())
    with _figure_of(folder, stem, panels, labels) as (_, axes):
        for axis, values in axes:
            axis.plot(values, linewidth=0.5, color=COLOURS[0])
            axis.set_ylim(0, top)


def curves(
    folder: Path,
    stem: str,
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    labels: tuple[str, str],
    *,
    joined: bool = True,
) -> None:
    """Plain lines, or points: panel -> legend -> (x, y)."""
    with _figure_of(folder, stem, panels, labels) as (_, axes):
        for axis, series in axes:
            for at, (name, (across, up)) in enumerate(series.items()):
                look = {"color": COLOURS[at], "marker": MARKERS[at], "linewidth": 1 if joined else 0}
                axis.plot(across, up, label=name, markersize=3, **look)
        axes[0][0].legend(fontsize="x-small")


def fields(
    folder: Path, stem: str, panels: Mapping[str, NDArray[np.float64]], labels: tuple[str, str], legend: str
) -> None:
    """Heat maps, one panel for each table of numbers; all panels have the same colour scale."""
    figure = Figure(figsize=(2 * PANEL_INCHES[0], 1.3 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False).ravel()
    top = max(float(values.max()) for values in panels.values())
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        shown = axis.imshow(values, aspect="auto", cmap="Blues", vmin=0, vmax=top, interpolation="nearest")
        _label(axis, title, labels)
    figure.colorbar(shown, ax=list(axes), label=legend)
    _save(figure, folder, stem)


def grids(folder: Path, stem: str, rows: Mapping[str, Mapping[str, Sequence[Block]]], size: tuple[int, int]) -> None:
    """Machines as grids of cores by units of memory: row -> machine -> the jobs on it. `size`: (cores, units)."""
    cores, units = size
    widest = max(len(machines) for machines in rows.values())
    figure = Figure(figsize=(1.9 * widest, 2.5 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), widest, squeeze=False)
    for axes, (title, machines) in zip(panels, rows.items(), strict=True):
        for axis, (name, blocks) in zip(axes, machines.items(), strict=True):
            axis.set_xlim(0, cores)
            axis.set_ylim(0, units)
            axis.set_xticks(range(cores + 1))
            axis.set_yticks(range(units + 1))
            axis.tick_params(labelsize="xx-small")
            axis.grid(linewidth=0.4)
            axis.plot([0, cores], [0, units], linestyle="--", linewidth=0.7, color="0.4")
            axis.set_title(f"{title}\n{name}", fontsize="x-small")
            for at, block in enumerate(blocks):
                corner = (block.core, block.memory)
                axis.add_patch(
                    Rectangle(corner, block.cores, block.amount, color=COLOURS[at % len(COLOURS)], alpha=0.5)
                )
                middle = (block.core + block.cores / 2, block.memory + block.amount / 2)
                axis.text(*middle, block.label, ha="center", va="center", fontsize="xx-small")
    _save(figure, folder, stem)


def _draw_lines(axis: Any, series: Series) -> None:
    """Lines with error bars."""
    for at, (name, points) in enumerate(series.items()):
        values = [value for _, value in points]
        axis.errorbar(
            [x for x, _ in points],
            [value.mean for value in values],
            yerr=_spread(values),
            label=name,
            color=LINE_COLOURS[at],
            marker=MARKERS[at],
            markersize=3,
            linewidth=1,
            capsize=2,
        )


def _spread(values: Sequence[Interval]) -> list[list[float]]:
    """How far the intervals reach below and above their means."""
    return [[value.mean - value.low for value in values], [value.high - value.mean for value in values]]


@contextmanager
def _figure_of(
    folder: Path, stem: str, panels: Mapping[str, Panel], labels: tuple[str, str]
) -> Iterator[tuple[Figure, list[tuple[Any, Panel]]]]:
    """A figure of two columns, and the axes of each panel with what is to be drawn there; it is labelled and saved."""
    rows, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    figure = Figure(figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    yield figure, list(zip(axes, panels.values(), strict=False))
    for axis, title in zip(axes, panels, strict=False):
        _label(axis, title, labels)
    _save(figure, folder, stem)


def _label(axis: Any, title: str, labels: tuple[str, str]) -> None:
    axis.set_title(title, fontsize="small")
    axis.set_xlabel(labels[0], fontsize="small")
    axis.set_ylabel(labels[1], fontsize="small")
    axis.tick_params(labelsize="x-small")


def _save(figure: Figure, folder: Path, stem: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"svg.hashsalt": "sns", "svg.fonttype": "none"}):
            figure.savefig(folder / f"{stem}.png", dpi=DOTS_PER_INCH)
            figure.savefig(folder / f"{stem}.svg", metadata={"Date": None})
    except OSError as problem:
        raise SnsError(f"{folder / stem} cannot be written: {problem.strerror}") from None
