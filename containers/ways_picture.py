"""The ways of each node's cache over time, by the group that has them: a PNG, and the same for a terminal.

Input are the lines of bin/cluster-watch-ways: what each group had from a moment on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from rich.text import Text

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

#: What a way shows that the group of all others has, and one that nobody has.
SHARED, NOBODY = "the system and jobs without ways", "nobody"
#: Columns of the picture in a terminal, and ways in one of its lines.
COLUMNS, WAYS_IN_A_LINE = 72, 2
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: Colours of a terminal and of the PNG, in the order of the letters.
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
GREYS = {SHARED: "#b0b0b0", NOBODY: "#ffffff"}


class Shown(NamedTuple):
    """From this moment on each group had these ways."""

    at_s: float
    masks: Mapping[str, int]


def shown(text: str) -> list[Shown]:
    """The lines of one node."""
    return [Shown(line["at_s"], line["masks"]) for line in map(json.loads, text.splitlines())]


def owners(at: Mapping[str, int], ways: int) -> list[str]:
    """Who has each way: the name of a job's group, or SHARED, or NOBODY."""
    jobs = {name: mask for name, mask in at.items() if name != "sns_shared"}
    shared = at.get("sns_shared", 0)
    return [
        next((name for name, mask in jobs.items() if mask >> way & 1), SHARED if shared >> way & 1 else NOBODY)
        for way in range(ways)
    ]


def columns(lines: Sequence[Shown], begin_s: float, end_s: float, count: int) -> Iterator[Mapping[str, int]]:
    """What was in force at so many moments, equally far apart."""
    for moment in np.linspace(begin_s, end_s, count):
        before = [line for line in lines if line.at_s <= moment]
        yield before[-1].masks if before else {}


class Picture:
    """The ways of several nodes in one span of time. `names` says what a job's group is called in the legend."""

    def __init__(self, nodes: Mapping[str, Sequence[Shown]], names: Mapping[str, str], ways: int = 20) -> None:
        moments = [line.at_s for lines in nodes.values() for line in lines if line.masks.keys() & names.keys()]
        if not moments:
            raise ValueError("none of these groups was seen on a node")
        self._begin_s = min(moments) - 0.5
        self._end_s = max(line.at_s for lines in nodes.values() for line in lines) + 0.5
        self._nodes = {
            node: lines for node, lines in nodes.items() if any(line.masks.keys() & names.keys() for line in lines)
        }
        self._names, self._ways = names, ways

    def _grid(self, node: str, count: int) -> list[list[str]]:
        """Who has each way (lines) at each moment (columns)."""
        moments = columns(self._nodes[node], self._begin_s, self._end_s, count)
        return [list(line) for line in zip(*(owners(at, self._ways) for at in moments), strict=True)]

    def terminal(self) -> Iterator[Text]:
        """A line of letters for every two ways of each node, highest ways first; then what the letters mean."""
        letters = {group: LETTERS[at % len(LETTERS)] for at, group in enumerate(self._names)}
        colours = {group: COLOURS[at % len(COLOURS)] for at, group in enumerate(self._names)}
        for node in self._nodes:
            grid = self._grid(node, COLUMNS)
            for way in reversed(range(0, self._ways, WAYS_IN_A_LINE)):
                line = Text(f"{node if way == self._ways - WAYS_IN_A_LINE else '':>4} {way:>3} ")
                for owner in grid[way]:
                    line.append(letters.get(owner, "." if owner == SHARED else " "), style=colours.get(owner, "dim"))
                yield line
        yield Text(f"     way  {self._end_s - self._begin_s:.0f} s from left to right; . is {SHARED}")
        for group, name in self._names.items():
            yield Text(f"          {letters[group]} is {name}", style=colours[group])

    def save(self, path: Path) -> None:
        """Write the PNG."""
        kinds = [*self._names, SHARED, NOBODY]
        colours = [mpl.colormaps["tab10"](at % 10) for at in range(len(self._names))] + [*GREYS.values()]
        place = {kind: at for at, kind in enumerate(kinds)}
        figure, axes = plt.subplots(
            len(self._nodes), 1, figsize=(9, 1.2 + 1.7 * len(self._nodes)), sharex=True, squeeze=False
        )
        for axis, node in zip(axes[:, 0], self._nodes, strict=True):
            cells = [[place.get(owner, place[NOBODY]) for owner in line] for line in self._grid(node, 600)]
            axis.imshow(
                cells,
                aspect="auto",
                origin="lower",
                interpolation="nearest",
                cmap=ListedColormap(colours),
                vmin=0,
                vmax=len(kinds) - 1,
                extent=(0, self._end_s - self._begin_s, 0, self._ways),
            )
            axis.set_ylabel(f"{node}: way")
        axes[-1, 0].set_xlabel("seconds")
        known = zip(kinds[:-1], colours, strict=False)
        labels = [Patch(color=colour, label=self._names.get(kind, kind)) for kind, colour in known]
        figure.legend(handles=labels, loc="outside upper center", ncols=2, frameon=False)
        figure.set_layout_engine("constrained")
        figure.savefig(path, dpi=110)
        plt.close(figure)


def of_nodes(texts: Mapping[str, str]) -> dict[str, list[Shown]]:
    """The lines of each node that has any."""
    return {node: lines for node, text in texts.items() if (lines := shown(text))}
