"""Read a trace for matching of any format: SWF, CSV, a dump of sacct, or tasks of a GPU cluster, told by the header.

The CSV's is `job_id,submit_s,run_s,cores,mem_gb`, optionally `nodes,project,heuristic,priority,gpus`. With `nodes`,
cores, memory and `gpus` are those on each of that many nodes; `gpus` are by type (module `gpus`). 1 GB is 1024 MiB,
fractions of a MiB rounded up. A `priority` is Slurm's, which the policy slurm alone uses: the larger, the earlier.
"""

import math

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.model import NOTHING
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.columns import CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpu_tasks import is_of_gpu_cluster, read_gpu_tasks
from slurm_sns.sim.traces.gpus import VALID, gpus_in_cell, is_gpus
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.sacct_trace import header_of_sacct, read_sacct
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, SitePartitions
from slurm_sns.sim.traces.swf import read_swf
from slurm_sns.sim.traces.trace_builder import RecordBuilder

#: Slurm's own limit: its priorities have 32 bits.
MOST_PRIORITY = (1 << 32) - 1

HEADER = "job_id,submit_s,run_s,cores,mem_gb and optionally nodes,project,heuristic,priority,gpus"
CHECKS = (
    Number("job_id", 0, whole=True),
    Number("nodes", 1, whole=True),
    Number("cores", 1, whole=True),
    Distinct("job_id"),
    Text("heuristic", HEURISTICS.__contains__, f"empty, {', '.join(HEURISTICS)}", empty=True),
    Number("submit_s", 0),
    Number("run_s", 0),
    Number("mem_gb", 0),
    Text("project", empty=True),
    Number("priority", 0, MOST_PRIORITY, whole=True),
    Text("gpus", is_gpus, VALID, empty=True),
)


def read_records(
    name: str,
    node_arrays: NodeArrays,
    *,
    load_factor: float = 1.0,
    limit: int | None = None,
    user_estimates: bool = False,
    partitions: SitePartitions = EVERYWHERE,
) -> TraceArrays:
    """The trace in the file `name` (`-`: SWF on standard input) for these nodes, as arrays.

    With `user_estimates` the time limits that the owners asked for are read, too. `partitions` says where jobs of sacct
    may run.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    source = TraceFile.of(name)
    if header_of_sacct(source):
        return read_sacct(
            source, node_arrays, partitions, load_factor=load_factor, limit=limit, user_estimates=user_estimates
        )
    if is_of_gpu_cluster(source) and not user_estimates:
        nodes = [node_arrays.node(at, NOTHING) for at in range(len(node_arrays.names))]
        tasks = read_gpu_tasks(source, nodes).trace()
        return (tasks if limit is None else tasks.only(slice(limit))).at_load(load_factor, math.inf, name)
    if not source.is_csv:
        return read_swf(source, node_arrays, load_factor=load_factor, limit=limit, user_estimates=user_estimates)
    if user_estimates:
        raise BadInput(f"{name}: a CSV has no time limits; valid with user estimates: SWF, sacct")
    return read_jobs(source, node_arrays, load_factor=load_factor, limit=limit)


def read_jobs(
    source: TraceFile, node_arrays: NodeArrays, *, load_factor: float = 1.0, limit: int | None = None
) -> TraceArrays:
    """The jobs of a CSV file that these nodes can hold; with a `limit` only that many from its beginning are read.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    reader = CsvReader(source, HEADER, CHECKS, limit)
    builder = RecordBuilder(node_arrays, load_factor)
    for part in reader.parts():
        builder.add(
            identity=part["job_id"],
            submit_s=part["submit_s"],
            run_s=part["run_s"],
            nodes=part.get("nodes", np.ones(len(part["job_id"]))),
            cores=part["cores"],
            memory_mb=np.ceil(part["mem_gb"] * MIB_PER_GB),
            project=reader.listed("project", part) if "project" in part else None,
            heuristic=reader.listed("heuristic", part) if "heuristic" in part else None,
            priority=part.get("priority"),
            gpus=(part["gpus"], [gpus_in_cell(text) for text in reader.texts("gpus")]) if "gpus" in part else None,
        )
    return builder.records(source.name)
