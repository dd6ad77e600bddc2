"""The Max-Jobs paper's simulations over time: one replay for each pool, beta, policy and seed, each in its own file.

All policies of a (pool, seed) replay the same jobs, so that they can be compared in pairs. After an interruption,
`Sweep.run` with `resume` runs only what is missing.

Source: Max-Jobs paper (JSSPP 2013), section 5: cycles of 30 s, beta between 0.58 and 0.95.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slurm_sns.errors import SnsError
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.reproduce.kept import forget, keep
from slurm_sns.sim.reproduce.work import ReportProgress, Workers, no_report
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.trace_arrays import RecordBuilder, TraceArrays
from slurm_sns.sim.workloads.netbatch import Part, generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS, NetBatchPool
from slurm_sns.sim.workloads.netbatch_variants import AS_GENERATED, VARIANTS

MAX_JOBS = "max-jobs"
#: Policy -> its portfolio, in the order of tables and legends.
POLICIES: Mapping[str, tuple[str, ...]] = {name: (name,) for name in PAPER_PORTFOLIO} | {MAX_JOBS: PAPER_PORTFOLIO}
BETAS = (0.95, 0.8, 0.68, 0.58)
HIGHEST_LOAD = min(BETAS)
INTERVAL_S = 30

#: The metrics of one run, as `sns simulate` names them.
Run = Mapping[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A set of runs: `scale` of machines and jobs, `days` of the month, `variant` of the generator's assumptions."""

    folder: Path
    seeds: int
    scale: float = 0.05
    days: float = 30
    betas: tuple[float, ...] = BETAS
    pools: tuple[str, ...] = tuple(POOLS)
    variant: str = AS_GENERATED

    @property
    def runs(self) -> Path:
        """The folder of the runs; each size and variant has a folder of its own."""
        variant = "" if self.variant == AS_GENERATED else f"-{self.variant.replace(' ', '-')}"
        return self.folder / f"scale-{self.scale:g}-days-{self.days:g}{variant}"

    def pool(self, name: str) -> NetBatchPool:
        """A pool, changed as the variant says."""
        return VARIANTS[self.variant](POOLS[name])

    def path(self, pool: str, beta: float, policy: str, seed: int) -> Path:
        """The file of one run."""
        return self.runs / f"{pool}-{beta:g}-{policy}-{seed}.json"

    def missing(self, pool: str, beta: float, seed: int) -> list[str]:
        """The policies that have no run yet."""
        return [policy for policy in POLICIES if not self.path(pool, beta, policy, seed).is_file()]

    def run(self, workers: Workers, *, resume: bool, report: ReportProgress = no_report) -> None:
        """Run what is missing: the highest load first, and within a load all pools of a seed before the next seed.

        Without `resume` the runs of an earlier time are removed first.

        Raises:
            SnsError: the folder cannot be written.
        """
        seeds = range(1, self.seeds + 1)
        pieces = [(self, pool, beta, seed) for beta in sorted(self.betas) for seed in seeds for pool in self.pools]
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            if not resume:
                forget(self.runs)
            workers(_run_pool, [piece for piece in pieces if self.missing(*piece[1:])], report)
        except OSError as problem:
            raise SnsError(f"{self.runs} cannot be written: {problem.strerror}") from None

    def complete(self, beta: float, pool: str) -> int:
        """The number of seeds before the first that lacks a run of this load and pool."""
        for seed in range(1, self.seeds + 1):
            if self.missing(pool, beta, seed):
                return seed - 1
        return self.seeds

    def read(self, pool: str, beta: float, policy: str) -> list[Run]:
        """The runs of the complete seeds, by seed."""
        return [
            json.loads(self.path(pool, beta, policy, seed).read_text(encoding="utf-8"))
            for seed in range(1, self.complete(beta, pool) + 1)
        ]

    def values(self, pool: str, beta: float, policy: str, metric: str) -> np.ndarray:
        """One metric by seed."""
        return np.array([run[metric] for run in self.read(pool, beta, policy)], dtype=np.float64)


def records_of(parts: Iterable[Part], pool: NodeArrays, beta: float) -> TraceArrays:
    """Generated jobs in the form that a replay reads."""
    builder = RecordBuilder(pool, beta)
    for part in parts:
        builder.add(
            identity=np.arange(builder.jobs, builder.jobs + len(part.cores), dtype=np.float64),
            submit_s=part.submit_s,
            run_s=part.run_s,
            nodes=np.ones(len(part.cores)),
            cores=part.cores,
            memory_mb=part.memory_gb * MIB_PER_GB,
        )
    return builder.records("the generated workload")


def _run_pool(piece: tuple[Sweep, str, float, int]) -> None:
    """Run every missing policy of one pool, beta and seed."""
    sweep, name, beta, seed = piece
    generated = sweep.pool(name)
    pool = generated.nodes(sweep.scale)
    records = records_of(generate(generated, scale=sweep.scale, seed=seed, days=sweep.days), pool, beta)
    for policy in sweep.missing(name, beta, seed):
        members = POLICIES[policy]
        began = time.perf_counter()
        replayed = replay(pool, records, MatchingParameters(portfolio=members), interval_s=INTERVAL_S)
        took_s = time.perf_counter() - began
        result = {"jobs": len(records), "wall_s": took_s, **asdict(replayed.metrics(pool, members))}
        keep(sweep.path(name, beta, policy, seed), result)
