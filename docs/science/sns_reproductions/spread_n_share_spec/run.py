"""Measured programs instead of assumed curves: SPEC's way curves under the policies, and measured co-runs.

*Sharing*: SPEC programs of one process, which cannot be spread, on nodes of 8 cores and 11 ways. *Co-runs*: SP beside
seven other programs on one machine. Their way curves were not measured: from the traffic the model predicts each
program's part of the cache, and with flat curves the slowdown by memory alone.

The data are not part of the project (`running.shared_file`). The peak bandwidth of the machines is not recorded. We
assume 60 GB/s for the machine of the co-runs (MG alone drew 49.9); the SPEC node of 8 cores gets 8/28 of the bandwidth
of the paper's node of 28 cores.
"""

import csv
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.sim.pages.judge import in_pairs
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece, shared_file
from slurm_sns.sim.progress.contention import Occupant, SharedNode, speeds
from slurm_sns.sim.traces.program_trace import ProgramJob
from sns_reproductions.spread_n_share import COMPARED, Kept, Sequences, cluster, run_compared, table

CURVES, CO_RUNS = ("profiles", "spec-way-curves.csv"), ("profiles", "corun-measurements.csv")
MB_PER_GB = 1000
#: Run times were not measured: each program's is drawn once from the range of the paper's programs (50 to 1200 s).
SHORTEST_S, LONGEST_S = 50, 1200
SPEC_NODES, SPEC_NODE = 8, Resources(8, 32 * 1024, 11, 34)
SPEC_JOBS = 120

CO_RUN_CORES, CO_RUN_CACHE_MB, CO_RUN_WAYS, CO_RUN_GBPS = 8, 40.0, 20, 60.0
TOLD = Provenances(Provenance.ASSUMED, Provenance.MEASURED, Provenance.MEASURED)


def spec_programs(seed: int) -> dict[str, Program]:
    """The SPEC programs, one process each, with measured curves and random run times."""
    lots = np.random.default_rng(seed)
    points: dict[str, list[tuple[int, float, float]]] = {}
    with shared_file(*CURVES).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            point = int(row["ways"]), float(row["ipc"]), float(row["bandwidth_mbps"]) / MB_PER_GB
            points.setdefault(row["program"], []).append(point)
    programs = {}
    for name, curve in sorted(points.items()):
        ways, ipc, gbps = zip(*sorted(curve), strict=True)
        time_s = float(lots.uniform(SHORTEST_S, LONGEST_S))
        programs[name] = Program(name, (Run(1, 1, time_s, ways, ipc, gbps, TOLD),), "SPEC way curves", 1)
    return programs


def run_mix(piece: Piece) -> dict[str, Kept]:
    """One random mix of SPEC programs under every policy."""
    programs = spec_programs(0)
    names = sorted(programs)
    drawn = [names[at] for at in np.random.default_rng(int(piece[1])).integers(len(names), size=SPEC_JOBS)]
    jobs = tuple(ProgramJob(at, 0.0, programs[name].runs[0].time_s, name, 1, None) for at, name in enumerate(drawn))
    return run_compared(jobs, node_arrays=cluster(SPEC_NODES, SPEC_NODE), programs=programs)


class CoRun(NamedTuple):
    """A program as it was measured, alone or beside another."""

    time_s: float
    cache_mb: float
    gbps: float

    def occupant(self) -> Occupant:
        """It on a node, its way curve unknown: a flat one, as if the cache did not matter."""
        flat = Run(CO_RUN_CORES, 1, self.time_s, (2, CO_RUN_WAYS), (1.0, 1.0), (self.gbps, self.gbps), TOLD)
        return Occupant(flat, CO_RUN_CORES)


def co_runs() -> tuple[dict[str, CoRun], dict[str, dict[str, CoRun]]]:
    """The measurements of the programs alone on 8 cores (by program), and of the pairs with SP: case -> program."""
    alone: dict[str, CoRun] = {}
    pairs: dict[str, dict[str, CoRun]] = {}
    with shared_file(*CO_RUNS).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            measured = CoRun(float(row["runtime_s"]), float(row["mean_llc_MB"]), float(row["mem_GBps"]))
            if row["kind"] == "corun":
                pairs.setdefault(row["case"], {})[row["program"]] = measured
            elif row["cores"] == f"{CO_RUN_CORES}core" and row["suite"] != "NPB_big":
                alone[row["program"]] = measured
    return alone, pairs


class Predicted(NamedTuple):
    """One program of a pair: MB of cache by the rule and as measured, slowdown by memory alone and as measured."""

    case: str
    program: str
    cache_mb: float
    measured_cache_mb: float
    slowdown: float
    measured_slowdown: float


def predict() -> list[Predicted]:
    """The predictions for every program of every pair."""
    alone, pairs = co_runs()
    found = []
    for case, pair in sorted(pairs.items()):
        both = sum(each.gbps for each in pair.values())
        occupants = tuple(alone[name].occupant() for name in pair)
        kept = speeds(occupants, SharedNode(CO_RUN_WAYS, CO_RUN_GBPS, is_partitioned=False))
        for (name, measured), speed in zip(pair.items(), kept, strict=True):
            cache_mb = CO_RUN_CACHE_MB * measured.gbps / both
            slower = measured.time_s / alone[name].time_s
            found.append(Predicted(case, name, cache_mb, measured.cache_mb, 1 / speed, slower))
    return found


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the mixes and predict the co-runs."""
    pieces = [("spec", seed) for seed in range(1, options.seeds + 1)]
    of = Sequences.of(list(options.results("spec", run_mix, pieces).values()))
    columns = {policy: of.columns(policy) for policy in COMPARED}
    pairs = predict()
    off = {f"{each.case} {each.program} off": 100 * (each.slowdown / each.measured_slowdown - 1) for each in pairs}
    off_mb = np.array([abs(each.cache_mb - each.measured_cache_mb) for each in pairs])
    return PageResults(
        {**in_pairs(columns), **off, "cache off": off_mb},
        [table("policies", "policy", columns, data["measures"]), DataTable("co-runs", Predicted._fields, pairs)],
        {
            "jobs": SPEC_JOBS,
            "nodes": SPEC_NODES,
            "node": SPEC_NODE,
            "machine": {"cores": CO_RUN_CORES, "cache_mb": CO_RUN_CACHE_MB, "gbps": CO_RUN_GBPS},
            "pairs": [each[:2] for each in pairs],
        },
        options.seeds,
    )
