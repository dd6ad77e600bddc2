"""How each policy is simulated: its runner reads a trace in the form that the policy needs, and can then replay it.

A policy's specification names its runner, a function of this module. Portfolios, FCFS and EASY, Slurm alone, DFRS and
rescheduling have compiled loops. The plain event engine replays what these lack: progress under contention, learning,
and any policy that is known by its plans alone.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from slurm_sns.errors import BadInput
from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters, SlurmParameters
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.policies.matching.parameters import UNTIL_START, WHOLE_WAIT
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.registry import REGISTRY
from slurm_sns.policies.rescheduling.parameters import KEPT, RESCHEDULING, ReschedulingParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.matching import Matcher, Simulation
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.engine.spreading_policies import progress_of
from slurm_sns.sim.profiling.learning_cluster import LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.replay.backfilling_loop import EASY, EASY_EXTRA_NODES, FCFS
from slurm_sns.sim.replay.fluid_replay import replay_fluid
from slurm_sns.sim.replay.pool_replay import SAMPLE_S, replay_pools
from slurm_sns.sim.replay.trace_replay import replay, replay_as_slurm, replay_in_order
from slurm_sns.sim.request import AUTHORS, SimulationRequest, SpreadingRequest
from slurm_sns.sim.results.fluid_results import fluid_job_lines, fluid_summary, measure_fluid, units
from slurm_sns.sim.results.metrics import Metrics, measure
from slurm_sns.sim.results.pool_results import measure_pools, pool_job_lines, pool_summary
from slurm_sns.sim.results.result_files import result_files
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB, TraceArrays
from slurm_sns.sim.traces.cluster_nodes import read_cluster, read_site_cluster
from slurm_sns.sim.traces.fluid_trace import has_tasks, on_whole_nodes, read_fluid
from slurm_sns.sim.traces.nodes_csv import read_site
from slurm_sns.sim.traces.pool_trace import has_pools, read_pool_trace
from slurm_sns.sim.traces.program_trace import ProgramTrace, TraceReader
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.site_partitions import SitePartitions

#: Called from time to time with the number of jobs that have started (or were submitted, or have ended).
ReportProgress = Callable[[int], None]

#: A job that a heuristic places has its alternatives from this policy: its own geometry.
MAX_JOBS = "max-jobs"
#: A job that has its nodes alone has its only alternative from this policy.
CE = "ce"
#: Samples of a site with pools, one each minute: 19 years.
MOST_SAMPLES = 10_000_000


class Result(NamedTuple):
    """The result of a replay: its metrics, the lines of its files by name, and `more` entries for its summary.

    The lines can be read once.
    """

    metrics: Callable[[], Metrics]
    files: Mapping[str, Iterable[str]]
    more: Callable[[], dict[str, Any]] = dict


@dataclass(frozen=True)
class Replay:
    """A trace that has been read for a policy and can be run.

    `jobs` is their number, `dropped` the number left out by reason, `unsorted` the number out of submit order.
    `settings` are the entries of a summary that say how the policy runs; `counts` says what progress counts.
    """

    jobs: int
    dropped: Mapping[str, int]
    unsorted: int
    run: Callable[[ReportProgress], Result]
    settings: Mapping[str, Any] = field(default_factory=dict)
    counts: str = "jobs started"


#: Reads the trace of this name for the nodes of this name. Arrival times are multiplied by the factor; `limit` is how
#: many jobs are read, None for all.
Runner = Callable[[str, str, SimulationRequest, float, int | None], Replay]


# --- portfolios


def matching(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches jobs which keep their geometry.

    Raises:
        BadInput: a file cannot be read; the message names file, line and what would be valid.
    """
    node_arrays, partitions = read_cluster(nodes)
    _require_jobs_of_nodes(trace, asked)
    records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit, partitions=partitions)

    def run(report: ReportProgress) -> Result:
        return _result(_match(node_arrays, records, asked, report), node_arrays)

    settings = _settings(asked, _portfolio_of(asked).rules.on(node_arrays))
    return Replay(len(records), records.dropped, records.unsorted, run, settings)


