"""Generate the jobs of a NetBatch pool, part by part, with the properties that the paper prints.

Source: Max-Jobs paper (JSSPP 2013), section 2, figures 1, 2, 5 and 6; the thesis, table 2.1. The traces themselves are
public (Parallel Workloads Archive, l_intel_netbatch) but not part of the project.

Assumptions. Time is a sequence of phases of about 20 minutes (6000 jobs of pool A at scale 1): ordinary ones, phases of
little memory, and bursts of about 5 minutes, some of jobs of several cores, some of jobs of much memory, in the pool's
proportions (shuffled decks of 200 phases). Phases last as long at every scale, so that a pool scaled in machines and
jobs sees the same bursts in time; buckets of 1000 jobs show them at scale 1 only. Inside a phase users submit batches
of jobs of equal cores and memory, 8 jobs on average. Batches arrive by a Poisson process, the jobs of a batch within
about 20 s of each other. Jobs of several cores have 2, 4 or 8. Cores and memory of a batch are independent. Run times
are log-normal (sigma 1.4, at most a day) and independent of size; four fifths of their variance is common to a batch.
Their mean is such that the load of the scarcer resource is the pool's `binding_load`. There is no daily cycle. `Times`
of a pool holds these numbers.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch_pools import DAYS, NetBatchPool

DAY_S = 86_400
DECK = 200
SPREAD_OF_PHASE = 0.6
WITHIN_BATCH_S = 20.0
COMMON_TO_BATCH = 0.8
LONGEST_RUN_S = 86_400
#: Between these seconds of a day the rate of arrivals is taken as constant.
CLOCK_STEP_S = 60.0

#: The core counts of jobs with several cores, and their shares.
WIDE = ((2, 4, 8), (0.35, 0.50, 0.15))
#: Memory sizes in GB and their shares: ordinary (without the pool's share of 4 GB), large, and in low phases.
ORDINARY = ((1, 2, 6, 8), (0.18, 0.34, 0.14, 0.34))
LARGE = ((12, 16, 24, 32, 48, 64), (0.08, 0.32, 0.16, 0.32, 0.08, 0.04))
LOW = ((1, 2, 4), (0.55, 0.35, 0.10))

Mix = tuple[tuple[int, ...], tuple[float, ...]]
Column = NDArray[np.float64]


class SubmittedJobs(NamedTuple):
    """Jobs by submit time: times in seconds, cores, memory in GB, and users numbered from 1."""

    submit_s: Column
    run_s: Column
    cores: Column
    memory_gb: Column
    user: Column


class Phase(NamedTuple):
    """Of each phase: the share of jobs of several cores, of jobs of much memory, and whether it has little memory.

    `mean_s` is how long phases of its kind last on average.
    """

    wide: Column
    large: Column
    low: NDArray[np.bool_]
    mean_s: Column


def generate(pool: NetBatchPool, *, scale: float, seed: int, days: float = DAYS) -> Iterator[SubmittedJobs]:
    """The jobs of `days` days; the same arguments give the same jobs."""
    rng = np.random.default_rng([seed, ord(pool.name)])
    left = pool.jobs_at(scale, days)
    interarrival_s = DAYS * DAY_S / (pool.jobs * scale)
    mean_run_s = mean_run(pool)
    users = max(1, round(pool.users * min(1.0, scale)))
    now_s = 0.0
    while left > 0:
        part, now_s = _deck(pool, rng, now_s, interarrival_s=interarrival_s, mean_run_s=mean_run_s, users=users)
        yield _with_daily_cycle(SubmittedJobs(*(column[:left] for column in part)), pool.times.daily_swing)
        left -= len(part.submit_s)


def _with_daily_cycle(part: SubmittedJobs, swing: float) -> SubmittedJobs:
    """The jobs at a rate that is (1 + swing sin) times as high over each day; whole days keep their number of jobs."""
    if not swing:
        return part
    days = part.submit_s.max() / DAY_S + 1
    clock_s = np.arange(0, days * DAY_S, CLOCK_STEP_S)
    turn = 2 * np.pi / DAY_S
    arrived = clock_s + swing * (1 - np.cos(turn * clock_s)) / turn  # the integral of the rate, in seconds at the mean
    return part._replace(submit_s=np.floor(np.interp(part.submit_s, arrived, clock_s)))


def mean_run(pool: NetBatchPool) -> float:
    """The mean run time in seconds that gives the pool its binding load."""
    phases, times = pool.phases, pool.times
    calm = (1 - phases.wide_bursts) * (1 - phases.large_bursts)
    length_s = calm * times.phase_s + (1 - calm) * times.burst_s
    of_time = times.burst_s / length_s  # the share of time of a kind of bursts, by its share of the phases
    wide = _blend(phases.wide, phases.wide_bursts * of_time, phases.wide_in_burst)
    large = _blend(phases.large, phases.large_bursts * of_time, phases.large_in_burst)
    low_phases = phases.low_phases * times.phase_s / length_s
    cores = 1 + wide * (_mean(WIDE) - 1)
    small_gb = phases.share_of_4_gb * 4 + (1 - phases.share_of_4_gb) * _mean(ORDINARY)
    ordinary_gb = large * _mean(LARGE) + (1 - large) * small_gb
    memory_gb = (1 - low_phases) * ordinary_gb + low_phases * _mean(LOW)
    capacity = pool.nodes(1.0).capacity.sum(axis=1)
    seconds = DAYS * DAY_S / pool.jobs  # of the month, per job
    by_cores, by_memory = capacity[CORES] / cores, capacity[MEMORY] / MIB_PER_GB / memory_gb
    return float(pool.binding_load * seconds * min(by_cores, by_memory))


def _blend(ordinary: tuple[float, float], share: float, burst: tuple[float, float]) -> float:
    return (1 - share) * sum(ordinary) / 2 + share * sum(burst) / 2


def _mean(mix: Mix) -> float:
    return sum(value * share for value, share in zip(*mix, strict=True))


def _phases(pool: NetBatchPool, rng: np.random.Generator) -> Phase:
    """A shuffled deck: the number of phases of each kind is the same in every deck."""
    phases = pool.phases
    wide, is_wide = _bursts(rng, phases.wide, phases.wide_in_burst, phases.wide_bursts)
    large, is_large = _bursts(rng, phases.large, phases.large_in_burst, phases.large_bursts)
    low = np.zeros(DECK, np.bool_)
    count = int(is_large.sum())
    low[count : count + round(phases.low_phases * DECK)] = True  # never in a burst of much memory
    order, other = rng.permutation(DECK), rng.permutation(DECK)
    mean_s = np.where(is_wide[other] | is_large[order], pool.times.burst_s, pool.times.phase_s)
    return Phase(wide[other], large[order], low[order], mean_s)


def _bursts(
    rng: np.random.Generator, ordinary: tuple[float, float], in_burst: tuple[float, float], share: float
) -> tuple[Column, NDArray[np.bool_]]:
    """The shares of jobs in a deck's phases, bursts first, and which phases are bursts."""
    count = round(share * DECK)
    shares = rng.uniform(*ordinary, DECK)
    shares[:count] = rng.uniform(*in_burst, count)
    return shares, np.arange(DECK) < count


