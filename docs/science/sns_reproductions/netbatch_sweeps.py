"""The Max-Jobs paper's simulations over time: one replay for each pool, beta, policy and seed, each in its own file.

All policies of a (pool, seed) replay the same jobs, so that they can be compared in pairs. `run_sweeps` also writes
the finished replays of a page as one compressed file beside it, from which a later run goes on: one JSON object a line
with the sweep's name, the run's name, the run, and a digest of the generator's jobs and machines. The folder of single
runs is not part of the project; this file is. Rows of another generator do not count.

Source: Max-Jobs paper (JSSPP 2013), section 5: cycles of 30 s, beta between 0.58 and 0.95, and 1 for the original load.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import AUTHORS_PORTFOLIO, PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.pages.running import Options, keep
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.results.metrics import measure
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.trace_builder import RecordBuilder
from slurm_sns.sim.workloads.netbatch import SubmittedJobs, generate
from slurm_sns.sim.workloads.netbatch_pools import (
    AS_GENERATED,
    CALIBRATED_BETAS,
    POOLS,
    SMALLEST_SCALE,
    VARIANT_BETAS,
    VARIANTS,
    NetBatchPool,
)
from slurm_sns.sim.workloads.write import write_pieces

MAX_JOBS, MAX_JOBS_7, FIRST_FIT = "max-jobs", "max-jobs-7", "first-fit"
#: Policy -> its portfolio, in the order of tables and legends.
POLICIES: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in PAPER_PORTFOLIO},
    MAX_JOBS: PAPER_PORTFOLIO,
    MAX_JOBS_7: AUTHORS_PORTFOLIO,
    FIRST_FIT: (FIRST_FIT,),
}
#: The load of the traces as they were recorded, at which the paper has no figures; then those of the figures.
ORIGINAL_LOAD = 1.0
BETAS = (ORIGINAL_LOAD, 0.95, 0.8, 0.68, 0.58)
HIGHEST_LOAD = min(BETAS)
INTERVAL_S = 30
#: A live scheduler's interval unless its site sets another (scheduler.interval_s in sns.yaml).
LIVE_INTERVAL_S = 1


#: The metrics of one run, as `sns simulate` names them.
Run = Mapping[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A set of runs: `scale` of machines and jobs, `days` of the month, `variant` of the generator's assumptions.

    `queue_depth` None: every waiting job is looked at. `reservations` None: capacity is withheld for every job that a
    cycle looks at without a match, as in the paper. `policies` are names of `POLICIES`. `calibrated`: `betas` name the
    levels of `CALIBRATED_BETAS` (or of the variant's own `VARIANT_BETAS`), where all pools queue about equally long,
    instead of being the same number for every pool. There is a cycle every `interval_s` seconds.
    """

    folder: Path
    seeds: int
    scale: float = 0.05
    days: float = 30
    betas: tuple[float, ...] = BETAS
    pools: tuple[str, ...] = tuple(POOLS)
    variant: str = AS_GENERATED
    queue_depth: int | None = MatchingParameters().queue_depth
    reservations: int | None = MatchingParameters().reservations
    policies: tuple[str, ...] = tuple(POLICIES)
    calibrated: bool = False
    interval_s: int = INTERVAL_S

    @property
    def name(self) -> str:
        """The name of the folder of the runs; each size, variant and kind of cycle has a folder of its own."""
        variant = "" if self.variant == AS_GENERATED else f"-{self.variant.replace(' ', '-')}"
        cycle = (
            f"depth-{self.queue_depth or 'all'}-withhold-{'all' if self.reservations is None else self.reservations}"
        )
        calibrated = "-calibrated" if self.calibrated else ""
        interval = "" if self.interval_s == INTERVAL_S else f"-every-{self.interval_s}-s"
        return f"scale-{self.scale:g}-days-{self.days:g}-{cycle}{variant}{calibrated}{interval}"

    def beta_of(self, pool: str, beta: float) -> float:
        """The factor of the arrival times of a pool at one of `betas`."""
        return VARIANT_BETAS.get(self.variant, CALIBRATED_BETAS)[pool][beta] if self.calibrated else beta

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.folder / self.name

    def parameters(self, policy: str, jobs: int) -> MatchingParameters:
        """The parameters of a policy's replay of this many jobs."""
        return MatchingParameters(
            portfolio=POLICIES[policy],
            queue_depth=jobs if self.queue_depth is None else self.queue_depth,
            reservations=jobs if self.reservations is None else self.reservations,
        )

    def pool(self, name: str) -> NetBatchPool:
        """A pool, changed as the variant says."""
        return VARIANTS[self.variant](POOLS[name])

    def path(self, pool: str, beta: float, policy: str, seed: int) -> Path:
        """The file of one run; it has the factor of the arrival times in its name, also of a calibrated sweep."""
        return self.runs / f"{pool}-{self.beta_of(pool, beta):g}-{policy}-{seed}.json"

    def paths(self) -> list[Path]:
        """The files of all runs of the sweep, finished or not."""
        return [
            self.path(pool, beta, policy, seed) for _, pool, beta, seed in self.pieces() for policy in self.policies
        ]

    def missing(self, pool: str, beta: float, seed: int) -> list[str]:
        """The policies that have no run yet."""
        return [policy for policy in self.policies if not self.path(pool, beta, policy, seed).is_file()]

    def pieces(self) -> list["SweepPiece"]:
        """Every pool, beta and seed of the sweep."""
        seeds = range(1, self.seeds + 1)
        return [(self, pool, beta, seed) for pool, beta, seed in product(self.pools, self.betas, seeds)]

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


