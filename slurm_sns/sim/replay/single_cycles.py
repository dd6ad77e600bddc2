"""Match groups of jobs to empty nodes, one cycle for each group, and count what each heuristic matches.

The cycles are those of a replay: the same tables, the same kernel.
"""

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.cycle import Rules
from slurm_sns.policies.placement.cycle_kernel import bench_for
from slurm_sns.policies.placement.kernel_arrays import NOBODY, Queue, largest_number_of_takes
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio_kernel import schedule
from slurm_sns.sim.replay.trace_replay import problem_of
from slurm_sns.sim.traces.trace_arrays import TraceArrays


def matched_on_empty_nodes(
    node_arrays: NodeArrays, records: TraceArrays, rules: Rules, ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many jobs of each group each member of the portfolio matches, shape (groups, members).

    Group g holds the jobs `ends[g - 1]` to `ends[g]` of the records (the first begins at 0), all of them waiting; what
    one group takes is free again for the next. Projects are ignored.
    """
    problem = problem_of(node_arrays, records, rules)
    count = len(records)
    largest = int(np.diff(ends, prepend=0).max())
    takes = largest_number_of_takes(node_arrays.capacity, problem.alternatives)
    bench = bench_for(problem, largest, 1, takes)
    following = np.arange(1, count + 1, dtype=np.int32)
    following[ends[ends > 0] - 1] = NOBODY
    free = problem.nodes.capacity
    matched = np.zeros((len(ends), len(rules.portfolio)), np.int64)
    begin = 0
    for group, end in enumerate(ends.tolist()):
        if end > begin:
            schedule(bench, free, _queue(records, following, begin), True)
            matched[group] = bench.matched
        begin = end
    return matched


def _queue(records: TraceArrays, following: NDArray[np.int32], first: int) -> Queue:
    """The jobs that follow `first`, as the queue of one project."""
    count = len(records)
    return Queue(
        over_aged=np.zeros(0, np.int64),
        head=np.array([first], np.int64),
        following=following,
        kind=records.kind,
        project=np.zeros(count, np.int32) if len(records.projects) > 1 else records.project,
        order=records.submit_s,
        whole=np.ones((1, 2)),
        used=np.zeros((1, 2), np.int64),
        withholds=np.ones(count, np.bool_),
    )
