"""Generate parallel jobs by the Lublin-Feitelson model: sizes, run times and submit times.

Each stream of the model (batch, interactive, or all jobs together) begins at midnight and has its own sizes, run times
and daily cycle. A trace holds the first jobs of its streams merged by submit time.

All numbers are whole seconds, rounded down, as the authors' program prints them. So simulations in exact arithmetic and
in floats see the same numbers. A run time is at least 1 s, because its logarithm is never negative. The authors'
program adds up rounded gaps; here the sum is rounded, and no error adds up.

Source: Lublin and Feitelson (JPDC 2003) and their program (module lublin_parameters). `lublin_256.swf.gz` of the shared
data is a trace of it.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.workloads.lublin_parameters import Arrivals, JobType, RunTimes, Sizes

Integers = NDArray[np.int64]
Column = NDArray[np.float64]

DAY_S = 86_400
BUCKETS = 48
BUCKET_S = DAY_S // BUCKETS
#: The day of the daily cycle begins in this bucket: the gamma distribution covers the buckets 11 to 58.
FIRST_BUCKET = 11
#: Natural logarithms of seconds. The model draws again above them: run times of two days, gaps of five.
LONGEST_RUN, LONGEST_GAP = 12.0, 13.0
#: Terms of the series of a gamma distribution; those that are used are exact to a float after fewer than 100.
TERMS = 200


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
    shares = np.diff([_gamma_cdf(edge, arrivals.anum, arrivals.bnum) for edge in edges.tolist()])
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


def _gamma_cdf(x: float, shape: float, scale: float) -> float:
    """The share of a gamma distribution below x > 0: the series of the incomplete gamma function, whose terms all add.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5.29.
    """
    x /= scale
    term = math.exp(shape * math.log(x) - x - math.lgamma(shape + 1))
    total = 0.0
    for at in range(1, TERMS):
        total += term
        term *= x / (shape + at)
    return total
