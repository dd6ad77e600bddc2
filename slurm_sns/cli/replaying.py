"""`sns simulate`: matching by the compiled replay, what the kernel does not know by the plain engine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from slurm_sns.policies.matching.keys import KEYS
from slurm_sns.policies.matching.max_jobs import MaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.pool import Pool
from slurm_sns.sim.engine import Outcome, Simulation
from slurm_sns.sim.metrics import Metrics, measure
from slurm_sns.sim.progress import Fixed, Placement
from slurm_sns.sim.records import Records
from slurm_sns.sim.replay import replay
from slurm_sns.sim.replay_results import write_replay
from slurm_sns.sim.results import write_results
from slurm_sns.sim.sns_trace import SnsTrace


class Done(NamedTuple):
    """A simulation that has run."""

    metrics: Callable[[], Metrics]
    write: Callable[[Path, Mapping[str, Any]], None]
    placements: Sequence[Placement] = ()  #: of the plain engine


def run_matching(
    pool: Pool,
    records: Records,
    parameters: MatchingParameters,
    *,
    interval_s: int,
    shares: Mapping[str, float],
    report: Callable[[int], None],
) -> Done:
    """Replay the trace by the compiled loop; by the engine where a heuristic is in use that only the twin has."""
    members = parameters.portfolio
    if not _is_compiled(parameters, records):
        scheduler, depth = MaxJobs(parameters), parameters.queue_depth
        trace = records.trace()
        simulation = Simulation(pool, trace, scheduler, queue_depth=depth, interval_s=interval_s, shares=shares)
        return _done_by_engine(simulation.run(report), pool, members)
    replayed = replay(pool, records, parameters, interval_s=interval_s, shares=shares, progress=report)
    return Done(
        metrics=lambda: replayed.metrics(pool, members),
        write=lambda out, summary: write_replay(out, replayed, pool, members, summary),
    )


def run_spreading(
    pool: Pool,
    spread: SnsTrace,
    scheduler: MaxJobs,
    *,
    interval_s: int,
    shares: Mapping[str, float],
    report: Callable[[int], None],
) -> Done:
    """Replay a trace of programs by the engine, which knows run times that depend on the placement."""
    parameters = scheduler.parameters
    simulation = Simulation(
        pool,
        spread.trace,
        scheduler,
        queue_depth=parameters.queue_depth,
        interval_s=interval_s,
        shares=shares,
        progress=Fixed(spread.model),
    )
    return _done_by_engine(simulation.run(report), pool, parameters.portfolio, spreads=True)


def _done_by_engine(outcome: Outcome, pool: Pool, members: tuple[str, ...], *, spreads: bool = False) -> Done:
    """What the plain engine has run; `spreads`: the policy knows scale factors."""
    return Done(
        metrics=lambda: measure(outcome, pool, members),
        write=lambda out, summary: write_results(out, outcome, pool, summary, spreads=spreads),
        placements=outcome.placements,
    )


def _is_compiled(parameters: MatchingParameters, records: Records) -> bool:
    own = {heuristic for *_, heuristic in records.kinds if heuristic}
    return own.union(parameters.portfolio, {parameters.default_heuristic or parameters.portfolio[0]}) <= KEYS.keys()
