"""Logs of real sites, with the machines on which they ran; the logs are not part of the project (`shared_file`).

* MetaCentrum wagap 2013: zewura and zegox, as in the log's header.
* HPC2N (Parallel Workloads Archive): Seth, 120 nodes of 2 processors; 2 GB each assumed.
* UB-HPC, a week of the University at Buffalo: the CPU nodes of its general-compute partition, as in its slurm.conf.
* SDSC-SP2 and KTH-SP2 (Parallel Workloads Archive): nodes of one processor; the memory is not recorded.
* Trinity (LANL): nodes of 32 cores, of which jobs take whole ones; 128 GB each assumed.
"""

from dataclasses import dataclass

import numpy as np

from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import CORES, MEMORY, NodeArrays, amounts
from slurm_sns.sim.pages.running import shared_file
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB, TraceArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.traces.slurm_events import read_events
from slurm_sns.sim.traces.swf import read_swf

KB_PER_MIB = 1024
DAY_S = 86_400
#: UB-HPC's slurm.conf: the partition, and the memory of a job that asks for none, for each core.
PARTITION, MIB_PER_CORE = "general-compute", 2800


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

    def records(self, pool: NodeArrays, beta: float, *, user_estimates: bool = False) -> TraceArrays:
        """The jobs with their arrivals scaled, and with their owners' time limits if `user_estimates`.

        Raises:
            BadInput: the file is missing or is not a log.
        """
        if not self.is_events:
            return read_swf(self.source(), pool, load_factor=beta, user_estimates=user_estimates)
        return read_events(
            self.source(),
            pool,
            partition=PARTITION,
            memory_mb_per_core=MIB_PER_CORE,
            load_factor=beta,
            user_estimates=user_estimates,
        )


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
    "SDSC-SP2": Log(("SDSC-SP2-1998-4.2-cln.swf.gz",), ((128, 1, SMALLEST_MEMORY_MB),)),
    "KTH-SP2": Log(("KTH-SP2-1996-2.1-cln.swf.gz",), ((100, 1, SMALLEST_MEMORY_MB),)),
    "Trinity": Log(("trinity-2016-completed-rebuilt.swf.gz",), ((9408, 32, 128 * MIB_PER_GB),)),
}
#: Those that record memory. On the others every way of placing gives the same schedule.
WITH_MEMORY = ("wagap-2013", "HPC2N", "UB-HPC")


def load_of(records: TraceArrays, pool: NodeArrays) -> float:
    """What the jobs demand of the scarcer of cores and memory, as a part of its capacity from first to last submit."""
    held = np.array([[nodes * cores, nodes * memory_mb] for nodes, cores, memory_mb, _ in records.kinds], np.float64)
    demanded = (held[records.kind] * records.run_s[:, np.newaxis]).sum(axis=0)
    span_s = float(records.submit_s[-1] - records.submit_s[0])
    return float((demanded / pool.capacity[[CORES, MEMORY]].sum(axis=1)).max() / span_s)
