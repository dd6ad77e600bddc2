"""The pieces of work of the study: one stream, case, pool or log under all that is compared on it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.max_jobs import rules_of as rules_without_profiles
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.engine.spreading_policies import progress_of
from slurm_sns.sim.pages.running import Piece
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.request import CONTENTION
from slurm_sns.sim.traces.program_trace import TraceReader
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions import spread_n_share as sns
from sns_reproductions.combination.small_cases import run_case
from sns_reproductions.combination.variants import (
    AGE_LIMIT_S,
    CHOICES,
    PARTS,
    WITHHOLDING,
    Variant,
    final_variants,
    replayed,
    rules_of,
)
from sns_reproductions.combination.workload import WIDEST, Scarce, SizedJob, programs, stream
from sns_reproductions.netbatch_sweeps import generated
from sns_reproductions.netbatch_traces.run import LOGS, by_week, first, natural_load

Column = NDArray[np.float64]
#: By variant: the measures of a run.
Measured = Mapping[str, Sequence[float]]

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
NODES, OTHER_NODES, OTHER_SEEDS = 64, (48, 256), 20
#: The nodes of the run that checks one large cluster, and its regime.
LARGE = ("memory and bandwidth", 1.1, True, 8_192)
CONTENDED_NODES, CONTENDED_INTERVAL_S = 48, 30
FIRST_SEED = {"parts": 1_001, "final": 2_001}
CASES = 500
#: What is kept of a run: mean turnaround, 95th percentile of slowdown, mean turnaround of wide jobs; under contention
#: also the percentage of jobs that break their alpha.
TURNAROUND, P95, WIDE, BROKEN = range(4)
#: Pools without profiles: their size, days and beta, and the load of the logs in percent.
SCALE, DAYS, BETA, POOL_SEEDS, LOG_LOAD = 0.05, 4, 0.55, 10, 80
#: What is compared on queues without profiles.
WITHOUT_PROFILES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "ties by record": {"ties": "record"},
    "ties to mix-fit": {"ties": "own"},
    "ties by chance": {"ties": "random"},
    **{name: of for name, of in WITHHOLDING.items() if name != "one withheld"},
}


class Regime(NamedTuple):
    """A regime of the study."""

    scarce: str
    load: float
    spreads: bool
    interval_s: int

    def __str__(self) -> str:
        return f"{self.scarce}, load {self.load}, {'spread' if self.spreads else 'scale 1'}, {self.interval_s} s"


REGIMES = tuple(Regime(*each) for each in product(SCARCE, LOADS, SPREADS, INTERVALS_S))


def parameters_of(*, spreads: bool) -> SpreadingParameters:
    """Those of the paper's experiments, for jobs of any size."""
    scales = REPRODUCTION.scales if spreads else (1,)
    return replace(REPRODUCTION, one_profile_for_all_sizes=True, scales=scales, queue_depth=sns.QUEUE_DEPTH)


def run_parts(piece: Piece) -> Mapping[str, Measured]:
    """One stream under each variant of the parts, by interval."""
    return _run_stream(PARTS, piece)


def run_final(piece: Piece) -> Mapping[str, Measured]:
    """One stream under each variant of the final comparison, by interval; the piece begins with what was chosen."""
    variants, rest = _variants_of(piece)
    return _run_stream(variants, rest)


def _variants_of(piece: Piece) -> tuple[Mapping[str, Variant], Piece]:
    """The variants of the final comparison, by what the piece says was chosen and was safe; the rest of the piece."""
    chosen, safe, rest = piece[: len(CHOICES)], str(piece[len(CHOICES)]), piece[len(CHOICES) + 1 :]
    return final_variants(dict(zip(CHOICES, map(str, chosen), strict=True)), filter(None, safe.split("+"))), rest


