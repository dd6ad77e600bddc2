"""The log HPC2N as the DFRS paper simulates it: 120 nodes of two processors and 2 GB, in segments of one week.

The log says how many processors a job has and how much memory for each; how many tasks it has is inferred:

* Memory for each processor is the larger of requested and used memory, as a fraction of 2 GB. It is at least 10 %
  ("with a minimum observed of 10%"; 1,823 jobs of our log lie below), also for jobs whose memory is unknown. Without
  the floor, only those of unknown memory have 10 %.
* An even number of processors with less than 50 % of a node's memory each: half as many tasks, each with all of a
  node's CPU and twice the memory.
* Otherwise each processor is a task of 50 % CPU.

Fractions are rounded down to millionths of a node. The log's memory is in whole MiB, each 488 millionths, so the same
tasks fit on a node as by the log's own numbers.
Processors are the requested ones where these are known, like everywhere in this project. Lines without run time or
processors are dropped. So are jobs that 120 nodes cannot hold with one task per node, as batch scheduling runs them.
None of either is in the log: all 202,871 jobs are left. Run times are at least 1 s; times are whole seconds.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-C; the log: Parallel Workloads Archive,
HPC2N-2002-2.2-cln, which is not part of the project.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.sim.trace import SHORTEST_RUN_S, TOO_LARGE, TraceArrays, counted
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.fluid_trace import PARTS
from slurm_sns.sim.traces.swf import REQUESTED_TIME, read_fields, usable_lines

Column = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The cluster, "a 120-node dual-core cluster"; a GB is 2^20 KB.
NODES, NODE_PROCESSORS, NODE_GB = 120, 2, 2
NODE_KB = NODE_GB << 20
#: The smallest memory of a processor, and the one of a job whose memory is unknown.
MEMORY_FLOOR = PARTS // 10
WEEK_S = 7 * 86_400


def read_hpc2n(source: TraceFile, *, memory_floor: bool = True) -> TraceArrays:
    """The whole log as one trace on the log's own clock, which begins at its UnixStartTime.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    fields = read_fields(source, REQUESTED_TIME)
    usable, all_processors, unusable = usable_lines(fields)
    dropped = Counter(unusable)
    processors = all_processors.astype(np.int64)
    memory_kb = processor_memory_kb(fields["requested memory"], fields["memory"])
    paired = (processors % NODE_PROCESSORS == 0) & (NODE_PROCESSORS * memory_kb < NODE_KB)
    task_processors = np.where(paired, NODE_PROCESSORS, 1)
    tasks = processors // task_processors
    least = np.where((memory_kb < 0) | memory_floor, task_processors * MEMORY_FLOOR, 1)
    memory = np.maximum(task_processors * memory_kb * PARTS // NODE_KB, least)

    holds = (tasks <= NODES) & (memory <= PARTS)
    dropped[TOO_LARGE] = int(np.count_nonzero(usable & ~holds))
    kept = np.flatnonzero(usable & holds)
    if not kept.size:
        raise BadInput(f"{source.name}: no job can run on {NODES} nodes; valid: SWF with run times and processors")
    submit_s = _whole(fields["submit"])
    kept = kept[np.lexsort((fields["job"][kept], submit_s[kept]))]
    limit_s = fields["requested time"][kept]
    return TraceArrays(
        identity=fields["job"][kept].astype(np.int64),
        submit=submit_s[kept],
        run=np.maximum(_whole(fields["run time"][kept]), SHORTEST_RUN_S),
        tasks=tasks[kept],
        cores=task_processors[kept] * (PARTS // NODE_PROCESSORS),
        memory=memory[kept],
        limit=np.maximum(limit_s, 0),
        dropped=counted(dropped),
    )


def processor_memory_kb(requested_kb: Column, used_kb: Column) -> Integers:
    """The memory for each processor, the larger of both fields, in whole KB; -1 where it is unknown."""
    larger_kb = np.ceil(np.maximum(requested_kb, used_kb))
    return np.where(larger_kb > 0, larger_kb, -1).astype(np.int64)


def weeks(trace: TraceArrays) -> tuple[TraceArrays, ...]:
    """The trace in weeks of its clock, in which submit times count from the begin of the week.

    Our log has 182 weeks, each with jobs; from its first submit there would be 181. `dropped` is counted for the whole
    log only.
    """
    return tuple(week(trace, number) for number in range(1, number_of_weeks(trace) + 1))


def number_of_weeks(trace: TraceArrays) -> int:
    """How many weeks the trace's clock has until the last submit."""
    return int(trace.submit_s[-1] // WEEK_S) + 1


def week(trace: TraceArrays, number: int) -> TraceArrays:
    """One week of the trace, counted from 1; it may be without jobs."""
    begin_s = (number - 1) * WEEK_S
    begin, end = np.searchsorted(trace.submit_s, [begin_s, begin_s + WEEK_S]).tolist()
    jobs = trace.only(slice(begin, end))
    return replace(jobs, submit=jobs.submit - begin_s, dropped={})


def _whole(seconds: Column) -> Column:
    """Rounded to whole seconds, halves up."""
    return np.floor(seconds + 0.5)
