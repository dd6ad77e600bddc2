"""What section 5 of the Max-Jobs paper says of the simulations over time, sentence by sentence, judged by our runs.

Where a sentence names no rival we compare with the heuristic that has the best mean over the seeds. A sentence that
gives a heuristic a rank has two rows: it is behind the one before it, and ahead of the others.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.reproduce.claims import Claim, interval, percent_more
from slurm_sns.sim.reproduce.netbatch.readings import (
    BEST_OR_THE_SAME,
    BETTER,
    MARKEDLY_BETTER,
    POOR,
    SLIGHTLY_BETTER,
    SLIGHTLY_WORSE,
    THE_SAME,
    WORSE,
    printed,
)
from slurm_sns.sim.reproduce.runs import FIRST_FIT, MAX_JOBS, ORIGINAL_LOAD

if TYPE_CHECKING:
    from slurm_sns.sim.reproduce.netbatch.load import Results

SECTION = "sec. 5"
MIX, BEST_MEMORY, WORSE_CORES = "mix-fit", "best-fit-memory", "worse-fit-cores"
#: By how many percent Mix-Fit improves each metric in A at the highest load, and its name in the paper.
PRINTED = {
    "mean_wait_s": (22, "waiting time"),
    "mean_slowdown": (23, "slowdown"),
    "mean_queue_length": (22, "queue length"),
}
#: "Up to 22% reduction in the average wait time of jobs" (abstract).
REDUCTION = 22


def claims_of(results: "Results") -> list[Claim]:
    """The claims on the pools and loads of these runs."""
    about = {"A": _pool_a, "B": _pool_b, "C": _pool_c, "D": _pool_d}
    pools = results.sweep.pools
    claims = [claim for name in pools for claim in about[name](results)]
    return [*claims, *_max_jobs(results), *_original_load(results), *_first_fit(results)]


def _others(*names: str) -> list[str]:
    return [policy for policy in PAPER_PORTFOLIO if policy not in names]


def _pool_a(results: "Results") -> list[Claim]:
    claims = []
    for metric, (change, named) in PRINTED.items():
        best = results.ranked("A", _others(MIX), metric)[0]
        found = results.more("A", MIX, best, metric)
        text = f'A, {named}: "Mix-Fit showed marked improvement over the other heuristics"'
        claims.append(MARKEDLY_BETTER.of(SECTION, text, f"% mix-fit above {best}", found))
        text = f'A: Mix-Fit "was able to reduce the {named} by {change}%"'
        rest = results.mean_of("A", _others(MIX), metric)
        of_mean = interval(percent_more(results.of("A", MIX, metric), rest))
        reading = printed(-change)
        claims.append(reading.of(SECTION, text, f"% mix-fit above {best}, the best of the others", found))
        claims.append(reading.of(SECTION, text, "% mix-fit above the mean of the others", of_mean))
    text = 'A: "the second-best heuristic on pool A, Best-Fit-Memory"'
    behind = results.more("A", BEST_MEMORY, MIX)
    claims.append(WORSE.of(SECTION, text, "% best-fit-memory above mix-fit", behind))
    claims.append(_ahead(results, "A", text, BEST_MEMORY, _others(MIX, BEST_MEMORY)))
    claims.append(_poor(results, "A", WORSE_CORES, 'A: Worse-Fit-Cores "appears to perform poorly"'))
    return claims


def _pool_b(results: "Results") -> list[Claim]:
    text, measure = 'B: Best-Fit-Memory "appears to slightly outperform Mix-Fit"', "% best-fit-memory above mix-fit"
    claims = []
    for beta in sorted({results.middle, results.highest}, reverse=True):
        found = results.more("B", BEST_MEMORY, MIX, beta=beta)
        claims.append(SLIGHTLY_BETTER.of(SECTION, text, f"{measure}, beta {beta:g}", found))
    if results.middle != results.highest:
        middle, highest = (
            percent_more(results.of("B", BEST_MEMORY, beta=beta), results.of("B", MIX, beta=beta))
            for beta in (results.middle, results.highest)
        )
        seeds = min(len(middle), len(highest))
        text = 'B: Best-Fit-Memory outperforms Mix-Fit "especially in the mid-range load"'
        more = f"points, beta {results.middle:g} - beta {results.highest:g}, of {measure}"
        claims.append(BETTER.of(SECTION, text, more, interval(middle[:seeds] - highest[:seeds])))
    claims.append(_poor(results, "B", WORSE_CORES, 'B: Worse-Fit-Cores "appears to perform poorly"'))
    return claims


def _pool_c(results: "Results") -> list[Claim]:
    return [_spread(results, "C", results.highest, '"all the heuristics achieved essentially the same performance"')]


def _pool_d(results: "Results") -> list[Claim]:
    text = 'D: "Mix-Fit had similar results to the second best heuristic, Worse-Fit-Cores"'
    alike = results.more("D", MIX, WORSE_CORES)
    second = 'D: Worse-Fit-Cores is "the second best heuristic"'
    behind = results.more("D", WORSE_CORES, MIX)
    return [
        THE_SAME.of(SECTION, text, "% mix-fit above worse-fit-cores", alike),
        WORSE.of(SECTION, second, "% worse-fit-cores above mix-fit", behind),
        _ahead(results, "D", second, WORSE_CORES, _others(MIX, WORSE_CORES)),
        _poor(results, "D", BEST_MEMORY, 'D: Best-Fit-Memory "performs relatively poorly"'),
    ]


def _max_jobs(results: "Results") -> list[Claim]:
    claims = []
    for name in results.sweep.pools:
        best = results.ranked(name, PAPER_PORTFOLIO)[0]
        found, measure = results.more(name, MAX_JOBS, best), f"% max-jobs above {best}"
        text = f'{name}: Max-Jobs "is the best scheme all around"'
        claims.append(BEST_OR_THE_SAME.of(SECTION, text, measure, found))
        if name == "A":
            text = 'A: Max-Jobs "is sometimes slightly inferior to the best individual heuristic"'
            claims.append(SLIGHTLY_WORSE.of(SECTION, text, measure, found))
        if name == "B":
            text = 'B: Max-Jobs "can be better than each individual heuristic"'
            claims.append(BETTER.of(SECTION, text, measure, found))
    return [*claims, *_reduction(results)]


def _reduction(results: "Results") -> list[Claim]:
    """The largest reduction of the mean wait at any load of any pool, against the best and against the mean of five."""
    against_best, against_mean = [], []
    for name in results.sweep.pools:
        for beta in results.betas:
            at = f"{name}, beta {beta:g}"
            ours = results.of(name, MAX_JOBS, beta=beta)
            best = results.ranked(name, PAPER_PORTFOLIO, beta=beta)[0]
            against_best.append((percent_more(ours, results.of(name, best, beta=beta)), f"{best}; {at}"))
            mean = results.mean_of(name, PAPER_PORTFOLIO, beta=beta)
            against_mean.append((percent_more(ours, mean), f"the mean of the five; {at}"))
    claims = []
    for found in (against_best, against_mean):
        values, rival = min(found, key=_mean)
        text = f'Max-Jobs "provides up to {REDUCTION}% reduction in the average wait time of jobs"'
        reading = printed(-REDUCTION)
        claims.append(reading.of("abstract", text, f"largest: % max-jobs above {rival}", interval(values)))
    return claims


def _original_load(results: "Results") -> list[Claim]:
    if ORIGINAL_LOAD not in results.betas:
        return []
    text = 'at the original load "all heuristics performed the same"'
    return [_spread(results, name, ORIGINAL_LOAD, text) for name in results.sweep.pools]


def _first_fit(results: "Results") -> list[Claim]:
    text = 'First-Fit "performs poorly in our environment"'
    return [_poor(results, name, FIRST_FIT, f"{name}: {text}", "sec. 2") for name in results.sweep.pools]


def _ahead(results: "Results", pool: str, text: str, policy: str, others: list[str]) -> Claim:
    """The policy waits less than the best of the others."""
    best = results.ranked(pool, others)[0]
    return BETTER.of(SECTION, text, f"% {policy} above {best}", results.more(pool, policy, best))


def _poor(results: "Results", pool: str, policy: str, text: str, where: str = SECTION) -> Claim:
    """The policy waits longer than the best heuristic, by more than "the same"."""
    best = results.ranked(pool, _others(policy))[0]
    return POOR.of(where, text, f"% {policy} above {best}", results.more(pool, policy, best))


def _spread(results: "Results", pool: str, beta: float, text: str) -> Claim:
    """The worst heuristic against the best one."""
    ranked = results.ranked(pool, PAPER_PORTFOLIO, beta=beta)
    found = results.more(pool, ranked[-1], ranked[0], beta=beta)
    return THE_SAME.of(SECTION, f"{pool}: {text}", f"% {ranked[-1]} above {ranked[0]}, beta {beta:g}", found)


def _mean(found: tuple[NDArray[np.float64], str]) -> float:
    return float(found[0].mean())
