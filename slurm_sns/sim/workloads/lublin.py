"""Generate parallel jobs by the Lublin-Feitelson model: sizes, run times and submit times.

Each stream of the model (batch, interactive, or all jobs together) begins at midnight and has its own sizes, run times
and daily cycle. A trace holds the first jobs of its streams merged by submit time.

All numbers are whole seconds, rounded down, as the authors' program prints them. So simulations in exact arithmetic and
in floats see the same numbers. A run time is at least 1 s, because its logarithm is never negative. The authors'
program adds up rounded gaps; here the sum is rounded, and no error adds up.

Source: U. Lublin and D. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63 (2003), and the constants of the authors' program
(m_lublin99.c, Parallel Workloads Archive), which are for a machine of 128 nodes. `lublin_256.swf.gz` of the shared data
is a trace of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from slurm_sns.errors import BadInput

Integers = NDArray[np.int64]
Column = NDArray[np.float64]

DAY_S = 86_400
BUCKETS = 48
BUCKET_S = DAY_S // BUCKETS
#: The day of the daily cycle begins in this bucket: the gamma distribution covers the buckets 11 to 58.
FIRST_BUCKET = 11
#: Natural logarithms of seconds. The model draws again above them: run times of two days, gaps of five.
LONGEST_RUN, LONGEST_GAP = 12.0, 13.0
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


class ModelJobs(NamedTuple):
    """Jobs by submit time: whole seconds since the midnight at which the model begins, and numbers of nodes."""

    submit_s: Integers
    run_s: Integers
    tasks: Integers


def lublin_jobs(streams: Sequence[JobType], count: int, nodes: int, rng: np.random.Generator) -> ModelJobs:
    """The first `count` jobs of these streams for a machine of `nodes` nodes; one task of a job fills a node.

    Jobs of equal submit times are in the order of the streams.

    Raises:
        BadInput: the model has no sizes for a machine of this many nodes.
    """
    # Even if all jobs of the trace are from one stream, it needs no more than `count` of them.
    parts = [_stream(stream, count, nodes, rng) for stream in streams]
    jobs = ModelJobs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    first = np.argsort(jobs.submit_s, kind="stable")[:count]
    return ModelJobs(*(column[first] for column in jobs))


def _stream(stream: JobType, count: int, nodes: int, rng: np.random.Generator) -> ModelJobs:
    submit_s = draw_submits(stream.arrivals, count, rng)
    tasks = draw_sizes(stream.sizes.for_machine(nodes), count, rng)
    return ModelJobs(submit_s, draw_run_times(stream.run_times, tasks, rng), tasks)


def draw_sizes(sizes: Sizes, count: int, rng: np.random.Generator) -> Integers:
    """Numbers of nodes."""
    kind = rng.random(count)
    lower = rng.random(count) <= sizes.probability
    begin = np.where(lower, sizes.low, sizes.medium)
    end = np.where(lower, sizes.medium, sizes.high)
    exponent = begin + (end - begin) * rng.random(count)
    exponent = np.where(kind <= sizes.serial + sizes.power_of_two, np.floor(exponent + 0.5), exponent)
    parallel = np.floor(np.exp2(exponent) + 0.5)
    drawn: Column = np.where(kind <= sizes.serial, 1.0, parallel)
    return drawn.astype(np.int64)


def draw_run_times(run_times: RunTimes, tasks: Integers, rng: np.random.Generator) -> Integers:
    """Run times in whole seconds for jobs of these sizes."""
    first_share = np.clip(run_times.pa * tasks + run_times.pb, 0.0, 1.0)

    def draw(rows: Integers) -> Column:
        first = rng.random(len(rows)) <= first_share[rows]
        shape = np.where(first, run_times.a1, run_times.a2)
        return rng.gamma(shape, np.where(first, run_times.b1, run_times.b2))

    seconds: Column = np.floor(np.exp(_at_most(LONGEST_RUN, draw, len(tasks))))
    return seconds.astype(np.int64)


def draw_submits(arrivals: Arrivals, count: int, rng: np.random.Generator) -> Integers:
    """Submit times in whole seconds since midnight, in ascending order.

    A gap is paid with the weights of the half hours that it covers: it is as long as it was drawn where the weight is
    1, shorter in a busy half hour, longer in a quiet one.
    """
    gaps_s = np.exp(_at_most(LONGEST_GAP, lambda rows: _gaps(arrivals, len(rows), rng), count))
    days, paid_s = np.divmod(np.cumsum(gaps_s), DAY_S)
    to_pay_s = BUCKET_S * np.concatenate([[0.0], np.cumsum(daily_weights(arrivals))])
    since_midnight_s = np.interp(paid_s, to_pay_s, BUCKET_S * np.arange(BUCKETS + 1.0))
    submit_s: Column = np.floor(days * DAY_S + since_midnight_s)
    return submit_s.astype(np.int64)


def daily_weights(arrivals: Arrivals) -> Column:
    """The weight of each half hour of the day, the first after midnight; their mean is 1."""
    edges = FIRST_BUCKET - 0.5 + np.arange(BUCKETS + 1.0)
    shares = np.diff(gammainc(arrivals.anum, edges / arrivals.bnum))
    # The model counts the buckets of a day from 1, and its last ten lie after midnight.
    return np.roll(shares / shares.mean(), FIRST_BUCKET - 1)


def _gaps(arrivals: Arrivals, count: int, rng: np.random.Generator) -> Column:
    """Natural logarithms of gaps."""
    return rng.gamma(arrivals.aarr * arrivals.arar, arrivals.barr, count)


def _at_most(limit: float, draw: Callable[[Integers], Column], count: int) -> Column:
    """`count` numbers, those above the limit drawn again; `draw` draws one for each of the given rows."""
    numbers = draw(np.arange(count))
    while (above := np.flatnonzero(numbers > limit)).size:
        numbers[above] = draw(above)
    return numbers
