"""Match every bucket of a month to an empty pool, and count which heuristics win it.

A bucket is 1000 consecutive jobs, all submitted at time 0 to empty machines of 512 cores in total, as the paper prints.
That these are 64 machines of 8 cores and 64 GB is assumed; page netbatch-machines varies it. No capacity is withheld,
and a job that finds no place is skipped. The heuristics that match the most jobs win the bucket: one, or several in a
tie. As in the paper, every bucket of a month takes part: 13 thousand of pools A, B and C, 9 thousand of D.

The paper does not say how a job's cores and memory are correlated; the generator draws them independently. A second
contest shows how much depends on that: each bucket has the same cores and the same memory, but they are paired so that
jobs with more cores have more memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import AUTHORS_PORTFOLIO, PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.trace_replay import matched_on_empty_nodes
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch import SubmittedJobs, generate
from slurm_sns.sim.workloads.netbatch_pools import DAYS, POOLS
from sns_reproductions.netbatch import Shares, by_member, points
from sns_reproductions.netbatch_sweeps import FIRST_FIT, records_of

BUCKET = 1000
#: All buckets of the month; quick: those of so many days.
QUICK_DAYS = 0.1
TOTAL_CORES, CORES, GB_PER_CORE = 512, 8, 8
FIGURE_7, FIGURE_11 = "figure-7", "figure-11"
#: The contest of figure 11 with cores and memory paired; the members of the authors' simulator and First-Fit.
PAIRED, ALL = "paired", "all"
#: Contest -> who competes. One matching of all heuristics decides all contests but PAIRED.
EVERYBODY = (*AUTHORS_PORTFOLIO, FIRST_FIT)
CONTESTS = {FIGURE_7: PAPER_PORTFOLIO[:4], FIGURE_11: PAPER_PORTFOLIO, ALL: EVERYBODY}
#: The buckets in which all five heuristics tie.
LEVEL = "level"
#: Buckets that are matched at a time: as many as fit into little memory.
AT_A_TIME = 100

#: Cores and GB of jobs.
Sizes = tuple[NDArray[np.float64], NDArray[np.float64]]


def machines_of(cores: int = CORES, gb_per_core: int = GB_PER_CORE) -> NodeArrays:
    """Equal empty machines of 512 cores in total."""
    count = TOTAL_CORES // cores
    size = Resources(cores, cores * gb_per_core * MIB_PER_GB)
    return NodeArrays(tuple(f"m{at:02}" for at in range(count)), amounts([size] * count))


EMPTY = machines_of()


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


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run the contests and draw the figures."""
    days = QUICK_DAYS if options.quick else DAYS
    pieces = [(name, seed, days) for seed in range(1, options.seeds + 1) for name in POOLS]
    results = options.results("buckets", contest, pieces)
    by_pool = {name: [each for piece, each in results.items() if piece[0] == name] for name in POOLS}
    shares = {
        figure: Shares(
            {name: by_member(members, [each[figure] for each in found]) for name, found in by_pool.items()}, figure
        )
        for figure, members in (*CONTESTS.items(), (PAIRED, PAPER_PORTFOLIO), (LEVEL, (LEVEL,)))
    }
    tables = [_numbers(shares[figure]) for figure in (FIGURE_7, FIGURE_11)]
    for table in tables:
        bars: dict[str, dict[str, Interval]] = {}
        for member, pool, *numbers in table.rows:
            bars.setdefault(member, {})[pool] = Interval(*numbers)
        figures.bars(options.out, table.stem, bars, ("", "% of buckets won"))
    return PageResults(
        points(shares[figure] for figure in (FIGURE_7, FIGURE_11)),
        [*tables, _side_by_side(shares), _numbers(shares[ALL])],
        {
            "of_four": shares[FIGURE_7],
            "shares": [shares[FIGURE_11]],
            "days": days,
            "bucket": BUCKET,
            "counts": {name: POOLS[name].jobs_at(1.0, days) // BUCKET for name in POOLS},
            "machines": {"number": len(EMPTY.names), "cores": CORES, "memory_gb": CORES * GB_PER_CORE},
        },
        options.seeds,
    )


def _numbers(shares: Shares) -> DataTable:
    """What each heuristic wins in a contest."""
    rows = [
        (member, f"pool {pool}", *interval(shares.won[pool][member]))
        for member in CONTESTS[shares.group]
        for pool in shares.pools
    ]
    return DataTable(shares.group, ("heuristic", "pool", "percent_won", "low", "high"), rows)


def _side_by_side(shares: Mapping[str, Shares]) -> DataTable:
    """One row for each pool: the mean percentages, as generated and paired."""
    columns = [f"{member}{how}" for member in PAPER_PORTFOLIO for how in ("", ", paired")]
    cells = [(figure, member) for member in PAPER_PORTFOLIO for figure in (FIGURE_11, PAIRED)] + [(LEVEL, LEVEL)]
    rows = [(pool, *(f"{shares[figure].won[pool][of].mean():.0f}" for figure, of in cells)) for pool in POOLS]
    return DataTable(PAIRED, ("pool", *columns, "all level"), rows)