def _deck(
    pool: NetBatchPool,
    rng: np.random.Generator,
    begin_s: float,
    *,
    interarrival_s: float,
    mean_run_s: float,
    users: int,
) -> tuple[SubmittedJobs, float]:
    """The jobs of one deck of phases that begins at `begin_s`, and the second at which it ends.

    `interarrival_s` is the mean time between jobs, `mean_run_s` their mean run time.
    """
    phases = _phases(pool, rng)
    length = phases.mean_s / interarrival_s * rng.lognormal(-(SPREAD_OF_PHASE**2) / 2, SPREAD_OF_PHASE, DECK)
    mean_batch, spread = pool.times.batch, pool.times.spread_of_run
    batch = rng.geometric(1 / mean_batch, int(length.sum() / mean_batch) + 1)
    phase = np.minimum(np.searchsorted(np.cumsum(length), np.cumsum(batch)), DECK - 1)
    count = len(batch)
    cores = np.where(rng.random(count) < phases.wide[phase], _draw(rng, WIDE, count), 1)
    small = np.where(rng.random(count) < pool.phases.share_of_4_gb, 4, _draw(rng, ORDINARY, count))
    memory = np.where(rng.random(count) < phases.large[phase], _draw(rng, LARGE, count), small)
    memory = np.where(phases.low[phase], _draw(rng, LOW, count), memory)
    start_s = begin_s + np.cumsum(rng.exponential(interarrival_s * batch.mean(), count))
    end_s = float(start_s[-1])

    of_job = np.repeat(np.arange(count), batch)
    submit_s = np.minimum(start_s[of_job] + rng.exponential(WITHIN_BATCH_S, len(of_job)), end_s)
    common = rng.normal(0, np.sqrt(COMMON_TO_BATCH) * spread, count)[of_job]
    own = rng.normal(0, np.sqrt(1 - COMMON_TO_BATCH) * spread, len(of_job))
    run_s = np.clip(mean_run_s * np.exp(common + own - spread**2 / 2), 1, LONGEST_RUN_S)
    # A few users submit most of the batches: user numbers follow the square of a uniform number.
    user = 1 + np.floor(users * rng.random(count) ** 2)
    order = np.argsort(submit_s, kind="stable")
    of_job = of_job[order]
    part = SubmittedJobs(
        np.floor(submit_s[order]),
        np.ceil(run_s[order]),
        cores[of_job].astype(np.float64),
        memory[of_job].astype(np.float64),
        user[of_job],
    )
    return part, end_s


def _draw(rng: np.random.Generator, mix: Mix, count: int) -> NDArray[Any]:
    values, shares = mix
    return rng.choice(np.array(values), count, p=np.array(shares))
