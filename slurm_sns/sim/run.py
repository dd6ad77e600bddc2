"""The run of a trace: when each job started and ended, where, and what it went through.

All results of a simulation are written and computed from it, whatever has simulated it.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import MEMORY, NodeArrays
from slurm_sns.sim.trace import Flags, Moments, TraceArrays, no_column

Integers = NDArray[np.integer]


class Cycles(NamedTuple):
    """The cycles of a run, or of a part of it."""

    time_s: NDArray[np.int64]
    waiting: NDArray[np.int64]
    started: NDArray[np.int64]
    chosen: NDArray[np.int64]  #: a member of the portfolio, -1 for none
    winners: NDArray[np.int64]  #: a bit for each member that reached the maximum


class Visits(NamedTuple):
    """By visit of a job to a pool, job by job in the trace's order, and in the order of its visits; times in ticks.

    `start` and `node` are -1 for a visit that ended in the queue.
    """

    job: Integers
    pool: Integers
    joined: Integers
    start: Integers
    node: Integers
    suspended: Integers
    ran: Integers


class Details(NamedTuple):
    """What happened, row by row; see `Logs` of module pool_arrays. Empty unless it was asked for."""

    suspensions: Integers
    decisions: Integers
    terms: Integers


@dataclass(frozen=True)
class TraceRun:
    """The jobs in the order of the trace, in its ticks.

    `start` is a job's first start; with pools that of its last attempt. A job on one node has it in `place`, a job on
    several has its nodes in `spread` from `place` on: those at its end. What a replay does not know is empty:

    - jobs of whole cores: `choice` is the position of a job's alternative among those of its kind; every cycle;
      `members` are the portfolio in its order, none for a policy that has none.
    - fractional sharing: `preemptions`: it ran before an instant and not after it; `migrations`: it ran before and
      after on other nodes; `tasks_moved`: its tasks that left a node in migrations; `killed`: its time limit ended it;
      `lost_s`: the progress that preemptions undid; `wall_s`: how long it had nodes. `used` are the cores and memory
      that jobs held from the first submit to the last, in units of the nodes' capacity times seconds. `instants` are
      the number of decisions, and of those after which a job had no nodes.
    - pools: the `pool` of a job's completion, as a place in the site's. `waited` is in all queues, `suspended` over its
      life. `wasted` is the run of all attempts but the last. `first_suspended` is -1 for a job that never was.
      `cores_used` and `suspended_jobs` are samples after the events of minute 0, 1, ... `visits` makes the columns of
      all visits, which take much memory.
    """

    trace: TraceArrays
    start: Moments
    end: Moments
    place: Integers
    _: KW_ONLY
    spread: Integers = field(default_factory=no_column)

    choice: NDArray[np.int8] = field(default_factory=no_column)
    cycles: Cycles = field(default_factory=lambda: Cycles(*(no_column() for _ in Cycles._fields)))
    members: Sequence[str] = ()

    preemptions: Integers = field(default_factory=no_column)
    migrations: Integers = field(default_factory=no_column)
    tasks_moved: Integers = field(default_factory=no_column)
    killed: Flags = field(default_factory=no_column)
    lost_s: NDArray[np.float64] = field(default_factory=no_column)
    wall_s: NDArray[np.float64] = field(default_factory=no_column)
    used: tuple[float, float] = (0.0, 0.0)
    instants: tuple[int, int] = (0, 0)

    pool: Integers = field(default_factory=no_column)
    first_start: Integers = field(default_factory=no_column)
    waited: Integers = field(default_factory=no_column)
    suspended: Integers = field(default_factory=no_column)
    suspensions: Integers = field(default_factory=no_column)
    restarts: Integers = field(default_factory=no_column)
    wasted: Integers = field(default_factory=no_column)
    first_suspended: Integers = field(default_factory=no_column)
    cores_used: Integers = field(default_factory=no_column)
    suspended_jobs: Integers = field(default_factory=no_column)
    visits: Callable[[], Visits] = lambda: Visits(*(no_column() for _ in Visits._fields))
    details: Details = field(default_factory=lambda: Details(*(no_column() for _ in Details._fields)))

    @property
    def start_s(self) -> Moments:
        """Starts in seconds; integers where a tick is a second and all are whole."""
        return self.start if self.trace.ticks_per_s == 1 else self.trace.seconds(self.start)

    @property
    def end_s(self) -> Moments:
        """Ends in the same way."""
        return self.end if self.trace.ticks_per_s == 1 else self.trace.seconds(self.end)

    def alternative(self, job: int) -> Alternative:
        """The alternative in which a job of whole cores ran."""
        return self.trace.choices[int(self.trace.kind[job])][int(self.choice[job])]

    def nodes(self, job: int) -> Sequence[int]:
        """The nodes of a job, by their index in the cluster."""
        trace, begin, count = self.trace, int(self.place[job]), 1
        if len(trace.kind):
            count = self.alternative(job).nodes
        elif len(trace.tasks):
            count = int(trace.tasks[job])
        return [begin] if count == 1 else self.spread[begin : begin + count].tolist()

    def held(self, node_arrays: NodeArrays) -> NDArray[np.float64]:
        """Cores and memory that each job held, shape (2, jobs): of a job on empty nodes all that these have."""
        trace = self.trace
        if not len(trace.kind):
            tasks = trace.tasks if len(trace.tasks) else 1
            return np.array([trace.cores * tasks, trace.memory * tasks], np.float64)
        choices = [each for of_kind in trace.choices for each in of_kind]
        of_job = np.cumsum([0, *map(len, trace.choices)])[trace.kind] + self.choice
        nodes = np.array([each.nodes for each in choices])
        demand = np.array([(each.demand.cores, each.demand.memory_mb) for each in choices])
        held: NDArray[np.float64] = (nodes[:, np.newaxis] * demand).astype(np.float64).T[:, of_job]
        whole = np.flatnonzero(np.array([each.exclusive for each in choices])[of_job])
        if len(whole):
            is_one = nodes[of_job[whole]] == 1
            for row, capacity in enumerate(node_arrays.capacity[: MEMORY + 1]):
                up_to = np.concatenate([[0], np.cumsum(capacity[self.spread])])
                first = np.where(is_one, 0, self.place[whole])
                last = np.where(is_one, 0, first + nodes[of_job[whole]])
                alone = capacity[np.where(is_one, self.place[whole], 0)]
                held[row, whole] = np.where(is_one, alone, up_to[last] - up_to[first])
        return held
