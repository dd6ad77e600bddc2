"""A node as rows of characters: a box with cores across and memory up, in which each job is a rectangle. Pure.

Jobs are laid as in the pictures of the documentation, the largest first from the lower left: each begins at the core
and at the memory where the one before it ends. What lies beside them in the used part of the box is taken by one job in
cores and by another in memory. Free capacity that serves no waiting job is hatched. Each thing has a character of its
own, so that the box can be read without colours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

from slurm_sns.cli.live.top.cell_text import cells, fitted

Node = Mapping[str, Any]

#: The kinds of what is drawn, by which a terminal chooses colours; a job that the caller sees is `JOB` with its number.
TITLE, BORDER, FREE, STRANDED, BESIDE, OTHERS, CLOSED, STRIP, NOTE, JOB = (
    *("title", "border", "free", "stranded", "beside", "others", "closed", "strip", "note"),
    "job",
)


class GlyphRun(NamedTuple):
    """Some characters of one kind; `hue` tells jobs apart."""

    text: str
    kind: str
    hue: int = 0


class Glyphs(NamedTuple):
    """The characters of a box: its corners and sides, and what fills it."""

    corners: tuple[str, str]
    across: str
    up: str
    stranded: str
    beside: str
    others: str
    closed: str
    taken: str
    left: str


UNICODE = Glyphs(("┌┐", "└┘"), "─", "│", "\u2571", "░", "·", "x", "■", "·")  # U+2571 is a hatch
ASCII = Glyphs(("++", "++"), "-", "|", "/", ".", ":", "x", "#", "-")
#: The letters of jobs that slurm_sns manages, and of Slurm's own; the jobs behind the 26th have the mark.
MANAGED, OWN, MORE = ascii_lowercase, ascii_uppercase, "*"
#: The boxes of the largest node, columns and rows without borders, the largest first.
SIZES = ((40, 12), (32, 10), (24, 8), (20, 6), (16, 4))
#: So many colours tell jobs apart.
HUES = 6
#: Blank columns between boxes.
SPACE = 1
#: So many cells show the cores of a node in the form of one line.
COMPACT_CELLS = 20


@dataclass(frozen=True, slots=True)
class BoxScale:
    """How large boxes are: the cells of the largest node, and how many strips of GPUs some node has."""

    columns: int
    rows: int
    cores: int
    memory_mb: int
    has_ways: bool
    gpu_types: int

    @property
    def width(self) -> int:
        """The columns of a tile."""
        return self.columns + 2

    @property
    def height(self) -> int:
        """The rows of a tile: title, box, a strip of ways, strips of GPUs."""
        return self.rows + 3 + self.has_ways + self.gpu_types

    def of(self, node: Node) -> tuple[int, int]:
        """The columns and rows of this node's box."""
        capacity = node["capacity"]
        return (
            max(1, round(self.columns * capacity["cores"] / self.cores)),
            max(1, round(self.rows * capacity["memory_mb"] / self.memory_mb)),
        )

    def per_line(self, width: int) -> int:
        """How many tiles stand side by side."""
        return max(1, (width + SPACE) // (self.width + SPACE))


def scale_for(nodes: Sequence[Node], width: int, height: int) -> BoxScale:
    """The largest boxes with which all nodes fit on the screen; the smallest if none do."""
    capacities = [node["capacity"] for node in nodes]
    largest = max((each["cores"] for each in capacities), default=1) or 1
    memory_mb = max((each["memory_mb"] for each in capacities), default=1) or 1
    has_ways = any(each["ways"] for each in capacities)
    gpu_types = max((len(each["gpus"]) for each in capacities), default=0)
    scales = [BoxScale(columns, rows, largest, memory_mb, has_ways, gpu_types) for columns, rows in SIZES]
    return next((each for each in scales if _fits(each, len(nodes), width, height)), scales[-1])


def _fits(scale: BoxScale, nodes: int, width: int, height: int) -> bool:
    return scale.width <= width and ceil(nodes / scale.per_line(width)) * scale.height <= height


def letters(node: Node) -> list[str]:
    """The letter of each job on the node; empty for a job that the caller may not see."""
    of_managed, of_own = iter(MANAGED), iter(OWN)
    return ["" if not job["label"] else next(of_managed if job["managed"] else of_own, MORE) for job in node["jobs"]]


def tile(node: Node, scale: BoxScale, glyphs: Glyphs) -> list[list[GlyphRun]]:
    """The node's tile, each line as wide as the tile."""
    columns, rows = scale.of(node)
    top, bottom = (GlyphRun(f"{ends[0]}{glyphs.across * columns}{ends[1]}", BORDER) for ends in glyphs.corners)
    inner = [
        [GlyphRun(glyphs.up, BORDER), *line, GlyphRun(glyphs.up, BORDER)] for line in _box(node, columns, rows, glyphs)
    ]
    lines = [[GlyphRun(f" {title(node)}", NOTE if is_marked(node) else TITLE)], [top], *inner, [bottom]]
    lines += _strips(node, scale.width, glyphs)
    lines += [[]] * (scale.height - len(lines))
    return [_filled(line, scale.width) for line in lines]


def compact_line(node: Node, width: int, glyphs: Glyphs) -> list[GlyphRun]:
    """The node on one line: its cores, what is used of each resource, and what there is to say of it."""
    name, free, capacity = fitted(node["name"], 12), node["free"], node["capacity"]
    used = {key: capacity[key] - free[key] for key in ("cores", "memory_mb", "ways")}
    amounts = f"{used['cores']}/{capacity['cores']}c {used['memory_mb'] // 1024}/{capacity['memory_mb'] // 1024}G"
    ways = f" {used['ways']}/{capacity['ways']}w" if capacity["ways"] else ""
    gpus = "".join(f" {_used_gpus(node, kind)}/{count}{kind or 'gpu'}" for kind, count in capacity["gpus"].items())
    [bar] = _box(node, COMPACT_CELLS, 1, glyphs)
    told = f" {amounts + ways + gpus:22} {note(node)}"
    return _filled([GlyphRun(f" {name} [", TITLE), *bar, GlyphRun("]", TITLE), GlyphRun(told, TITLE)], width)


def is_marked(node: Node) -> bool:
    """Whether there is something to say of it."""
    return bool(note(node))


def note(node: Node) -> str:
    """Why the node may not be used, or for which jobs it is kept; empty if neither."""
    if node["unavailable"]:
        return f"! {node['unavailable']}"
    if not node["kept_for"]:
        return ""
    own = [label for label in node["kept_for"] if label]
    others = len(node["kept_for"]) - len(own)
    unseen = [f"{others} other job{'s' if others > 1 else ''}"] if others else []
    return f"kept for {', '.join(own + unseen)}"


def title(node: Node) -> str:
    """The line above a box: the name with what there is to say of it, or else with its used cores."""
    capacity, free = node["capacity"], node["free"]
    return f"{node['name']} {note(node) or '{}/{}c'.format(capacity['cores'] - free['cores'], capacity['cores'])}"


def _box(node: Node, columns: int, rows: int, glyphs: Glyphs) -> list[list[GlyphRun]]:
    """The inside of the box, from the top."""
    capacity, free, stranded = node["capacity"], node["free"], node["stranded"]
    across, up = columns / max(1, capacity["cores"]), rows / max(1, capacity["memory_mb"])
    empty = GlyphRun(glyphs.closed, CLOSED) if node["unavailable"] else GlyphRun(" ", FREE)
    box = [[empty] * columns for _ in range(rows)]
    used = ((capacity["cores"] - free["cores"]) * across, (capacity["memory_mb"] - free["memory_mb"]) * up)
    if min(used) > 0:
        _paint(box, (0, used[0]), (0, used[1]), GlyphRun(glyphs.beside, BESIDE))
    hatch = GlyphRun(glyphs.stranded, STRANDED)
    if stranded["cores"]:
        _paint(box, (columns - stranded["cores"] * across, columns), (0, rows), hatch)
    core = memory = 0.0
    for job, letter in zip(node["jobs"], letters(node), strict=True):
        next_core, next_memory = core + job["holds"]["cores"] * across, memory + job["holds"]["memory_mb"] * up
        run = GlyphRun(letter, JOB, _hue(job["label"])) if letter else GlyphRun(glyphs.others, OTHERS)
        _paint(box, (core, next_core), (memory, next_memory), run, job["label"])
        core, memory = next_core, next_memory
    return [_runs(line) for line in reversed(box)]


def _paint(
    box: list[list[GlyphRun]], across: tuple[float, float], up: tuple[float, float], run: GlyphRun, label: str = ""
) -> None:
    """Fill a rectangle of at least one cell, rows counted from the bottom; a label that fits stands in its top row."""
    columns, rows = _range(*across, len(box[0])), _range(*up, len(box))
    for row in rows:
        for column in columns:
            box[row][column] = run
    if label.isascii() and label.isprintable() and len(label) < len(columns):
        for column, letter in zip(columns, f"{run.text}{label}", strict=False):
            box[rows[-1]][column] = run._replace(text=letter)


def _hue(label: str) -> int:
    """A small number by which neighbours get different colours; the same on all nodes of a job."""
    return sum(map(ord, label)) % HUES


def _range(begin: float, end: float, most: int) -> range:
    """The cells that a part of a scale touches for the most part; at least one."""
    first = min(most - 1, max(0, round(begin)))
    return range(first, max(first + 1, min(most, round(end))))


def _runs(line: Iterable[GlyphRun]) -> list[GlyphRun]:
    """Neighbours of one kind as one run."""
    return [
        GlyphRun("".join(run.text for run in alike), kind, hue)
        for (kind, hue), alike in groupby(line, key=lambda run: (run.kind, run.hue))
    ]


def _strips(node: Node, width: int, glyphs: Glyphs) -> list[list[GlyphRun]]:
    """What is used of the cache ways and of each type of GPU, a cell for each where they fit; stranded ones hatched."""
    capacity, free, stranded, made = node["capacity"], node["free"], node["stranded"]["gpus"], []
    if capacity["ways"]:
        made.append(_strip("ways", (capacity["ways"] - free["ways"], 0, capacity["ways"]), width, glyphs))
    for kind, count in capacity["gpus"].items():
        made.append(_strip(kind or "gpu", (_used_gpus(node, kind), stranded.get(kind, 0), count), width, glyphs))
    return made


def _used_gpus(node: Node, kind: str) -> int:
    return int(node["capacity"]["gpus"][kind] - node["free"]["gpus"].get(kind, 0))


def _strip(name: str, counts: tuple[int, int, int], width: int, glyphs: Glyphs) -> list[GlyphRun]:
    """The `counts` used, stranded, and of all as cells; stranded ones are the last of the free ones."""
    used, stranded, total = counts
    head, tail = f"{name[:6]} ", f" {used}/{total}"
    places = min(total, max(1, width - len(head) - len(tail)))
    taken = ceil(places * used / total)
    lost = min(places - taken, ceil(places * stranded / total))
    left = places - taken - lost
    return [
        GlyphRun(f"{head}{glyphs.taken * taken}{glyphs.left * left}", STRIP),
        GlyphRun(glyphs.stranded * lost, STRANDED),
        GlyphRun(tail, STRIP),
    ]


def _filled(line: Sequence[GlyphRun], width: int) -> list[GlyphRun]:
    """The line in exactly so many cells: harmless, cut, or with blanks to its right."""
    made: list[GlyphRun] = []
    left = width
    for run in line:
        size = min(left, cells(run.text))
        made.append(run._replace(text=fitted(run.text, size)))
        left -= size
    return [*made, GlyphRun(" " * left, FREE)] if left else made
