"""Figures 17 and 18: how evenly the nodes' bandwidth is used under CE and under SNS.

The paper shows one random sequence on 8 nodes, over 60 episodes of 30 seconds. We compute the same for many sequences.
A node's bandwidth is what the contention model gives for the jobs on the node, averaged over each episode.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import CE, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults, Piece
from slurm_sns.sim.progress.contention import Occupant, SharedNode, bandwidth_used
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.request import CONTENTION
from slurm_sns.sim.traces.program_trace import ProgramJob
from sns_reproductions import spread_n_share as sns

EPISODE_S, EPISODES = 30, 60
POLICIES = (CE, SNS)
KIND = SharedNode(sns.NODE.ways, sns.NODE.bandwidth_gbps)
#: The window of all episodes; the others are `last_end` and `last_start`.
ALL = "all"
#: Figure 18's histogram has one bin for each tenth of the bandwidth.
TENTHS = 10


def run_sequence(piece: Piece) -> dict[str, Any]:
    """One sequence under each policy: GB/s by node and episode, and the seconds of its last start and last end."""
    jobs, found = sns.drawn_jobs(int(piece[1])), {}
    for policy in POLICIES:
        placements = sns.place(policy, CONTENTION, jobs, discipline=str(piece[0]))
        found[policy] = {
            "gbps": np.round(episodes(placements, jobs), 3).tolist(),
            "last_start_s": float(max(each.start_s for each in placements)),
            "last_end_s": float(max(each.end_s for each in placements)),
        }
    return found


def episodes(placements: Sequence[PlacedRun], jobs: Sequence[ProgramJob]) -> sns.Column:
    """Shape (nodes, episodes): the mean GB/s of each node in each of the first episodes."""
    moved = np.zeros((sns.PAPER_NODES, EPISODES))
    bounds_s = range(0, EPISODE_S * EPISODES + 1, EPISODE_S)
    for node in range(sns.PAPER_NODES):
        here = [each for each in placements if node in each.nodes]
        edges = {*bounds_s} | {s for each in here for s in (each.start_s, each.end_s) if s < bounds_s[-1]}
        for begin_s, end_s in pairwise(sorted(edges)):
            present = sorted((each for each in here if each.start_s <= begin_s < each.end_s), key=lambda e: e.start_s)
            occupants = tuple(_occupant(each, jobs) for each in present)
            moved[node, int(begin_s // EPISODE_S)] += bandwidth_used(occupants, KIND) * (end_s - begin_s)
    return moved / EPISODE_S


def _occupant(placed: PlacedRun, jobs: Sequence[ProgramJob]) -> Occupant:
    job, alternative = jobs[placed.job.id], placed.alternative
    run_of = sns.shipped_programs()[job.program].at(job.processes)[alternative.scale]
    return Occupant(
        run_of, alternative.demand.cores, sns.NODE.ways if alternative.exclusive else alternative.demand.ways
    )


def windowed(found: Mapping[str, Any], window: str) -> sns.Column:
    """The episodes of one sequence and policy that lie in the window, shape (nodes, episodes)."""
    until_s = EPISODE_S * EPISODES if window == ALL else found[f"{window}_s"]
    return np.array(found["gbps"])[:, : max(1, min(EPISODES, round(until_s / EPISODE_S)))]


def spread_over_peak(moved: sns.Column) -> float:
    """The standard deviation over nodes and episodes divided by the peak."""
    return float(moved.std() / moved.max())


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the sequences and draw the figures."""
    seeds = range(1, options.seeds + 1)
    pieces = [(discipline, seed) for discipline in data["disciplines"] for seed in seeds]
    results = options.results("balance", run_sequence, pieces)
    _draw(options, {policy: np.array(results[TEXT, 1][policy]["gbps"]) for policy in POLICIES})
    spread = {
        (discipline, window, policy): np.array(
            [spread_over_peak(windowed(results[discipline, seed][policy], window)) for seed in seeds]
        )
        for discipline in data["disciplines"]
        for window in data["windows"]
        for policy in POLICIES
    }
    draws: dict[str, Quantity] = {}
    for discipline in data["disciplines"]:
        of = {policy: spread[discipline, ALL, policy] for policy in POLICIES}
        of["sns - ce"] = of[SNS] - of[CE]
        draws |= {f"{discipline} {name}": sns.drawn_in_halves(values) for name, values in of.items()}
    return PageResults(
        draws | {" ".join(key): values for key, values in spread.items()},
        (),
        {
            "spread": spread,
            "episodes": EPISODES,
            "episode_s": EPISODE_S,
            "episodes_used": {
                policy: np.mean([windowed(results[TEXT, seed][policy], "last_end").shape[1] for seed in seeds])
                for policy in POLICIES
            },
            "more_even_pct": {
                f"{discipline} {window}": 100 * (spread[discipline, window, SNS] < values).mean()
                for (discipline, window, policy), values in spread.items()
                if policy == CE
            },
        },
        options.seeds,
    )


def _draw(options: Options, first: Mapping[str, sns.Column]) -> None:
    """The figures, of the first sequence."""
    panels = {policy.upper(): gbps for policy, gbps in first.items()}
    figures.fields(options.out, "figure-17", panels, ("episode of 30 s", "node"), "GB/s")
    edges = np.linspace(0, sns.NODE.bandwidth_gbps, TENTHS + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    shares = {
        name: (middles, np.histogram(gbps, np.append(edges[:-1], np.inf))[0] / gbps.size * 100)
        for name, gbps in panels.items()
    }
    figures.curves(options.out, "figure-18", {"": shares}, ("GB/s", "% of episodes"))
