"""Make first.svg, README's picture: what `sns explain` and `sns queue` say, and two ways of packing the same jobs.

The queue is the one of the Max-Jobs paper's figure 3, three times over, on nodes eight times as large, and one job
more. One cycle plans it on six empty nodes: once under best-fit-cores, once under max-jobs. Texts and places are what
the scheduler's own code answers. `python docs/img/first.py` writes the picture, with the same bytes each time.
"""

import io
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from slurm_sns.cli.live import asking, queue_view, terminal
from slurm_sns.cli.live.parts import settings as settings_of
from slurm_sns.config.configuration import Config, load
from slurm_sns.json_text import encoded
from slurm_sns.model import Plan, Resources, Snapshot, total
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.ports import Decision
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.submit import record
from slurm_sns.submit.record import Record

PICTURE = Path(__file__).with_name("first.svg")

#: The nodes, and the jobs that wait, as cores and GiB: figure 3 has 4 cores and 32 GB, jobs of 1 core with 16 or 4 GB.
NODES = tuple(f"n{number}" for number in range(1, 7))
CORES, MEMORY_GIB = 32, 256
BIG, SMALL = (8, 128), (8, 32)
QUEUE = [BIG] * 6 + [SMALL] * 18
#: One more finds no place under either way: its reason to wait is shown.
LAST = (16, 64)
SIZES = [*QUEUE, LAST]
FIRST_JOB = 4701
#: The moment of the cycle, how long before it the last job was submitted, and how long after it the queue is shown.
NOW_S, WAITED_S, LATER_S = 1_800_000_000, 240, 95
USERS = ("alice", "bob")
ALICE = 2001
PACKED = "best-fit-cores"

#: The terminal's columns, and how many jobs of the queue it shows.
COLUMNS, ROWS = 72, 6
#: The picture, its margin, and where its right half begins.
WIDTH, HEIGHT, MARGIN, RIGHT = 1080, 566, 16, 592
#: A node as it is drawn.
BOX_WIDTH, BOX_HEIGHT, BOX_STEP = 66, 128, 78
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, FAINT, PAPER, LINE, USED, STRANDED = "#1f2933", "#52606d", "#fbfaf7", "#7b8794", "#dce9f1", "#c2410c"
COLOURS = {BIG: "#1f6f9f", SMALL: "#7db8d8", LAST: "#444444"}
#: Rich's drawing of a terminal without its font, which it would fetch from elsewhere.
TERMINAL = """<svg PLACE viewBox="0 0 {width} {height}" preserveAspectRatio="xMinYMin">
<style>.{unique_id}-matrix {{font: {char_height}px MONO}} .{unique_id}-title {{font: bold 18px SANS}}
{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>"""


class NoDecisions:
    """The decision record before the first placement."""

    def of_job(self, job_id: int) -> list[Decision]:  # noqa: ARG002 - of no job
        """Nothing was decided."""
        return []

    def job_of_task(self, array_id: int, task: int) -> int | None:  # noqa: ARG002 - there are no arrays
        """No task was placed."""
        return None

    def snapshot_of(self, cycle_id: int) -> Snapshot | None:  # noqa: ARG002 - of no cycle
        """No snapshot is kept."""
        return None

    def record(self, *_: object, **__: object) -> None:
        """Keep nothing."""


class Seen(NamedTuple):
    """What `sns explain` is answered after the cycle, `sns queue` later; and the plans of both ways."""

    explained: dict[str, Any]
    queue: list[dict[str, Any]]
    packed: Plan
    matched: Plan


def seen() -> Seen:
    """Plan the queue under each way, and let the jobs of max-jobs' plan run."""
    settings, policy = settings_of(load_config()), max_jobs()
    jobs = [job(number) for number in range(len(SIZES))]

    def situation(known: Sequence[ObservedJob], now_s: int) -> Situation:
        capacity = Resources(CORES, MEMORY_GIB * 1024)
        nodes = tuple(ObservedNode(name, frozenset({"main"}), capacity, taken(known, name)) for name in NODES)
        return read_situation(Observation(tuple(known), nodes), {}, settings, now_s)

    def answer(of: Situation, plan: Plan, command: str, **more: int) -> Any:
        recent = RecentCycles()
        view = View(
            at_s=float(of.snapshot.now_s),
            took_s=0.01,
            mode="enforce",
            disabled=False,
            cycles=1,
            placed=0,
            renewed_per_minute=0,
            situation=of,
            plan=plan,
        )
        recent.publish(view)
        answers = Answers(recent, NoDecisions(), policy, frozenset({0}), settings=settings, asked=set())
        return json.loads(encoded(answers.answer({"command": command, **more}, 0)))

    at_once = situation(jobs, NOW_S)
    packed, matched = max_jobs(portfolio=(PACKED,)).plan(at_once.snapshot), policy.plan(at_once.snapshot)
    places = {start.job_id: start.nodes for start in matched.starts}
    later = situation([running(each, places[each.id]) if each.id in places else each for each in jobs], NOW_S + LATER_S)
    explained = answer(at_once, matched, "explain", job_id=FIRST_JOB + len(QUEUE))
    return Seen(explained, answer(later, policy.plan(later.snapshot), "queue"), packed, matched)


