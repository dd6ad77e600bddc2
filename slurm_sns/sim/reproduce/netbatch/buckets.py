"""Figures 7 and 11 of the Max-Jobs paper: which heuristic matches the most jobs of a bucket on an empty pool.

A bucket is 1000 consecutive jobs, all submitted at time 0 to empty machines of 512 cores in total, as the paper prints.
That these are 64 machines of 8 cores and 64 GB is assumed; module machines varies it. No capacity is withheld, and a
job that finds no place is skipped. The heuristics that match the most jobs win the bucket: one, or several in a tie. As
in the paper, every bucket of a month takes part: 13 thousand of pools A, B and C, 9 thousand of D.

The paper does not say how a job's cores and memory are correlated; the generator draws them independently. A second
contest shows how much depends on that: each bucket has the same cores and the same memory, but they are paired so that
jobs with more cores have more memory.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import AUTHORS_PORTFOLIO, PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, Interval, interval, joint
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.replay.single_cycles import matched_on_empty_nodes
from slurm_sns.sim.reproduce.netbatch.readings import (
    LITTLE_DIFFERENCE,
    TOLD,
    WINS_LESS,
    WINS_MARKEDLY_MORE,
    WINS_MORE,
    WINS_SLIGHTLY_LESS,
    WINS_SLIGHTLY_MORE,
    printed_share,
)
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.runs import FIRST_FIT, records_of
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import SubmittedJobs, generate
from slurm_sns.sim.workloads.netbatch_pools import DAYS, POOLS

BUCKET = 1000
#: All buckets of the month; quick: those of so many days.
QUICK_DAYS = 0.1
MACHINES = 64
EMPTY = NodeArrays(
    tuple(f"m{at:02}" for at in range(MACHINES)), amounts([Resources(8, 64 * MIB_PER_GB) for _ in range(MACHINES)])
)
FIGURE_7, FIGURE_11 = "figure-7", "figure-11"
#: The contest of figure 11 with cores and memory paired; the members of the authors' simulator and First-Fit.
PAIRED, ALL = "paired", "all"
#: Contest -> who competes. One matching of all heuristics decides all contests but PAIRED.
EVERYBODY = (*AUTHORS_PORTFOLIO, FIRST_FIT)
CONTESTS = {FIGURE_7: PAPER_PORTFOLIO[:4], FIGURE_11: PAPER_PORTFOLIO, ALL: EVERYBODY}
DRAWN = (FIGURE_7, FIGURE_11)
#: The buckets in which all five heuristics tie.
LEVEL = "level"
BEST_MEMORY, WORSE_CORES, MIX = "best-fit-memory", "worse-fit-cores", "mix-fit"
#: "In 6-37% of the experiments other heuristics performed better" than Worse-Fit-Cores.
LEAST_WON, MOST_WON = 63, 94
#: Buckets that are matched at a time: as many as fit into little memory.
AT_A_TIME = 100

#: Contest -> pool -> heuristic -> percent of buckets won, by seed.
Shares = Mapping[str, Mapping[str, Mapping[str, NDArray[np.float64]]]]
#: Cores and GB of jobs.
Sizes = tuple[NDArray[np.float64], NDArray[np.float64]]


def contest(piece: tuple[str, int, float]) -> dict[str, list[float]]:
    """The percentage of a seed's buckets that each heuristic wins, by contest, and of those that all win (LEVEL)."""
    name, seed, days = piece
    rng = np.random.default_rng(seed)
    won: dict[str, list[NDArray[np.bool_]]] = {figure: [] for figure in (*CONTESTS, PAIRED)}
    for sizes in buckets_of(name, seed, days):
        matched = dict(zip(EVERYBODY, matches(sizes, EVERYBODY).T, strict=True))
        for figure, members in CONTESTS.items():
            won[figure].append(winners(np.array([matched[member] for member in members]).T))
        won[PAIRED].append(winners(matches(paired(sizes, rng), PAPER_PORTFOLIO)))
    every = {figure: np.concatenate(each) for figure, each in won.items()}
    level = [100 * float(every[FIGURE_11].all(axis=1).mean())]
    return {figure: (100 * each.mean(axis=0)).tolist() for figure, each in every.items()} | {LEVEL: level}


