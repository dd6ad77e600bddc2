"""Figures 17 and 18 of Spread-n-Share: how evenly the nodes' bandwidth is used under CE and under SNS.

The paper shows one random sequence on 8 nodes, over 60 episodes of 30 seconds. We compute the same for many sequences.
A node's bandwidth is what the contention model gives for the jobs on the node, averaged over each episode.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Seconds
from slurm_sns.sim.engine.disciplines import PROTOTYPE, TEXT
from slurm_sns.sim.engine.spreading_policies import CE, CONTENTION, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, drawn, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.progress.contention import Occupant, SharedNode, bandwidth_used
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.spread_n_share.runs import NODE, PAPER_NODES, place, shipped_programs
from slurm_sns.sim.traces.programs_csv import ProgramJob
from slurm_sns.sim.workloads.sequences import jobs_of, population, sequence

EPISODE_S, EPISODES = 30, 60
#: Standard deviation divided by peak, as printed.
PRINTED = {CE: 0.40, SNS: 0.25}
POLICIES = (CE, SNS)
DISCIPLINES = {TEXT: "The paper's text", PROTOTYPE: "The prototype's queue"}
KIND = SharedNode(NODE.ways, NODE.bandwidth_gbps)
#: The windows: all of the paper's 60 episodes, or only those before the sequence's last end or last start.
ALL, LAST_END, LAST_START = "all 60 episodes", "until the last end", "until the last start"
WINDOWS = (ALL, LAST_END, LAST_START)
#: The page's explanation of the claims that do not hold.
WHY = (
    "Over all 60 episodes SNS is hardly more even than CE: its sequences end sooner, so that more of its episodes are "
    "an empty cluster. As long as jobs still wait, until the last start, SNS is at the printed 0.25 on average, and "
    "CE at 0.36, a little below the printed 0.40, with both queues. The paper does not say how its sequence was "
    "chosen."
)
#: Figure 18's histogram has one bin for each tenth of the bandwidth.
TENTHS = 10


def run(piece: tuple[str, int]) -> dict[str, Any]:
    """One sequence under each policy: GB/s by node and episode, and the seconds of its last start and last end."""
    discipline, seed = piece
    jobs = jobs_of(sequence(population(shipped_programs()), seed))
    found = {}
    for policy in POLICIES:
        placements = place(policy, CONTENTION, jobs, discipline=discipline)
        found[policy] = {
            "gbps": np.round(episodes(placements, jobs), 3).tolist(),
            "last_start_s": float(max(each.start_s for each in placements)),
            "last_end_s": float(max(each.end_s for each in placements)),
        }
    return found


def windowed(found: Mapping[str, Any], window: str) -> NDArray[np.float64]:
    """The episodes of one sequence and policy that lie in the window, shape (nodes, episodes)."""
    gbps = np.array(found["gbps"])
    if window == ALL:
        return gbps
    until_s = found["last_end_s"] if window == LAST_END else found["last_start_s"]
    return gbps[:, : max(1, min(EPISODES, round(until_s / EPISODE_S)))]


def episodes(placements: Sequence[PlacedRun], jobs: Sequence[ProgramJob]) -> NDArray[np.float64]:
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


def _occupant(placed: PlacedRun, jobs: Sequence[ProgramJob], programs: Any) -> Occupant:
    job, alternative = jobs[placed.job.id], placed.alternative
    run_of = programs[job.program].at(job.processes)[alternative.scale]
    return Occupant(run_of, alternative.demand.cores, NODE.ways if alternative.exclusive else alternative.demand.ways)


def _spread(moved: NDArray[np.float64], begin_s: Seconds, end_s: Seconds, gbps: float) -> None:
    """Add the GB moved at `gbps` from `begin_s` to `end_s` to the episodes that this time overlaps."""
    for at in range(int(begin_s // EPISODE_S), min(int(-(-end_s // EPISODE_S)), EPISODES)):
        moved[at] += gbps * (min(end_s, (at + 1) * EPISODE_S) - max(begin_s, at * EPISODE_S))


def reproduce(options: Options) -> Page:
    """Run the sequences, draw the figures and return the page."""
    seeds = range(1, options.seeds + 1)
    pieces = [(discipline, seed) for discipline in DISCIPLINES for seed in seeds]
    results = dict(zip(pieces, options.results("balance", run, pieces), strict=True))
    spread = {
        (discipline, window, policy): np.array(
            [spread_over_peak(windowed(results[discipline, seed][policy], window)) for seed in seeds]
        )
        for discipline in DISCIPLINES
        for window in WINDOWS
        for policy in POLICIES
    }
    first = {policy: np.array(results[TEXT, 1][policy]["gbps"]) for policy in POLICIES}
    _draw(options, first)
    episodes_used = {
        policy: np.mean([windowed(results[TEXT, seed][policy], LAST_END).shape[1] for seed in seeds])
        for policy in POLICIES
    }
    made = (
        f"`sns reproduce spread-n-share-balance`: {options.seeds} random sequences of 20 jobs on 8 nodes under the "
        "contention "
        "model, with the queue of the paper's text and with the prototype's. The paper shows one sequence: one of ours "
        f"is a draw. We compute the mean bandwidth (GB/s) of each node in each of {EPISODES} episodes of {EPISODE_S} "
        "s; the peak is the largest of these values. With the text's queue a sequence is over after "
        f"{episodes_used[CE]:.0f} episodes under CE and {episodes_used[SNS]:.0f} under SNS, on average: the rest of "
        "the 60 is an empty cluster, which counts as imbalance. The claims take all 60 episodes, as the paper says; "
        "the table has two shorter windows, too."
    )
    claims = [(DISCIPLINES[each], claim) for each in DISCIPLINES for claim in _claims(each, spread)]
    rows = [
        (
            DISCIPLINES[discipline],
            window,
            *(interval(spread[discipline, window, policy]) for policy in POLICIES),
            f"{100 * (spread[discipline, window, SNS] < spread[discipline, window, CE]).mean():.0f}",
        )
        for discipline in DISCIPLINES
        for window in WINDOWS
    ]
    numbers = [
        (discipline, window, policy, seed, value)
        for (discipline, window, policy), values in spread.items()
        for seed, value in enumerate(values, start=1)
    ]
    return Page(
        title="Spread-n-Share: balance of memory bandwidth (figures 17, 18)",
        made=[made],
        claims=[claim for _, claim in claims],
        groups=[group for group, _ in claims],
        drawings=[
            SavedFigure("figure-17", "Figure 17: GB/s by node and episode, the first sequence."),
            SavedFigure("figure-18", "Figure 18: how often a node uses so much, the first sequence."),
        ],
        shown=DataTable("windows", _HEADER, rows),
        numbers=[DataTable("balance", ("queue", "window", "policy", "seed", "deviation_over_peak"), numbers)],
        remarks=[WHY],
        seeds=options.seeds,
        of_draws=True,
    )


_HEADER = ("queue", "window", "CE (printed 0.40)", "SNS (printed 0.25)", "SNS more even than CE, % of the sequences")


def _claims(discipline: str, spread: Mapping[tuple[str, str, str], NDArray[np.float64]]) -> list[Claim]:
    """The two printed numbers and what the paper concludes from them, over all episodes."""

    def halves(draws: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [draws[: len(draws) // 2], draws[len(draws) // 2 :]]

    by_policy = {policy: spread[discipline, ALL, policy] for policy in POLICIES}
    less = by_policy[SNS] - by_policy[CE]
    return [
        *(
            Claim(
                "fig. 18",
                f"standard deviation / peak is {printed:.2f} under {policy.upper()}",
                "over nodes and episodes",
                drawn(by_policy[policy], halves(by_policy[policy])),
                printed=printed,
            )
            for policy, printed in PRINTED.items()
        ),
        Claim("fig. 18", "SNS uses bandwidth more evenly than CE", "SNS - CE", drawn(less, halves(less)), high=0),
    ]


def _draw(options: Options, first: Mapping[str, NDArray[np.float64]]) -> None:
    """The figures, of the first sequence."""
    figures.fields(
        options.out,
        "figure-17",
        {policy.upper(): first[policy] for policy in POLICIES},
        ("episode of 30 s", "node"),
        "GB/s",
    )
    edges = np.linspace(0, NODE.bandwidth_gbps, TENTHS + 1)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    shares = {p: np.histogram(first[p], np.append(edges[:-1], np.inf))[0] / first[p].size * 100 for p in POLICIES}
    figures.curves(
        options.out,
        "figure-18",
        {"": {policy.upper(): (middles, share) for policy, share in shares.items()}},
        ("GB/s", "% of episodes"),
    )


def spread_over_peak(moved: NDArray[np.float64]) -> float:
    """The standard deviation over nodes and episodes divided by the peak."""
    return float(moved.std() / moved.max())
