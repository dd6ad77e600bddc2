"""Run a week of a site under its policies; jobs keep to the features, the weights and the network of its nodes.

The site is UB-HPC: the nodes of its partition general-compute by its own slurm.conf (features, Weight) and
topology.conf (three switches under one top switch that joins an Omni-Path and two InfiniBand fabrics on paper only).
Jobs are those of a week that slurm_sns would manage, with their constraints and --exclusive, in their order of
submission. GPU nodes have the largest weight: other jobs are to get them last.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations
from math import ceil
from typing import Any

import numpy as np

from slurm_sns import constraints
from slurm_sns.conf_text import read
from slurm_sns.coverage.logs import EVENT
from slurm_sns.coverage.sacct import duration_s
from slurm_sns.coverage.sbatch_options import submission
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.placement.node_arrays import NodeArrays, ever_holding, fits_ever
from slurm_sns.policies.registry import specification
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.pages.running import Options, PageResults, shared_file
from slurm_sns.sim.replay.backfilling_loop import EASY
from slurm_sns.sim.replay.trace_replay import replay_in_order
from slurm_sns.sim.trace import Trace, TraceJob, of_values
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.slurm_conf import SiteNode, node_arrays, site_nodes
from slurm_sns.submit.submission import Submission, unplaced
from slurm_sns.topology import FLAT, TREE, Topology, of_conf
from sns_reproductions.netbatch_sweeps import INTERVAL_S

FOLDER = ("traces", "slurm-week")
PARTITION, MEMORY_PER_CORE_MB = "general-compute", 2800
#: The switch that joins the fabrics on paper.
TOP = "TOP"
_LIMIT = re.compile(r"-t (\S+)")
#: Quick: so many of the first jobs.
QUICK_JOBS = 1500

#: What is run: the policy, and whether it keeps to weights and fabrics.
RUNS: dict[str, tuple[str, bool, bool]] = {
    "EASY": ("easy", True, True),
    "Max-Jobs": ("max-jobs", True, True),
    "Max-Jobs without weights": ("max-jobs", False, True),
    "Max-Jobs without fabrics": ("max-jobs", True, False),
}


#: What a run gives: jobs, waits in s, jobs on several nodes and those across fabrics, core-hours on GPU nodes in %.
COLUMNS = ("jobs", "mean_wait_s", "p95_wait_s", "wide", "across", "gpu_percent")


@lru_cache(maxsize=1)
def site() -> tuple[tuple[SiteNode, ...], Topology]:
    """The nodes of the partition, and how they are connected."""
    nodes = site_nodes(read(shared_file(*FOLDER, "ubhpc_slurm.conf")))
    topology = of_conf(TREE, read(shared_file(*FOLDER, "ubhpc_topology.conf")))
    return tuple(node for node in nodes if PARTITION in node.partitions), topology.without({TOP})


def jobs_of(arrays: NodeArrays, nodes: tuple[SiteNode, ...], most: int) -> Trace:
    """The jobs of the week that would be managed and that these nodes can hold: at most so many, 0 for all."""
    lines = TraceFile.of(str(shared_file(*FOLDER, "ubhpc_workload_week.events.gz"))).text().splitlines()
    allowed: dict[str, frozenset[str] | None] = {"": None}
    kept: list[TraceJob] = []
    for number, line in enumerate(lines):
        if most and len(kept) == most:
            break
        found = EVENT.fullmatch(line.strip())
        asked = submission(found["options"].split()) if found else Submission()
        if found is None or asked.partition != PARTITION or unplaced(asked):
            continue
        if asked.features not in allowed:
            allowed[asked.features] = _admitted(asked.features, nodes)
        alternative = _alternative(asked)
        job = Job(
            id=number,
            submit_s=round(float(found["submit"])),
            alternatives=(alternative,),
            order=(round(float(found["submit"])), number),
            allowed=allowed[asked.features],
            expected_run_s=_limit_s(found["options"]),
        )
        if fits_ever(arrays, alternative, job.allowed):
            kept.append(TraceJob(job, max(1, round(float(found["run"])))))
    return Trace(tuple(kept), {})


def _admitted(text: str, nodes: tuple[SiteNode, ...]) -> frozenset[str]:
    """The nodes that a constraint admits."""
    constraint = constraints.read(text)
    return frozenset(node.name for node in nodes if constraints.admits(constraint, node.features))


def _alternative(asked: Submission) -> Alternative:
    count, tasks = asked.min_nodes or 1, asked.num_tasks or 1
    cores = ceil(tasks / count)
    memory_mb = asked.min_mem_per_node or cores * MEMORY_PER_CORE_MB
    return Alternative(count, Resources(cores, memory_mb), exclusive=asked.shared == 0)


def _limit_s(text: str) -> float | None:
    found = _LIMIT.search(text)
    return None if found is None else duration_s(found[1])


def replay_week(piece: tuple[str, int]) -> list[float]:
    """One run: the values of COLUMNS."""
    name, most = piece
    policy, heeds_weight, has_fabrics = RUNS[name]
    nodes, fabrics = site()
    arrays = node_arrays(nodes, fabrics if has_fabrics else FLAT, heeds_weight=heeds_weight)
    trace = jobs_of(node_arrays(nodes, fabrics), nodes, most)
    records = of_values(trace)
    if policy == "easy":
        found = replay_in_order(
            arrays, records, placing("ce", SpreadingParameters()).rules, EASY, interval_s=INTERVAL_S
        )
    else:
        simulation = PlannedSimulation(arrays, trace, specification(policy).policy(), interval_s=INTERVAL_S)
        found = simulation.run().as_run(records)
    waits = (found.start_s - records.submit_s).astype(np.float64)
    fabric_of = [fabrics.switches[node.name][0] for node in nodes]
    used = [found.nodes(job) for job in range(len(records))]
    wide = [each for each in used if len(each) > 1]
    across = sum(len({fabric_of[node] for node in each}) > 1 for each in wide)
    hours = np.zeros(2)
    for job, (on, seconds) in enumerate(zip(used, (found.end_s - found.start_s).astype(float), strict=True)):
        for node in on:
            hours[int(nodes[node].has_gres)] += found.alternative(job).demand.cores * seconds
    gpu_percent = 100 * hours[1] / hours.sum()
    return [len(used), waits.mean(), float(np.percentile(waits, 95)), len(wide), across, gpu_percent]


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run the week under each policy."""
    most = QUICK_JOBS if options.quick else 0
    results = options.results("site", replay_week, [(name, most) for name in RUNS])
    return results_of({name: result for (name, _), result in results.items()}, most)


