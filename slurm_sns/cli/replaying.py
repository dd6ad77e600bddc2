"""`sns simulate`: what was asked for becomes a replay of the trace, and the replay a result.

Matching is replayed by the compiled loop, what its kernel does not know by the plain engine.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from slurm_sns.cli.requested import Requested, Spreading
from slurm_sns.cli.spreading import summary_of
from slurm_sns.errors import BadInput
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.keys import KEYS, kernel_holds
from slurm_sns.policies.placement.pool import Pool
from slurm_sns.policies.profile import Program
from slurm_sns.policies.sns.exploration import Exploration
from slurm_sns.sim.engine import Outcome, Scheduler, Simulation
from slurm_sns.sim.exploring import Exploring, laboratory_of
from slurm_sns.sim.metrics import Metrics, measure
from slurm_sns.sim.progress import Progress
from slurm_sns.sim.read_trace import read_records
from slurm_sns.sim.records import Records
from slurm_sns.sim.replay import replay
from slurm_sns.sim.replay_results import write_replay
from slurm_sns.sim.results import write_results
from slurm_sns.sim.sns_policies import AUTHORS, progress_of
from slurm_sns.sim.sns_trace import SnsTrace, TraceReader
from slurm_sns.sim.trace import Trace

#: Told now and then how many jobs have been started.
Report = Callable[[int], None]


class Result(NamedTuple):
    """What a replay gave: its metrics, and `more` that its summary says; `write` puts it into a directory."""

    metrics: Callable[[], Metrics]
    write: Callable[[Path, Mapping[str, Any]], None]
    more: Callable[[], dict[str, Any]] = dict


class Replay(NamedTuple):
    """A trace that has been read for a policy: its jobs, those left out by reason, those out of order; to be run."""

    jobs: int
    dropped: Mapping[str, int]
    unsorted: int
    run: Callable[[Report], Result]


def read_replay(trace: str, pool: Pool, asked: Requested, *, load_factor: float, limit: int | None) -> Replay:
    """Read the trace as the policy takes it.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    if asked.spreading is None:
        records = read_records(trace, pool, load_factor=load_factor, limit=limit)
        return Replay(
            len(records), records.dropped, records.unsorted, lambda report: run_matching(pool, records, asked, report)
        )
    options, parameters, _ = spreading = asked.spreading
    programs = options.programs(pool)
    reader = TraceReader(pool, asked.policy, programs, parameters)
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    if options.learn is not None and not spread.profiled:
        raise BadInput(f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles")
    return Replay(
        len(spread.trace.jobs),
        spread.trace.dropped,
        unsorted=0,
        run=lambda report: run_spreading(pool, spread, asked, report, spreading=spreading, programs=programs),
    )


def run_matching(pool: Pool, records: Records, asked: Requested, report: Report) -> Result:
    """Replay the trace by the compiled loop; by the engine where a heuristic is in use that only the twin has."""
    parameters, members = asked.parameters, asked.parameters.portfolio
    if not _is_compiled(pool, parameters, records):
        outcome = _run_engine(pool, records.trace(), asked, report, scheduler=max_jobs(parameters))
        return Result(
            metrics=lambda: measure(outcome, pool, members),
            write=lambda out, summary: write_results(out, outcome, pool, summary),
        )
    replayed = replay(
        pool,
        records,
        parameters,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )
    return Result(
        metrics=lambda: replayed.metrics(pool, members),
        write=lambda out, summary: write_replay(out, replayed, pool, members, summary),
    )


def run_spreading(
    pool: Pool,
    spread: SnsTrace,
    asked: Requested,
    report: Report,
    *,
    spreading: Spreading,
    programs: Mapping[str, Program],
) -> Result:
    """Replay a trace of programs by the engine, which knows run times that depend on the placement."""
    options, parameters, _ = spreading
    scheduler: Scheduler = spreading.scheduler
    progress = progress_of(options.progress or AUTHORS, asked.policy, pool, spread.model)
    laboratory = None
    if options.learn is not None:
        laboratory = laboratory_of(pool, programs, Exploration(parameters), spread=options.learn, seed=options.seed)
        scheduler = progress = Exploring(laboratory, scheduler, progress, spread.profiled)
    outcome = _run_engine(pool, spread.trace, asked, report, scheduler=scheduler, progress=progress)

    def more() -> dict[str, Any]:
        learnt = {} if laboratory is None else {"learn": options.learn, **laboratory.counts()}
        return {**summary_of(spread, outcome.placements, parameters, options), **learnt}

    return Result(
        metrics=lambda: measure(outcome, pool, asked.parameters.portfolio),
        write=lambda out, summary: write_results(out, outcome, pool, summary, spreads=True),
        more=more,
    )


def _run_engine(
    pool: Pool,
    trace: Trace,
    asked: Requested,
    report: Report,
    *,
    scheduler: Scheduler,
    progress: Progress | None = None,
) -> Outcome:
    """Replay the trace by the plain engine; without a model of progress jobs run as long as the trace says."""
    simulation = Simulation(
        pool,
        trace,
        scheduler,
        queue_depth=asked.parameters.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    return simulation.run(report)


def _is_compiled(pool: Pool, parameters: MatchingParameters, records: Records) -> bool:
    """Whether the compiled loop has all heuristics that are in use."""
    own = {heuristic for *_, heuristic in records.kinds if heuristic}
    used = own.union(parameters.portfolio, {parameters.default_heuristic or parameters.portfolio[0]})
    return used <= KEYS.keys() and kernel_holds(pool, used)
