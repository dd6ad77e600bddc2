"""Read the events of the Slurm simulator of the University at Buffalo: a site's submissions, one `sbatch` line each.

    -dt 10.50 -e submit_batch_job | -sim-walltime 84805.00 --uid=user001 -J jobid_1 -N 1 -n 32 -p general-compute ...

A job has `-n` tasks of one core on `-N` nodes and `--mem` on each; without it, the partition's memory for each core.
Jobs on generic resources (GPUs) and of other partitions are left out. A job alone on its nodes (`--exclusive`) takes
the cores and the memory of the smallest node. Constraints on the type of the processor are ignored.
"""

import re
from collections.abc import Iterator

import numpy as np

from slurm_sns.coverage.logs import EVENT
from slurm_sns.coverage.sacct import time_limit_s
from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.trace_builder import RecordBuilder

OPTION = re.compile(r"(?:^|\s)(-N|-n|-p|-t|--mem|--gres|--exclusive)(?:[ =]+([^\s-]\S*))?")
MEMORY_UNITS = {"K": 1 / 1024, "M": 1.0, "G": float(MIB_PER_GB), "T": 1024.0 * MIB_PER_GB}


def read_events(
    source: TraceFile,
    node_arrays: NodeArrays,
    *,
    partition: str,
    memory_mb_per_core: float,
    load_factor: float = 1.0,
    user_estimates: bool = False,
) -> TraceArrays:
    """The partition's jobs that these nodes can hold; with `user_estimates` their time limits are read, too.

    Raises:
        BadInput: naming the line and what would be valid, or no job is left.
    """
    lines = enumerate(source.text().splitlines(), 1)
    found = [job for number, line in lines for job in _jobs(source.name, number, line, partition)]
    if not found:
        raise BadInput(f"{source.name}: no job of partition {partition} without generic resources")
    submit_s, run_s, nodes, tasks, memory_mb, alone, limit_s = np.array(found, np.float64).T
    cores = np.ceil(tasks / nodes)
    memory_mb = np.where(np.isnan(memory_mb), cores * memory_mb_per_core, memory_mb)
    smallest = node_arrays.capacity[[CORES, MEMORY]].min(axis=1)
    builder = RecordBuilder(node_arrays, load_factor)
    builder.add(
        identity=np.arange(len(found), dtype=np.float64),
        submit_s=submit_s,
        run_s=run_s,
        nodes=nodes,
        cores=np.where(alone > 0, np.maximum(cores, smallest[0]), cores),
        memory_mb=np.where(alone > 0, np.maximum(memory_mb, smallest[1]), memory_mb),
        limit_s=limit_s if user_estimates else None,
    )
    return builder.records(source.name)


def _jobs(name: str, number: int, line: str, partition: str) -> Iterator[tuple[float, ...]]:
    """The job of one line if it is of the partition and asks for no generic resources.

    Submit and run time, nodes, tasks, memory on each node in MiB (nan if it asks for none), whether it is alone, and
    its time limit in seconds (0 if it asks for none).
    """
    found = EVENT.fullmatch(line.strip())
    if found is None:
        raise BadInput(f"{name}, line {number}: '{line[:60]}'; valid: -dt S -e submit_batch_job | -sim-walltime S ...")
    options = {option: value or "" for option, value in OPTION.findall(found["options"])}
    if "--gres" in options:
        return
    try:
        nodes, tasks = int(options.get("-N", 1)), int(options.get("-n", 1))
        memory_mb = _mebibytes(options["--mem"]) if "--mem" in options else np.nan
        limit_s = time_limit_s(options.get("-t", ""))
    except ValueError:
        raise BadInput(f"{name}, line {number}: '{found['options'][:60]}'; valid: -N 1 -n 32 --mem=500G") from None
    if nodes < 1 or tasks < 1:
        raise BadInput(f"{name}, line {number}: -N {nodes} -n {tasks}; valid: 1 or more of each")
    if options.get("-p") == partition:
        yield float(found["submit"]), float(found["run"]), nodes, tasks, memory_mb, "--exclusive" in options, limit_s


def _mebibytes(text: str) -> float:
    unit = text[-1:].upper()
    return float(text[:-1]) * MEMORY_UNITS[unit] if unit in MEMORY_UNITS else float(text)