def programs(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A policy that matches and may choose the geometry of jobs, whose run times may depend on it.

    Raises:
        BadInput: as in `matching`.
    """
    node_arrays, partitions = read_cluster(nodes)
    _require_jobs_of_nodes(trace, asked)
    spreading, policy = _spreading_of(asked), _portfolio_of(asked)
    profiles = spreading.programs(node_arrays)
    reader = TraceReader(node_arrays, asked.name, profiles, spreading.parameters, partitions=partitions)
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    if spreading.learn is not None and not spread.profiled:
        raise BadInput(f"{trace}: no job has a profile to learn; valid for --learn: a CSV of programs in --profiles")

    def progress() -> Progress:
        return progress_of(spreading.progress, asked.name, node_arrays, spread.model)

    def run(report: ReportProgress) -> Result:
        learnt: dict[str, Any] = {}
        if spreading.learn is None and spreading.progress == AUTHORS:
            of = _match(node_arrays, spread.records, asked, report)
        elif spreading.learn is None:
            of = _match_plainly(node_arrays, spread.records, asked, report, scheduler=policy, progress=progress())
        else:
            exploration = Exploration(spreading.parameters)
            laboratory = laboratory_of(node_arrays, profiles, exploration, spread=spreading.learn, seed=spreading.seed)
            learning = LearningCluster(laboratory, policy, progress(), spread.profiled)
            of = _match_plainly(node_arrays, spread.records, asked, report, scheduler=learning, progress=learning)
            learnt = {"learn": spreading.learn, **laboratory.counts()}
        return _result(of, node_arrays, lambda: {**_spreading_summary(spread, of, spreading), **learnt}, spreads=True)

    return Replay(len(spread.records), spread.records.dropped, 0, run, _settings(asked, policy.rules.on(node_arrays)))


def _match(node_arrays: NodeArrays, records: TraceArrays, asked: SimulationRequest, report: ReportProgress) -> TraceRun:
    """Replay the trace by the compiled loop."""
    return replay(
        node_arrays,
        records,
        _portfolio_of(asked).rules,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=report,
    )


def _match_plainly(
    node_arrays: NodeArrays,
    records: TraceArrays,
    asked: SimulationRequest,
    report: ReportProgress,
    *,
    scheduler: Matcher,
    progress: Progress | None,
) -> TraceRun:
    """Replay the trace by the event engine; without a progress model jobs run as long as the trace says."""
    rules = _portfolio_of(asked).rules
    simulation = Simulation(
        node_arrays,
        records.values(),
        scheduler,
        queue_depth=rules.queue_depth,
        interval_s=asked.interval_s,
        shares=asked.shares,
        age_limit_s=asked.age_limit_s,
        progress=progress,
    )
    return simulation.run(report).as_run(records, rules.on(node_arrays).portfolio)


# --- any policy


def by_plans(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """A portfolio as our own are; of any other policy each cycle carries out the plan.

    Raises:
        BadInput: as in `matching`, or an option that a policy known by its plans alone has no use for.
    """
    if isinstance(asked.policy, Portfolio):
        runner = matching if asked.spreading is None else programs
        return runner(trace, nodes, asked, load_factor, limit)
    spreading = asked.spreading
    if spreading is not None and (spreading.profiles, spreading.learn, spreading.user_estimates) != (None, None, False):
        raise BadInput(
            f"--profiles and --user-estimates go with portfolios, fcfs, easy and slurm, not with {asked.name}"
        )
    node_arrays, partitions = read_cluster(nodes)
    _require_jobs_of_nodes(trace, asked)
    records = read_records(trace, node_arrays, load_factor=load_factor, limit=limit, partitions=partitions)
    policy = asked.policy
    assert policy is not None  # noqa: S101  its specification has a factory

    def run(report: ReportProgress) -> Result:
        simulation = PlannedSimulation(
            node_arrays, records.values(), policy, interval_s=asked.interval_s, shares=asked.shares
        )
        return _result(simulation.run(report).as_run(records), node_arrays)

    return Replay(len(records), records.dropped, records.unsorted, run, _settings(asked))


# --- FCFS and EASY, Slurm alone


def in_order(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """FCFS and EASY over any way of placing; of jobs with fluid needs each task has a node of its own.

    Raises:
        BadInput: as in `matching`, or an option needs another trace.
    """
    node_arrays, partitions = read_cluster(nodes)
    _require_no_pools(trace, asked)
    spreading, batch = _spreading_of(asked), asked.parameters_of(BatchParameters)
    algorithm = FCFS
    if isinstance(batch, EasyParameters):
        algorithm = EASY_EXTRA_NODES if batch.extra_nodes_only else EASY
    placement = placing(batch.placement, asked.parameters_of(SpreadingParameters))
    rules = replace(placement.rules, queue_depth=batch.queue_depth)
    placed_as = batch.placement if batch.placement in REGISTRY else MAX_JOBS
    records, spread = _batch_jobs(
        trace, (node_arrays, partitions), spreading, placed_as, load_factor=load_factor, limit=limit
    )

    def run(report: ReportProgress) -> Result:
        of = replay_in_order(
            node_arrays,
            records,
            rules,
            algorithm,
            interval_s=asked.interval_s,
            shares=asked.shares,
            progress=report,
        )
        return _batch_result(of, node_arrays, spread, spreading, batch)

    unsorted = records.unsorted if spread is None else 0
    return Replay(len(records), records.dropped, unsorted, run, _settings(asked))


def slurm_alone(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """Slurm without slurm_sns: jobs keep their geometry. What is not asked for is as the site's slurm.conf says it.

    Raises:
        BadInput: as in `in_order`.
    """
    node_arrays, partitions, of_site = read_site_cluster(nodes)
    _require_no_pools(trace, asked)
    spreading, parameters = _spreading_of(asked), asked.parameters_of(SlurmParameters)
    if of_site is not None:
        given = asked.given & asdict(parameters).keys()
        parameters = replace(of_site, **{name: getattr(parameters, name) for name in given})
    placed_as = CE if parameters.exclusive else MAX_JOBS
    records, spread = _batch_jobs(
        trace, (node_arrays, partitions), spreading, placed_as, load_factor=load_factor, limit=limit
    )

    def run(report: ReportProgress) -> Result:
        of = replay_as_slurm(node_arrays, records, parameters, interval_s=asked.interval_s, progress=report)
        return _batch_result(of, node_arrays, spread, spreading, parameters)

    unsorted = records.unsorted if spread is None else 0
    return Replay(len(records), records.dropped, unsorted, run, _settings(asked))


def _batch_jobs(
    trace: str,
    cluster: tuple[NodeArrays, SitePartitions],
    spreading: SpreadingRequest,
    placed_as: str,
    *,
    load_factor: float,
    limit: int | None,
) -> tuple[TraceArrays, ProgramTrace | None]:
    """The jobs with the alternatives of this policy; None as the second: each task has a node of its own."""
    node_arrays, partitions = cluster
    if has_tasks(trace):
        return _on_whole_nodes(trace, node_arrays, spreading, load_factor, limit), None
    reader = TraceReader(
        node_arrays,
        placed_as,
        spreading.programs(node_arrays),
        spreading.parameters,
        spreading.user_estimates,
        partitions=partitions,
    )
    spread = reader.read(trace, load_factor=load_factor, limit=limit)
    return spread.records, spread


def _batch_result(
    of: TraceRun,
    node_arrays: NodeArrays,
    spread: ProgramTrace | None,
    spreading: SpreadingRequest,
    parameters: BatchParameters | SlurmParameters,
) -> Result:
    """The result, with the policy's parameters among the summary's entries."""
    if spread is None:
        return _result(of, node_arrays, lambda: asdict(parameters))
    estimates = {"user_estimates": spreading.user_estimates}
    return _result(
        of,
        node_arrays,
        lambda: {**_spreading_summary(spread, of, spreading), **asdict(parameters), **estimates},
        spreads=True,
    )


def _on_whole_nodes(
    trace: str, node_arrays: NodeArrays, spreading: SpreadingRequest, load_factor: float, limit: int | None
) -> TraceArrays:
    """The jobs of a trace of fluid needs, each task alone on a node.

    Raises:
        BadInput: as in `in_order`, nodes have so little memory that they count as full, or no job is left.
    """
    if spreading.user_estimates:
        raise BadInput(f"{trace}: a CSV has no time limits; valid with user estimates: SWF, sacct")
    if spreading.profiles is not None:
        raise BadInput(f"{trace}: jobs have tasks and no programs; valid with --profiles: a CSV of programs")
    jobs, _ = read_fluid(trace, node_arrays, load_factor=load_factor, limit=limit)
    least_mb = int(node_arrays.capacity[MEMORY].min())
    if least_mb < SMALLEST_MEMORY_MB:
        raise BadInput(f"nodes have {least_mb} MiB; valid with fcfs and easy: {SMALLEST_MEMORY_MB} or more")
    return on_whole_nodes(jobs.that_fit(jobs.tasks <= len(node_arrays.names), trace), node_arrays)


# --- DFRS and rescheduling


def fluid(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """DFRS: jobs that share the CPU by fractions.

    Raises:
        BadInput: as in `matching`.
    """
    true_nodes, partitions = read_cluster(nodes)
    _require_no_pools(trace, asked)
    policy = asked.policy
    assert isinstance(policy, Dfrs)  # noqa: S101  the specification names both
    jobs, node_arrays = read_fluid(trace, true_nodes, load_factor=load_factor, limit=limit, partitions=partitions)
    unit = units(node_arrays, true_nodes)
    periodic = {"period_s": policy.period_s} if policy.algorithm.packs_periodically else {}

    def run(report: ReportProgress) -> Result:
        of = replay_fluid(
            node_arrays,
            jobs,
            policy.algorithm,
            period_s=policy.period_s,
            penalty_s=asked.penalty_s,
            progress=report,
        )
        return Result(
            lambda: measure_fluid(of, node_arrays),
            {"jobs.csv": fluid_job_lines(of, node_arrays.names, unit)},
            lambda: {**periodic, "penalty_s": asked.penalty_s, **fluid_summary(of, unit[MEMORY])},
        )

    return Replay(len(jobs), jobs.dropped, jobs.unsorted, run, counts="jobs submitted")


def pools(trace: str, nodes: str, asked: SimulationRequest, load_factor: float, limit: int | None) -> Replay:
    """Rescheduling: jobs of pools, whose suspended jobs may restart in another pool.

    Raises:
        BadInput: as in `matching`.
    """
    site, parameters = read_site(nodes), asked.parameters_of(ReschedulingParameters)
    records = read_pool_trace(trace, site, load_factor=load_factor, limit=limit)

    def run(report: ReportProgress) -> Result:
        # The clock begins at the first submit: it is sampled each minute, and traces may count seconds since 1970.
        begin = int(records.submit[0])
        jobs = replace(records, submit=records.submit - begin)
        span_s = int(jobs.submit[-1]) // records.ticks_per_s
        sample_until_s = span_s if span_s < MOST_SAMPLES * SAMPLE_S else 0
        of = replay_pools(site, jobs, parameters, sample_until_s=sample_until_s, progress=report)
        return Result(
            lambda: measure_pools(site, of, keeps_memory=parameters.suspended_memory == KEPT),
            {"jobs.csv": pool_job_lines(site, of, begin)},
            lambda: {**asdict(parameters), **pool_summary(of)},
        )

    return Replay(len(records), records.dropped, records.unsorted, run, counts="jobs ended")


# --- what runners share


def _result(
    run: TraceRun, node_arrays: NodeArrays, more: Callable[[], dict[str, Any]] = dict, *, spreads: bool = False
) -> Result:
    """The result of jobs that have whole cores; `spreads`: the policy uses scale factors."""
    return Result(lambda: measure(run, node_arrays), result_files(run, node_arrays, spreads=spreads), more)


def _settings(asked: SimulationRequest, rules: Rules | None = None) -> dict[str, Any]:
    """The entries of a summary that say how the policy runs."""
    if rules is None:
        return {"interval_s": asked.interval_s}
    names = ("queue_depth", "reservations", "portfolio", "ties", "withhold_up_to_s")
    return {
        "interval_s": asked.interval_s,
        **{name: getattr(rules, name) for name in names},
        "withhold": UNTIL_START if rules.until_start else WHOLE_WAIT,
        "alternatives_order": rules.order,
    }


def _spreading_summary(trace: ProgramTrace, run: TraceRun, spreading: SpreadingRequest) -> dict[str, Any]:
    """The entries that the summary has for policies that spread only."""
    parameters, jobs = spreading.parameters, len(trace.records)
    return {
        "alpha": parameters.alpha,
        "scales": list(parameters.scales),
        "beta": parameters.beta,
        "shared_ways": parameters.shared_ways,
        "even_scales_only": parameters.even_scales_only,
        "progress": spreading.progress,
        "profiles": None if spreading.profiles is None else spreading.profiles.name,
        "jobs_without_profile": trace.without_profile,
        "mean_run_s": (run.end_s - run.start_s).sum().item() / jobs,
        "mean_turnaround_s": (run.end_s - run.trace.submit_s).sum().item() / jobs,
    }


def _portfolio_of(asked: SimulationRequest) -> Portfolio:
    """The policy, which is a portfolio."""
    assert isinstance(asked.policy, Portfolio)  # noqa: S101  the specification names both
    return asked.policy


def _spreading_of(asked: SimulationRequest) -> SpreadingRequest:
    """The request of a policy that chooses geometry."""
    assert asked.spreading is not None  # noqa: S101  the specification says that the policy chooses geometry
    return asked.spreading


def _require_no_pools(trace: str, asked: SimulationRequest) -> None:
    """Refuse a trace that is for another policy.

    Raises:
        BadInput: naming the policies for which it is.
    """
    if has_pools(trace):
        raise BadInput(f"{trace}: jobs of pools go with --policy {RESCHEDULING.name}, not with {asked.name}")


def _require_jobs_of_nodes(trace: str, asked: SimulationRequest) -> None:
    """The same for a policy that knows no fluid needs.

    Raises:
        BadInput: as above.
    """
    _require_no_pools(trace, asked)
    if has_tasks(trace):
        raise BadInput(
            f"{trace}: tasks with fluid needs go with --policy fcfs, easy, slurm and dfrs-..., not {asked.name}"
        )