def buckets_of(name: str, seed: int, days: float) -> Iterator[Sizes]:
    """The sizes of the pool's jobs, some buckets at a time; jobs behind the last whole bucket are left out."""
    rest: Sizes = (np.zeros(0), np.zeros(0))
    for part in generate(POOLS[name], scale=1.0, seed=seed, days=days):
        cores, memory_gb = (np.concatenate(each) for each in zip(rest, (part.cores, part.memory_gb), strict=True))
        whole = len(cores) // BUCKET * BUCKET
        for begin in range(0, whole, AT_A_TIME * BUCKET):
            end = min(whole, begin + AT_A_TIME * BUCKET)
            yield cores[begin:end], memory_gb[begin:end]
        rest = cores[whole:], memory_gb[whole:]


def matches(sizes: Sizes, members: Sequence[str], machines: NodeArrays = EMPTY) -> NDArray[np.int64]:
    """How many jobs of each bucket each member matches on the empty machines, shape (buckets, members)."""
    count = len(sizes[0])
    ones = np.ones(count)
    records = records_of([SubmittedJobs(np.zeros(count), ones, *sizes, ones)], machines, 1.0)
    # Jobs that no machine can hold are not in the records.
    ends = np.searchsorted(records.identity, np.arange(BUCKET, count + 1, BUCKET))
    parameters = MatchingParameters(portfolio=tuple(members), queue_depth=BUCKET, reservations=0)
    return matched_on_empty_nodes(machines, records, rules_of(parameters), ends.astype(np.int64))


