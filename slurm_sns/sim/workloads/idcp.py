"""Generate jobs like those of Intel's distributed computing platform: bursts of high-priority work at few pools.

Jobs come in streams. A stream has an expected number of jobs in each hour, a priority, and a pool or the virtual pool;
numbers of jobs are Poisson, submit times uniform within the hour, all times whole seconds.

* Low priority (0), for each group of pools: jobs for any pool, jobs for the pools of the group, and jobs that name one
  of its pools and may be moved anywhere. Their rate follows the time of day (shifted by whole hours at random for each
  group), the weekend, and slow levels of the site and of each group. Over the generated period it is scaled so that
  the expected load is the assumed one, in short periods as in long ones.
* High priority (1), for each pool of each burst: see `idcp_bursts`.

The run time of a job is the typical one of its program, times a factor of the program's present release, times a
factor of its own. Time limits are users' round overestimates, never below the run time.

What is assumed, and what was calibrated against the paper's results without restarts, stands with each number in
`idcp_parameters`. A trace begins with an empty site: utilisation is too low in its first days.

Source: Cost-based dynamic job rescheduling (2010), sections 2 to 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slurm_sns.sim.traces.pool_trace import PoolTrace, TraceSite
from slurm_sns.sim.workloads.idcp_bursts import DAY_HOURS, WEEK_HOURS, Burst, ordinary_bursts, strong_bursts
from slurm_sns.sim.workloads.idcp_parameters import DEFAULTS, IdcpParameters
from slurm_sns.sim.workloads.idcp_site import DAY_S, HOUR_S, Column, Integers, idcp_site, programs, usual_limit
from slurm_sns.sim.workloads.idcp_streams import ANY_PROGRAM, Streams, StreamSetting, all_streams, allowed_sets

FORTNIGHT_DAYS = 14


class Fortnight(NamedTuple):
    """A trace whose warm-up ends and whose two weeks begin at `begin_s`; the two weeks end at `end_s`.

    How the warm-up is kept out of the metrics: the replay begins at 0, with the warm-up's jobs in the trace. What
    counts are completions and first suspensions after `begin_s` until `end_s`, and samples from `begin_s` to `end_s`.
    So jobs of the warm-up that complete in the two weeks count, as in the paper ("all jobs completed within this
    period"). Without high-priority jobs in the warm-up nothing is suspended or restarted before `begin_s`: replays with
    and without restarts are in the same state there.
    """

    site: TraceSite
    trace: PoolTrace
    begin_s: int
    end_s: int


class _Generators(NamedTuple):
    """Random generators of their own, so that a change of one part of the parameters leaves the other parts alike."""

    levels: np.random.Generator
    bursts: np.random.Generator
    releases: np.random.Generator
    counts: np.random.Generator
    jobs: np.random.Generator


def idcp(scale: float, days: float, seed: int, parameters: IdcpParameters = DEFAULTS) -> tuple[TraceSite, PoolTrace]:
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


def _trace(setting: StreamSetting, bursts: Sequence[Burst], days: float, random: _Generators) -> PoolTrace:
    """The jobs of all streams in submit order."""
    streams = all_streams(setting, math.ceil(DAY_HOURS * days), bursts, random.levels, random.bursts)
    end_s = math.ceil(DAY_S * days)
    parts = list(_parts(setting, streams, end_s, random))
    # Column by column, so that no more than one is there twice.
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in tuple(parts[0])}
    return PoolTrace(
        identity=np.arange(1, len(columns["submit"]) + 1),
        **columns,
        allowed_sets=allowed_sets(len(setting.site.pools), bursts, setting.parameters),
        programs=setting.programs.names,
        ticks_per_s=1,
        dropped={},
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
            "memory_mb": known.memory_mb[program],
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
