"""Generate jobs like those of Intel's distributed computing platform: bursts of high-priority work at few pools.

Jobs come in streams. A stream has an expected number of jobs in each hour, a priority, and a pool or the virtual pool;
numbers of jobs are Poisson, submit times uniform within the hour, all times whole seconds.

* Low priority (0), for each group of pools: jobs for any pool, jobs for the pools of the group, and jobs that name one
  of its pools and may be moved anywhere. Their rate follows the time of day (shifted by whole hours at random for each
  group), the weekend, and slow levels of the site and of each group. Over the generated period it is scaled so that
  the expected load is the assumed one, in short periods as in long ones.
* High priority (1), for each pool of each burst. A burst demands cores in some pools of one group for hours to a week.
  A longer one than `wave_hours` does so in that many hours of each day. Its jobs name one of its pools, in proportion
  to cores, and may run in these pools only.

The run time of a job is the typical one of its program, times a factor of the program's present release, times a
factor of its own. Time limits are users' round overestimates, never below the run time.

What is assumed, and what was calibrated against the paper's results without restarts, stands with each number in
`idcp_parameters`. A trace begins with an empty site: utilisation is too low in its first days.

Source: Cost-based dynamic job rescheduling (2010), sections 2 to 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.trace import ANY_POOL, TraceArrays
from slurm_sns.sim.traces.nodes_csv import TraceSite
from slurm_sns.sim.workloads.idcp_parameters import DEFAULTS, IdcpParameters
from slurm_sns.sim.workloads.idcp_site import (
    DAY_S,
    HOUR_S,
    Column,
    Integers,
    Programs,
    idcp_site,
    pool_cores,
    programs,
    usual_limit,
)

FORTNIGHT_DAYS = 14
DAY_HOURS, WEEK_HOURS = 24, 168
LOW, HIGH = 0, 1
#: The program of a stream whose jobs run any of the low-priority programs.
ANY_PROGRAM = -1
#: The local hour with the most submits, and the days of a week before the weekend. Assumed.
PEAK_HOUR, WORKING_DAYS = 15, 5


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


class Fortnight(NamedTuple):
    """A trace whose warm-up ends and whose two weeks begin at `begin_s`; the two weeks end at `end_s`.

    How the warm-up is kept out of the metrics: the replay begins at 0, with the warm-up's jobs in the trace. What
    counts are completions and first suspensions after `begin_s` until `end_s`, and samples from `begin_s` to `end_s`.
    So jobs of the warm-up that complete in the two weeks count, as in the paper ("all jobs completed within this
    period"). Without high-priority jobs in the warm-up nothing is suspended or restarted before `begin_s`: replays with
    and without restarts are in the same state there.
    """

    site: TraceSite
    trace: TraceArrays
    begin_s: int
    end_s: int


class _Generators(NamedTuple):
    """Random generators of their own, so that a change of one part of the parameters leaves the other parts alike."""

    levels: np.random.Generator
    bursts: np.random.Generator
    releases: np.random.Generator
    counts: np.random.Generator
    jobs: np.random.Generator


def idcp(scale: float, days: float, seed: int, parameters: IdcpParameters = DEFAULTS) -> tuple[TraceSite, TraceArrays]:
    """The site with its machines scaled, and the jobs of so many days; the same arguments give the same jobs.

    Raises:
        BadInput: the scale is out of bounds.
    """
    setting = StreamSetting(idcp_site(scale, parameters), programs(parameters), parameters)
    random = _generators(seed)
    bursts = ordinary_bursts(math.ceil(DAY_HOURS * days), setting.programs, parameters, random.bursts)
    return setting.site, _trace(setting, bursts, days, random)


def burst_fortnight(scale: float, seed: int, parameters: IdcpParameters = DEFAULTS) -> Fortnight:
    """A warm-up with low-priority jobs only, then two weeks with strong bursts, which are set and not drawn.

    Raises:
        BadInput: the scale is out of bounds.
    """
    parameters = replace(parameters, low_load=parameters.fortnight_low_load)
    setting = StreamSetting(idcp_site(scale, parameters), programs(parameters), parameters)
    random = _generators(seed)
    bursts = strong_bursts(setting.programs, parameters, random.bursts)
    days = parameters.warm_up_days + FORTNIGHT_DAYS
    trace = _trace(setting, bursts, days, random)
    return Fortnight(setting.site, trace, DAY_S * parameters.warm_up_days, DAY_S * days)


def _generators(seed: int) -> _Generators:
    return _Generators(*(np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(5)))


def _trace(setting: StreamSetting, bursts: Sequence[Burst], days: float, random: _Generators) -> TraceArrays:
    """The jobs of all streams in submit order."""
    streams = all_streams(setting, math.ceil(DAY_HOURS * days), bursts, random.levels, random.bursts)
    end_s = math.ceil(DAY_S * days)
    parts = list(_parts(setting, streams, end_s, random))
    # Column by column, so that no more than one is there twice.
    columns: dict[str, Any] = {name: np.concatenate([part.pop(name) for part in parts]) for name in tuple(parts[0])}
    return TraceArrays(
        identity=np.arange(1, len(columns["submit"]) + 1),
        **columns,
        allowed_sets=allowed_sets(len(setting.site.pools), bursts, setting.parameters),
        programs=setting.programs.names,
    )


def _parts(setting: StreamSetting, streams: Streams, end_s: int, random: _Generators) -> Iterator[dict[str, Integers]]:
    """The columns of a trace, week by week: memory is needed for one week of working columns only."""
    known = setting.programs
    counts = random.counts.poisson(streams.jobs)
    releases = _Releases.drawn(setting, end_s, random.releases)
    chosen = np.cumsum(known.weight)
    for week in range(int(streams.hour[-1]) // WEEK_HOURS + 1):
        first, end = np.searchsorted(streams.hour, [week * WEEK_HOURS, (week + 1) * WEEK_HOURS]).tolist()
        row = np.repeat(np.arange(first, end), counts[first:end])
        submit = streams.hour[row] * HOUR_S + random.jobs.integers(0, HOUR_S, len(row))
        order = np.argsort(submit, kind="stable")
        order = order[: np.searchsorted(submit[order], end_s)]
        row, submit = row[order], submit[order]
        drawn = np.minimum(np.searchsorted(chosen, random.jobs.random(len(row)), side="right"), len(chosen) - 1)
        program = np.where(streams.program[row] == ANY_PROGRAM, drawn, streams.program[row])
        run = _run_s(setting, program, releases.factor(program, submit), random.jobs)
        yield {
            "submit": submit,
            "run": run,
            "cores": known.cores[program].astype(np.int32),
            "memory": known.memory_mb[program],
            "priority": streams.priority[row].astype(np.int32),
            "pool": streams.pool[row].astype(np.int32),
            "allowed": streams.allowed[row].astype(np.int32),
            "limit": np.maximum(known.limit_s[program], usual_limit(run)),
            "program": program.astype(np.int32),
        }


def _run_s(setting: StreamSetting, program: Integers, factor: Column, rng: np.random.Generator) -> Integers:
    """Run times of jobs of these programs, whole seconds, from 1 to the longest run time."""
    spread = setting.programs.spread[program]
    own = np.exp(spread * rng.standard_normal(len(program)) - spread**2 / 2)
    run_s = np.rint(setting.programs.run_s[program] * factor * own)
    return np.clip(run_s, 1, DAY_S * setting.parameters.longest_run_days).astype(np.int64)


class _Releases(NamedTuple):
    """What the run times of each release of a program are multiplied by, and when releases come.

    `factors` has the shape (programs, releases); its mean is 1, and it is 1 for the programs of bursts, whose load is
    set. `begun` is the part of a program's first release that has passed at the begin of the trace.
    """

    factors: Column
    begun: Column
    length_s: float

    @classmethod
    def drawn(cls, setting: StreamSetting, end_s: int, rng: np.random.Generator) -> "_Releases":
        """The releases of all programs until the end of the trace."""
        count = len(setting.programs.names)
        length_s = DAY_S * setting.parameters.release_days
        spread = setting.parameters.release_spread
        factors = rng.lognormal(-(spread**2) / 2, spread, (count, math.ceil(end_s / length_s) + 1))
        factors[setting.programs.weight == 0] = 1
        return cls(factors, rng.random(count), length_s)

    def factor(self, program: Integers, submit_s: Integers) -> Column:
        """The factor for each of these jobs."""
        release = (submit_s / self.length_s + self.begun[program]).astype(np.int64)
        return np.asarray(self.factors[program, release])


# --- bursts: when they come, and to which pools


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


# --- streams: how many jobs of which kind are expected in each hour


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
