"""The bursts of high-priority jobs that `idcp` generates: when they come, and to which pools.

A burst demands cores in some pools of one group for hours to a week. A longer one than `wave_hours` does so in that
many hours of each day. Its jobs name one of its pools, in proportion to cores, and may run in these pools only.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.workloads.idcp_parameters import IdcpParameters
from slurm_sns.sim.workloads.idcp_site import HOUR_S, Programs

DAY_HOURS, WEEK_HOURS = 24, 168


class Burst(NamedTuple):
    """Times in whole hours of the trace, pools by place, the load in these pools, and the program that all jobs run."""

    begin_h: int
    duration_h: int
    pools: tuple[int, ...]
    height: float
    program: int

    def hours(self, parameters: IdcpParameters) -> NDArray[np.int64]:
        """The hours in which it demands cores."""
        passed = np.arange(self.duration_h)
        return self.begin_h + passed[passed % DAY_HOURS < parameters.wave_hours]


def ordinary_bursts(
    hours: int, programs: Programs, parameters: IdcpParameters, rng: np.random.Generator
) -> list[Burst]:
    """The bursts that begin in so many hours: a Poisson process, durations and heights independent of each other."""
    bursts = []
    for begin_h in np.sort(rng.integers(0, hours, rng.poisson(parameters.bursts_per_week * hours / WEEK_HOURS))):
        duration_h = _duration_h(parameters, rng.random())
        members = group_pools(int(rng.integers(parameters.groups)), parameters)
        count = int(rng.integers(parameters.burst_pools[0], parameters.burst_pools[1] + 1))
        runs = math.exp(rng.uniform(*np.log(parameters.runs_per_burst)))
        bursts.append(
            Burst(
                int(begin_h),
                duration_h,
                _some(members, count, rng),
                float(rng.uniform(*parameters.burst_height)),
                programs.nearest(duration_h * HOUR_S / runs),
            )
        )
    return bursts


def strong_bursts(programs: Programs, parameters: IdcpParameters, rng: np.random.Generator) -> list[Burst]:
    """The bursts of the fortnight, each in another group as long as there are groups."""
    groups = np.resize(rng.permutation(parameters.groups), len(parameters.strong_begin_days)).tolist()
    return [
        Burst(
            round(DAY_HOURS * (parameters.warm_up_days + begin_days)),
            round(DAY_HOURS * parameters.strong_days),
            _some(group_pools(group, parameters), parameters.strong_pools, rng),
            parameters.strong_height,
            programs.strong,
        )
        for group, begin_days in zip(groups, parameters.strong_begin_days, strict=True)
    ]


def group_pools(group: int, parameters: IdcpParameters) -> NDArray[np.int64]:
    """The pools of a group: every so many in the list, so that round robin treats its pools alike."""
    return np.arange(group, len(parameters.pool_machines), parameters.groups)


def _some(members: NDArray[np.int64], count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """So many of the pools, all if there are fewer."""
    return tuple(np.sort(rng.choice(members, min(count, len(members)), replace=False)).tolist())


def _duration_h(parameters: IdcpParameters, uniform: float) -> int:
    """A bounded Pareto variable from a uniform one."""
    tail = parameters.burst_tail
    least, most = parameters.burst_hours
    between = least**-tail - uniform * (least**-tail - most**-tail)
    return max(1, round(math.pow(between, -1 / tail)))
