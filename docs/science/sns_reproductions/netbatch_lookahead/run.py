"""Run Max-Jobs with and without lookahead, on the same jobs.

Each member of the portfolio matches the cycle and then, on what it leaves, jobs that stand for the next arrivals
(module `replay.lookahead_replay`). Three questions: does it pay to choose between equally good schedules by what they
leave; does it pay to start a job less now for the sake of the next ones; and would a perfect forecast of arrivals do
better than the jobs that came last?
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import found_of
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.lookahead_replay import ArrivalSource, Lookahead, MatchComparison, replay_ahead
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import ABOUT, above, beside, waits_of
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, INTERVAL_S, MAX_JOBS, generated

#: The windows: one cycle, and ten.
SHORT_S, LONG_S = INTERVAL_S, 10 * INTERVAL_S
#: Name -> lookahead.
LOOKAHEADS: Mapping[str, Lookahead] = {
    f"{arrivals.name.lower()} {window_s} s, {counting.name.lower()}": Lookahead(arrivals, counting, window_s)
    for arrivals in ArrivalSource
    for window_s in (SHORT_S, LONG_S)
    for counting in MatchComparison
}
BETAS, QUICK_BETAS = (0.68, HIGHEST_LOAD), (HIGHEST_LOAD,)
#: Scale and days; quick.
SIZE, QUICK_SIZE = (0.05, 10.0), (0.02, 0.5)


def compare(piece: tuple[str, float, int, float, float]) -> dict[str, float]:
    """The mean wait under each way to choose; the piece is pool, beta, seed, scale and days."""
    name, beta, seed, scale, days = piece
    pool, records = generated(POOLS[name], beta, scale=scale, seed=seed, days=days)
    rules = rules_of(MatchingParameters(portfolio=PAPER_PORTFOLIO))
    runs = {MAX_JOBS: replay(pool, records, rules, interval_s=INTERVAL_S)}
    for way, lookahead in LOOKAHEADS.items():
        runs[way] = replay_ahead(pool, records, rules, lookahead, interval_s=INTERVAL_S)
    return {way: float((run.start_s - records.submit_s).mean()) for way, run in runs.items()}


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figure."""
    betas, size = (QUICK_BETAS, QUICK_SIZE) if options.quick else (BETAS, SIZE)
    waits = waits_of(options, "lookahead", compare, betas, size)
    known = above(waits)
    bars = {
        way: {f"pool {name}": found_of(known[f"{name} {HIGHEST_LOAD}: {way} above {MAX_JOBS}"]) for name in POOLS}
        for way, lookahead in LOOKAHEADS.items()
        if lookahead.counting is MatchComparison.SUM
    }
    figures.bars(options.out, "lookahead", bars, ("", "mean wait above Max-Jobs' (%)"))
    about = {
        "pools": list(POOLS),
        "betas": betas,
        "scale": size[0],
        "days": size[1],
        "short_s": SHORT_S,
        "long_s": LONG_S,
    }
    return PageResults(known, [beside("lookahead", "beta", waits, LOOKAHEADS)], {**ABOUT, **about}, options.seeds)