def load_config() -> Config:
    """An sns.yaml with these nodes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sns.yaml")
        size = f"cores: {CORES}, memory_mb: {MEMORY_GIB * 1024}"
        path.write_text(
            "mode: enforce\npartitions: [main]\nmatching: {queue_order: fair-now}\n"
            f"nodes: [{{names: 'n[1-{len(NODES)}]', partitions: [main], {size}}}]\n"
        )
        return load(path)


def job(number: int) -> ObservedJob:
    """A gated job of one process, as Slurm shows it."""
    cores, memory_gib = SIZES[number]
    turn, gate_s = number % len(USERS), NOW_S + 600
    return ObservedJob(
        id=FIRST_JOB + number,
        user_id=ALICE + turn,
        submit_s=NOW_S - WAITED_S - (len(QUEUE) - number) * 3,
        state=JobState.PENDING,
        user=USERS[turn],
        account="physics",
        partitions=("main",),
        priority=1000,
        admin_comment=record.written("", Record(gate_s=gate_s)),
        begin_s=gate_s,
        cpus=cores,
        cpus_per_task=cores,
        nodes_min=1,
        nodes_max=1,
        memory_per_node_mb=memory_gib * 1024,
        walltime_s=3600,
    )


def running(of: ObservedJob, nodes: tuple[str, ...]) -> ObservedJob:
    """The job a while after it was placed and has started."""
    noted = record.written("", Record(gate_s=NOW_S + 600, nodes=nodes, placed_s=NOW_S))
    whole = Resources(of.cpus, of.memory_per_node_mb or 0)
    return replace(
        of,
        state=JobState.RUNNING,
        begin_s=NOW_S,
        start_s=NOW_S + 1,
        end_s=NOW_S + 3601,
        admin_comment=noted,
        pinned_to=nodes,
        allocated=nodes,
        occupies=whole,
    )


def taken(jobs: Sequence[ObservedJob], node: str) -> Resources:
    """What running jobs hold on the node."""
    return total(each.occupies for each in jobs if node in each.allocated)


def terminal_part(answered: Seen) -> str:
    """Both commands with their output, by rich's own drawing of a terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(f"[bold]$ sns explain {FIRST_JOB + len(QUEUE)}[/]")
    for part in terminal.explanation(answered.explained, asking.place_in_queue(answered.explained)):
        console.print(part)
    console.print(f"\n[bold]$ sns queue -n {ROWS}[/]")
    hidden = len(answered.queue) - ROWS
    console.print(queue_view.table(answered.queue[:ROWS], NOW_S + LATER_S, COLUMNS, hidden=hidden))
    place = f'x="{MARGIN}" y="{MARGIN}" width="{RIGHT - 2 * MARGIN}"'
    drawn = TERMINAL.replace("PLACE", place).replace("MONO", MONO).replace("SANS", SANS)
    return console.export_svg(title="alice@login", code_format=drawn, unique_id="t")


def nodes_part(plan: Plan, top: int, title: str, note: str) -> Iterator[str]:
    """The six nodes as one way of packing fills them, with what is stranded."""
    placed = {name: [SIZES[start.job_id - FIRST_JOB] for start in plan.starts if name in start.nodes] for name in NODES}
    stranded = [stranded_on(jobs) for jobs in placed.values()]
    cores, memory = (sum(each[which] for each in stranded) for which in (0, 1))
    yield f'<text x="{RIGHT}" y="{top}" class="title">{title}</text>'
    yield f'<text x="{RIGHT}" y="{top + 19}" class="note">{note}</text>'
    for at, (name, jobs) in enumerate(placed.items()):
        yield from node(RIGHT + at * BOX_STEP, top + 32, name, jobs)
    starts = f"{len(plan.starts)} of {len(SIZES)} jobs start."
    yield f'<text x="{RIGHT}" y="{top + 32 + BOX_HEIGHT + 38}" class="sum">{starts}'
    yield f' Stranded: <tspan class="bad">{cores} cores, {memory} GiB</tspan></text>'


