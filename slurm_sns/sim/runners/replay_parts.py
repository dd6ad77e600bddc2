"""What a runner returns, and what all runners do alike: the settings of a run, its results, and what is refused."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from slurm_sns.errors import BadInput
from slurm_sns.policies.matching.parameters import UNTIL_START, WHOLE_WAIT
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.rescheduling.parameters import RESCHEDULING
from slurm_sns.sim.request import SimulationRequest, SpreadingRequest
from slurm_sns.sim.results.metrics import Metrics, measure
from slurm_sns.sim.results.result_files import result_files
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.traces.fluid_trace import has_tasks
from slurm_sns.sim.traces.pool_trace import has_pools

#: Called from time to time with the number of jobs that have started (or were submitted, or have ended).
ReportProgress = Callable[[int], None]


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


def result_of(
    run: TraceRun, node_arrays: NodeArrays, more: Callable[[], dict[str, Any]] = dict, *, spreads: bool = False
) -> Result:
    """The result of jobs that have whole cores; `spreads`: the policy uses scale factors."""
    return Result(lambda: measure(run, node_arrays), result_files(run, node_arrays, spreads=spreads), more)


def settings_of(asked: SimulationRequest, rules: Rules | None = None) -> dict[str, Any]:
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
        raise BadInput(
            f"{trace}: tasks with fluid needs go with --policy fcfs, easy, slurm and dfrs-..., not {asked.name}"
        )
