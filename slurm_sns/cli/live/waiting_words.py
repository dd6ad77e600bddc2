"""What waiting jobs wait for, in a few words: the cells of `sns queue`, and the histogram of `sns queue --why`.

The scheduler says it in fields (WaitCause); no sentence is taken apart here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from slurm_sns.cli.live.terminal import RUNS, new_table, plain
from slurm_sns.log import printable
from slurm_sns.model import WaitKind

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import WaitGroup
    from slurm_sns.scheduler.answers.answer_types import WaitCause

Row = Mapping[str, Any]

NONE = "no jobs wait"
#: For each kind the words of a cell, and those of the histogram below WAIT FOR. `{of}` is `: about`, or nothing.
WORDS: Mapping[str, tuple[str, str]] = {
    WaitKind.RESOURCES: ("{about}", "{about}"),
    WaitKind.NODES: ("nodes{of}", "enough nodes at once{of}"),
    WaitKind.TOO_LARGE: ("more or larger nodes", "more or larger nodes than can be used now"),
    WaitKind.WITHHELD: ("withheld for {about}", "capacity that is withheld for {about}"),
    WaitKind.NEXT: ("next on {about}", "more room on {about}, where capacity is withheld for them"),
    WaitKind.QUEUE_DEPTH: ("queue depth", "their turn, behind the queue depth"),
    WaitKind.KEPT: ("Slurm's own jobs", "jobs of Slurm's own that were submitted before them"),
    WaitKind.HELD: ("held{of}", "their release (held{of})"),
    WaitKind.DEPENDENCY: ("dependency", "other jobs, by their dependencies"),
    WaitKind.BEGIN_TIME: ("begin time", "the begin times of their owners"),
    WaitKind.LIMIT: ("limit{of}", "a limit of their user, account or QOS{of}"),
    WaitKind.ARRAY_LIMIT: ("array limit", "other tasks of their arrays, by the arrays' limits"),
    WaitKind.PARTITION: ("partition {about}", "a partition that would start them: {about} does not"),
    WaitKind.NEW_SIZES: ("new sizes", "a later cycle: their owners have many jobs of new sizes"),
    WaitKind.RETRY: ("next try", "their next try: Slurm did not start them"),
    WaitKind.NEVER: ("never{of}", "nothing, because they can never start as they are{of}"),
    WaitKind.OTHER: ("other", "something else"),
}


def cell(row: Row) -> str:
    """What the job waits for in a word or two, or `placed`; its reason if it runs, or waits for something else."""
    waits = row["waits"]
    if waits is None and row["state"] not in RUNS:
        return str(row["state"]).partition(",")[0]
    if waits is None or waits["kind"] == WaitKind.OTHER:
        return str(row["reason"])
    return _words(waits, 0) + (f" ({waits['features']})" if waits["features"] else "")


def groups(rows: Sequence[Row]) -> "list[WaitGroup]":
    """How many of the jobs wait for the same, the most first, each with the first of them in queue order."""
    waiting = [row for row in rows if row["waits"] is not None]
    keys = [tuple(row["waits"][name] for name in ("kind", "about", "features")) for row in waiting]
    first = dict(zip(reversed(keys), reversed(waiting), strict=True))
    return [_group(first[key], jobs) for key, jobs in Counter(keys).most_common()]


def _group(first: Row, jobs: int) -> "WaitGroup":
    waits: WaitCause = first["waits"]
    return {**waits, "words": _in_full(waits), "jobs": jobs, "first": first["label"]}


def histogram(counted: "Sequence[WaitGroup]", *, heading: bool = True) -> RenderableType:
    """The groups as a table for a terminal."""
    if not counted:
        return NONE
    shown = new_table("JOBS", "FIRST", "WAIT FOR", right=("JOBS", "FIRST"), overflow="fold")
    shown.show_header = heading
    for each in counted:
        shown.add_row(*map(plain, (each["jobs"], each["first"], each["words"])))
    return shown


def histogram_lines(counted: "Sequence[WaitGroup]", *, heading: bool = True) -> Iterator[str]:
    """The groups as lines for a pipe; only the last column has spaces."""
    if not counted:
        yield from [NONE] * heading
        return
    cells = [("JOBS", "FIRST", "WAIT FOR")] if heading else []
    cells += [(str(each["jobs"]), printable(each["first"]), printable(each["words"])) for each in counted]
    widths = [max(len(each[at]) for each in cells) for at in (0, 1)]
    for jobs, first, words in cells:
        yield f"{jobs:>{widths[0]}}  {first:>{widths[1]}}  {words}"


def _in_full(waits: "WaitCause") -> str:
    return _words(waits, 1) + (f" on nodes with {waits['features']}" if waits["features"] else "")


def _words(waits: "WaitCause", length: int) -> str:
    """The words for the cause; a kind of a newer scheduler stands for itself."""
    about = waits["about"]
    template = WORDS.get(waits["kind"], (waits["kind"] + "{of}",) * 2)[length]
    return template.format(about=about, of=f": {about}" if about else "")
