"""Figure 20 of Spread-n-Share: Trinity's parallel jobs on 4,096, 8,192 and 32,768 nodes, CE against SNS.

Jobs advance by the authors' model: a job's run time is fixed at its start, neighbours change nothing. The profile of 16
processes serves every size; GAN and RNN count as compact. The prototype never spreads a job of more than 32 nodes that
takes more than half of the cluster under CE. The rule needs no code here: to spread such a job would take at least
twice its nodes, more than there are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_sns.policies.sns.parameters import REPRODUCTION
from slurm_sns.sim.engine.sns_policies import AUTHORS, CE, SNS
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, interval
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Drawing, Page
from slurm_sns.sim.reproduce.shared_data import shared_file
from slurm_sns.sim.reproduce.sns.runs import Column, Runs, cluster, place, shipped_programs
from slurm_sns.sim.workloads.sequences import population
from slurm_sns.sim.workloads.trinity import FILE, trinity_jobs

SIZES, RATIOS, PROCESSES = (4096, 8192, 32768), (0.9, 0.5), 16
PARAMETERS = replace(REPRODUCTION, one_profile_for_all_sizes=True, unspreadable_is_compact=True)
POLICIES = (CE, SNS)
WHATS = ("wait_s", "run_s", "turnaround_s")
#: "+15.7 % throughput", "run time about -8 %": within a quarter of that. "Slightly worse": by less than this percent.
NEAR, SLIGHTLY_PERCENT = 0.25, 10
#: "Waits are small": less than this percent of the turnaround under CE. "Waits fall much": by at least as much.
SMALL_PERCENT, MUCH_PERCENT = 5, 10

#: The page's explanation of the claims that do not hold.
WHY = (
    "On 32K nodes jobs hardly wait, so that the gain is that of the run times. It depends on the speedups at scales 2 "
    "to 8, most of which are assumed; the prototype's frequency factors then reduce them. It is open why our waits "
    "grow on 4K nodes at ratio 0.5, where the paper's fall. Possible reasons: our trace has other jobs than the "
    "paper's, and a job that is spread early keeps wide jobs waiting."
)

#: (nodes, ratio) -> policy -> wait, run or turnaround -> mean seconds, by seed.
Means = Mapping[tuple[int, float], Mapping[str, Mapping[str, Column]]]


def run(piece: tuple[int, float, int]) -> dict[str, Any]:
    """One random assignment of programs to the jobs: mean wait, run and turnaround under CE and SNS."""
    nodes, ratio, seed = piece
    members = {each.program: each for each in population(shipped_programs()) if each.processes == PROCESSES}
    jobs = trinity_jobs(shared_file("traces", FILE), members, ratio, seed)
    found: dict[str, Any] = {"jobs": len(jobs)}
    for policy in POLICIES:
        runs = Runs.of(place(policy, AUTHORS, jobs, node_arrays=cluster(nodes), parameters=PARAMETERS))
        found[policy] = {what: float(getattr(runs, what).mean()) for what in WHATS}
    return found


def reproduce(options: Options) -> Page:
    """Run the simulations, draw the figure and return the page."""
    sizes = SIZES[-1:] if options.quick else SIZES
    cells = [(nodes, ratio) for nodes in sizes for ratio in RATIOS]
    pieces = [(*cell, seed) for cell in cells for seed in range(1, options.seeds + 1)]
    results = options.results("scale", run, pieces)
    means: Means = {
        cell: {
            policy: {
                what: np.array(
                    [found[policy][what] for piece, found in zip(pieces, results, strict=True) if piece[:2] == cell]
                )
                for what in WHATS
            }
            for policy in POLICIES
        }
        for cell in cells
    }
    bars = {
        f"{policy.upper()} {what.removesuffix('_s')}": {
            f"{nodes // 1024}K, {ratio:g}": interval(100 * means[nodes, ratio][policy][what] / _ce(means, nodes, ratio))
            for nodes, ratio in cells
        }
        for policy in POLICIES
        for what in ("wait_s", "run_s")
    }
    figures.bars(options.out, "figure-20", bars, ("nodes, scaling ratio", "% of CE's mean turnaround"))
    rows = [
        (nodes, ratio, policy, what, *vars(interval(means[nodes, ratio][policy][what])).values())
        for nodes, ratio in cells
        for policy in POLICIES
        for what in WHATS
    ]
    made = (
        f"`sns reproduce sns-scale`: {results[0]['jobs']:,} parallel jobs of Trinity (each on more than one and at "
        "most 4,096 nodes; the paper has 7,044 jobs) on clusters whose nodes have 28 cores, 20 cache ways and 118 "
        "GB/s. Each job is a random test program, a scaling one with probability 0.9 or 0.5; there are "
        f"{options.seeds} draws of programs for each cluster and probability. Run times follow the authors' model. In "
        "the claims, 4K, 8K and 32K are the numbers of nodes, 0.9 and 0.5 the probabilities."
    )
    return Page(
        title="Spread-n-Share on large clusters (figure 20)",
        made=[made],
        claims=[] if options.quick else _claims(means),
        drawings=[Drawing("figure-20", "Figure 20: mean wait and run time, over CE's mean turnaround.")],
        numbers=[DataTable("figure-20", ("nodes", "ratio", "policy", "what", "mean", "low", "high"), rows)],
        remarks=[WHY],
        seeds=options.seeds,
    )


def _ce(means: Means, nodes: int, ratio: float, what: str = "turnaround_s") -> Column:
    return means[nodes, ratio][CE][what]


def _change(means: Means, nodes: int, ratio: float, what: str) -> Column:
    """SNS's mean minus CE's, in percent of CE's mean turnaround."""
    difference = means[nodes, ratio][SNS][what] - _ce(means, nodes, ratio, what)
    return 100 * difference / _ce(means, nodes, ratio)


