"""Compare the waits of jobs under Slurm alone and under slurm_sns: by groups of jobs, with intervals over the weeks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.coverage.sacct import job_text
from slurm_sns.sim.site_report.bootstrap import RatioInterval, ratio_interval
from slurm_sns.sim.trace import Flags, Integers, Kind

#: A start that is later or earlier by more than this is one that its owner notices.
NOTICED_S = 300
LONGEST_WAITS = 10
#: What admins call the sizes of jobs.
SIZES = ("1 core", "2 cores or more of one node", "several nodes")


@dataclass(frozen=True)
class Waits:
    """The measured jobs of all weeks, as columns: their waits by the record, under Slurm alone, and under slurm_sns."""

    identity: Integers
    week: Integers
    partition: Integers
    size: Integers
    nodes: Integers
    cores: Integers
    recorded_s: Integers
    slurm_s: Integers
    sns_s: Integers


class Compared(NamedTuple):
    """A group of jobs. Waits are means and 95th percentiles, in seconds; `difference_s` is the mean of slurm_sns' less.

    `interval` is that of the difference, None where there are too few weeks. `earlier` and `later` are the parts of the
    jobs that start more than `NOTICED_S` earlier or later under slurm_sns.
    """

    name: str
    jobs: int
    recorded: tuple[float, float]
    slurm: tuple[float, float]
    sns: tuple[float, float]
    difference_s: float
    interval: RatioInterval | None
    earlier: float
    later: float


class LongerWait(NamedTuple):
    """A job that waits longer under slurm_sns."""

    job: str
    partition: str
    nodes: int
    cores: int
    slurm_s: int
    sns_s: int


def size_of(kinds: Sequence[Kind]) -> NDArray[np.int64]:
    """The size of the jobs of each kind, as a place in `SIZES`; cores are those on each node."""
    return np.array([2 if nodes > 1 else int(cores > 1) for nodes, cores, _, _ in kinds], np.int64)


def compared(waits: Waits, name: str, rows: Flags, seed: int) -> Compared:
    """These jobs, of which there is at least one."""
    weeks = int(waits.week.max()) + 1
    difference = (waits.sns_s - waits.slurm_s)[rows]
    of_week = waits.week[rows]
    by_week, jobs = np.bincount(of_week, difference, weeks), np.bincount(of_week, minlength=weeks)
    return Compared(
        name,
        len(difference),
        _mean_and_high(waits.recorded_s[rows]),
        _mean_and_high(waits.slurm_s[rows]),
        _mean_and_high(waits.sns_s[rows]),
        float(difference.mean()),
        ratio_interval(by_week.astype(np.float64), jobs.astype(np.float64), seed),
        float((difference < -NOTICED_S).mean()),
        float((difference > NOTICED_S).mean()),
    )


def by_group(waits: Waits, group: Integers, names: Sequence[str], seed: int) -> list[Compared]:
    """The jobs by their group, a place in `names`; groups without jobs are left out."""
    there = [(at, name) for at, name in enumerate(names) if (group == at).any()]
    return [compared(waits, name, group == at, seed) for at, name in there]


def longest(waits: Waits, partitions: Sequence[str]) -> list[LongerWait]:
    """The jobs that would lose most time, of equal ones those with the smaller numbers first."""
    more = waits.sns_s - waits.slurm_s
    first = np.lexsort((waits.identity, -more))[:LONGEST_WAITS]
    columns = (waits.identity, waits.partition, waits.nodes, waits.cores, waits.slurm_s, waits.sns_s)
    return [
        LongerWait(job_text(job), partitions[partition], *rest)
        for job, partition, *rest in zip(*(column[first[more[first] > 0]].tolist() for column in columns), strict=True)
    ]


def _mean_and_high(waits_s: Integers) -> tuple[float, float]:
    return float(waits_s.mean()), float(np.percentile(waits_s, 95))
