"""Replay logs of real sites as wholes, with their arrivals scaled to loads at which heuristics can differ.

The logs are not part of the project (`running.shared_file`). Those that record memory take part:

* MetaCentrum wagap 2013: zewura and zegox, as in the log's header.
* HPC2N (Parallel Workloads Archive): Seth, 120 nodes of 2 processors; 2 GB each assumed.
* UB-HPC, a week of the University at Buffalo: the CPU nodes of its general-compute partition, as in its slurm.conf.

On the others (SDSC-SP2, KTH-SP2, Trinity) a job takes whole nodes of one size. Then it does not matter which nodes it
gets, every policy gives the same schedule, and there is nothing to compare.

Loads are those of the scarcer of cores and memory. Intervals come from resampling a log's weeks, or its days where it
has few weeks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, amounts
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import RESAMPLED, Interval, percent_above
from slurm_sns.sim.pages.running import Options, PageResults, shared_file
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.slurm_events import read_events
from slurm_sns.sim.traces.swf import read_swf
from sns_reproductions.netbatch import ABOUT, MIX
from sns_reproductions.netbatch_sweeps import FIRST_FIT, INTERVAL_S, MAX_JOBS, POLICIES

KB_PER_MIB = 1024
DAY_S = 86_400
#: The loads of the scarcer resource, in percent of its capacity; quick: one of them.
LOADS, QUICK_LOADS = (50, 60, 70, 80, 90), (80,)
#: Quick: so many jobs from the beginning of each log.
QUICK_JOBS = 10_000


@dataclass(frozen=True)
class Log:
    """A log, its reader, the machines on which it ran as (number, cores, MiB), and what is resampled."""

    file: tuple[str, ...]
    machines: tuple[tuple[int, int, int], ...]
    is_events: bool = False
    block_s: int = 7 * DAY_S

    @property
    def block(self) -> str:
        """The name of what is resampled."""
        return "weeks" if self.block_s == 7 * DAY_S else "days"

    def source(self) -> TraceFile:
        """The file.

        Raises:
            BadInput: it is missing.
        """
        return TraceFile.of(str(shared_file("traces", *self.file)))

    def pool(self) -> NodeArrays:
        """The machines as node arrays."""
        sizes = [Resources(cores, memory_mb) for count, cores, memory_mb in self.machines for _ in range(count)]
        return NodeArrays(tuple(f"n{at:03}" for at in range(len(sizes))), amounts(sizes))

    def records(self, pool: NodeArrays, beta: float) -> TraceArrays:
        """The jobs with their arrivals scaled.

        Raises:
            BadInput: the file is missing or is not a log.
        """
        if self.is_events:
            return read_events(
                self.source(), pool, partition=PARTITION, memory_mb_per_core=MIB_PER_CORE, load_factor=beta
            )
        return read_swf(self.source(), pool, load_factor=beta)


#: UB-HPC's slurm.conf: the partition, and the memory of a job that asks for none, for each core.
PARTITION, MIB_PER_CORE = "general-compute", 2800
LOGS = {
    "wagap-2013": Log(
        ("wagap-2013.swf.gz",), ((20, 80, 529_426_432 // KB_PER_MIB), (48, 12, 94_035_968 // KB_PER_MIB))
    ),
    "HPC2N": Log(("HPC2N-2002-2.2-cln.swf.gz",), ((120, 2, 2 * MIB_PER_GB),)),
    "UB-HPC": Log(
        ("slurm-week", "ubhpc_workload_week.events.gz"),
        ((87, 32, 187_000), (96, 40, 187_000), (24, 40, 754_000)),
        is_events=True,
        block_s=DAY_S,
    ),
}
#: A job of this many cores or more is wide: it needs much of a machine, or several machines.
WIDE_CORES = 32
WIDTH_LOAD = 70

#: What a replay keeps of each week: the summed waits of wide and of other jobs, and the numbers of both.
Weeks = NDArray[np.float64]


@lru_cache(maxsize=2)
def natural_load(name: str) -> float:
    """The load of the scarcer resource with the arrivals as recorded, in percent of its capacity."""
    log = LOGS[name]
    pool = log.pool()
    records = log.records(pool, 1.0)
    held = np.array([[nodes * cores, nodes * memory_mb] for nodes, cores, memory_mb, _ in records.kinds], np.float64)
    demanded = (held[records.kind] * records.run_s[:, np.newaxis]).sum(axis=0)
    span_s = float(records.submit_s[-1] - records.submit_s[0])
    return float(100 * (demanded / pool.capacity[[CORES, MEMORY]].sum(axis=1)).max() / span_s)


def replay_log(piece: tuple[str, int, str, int]) -> list[list[float]]:
    """The weeks of one replay, as rows of `Weeks`; the piece is log, load, policy, and the number of jobs or 0."""
    name, load, policy, jobs = piece
    log = LOGS[name]
    pool = log.pool()
    beta = round(natural_load(name) / load, 6)
    records = log.records(pool, beta)
    members = POLICIES[policy]
    replayed = replay(
        pool, first(records, jobs), rules_of(MatchingParameters(portfolio=members)), interval_s=INTERVAL_S
    )
    weeks: list[list[float]] = by_week(replayed.trace, replayed.start_s, beta * log.block_s).tolist()
    return weeks


def first(records: TraceArrays, jobs: int) -> TraceArrays:
    """The first jobs; all of them if `jobs` is 0."""
    return records.only(slice(jobs)) if jobs else records


def by_week(records: TraceArrays, start_s: NDArray[np.int64], block_s: float) -> Weeks:
    """The rows of `Weeks`, by the week in which jobs were submitted; weeks without jobs are left out."""
    block: NDArray[np.int64] = ((records.submit_s - records.submit_s[0]) // block_s).astype(np.int64)
    wide = np.array([nodes * cores for nodes, cores, *_ in records.kinds])[records.kind] >= WIDE_CORES
    wait_s = (start_s - records.submit_s).astype(np.float64)
    weights = (wait_s * wide, wait_s * ~wide, wide, ~wide)
    weeks: Weeks = np.array([np.bincount(block, each) for each in weights], dtype=np.float64).T
    some: Weeks = weeks[weeks[:, 2:].sum(axis=1) > 0]
    return some


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Replay the logs and draw the figure. Nothing is drawn at random but the resampled weeks."""
    loads, jobs = (QUICK_LOADS, QUICK_JOBS) if options.quick else (LOADS, 0)
    for log in LOGS.values():
        log.source()  # a missing log is reported before any work
    pieces = [(name, load, policy, jobs) for name in LOGS for load in loads for policy in POLICIES]
    results = options.results("logs", replay_log, pieces)
    found = {
        (name, load): {policy: np.array(results[name, load, policy, jobs]) for policy in POLICIES}
        for name in LOGS
        for load in loads
    }
    above: dict[str, Interval] = {}
    best: dict[tuple[str, int], dict[str, str]] = {}
    for (name, load), weeks in found.items():
        ranked = sorted(PAPER_PORTFOLIO, key=lambda policy, weeks=weeks: mean_wait_s(weeks[policy]))  # type: ignore[misc]
        rival = next(policy for policy in ranked if policy != MIX)
        best[name, load] = {"rival": rival, "first": ranked[0]}
        pairs = {(MIX, rival), (MAX_JOBS, ranked[0]), (FIRST_FIT, ranked[0])}
        pairs |= {(policy, other) for policy in POLICIES for other in (MIX, MAX_JOBS)}
        waits = {policy: of[:, :2].sum(axis=1) for policy, of in weeks.items()}
        above |= {
            f"{name} {load}: {one} above {other}": percent_above(waits[one], waits[other]) for one, other in pairs
        }
    highest = loads[-1]
    bars = {
        policy: {name: above[f"{name} {highest}: {policy} above {MIX}"] for name in LOGS}
        for policy in POLICIES
        if policy not in {MIX, FIRST_FIT}
    }
    figures.bars(options.out, "waits", bars, ("", f"mean wait above mix-fit's (%), load {highest} %"))
    return PageResults(
        above,
        [],
        {
            **ABOUT,
            "weeks": found,
            "best": best,
            "logs": LOGS,
            "policies": list(POLICIES),
            "loads": loads,
            "jobs": jobs,
            "natural_load": natural_load,
            "mean_wait_s": mean_wait_s,
            "by_width": by_width,
            "width_load": WIDTH_LOAD if WIDTH_LOAD in loads else highest,
            "resampled": RESAMPLED,
        },
    )


def mean_wait_s(weeks: Weeks) -> float:
    """The mean wait in seconds."""
    return float(weeks[:, :2].sum() / weeks[:, 2:].sum())


def by_width(weeks: Weeks) -> tuple[float, float]:
    """The mean wait in seconds of the wide jobs and of the others; nan if there are none."""
    sums = weeks.sum(axis=0)
    with np.errstate(invalid="ignore"):
        wide_s, other_s = sums[:2] / sums[2:]
    return float(wide_s), float(other_s)
