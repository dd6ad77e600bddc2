"""Generate the jobs of a NetBatch pool, part by part, with the properties that the paper prints.

Source: Max-Jobs paper (JSSPP 2013), section 2, figures 1, 2, 5 and 6; the thesis, table 2.1. The traces themselves are
public (Parallel Workloads Archive, l_intel_netbatch) but not part of the project.

Assumptions. Time is a sequence of phases of about 20 minutes (6000 jobs of pool A at scale 1): ordinary ones, bursts of
jobs of several cores, bursts of jobs of much memory, and phases of little memory, in the pool's proportions (shuffled
decks of 50 phases). Phases last as long at every scale, so that a pool scaled in machines and jobs sees the same bursts
in time; buckets of 1000 jobs show them at scale 1 only. Inside a phase users submit batches of jobs of
equal cores and memory, 8 jobs on average. Batches arrive by a Poisson process, the jobs of a batch within about 20 s of
each other. Jobs of several cores have 2, 4 or 8. Cores and memory of a batch are independent. Run times are log-normal
(sigma 1.4, at most a day) and independent of size; four fifths of their variance is common to a batch. Their mean is
such that the load of the scarcer resource is the pool's `binding_load`. There is no daily cycle.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.node_arrays import CORES, MEMORY
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch_pools import DAYS, NetBatchPool

DAY_S = 86_400
DECK = 50
MEAN_PHASE_S, SPREAD_OF_PHASE = 1200, 0.6
MEAN_BATCH = 8
WITHIN_BATCH_S = 20.0
SPREAD_OF_RUN, COMMON_TO_BATCH = 1.4, 0.8
LONGEST_RUN_S = 86_400

#: The core counts of jobs with several cores, and their shares.
WIDE = ((2, 4, 8), (0.35, 0.50, 0.15))
#: Memory sizes in GB and their shares: ordinary (without the pool's share of 4 GB), large, and in low phases.
ORDINARY = ((1, 2, 6, 8), (0.18, 0.34, 0.14, 0.34))
LARGE = ((12, 16, 24, 32, 48, 64), (0.08, 0.32, 0.16, 0.32, 0.08, 0.04))
LOW = ((1, 2, 4), (0.55, 0.35, 0.10))

Mix = tuple[tuple[int, ...], tuple[float, ...]]
Column = NDArray[np.float64]


class Part(NamedTuple):
    """Jobs by submit time: times in seconds, cores, memory in GB, and users numbered from 1."""

    submit_s: Column
    run_s: Column
    cores: Column
    memory_gb: Column
    user: Column


class Phase(NamedTuple):
    """Of each phase: the share of jobs of several cores, of jobs of much memory, and whether it has little memory."""

    wide: Column
    large: Column
    low: NDArray[np.bool_]


class DeckStart(NamedTuple):
    """When a deck of phases begins, the mean time between jobs, their mean run time, and the number of users."""

    begin_s: float
    interarrival_s: float
    mean_run_s: float
    users: int


def generate(pool: NetBatchPool, *, scale: float, seed: int, days: float = DAYS) -> Iterator[Part]:
    """The jobs of `days` days; the same arguments give the same jobs."""
    rng = np.random.default_rng([seed, ord(pool.name)])
    left = pool.jobs_at(scale, days)
    interarrival_s = DAYS * DAY_S / (pool.jobs * scale)
    mean_run_s = mean_run(pool)
    users = max(1, round(pool.users * min(1.0, scale)))
    now_s = 0.0
    while left > 0:
        part, now_s = _deck(pool, rng, DeckStart(now_s, interarrival_s, mean_run_s, users))
        yield Part(*(column[:left] for column in part))
        left -= len(part.submit_s)


def mean_run(pool: NetBatchPool) -> float:
    """The mean run time in seconds that gives the pool its binding load."""
    phases = pool.phases
    wide = _blend(phases.wide, phases.wide_bursts, phases.wide_in_burst)
    large = _blend(phases.large, phases.large_bursts, phases.large_in_burst)
    cores = 1 + wide * (_mean(WIDE) - 1)
    small_gb = phases.share_of_4_gb * 4 + (1 - phases.share_of_4_gb) * _mean(ORDINARY)
    ordinary_gb = large * _mean(LARGE) + (1 - large) * small_gb
    memory_gb = (1 - phases.low_phases) * ordinary_gb + phases.low_phases * _mean(LOW)
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
    wide = rng.uniform(*phases.wide, DECK)
    count = round(phases.wide_bursts * DECK)
    wide[:count] = rng.uniform(*phases.wide_in_burst, count)
    large = rng.uniform(*phases.large, DECK)
    count = round(phases.large_bursts * DECK)
    large[:count] = rng.uniform(*phases.large_in_burst, count)
    low = np.zeros(DECK, np.bool_)
    low[count : count + round(phases.low_phases * DECK)] = True  # never in a burst of much memory
    order = rng.permutation(DECK)
    return Phase(rng.permutation(wide), large[order], low[order])


def _deck(pool: NetBatchPool, rng: np.random.Generator, start: DeckStart) -> tuple[Part, float]:
    """The jobs of one deck of phases, and the second at which it ends."""
    begin_s, interarrival_s, mean_run_s, users = start
    phases = _phases(pool, rng)
    length = MEAN_PHASE_S / interarrival_s * rng.lognormal(-(SPREAD_OF_PHASE**2) / 2, SPREAD_OF_PHASE, DECK)
    batch = rng.geometric(1 / MEAN_BATCH, int(length.sum() / MEAN_BATCH) + 1)
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
    common = rng.normal(0, np.sqrt(COMMON_TO_BATCH) * SPREAD_OF_RUN, count)[of_job]
    own = rng.normal(0, np.sqrt(1 - COMMON_TO_BATCH) * SPREAD_OF_RUN, len(of_job))
    run_s = np.clip(mean_run_s * np.exp(common + own - SPREAD_OF_RUN**2 / 2), 1, LONGEST_RUN_S)
    # A few users submit most of the batches: user numbers follow the square of a uniform number.
    user = 1 + np.floor(users * rng.random(count) ** 2)
    order = np.argsort(submit_s, kind="stable")
    of_job = of_job[order]
    part = Part(
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