def _run_stream(variants: Mapping[str, Variant], piece: Piece) -> Mapping[str, Measured]:
    _, scarce, load, spreads, nodes, seed = piece
    node_arrays, parameters = sns.cluster(int(nodes)), parameters_of(spreads=bool(spreads))
    jobs = stream(SCARCE[str(scarce)], float(load), node_arrays, int(seed))
    planned = cache(lambda policy: TraceReader(node_arrays, policy, programs(), parameters).of_programs("it", jobs))
    found: dict[str, dict[str, list[float]]] = {}
    for interval_s, (name, variant) in product(INTERVALS_S, variants.items()):
        rules, records = rules_of(variant, parameters), planned(variant.policy).records
        run = replayed(node_arrays, records, variant, rules, interval_s=interval_s)
        turnaround_s = (run.end_s - records.submit_s).astype(np.float64)
        found.setdefault(str(interval_s), {})[name] = _measured(jobs, records.identity, turnaround_s)
    return found


def _measured(jobs: Iterable[SizedJob], identity: NDArray[np.integer], turnaround_s: Column) -> list[float]:
    """The measures of a run whose jobs have these numbers."""
    by_number = {job.identity: job for job in jobs}
    ran = [by_number[number] for number in identity.tolist()]
    slowdown = turnaround_s / [job.run_s for job in ran]
    wide = turnaround_s[[job.width == WIDEST for job in ran]]
    return [float(turnaround_s.mean()), float(np.quantile(slowdown, 0.95)), float(wide.mean()) if len(wide) else 0.0]


def run_contended(piece: Piece) -> Measured:
    """One stream under the contention model: the variants of the final comparison without objectives of their own."""
    variants, (scarce, load, seed) = _variants_of(piece)
    node_arrays, parameters = sns.cluster(CONTENDED_NODES), parameters_of(spreads=True)
    jobs = stream(SCARCE[str(scarce)], float(load), node_arrays, int(seed))
    by_number = {job.identity: job for job in jobs}

    found = {}
    for name, variant in variants.items():
        if not variant.is_plain:
            continue
        rules = rules_of(variant, parameters)
        trace = TraceReader(node_arrays, variant.policy, programs(), parameters).of_programs("it", jobs)
        progress = progress_of(CONTENTION, variant.policy, node_arrays, trace.model)
        simulation = Simulation(
            node_arrays,
            trace.trace,
            Portfolio(rules),
            queue_depth=rules.queue_depth,
            interval_s=CONTENDED_INTERVAL_S,
            progress=progress,
            age_limit_s=AGE_LIMIT_S,
        )
        runs = simulation.run().placements
        identity = np.array([each.job.id for each in runs])
        turnaround_s, run_s = (
            np.array([each.end_s - since for each, since in zip(runs, begin, strict=True)], np.float64)
            for begin in ([each.job.submit_s for each in runs], [each.start_s for each in runs])
        )
        alone_s = np.array([by_number[number].run_s for number in identity.tolist()])
        broken = 100 * float((run_s * sns.ALPHA > alone_s * (1 + sns.ROUNDING)).mean())
        found[name] = [*_measured(jobs, identity, turnaround_s), broken]
    return found


def run_small(piece: Piece) -> Measured:
    """One small case."""
    return run_case(parameters_of(spreads=True), int(piece[0]))


def run_pool(piece: Piece) -> dict[str, float]:
    """The mean wait in a pool without profiles, under each variant of Max-Jobs."""
    pool, interval_s, seed = piece
    nodes, records = generated(POOLS[str(pool)], BETA, scale=SCALE, seed=int(seed), days=DAYS)
    return {
        name: float((run.start_s - records.submit_s).mean())
        for name, change in WITHOUT_PROFILES.items()
        for run in [
            replay(nodes, records, rules_without_profiles(MatchingParameters(**change)), interval_s=int(interval_s))
        ]
    }


def run_log(piece: Piece) -> dict[str, list[list[float]]]:
    """The waits on a log by its weeks or days, under each variant of Max-Jobs; of so many jobs, 0 for all."""
    name, interval_s, jobs = piece
    log = LOGS[str(name)]
    nodes = log.pool()
    beta = round(natural_load(str(name)) / LOG_LOAD, 6)
    records = first(log.records(nodes, beta), int(jobs))
    found = {}
    for variant, change in WITHOUT_PROFILES.items():
        rules = rules_without_profiles(MatchingParameters(**change))
        run = replay(nodes, records, rules, interval_s=int(interval_s))
        found[variant] = by_week(records, run.start_s, beta * log.block_s).tolist()
    return found
