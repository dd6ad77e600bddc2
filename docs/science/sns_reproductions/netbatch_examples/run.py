"""Place the example queues in one cycle, and draw the machines as grids. Nothing is random.

Each job is a rectangle whose lower left corner is the upper right corner of the previous job on that machine. The
dashed diagonal is the machine's ratio of memory to cores.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import mix_fit
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.figures import Block
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import SubmittedJobs
from sns_reproductions.netbatch_sweeps import INTERVAL_S, records_of

BLOCK_GB = 4
CORES, MEMORY_GB = 4, 32
GRID = (CORES, MEMORY_GB // BLOCK_GB)
Size = Sequence[int]  # cores, GB


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Place the queues and draw the figures."""
    found: dict[str, Quantity] = {}
    drawn: dict[str, dict[str, dict[str, list[Block]]]] = {}
    rows = []
    for stem, row, heuristic, queue_name, _ in data["examples"]:
        queue = [size for count, *size in data["queues"][queue_name] for _ in range(count)]
        placed = _placed(heuristic, queue)
        drawn.setdefault(stem, {})[row] = {f"machine {name}": _blocks(jobs) for name, jobs in placed.items()}
        found[f"{stem} {row}"] = float(len(queue) - sum(map(len, placed.values())))
        rows += [(stem, heuristic, name, *size) for name, jobs in placed.items() for size in jobs]
    running = data["running"]
    angles = _angles(running, data["arriving"])
    drawn["figure-8"] = {
        "with the arriving job": {
            f"machine {name}: alpha {angles[name]:.1f}°": _blocks([*jobs, data["arriving"]])
            for name, jobs in running.items()
        }
    }
    for stem, machines in drawn.items():
        figures.grids(options.out, stem, machines, GRID)
    found |= {f"angle {name}": angle for name, angle in angles.items()}
    found |= {f"angle {name} - B": angle - angles["B"] for name, angle in angles.items()}
    header = ("figure", "heuristic", "machine", "cores", "mem_gb")
    fields = {"stems": list(drawn), "cores": CORES, "memory_gb": MEMORY_GB, "block_gb": BLOCK_GB}
    return PageResults(found, [DataTable("placements", header, rows)], fields)


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


def _angles(running: Mapping[str, Sequence[Size]], arriving: Size) -> dict[str, float]:
    """Mix-Fit's angle on each machine of figure 8, in degrees."""
    node_arrays = _node_arrays(list(running))
    free = node_arrays.capacity.copy()
    for at, jobs in enumerate(running.values()):
        for cores, memory_gb in jobs:
            free[:2, at] -= (cores, memory_gb * MIB_PER_GB)
    demand = arriving[0], arriving[1] * MIB_PER_GB
    scores = mix_fit(node_arrays.capacity, free, np.arange(len(running)), demand)
    return {name: math.degrees(float(score)) for name, score in zip(running, scores, strict=True)}


def _blocks(jobs: Sequence[Size]) -> list[Block]:
    """The jobs of a machine as rectangles, each from the corner where the previous one ends."""
    blocks: list[Block] = []
    core = memory = 0.0
    for cores, memory_gb in jobs:
        blocks.append(Block(core, memory, cores, memory_gb / BLOCK_GB, f"{memory_gb}"))
        core, memory = core + cores, memory + memory_gb / BLOCK_GB
    return blocks
