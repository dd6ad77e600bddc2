"""What lookahead would add to Max-Jobs: the future work that the paper names, on its four pools.

Each member of the portfolio matches the cycle and then, on what it leaves, jobs that stand for the next arrivals
(module `replay.lookahead_replay`). Three questions: does it pay to choose between equally good schedules by what they
leave; does it pay to start a job less now for the sake of the next ones; and would a perfect forecast of arrivals do
better than the jobs that came last?
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, Interval, interval, percent_more
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.replay.lookahead_replay import ArrivalSource, Lookahead, MatchComparison, replay_ahead
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.reproduce.netbatch.readings import BETTER, MARKEDLY_BETTER, PERCENT, TOLD
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, INTERVAL_S, MAX_JOBS, TOLD_DEFAULT_CYCLE, records_of
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS

#: The windows: one cycle, and ten.
SHORT_S, LONG_S = INTERVAL_S, 10 * INTERVAL_S
#: Name -> lookahead, None for Max-Jobs itself.
WAYS_TO_CHOOSE: Mapping[str, Lookahead | None] = {
    MAX_JOBS: None,
    **{
        f"{arrivals.name.lower()} {window_s} s, {counting.name.lower()}": Lookahead(arrivals, counting, window_s)
        for arrivals in ArrivalSource
        for window_s in (SHORT_S, LONG_S)
        for counting in MatchComparison
    },
}
BETAS, QUICK_BETAS = (0.68, HIGHEST_LOAD), (HIGHEST_LOAD,)
#: Scale and days; quick.
SIZE, QUICK_SIZE = (0.05, 10.0), (0.02, 0.5)

#: (pool, beta) -> way to choose -> mean wait in seconds, by seed.
Waits = Mapping[tuple[str, float], Mapping[str, NDArray[np.float64]]]


def compare(piece: tuple[str, float, int, float, float]) -> dict[str, float]:
    """The mean wait under each way to choose; the piece is pool, beta, seed, scale and days."""
    name, beta, seed, scale, days = piece
    pool = POOLS[name].nodes(scale)
    records = records_of(generate(POOLS[name], scale=scale, seed=seed, days=days), pool, beta)
    parameters = MatchingParameters(portfolio=PAPER_PORTFOLIO)
    waits = {}
    for way, lookahead in WAYS_TO_CHOOSE.items():
        if lookahead is None:
            replayed = replay(pool, records, rules_of(parameters), interval_s=INTERVAL_S)
        else:
            replayed = replay_ahead(pool, records, rules_of(parameters), lookahead, interval_s=INTERVAL_S)
        waits[way] = float((replayed.start_s - records.submit_s).mean())
    return waits


def reproduce(options: Options) -> Page:
    """Run what is missing, draw the figure and return the page."""
    betas, (scale, days) = (QUICK_BETAS, QUICK_SIZE) if options.quick else (BETAS, SIZE)
    pieces = [
        (name, beta, seed, scale, days)
        for seed in range(1, options.seeds + 1)
        for beta in sorted(betas)
        for name in POOLS
    ]
    results = dict(zip(pieces, options.results("lookahead", compare, pieces), strict=True))
    waits: Waits = {
        (name, beta): {
            way: np.array([results[name, beta, seed, scale, days][way] for seed in range(1, options.seeds + 1)])
            for way in WAYS_TO_CHOOSE
        }
        for beta in betas
        for name in POOLS
    }
    bars = {
        way: {f"pool {name}": _above(waits[name, HIGHEST_LOAD], way) for name in POOLS}
        for way in WAYS_TO_CHOOSE
        if way.endswith(MatchComparison.SUM.name.lower())
    }
    figures.bars(options.out, "lookahead", bars, ("", "mean wait above Max-Jobs' (%)"))
    return Page(
        title="NetBatch lookahead: what the next arrivals lose, and what Max-Jobs gains by asking",
        made=[
            (
                "`sns reproduce netbatch-lookahead`: Max-Jobs with the paper's five heuristics on pools A-D at scale "
                f"{scale:g} for {days:g} days, at beta {', '.join(f'{beta:g}' for beta in betas)}, {options.seeds} "
                f"seeds. Cycles every 30 s {TOLD_DEFAULT_CYCLE}. Each heuristic matches the cycle on a copy "
                "of what is free, and then, by the same code on what it leaves, the jobs that stand for the next "
                f"arrivals: *recent*, those of the last {SHORT_S} or {LONG_S} s; *known*, the true ones of the next. "
                "*ties*: the heuristic with the most matches wins, and among equal ones the one that leaves room for "
                "the most arrivals. *sum*: both are added. Without lookahead the first of equal ones wins."
            )
        ],
        claims=_claims(waits),
        drawings=[SavedFigure("lookahead", f"Mean wait with lookahead (sum) above Max-Jobs', beta {HIGHEST_LOAD:g}.")],
        numbers=[_beside(waits)],
        remarks=[
            f"{TOLD} {PERCENT}",
            (
                "The paper measures no lookahead: it suspects that dense packing costs the successive round (section "
                "5), and hopes for significant improvements by looking further (section 6). *Known* is no scheduler, "
                "but bounds what a better forecast of arrivals could gain in this way. Mean waits, in percent above "
                "those of Max-Jobs:"
            ),
        ],
        shown=_beside(waits),
        seeds=options.seeds,
    )


def _above(waits: Mapping[str, NDArray[np.float64]], way: str) -> Interval:
    return interval(percent_more(waits[way], waits[MAX_JOBS]))


def _beside(waits: Waits) -> DataTable:
    rows = [
        (name, beta, float(of[MAX_JOBS].mean()), *(_above(of, way) for way in WAYS_TO_CHOOSE if way != MAX_JOBS))
        for (name, beta), of in waits.items()
    ]
    header = ("pool", "beta", "max-jobs (s)", *(f"{way} (%)" for way in WAYS_TO_CHOOSE if way != MAX_JOBS))
    return DataTable("lookahead", header, rows)


def _claims(waits: Waits) -> list[Claim]:
    """At the highest load, with the arrivals of one cycle ("a successive scheduling round"), however they count."""
    claims = []
    for name in POOLS:
        for arrivals, reading, where, text in (
            (
                ArrivalSource.KNOWN,
                BETTER,
                "sec. 5",
                '"packing jobs very densely leads to reduced performance in a successive scheduling round"',
            ),
            (ArrivalSource.RECENT, MARKEDLY_BETTER, "sec. 6", 'looking further "may yield significant improvements"'),
        ):
            for way, look in WAYS_TO_CHOOSE.items():
                if look is not None and (look.arrivals, look.window_s) == (arrivals, SHORT_S):
                    found = _above(waits[name, HIGHEST_LOAD], way)
                    claims.append(reading.of(where, text, f"{name}: % {way} above max-jobs", found))
    return claims
