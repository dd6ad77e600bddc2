"""The figures that the DFRS paper prints in its tables.

Source: Dynamic fractional resource scheduling (IPDPS 2010), tables I and II.
"""

from collections.abc import Mapping
from typing import NamedTuple

from slurm_sns.sim.reproduce.dfrs.runs import (
    ASAP_PER,
    DYNMCB8,
    GREEDY_PMTN,
    GREEDY_PMTN_MIGR,
    HPC2N,
    PAPER_NAMES,
    PER,
    SCALED,
    STRETCH_PER,
    UNSCALED,
)


class Factors(NamedTuple):
    """The degradation factors of an algorithm over the instances of a workload."""

    average: float
    deviation: float
    largest: float


#: By workload and algorithm.
TABLE_1: Mapping[str, Mapping[str, Factors]] = {
    workload: dict(zip(PAPER_NAMES, rows, strict=True))
    for workload, rows in {
        SCALED: (
            Factors(435.32, 239.37, 1470.30),
            Factors(392.78, 227.85, 1454.26),
            Factors(284.07, 222.33, 2288.65),
            Factors(9.45, 41.30, 509.05),
            Factors(10.86, 46.35, 509.04),
            Factors(108.78, 183.77, 1435.44),
            Factors(3.55, 2.62, 16.38),
            Factors(2.62, 1.66, 12.77),
            Factors(3.59, 2.53, 16.38),
        ),
        UNSCALED: (
            Factors(448.74, 238.38, 1128.44),
            Factors(410.06, 226.41, 989.91),
            Factors(239.76, 217.47, 1128.32),
            Factors(3.28, 10.59, 84.16),
            Factors(3.61, 13.81, 102.69),
            Factors(36.95, 32.16, 162.33),
            Factors(4.83, 3.90, 21.30),
            Factors(3.28, 2.03, 11.00),
            Factors(4.89, 3.77, 20.97),
        ),
        HPC2N: (
            Factors(469.51, 581.12, 4422.00),
            Factors(402.93, 500.13, 3136.92),
            Factors(134.32, 268.66, 2129.98),
            Factors(1.72, 6.63, 89.54),
            Factors(1.77, 6.87, 92.87),
            Factors(67.19, 229.96, 2241.83),
            Factors(14.73, 64.41, 668.24),
            Factors(4.23, 3.05, 24.68),
            Factors(16.01, 78.24, 900.45),
        ),
    }.items()
}


class Cost(NamedTuple):
    """What an algorithm's preemptions or migrations cost: a mean over traces and the largest of them."""

    average: float
    largest: float


#: Table II: of each algorithm the costs of preemptions and of migrations, as GB/s, per hour and per job.
TABLE_2: Mapping[str, Mapping[str, Cost]] = {
    name: {
        "preemption GB/s": Cost(*row[0]),
        "migration GB/s": Cost(*row[1]),
        "preemptions per hour": Cost(*row[2]),
        "migrations per hour": Cost(*row[3]),
        "preemptions per job": Cost(*row[4]),
        "migrations per job": Cost(*row[5]),
    }
    for name, row in {
        GREEDY_PMTN: ((0.10, 0.27), (0.00, 0.00), (12.26, 39.24), (0.00, 0.00), (1.26, 4.44), (0.00, 0.00)),
        GREEDY_PMTN_MIGR: ((0.05, 0.14), (0.03, 0.12), (5.42, 20.88), (8.99, 34.56), (0.58, 2.64), (0.90, 2.58)),
        DYNMCB8: ((0.53, 1.48), (1.46, 2.90), (84.99, 294.48), (604.55, 1329.84), (9.32, 23.61), (71.54, 110.19)),
        PER: ((0.60, 1.31), (0.26, 0.77), (45.58, 110.16), (48.80, 141.84), (7.63, 32.32), (6.18, 20.77)),
        ASAP_PER: ((0.59, 1.34), (0.27, 0.77), (44.05, 105.84), (49.16, 142.92), (7.33, 30.87), (6.08, 20.35)),
        STRETCH_PER: ((0.38, 0.87), (0.51, 1.11), (33.78, 76.32), (88.32, 197.64), (7.15, 27.68), (16.11, 40.61)),
    }.items()
}
