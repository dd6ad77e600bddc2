"""`sns simulate`: turn a request into a replay of the trace, and the replay into a result.

Policies that match are replayed by the compiled loop; the event engine replays what the kernel does not support.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from slurm_sns.cli.offline.requested import Requested
from slurm_sns.cli.offline.spreading_options import summary_of
from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.kernel_matching import Rules
from slurm_sns.policies.placement.kernel_weights import KEYS, kernel_holds
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.profile import Program
from slurm_sns.policies.rescheduling.parameters import KEPT, RESCHEDULING, ReschedulingParameters
from slurm_sns.policies.specification import filled
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.sim.engine.event_loop import SimulationOutcome
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.engine.spreading_policies import AUTHORS, progress_of
from slurm_sns.sim.profiling.learning_cluster import LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.replay.pool_replay import SAMPLE_S, replay_pools
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.results.fluid_results import fluid_summary, measure_fluid, write_fluid
from slurm_sns.sim.results.metrics import Metrics, measure
from slurm_sns.sim.results.pool_results import measure_pools, pool_summary, write_pools
from slurm_sns.sim.results.replay_files import write_replay
from slurm_sns.sim.results.result_files import write_results
from slurm_sns.sim.traces.fluid_csv import FluidWorkload, has_tasks, on_whole_nodes, read_fluid
from slurm_sns.sim.traces.pool_trace import PoolTrace, TraceSite
from slurm_sns.sim.traces.pools_csv import has_pools, read_and_count_unsorted
from slurm_sns.sim.traces.program_trace import ProgramTrace, TraceReader
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.trace import Trace
from slurm_sns.sim.traces.trace_arrays import TraceArrays

#: Samples of a site with pools, one each minute: 19 years.
MOST_SAMPLES = 10_000_000

#: Called from time to time with the number of jobs that have started.
ReportProgress = Callable[[int], None]


class Result(NamedTuple):
    """The result of a replay: its metrics, and `more` entries for its summary; `write` writes it to a directory."""

    metrics: Callable[[], Metrics]
    write: Callable[[Path, Mapping[str, Any]], None]
    more: Callable[[], dict[str, Any]] = dict


class Replay(NamedTuple):
    """A trace that has been read for a policy and can be run.

    `jobs` is their number, `dropped` the number left out by reason, `unsorted` the number out of submit order.
    """

    jobs: int
    dropped: Mapping[str, int]
    unsorted: int
    run: Callable[[ReportProgress], Result]


def read_replay(
    trace: str, node_arrays: NodeArrays, asked: Requested, *, load_factor: float, limit: int | None
) -> Replay:
    """Read the trace in the form that the policy needs.

    Raises:
        BadInput: the trace cannot be read; the message names file, line and what would be valid.
    """
    if has_pools(trace):
        raise BadInput(f"{trace}: jobs of pools go with --policy {RESCHEDULING.name}, not with {asked.name}")
    if asked.fluid is not None:
        workload = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
        policy = asked.fluid
        return Replay(
            len(workload.trace),
            workload.trace.dropped,
            workload.unsorted,
            lambda report: run_fluid(node_arrays, workload, asked, policy, report),
        )
    if has_tasks(trace):
        if asked.batch is None:
            raise BadInput(
                f"{trace}: tasks with fluid needs go with --policy fcfs, easy and dfrs-..., not {asked.name}"
            )
        return _batch_replay(trace, node_arrays, asked, load_factor=load_factor, limit=limit)
    if asked.spreading is None:
        records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit)
        return Replay(
            len(records),
            records.dropped,
            records.unsorted,
            lambda report: run_unspread(node_arrays, records, asked, report),
        )
    options, parameters = asked.spreading
    programs = options.programs(node_arrays)
    reader = TraceReader(node_arrays, asked.makes_alternatives, programs, parameters, options.user_estimates)
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    if options.learn is not None and not spread.profiled:
        raise BadInput(f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles")
    return Replay(
        len(spread.trace.jobs),
        spread.trace.dropped,
        unsorted=0,
        run=lambda report: run_spreading(node_arrays, spread, asked, report, programs=programs),
    )


def read_pool_replay(
    trace: str, site: TraceSite, parameters: ReschedulingParameters, *, load_factor: float, limit: int | None
) -> Replay:
    """Read a trace for a site with pools.

    Raises:
        BadInput: the trace cannot be read; the message names file, line and what would be valid.
    """
    jobs, unsorted = read_and_count_unsorted(trace, site, load_factor=load_factor, limit=limit)
    return Replay(len(jobs), jobs.dropped, unsorted, lambda report: run_pools(site, jobs, parameters, report))


def _batch_replay(
    trace: str, node_arrays: NodeArrays, asked: Requested, *, load_factor: float, limit: int | None
) -> Replay:
    """A trace of tasks with fluid needs under a batch scheduler, which gives each task a node of its own.

    Raises:
        BadInput: as in `read_replay`, or an option needs another trace.
    """
    if asked.spreading is not None and asked.spreading.options.user_estimates:
        raise BadInput(f"{trace}: a CSV has no time limits; valid with user estimates: SWF")
    if asked.spreading is not None and asked.spreading.options.profiles is not None:
        raise BadInput(f"{trace}: jobs have tasks and no programs; valid with --profiles: a CSV of programs")
    workload = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
    jobs = on_whole_nodes(trace, workload, node_arrays)

    def run(report: ReportProgress) -> Result:
        chosen = {} if asked.batch is None else asdict(asked.batch)
        return _result(_run_planned(node_arrays, jobs, asked, report), node_arrays)._replace(more=lambda: chosen)

    return Replay(len(jobs.jobs), jobs.dropped, workload.unsorted, run)


def run_unspread(node_arrays: NodeArrays, records: TraceArrays, asked: Requested, report: ReportProgress) -> Result:
    """Replay a trace whose jobs keep their geometry, under a policy that does not spread.

    A policy that does not match is replayed through its plans. One that matches is replayed by the compiled loop, or
    by the event engine when it uses a heuristic that the kernel lacks.
    """
    if asked.rules is None:
        return _result(_run_planned(node_arrays, records.trace(), asked, report), node_arrays)
    members = asked.rules.portfolio
    if not _is_compiled(node_arrays, asked.rules, records):
        outcome = _run_engine(node_arrays, records.trace(), asked, report, scheduler=Portfolio(asked.rules))
        return _result(outcome, node_arrays, members)
    replayed = replay(
        node_arrays,
        records,
        filled(MatchingParameters, asked.rules),
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )
    return Result(
        metrics=lambda: replayed.metrics(node_arrays, members),
        write=lambda out, summary: write_replay(out, replayed, node_arrays, members, summary),
    )


def run_fluid(
    node_arrays: NodeArrays, workload: FluidWorkload, asked: Requested, policy: Dfrs, report: ReportProgress
) -> Result:
    """Replay jobs that share the CPU by fractions, by the compiled loop."""
    run = replay_fluid(
        workload.node_arrays,
        workload.trace,
        policy.algorithm,
        period_s=policy.period_s,
        penalty_s=asked.penalty_s,
        progress=report,
    )
    periodic = {"period_s": policy.period_s} if policy.algorithm.packs_periodically else {}
    return Result(
        metrics=lambda: measure_fluid(run, workload.trace, workload.node_arrays),
        write=lambda out, summary: write_fluid(out, run, workload, node_arrays, summary),
        more=lambda: {**periodic, "penalty_s": asked.penalty_s, **fluid_summary(run, workload, node_arrays)},
    )


def run_pools(site: TraceSite, trace: PoolTrace, parameters: ReschedulingParameters, report: ReportProgress) -> Result:
    """Replay jobs of pools, whose suspended jobs may restart in another pool, by the compiled loop."""
    # The clock begins at the first submit: it is sampled each minute, and traces may count seconds since 1970.
    begin = int(trace.submit[0])
    jobs = replace(trace, submit=trace.submit - begin)
    span_s = int(jobs.submit[-1]) // trace.ticks_per_s
    sample_until_s = span_s if span_s < MOST_SAMPLES * SAMPLE_S else 0
    run = replay_pools(site, jobs, parameters, sample_until_s=sample_until_s, progress=report)
    return Result(
        metrics=lambda: measure_pools(site, jobs, run, keeps_memory=parameters.suspended_memory == KEPT),
        write=lambda out, summary: write_pools(out, site, trace, run, summary, begin=begin),
        more=lambda: {**asdict(parameters), **pool_summary(jobs, run)},
    )


def run_spreading(
    node_arrays: NodeArrays,
    spread: ProgramTrace,
    asked: Requested,
    report: ReportProgress,
    *,
    programs: Mapping[str, Program],
) -> Result:
    """Replay a trace of programs by the event engine, where a job's run time may depend on its placement."""
    assert asked.spreading is not None  # noqa: S101  the trace was read for a policy that spreads
    options, parameters = asked.spreading
    if asked.rules is None:
        return _run_batch(node_arrays, spread, asked, report)
    assert isinstance(asked.policy, Portfolio)  # noqa: S101  a policy that matches is a portfolio
    scheduler: Matcher = asked.policy
    progress = progress_of(options.progress or AUTHORS, asked.name, node_arrays, spread.model)
    laboratory = None
    if options.learn is not None:
        laboratory = laboratory_of(
            node_arrays, programs, Exploration(parameters), spread=options.learn, seed=options.seed
        )
        scheduler = progress = LearningCluster(laboratory, scheduler, progress, spread.profiled)
    outcome = _run_engine(node_arrays, spread.trace, asked, report, scheduler=scheduler, progress=progress)

    def more() -> dict[str, Any]:
        learnt = {} if laboratory is None else {"learn": options.learn, **laboratory.counts()}
        return {**summary_of(spread, outcome.placements, parameters, options), **learnt}

    return _result(outcome, node_arrays, asked.policy.rules.portfolio, spreads=True)._replace(more=more)


