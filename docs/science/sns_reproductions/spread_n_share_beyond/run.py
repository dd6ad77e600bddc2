"""The combined policy against SNS, CS and CE, and two ideas to let fewer jobs break their alpha.

The policies plan by profiles with a profiler's errors (module learning_cluster); jobs advance under contention by the
true ones. *headroom*: the policy plans as if nodes had a part of their bandwidth, since memory slows down well before
it is saturated. *margin*: jobs ask for ways as if alpha were higher than the one that the owner wants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.spreading_policies import CE
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import in_pairs
from slurm_sns.sim.pages.running import Options, PageResults, Piece
from slurm_sns.sim.profiling.learning_cluster import as_profiled
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.request import CONTENTION
from sns_reproductions import spread_n_share as sns

FEWEST_SEEDS = 200


def placed(
    error: float,
    seed: int,
    policy: str,
    *,
    is_profiled: bool = True,
    bandwidth: float = 1.0,
    alpha: float = sns.ALPHA,
    reservations: int | None = None,
    portfolio: Sequence[str] = (),
) -> tuple[PlacedRun, ...]:
    """The placements of one sequence under a policy.

    `is_profiled`: it plans by profiles with a profiler's errors. `bandwidth`: with this fraction of the nodes'
    bandwidth. `reservations`: at how many queue positions it withholds capacity; None: it never does. `portfolio`: all
    members of combined, empty for its own.
    """
    true, gbps = sns.shipped_programs(), round(bandwidth * sns.NODE.bandwidth_gbps)
    return sns.place(
        policy,
        CONTENTION,
        sns.drawn_jobs(seed),
        planned_nodes=sns.cluster(sns.PAPER_NODES, sns.NODE._replace(bandwidth_gbps=gbps)),
        programs=as_profiled(true, seed, error) if is_profiled else true,
        true_programs=true,
        parameters=replace(REPRODUCTION, alpha=alpha),
        matching=None if reservations is None else MatchingParameters(reservations=reservations),
        portfolio=tuple(portfolio) or None,
    )


def run_sequence(data: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
    """One sequence under every variant."""
    seed, found = int(piece[1]), {}
    for name, variant in data["variants"].items():
        placements = placed(data["error"], seed, **variant)
        found[name] = {**sns.kept(placements), "idle": 100 * idle_share(placements)}
    return found


def idle_share(placements: Sequence[PlacedRun]) -> float:
    """The share of all cores that are idle, on average over the time in which a job waits: fragmentation."""
    last_start_s = max(each.start_s for each in placements)
    if last_start_s == 0:
        return 0.0
    used = sum(
        each.alternative.nodes * each.alternative.demand.cores * (min(each.end_s, last_start_s) - each.start_s)
        for each in placements
    )
    return 1 - used / (last_start_s * sns.PAPER_NODES * sns.NODE.cores)


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the sequences and draw the figure."""
    seeds = range(1, 1 + (options.seeds if options.quick else max(options.seeds, FEWEST_SEEDS)))
    chosen = {"variants": data["variants"], "error": data["error"]}
    pieces = [("beyond", seed) for seed in seeds]
    results = list(options.results("beyond", partial(run_sequence, chosen), pieces).values())
    of = sns.Sequences.of(results)
    largest = np.array([[job.processes >= sns.NODE.cores for job in sns.drawn_jobs(seed)] for seed in seeds])
    counts = np.maximum(largest.sum(axis=1), 1)
    columns = {
        name: {
            **of.columns(name),
            "idle": np.array([each[name]["idle"] for each in results]),
            "largest_wait": 100 * (of.wait_s[name] * largest).sum(axis=1) / counts / of.turnaround_s(CE).mean(axis=1),
        }
        for name in data["variants"]
    }
    measures = data["measures"]
    bars = {
        measures[what]: {name.replace(", ", "\n"): columns[name][what] for name in columns if name != CE}
        for what in ("throughput", "broken")
    }
    figures.bars(options.out, "beyond", bars, ("", "%"))
    return PageResults(
        in_pairs(columns),
        (),
        {"alpha": sns.ALPHA, "samples": columns, "shown": sns.table("shown", "variant", columns, measures)},
        len(seeds),
    )
