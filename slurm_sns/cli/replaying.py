"""`sns simulate`: matching by the compiled replay, what the kernel does not know by the plain engine."""

from collections.abc import Callable, Mapping, Sequence
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
from slurm_sns.sim.progress import Placement
from slurm_sns.sim.read_trace import read_records
from slurm_sns.sim.records import Records
from slurm_sns.sim.replay import replay
from slurm_sns.sim.replay_results import write_replay
from slurm_sns.sim.results import write_results
from slurm_sns.sim.sns_policies import AUTHORS, progress_of
from slurm_sns.sim.sns_trace import SnsTrace, TraceReader

#: Told now and then how many jobs have been started.
Report = Callable[[int], None]


class Done(NamedTuple):
    """A simulation that has run."""

    metrics: Callable[[], Metrics]
    write: Callable[[Path, Mapping[str, Any]], None]
    placements: Sequence[Placement] = ()  #: of the plain engine
    learnt: Mapping[str, Any] = {}  #: what the summary says of --learn


class Work(NamedTuple):
    """A trace that has been read, and how to replay it; `more`: what its summary says beside the usual."""

    jobs: int
    dropped: Mapping[str, int]
    unsorted: int
    run: Callable[[Report], Done]
    more: Callable[[Done], dict[str, Any]] = lambda _done: {}


def read_work(trace: str, pool: Pool, asked: Requested, *, load_factor: float, limit: int | None) -> Work:
    """Read the trace as the policy takes it.

    Raises:
        BadInput: naming file, line and what would be valid.
    """
    if asked.spreading is not None:
        options, parameters, _ = spreading = asked.spreading
        programs = options.programs(pool)
        reader = TraceReader(pool, asked.policy, programs, parameters)
        spread = reader.read(trace, load_factor=load_factor, limit=limit)
        if options.learn is not None and not spread.profiled:
            raise BadInput(
                f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles"
            )
        return Work(
            len(spread.trace.jobs),
            spread.trace.dropped,
            unsorted=0,
            run=lambda report: run_spreading(pool, spread, spreading, asked, report, programs=programs),
            more=lambda done: {**summary_of(spread, done.placements, parameters, options), **done.learnt},
        )
    records = read_records(trace, pool, load_factor=load_factor, limit=limit)
    return Work(
        len(records), records.dropped, records.unsorted, lambda report: run_matching(pool, records, asked, report)
    )


def run_matching(pool: Pool, records: Records, asked: Requested, report: Report) -> Done:
    """Replay the trace by the compiled loop; by the engine where a heuristic is in use that only the twin has."""
    parameters, members = asked.parameters, asked.parameters.portfolio
    if not _is_compiled(pool, parameters, records):
        simulation = Simulation(
            pool,
            records.trace(),
            max_jobs(parameters),
            queue_depth=parameters.queue_depth,
            interval_s=asked.interval_s,
            shares=asked.shares,
            age_limit_s=asked.age_limit_s,
        )
        return _done_by_engine(simulation.run(report), pool, members)
    replayed = replay(
        pool,
        records,
        parameters,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )
    return Done(
        metrics=lambda: replayed.metrics(pool, members),
        write=lambda out, summary: write_replay(out, replayed, pool, members, summary),
    )


def run_spreading(
    pool: Pool,
    spread: SnsTrace,
    spreading: Spreading,
    asked: Requested,
    report: Report,
    *,
    programs: Mapping[str, Program],
) -> Done:
    """Replay a trace of programs by the engine, which knows run times that depend on the placement."""
    options, parameters = spreading.options, asked.parameters
    scheduler: Scheduler = spreading.scheduler
    progress = progress_of(options.progress or AUTHORS, asked.policy, pool, spread.model)
    laboratory = None
    if options.learn is not None:
        exploration = Exploration(spreading.parameters)
        laboratory = laboratory_of(pool, programs, exploration, spread=options.learn, seed=options.seed)
        scheduler = progress = Exploring(laboratory, spreading.scheduler, progress, spread.profiled)
    simulation = Simulation(
        pool,
        spread.trace,
        scheduler,
        queue_depth=parameters.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    done = _done_by_engine(simulation.run(report), pool, parameters.portfolio, spreads=True)
    return done if laboratory is None else done._replace(learnt={"learn": options.learn, **laboratory.counts()})


def _done_by_engine(outcome: Outcome, pool: Pool, members: tuple[str, ...], *, spreads: bool = False) -> Done:
    """What the plain engine has run; `spreads`: the policy knows scale factors."""
    return Done(
        metrics=lambda: measure(outcome, pool, members),
        write=lambda out, summary: write_results(out, outcome, pool, summary, spreads=spreads),
        placements=outcome.placements,
    )


def _is_compiled(pool: Pool, parameters: MatchingParameters, records: Records) -> bool:
    own = {heuristic for *_, heuristic in records.kinds if heuristic}
    used = own.union(parameters.portfolio, {parameters.default_heuristic or parameters.portfolio[0]})
    return used <= KEYS.keys() and kernel_holds(pool, used)
