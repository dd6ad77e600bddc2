"""What decides in `combined`: each part by itself, the chosen ones together, and the same on other sizes and queues.

The design, written before the first run, is in docs/science/combination.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters
from slurm_sns.sim.pages.running import Piece
from slurm_sns.sim.traces.program_trace import TraceReader
from sns_reproductions import spread_n_share as sns
from sns_reproductions.combination.variants import PARTS, Variant, replayed, rules_of
from sns_reproductions.combination.workload import WIDEST, Scarce, SizedJob, programs, stream

Column = NDArray[np.float64]

#: Which resource is scarce.
SCARCE: Mapping[str, Scarce] = {
    "cores": Scarce(("ep", "hc", "wc"), much_memory=False),
    "memory": Scarce(("ep", "hc", "wc"), much_memory=True),
    "ways": Scarce(("cg", "bfs", "nw"), much_memory=False),
    "bandwidth": Scarce(("mg", "lu", "bw"), much_memory=False),
    "memory and bandwidth": Scarce(("mg", "lu", "bw"), much_memory=True),
}
LOADS = (0.7, 1.1)
INTERVALS_S = (1, 30)
#: With spreading, and at scale 1 alone.
SPREADS = (True, False)
NODES = 64
#: What is kept of a run: mean turnaround, 95th percentile of slowdown, mean turnaround of wide jobs.
MEASURES = ("turnaround", "p95 slowdown", "wide jobs")
FIRST_SEED = {"parts": 1_001, "final": 2_001}


def variants_of(part: str) -> Mapping[str, Variant]:
    """The variants of this part of the study."""
    return {"parts": PARTS}[part]


class Regime(NamedTuple):
    """A regime of the study."""

    scarce: str
    load: float
    spreads: bool
    interval_s: int


REGIMES = tuple(Regime(*each) for each in product(SCARCE, LOADS, SPREADS, INTERVALS_S))


def parameters_of(*, spreads: bool) -> SpreadingParameters:
    """Those of the paper's experiments, for jobs of any size."""
    scales = REPRODUCTION.scales if spreads else (1,)
    return replace(REPRODUCTION, one_profile_for_all_sizes=True, scales=scales, queue_depth=sns.QUEUE_DEPTH)


def run_stream(piece: Piece) -> dict[str, dict[str, list[float]]]:
    """One stream under all variants: by interval, then by variant, the measures."""
    part, scarce, load, spreads, nodes, seed = piece
    node_arrays, parameters = sns.cluster(int(nodes)), parameters_of(spreads=bool(spreads))
    jobs = stream(SCARCE[str(scarce)], float(load), node_arrays, int(seed))

    @cache
    def records_of(policy: str) -> Any:
        reader = TraceReader(node_arrays, policy, programs(), parameters)
        return reader.of_programs("the stream", jobs).records

    found: dict[str, dict[str, list[float]]] = {}
    for interval_s, (name, variant) in product(INTERVALS_S, variants_of(str(part)).items()):
        rules, records = rules_of(variant, parameters), records_of(variant.policy)
        run = replayed(node_arrays, records, variant, rules, interval_s=interval_s)
        turnaround_s = (run.end_s - run.records.submit_s).astype(np.float64)
        found.setdefault(str(interval_s), {})[name] = measured(jobs, records.identity, turnaround_s)
    return found


def measured(jobs: Iterable[SizedJob], identity: NDArray[np.int64], turnaround_s: Column) -> list[float]:
    """The measures of a run whose jobs have these numbers."""
    by_number = {job.identity: job for job in jobs}
    ran = [by_number[number] for number in identity.tolist()]
    slowdown = turnaround_s / [job.run_s for job in ran]
    wide = turnaround_s[[job.width == WIDEST for job in ran]]
    return [float(turnaround_s.mean()), float(np.quantile(slowdown, 0.95)), float(wide.mean()) if len(wide) else 0.0]
