"""The published parameters of the Lublin-Feitelson model: for batch jobs, interactive jobs, and all jobs together.

Source: U. Lublin and D. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63 (2003), and the constants of the authors' program
(m_lublin99.c, Parallel Workloads Archive). All are for a machine of 128 nodes.
"""

import math
from dataclasses import dataclass, replace

from slurm_sns.errors import BadInput

#: The machine that the published sizes belong to.
PUBLISHED_NODES = 128
#: Machines that the sizes can be adapted to. Below 32 nodes the interactive jobs' middle is below their smallest size;
#: the upper limit is far above any real machine.
LEAST_NODES, MOST_NODES = 32, 1 << 16


@dataclass(frozen=True)
class Sizes:
    """The number of nodes of a job.

    Of all jobs, a share `serial` has one node and a share `power_of_two` a number that is rounded to a power of two.
    The log2 of a parallel job's number is uniform in [`low`, `medium`] with probability `probability`, else uniform in
    [`medium`, `high`].
    """

    serial: float
    power_of_two: float
    low: float
    medium: float
    high: float
    probability: float

    def for_machine(self, nodes: int) -> "Sizes":
        """The sizes on a machine of this many nodes: middle and largest move with its log2.

        So the middle stays as far below the largest as published, within the 1.5 to 3.5 that the authors prescribe.
        Their trace for 256 nodes (lublin_256) was made so: it fits a middle of 5.5, not of 4.5.

        Raises:
            BadInput: the model has no sizes for such a machine.
        """
        if not (LEAST_NODES <= nodes <= MOST_NODES and nodes.bit_count() == 1):
            raise BadInput(f"--nodes is {nodes}; valid: a power of two from {LEAST_NODES} to {MOST_NODES}")
        more = math.log2(nodes / PUBLISHED_NODES)
        return replace(self, medium=self.medium + more, high=self.high + more)


@dataclass(frozen=True)
class RunTimes:
    """The natural logarithm of a run time in seconds is hyper-gamma.

    With probability p it is from gamma(`a1`, `b1`), else from gamma(`a2`, `b2`), given as (shape, scale). p is
    `pa` * nodes + `pb`, kept in [0, 1]: large jobs run longer.
    """

    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float


@dataclass(frozen=True)
class Arrivals:
    """The gaps between submits, and the daily cycle.

    The natural logarithm of a gap is gamma(`aarr` * `arar`, `barr`): (`aarr`, `barr`) describes the rush hours, `arar`
    extends it to the whole day. The number of submits over the half hours of a day follows gamma(`anum`, `bnum`).
    """

    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float


@dataclass(frozen=True)
class JobType:
    """One stream of jobs of the model."""

    sizes: Sizes
    run_times: RunTimes
    arrivals: Arrivals


BATCH = JobType(
    Sizes(serial=0.2927, power_of_two=0.6686, low=1.2, medium=5.0, high=7.0, probability=0.875),
    RunTimes(a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986),
    Arrivals(aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519),
)
INTERACTIVE = JobType(
    Sizes(serial=0.1541, power_of_two=0.625, low=1.0, medium=3.0, high=5.5, probability=0.705),
    RunTimes(a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156),
    Arrivals(aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797),
)
#: All jobs as one stream, fitted to the logs without telling the two types apart.
COMBINED = JobType(
    Sizes(serial=0.244, power_of_two=0.576, low=0.8, medium=4.5, high=7.0, probability=0.86),
    RunTimes(a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78),
    Arrivals(aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225),
)

#: The streams that a trace is merged from, by the names of `sns workload lublin --set`.
PAPER_SET = "paper"
SETS = {
    PAPER_SET: (BATCH, INTERACTIVE),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
    "combined": (COMBINED,),
}
