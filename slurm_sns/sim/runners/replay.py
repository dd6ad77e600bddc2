"""What all runners give: a trace that can be replayed, and its result.

A policy's specification names its runner. Portfolios, FCFS and EASY, DFRS and rescheduling have compiled loops. The
plain event engine replays what these lack: progress under contention, learning, nodes that the kernel does not hold,
and any policy that is known by its plans alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.cycle import Rules
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.placement.kernel_matching import kernel_holds
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.rescheduling.parameters import RESCHEDULING
from slurm_sns.sim.request import SimulationRequest, SpreadingRequest
from slurm_sns.sim.results.metrics import Metrics, measure
from slurm_sns.sim.results.result_files import write_results
from slurm_sns.sim.results.run import TraceRun
from slurm_sns.sim.traces.fluid_csv import has_tasks
from slurm_sns.sim.traces.pools_csv import has_pools
from slurm_sns.sim.traces.program_trace import ProgramTrace
from slurm_sns.sim.traces.trace_arrays import TraceArrays

#: Called from time to time with the number of jobs that have started (or were submitted, or have ended).
ReportProgress = Callable[[int], None]


class Result(NamedTuple):
    """The result of a replay: its metrics, and `more` entries for its summary; `write` writes it to a directory."""

    metrics: Callable[[], Metrics]
    write: Callable[[Path, Mapping[str, Any]], None]
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


def result_of(
    run: TraceRun, node_arrays: NodeArrays, more: Callable[[], dict[str, Any]] = dict, *, spreads: bool = False
) -> Result:
    """The result of jobs that have whole cores; `spreads`: the policy uses scale factors."""
    return Result(
        lambda: measure(run, node_arrays),
        lambda out, summary: write_results(out, run, node_arrays, summary, spreads=spreads),
        more,
    )


def settings_of_run(asked: SimulationRequest, rules: Rules | None = None) -> dict[str, Any]:
    """The entries of a summary that say how the policy runs."""
    matches = {}
    if rules is not None:
        matches = {
            "queue_depth": rules.queue_depth,
            "reservations": rules.reservations,
            "portfolio": list(rules.portfolio),
        }
    return {"interval_s": asked.interval_s, **matches}


def is_compiled(node_arrays: NodeArrays, rules: Rules, records: TraceArrays) -> bool:
    """Whether the compiled loop supports all heuristics that the rules and the jobs use."""
    own = {heuristic for *_, heuristic in records.kinds if heuristic}
    used = own.union(rules.portfolio, {rules.default_heuristic or rules.portfolio[0]})
    return used <= HEURISTICS.keys() and kernel_holds(node_arrays, used, rules.beta)


def spreading_summary(trace: ProgramTrace, run: TraceRun, spreading: SpreadingRequest) -> dict[str, Any]:
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
        "mean_turnaround_s": (run.end_s - run.records.submit_s).sum().item() / jobs,
    }


def spreading_of(asked: SimulationRequest) -> SpreadingRequest:
    """The request of a policy that chooses geometry."""
    assert asked.spreading is not None  # noqa: S101  the specification says that the policy chooses geometry
    return asked.spreading


def require_no_pools(trace: str, asked: SimulationRequest) -> None:
    """Refuse a trace that is for another policy.

    Raises:
        BadInput: naming the policies for which it is.
    """
    if has_pools(trace):
        raise BadInput(f"{trace}: jobs of pools go with --policy {RESCHEDULING.name}, not with {asked.name}")


def require_jobs_of_nodes(trace: str, asked: SimulationRequest) -> None:
    """The same for a policy that knows no fluid needs.

    Raises:
        BadInput: as above.
    """
    require_no_pools(trace, asked)
    if has_tasks(trace):
        raise BadInput(f"{trace}: tasks with fluid needs go with --policy fcfs, easy and dfrs-..., not {asked.name}")
