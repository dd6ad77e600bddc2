"""Beyond the paper: the combined policy against SNS, CS and CE, and two ideas to let fewer jobs break their alpha.

The policies plan by profiles with a profiler's errors (module sampled_profiles), and the jobs advance under contention
by the true profiles. For comparison, SNS and combined also plan by the true profiles. The two ideas are tested
alone and together:

*headroom*: the policy plans as if nodes had 80 % of their bandwidth. Memory slows down well before it is saturated: at
80 % of its bandwidth an access takes 1.3 times as long as on an idle memory, at 95 % twice as long.
*margin*: jobs ask for ways as if alpha were 0.95, halfway between the alpha that the owner wants and 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristic_names import IDLEST
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CONTENTION, CS, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.profiling.sampled_profiles import as_profiled
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.spread_n_share.runs import NODE, PAPER_NODES, Runs, geometric_mean, place, shipped_programs
from slurm_sns.sim.reproduce.spread_n_share.statistics import ALPHA, ROUNDING
from slurm_sns.sim.workloads.sequences import jobs_of, population, sequence

#: The standard deviation of a sampled point's error. Assumed: phases, for which the paper has no number.
SPREAD = 0.05
HEADROOM, MARGIN_ALPHA = 0.8, 0.95
FEWEST_SEEDS = 200


@dataclass(frozen=True)
class PolicyVariant:
    """A policy and how it plans.

    `is_profiled`: by profiles with a profiler's errors. `bandwidth`: with this fraction of the nodes' bandwidth.
    `reservations`: at how many queue positions capacity is withheld; None for a policy that never withholds any.
    `portfolio`: all members of combined, None for its own.
    """

    policy: str
    is_profiled: bool = True
    bandwidth: float = 1.0
    alpha: float = ALPHA
    reservations: int | None = None
    portfolio: tuple[str, ...] | None = None

    def placements(self, jobs: Sequence[Any], seed: int) -> tuple[PlacedRun, ...]:
        """The placements of the jobs of one sequence."""
        true = shipped_programs()
        return place(
            self.policy,
            CONTENTION,
            jobs,
            programs=as_profiled(true, seed, SPREAD) if self.is_profiled else true,
            true_programs=true,
            parameters=replace(REPRODUCTION, alpha=self.alpha),
            planned_gbps=round(self.bandwidth * NODE.bandwidth_gbps),
            matching=None if self.reservations is None else MatchingParameters(reservations=self.reservations),
            portfolio=self.portfolio,
        )


def _withholding(*, is_profiled: bool) -> PolicyVariant:
    """SNS that withholds capacity as combined does by default: with this one member combined is SNS."""
    return PolicyVariant(COMBINED, is_profiled, reservations=1, portfolio=(IDLEST,))


SNS_1, COMBINED_1 = "sns, withholding", "combined, withholding"
TRUE = ", true profiles"
VARIANTS: Mapping[str, PolicyVariant] = {
    "ce": PolicyVariant(CE),
    "cs": PolicyVariant(CS),
    "sns" + TRUE: PolicyVariant(SNS, is_profiled=False),
    "combined" + TRUE: PolicyVariant(COMBINED, is_profiled=False, reservations=0),
    SNS_1 + TRUE: _withholding(is_profiled=False),
    COMBINED_1 + TRUE: PolicyVariant(COMBINED, is_profiled=False, reservations=1),
    "sns": PolicyVariant(SNS),
    "combined": PolicyVariant(COMBINED, reservations=0),
    SNS_1: _withholding(is_profiled=True),
    COMBINED_1: PolicyVariant(COMBINED, reservations=1),
    "sns, headroom": PolicyVariant(SNS, bandwidth=HEADROOM),
    "sns, margin": PolicyVariant(SNS, alpha=MARGIN_ALPHA),
    "sns, both": PolicyVariant(SNS, bandwidth=HEADROOM, alpha=MARGIN_ALPHA),
    "combined, both": PolicyVariant(COMBINED, bandwidth=HEADROOM, alpha=MARGIN_ALPHA, reservations=0),
}
#: What is compared: policies that both withhold capacity, or both do not.
PAIRS = (
    ("combined", SNS),
    (COMBINED_1, SNS_1),
    ("combined" + TRUE, SNS + TRUE),
    (COMBINED_1 + TRUE, SNS_1 + TRUE),
    ("combined", CS),
)
#: The page's summary of the results.
WHY = (
    "Compared like with like, combined has 1.5 to 1.7 points more throughput than SNS, with true and with measured "
    "profiles, whether or not both withhold capacity, and leaves fewer cores idle. To withhold capacity costs either "
    "policy 1.6 to 2 points, so that combined with its default setting is as good as SNS, which never withholds. "
    "Combined does not break fewer alphas. To ask for more cache ways than the owner's alpha needs (*margin*) lowers "
    "the share of jobs that break their alpha from 7.2 to 1.5 %, but costs a quarter of the gain in throughput. To "
    "keep bandwidth free (*headroom*) makes jobs faster, but hardly changes the number of broken alphas."
)
#: What is measured for each sequence and variant, with its label; all in percent, except `run`, a ratio.
MEASURES = {
    "throughput": "throughput over CE's, %",
    "run": "run time over CE's (geometric mean)",
    "broken": "jobs that break alpha, %",
    "broken_by": "by how much, mean over all jobs, %",
    "idle": "cores idle while a job waits, %",
    "largest_wait": "wait of the 28-core jobs over CE's mean turnaround, %",
}


def run(piece: tuple[str, int]) -> dict[str, dict[str, float]]:
    """The measures of one sequence under every variant."""
    _, seed = piece
    jobs = jobs_of(sequence(population(shipped_programs()), seed))
    placed = {name: variant.placements(jobs, seed) for name, variant in VARIANTS.items()}
    ce = Runs.of(placed["ce"])
    return {name: measures(placements, ce) for name, placements in placed.items()}


def measures(placements: Sequence[PlacedRun], ce: Runs) -> dict[str, float]:
    """The measures of one sequence, relative to its runs under CE."""
    runs = Runs.of(placements)
    ratio = runs.run_s / ce.run_s
    over = np.maximum(ratio * ALPHA - 1, 0.0)
    largest = np.array([each.alternative.nodes * each.alternative.demand.cores for each in placements]) >= NODE.cores
    return {
        "throughput": 100 * float(ce.turnaround_s.mean() / runs.turnaround_s.mean() - 1),
        "run": geometric_mean(ratio),
        "broken": 100 * float((over > ROUNDING).mean()),
        "broken_by": 100 * float(over.mean()),
        "idle": 100 * idle_share(placements),
        "largest_wait": 100 * float(runs.wait_s[largest].mean() / ce.turnaround_s.mean()) if largest.any() else 0.0,
    }


def idle_share(placements: Sequence[PlacedRun]) -> float:
    """The share of all cores that are idle, on average over the time in which a job waits: fragmentation."""
    last_start_s = max(each.start_s for each in placements)
    if last_start_s == 0:
        return 0.0
    used = sum(
        each.alternative.nodes * each.alternative.demand.cores * (min(each.end_s, last_start_s) - each.start_s)
        for each in placements
    )
    return 1 - used / (last_start_s * PAPER_NODES * NODE.cores)


def reproduce(options: Options) -> Page:
    """Run the sequences, draw the figure and return the page."""
    seeds = options.seeds if options.quick else max(options.seeds, FEWEST_SEEDS)
    results = options.results("beyond", run, [("beyond", seed) for seed in range(1, seeds + 1)])
    found = {
        name: {measure: np.array([each[name][measure] for each in results]) for measure in MEASURES}
        for name in VARIANTS
    }
    others = [name for name in VARIANTS if name != "ce"]
    figures.bars(
        options.out,
        "beyond",
        {
            label: {name.replace(", ", "\n"): interval(found[name][measure]) for name in others}
            for measure, label in MEASURES.items()
            if measure in ("throughput", "broken")
        },
        ("", "%"),
    )
    rows = [(name, *(interval(found[name][measure]) for measure in MEASURES)) for name in VARIANTS]
    numbers = [
        (name, measure, *vars(interval(values)).values())
        for name, of in found.items()
        for measure, values in of.items()
    ]
    made = (
        f"`sns reproduce spread-n-share-beyond`: {seeds} random sequences of 20 jobs on 8 nodes, as in "
        "[spread-n-share-throughput](../spread-n-share-throughput/README.md), under the contention model. Unless a "
        "variant is named *true "
        "profiles*, its policy plans by profiles as a profiler measures them: sampled at 2, 4, 8 and 20 cache ways, "
        f"each point multiplied by a random factor with a standard deviation of {100 * SPREAD:g} % (assumed). Jobs "
        f"always advance by the true profiles. *headroom*: the policy plans as if nodes had {100 * HEADROOM:g} % of "
        f"their bandwidth. *margin*: the policy plans with alpha {MARGIN_ALPHA:g}, but jobs are judged by alpha "
        f"{ALPHA:g}. *both*: headroom and margin. *withholding*: capacity is withheld for the first job that finds no "
        "place, as combined does by default and SNS never does; without the word neither policy withholds any. (SNS "
        "that withholds is combined with the one member `idlest`.) The claims are ours, not the paper's."
    )
    return Page(
        title="Beyond the paper: the combined policy, and fewer broken alphas",
        made=[made],
        claims=_claims(found),
        drawings=[SavedFigure("beyond", "Throughput, and the share of jobs that break their alpha.")],
        shown=DataTable("variants", ("variant", *MEASURES.values()), rows),
        numbers=[DataTable("variants", ("variant", "measure", "mean", "low", "high"), numbers)],
        remarks=[WHY],
        seeds=seeds,
    )


def _claims(found: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Our own claims, judged by the same rule: each compares two variants in pairs, on the same sequences."""

    def compare(text: str, one: str, other: str, measure: str, **bounds: Any) -> Claim:
        difference = interval(found[one][measure] - found[other][measure])
        return Claim("ours", text, f"{one} - {other}: {MEASURES[measure]}", difference, **bounds)

    claims = []
    for one, other in PAIRS:
        claims.append(compare(f"{one} has more throughput than {other}", one, other, "throughput", low=0))
        claims.append(compare(f"{one} runs jobs faster than {other}", one, other, "run", high=0))
        claims.append(compare(f"{one} breaks fewer alphas than {other}", one, other, "broken", high=0))
        claims.append(compare(f"{one} leaves fewer cores idle than {other}", one, other, "idle", high=0))
        claims.append(compare(f"{one}: the largest jobs wait less", one, other, "largest_wait", high=0))
    for idea in ("headroom", "margin", "both"):
        claims.append(compare(f"{idea}: fewer jobs break their alpha", f"sns, {idea}", SNS, "broken", high=0))
        claims.append(compare(f"{idea}: at no cost in throughput", f"sns, {idea}", SNS, "throughput", low=-1))
    return claims