def _gain(means: Means, nodes: int, ratio: float) -> Column:
    """By how many percent the throughput under SNS exceeds CE's."""
    return 100 * (_ce(means, nodes, ratio) / means[nodes, ratio][SNS]["turnaround_s"] - 1)


def _claims(means: Means) -> list[Claim]:
    small, middle, large = SIZES
    high, low = RATIOS

    def claim(text: str, measure: str, values: Column, **bounds: float) -> Claim:
        return Claim("fig. 20", text, measure, interval(values), **bounds)

    waits = 100 * _ce(means, small, high, "wait_s") / _ce(means, small, high)
    run_less = 100 * (1 - means[small, low][SNS]["run_s"] / _ce(means, small, low, "run_s"))
    wait_less = 100 * (1 - means[small, low][SNS]["wait_s"] / _ce(means, small, low, "wait_s"))
    near = {"low": (1 - NEAR) * 15.7, "high": (1 + NEAR) * 15.7}
    claims = [
        claim("4K, 0.9: waiting dominates", "wait under CE, % of turnaround", waits, low=50),
        claim(
            "4K, 0.9: SNS is slightly worse",
            "turnaround, % over CE's",
            _change(means, small, high, "turnaround_s"),
            low=0,
            high=SLIGHTLY_PERCENT,
        ),
        claim(
            "8K, 0.9: the gain in run time far outweighs longer waits",
            "turnaround, % over CE's",
            _change(means, middle, high, "turnaround_s"),
            high=0,
        ),
        claim("32K, 0.9: +15.7 % throughput", "% over CE's", _gain(means, large, high), **near),
        claim("4K, 0.5: clearly better", "throughput, % over CE's", _gain(means, small, low), low=0),
        claim("4K, 0.5: run time about -8 %", "% less", run_less, low=(1 - NEAR) * 8, high=(1 + NEAR) * 8),
        claim("4K, 0.5: waits fall much", "% less", wait_less, low=MUCH_PERCENT),
    ]
    for nodes in (middle, large):
        short = 100 * _ce(means, nodes, low, "wait_s") / _ce(means, nodes, low)
        size = f"{nodes // 1024}K"
        claims.append(
            claim(f"{size}: waits are small", "0.5: wait under CE, % of turnaround", short, high=SMALL_PERCENT)
        )
        more = _gain(means, nodes, high) - _gain(means, nodes, low)
        claims.append(claim(f"{size}: the gain is larger at 0.9 than at 0.5", "points of throughput", more, low=0))
    return claims