def stranded_on(jobs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The cores that are free where no memory is, and the memory (GiB) that is free where no core is."""
    cores, memory = CORES - sum(each[0] for each in jobs), MEMORY_GIB - sum(each[1] for each in jobs)
    return (cores if memory == 0 else 0, memory if cores == 0 else 0)


def node(left: float, top: float, name: str, jobs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """A node as a box. Each job begins at the core and at the memory where the one before it ends."""
    width, height = BOX_WIDTH / CORES, BOX_HEIGHT / MEMORY_GIB
    core, memory = sum(each[0] for each in jobs), sum(each[1] for each in jobs)
    bottom = top + BOX_HEIGHT
    yield box(left, top, BOX_WIDTH, BOX_HEIGHT, 'fill="#ffffff"')
    yield box(left, bottom - memory * height, core * width, memory * height, f'fill="{USED}"')
    idle_cores, idle_memory = stranded_on(jobs)
    yield box(left + core * width, top, idle_cores * width, BOX_HEIGHT, 'class="stranded"')
    yield box(left, top, BOX_WIDTH, idle_memory * height, 'class="stranded"')
    core = memory = 0
    for cores, gib in jobs:
        core, memory = core + cores, memory + gib
        at = (left + (core - cores) * width, bottom - memory * height)
        yield box(*at, cores * width, gib * height, f'class="job" fill="{COLOURS[cores, gib]}"')
    yield box(left, top, BOX_WIDTH, BOX_HEIGHT, 'class="node"')
    yield f'<text x="{left + BOX_WIDTH / 2:g}" y="{bottom + 15}" class="name">{name}</text>'


def box(left: float, top: float, width: float, height: float, look: str) -> str:
    """A rectangle; nothing where it has no area."""
    if width * height == 0:
        return ""
    return f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" {look}/>'


def picture() -> str:
    """The whole picture."""
    with utc():
        answered = seen()
        shell = terminal_part(answered)
    nodes = [line for line in right_half(answered) if line]
    return "\n".join((HEAD, shell, '<g class="nodes">', *nodes, "</g>", "</svg>", ""))


def right_half(answered: Seen) -> Iterator[str]:
    """Both ways of packing, and what the colours mean."""
    packed = f"each job on the fullest node that holds it ({PACKED}, simulated)"
    yield from nodes_part(answered.packed, 36, "First come, first fit, packed by cores", packed)
    matched = "five heuristics compete by cores and memory; most jobs win"
    yield from nodes_part(answered.matched, 280, "slurm_sns: Max-Jobs", matched)
    y = HEIGHT - 36
    yield f'<text x="{RIGHT}" y="{y}" class="note">A box is a node: {CORES} cores across, {MEMORY_GIB} GiB up.</text>'
    for x, look, text in (
        (0, f'fill="{COLOURS[BIG]}"', f"{BIG[0]} cores, {BIG[1]} GiB"),
        (150, f'fill="{COLOURS[SMALL]}"', f"{SMALL[0]} cores, {SMALL[1]} GiB"),
        (292, 'class="stranded"', "stranded: free, of no use"),
    ):
        yield box(RIGHT + x, y + 9, 14, 14, look)
        yield f'<text x="{RIGHT + x + 20}" y="{y + 21}" class="note">{text}</text>'


TITLE = "Left: sns explain and sns queue. Right: the same jobs on six nodes, packed by cores and by slurm_sns."
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"
 viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>{TITLE}</title>
<style>.nodes text {{font: 13px {SANS}; fill: {FAINT}}} .nodes .title {{font-size: 17px; font-weight: 600; fill: {INK}}}
.nodes .sum {{font-size: 14.5px; fill: {INK}}} .nodes .name {{text-anchor: middle}}
.bad {{fill: {STRANDED}; font-weight: 600}}
.node {{fill: none; stroke: {LINE}; stroke-width: 1.5}} .job {{stroke: #ffffff; stroke-width: 0.8}}
.stranded {{fill: url(#hatch); stroke: {STRANDED}; stroke-width: 0.8}}</style>
<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="#fdeee4"/><rect width="1.8" height="6" fill="{STRANDED}"/></pattern></defs>
<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" fill="{PAPER}" stroke="#cbd2d9"/>"""


@contextmanager
def utc() -> Iterator[None]:
    """Show times in UTC, wherever the picture is made."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
