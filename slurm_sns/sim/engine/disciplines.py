"""The queue disciplines of the reproductions of Spread-n-Share: which waiting jobs are tried, and in which order.

*text*: section 4.4 of the paper. In a cycle every waiting job is tried, in the order of submits; one that finds no
place is delayed, and the next is tried.
*age limit*: the same, and a job that has waited for longer than the age limit makes all others give way.
*first job*: only the first waiting job is tried, in the order of submits.
*prototype*: the queue of the authors' prototype on their cluster (module stride_queue).
*simulator*: the same queue as the authors' simulator serves it.
"""

from slurm_sns.policies.placement.fair_order import WaitingQueue
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Schedule
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.sim.engine.event_loop import EventLoop
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.engine.stride_queue import StrideSimulation
from slurm_sns.sim.progress.progress import Progress
from slurm_sns.sim.traces.trace import Trace

TEXT, AGE_LIMIT, FIRST_JOB, PROTOTYPE, SIMULATOR = "text", "age limit", "first job", "prototype", "simulator"
#: The paper demands a "configurable age limit" without a value; six hours are ours.
AGE_LIMIT_S = 6 * 3600


class PlainMatcher:
    """Matches by the plain twin: for a queue of one job it takes less time than filling the kernel's arrays."""

    def __init__(self, policy: Portfolio) -> None:
        self._policy = policy

    def schedule(self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The matches of one cycle; neither `free` nor `queue` is changed."""
        return self._policy.schedule(node_arrays, free, queue, plainly=True)


def simulation_of(
    discipline: str,
    node_arrays: NodeArrays,
    trace: Trace,
    policy: Portfolio,
    *,
    queue_depth: int,
    interval_s: int,
    progress: Progress,
) -> EventLoop:
    """The simulation of the policy under a queue discipline of this module.

    `queue_depth` is the policy's own: how many jobs a cycle looks at. Under *first job* it must be 1.
    """
    if discipline in {PROTOTYPE, SIMULATOR}:
        return StrideSimulation(
            node_arrays,
            trace,
            PlainMatcher(policy),
            interval_s=interval_s,
            progress=progress,
            tries_at_events_only=discipline == SIMULATOR,
        )
    return Simulation(
        node_arrays,
        trace,
        policy,
        queue_depth=queue_depth,
        interval_s=interval_s,
        progress=progress,
        age_limit_s=AGE_LIMIT_S if discipline == AGE_LIMIT else None,
    )


def queue_depth_of(discipline: str, deepest: int) -> int:
    """How many jobs a cycle looks at under the discipline; `deepest` where all are tried."""
    return 1 if discipline == FIRST_JOB else deepest
