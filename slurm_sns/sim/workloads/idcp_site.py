"""The machines of the site that `idcp` generates jobs for, and the programs that these jobs run.

Both are the same for every seed: a seed changes when jobs come, where to, and which program each of them runs.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import CORES, NodeArrays, amounts
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB, TraceSite
from slurm_sns.sim.workloads.idcp_parameters import IdcpParameters, Shares

Column = NDArray[np.float64]
Integers = NDArray[np.int64]

HOUR_S, DAY_S = 3600, 86_400
SMALLEST_SCALE, LARGEST_SCALE = 0.001, 10.0
#: The time limits that users choose from: 10 and 30 minutes, then in hours.
LIMITS_S = np.array([600, 1800, *(HOUR_S * hours for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168, 336))])
#: The seed of what is the same for every seed of the jobs.
FIXED_SEED = 2010
#: Far more than the mean run time needs to be exact to a millionth.
ROUNDS = 60
#: In place of no spread at all, by which one cannot divide.
SMALLEST_SPREAD = 1e-9


@dataclass(frozen=True)
class Programs:
    """Columns with one entry per program: those of low-priority jobs, of bursts, and of strong bursts (the last).

    `weight`: the share of low-priority jobs that run it. `run_s`: its typical run time, the mean before the longest
    run time is applied. `mean_run_s`: the mean after it. `spread`: the standard deviation of the logarithm of its run
    times at one time. `limit_s`: what its users ask for.
    """

    names: tuple[str, ...]
    weight: Column
    run_s: Column
    mean_run_s: Column
    spread: Column
    cores: Integers
    memory_mb: Integers
    limit_s: Integers

    @property
    def strong(self) -> int:
        """The program of strong bursts."""
        return len(self.names) - 1

    def nearest(self, run_s: float) -> int:
        """The program of ordinary bursts whose typical run time is nearest to this, by ratio."""
        bursts = np.flatnonzero(self.weight == 0)[:-1]
        return int(bursts[np.argmin(np.abs(np.log(self.run_s[bursts] / run_s)))])

    def low_work_s(self) -> float:
        """The mean work of a low-priority job, in core seconds."""
        return float(self.weight @ (self.mean_run_s * self.cores))


def idcp_site(scale: float, parameters: IdcpParameters) -> TraceSite:
    """The machines, pool by pool, in shuffled order within a pool, at least one in each.

    Each pool has a machine of the largest size, so that every job can run in every pool.

    Raises:
        BadInput: the scale is out of bounds.
    """
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise BadInput(f"--scale is {scale}; valid: {SMALLEST_SCALE} to {LARGEST_SCALE}")
    sizes = [Resources(cores, gb * MIB_PER_GB) for cores, gb, _ in parameters.machine_sizes]
    shares = tuple((at, share) for at, (_, _, share) in enumerate(parameters.machine_sizes))
    counts = [max(1, round(machines * scale)) for machines in parameters.pool_machines]
    names: list[str] = []
    capacity: list[Resources] = []
    for pool, count in enumerate(counts):
        size = _mixed(shares, count, np.random.default_rng([FIXED_SEED, pool, count]))
        size[0] = len(sizes) - 1
        capacity += [sizes[at] for at in size.tolist()]
        names += [f"p{pool + 1:02}n{number:05}" for number in range(1, count + 1)]
    pools = tuple(f"pool{number:02}" for number in range(1, len(counts) + 1))
    return TraceSite(NodeArrays(tuple(names), amounts(capacity)), pools, np.repeat(np.arange(len(counts)), counts))


def pool_cores(site: TraceSite) -> Column:
    """The cores of each pool."""
    return np.bincount(site.pool_of, weights=site.nodes.capacity[CORES]).astype(np.float64)


def programs(parameters: IdcpParameters) -> Programs:
    """The programs; the run times of low-priority ones are at equal steps of the share of jobs.

    So their mean and their tail are those of the log-normal distribution, not those of a sample of it.
    """
    fixed = np.random.default_rng(FIXED_SEED)
    low = parameters.programs
    weight = fixed.permutation(1 / np.sqrt(np.arange(1, low + 1)))
    weight /= weight.sum()
    middle = np.cumsum(weight) - weight / 2
    typical = np.exp(parameters.program_spread * np.array([NormalDist().inv_cdf(share) for share in middle]))
    low_run_s = _with_mean(typical, weight, 60 * parameters.low_run_min, parameters)
    low_cores = _mixed(parameters.job_cores, low, fixed)
    low_gb = low_cores * _mixed(parameters.job_gb_per_core, low, fixed)
    burst_run_s = 60 * np.append(
        np.geomspace(*parameters.high_run_min, parameters.high_programs), parameters.strong_run_min
    )
    bursts = len(burst_run_s)
    run_s = np.append(low_run_s, burst_run_s)
    burst_spread = np.append(np.full(bursts - 1, parameters.high_spread), parameters.job_spread)
    least, most = parameters.limit_factor
    factor = least * (most / least) ** fixed.random(low + bursts)
    return Programs(
        names=(
            *(f"low{number:03}" for number in range(1, low + 1)),
            *(f"high{number:02}" for number in range(1, bursts)),
            "strong",
        ),
        weight=np.append(weight, np.zeros(bursts)),
        run_s=run_s,
        mean_run_s=np.append(
            _capped_mean(low_run_s, _low_spread(parameters), parameters),
            _capped_mean(burst_run_s, burst_spread, parameters),
        ),
        spread=np.append(np.full(low, parameters.job_spread), burst_spread),
        cores=np.append(low_cores, np.ones(bursts, dtype=np.int64)),
        memory_mb=MIB_PER_GB * np.append(low_gb, np.full(bursts, parameters.high_gb)),
        limit_s=usual_limit(run_s * factor),
    )


def usual_limit(run_s: Column | Integers) -> Integers:
    """The smallest of the usual limits that is not below these times, otherwise the largest."""
    return LIMITS_S[np.minimum(np.searchsorted(LIMITS_S, run_s), len(LIMITS_S) - 1)]


def _mixed(shares: Shares, count: int, rng: np.random.Generator) -> Integers:
    """`count` values with these shares, in random order."""
    values, parts = zip(*shares, strict=True)
    ends = np.rint(np.cumsum(parts) / sum(parts) * count).astype(np.int64)
    return rng.permutation(np.repeat(np.array(values, dtype=np.int64), np.diff(ends, prepend=0)))


def _with_mean(typical: Column, weight: Column, mean_s: float, parameters: IdcpParameters) -> Column:
    """Run times in these ratios whose mean, with the longest run time applied, is `mean_s`."""
    spread = _low_spread(parameters)
    run_s = typical * mean_s / (weight @ typical)
    # It converges quickly, since the longest run time concerns few jobs.
    for _ in range(ROUNDS):
        run_s = run_s * mean_s / (weight @ _capped_mean(run_s, spread, parameters))
    return np.asarray(run_s, dtype=np.float64)


def _low_spread(parameters: IdcpParameters) -> float:
    """Of the run times of a low-priority program over its releases."""
    return math.hypot(parameters.job_spread, parameters.release_spread)


def _capped_mean(run_s: Column, spread: Column | float, parameters: IdcpParameters) -> Column:
    """The means of log-normal run times with these means and spreads, when none is longer than the longest."""
    longest_s = parameters.longest_run_days * DAY_S
    spread = np.maximum(spread, SMALLEST_SPREAD)
    distance = np.log(longest_s / run_s) / spread
    return run_s * _normal_cdf(distance - spread / 2) + longest_s * _normal_cdf(-distance - spread / 2)


def _normal_cdf(values: Column) -> Column:
    normal = NormalDist()
    return np.array([normal.cdf(value) for value in values.tolist()])