def results_of(values: Mapping[str, list[float]], most: int) -> PageResults:
    """The results, from what the runs gave."""
    weeks = {name: dict(zip(COLUMNS, of, strict=True)) for name, of in values.items()}
    known = {f"{name}: {column}": value for name, of in weeks.items() for column, value in of.items()}
    for one, other in permutations(weeks, 2):
        known[f"{one} - {other}: gpu_percent"] = weeks[one]["gpu_percent"] - weeks[other]["gpu_percent"]
        known[f"{one} above {other}: mean_wait_s"] = 100 * (weeks[one]["mean_wait_s"] / weeks[other]["mean_wait_s"] - 1)
    wide, bound = bound_to_a_fabric(most)
    return PageResults(known, fields={"weeks": weeks, "wide": wide, "bound": bound, "nodes": len(site()[0])})


def bound_to_a_fabric(most: int) -> tuple[int, int]:
    """How many jobs of the week run on several nodes, and how many of them could do so in one fabric only."""
    nodes, fabrics = site()
    arrays = node_arrays(nodes, fabrics)
    parts = [
        frozenset(node.name for node in nodes if fabrics.switches[node.name] == path)
        for path in dict.fromkeys(fabrics.switches[node.name] for node in nodes)
    ]
    wide = [each.job for each in jobs_of(arrays, nodes, most).jobs if each.job.alternatives[0].nodes > 1]
    homes = [
        sum(
            bool(ever_holding(arrays, job.alternatives[0], part if job.allowed is None else part & job.allowed).any())
            for part in parts
        )
        for job in wide
    ]
    return len(wide), sum(count == 1 for count in homes)
