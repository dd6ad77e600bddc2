"""Figures 17 and 18 of Spread-n-Share: how evenly the nodes' bandwidth is used under CE and under SNS.

The paper shows one random sequence on 8 nodes, over 60 episodes of 30 seconds. We compute the same for many sequences.
A node's bandwidth is what the contention model gives for the jobs on the node, averaged over each episode.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Seconds
from slurm_sns.sim.engine.sns_policies import CE, COMBINED, CONTENTION, SNS
from slurm_sns.sim.progress.contention import Occupant, SharedNode, bandwidth_used
from slurm_sns.sim.progress.progress import Placement
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, interval
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Drawing, Page
from slurm_sns.sim.reproduce.sns.runs import NODE, PAPER_NODES, place, shipped_programs
from slurm_sns.sim.traces.programs_csv import ProgramJob
from slurm_sns.sim.workloads.sequences import jobs_of, population, sequence

EPISODE_S, EPISODES = 30, 60
#: Standard deviation divided by peak, as printed. Our number may differ by `NEAR`, a third of the gap between the two.
PRINTED = {CE: 0.40, SNS: 0.25}
NEAR = 0.05
POLICIES = (CE, SNS, COMBINED)
KIND = SharedNode(NODE.ways, NODE.bandwidth_gbps)
#: The page's explanation of the claims that do not hold.
WHY = (
    "The paper does not say how its one sequence was chosen. Over these sequences the difference between the policies "
    "is small on average. Under SNS a sequence ends sooner, and the idle episodes after its end count too."
)
#: Figure 18's histogram has one bin for each tenth of the bandwidth.
TENTHS = 10


def run(piece: tuple[str, int]) -> dict[str, Any]:
    """One sequence under each policy: GB/s by node and episode."""
    _, seed = piece
    jobs = jobs_of(sequence(population(shipped_programs()), seed))
    return {policy: np.round(episodes(place(policy, CONTENTION, jobs), jobs), 3).tolist() for policy in POLICIES}


def episodes(placements: Sequence[Placement], jobs: Sequence[ProgramJob]) -> NDArray[np.float64]:
    """Shape (nodes, episodes): the mean GB/s of each node in each of the first episodes."""
    programs = shipped_programs()
    moved = np.zeros((PAPER_NODES, EPISODES))
    for node in range(PAPER_NODES):
        here = [each for each in placements if node in each.nodes]
        edges = sorted({0, EPISODE_S * EPISODES} | {s for each in here for s in (each.start_s, each.end_s)})
        for begin_s, end_s in pairwise(edges):
            present = sorted((each for each in here if each.start_s <= begin_s < each.end_s), key=lambda e: e.start_s)
            occupants = tuple(_occupant(each, jobs, programs) for each in present)
            _spread(moved[node], begin_s, end_s, bandwidth_used(occupants, KIND))
    return moved / EPISODE_S


def _occupant(placed: Placement, jobs: Sequence[ProgramJob], programs: Any) -> Occupant:
    job, alternative = jobs[placed.job.id], placed.alternative
    run_of = programs[job.program].at(job.processes)[alternative.scale]
    return Occupant(run_of, alternative.demand.cores, NODE.ways if alternative.exclusive else alternative.demand.ways)


def _spread(moved: NDArray[np.float64], begin_s: Seconds, end_s: Seconds, gbps: float) -> None:
    """Add the GB moved at `gbps` from `begin_s` to `end_s` to the episodes that this time overlaps."""
    for at in range(int(begin_s // EPISODE_S), min(int(-(-end_s // EPISODE_S)), EPISODES)):
        moved[at] += gbps * (min(end_s, (at + 1) * EPISODE_S) - max(begin_s, at * EPISODE_S))


def reproduce(options: Options) -> Page:
    """Run the sequences, draw the figures and return the page."""
    results = options.results("balance", run, [("balance", seed) for seed in range(1, options.seeds + 1)])
    spread = {policy: np.array([_spread_over_peak(np.array(r[policy])) for r in results]) for policy in POLICIES}
    first = {policy: np.array(results[0][policy]) for policy in POLICIES}
    figures.fields(
        options.out,
        "figure-17",
        {policy.upper(): first[policy] for policy in (CE, SNS)},
        ("episode of 30 s", "node"),
        "GB/s",
    )
    edges = np.linspace(0, NODE.bandwidth_gbps, TENTHS + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    shares = {p: np.histogram(first[p], np.append(edges[:-1], np.inf))[0] / first[p].size * 100 for p in (CE, SNS)}
    figures.curves(
        options.out,
        "figure-18",
        {"": {policy.upper(): (middles, share) for policy, share in shares.items()}},
        ("GB/s", "% of episodes"),
    )
    made = (
        f"`sns reproduce sns-balance`: {options.seeds} random sequences of 20 jobs on 8 nodes under the contention "
        f"model. The paper shows one sequence. We compute the mean bandwidth (GB/s) of each node in each of {EPISODES} "
        f"episodes of {EPISODE_S} s; the peak is the largest of these values. A printed number is met if ours differs "
        f"by less than {NEAR:g}."
    )
    claims = [
        Claim(
            "fig. 18",
            f"standard deviation / peak is {printed:.2f} under {policy.upper()}",
            "over nodes and episodes",
            interval(spread[policy]),
            printed - NEAR,
            printed + NEAR,
        )
        for policy, printed in PRINTED.items()
    ]
    less = interval(spread[SNS] - spread[CE])
    claims.append(Claim("fig. 18", "SNS uses bandwidth more evenly than CE", "SNS - CE, in pairs", less, high=0))
    rows = [(policy, seed, value) for policy in POLICIES for seed, value in enumerate(spread[policy], start=1)]
    return Page(
        title="Spread-n-Share: balance of memory bandwidth (figures 17, 18)",
        made=[made],
        claims=claims,
        drawings=[
            Drawing("figure-17", "Figure 17: GB/s by node and episode, the first sequence."),
            Drawing("figure-18", "Figure 18: how often a node uses so much, the first sequence."),
        ],
        numbers=[DataTable("balance", ("policy", "seed", "deviation_over_peak"), rows)],
        remarks=[WHY],
        seeds=options.seeds,
    )


def _spread_over_peak(moved: NDArray[np.float64]) -> float:
    return float(moved.std() / moved.max())