def _run_batch(node_arrays: NodeArrays, spread: ProgramTrace, asked: Requested, report: ReportProgress) -> Result:
    """Replay a trace of programs through the plans of a policy that spreads and does not match: fcfs and easy."""
    assert asked.spreading is not None  # noqa: S101  the trace was read for a policy that spreads
    options, parameters = asked.spreading
    outcome = _run_planned(node_arrays, spread.trace, asked, report, run_time=spread.model)

    def more() -> dict[str, Any]:
        chosen = {} if asked.batch is None else asdict(asked.batch)
        of_spreading = summary_of(spread, outcome.placements, parameters, options)
        return {**of_spreading, **chosen, "user_estimates": options.user_estimates}

    return _result(outcome, node_arrays, spreads=True)._replace(more=more)


def _result(
    outcome: SimulationOutcome, node_arrays: NodeArrays, members: Sequence[str] = (), *, spreads: bool = False
) -> Result:
    """The result of an event engine's run; `spreads`: the policy uses scale factors."""
    return Result(
        metrics=lambda: measure(outcome, node_arrays, members),
        write=lambda out, summary: write_results(out, outcome, node_arrays, summary, spreads=spreads),
    )


def _run_planned(
    node_arrays: NodeArrays,
    trace: Trace,
    asked: Requested,
    report: ReportProgress,
    *,
    run_time: Callable[[Job, Alternative], Seconds] | None = None,
) -> SimulationOutcome:
    """Replay the trace through the policy's plans; `run_time` as in `PlannedSimulation`."""
    assert asked.policy is not None  # noqa: S101  the policy without plans is for pools: read_pool_replay
    simulation = PlannedSimulation(
        node_arrays, trace, asked.policy, interval_s=asked.interval_s, shares=asked.shares, run_time=run_time
    )
    return simulation.run(report)


def _run_engine(
    node_arrays: NodeArrays,
    trace: Trace,
    asked: Requested,
    report: ReportProgress,
    *,
    scheduler: Matcher,
    progress: Progress | None = None,
) -> SimulationOutcome:
    """Replay the trace by the event engine; without a progress model jobs run as long as the trace says."""
    assert asked.rules is not None  # noqa: S101  every policy that matches has rules
    simulation = Simulation(
        node_arrays,
        trace,
        scheduler,
        queue_depth=asked.rules.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    return simulation.run(report)


def _is_compiled(node_arrays: NodeArrays, rules: Rules, records: TraceArrays) -> bool:
    """Whether the compiled loop supports all heuristics that the rules and the jobs use."""
    own = {heuristic for *_, heuristic in records.kinds if heuristic}
    used = own.union(rules.portfolio, {rules.default_heuristic or rules.portfolio[0]})
    return used <= KEYS.keys() and kernel_holds(node_arrays, used)