#: A sweep, and a pool, beta and seed of it.
SweepPiece = tuple[Sweep, str, float, int]


def full_size(options: Options, **of: Any) -> Sweep:
    """A sweep of pools at full size, four days each; quick: a tenth of the size, a quarter of a day."""
    scale, days = (0.1, 0.25) if options.quick else (1.0, 4.0)
    return Sweep(options.folder, options.seeds, scale=scale, days=days, **of)


def run_sweeps(options: Options, sweeps: Sequence[Sweep]) -> None:
    """Run what is missing of several sweeps, and write the finished runs as rows beside the page.

    The highest load goes first, and within a load all runs of a seed together: a run that is stopped has whole seeds of
    everything. With --resume the rows of an earlier page count as done, without it earlier runs are removed. After
    `until_s` no pool is begun.

    Raises:
        BadInput: the file of rows is not one of ours.
        SnsError: a folder or a file cannot be read or written.
    """
    if options.resume:
        restore(options.out / ROWS, sweeps)
    pieces = sorted((piece for sweep in sweeps for piece in sweep.pieces()), key=itemgetter(2, 3))
    try:
        for sweep in sweeps:
            sweep.runs.mkdir(parents=True, exist_ok=True)
            for old in () if options.resume else sweep.runs.glob("*.json"):
                old.unlink()
        missing = [piece for piece in pieces if piece[0].missing(*piece[1:])]
        options.workers(partial(_run_pool, options.until_s), missing, options.report)
    except OSError as problem:
        raise SnsError(f"{sweeps[0].folder} cannot be written: {problem.strerror}") from None
    finally:  # also of a run that is stopped
        _write(options.out / ROWS, lines_of(sweeps))


def generated(
    pool: NetBatchPool, beta: float, *, scale: float, seed: int, days: float
) -> tuple[NodeArrays, TraceArrays]:
    """The machines of a pool, and its jobs."""
    nodes = pool.nodes(scale)
    return nodes, records_of(generate(pool, scale=scale, seed=seed, days=days), nodes, beta)


def records_of(parts: Iterable[SubmittedJobs], pool: NodeArrays, beta: float) -> TraceArrays:
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


def _run_pool(until_s: float | None, piece: SweepPiece) -> None:
    """Run every missing policy of one pool, beta and seed, unless it is later than `until_s`."""
    if until_s is not None and time.time() >= until_s:
        return
    sweep, name, beta, seed = piece
    pool, records = generated(
        sweep.pool(name), sweep.beta_of(name, beta), scale=sweep.scale, seed=seed, days=sweep.days
    )
    for policy in sweep.missing(name, beta, seed):
        began = time.perf_counter()
        replayed = replay(pool, records, rules_of(sweep.parameters(policy, len(records))), interval_s=sweep.interval_s)
        took_s = time.perf_counter() - began
        result = {"jobs": len(records), "wall_s": took_s, **asdict(measure(replayed, pool))}
        keep(sweep.path(name, beta, policy, seed), result)


# --- kept rows

ROWS = "rows.jsonl.gz"
DIGITS = 12


@cache
def workload_digest() -> str:
    """What tells the generated pools from those of a changed generator: a digest of the smallest ones, for a day.

    What the variants change is part of it. Betas are in the names of the runs.
    """
    variants = {name: [asdict(change(pool)) for pool in POOLS.values()] for name, change in VARIANTS.items()}
    digest = sha256(repr(variants).encode())
    for pool in POOLS.values():
        digest.update(pool.nodes(SMALLEST_SCALE).capacity.tobytes())
        for part in generate(pool, scale=SMALLEST_SCALE, seed=1, days=1):
            for column in part:
                digest.update(column.tobytes())
    return digest.hexdigest()[:DIGITS]


def _write(file: Path, lines: Sequence[str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SnsError(f"{file} cannot be written: {problem.strerror}") from None
    if lines:
        write_pieces(file, lines)


def restore(file: Path, sweeps: Sequence[Sweep]) -> None:
    """Write the sweeps' runs of the file into their folders; runs that are there already stay as they are.

    Raises:
        BadInput: the file is not one of ours.
        SnsError: it cannot be read, or a folder cannot be written.
    """
    wanted = {(sweep.name, path.stem): path for sweep in sweeps for path in sweep.paths()}
    try:
        for number, line in enumerate(TraceFile.of(str(file)).text().splitlines() if file.is_file() else (), start=1):
            try:
                row = json.loads(line)
                path, result = wanted.get((row["sweep"], row["run"])), dict(row["result"])
                ours = row["workload"] == workload_digest()
            except (ValueError, KeyError, TypeError):
                raise BadInput(f"{file}, line {number} is no finished run; valid: what `sns reproduce` wrote") from None
            if ours and path is not None and not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                keep(path, result)
    except OSError as problem:
        raise SnsError(f"{file} cannot be restored: {problem.strerror}") from None


def lines_of(sweeps: Sequence[Sweep]) -> list[str]:
    """One line for each finished run of the sweeps, in the order of their names.

    A folder may also hold runs at other betas, or of other pages; these are left out.
    """
    rows = (
        {
            "sweep": sweep.name,
            "run": path.stem,
            "workload": workload_digest(),
            "result": json.loads(path.read_text(encoding="utf-8")),
        }
        for sweep in sorted(sweeps, key=lambda each: each.name)
        for path in sorted(sweep.paths())
        if path.is_file()
    )
    return [json.dumps(row) + "\n" for row in rows]
