"""The rules by which a portfolio's cycles match jobs to nodes.

Jobs are taken in queue order, and the alternatives of a job best first, or by use. The first alternative for which
enough nodes are free is matched to the nodes that the heuristic scores best, and that capacity is gone for the rest of
the cycle. When a job at one of the first `reservations` positions finds no place, capacity is withheld for it, so that
jobs behind it cannot take it in this cycle.

Source: Max-Jobs paper (JSSPP 2013), sections 1, 2 and 5, and its authors' simulator. The paper withholds for every
unmatched job, the simulator at the first `reservations` positions of the queue. Neither says what to do for a job on n
nodes: here capacity is withheld on the n suitable nodes with the most free memory, or on all suitable nodes if there
are fewer.

Spread-n-Share (SC'19), section 4.4, asks that no job starves. How a cycle that keeps whole nodes prevents it is our own
choice. The first alternative of the first over-aged job without a place that the cluster could ever hold asks for n
nodes, and the n nodes with the fewest used cores (the first in the machine list on ties) are kept for it. Nodes are
kept for one job at a time and chosen anew in each cycle. No job starts on kept nodes, so the sum of the n smallest
numbers of used cores never grows, and at last the job starts.
"""

from dataclasses import dataclass, replace

import numpy as np

from slurm_sns.policies.placement.heuristic_names import LIST, OWN, PAPER, PAPER_BETA
from slurm_sns.policies.placement.node_arrays import WAYS, NodeArrays
from slurm_sns.policies.specification import DEFAULT_QUEUE_DEPTH

#: At most so many jobs are promised a start in a cycle: each promise costs a look at all nodes and running jobs.
MOST_PROMISES = 100


@dataclass(frozen=True)
class Rules:
    """How a portfolio's cycles match.

    `portfolio`: the heuristics that compete, after those of `with_gpus` where some node has GPUs. `queue_depth`: how
    many jobs of the ordered queue a cycle looks at. `reservations`: at how many of the first queue positions capacity
    is withheld for a job without a match. `default_heuristic`: if given, every member uses it for jobs that name none.
    `beta`: the weight of occupied ways in `idlest`. `keeper`: the member whose cycles keep whole nodes for the oldest
    over-aged job that finds no place. `weighs`: among schedules with equally many matches the smaller sum of predicted
    slowdowns wins. `for_profiled`: the members that compete only in a cycle where some queued job has a profile.
    `shared_ways`: ways of each node that no job is given. `ties`: which member wins among equally good ones (module
    `ties`); `own_scorer` is the member that knows what the policy is for, None for none. `order`: the order of a job's
    alternatives (module `use`). `withhold_up_to_s`: for a job that has waited longer no capacity is withheld, unless it
    is over-aged. `until_start`: nodes are kept for a job from the moment at which it can start, and not before (module
    `promise_kernel`); at most `reservations` jobs without a place have that promise, wherever they are in the queue,
    and one over-aged job has it.
    """

    portfolio: tuple[str, ...]
    queue_depth: int = DEFAULT_QUEUE_DEPTH
    reservations: int = 1
    default_heuristic: str | None = None
    beta: float = PAPER_BETA
    keeper: str | None = None
    weighs: bool = False
    for_profiled: tuple[str, ...] = ()
    shared_ways: int = 0
    ties: str = LIST
    own_scorer: str | None = None
    order: str = PAPER
    withhold_up_to_s: int | None = None
    until_start: bool = False
    with_gpus: tuple[str, ...] = ()

    def on(self, node_arrays: NodeArrays) -> "Rules":
        """The rules on these nodes: `portfolio` has all members that compete there."""
        if not self.with_gpus:
            return self
        first = self.with_gpus if node_arrays.gpu_names else ()
        return replace(self, portfolio=(*first, *self.portfolio), with_gpus=())

    @property
    def turns(self) -> tuple[int, ...]:
        """The members, by their place in the portfolio: in its order, or with the policy's own scorer first."""
        members = range(len(self.portfolio))
        if self.ties != OWN:
            return tuple(members)
        return tuple(sorted(members, key=lambda place: self.portfolio[place] != self.own_scorer))

    def unshared(self, node_arrays: NodeArrays) -> NodeArrays:
        """The nodes without the ways that no job is given."""
        if not self.shared_ways:
            return node_arrays
        capacity = node_arrays.capacity.copy()
        capacity[WAYS] -= np.minimum(capacity[WAYS], self.shared_ways)
        return node_arrays.with_capacity(capacity)

    @property
    def only_for_profiled(self) -> tuple[str, ...]:
        """The members that do not compete while no queued job has a profile: none if no other member were left."""
        return () if set(self.portfolio) <= set(self.for_profiled) else self.for_profiled
