"""Figures 7 and 11 of the Max-Jobs paper: which heuristic matches the most jobs of a bucket on an empty pool.

A bucket is 1000 consecutive jobs, all submitted at time 0 to 64 machines of 8 cores and 64 GB (512 cores). No capacity
is withheld, and a job that finds no place is skipped. The heuristics that match the most jobs win the bucket: one, or
several in a tie.

The paper does not say how a job's cores and memory are correlated; the generator draws them independently. A second
contest shows how much depends on that: each bucket has the same cores and the same memory, but they are paired so that
jobs with more cores have more memory.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, Interval, interval
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Drawing, Page
from slurm_sns.sim.reproduce.runs import INTERVAL_S, records_of
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import Part, generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS

BUCKET = 1000
#: Number of buckets of each seed, evenly spaced over one day; quick: fewer.
BUCKETS, QUICK_BUCKETS = 100, 20
MACHINES = 64
EMPTY = NodeArrays(
    tuple(f"m{at:02}" for at in range(MACHINES)), amounts([Resources(8, 64 * MIB_PER_GB) for _ in range(MACHINES)])
)
CONTESTS = {"figure-7": PAPER_PORTFOLIO[:4], "figure-11": PAPER_PORTFOLIO}
#: "Like": within this many percentage points. "Little difference": the best and the worst within twice as many.
SIMILAR_POINTS = 5.0

#: The contest of figure 11 with cores and memory paired, and the buckets in which all five heuristics tie.
PAIRED, LEVEL = "paired", "level"

#: Contest -> pool -> heuristic -> percent of buckets won, by seed.
Shares = Mapping[str, Mapping[str, Mapping[str, NDArray[np.float64]]]]


def contest(piece: tuple[str, int, int]) -> dict[str, list[float]]:
    """The percentage of a seed's buckets that each heuristic wins, by contest, and of those that all win (LEVEL)."""
    name, seed, buckets = piece
    parts = list(generate(POOLS[name], scale=1.0, seed=seed, days=1))
    cores, memory_gb = (np.concatenate([getattr(p, what) for p in parts]) for what in ("cores", "memory_gb"))
    rng = np.random.default_rng(seed)
    won: dict[str, list[list[bool]]] = {figure: [] for figure in (*CONTESTS, PAIRED)}
    for first in np.linspace(0, len(cores) // BUCKET - 1, buckets).astype(int) * BUCKET:
        sizes = cores[first : first + BUCKET], memory_gb[first : first + BUCKET]
        for figure, members in CONTESTS.items():
            won[figure].append(winners(sizes, members))
        won[PAIRED].append(winners(paired(sizes, rng), PAPER_PORTFOLIO))
    level = [100 * float(np.mean([all(each) for each in won["figure-11"]]))]
    return {figure: (100 * np.mean(each, axis=0)).tolist() for figure, each in won.items()} | {LEVEL: level}


def winners(sizes: tuple[NDArray[np.float64], NDArray[np.float64]], members: Sequence[str]) -> list[bool]:
    """For each member, whether it matches the most of these jobs, given as (cores, GB), on the empty machines."""
    zeros, ones = np.zeros(BUCKET), np.ones(BUCKET)
    records = records_of([Part(zeros, ones, *sizes, ones)], EMPTY, 1.0)
    parameters = MatchingParameters(portfolio=tuple(members), queue_depth=BUCKET, reservations=0)
    bits = int(replay(EMPTY, records, parameters, interval_s=INTERVAL_S).cycles.winners[0])
    return [bool(bits >> at & 1) for at in range(len(members))]


def paired(
    sizes: tuple[NDArray[np.float64], NDArray[np.float64]], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same jobs' cores, in the same order, with their amounts of memory reassigned: more cores get more memory.

    Among jobs of equally many cores the amounts are in random order.
    """
    cores, memory_gb = sizes
    given = np.empty_like(memory_gb)
    given[np.lexsort((rng.random(len(cores)), cores))] = np.sort(memory_gb)
    return cores, given


def reproduce(options: Options) -> Page:
    """Run the contests, draw the figures and return the page."""
    buckets = QUICK_BUCKETS if options.quick else BUCKETS
    pieces = [(name, seed, buckets) for name in POOLS for seed in range(1, options.seeds + 1)]
    results = options.results("buckets", contest, pieces)
    by_pool = {name: [r for p, r in zip(pieces, results, strict=True) if p[0] == name] for name in POOLS}
    shares = {
        figure: {
            name: dict(zip(members, np.array([each[figure] for each in found]).T, strict=True))
            for name, found in by_pool.items()
        }
        for figure, members in (*CONTESTS.items(), (PAIRED, PAPER_PORTFOLIO), (LEVEL, (LEVEL,)))
    }
    numbers = [_drawn(options, figure, shares) for figure in CONTESTS]
    return Page(
        title="NetBatch buckets: who matches the most of 1000 jobs on an empty pool (figures 7, 11)",
        made=[
            (
                f"`sns reproduce netbatch-buckets`: pools A-D, generated at full size with {options.seeds} seeds. For "
                f"each seed, {buckets} buckets of {BUCKET} consecutive jobs, evenly spaced over a day, are each "
                f"matched to {MACHINES} empty machines of 8 cores and 64 GB, without reservations. The heuristics that "
                "match the most jobs win the bucket: one, or several in a tie."
            )
        ],
        claims=[*_one_dimensional(shares), *_with_mix_fit(shares)],
        drawings=[
            Drawing("figure-7", "Figure 7: percentage of buckets won, four heuristics."),
            Drawing("figure-11", "Figure 11: percentage of buckets won, with Mix-Fit."),
        ],
        numbers=[*numbers, DataTable(PAIRED, ("pool", *_columns()), _side_by_side(shares))],
        remarks=[
            (
                "A possible reason where a claim does not hold: the paper does not print how the cores and the memory "
                "of jobs are correlated. The table shows the same buckets as generated, where cores and memory are "
                "drawn independently, and *paired*, where the jobs with the most cores have the most memory. The last "
                "column shows the buckets in which all five heuristics tie, so that each of them wins. Phase lengths "
                "and burst sizes of the generator were set after trial replays of one seed, and nothing was changed "
                "after these runs. Percent of buckets won:"
            )
        ],
        shown=DataTable(PAIRED, ("pool", *_columns()), _side_by_side(shares)),
        seeds=options.seeds,
    )


def _columns() -> list[str]:
    return [f"{member}{how}" for member in PAPER_PORTFOLIO for how in ("", ", paired")] + ["all level"]


def _side_by_side(shares: Shares) -> list[tuple[str, ...]]:
    """One row for each pool: the mean percentages, as generated and paired."""
    rows = []
    for name in POOLS:
        both = [
            f"{shares[contest][name][member].mean():.0f}"
            for member in PAPER_PORTFOLIO
            for contest in ("figure-11", PAIRED)
        ]
        rows.append((name, *both, f"{shares[LEVEL][name][LEVEL].mean():.0f}"))
    return rows


def _drawn(options: Options, figure: str, shares: Shares) -> DataTable:
    members = CONTESTS[figure]
    values: dict[str, dict[str, Interval]] = {
        member: {f"pool {name}": interval(shares[figure][name][member]) for name in POOLS} for member in members
    }
    figures.bars(options.out, figure, values, ("", "% of buckets won"))
    rows = [(member, pool, *vars(value).values()) for member, pools in values.items() for pool, value in pools.items()]
    return DataTable(figure, ("heuristic", "pool", "percent_won", "low", "high"), rows)


def _one_dimensional(shares: Shares) -> list[Claim]:
    won = shares["figure-7"]
    lead, claims = {}, []
    for name in POOLS:
        others = [member for member in CONTESTS["figure-7"] if member != "worse-fit-cores"]
        second = max(others, key=lambda member: float(won[name][member].mean()))
        lead[name] = won[name]["worse-fit-cores"] - won[name][second]
        measure = f"{name}: points, worse-fit-cores - {second}"
        claims.append(Claim("fig. 7", "Worse-Fit-Cores wins the most", measure, interval(lead[name]), low=0))
        share = interval(won[name]["worse-fit-cores"])
        text = "Worse-Fit-Cores wins 63-94 % of the buckets"
        claims.append(Claim("fig. 7", text, f"{name}: % won by worse-fit-cores", share, low=63, high=94))
    for name in "BCD":
        less = interval(lead["A"] - lead[name])
        claims.append(
            Claim("fig. 7", "Worse-Fit-Cores' lead is largest in A", f"points of lead, A - {name}", less, low=0)
        )
    for name in POOLS:
        rest = max(("best-fit-memory", "best-fit-cores"), key=lambda member: float(won[name][member].mean()))
        better = interval(won[name]["worse-fit-memory"] - won[name][rest])
        text = "Worse-Fit-Memory is slightly better than the best fits"
        claims.append(Claim("fig. 7", text, f"{name}: points, worse-fit-memory - {rest}", better, low=0))
    order = sorted(won["D"], key=lambda member: float(won["D"][member].mean()))
    spread = interval(won["D"][order[-1]] - won["D"][order[0]])
    text = "D: little difference between the heuristics"
    claims.append(Claim("fig. 7", text, f"D: points, {order[-1]} - {order[0]}", spread, high=2 * SIMILAR_POINTS))
    return claims


def _with_mix_fit(shares: Shares) -> list[Claim]:
    won = shares["figure-11"]
    ahead = {name: interval(won[name]["mix-fit"] - won[name]["worse-fit-cores"]) for name in POOLS}
    measure = "points, mix-fit - worse-fit-cores"
    alike = "Mix-Fit performs like Worse-Fit-Cores"
    return [
        Claim("fig. 11", "Mix-Fit wins in A, by a small margin", f"A: {measure}", ahead["A"], low=0, high=15),
        Claim("fig. 11", alike, f"B: {measure}", ahead["B"], low=-SIMILAR_POINTS, high=SIMILAR_POINTS),
        Claim("fig. 11", "Mix-Fit is slightly behind in C", f"C: {measure}", ahead["C"], high=0),
        Claim("fig. 11", alike, f"D: {measure}", ahead["D"], low=-SIMILAR_POINTS, high=SIMILAR_POINTS),
    ]
