"""Figures 3, 4, 8, 9 and 10 of the Max-Jobs paper as grids: machines of 4 cores and 32 GB, memory in 4 GB blocks.

Each job is a rectangle whose lower left corner is the upper right corner of the previous job on that machine. The
dashed diagonal is the machine's ratio of memory to cores.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import mix_fit
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.figures import Block
from slurm_sns.sim.pages.judge import Claim, exactly
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.runs import INTERVAL_S, records_of
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import SubmittedJobs

BLOCK_GB = 4
CORES, MEMORY_GB = 4, 32
Size = tuple[int, int]  # cores, GB

#: Queues in order of priority.
QUEUE_3: Sequence[Size] = [(1, 16)] * 2 + [(1, 4)] * 6
QUEUE_4: Sequence[Size] = [(1, 8)] * 3 + [(1, 32)]
#: Figure -> row -> (heuristic, queue).
FIGURES: Mapping[str, Mapping[str, tuple[str, Sequence[Size]]]] = {
    "figure-3": {"Best-Fit": ("best-fit-memory", QUEUE_3), "Worse-Fit": ("worse-fit-memory", QUEUE_3)},
    "figure-4": {"Best-Fit": ("best-fit-memory", QUEUE_4), "Worse-Fit": ("worse-fit-memory", QUEUE_4)},
    "figure-9": {"Mix-Fit": ("mix-fit", QUEUE_3)},
    "figure-10": {"Mix-Fit": ("mix-fit", QUEUE_4)},
}
#: (figure, row) -> how many jobs wait according to the paper.
WAITING = {
    ("figure-3", "Best-Fit"): 2,
    ("figure-3", "Worse-Fit"): 0,
    ("figure-4", "Best-Fit"): 0,
    ("figure-4", "Worse-Fit"): 1,
    ("figure-9", "Mix-Fit"): 0,
    ("figure-10", "Mix-Fit"): 0,
}
#: Figure 8: the jobs that already run on each machine, and the job that arrives.
RUNNING: Mapping[str, Sequence[Size]] = {"A": [(1, 24)], "B": [(1, 8), (1, 8)], "C": [(2, 4), (1, 4)]}
ARRIVING: Size = (1, 8)


def reproduce(options: Options) -> Page:
    """Place the queues, draw the figures and return the page. Nothing is random."""
    claims: list[Claim] = []
    rows = []
    for stem, examples in FIGURES.items():
        drawn = {}
        for title, (heuristic, queue) in examples.items():
            placed = _placed(heuristic, queue)
            waiting = len(queue) - sum(map(len, placed.values()))
            drawn[title] = {f"machine {name}": _blocks(jobs) for name, jobs in placed.items()}
            expected = WAITING[stem, title]
            where = f"fig. {stem.removeprefix('figure-')}"
            text = f"{title} leaves {expected or 'no'} job{'s' if expected != 1 else ''} waiting"
            measure = f"jobs that {heuristic} leaves waiting"
            found = exactly(waiting)
            claims.append(Claim(where, text, measure, found, low=expected - 0.5, high=expected + 0.5))
            for name, jobs in placed.items():
                rows += [(stem, heuristic, name, cores, memory_gb) for cores, memory_gb in jobs]
        figures.grids(options.out, stem, drawn, (CORES, MEMORY_GB // BLOCK_GB))
    angles = _angles()
    figures.grids(options.out, "figure-8", _figure_8(angles), (CORES, MEMORY_GB // BLOCK_GB))
    claims.append(Claim("fig. 8", "alpha is 0 on machine B", "B: degrees", exactly(angles["B"]), low=-1e-6, high=1e-6))
    for name in "AC":
        text = "Mix-Fit selects machine B"
        claims.append(Claim("fig. 8", text, f"{name}: degrees above B", exactly(angles[name] - angles["B"]), low=0))
    stems = [*FIGURES, "figure-8"]
    return Page(
        title="NetBatch examples (figures 3, 4, 8-10)",
        made=[
            "`sns reproduce netbatch-examples`: one cycle on two machines of 4 cores and 32 GB (figure 8: on three)."
        ],
        claims=claims,
        drawings=[
            SavedFigure(stem, f"{stem.replace('-', ' ').capitalize()}: blocks of 4 GB over cores.") for stem in stems
        ],
        numbers=[DataTable("placements", ("figure", "heuristic", "machine", "cores", "mem_gb"), rows)],
    )


def _node_arrays(names: Sequence[str]) -> NodeArrays:
    return NodeArrays(tuple(names), amounts([Resources(CORES, MEMORY_GB * MIB_PER_GB) for _ in names]))


def _placed(heuristic: str, queue: Sequence[Size]) -> dict[str, list[Size]]:
    """The jobs that one cycle places on each of two empty machines."""
    node_arrays = _node_arrays("AB")
    zeros, ones = np.zeros(len(queue)), np.ones(len(queue))
    cores, memory_gb = np.array(queue, dtype=np.float64).T
    records = records_of([SubmittedJobs(zeros, ones, cores, memory_gb, ones)], node_arrays, 1.0)
    done = replay(node_arrays, records, rules_of(MatchingParameters(portfolio=(heuristic,))), interval_s=INTERVAL_S)
    placed: dict[str, list[Size]] = {name: [] for name in node_arrays.names}
    for size, start_s, node in zip(queue, done.start_s.tolist(), done.place.tolist(), strict=True):
        if start_s == 0:
            placed[node_arrays.names[node]].append(size)
    return placed


def _angles() -> dict[str, float]:
    """Mix-Fit's angle on each machine of figure 8, in degrees."""
    node_arrays = _node_arrays(list(RUNNING))
    free = node_arrays.capacity.copy()
    for at, jobs in enumerate(RUNNING.values()):
        for cores, memory_gb in jobs:
            free[:2, at] -= (cores, memory_gb * MIB_PER_GB)
    demand = Resources(ARRIVING[0], ARRIVING[1] * MIB_PER_GB)
    scores = mix_fit(node_arrays.capacity, free, np.arange(len(RUNNING)), demand)
    return {name: math.degrees(float(score)) for name, score in zip(RUNNING, scores, strict=True)}


def _figure_8(angles: Mapping[str, float]) -> dict[str, dict[str, list[Block]]]:
    return {
        "with the arriving job": {
            f"machine {name}: alpha {angles[name]:.1f}°": _blocks([*jobs, ARRIVING]) for name, jobs in RUNNING.items()
        }
    }


def _blocks(jobs: Sequence[Size]) -> list[Block]:
    """The jobs of a machine as rectangles, each from the corner where the previous one ends."""
    blocks: list[Block] = []
    core = memory = 0.0
    for cores, memory_gb in jobs:
        blocks.append(Block(core, memory, cores, memory_gb / BLOCK_GB, f"{memory_gb}"))
        core, memory = core + cores, memory + memory_gb / BLOCK_GB
    return blocks
