"""Run the original load as generated and with more or longer bursts, and the betas of equal queueing.

The papers print neither arrivals nor the lengths of bursts. Two things they do say decide on them. At the original
load (beta 1) "all heuristics performed the same": a generator is accepted only if they do. And the load ranges in the
notes of the authors' simulator differ from pool to pool, so that one beta for all pools means another queue in each:
for every pool there are betas at which it queues as long as the others (`CALIBRATED_BETAS`), beside those of the
paper's figures.

Both were chosen by these criteria alone, on seeds that no page uses.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import AUTHORS_BETAS, BURSTS, CALIBRATED_BETAS, WAITS_S
from sns_reproductions.netbatch import ABOUT, comparisons, finished
from sns_reproductions.netbatch_sweeps import MAX_JOBS, ORIGINAL_LOAD, Sweep, full_size, run_sweeps

#: Seeds of the generators with more or longer bursts, which were not chosen.
REFUSED_SEEDS = 3
#: The pools of these: in C and D hardly any job waits at the original load with any of them.
REFUSED_POOLS = ("A", "B")


class Sweeps(NamedTuple):
    """The original load by generator, and the calibrated betas."""

    original: Mapping[str, Sweep]
    calibrated: Sweep


def sweeps_of(options: Options) -> Sweeps:
    """Every waiting job is looked at, so that no limit of the cycle hides what the workload does."""
    whole = partial(full_size, options, queue_depth=None, reservations=1)
    chosen = whole(betas=(ORIGINAL_LOAD,), policies=PAPER_PORTFOLIO)
    few = replace(chosen, seeds=min(options.seeds, REFUSED_SEEDS), pools=REFUSED_POOLS)
    refused = {variant: replace(few, variant=variant) for variant in BURSTS}
    return Sweeps(
        {chosen.variant: chosen, **refused}, whole(betas=tuple(WAITS_S), policies=(MAX_JOBS,), calibrated=True)
    )


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    sweeps = sweeps_of(options)
    run_sweeps(options, [*sweeps.original.values(), sweeps.calibrated])
    return results_of(sweeps)


def results_of(sweeps: Sweeps) -> PageResults:
    """The results, from the finished runs."""
    chosen, *_ = sweeps.original.values()
    original = finished(sweeps.original, ORIGINAL_LOAD)
    # A level of a pool counts also where other levels or pools are not finished.
    by_level = {beta: finished({"": replace(sweeps.calibrated, betas=(beta,))}, beta) for beta in WAITS_S}
    queued = [(beta, of[""], pool) for beta, of in by_level.items() if of for pool in of[""].pools]
    waited: dict[str, Quantity] = {
        f"{pool} at {beta}": each.of(pool, MAX_JOBS) / WAITS_S[beta] for beta, each, pool in queued
    }
    return PageResults(
        {**comparisons(each for each in original.values() if each.sweep == chosen), **waited},
        (),
        {
            **ABOUT,
            "original": list(original.values()),
            "some": chosen,
            "refused_seeds": min(chosen.seeds, REFUSED_SEEDS),
            "results": [each for each in original.values() if each.sweep == chosen],
            "queued": queued,
            "calibrated": list(finished({"": sweeps.calibrated}).values()),
            "betas_by_pool": CALIBRATED_BETAS,
            "authors_betas": AUTHORS_BETAS,
        },
        min(chosen.complete(ORIGINAL_LOAD, pool) for pool in chosen.pools),
    )
