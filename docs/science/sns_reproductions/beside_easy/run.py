"""Replay each workload under every policy, and compare them on the same jobs, as docs/science/beside-easy.md says.

A piece of work is a workload at a load: of a log all policies on the same trace, with the intervals of their
differences over the log's weeks; of a pool also a seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, Quantity, found_of, percent_above, percent_more
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.backfilling_loop import EASY
from slurm_sns.sim.replay.trace_replay import replay, replay_as_slurm, replay_in_order
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.site_report.waiting_reasons import look
from slurm_sns.sim.trace import TraceArrays, no_column
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.logs import LOGS, load_of
from sns_reproductions.netbatch_sweeps import INTERVAL_S, generated

WITHHOLD_S = 1800
#: The loads of the scarcer resource in percent of its capacity; OWN: the arrivals as they are.
OWN = 0
LOADS, QUICK_LOADS = (OWN, 70, 80, 90, 100, 110), (OWN, 90)
#: Conservative backfilling books places for so many jobs where the queue of a log grows, and in the pools; on Trinity's
#: 9,408 nodes also these take hours: none.
FEW_BOOKINGS, GROWING, TOO_LONG = 100, 100, "Trinity"
#: At a load that is not their own the logs' first jobs take part, so many; quick: at their own load, too.
MOST_JOBS, QUICK_JOBS, QUICK_BLOCKS = 20_000, 2_000, 8
POOL_SCALE, POOL_DAYS, QUICK_DAYS = 0.05, 4.0, 0.5
#: Stranded cores are looked for at instants so far apart.
LOOK_S, DAY_S = 4 * 3600, 86_400
#: The widest jobs: as wide as this part of the jobs is at most, but not the jobs of one core.
WIDE = 0.9
#: How often weeks are drawn again for the interval of a percentile, and the seed.
DRAWS, SEED = 1000, 1

LIMITS, EXACT, OURS, UNMATCHED = "EASY, limits", "EASY, exact", "Max-Jobs, 1800 s", "first-fit, 1800 s"
NO_END = "Max-Jobs, no end"
#: Slurm and conservative backfilling book places for so many jobs at most; all policies look at more.
BOOKINGS = 1000
SLURM = SlurmParameters(bf_max_job_test=BOOKINGS)
CONSERVATIVE = SlurmParameters(
    bf_interval_s=INTERVAL_S,
    bf_max_job_test=BOOKINGS,
    bf_window_s=31_536_000,
    bf_resolution_s=1,
    batch_sched_delay_s=0,
    epilog=True,
)
Run = Callable[[NodeArrays, TraceArrays], TraceRun]
Floats = NDArray[np.float64]


def _matching(portfolio: tuple[str, ...], **withholding: Any) -> Run:
    rules = rules_of(MatchingParameters(portfolio=portfolio, **withholding))
    return lambda pool, jobs: replay(pool, jobs, rules, interval_s=INTERVAL_S)


def _easy(placement: str) -> Run:
    rules = placing(placement, SpreadingParameters()).rules
    return lambda pool, jobs: replay_in_order(pool, jobs, rules, EASY, interval_s=INTERVAL_S)


def _slurm(parameters: SlurmParameters) -> Run:
    return lambda pool, jobs: replay_as_slurm(pool, jobs, parameters, interval_s=INTERVAL_S)


@dataclass(frozen=True)
class ComparedPolicy:
    """A policy; `by_limits`: it plans by the owners' limits, otherwise by true run times or by none.

    One that `books_all` books a place for each waiting job that it looks at.
    """

    run: Run
    by_limits: bool = False
    books_all: bool = False


POLICIES = {
    LIMITS: ComparedPolicy(_easy("best-fit-cores"), by_limits=True),
    EXACT: ComparedPolicy(_easy("best-fit-cores")),
    "conservative, limits": ComparedPolicy(_slurm(CONSERVATIVE), by_limits=True, books_all=True),
    "conservative, exact": ComparedPolicy(_slurm(CONSERVATIVE), books_all=True),
    "Slurm, limits": ComparedPolicy(_slurm(SLURM), by_limits=True),
    NO_END: ComparedPolicy(_matching(PAPER_PORTFOLIO)),
    OURS: ComparedPolicy(_matching(PAPER_PORTFOLIO, withhold_up_to_s=WITHHOLD_S)),
    "mix-fit, 1800 s": ComparedPolicy(_matching(("mix-fit",), withhold_up_to_s=WITHHOLD_S)),
    UNMATCHED: ComparedPolicy(_matching(("first-fit",), withhold_up_to_s=WITHHOLD_S)),
}
#: What is compared in percent.
METRICS = ("mean_wait_s", "p95_wait_s", "slowdown", "wide_wait_s")
#: Policies that a pair compares with.
BASES = (LIMITS, EXACT, UNMATCHED)


@dataclass(frozen=True)
class ReplayedWaits:
    """What one replay gives of each job, the block (week or day) of its submit, and the stranded cores in percent."""

    wait_s: Floats
    slowdown: Floats
    is_wide: NDArray[np.bool_]
    block: NDArray[np.int64]
    stranded: float

    def figures(self) -> dict[str, float]:
        """The metrics, and the stranded cores."""
        wide = self.wait_s[self.is_wide]
        return {
            "mean_wait_s": float(self.wait_s.mean()),
            "p95_wait_s": float(np.percentile(self.wait_s, 95)),
            "slowdown": float(self.slowdown.mean()),
            "wide_wait_s": float(wide.mean()) if len(wide) else 0.0,
            "stranded": self.stranded,
        }

    def above(self, other: "ReplayedWaits") -> dict[str, Interval]:
        """By how many percent each metric is above that of the other replay of the same jobs."""
        sums = [
            percent_above(
                np.bincount(self.block, ours).astype(np.float64), np.bincount(other.block, theirs).astype(np.float64)
            )
            for ours, theirs in zip(self._summed(), other._summed(), strict=True)
        ]
        return dict(zip(METRICS, (sums[0], self._percentile_above(other), *sums[1:]), strict=True))

    def _summed(self) -> tuple[Floats, Floats, Floats]:
        """By job what is summed for each metric but the percentile."""
        return self.wait_s, self.slowdown, self.wait_s * self.is_wide

    def _percentile_above(self, other: "ReplayedWaits") -> Interval:
        """The same for the 95th percentile, by drawing blocks of jobs again."""
        blocks = int(self.block.max()) + 1
        draws = np.random.default_rng(SEED).multinomial(blocks, np.full(blocks, 1 / blocks), DRAWS)
        ours, theirs = (each.percentiles(draws) for each in (self, other))
        low, high = np.percentile(percent_more(ours, theirs), (2.5, 97.5))
        exact = (np.array([each.figures()["p95_wait_s"]]) for each in (self, other))
        return Interval(float(percent_more(*exact)[0]), float(low), float(high))

    def percentiles(self, draws: NDArray[np.int64]) -> Floats:
        """The 95th percentile of the wait in each draw, where a row says how often each block was drawn."""
        order = np.argsort(self.wait_s)
        waits, block = self.wait_s[order], self.block[order]
        found = np.empty(len(draws))
        for at, times in enumerate(draws):
            upto = np.cumsum(times[block])
            found[at] = waits[np.searchsorted(upto, 0.95 * upto[-1])]
        return found


def waits_of(run: TraceRun, pool: NodeArrays, block_s: float) -> ReplayedWaits:
    """What a replay gives."""
    trace = run.trace
    wait_s = (run.start_s - trace.submit_s).astype(np.float64)
    width = np.array([nodes * cores for nodes, cores, *_ in trace.kinds])[trace.kind]
    seen = look(run, pool, int(trace.submit[-1]), step_s=LOOK_S)
    cores = float(pool.capacity[CORES].sum()) * max(seen.busy, 1)
    block: NDArray[np.int64] = np.unique((trace.submit_s // block_s).astype(np.int64), return_inverse=True)[1]
    return ReplayedWaits(
        wait_s,
        bounded_stretch(wait_s + trace.run_s, trace.run_s.astype(np.float64)),
        width >= max(2, np.quantile(width, WIDE)),
        block,
        100 * float(seen.stranded[CORES]) / cores,
    )


def replayed(pool: NodeArrays, jobs: TraceArrays, block_s: float, bookings: int) -> dict[str, ReplayedWaits]:
    """The policies on the same jobs, whose first one comes at 0; those that need limits only where there are some.

    Conservative backfilling books places for so many jobs; with 0 it is left out.
    """
    exact = replace(jobs, limit=no_column())
    books = _slurm(replace(CONSERVATIVE, bf_max_job_test=bookings))
    return {
        name: waits_of((books if each.books_all else each.run)(pool, jobs if each.by_limits else exact), pool, block_s)
        for name, each in POLICIES.items()
        if (len(jobs.limit) or not each.by_limits) and (bookings or not each.books_all)
    }


def bookings_at(name: str, load: int) -> int:
    """For how many jobs of a log conservative backfilling books places at a load."""
    if name == TOO_LONG:
        return 0
    return FEW_BOOKINGS if load >= GROWING else BOOKINGS


class LogAtLoad(NamedTuple):
    """A log at a load, its own load, and how long a block of its jobs lasts."""

    pool: NodeArrays
    jobs: TraceArrays
    own_load: float
    block_s: float


def workload_of(piece: tuple[str, int, int]) -> LogAtLoad:
    """A log at a load; the piece is its name, the load, and how many jobs take part, 0 for all."""
    name, load, most = piece
    log = LOGS[name]
    pool = log.pool()
    jobs = log.records(pool, 1.0, user_estimates=True)
    jobs = from_zero(jobs.only(slice(most)) if most else jobs)
    own = load_of(jobs, pool)
    factor = round(100 * own / load, 6) if load else 1.0
    block_s = factor * log.block_s
    if most == QUICK_JOBS:
        block_s = factor * int(jobs.submit[-1]) / QUICK_BLOCKS
    return LogAtLoad(pool, jobs.at_load(factor, np.inf, name), own, block_s)


def log_at_load(piece: tuple[str, int, int]) -> dict[str, Any]:
    """A log at a load under all policies; the piece is as that of `workload_of`."""
    pool, jobs, own, block_s = workload_of(piece)
    found = replayed(pool, jobs, block_s, bookings_at(*piece[:2]))
    return {
        "load": 100 * own,
        "jobs": len(jobs),
        "blocks": int(found[LIMITS].block.max()) + 1,
        "figures": {policy: each.figures() for policy, each in found.items()},
        "above": {
            f"{policy} above {base}": {metric: tuple(value) for metric, value in each.above(found[base]).items()}
            for (policy, each), base in product(found.items(), BASES)
            if policy != base
        },
    }


def pool_at_load(piece: tuple[str, int, int, float]) -> dict[str, Any]:
    """A generated pool at a load; the piece is its name, the load, the seed and the days."""
    name, load, seed, days = piece
    nodes, jobs = generated(POOLS[name], 1.0, scale=POOL_SCALE, seed=seed, days=days)
    jobs = from_zero(jobs)
    own = load_of(jobs, nodes)
    factor = round(100 * own / load, 6) if load else 1.0
    found = replayed(nodes, jobs.at_load(factor, np.inf, name), DAY_S, FEW_BOOKINGS)
    return {"load": 100 * own, "jobs": len(jobs), "figures": {policy: each.figures() for policy, each in found.items()}}


def from_zero(jobs: TraceArrays) -> TraceArrays:
    """The jobs with the first submit at 0."""
    return replace(jobs, submit=jobs.submit - jobs.submit[0])


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Replay all workloads, and draw the figure."""
    loads = QUICK_LOADS if options.quick else LOADS
    days = QUICK_DAYS if options.quick else POOL_DAYS
    for log in LOGS.values():
        log.source()  # a missing log is reported before any work
    # The longest first: the others keep all cores busy meanwhile.
    cells = sorted(product(LOGS, loads), key=lambda cell: (cell[0] == TOO_LONG, cell[1]), reverse=True)
    of_logs = [(name, load, jobs_at(load, quick=options.quick)) for name, load in cells]
    of_pools = [(name, load, seed, days) for name, load in product(POOLS, loads) for seed in seeds_of(options)]
    at = {piece[:2]: found for piece, found in options.results("logs", log_at_load, of_logs).items()}
    logs = {cell: at[cell] for cell in product(LOGS, loads)}
    pools: dict[tuple[str, int], list[Any]] = {}
    for (name, load, *_), found in options.results("pools", pool_at_load, of_pools).items():
        pools.setdefault((name, load), []).append(found)
    known: dict[str, Quantity] = {
        f"{name} {load}: {pair}: {metric}": Interval(*value)
        for (name, load), found in logs.items()
        for pair, values in found["above"].items()
        for metric, value in values.items()
    }
    known |= {key: value for cell, found in pools.items() for key, value in _of_pool(cell, found).items()}
    bars = {
        policy: {
            name: known[f"{name} {OWN}: {policy} above {LIMITS}: mean_wait_s"]
            for name in LOGS
            if policy in logs[name, OWN]["figures"]
        }
        for policy in (OURS, UNMATCHED, "conservative, limits")
    }
    figures.bars(options.out, "waits", bars, ("", "mean wait above EASY's by limits (%)"))
    surely = [found_of(known[f"{name} {OWN}: {OURS} above {LIMITS}: mean_wait_s"]) for name in LOGS]
    return PageResults(
        known,
        fields={
            "logs": logs,
            "own": {name: found for (name, load), found in logs.items() if load == OWN},
            "pools": {cell: mean_of(found) for cell, found in pools.items()},
            "loads": loads,
            "quick": options.quick,
            "less": sum(each.high < 0 for each in surely),
            "more": sum(each.low > 0 for each in surely),
            "least": min(each.mean for each in surely),
            "largest": max(each.mean for each in surely),
        },
        seeds=len(seeds_of(options)),
    )


