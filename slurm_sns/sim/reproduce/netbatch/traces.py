"""The heuristics and Max-Jobs on real traces: which findings of the Max-Jobs paper carry over.

The traces are not part of the project (module shared_data):

* MetaCentrum wagap 2013: zewura and zegox, as in the trace's header; jobs ask for memory.
* HPC2N (Parallel Workloads Archive): Seth, 120 nodes of 2 processors; 2 GB each assumed.
* SDSC-SP2 (Parallel Workloads Archive): 128 nodes of 1 processor; no memory recorded.

A trace is one sample. We cut it into 30 windows of equally many jobs, replay each from an empty cluster, and compare
policies in pairs by window. Windows of one trace are not quite independent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Resources
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.reproduce import figures
from slurm_sns.sim.reproduce.claims import Claim, Interval, interval
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Drawing, Page
from slurm_sns.sim.reproduce.runs import INTERVAL_S, MAX_JOBS, POLICIES
from slurm_sns.sim.reproduce.shared_data import shared_file
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.trace_arrays import TraceArrays

KB_PER_MIB = 1024
#: "Near the best": within this many percent.
NEAR_PERCENT = 5
QUICK_WINDOWS = 6


@dataclass(frozen=True)
class Log:
    """A trace and the machines on which it ran, as (number, cores, MiB). `beta` brings its load to about 90 %."""

    file: str
    machines: tuple[tuple[int, int, int], ...]
    beta: float

    def path(self) -> Path:
        """The path of the trace.

        Raises:
            BadInput: the file is missing.
        """
        return shared_file("traces", self.file)

    def pool(self) -> NodeArrays:
        """The machines as node arrays."""
        sizes = [Resources(cores, memory_mb) for count, cores, memory_mb in self.machines for _ in range(count)]
        return NodeArrays(tuple(f"n{at:03}" for at in range(len(sizes))), amounts(sizes))


LOGS = {
    "wagap-2013": Log(
        "wagap-2013.swf.gz", ((20, 80, 529_426_432 // KB_PER_MIB), (48, 12, 94_035_968 // KB_PER_MIB)), 0.66
    ),
    "HPC2N": Log("HPC2N-2002-2.2-cln.swf.gz", ((120, 2, 2 * MIB_PER_GB),), 0.66),
    "SDSC-SP2": Log("SDSC-SP2-1998-4.2-cln.swf.gz", ((128, 1, MIB_PER_GB),), 0.92),
}

#: A job of this many cores or more is wide: it needs much of a machine of 80 cores, or several machines of 12.
WIDE_CORES = 32

#: The page's remark below the claims.
REMARK = (
    "The paper makes these claims about other pools; we ask whether they hold on these traces too. On SDSC-SP2 each "
    "machine has one processor and each job takes whole machines. It does not matter which ones, so that every policy "
    "gives the same schedule. On wagap-2013 a window lasts about three days, and one job in eight runs for more than "
    "one day, so that the demand of a window can exceed its capacity. One job in nine asks for 32 processors or more; "
    "these jobs make up half of the work. The table shows which jobs wait on wagap-2013 at the higher load: nearly "
    "all the waiting is that of jobs with 32 processors or more. The balancing heuristics (Worse-Fit and Mix-Fit) "
    "leave a little free on every machine, where these jobs do not fit. The Best-Fit heuristics leave machines whole "
    "and halve the wait of these jobs."
)

#: The trace for which the page shows which jobs wait: its machines differ in size, and its jobs in width.
SHOWN = "wagap-2013"
WIDTH_HEADER = ("policy", f"mean wait (s), {WIDE_CORES} processors or more", "fewer processors")

#: Policy -> mean wait in seconds, by window.
Waits = Mapping[str, NDArray[np.float64]]


def replay_windows(piece: tuple[str, float, int, str]) -> list[tuple[float, ...]]:
    """For each window seven numbers.

    The mean wait; the loads of cores and of memory; the summed waits of the wide and of the other jobs; the numbers of
    the wide and of the other jobs.
    """
    name, beta, windows, policy = piece
    pool = LOGS[name].pool()
    records = read_records(str(LOGS[name].path()), pool, load_factor=beta)
    members = POLICIES[policy]
    seen = []
    for window in cut(records, windows):
        replayed = replay(pool, window, MatchingParameters(portfolio=members), interval_s=INTERVAL_S)
        metrics = replayed.metrics(pool, members)
        wait_s = replayed.start_s - window.submit_s
        wide = np.array([nodes * cores for nodes, cores, *_ in window.kinds])[window.kind] >= WIDE_CORES
        split = (wait_s[wide].sum(), wait_s[~wide].sum(), wide.sum(), (~wide).sum())
        seen.append((metrics.mean_wait_s, metrics.load_cores or 0.0, metrics.load_memory or 0.0, *map(float, split)))
    return seen


def cut(records: TraceArrays, windows: int) -> list[TraceArrays]:
    """Consecutive parts with equally many jobs; the submit times of each part begin at 0."""
    edges = np.linspace(0, len(records), windows + 1).astype(int)
    return [
        replace(
            records,
            identity=records.identity[begin:end],
            submit_s=records.submit_s[begin:end] - records.submit_s[begin],
            run_s=records.run_s[begin:end],
            kind=records.kind[begin:end],
            project=records.project[begin:end],
        )
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def reproduce(options: Options) -> Page:
    """Replay the windows, draw the figure and return the page. `options.seeds` is the number of windows."""
    windows = QUICK_WINDOWS if options.quick else options.seeds
    pieces = [(name, beta, windows, policy) for name in LOGS for beta in (1.0, LOGS[name].beta) for policy in POLICIES]
    for log in LOGS.values():
        log.path()  # a missing trace is reported before any work
    results = dict(zip(pieces, options.results("traces", replay_windows, pieces), strict=True))
    waits: dict[str, dict[float, Waits]] = {
        name: {
            beta: {policy: np.array(results[name, beta, windows, policy])[:, 0] for policy in POLICIES}
            for beta in (1.0, LOGS[name].beta)
        }
        for name in LOGS
    }
    loads = {
        (name, beta): np.array(results[name, beta, windows, "mix-fit"])[:, 1:3].mean(axis=0)
        for name in LOGS
        for beta in (1.0, LOGS[name].beta)
    }
    bars = {
        policy: {name: above(waits[name][LOGS[name].beta], policy, "mix-fit") for name in LOGS}
        for policy in POLICIES
        if policy != "mix-fit"
    }
    figures.bars(options.out, "waits", bars, ("", "mean wait above mix-fit's (%)"))
    told = "; ".join(f"{n} at beta {b:g}: cores {c:.0f}, memory {m:.0f}" for (n, b), (c, m) in loads.items())
    rows = [
        (name, beta, policy, *vars(interval(values)).values(), *vars(above(table, policy, "mix-fit")).values())
        for name, by_beta in waits.items()
        for beta, table in by_beta.items()
        for policy, values in table.items()
    ]
    who_waits = [
        (policy, *(round(wait_s) for wait_s in by_width(results[SHOWN, LOGS[SHOWN].beta, windows, policy])))
        for policy in POLICIES
    ]
    header = ("trace", "beta", "policy", "mean_wait_s", "low", "high", "percent_above_mix_fit", "low", "high")
    return Page(
        title="The heuristics on real traces: wagap-2013, HPC2N, SDSC-SP2",
        made=[
            (
                f"`sns reproduce netbatch-traces`: each trace is cut into {windows} windows of equally many jobs, and "
                "each window is replayed from an empty cluster. Cycles every 30 s, queue depth 1000, 1 reservation. "
                "The windows take the place of seeds, although the windows of one trace are not quite independent. "
                f"Mean load in percent of capacity: {told}."
            )
        ],
        claims=[claim for name in LOGS for claim in _claims(name, waits[name])],
        drawings=[Drawing("waits", "Mean wait against Mix-Fit's at the higher load, 95 % intervals over the windows.")],
        numbers=[DataTable("waits", header, rows), DataTable("width", WIDTH_HEADER, who_waits)],
        remarks=[REMARK],
        shown=DataTable("width", WIDTH_HEADER, who_waits),
        seeds=windows,
    )


def by_width(seen: list[tuple[float, ...]]) -> tuple[float, float]:
    """The mean wait in seconds of the wide jobs and of the others, over all windows."""
    wide_s, other_s, wide, others = np.array(seen)[:, 3:].sum(axis=0)
    return float(wide_s / wide), float(other_s / others)


def above(waits: Waits, one: str, other: str) -> Interval:
    """How much longer `one` waits than `other`, in percent of the other's mean over all windows; paired by window."""
    return interval(100 * (waits[one] - waits[other]) / waits[other].mean())


def _claims(name: str, waits: Mapping[float, Waits]) -> list[Claim]:
    claims = []
    for beta, table in waits.items():
        where = f"{name}, beta {beta:g}"
        for other in POLICIES:
            if other not in {"mix-fit", MAX_JOBS}:
                text, measure = "Mix-Fit waits less than the other heuristics", f"% mix-fit above {other}"
                claims.append(Claim(where, text, measure, above(table, "mix-fit", other), high=0))
        best = min(
            (policy for policy in POLICIES if policy != MAX_JOBS), key=lambda policy: float(table[policy].mean())
        )
        text, measure = "Max-Jobs is best or near the best", f"% max-jobs above {best}"
        claims.append(Claim(where, text, measure, above(table, MAX_JOBS, best), high=NEAR_PERCENT))
    return claims
