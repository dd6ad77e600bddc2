"""The streams of jobs that `idcp` draws from: how many jobs of which kind are expected in each hour.

Low-priority jobs come in streams for each group of pools: for any pool, for the pools of the group, and for each pool
that is named. Their rates follow the time of day, the weekend and slow levels. Each burst has a stream for each of its
pools.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.traces.pool_trace import ANY_POOL, TraceSite
from slurm_sns.sim.workloads.idcp_bursts import DAY_HOURS, Burst, group_pools
from slurm_sns.sim.workloads.idcp_parameters import IdcpParameters
from slurm_sns.sim.workloads.idcp_site import HOUR_S, Column, Integers, Programs, pool_cores

LOW, HIGH = 0, 1
#: The program of a stream whose jobs run any of the low-priority programs.
ANY_PROGRAM = -1
#: The local hour with the most submits, and the days of a week before the weekend. Assumed.
PEAK_HOUR, WORKING_DAYS = 15, 5


class StreamSetting(NamedTuple):
    """What jobs are generated for: the site, its programs, and the parameters of both."""

    site: TraceSite
    programs: Programs
    parameters: IdcpParameters


class Streams(NamedTuple):
    """One entry per stream and hour: what is expected, and what the jobs have in common."""

    hour: Integers
    jobs: Column
    priority: Integers
    pool: Integers
    allowed: Integers
    program: Integers


def all_streams(
    setting: StreamSetting, hours: int, bursts: Sequence[Burst], levels: np.random.Generator, noise: np.random.Generator
) -> Streams:
    """The streams of so many hours, ordered by hour; `levels` and `noise` are for low priority and for bursts."""
    rhythm = _rhythm(hours, setting.parameters, levels)
    return _in_order([*_low_streams(setting, rhythm), *_burst_streams(setting, bursts, hours, noise)])


def allowed_sets(pools: int, bursts: Sequence[Burst], parameters: IdcpParameters) -> NDArray[np.bool_]:
    """All pools, then the pools of each group, then those of each burst."""
    rows = [group_pools(group, parameters).tolist() for group in range(parameters.groups)]
    rows += [list(burst.pools) for burst in bursts]
    sets = np.zeros((1 + len(rows), pools), dtype=np.bool_)
    sets[0] = True
    for number, row in enumerate(rows, start=1):
        sets[number, row] = True
    return sets


def _rhythm(hours: int, parameters: IdcpParameters, rng: np.random.Generator) -> Column:
    """The arrival rate over its mean, shape (groups, hours)."""
    now = np.arange(hours)
    site = parameters.site_spread * _slow_level(hours, parameters, rng)
    rates = []
    for _ in range(parameters.groups):
        local = now + rng.integers(DAY_HOURS)
        of_day = 1 + parameters.day_amplitude * np.cos(2 * np.pi * (local - PEAK_HOUR) / DAY_HOURS)
        of_week = np.where(local // DAY_HOURS % 7 < WORKING_DAYS, 1, parameters.weekend)
        level = np.exp(site + parameters.group_spread * _slow_level(hours, parameters, rng))
        rates.append(of_day * of_week * level)
    return np.array(rates)


def _slow_level(hours: int, parameters: IdcpParameters, rng: np.random.Generator) -> Column:
    """A normal variable by the hour, autoregressive from day to day and linear in between."""
    kept = math.exp(-1 / parameters.correlation_days)
    level = [float(rng.standard_normal())]
    for step in rng.standard_normal(hours // DAY_HOURS + 1).tolist():
        level.append(kept * level[-1] + math.sqrt(1 - kept**2) * step)
    return np.interp(np.arange(hours) / DAY_HOURS, np.arange(len(level)), level)


def _named_shares(cores: Column, parameters: IdcpParameters) -> Column:
    """The share of all low-priority jobs that names each pool: what round robin leaves below the mean load."""
    round_robin = (1 - parameters.named_share) / len(cores)
    left = np.maximum(cores / cores.sum() - round_robin, 0)
    # Nothing is left when nobody names a pool and all pools are alike.
    return np.asarray(parameters.named_share * left / max(left.sum(), np.finfo(np.float64).tiny), dtype=np.float64)


def _low_streams(setting: StreamSetting, rhythm: Column) -> Iterator[Streams]:
    site, known, parameters = setting
    cores = pool_cores(site)
    named = _named_shares(cores, parameters)
    groups = [group_pools(group, parameters) for group in range(parameters.groups)]
    others = [(1 - parameters.named_share) * len(pools) / len(cores) for pools in groups]
    share = np.array([other + named[pools].sum() for other, pools in zip(others, groups, strict=True)])
    jobs_per_hour = parameters.low_load * cores.sum() * HOUR_S / known.low_work_s()
    # The mean of the rhythm over the period, all groups together, is 1.
    rates = jobs_per_hour * rhythm * share.sum() / (share @ rhythm.mean(axis=1))
    hour = np.arange(rhythm.shape[1])
    for group, (rate, pools, other) in enumerate(zip(rates, groups, others, strict=True)):
        bound = parameters.bound_share
        yield _stream(hour, rate * other * (1 - bound))
        yield _stream(hour, rate * other * bound, allowed=1 + group)
        for pool in pools.tolist():
            yield _stream(hour, rate * named[pool], pool=pool)


def _burst_streams(
    setting: StreamSetting, bursts: Sequence[Burst], hours: int, rng: np.random.Generator
) -> Iterator[Streams]:
    site, known, parameters = setting
    cores = pool_cores(site)
    for number, burst in enumerate(bursts):
        hour = burst.hours(parameters)
        hour = hour[hour < hours]
        work_s = float(known.mean_run_s[burst.program] * known.cores[burst.program])
        for pool in burst.pools:
            jobs = burst.height * cores[pool] * HOUR_S / work_s * _noise(len(hour), parameters, rng)
            allowed = 1 + parameters.groups + number
            yield _stream(hour, jobs, priority=HIGH, pool=pool, allowed=allowed, program=burst.program)
            surge = parameters.surge_load * cores[pool] * HOUR_S / known.low_work_s()
            yield _stream(hour, np.full(len(hour), surge), pool=pool)


def _noise(count: int, parameters: IdcpParameters, rng: np.random.Generator) -> Column:
    """Factors of mean 1 by the hour."""
    if parameters.wave_spread == 0:
        return np.ones(count)
    variance = parameters.wave_spread**2
    return rng.gamma(1 / variance, variance, count)


def _stream(
    hour: Integers,
    jobs: Column,
    *,
    priority: int = LOW,
    pool: int = ANY_POOL,
    allowed: int = 0,
    program: int = ANY_PROGRAM,
) -> Streams:
    same = (np.full(len(hour), value) for value in (priority, pool, allowed, program))
    return Streams(hour, jobs, *same)


def _in_order(streams: Sequence[Streams]) -> Streams:
    """All streams together, hour by hour."""
    columns = [np.concatenate(column) for column in zip(*streams, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    hour, jobs, *same = (column[order] for column in columns)
    return Streams(hour, jobs, *same)
