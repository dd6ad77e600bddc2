"""The arrays of the compiled pools: nodes, jobs, queues, and what has changed since the pools were served last.

Nodes are in pool order. Jobs are in submit order and of a kind: a priority, cores and memory. Levels are the ranks of
the priorities, 0 the lowest. Times are whole ticks.

What waits in a pool is found without looking at every job. The queued jobs of one kind in one pool are a list in the
order in which they joined: only its first job counts, since the others can be served no sooner. After a pool was
served, none of its waiting jobs can be served. So only nodes on which something was freed since then (changed nodes)
and kinds whose list was empty until then (new kinds) are looked at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: No job, no node, no place in a log.
NOBODY = -1
#: A job's states.
TO_COME, QUEUED, RUNNING, SUSPENDED, ENDED = range(5)

#: The counters of a site.
(
    NOW,
    SUBMITTED,
    JOINED,
    LAST_POOL,
    CORES_USED,
    SUSPENDED_JOBS,
    IN_HEAP,
    HAS_ENDED,
    PENDING_FIRST,
    PENDING_END,
    VISITS,
    SUSPENSIONS,
    DECISIONS,
    TERMS,
    FIRST_CHECK,
    CHECKS,
    COUNTERS,
) = range(17)


class PoolJobKinds(NamedTuple):
    """By kind of job: level, cores, memory in MiB, and which pools have a node that is large enough."""

    level: Integers
    cores: Integers
    memory: Integers
    fits: Flags


class PoolNodes(NamedTuple):
    """The nodes of pool p are `first[p]` to `first[p + 1]`, in list order.

    `running` and `suspended` are the first jobs of each node's lists, which `Lives.next` continues. `level_cores` and
    `level_memory`, shape (nodes, levels), are what the running jobs of each level hold. `changed` lists the changed
    nodes of each pool from `first[p]` on, in no order; `changes` counts them. `pool` is that of each node, and
    `all` are the nodes.
    """

    first: Integers
    cores: Integers
    memory: Integers
    free_cores: Integers
    free_memory: Integers
    running: Integers
    suspended: Integers
    level_cores: Integers
    level_memory: Integers
    is_changed: Flags
    changed: Integers
    changes: Integers
    pool: Integers
    all: Integers


class PoolJobs(NamedTuple):
    """What is known of the jobs when they are submitted; `expected` is the run time that decisions go by.

    `asked` is the pool that a job names, NOBODY if the virtual pool chooses; `allowed` a row of `allowed_sets`. `turn`
    orders the jobs of one queue and priority; without it they are served in the order in which they joined the queue.
    """

    submit: Integers
    run: Integers
    expected: Integers
    kind: NDArray[np.int32]
    asked: NDArray[np.int32]
    allowed: NDArray[np.int32]
    allowed_sets: Flags
    turn: Integers


class Lives(NamedTuple):
    """The jobs' lives so far.

    `since` is when the present state began, `start` when the present attempt did, which had run `ran` ticks at `since`.
    `end` is when a running job ends, and the next check of a queued one. `waited` and `suspended` are those of the
    present visit; when the job has completed, of all visits to its last pool. `all_suspended` is of all visits,
    `wasted` the run of all attempts but the last. `joined` orders queues; for a job that was suspended now it is its
    place in the decisions to take. `next` and `previous` link the lists of a queue, of a node, and of the samples of a
    pool. `heap_at` is the job's place in the heap of ends. `last_visit` is the last of its earlier visits in the log.
    """

    state: NDArray[np.int8]
    pool: NDArray[np.int16]
    node: NDArray[np.int32]
    since: Integers
    start: Integers
    ran: Integers
    end: Integers
    waited: Integers
    suspended: Integers
    all_suspended: Integers
    wasted: Integers
    first_start: Integers
    first_suspended: Integers
    suspensions: NDArray[np.int32]
    moves: NDArray[np.int32]
    joined: NDArray[np.int32]
    next: NDArray[np.int32]
    previous: NDArray[np.int32]
    heap_at: NDArray[np.int32]
    last_visit: NDArray[np.int32]


class Queues(NamedTuple):
    """By pool and kind: the first and last job that wait, and whether the kind is new.

    `present` lists the kinds that wait in each pool, `kinds` of them, in no order; `at` is a kind's place there.
    `is_due`: by pool, whether it has new kinds or changed nodes.
    """

    head: Integers
    tail: Integers
    is_new: Flags
    present: Integers
    at: Integers
    kinds: Integers
    is_due: Flags


class Samples(NamedTuple):
    """By pool and level: the first and last completed job of the window, how many, and their sums in ticks."""

    head: Integers
    tail: Integers
    number: Integers
    waited: Integers
    suspended: Integers


class ProgramRuns(NamedTuple):
    """The recent runs of each program: the first and last job that ended, how many, and the sum of their run times.

    `of` is each job's program, NOBODY if it is not known, and `next` links the runs of a program. Both are by job, and
    empty if decisions do not go by recent runs.
    """

    head: Integers
    tail: Integers
    number: Integers
    run: Integers
    of: NDArray[np.int32]
    next: NDArray[np.int32]


class Checks(NamedTuple):
    """A ring of the moments at which queued jobs are decided on, the next one first; empty if they are not.

    An entry counts if the job still waits, and its `Lives.end` is that moment.
    """

    due: Integers
    job: NDArray[np.int32]


class Logs(NamedTuple):
    """Earlier visits, which decisions read, and details that nothing here reads.

    Visits have a row for each move: job, pool, node, start, waited, suspended, ran, the job's visit before that. One
    that ended in the queue has no node, and ended at its "start".
    Suspensions: job, visit, node, from, to, whether it ended by a move. Decisions: time, job, own pool, chosen pool.
    Terms: decision, pool, samples, basis, sum of waits, sum of suspends, run time, number under both sums. A log that
    is full counts on and stores nothing.
    """

    visits: Integers
    suspensions: Integers
    decisions: Integers
    terms: Integers


class PoolRules(NamedTuple):
    """How the pools and the decisions work; see ReschedulingParameters. All times are in ticks.

    `weights` rank nodes with room: free cores and memory, configured cores and memory; `by_angle`: Mix-Fit. Nothing is
    simulated after `latest`, since sums of times might not fit into 64 bits. `by_recent_runs`: run times are not known;
    runs are recent for `recent` ticks, and `second` are the ticks of a second. `takes_remaining`: what is left to run
    counts for other pools, too. `check_every` is 0 for never.
    """

    restarts: bool
    frees_memory: bool
    only_suspended: bool
    by_availability: bool
    by_angle: bool
    weights: tuple[int, int, int, int]
    window: int
    most_moves: int
    latest: int
    by_recent_runs: bool
    recent: int
    second: int
    takes_remaining: bool
    keeps_work: bool
    move_cost: int
    check_every: int


class PoolSite(NamedTuple):
    """A site while it is simulated. `pending` are the newly suspended jobs, `spare` is working memory for victims."""

    kinds: PoolJobKinds
    nodes: PoolNodes
    jobs: PoolJobs
    lives: Lives
    queues: Queues
    samples: Samples
    programs: ProgramRuns
    checks: Checks
    logs: Logs
    counters: Integers
    heap: NDArray[np.int32]
    pending: NDArray[np.int32]
    spare: Integers
