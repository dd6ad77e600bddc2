"""Run Max-Jobs with a joint choice among queued jobs, and with lookahead at arrivals, on the same jobs.

The *joint choice* is the paper's idea (section 6): nodes for several queued jobs are chosen together (module
joint_choice). Does a cycle then start more jobs, and do they wait less?

*Lookahead at arrivals* is another thing, which the paper does not propose: each member of the portfolio matches the
cycle and then, on what it leaves, jobs that stand for the next arrivals (module `replay.lookahead_replay`). Three
questions: does it pay to choose between equally good schedules by what they leave; does it pay to start a job less now
for the sake of the next ones; and would a perfect forecast of arrivals do better than the jobs that came last?
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval, found_of, interval, percent_more
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.lookahead_replay import ArrivalSource, Lookahead, MatchComparison, replay_ahead
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import ABOUT, Samples, Waits, above, beside, waits_of
from sns_reproductions.netbatch_lookahead.joint_choice import (
    ADOPTED,
    BETTER,
    JOBS,
    SHORT,
    UNPROVEN,
    WAITING,
    WINDOW,
    replay_jointly,
)
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, INTERVAL_S, LIVE_INTERVAL_S, MAX_JOBS, POLICIES, generated

#: The windows: one cycle, and ten.
SHORT_S, LONG_S = INTERVAL_S, 10 * INTERVAL_S
#: Name -> lookahead.
LOOKAHEADS: Mapping[str, Lookahead] = {
    f"{arrivals.name.lower()} {window_s} s, {counting.name.lower()}": Lookahead(arrivals, counting, window_s)
    for arrivals in ArrivalSource
    for window_s in (SHORT_S, LONG_S)
    for counting in MatchComparison
}
#: The joint choice is replayed at the paper's interval and at that of a live scheduler.
INTERVALS_S = (INTERVAL_S, LIVE_INTERVAL_S)
JOINT = "joint choice"
#: What is compared with it.
SINGLE = tuple(PAPER_PORTFOLIO)
#: What is counted in the cycles of its replays.
COUNTS: Mapping[str, int] = {
    "waiting": WAITING,
    "short": SHORT,
    "better": BETTER,
    "adopted": ADOPTED,
    "jobs": JOBS,
    "unproven": UNPROVEN,
}
BETAS, QUICK_BETAS = (0.68, HIGHEST_LOAD), (HIGHEST_LOAD,)
#: Scale and days; those of the joint choice; quick, of both.
SIZE, JOINT_SIZE, QUICK_SIZE = (0.05, 10.0), (0.05, 2.0), (0.02, 0.5)


def compare(piece: tuple[str, float, int, float, float]) -> dict[str, float]:
    """The mean wait under each way to choose; the piece is pool, beta, seed, scale and days."""
    name, beta, seed, scale, days = piece
    pool, records = generated(POOLS[name], beta, scale=scale, seed=seed, days=days)
    rules = rules_of(MatchingParameters(portfolio=PAPER_PORTFOLIO))
    runs = {MAX_JOBS: replay(pool, records, rules, interval_s=INTERVAL_S)}
    for way, lookahead in LOOKAHEADS.items():
        runs[way] = replay_ahead(pool, records, rules, lookahead, interval_s=INTERVAL_S)
    return {way: float((run.start_s - records.submit_s).mean()) for way, run in runs.items()}


def compare_jointly(piece: tuple[str, int, int, float, float]) -> dict[str, float]:
    """The mean wait under each policy, and what is counted; the piece is pool, interval, seed, scale and days."""
    name, interval_s, seed, scale, days = piece
    pool, records = generated(POOLS[name], HIGHEST_LOAD, scale=scale, seed=seed, days=days)
    rules = {policy: rules_of(MatchingParameters(portfolio=POLICIES[policy])) for policy in (*SINGLE, MAX_JOBS)}
    runs = {policy: replay(pool, records, of, interval_s=interval_s) for policy, of in rules.items()}
    runs[JOINT], window = replay_jointly(pool, records, rules[MAX_JOBS], interval_s=interval_s)
    return {
        **{policy: float((run.start_s - records.submit_s).mean()) for policy, run in runs.items()},
        **{f"count {name}": int(window.tally[at]) for name, at in COUNTS.items()},
        **{f"count {member}": int(count) for member, count in zip(PAPER_PORTFOLIO, window.matched, strict=True)},
        f"count {MAX_JOBS}": int(window.most[0]),
    }


def _above(of: Mapping[str, Samples], other: str) -> Interval | str:
    """By how many percent one waits longer with the joint choice; empty where a seed has no waits to compare with."""
    return interval(percent_more(of[JOINT], of[other])) if of[other].all() else ""


def joint_table(joint: Waits) -> DataTable:
    """Of each pool and interval: waits, and jobs per cycle in which a job waits, all in the same cycles."""
    rows = []
    for (pool, interval_s), of in joint.items():
        best = min(SINGLE, key=lambda policy: float(of[policy].mean()))
        most = max(SINGLE, key=lambda policy: float(of[f"count {policy}"].mean()))

        def a_cycle(name: str, of: Mapping[str, Samples] = of) -> float:
            return float((of[f"count {name}"] / of["count waiting"]).mean())

        rows.append(
            (
                interval_s,
                pool,
                float(of[MAX_JOBS].mean()),
                _above(of, MAX_JOBS),
                best,
                _above(of, best),
                most,
                *(f"{a_cycle(name):.4f}" for name in (most, MAX_JOBS, "jobs")),
                *(f"{100 * a_cycle(name):.3f}" for name in ("short", "better", "adopted", "unproven")),
            )
        )
    header = (
        "cycles every (s)",
        "pool",
        "wait with max-jobs (s)",
        "joint above max-jobs (%)",
        "least wait of the five",
        "joint above it (%)",
        "most jobs of the five",
        "its jobs a cycle",
        "max-jobs'",
        "joint's",
        "cycles that leave a job (%)",
        "a better choice (%)",
        "used (%)",
        "not proven (%)",
    )
    return DataTable("joint", header, rows)


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figure."""
    betas, size, joint_size = (QUICK_BETAS, QUICK_SIZE, QUICK_SIZE) if options.quick else (BETAS, SIZE, JOINT_SIZE)
    waits = waits_of(options, "lookahead", compare, betas, size)
    joint = waits_of(options, "joint", compare_jointly, INTERVALS_S, joint_size)
    about = {"betas": betas, "scale": size[0], "days": size[1], "joint_days": joint_size[1]}
    return results_of(options, waits, joint, about)


def results_of(options: Options, waits: Waits, joint: Waits, sizes: Mapping[str, Any]) -> PageResults:
    """Draw the figure; the results, from the waits with lookahead and from those with the joint choice."""
    known = above(waits)
    papers = {at: {name: of[name] for name in (JOINT, MAX_JOBS)} for at, of in joint.items() if at[1] == INTERVAL_S}
    bars = {
        way: {f"pool {name}": found_of(known[f"{name} {HIGHEST_LOAD}: {way} above {MAX_JOBS}"]) for name in POOLS}
        for way, lookahead in LOOKAHEADS.items()
        if lookahead.counting is MatchComparison.SUM
    }
    figures.bars(options.out, "lookahead", bars, ("", "mean wait above Max-Jobs' (%)"))
    about = {
        "pools": list(POOLS),
        **sizes,
        "short_s": SHORT_S,
        "long_s": LONG_S,
        "live_s": LIVE_INTERVAL_S,
        "window": WINDOW,
        "joint_seeds": len(next(iter(joint.values()))[JOINT]),
    }
    tables = [joint_table(joint), beside("lookahead", "beta", waits, LOOKAHEADS)]
    return PageResults({**known, **above(papers)}, tables, {**ABOUT, **about}, options.seeds)