def seeds_of(options: Options) -> range:
    """The seeds of the pools."""
    return range(1, options.seeds + 1)


def jobs_at(load: int, *, quick: bool) -> int:
    """How many jobs of a log take part, 0 for all."""
    if quick:
        return QUICK_JOBS
    return MOST_JOBS if load else 0


def _of_pool(cell: tuple[str, int], found: list[Any]) -> dict[str, Floats]:
    """The differences between policies in a pool, seed by seed."""
    columns = {
        policy: {metric: np.array([each["figures"][policy][metric] for each in found]) for metric in METRICS}
        for policy in found[0]["figures"]
    }
    pairs = [(one, other) for one, other in product(columns, BASES) if other in columns and one != other]
    return {
        f"{cell[0]} {cell[1]}: {one} above {other}: {metric}": percent_more(columns[one][metric], of_other[metric])
        for one, other, of_other in ((*pair, columns[pair[1]]) for pair in pairs)
        for metric in METRICS
    }


def mean_of(found: list[Any]) -> dict[str, Any]:
    """The figures of a pool, as means over its seeds."""
    policies = found[0]["figures"]
    return {
        "load": float(np.mean([each["load"] for each in found])),
        "jobs": round(float(np.mean([each["jobs"] for each in found]))),
        "figures": {
            policy: {metric: float(np.mean([each["figures"][policy][metric] for each in found])) for metric in of}
            for policy, of in policies.items()
        },
    }
