"""What section 5 of the Max-Jobs paper says of the simulations over time, sentence by sentence, judged by our runs.

Where a sentence names no rival we compare with the heuristic that has the best mean over the seeds. Where it can be
read in two ways, each reading is a claim of its own, which its text names. A sentence that gives a heuristic a rank is
one claim of two parts: the heuristic is behind the one before it, and ahead of the others.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.judge import Claim, interval, joint, percent_more
from slurm_sns.sim.reproduce.netbatch.readings import (
    BEST_OR_THE_SAME,
    BETTER,
    LITTLE_DIFFERENCE,
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
#: In the paper one sentence on the three metrics, whose rival it does not name.
REDUCED = (
    'Mix-Fit "was able to reduce the waiting time by 22%, slowdown by 23%, and queue length by 22% under the highest '
    'loads simulated"'
)
#: "Up to 22% reduction in the average wait time of jobs" (abstract).
REDUCTION = 22


def claims_of(results: "Results") -> list[Claim]:
    """The claims on the pools and loads of these runs."""
    about = {"A": _pool_a, "B": _pool_b, "C": _pool_c, "D": _pool_d}
    pools = results.sweep.pools
    claims = [claim for name in pools for claim in [*about[name](results), *_every_pool(results, name)]]
    return [*claims, *_max_jobs(results), *_original_load(results), *_first_fit(results)]


def _others(*names: str) -> list[str]:
    return [policy for policy in PAPER_PORTFOLIO if policy not in names]


def _every_pool(results: "Results", pool: str) -> list[Claim]:
    best = results.ranked(pool, _others(MIX))[0]
    text = f'{pool}: Mix-Fit "usually improves upon the single-resource heuristics"'
    better = BETTER.of("abstract", text, f"% mix-fit above {best}", results.more(pool, MIX, best))
    of_wait, *of_rest = (
        (percent_more(results.of(pool, MIX, metric), results.of(pool, best, metric)), named)
        for metric, (_, named) in PRINTED.items()
    )
    text = f'{pool}: "the results are similar between the metrics"'
    alike = [
        LITTLE_DIFFERENCE.of(
            SECTION,
            text,
            f"points, % mix-fit above {best}, of the {named} - of the {of_wait[1]}",
            interval(percent - of_wait[0]),
        )
        for percent, named in of_rest
    ]
    return [better, joint(alike[0].text, *alike)]


def _pool_a(results: "Results") -> list[Claim]:
    claims: list[Claim] = []
    for metric, (change, named) in PRINTED.items():
        best = results.ranked("A", _others(MIX), metric)[0]
        found = results.more("A", MIX, best, metric)
        text = f'A, {named}: "Mix-Fit showed marked improvement over the other heuristics"'
        claims.append(MARKEDLY_BETTER.of(SECTION, text, f"% mix-fit above {best}", found))
        rest = results.mean_of("A", _others(MIX), metric)
        of_mean = interval(percent_more(results.of("A", MIX, metric), rest))
        for rival, measured, value in (
            ("the best of the others", best, found),
            ("the mean of the others", "the mean of the others", of_mean),
        ):
            text = f"A, {named}, against {rival}: {REDUCED}"
            claims.append(printed(-change).of(SECTION, text, f"% mix-fit above {measured}", value))
    text = 'A: "the second-best heuristic on pool A, Best-Fit-Memory"'
    claims.append(_second(results, "A", text, MIX, BEST_MEMORY))
    claims.append(_poor(results, "A", WORSE_CORES, 'A: Worse-Fit-Cores "appears to perform poorly"'))
    return claims


def _pool_b(results: "Results") -> list[Claim]:
    quotation, measure = 'Best-Fit-Memory "appears to slightly outperform Mix-Fit"', "% best-fit-memory above mix-fit"
    claims: list[Claim] = []
    loads = {results.middle: "at mid load", results.highest: "at the highest load"}
    for beta, named in sorted(loads.items(), reverse=True):
        found = results.more("B", BEST_MEMORY, MIX, beta=beta)
        text = f"B, {named}: {quotation}"
        claims.append(SLIGHTLY_BETTER.of(SECTION, text, f"{measure}, {results.told_load(beta)}", found))
    if results.middle != results.highest:
        middle, highest = (
            percent_more(results.of("B", BEST_MEMORY, beta=beta), results.of("B", MIX, beta=beta))
            for beta in (results.middle, results.highest)
        )
        seeds = min(len(middle), len(highest))
        text = 'B: Best-Fit-Memory outperforms Mix-Fit "especially in the mid-range load"'
        at_middle, at_highest = (results.told_load(beta) for beta in (results.middle, results.highest))
        more = f"points of the same, {at_middle} - {at_highest}"
        claims.append(
            joint(
                f"{text} ({BETTER})",
                BETTER.of(SECTION, text, f"{measure}, {at_middle}", interval(middle)),
                BETTER.of(SECTION, text, more, interval(middle[:seeds] - highest[:seeds])),
            )
        )
    claims.append(_poor(results, "B", WORSE_CORES, 'B: Worse-Fit-Cores "appears to perform poorly"'))
    return claims


def _pool_c(results: "Results") -> list[Claim]:
    return [_spread(results, "C", results.highest, '"all the heuristics achieved essentially the same performance"')]


def _pool_d(results: "Results") -> list[Claim]:
    text = 'D: "Mix-Fit had similar results to the second best heuristic, Worse-Fit-Cores"'
    alike = results.more("D", MIX, WORSE_CORES)
    second = 'D: Worse-Fit-Cores is "the second best heuristic"'
    return [
        THE_SAME.of(SECTION, text, "% mix-fit above worse-fit-cores", alike),
        _second(results, "D", second, MIX, WORSE_CORES),
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
            at = f"{name}, {results.told_load(beta)}"
            ours = results.of(name, MAX_JOBS, beta=beta)
            best = results.ranked(name, PAPER_PORTFOLIO, beta=beta)[0]
            against_best.append((percent_more(ours, results.of(name, best, beta=beta)), f"{best}; {at}"))
            mean = results.mean_of(name, PAPER_PORTFOLIO, beta=beta)
            against_mean.append((percent_more(ours, mean), f"the mean of the five; {at}"))
    claims = []
    for rivals, found in (("the best of the five", against_best), ("the mean of the five", against_mean)):
        values, rival = min(found, key=_mean)
        text = f'against {rivals}: Max-Jobs "provides up to {REDUCTION}% reduction in the average wait time of jobs"'
        reading = printed(-REDUCTION)
        claims.append(reading.of("abstract", text, f"largest: % max-jobs above {rival}", interval(values)))
    return claims


def _original_load(results: "Results") -> list[Claim]:
    """At full size the generator was accepted because this holds, on other seeds: there it is an input."""
    if ORIGINAL_LOAD not in results.betas:
        return []
    text = 'at the original load "all heuristics performed the same"'
    claims = [_spread(results, name, ORIGINAL_LOAD, text) for name in results.sweep.pools]
    if results.sweep.scale != 1:
        return claims
    return [replace(each, is_input=True, is_difference=False) for each in claims]


def _first_fit(results: "Results") -> list[Claim]:
    text = 'First-Fit "performs poorly in our environment"'
    return [_poor(results, name, FIRST_FIT, f"{name}: {text}", "sec. 2") for name in results.sweep.pools]


def _second(results: "Results", pool: str, text: str, first: str, second: str) -> Claim:
    """The policy waits longer than the first, and less than the best of the others."""
    third = results.ranked(pool, _others(first, second))[0]
    return joint(
        f"{text} ({WORSE}; {BETTER})",
        WORSE.of(SECTION, text, f"% {second} above {first}", results.more(pool, second, first)),
        BETTER.of(SECTION, text, f"% {second} above {third}", results.more(pool, second, third)),
    )


def _poor(results: "Results", pool: str, policy: str, text: str, where: str = SECTION) -> Claim:
    """The policy waits longer than the best heuristic, by more than "the same"."""
    best = results.ranked(pool, _others(policy))[0]
    return POOR.of(where, text, f"% {policy} above {best}", results.more(pool, policy, best))


def _spread(results: "Results", pool: str, beta: float, text: str) -> Claim:
    """The worst heuristic against the best one."""
    ranked = results.ranked(pool, PAPER_PORTFOLIO, beta=beta)
    found = results.more(pool, ranked[-1], ranked[0], beta=beta)
    measure = f"% {ranked[-1]} above {ranked[0]}, {results.told_load(beta)}"
    return THE_SAME.of(SECTION, f"{pool}: {text}", measure, found)


def _mean(found: tuple[NDArray[np.float64], str]) -> float:
    return float(found[0].mean())