def winners(matched: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Who has matched the most jobs of its bucket; of the same shape (buckets, members)."""
    won: NDArray[np.bool_] = matched == matched.max(axis=1, keepdims=True)
    return won


def paired(sizes: Sizes, rng: np.random.Generator) -> Sizes:
    """The same jobs' cores, in the same order, with each bucket's memory reassigned: more cores get more memory.

    Among jobs of equally many cores the amounts are in random order.
    """
    cores, memory_gb = sizes
    bucket = np.arange(len(cores)) // BUCKET
    given = np.empty_like(memory_gb)
    given[np.lexsort((rng.random(len(cores)), cores, bucket))] = memory_gb[np.lexsort((memory_gb, bucket))]
    return cores, given


def reproduce(options: Options) -> Page:
    """Run the contests, draw the figures and return the page."""
    days = QUICK_DAYS if options.quick else DAYS
    pieces = [(name, seed, days) for seed in range(1, options.seeds + 1) for name in POOLS]
    results = options.results("buckets", contest, pieces)
    by_pool = {name: [r for p, r in zip(pieces, results, strict=True) if p[0] == name] for name in POOLS}
    shares = {
        figure: {
            name: dict(zip(members, np.array([each[figure] for each in found]).T, strict=True))
            for name, found in by_pool.items()
        }
        for figure, members in (*CONTESTS.items(), (PAIRED, PAPER_PORTFOLIO), (LEVEL, (LEVEL,)))
    }
    numbers = [_drawn(options, figure, shares) for figure in DRAWN]
    counts = ", ".join(f"{POOLS[name].jobs_at(1.0, days) // BUCKET:,} of {name}" for name in POOLS)
    return Page(
        title="NetBatch buckets: who matches the most of 1000 jobs on an empty pool (figures 7, 11)",
        made=[
            (
                f"`sns reproduce netbatch-buckets`: pools A-D, generated at full size with {options.seeds} seeds. For "
                f"each seed, all buckets of {BUCKET} consecutive jobs in {days:g} days ({counts}) are each matched to "
                f"{MACHINES} empty machines of 8 cores and 64 GB, without reservations. The heuristics that match the "
                "most jobs win the bucket: one, or several in a tie."
            ),
            (
                "The paper prints the 512 cores of these machines, but neither their number nor their memory: 8 cores "
                "and 64 GB are assumed. [Other machines](../netbatch-machines/README.md) of 512 cores."
            ),
        ],
        claims=[
            *_one_dimensional(shares),
            *claims_of_figure_11(shares[FIGURE_11]),
            _unlike_the_load(shares[FIGURE_11]["B"]),
        ],
        drawings=[
            SavedFigure("figure-7", "Figure 7: percentage of buckets won, four heuristics."),
            SavedFigure("figure-11", "Figure 11: percentage of buckets won, with Mix-Fit."),
        ],
        numbers=[*numbers, _side_by_side(shares), _everybody(shares)],
        remarks=[
            TOLD,
            (
                "The paper does not print how the cores and the memory of jobs are correlated. The table shows the "
                "same buckets as generated, where cores and memory are drawn independently, and *paired*, where the "
                "jobs with the most cores have the most memory. The last column shows the buckets in which all five "
                "heuristics tie, so that each of them wins. The figures of a contest among all members of the authors' "
                "own portfolio and First-Fit are in all.csv. How the generator's bursts were chosen: "
                "[generator](../netbatch-generator/README.md). Percent of buckets won:"
            ),
        ],
        shown=_side_by_side(shares),
        seeds=options.seeds,
    )


def _side_by_side(shares: Shares) -> DataTable:
    """One row for each pool: the mean percentages, as generated and paired."""
    columns = [f"{member}{how}" for member in PAPER_PORTFOLIO for how in ("", ", paired")]
    rows = []
    for name in POOLS:
        both = [
            f"{shares[contest][name][member].mean():.0f}"
            for member in PAPER_PORTFOLIO
            for contest in (FIGURE_11, PAIRED)
        ]
        rows.append((name, *both, f"{shares[LEVEL][name][LEVEL].mean():.0f}"))
    return DataTable(PAIRED, ("pool", *columns, "all level"), rows)


def _everybody(shares: Shares) -> DataTable:
    """The contest of all heuristics."""
    rows = [
        (member, f"pool {name}", *vars(interval(shares[ALL][name][member])).values())
        for member in EVERYBODY
        for name in POOLS
    ]
    return DataTable(ALL, ("heuristic", "pool", "percent_won", "low", "high"), rows)


def _drawn(options: Options, figure: str, shares: Shares) -> DataTable:
    members = CONTESTS[figure]
    values: dict[str, dict[str, Interval]] = {
        member: {f"pool {name}": interval(shares[figure][name][member]) for name in POOLS} for member in members
    }
    figures.bars(options.out, figure, values, ("", "% of buckets won"))
    rows = [(member, pool, *vars(value).values()) for member, pools in values.items() for pool, value in pools.items()]
    return DataTable(figure, ("heuristic", "pool", "percent_won", "low", "high"), rows)


def _one_dimensional(shares: Shares) -> list[Claim]:
    won = shares[FIGURE_7]
    where, lead = "fig. 7", {}
    claims: list[Claim] = []
    for name in POOLS:
        second = _best(won[name], WORSE_CORES)
        lead[name] = won[name][WORSE_CORES] - won[name][second]
        measure = f"{name}: points, worse-fit-cores - {second}"
        reading, text = WINS_MORE, f'{name}: Worse-Fit-Cores "is also the best heuristic"'
        if name == "A":
            reading, text = WINS_MARKEDLY_MORE, 'A: Worse-Fit-Cores "significantly outperforms all other heuristics"'
        claims.append(reading.of(where, text, measure, interval(lead[name])))
    for name in "BCD":
        text = f'{name}: Worse-Fit-Cores is the best, "but the differences there are smaller" than in A ({WINS_MORE})'
        leads = WINS_MORE.of(where, text, f"points of lead, {name}", interval(lead[name]))
        smaller = WINS_MORE.of(where, text, f"points of lead, A - {name}", interval(lead["A"] - lead[name]))
        claims.append(joint(text, leads, smaller))
    by_share = sorted(POOLS, key=lambda name: float(won[name][WORSE_CORES].mean()))
    for name, share, which in ((by_share[0], LEAST_WON, "least"), (by_share[-1], MOST_WON, "most")):
        text = (
            '"in 6-37% of the experiments other heuristics performed better" than Worse-Fit-Cores; the pool where it '
            f"wins {which}"
        )
        found = interval(won[name][WORSE_CORES])
        measure = f"% won by worse-fit-cores where it wins {which} ({name})"
        claims.append(printed_share(share).of(where, text, measure, found))
    three = ("best-fit-memory", "worse-fit-memory", "best-fit-cores")
    for name in POOLS:
        order = sorted(three, key=lambda member: float(won[name][member].mean()))
        spread = interval(won[name][order[-1]] - won[name][order[0]])
        text = f'{name}: "little difference among Best-Fit-Memory, Worse-Fit-Memory, and Best-Fit-Cores"'
        claims.append(LITTLE_DIFFERENCE.of(where, text, f"{name}: points, {order[-1]} - {order[0]}", spread))
    for name in POOLS:
        rest = max(("best-fit-memory", "best-fit-cores"), key=lambda member: float(won[name][member].mean()))
        better = interval(won[name]["worse-fit-memory"] - won[name][rest])
        text = f'{name}: "Worse-Fit-Memory is consistently slightly better than the other two"'
        claims.append(WINS_SLIGHTLY_MORE.of(where, text, f"{name}: points, worse-fit-memory - {rest}", better))
    order = sorted(won["D"], key=lambda member: float(won["D"][member].mean()))
    spread = interval(won["D"][order[-1]] - won["D"][order[0]])
    text = 'D: "little difference between the performance of the different heuristics"'
    claims.append(LITTLE_DIFFERENCE.of(where, text, f"D: points, {order[-1]} - {order[0]}", spread))
    return claims


def claims_of_figure_11(won: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> list[Claim]:
    """What the paper says of the contest with Mix-Fit; `won`: pool -> heuristic -> percent of buckets, by seed."""
    where = "fig. 11"
    second = _best(won["A"], MIX)
    ahead = {name: interval(won[name][MIX] - won[name][WORSE_CORES]) for name in POOLS}
    in_a, measure = interval(won["A"][MIX] - won["A"][second]), "points, mix-fit - worse-fit-cores"
    alike = 'Mix-Fit "performs similarly to Worse-Fit-Cores"'
    behind = 'C: Mix-Fit "is slightly outperformed by Worse-Fit-Cores"'
    text = 'A: "Mix-Fit wins by only a small margin"'
    return [
        WINS_SLIGHTLY_MORE.of(where, text, f"A: points, mix-fit - {second}", in_a),
        LITTLE_DIFFERENCE.of(where, f"B: {alike}", f"B: {measure}", ahead["B"]),
        WINS_SLIGHTLY_LESS.of(where, behind, f"C: {measure}", ahead["C"]),
        LITTLE_DIFFERENCE.of(where, f"D: {alike}", f"D: {measure}", ahead["D"]),
    ]


def _unlike_the_load(won: Mapping[str, NDArray[np.float64]]) -> Claim:
    """The half of a sentence on pool B that is about the buckets; the other half is judged by module load_claims."""
    text = (
        'B: Best-Fit-Memory is behind Mix-Fit here: it is ahead in the load simulation, "as opposed to the buckets '
        'experiment"'
    )
    behind = interval(won[BEST_MEMORY] - won[MIX])
    return WINS_LESS.of("sec. 5", text, "B: points, best-fit-memory - mix-fit", behind)


def _best(won: Mapping[str, NDArray[np.float64]], without: str) -> str:
    """The heuristic that wins the most, one left out."""
    return max((member for member in won if member != without), key=lambda member: float(won[member].mean()))
