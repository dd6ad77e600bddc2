"""What a compiled replay works on: the jobs of the trace, and the cluster while it runs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.cycle_kernel import Bench
from slurm_sns.policies.placement.kernel_arrays import Flags, Floats, Integers, Matches, Queue, Releases, Small

#: Later than everything.
NEVER = 1 << 62

#: The wheel's buckets, a power of two: cycles every 30 s for almost six days. A longer job is met once a turn.
BUCKETS = 1 << 14

NEXT_SUBMIT, WAITING, RUNNING, AGAIN_S, STARTED, CYCLES = range(6)
#: The part of `Cluster.aged` that waits, the first job that is not over-aged yet, and the limit (NEVER: none).
AGED_BEGIN, AGED_END, NEXT_AGED, AGE_LIMIT_S = range(6, 10)
#: The number of the last cycle (its second by the interval), and how many jobs with a profile wait.
LAST, PROFILED = range(10, 12)
#: The limit of waiting up to which capacity is withheld for a job (NEVER: none), and the first job below it.
WITHHOLD_LIMIT_S, NEXT_LATE = range(12, 14)
STATES = 14


class Jobs(NamedTuple):
    """The jobs of the trace by submit second. A job on several nodes has its nodes in `spread`, from `place` on.

    `previous` and `next_ending` are two names of one array, so that a job costs four bytes less: `previous` is of use
    only while the job is in its project's list, `next_ending` only while it runs, and it leaves the one list before it
    enters the other.
    """

    submit_s: Integers
    run_s: Integers  #: (choices, J) the run time in each choice of the job's kind
    start_s: Integers  #: NEVER until it has started
    choice: NDArray[np.int8]  #: in which choice of its kind it runs
    place: Integers  #: the node, or the begin in `spread`
    spread: Small
    previous: Small  #: of a job in its project's list: the one before it there, or NOBODY
    next_ending: Small  #: of a job that runs: the next one in its bucket of the wheel, or NOBODY


class Expected(NamedTuple):
    """When jobs are expected to end."""

    run_s: Floats  #: (J) the expected run time in an alternative of slowdown 1; infinite if nothing is known
    slowdown: Floats  #: (choices)
    end_s: Floats  #: (J) of a running job
    running: Integers  #: (cores of all nodes) the running jobs by expected end
    number: Integers  #: (1) how many these are


class Cluster(NamedTuple):
    """What changes while the replay runs."""

    bench: Bench
    queue: Queue
    tail: Integers  #: (projects) the last waiting job, or NOBODY
    aged: Integers  #: (jobs, or none without an age limit) the over-aged jobs, those that wait from AGED_BEGIN on
    jobs: Jobs
    profiled: Flags  #: (kinds, or none where no member is for profiled jobs only) the kind's jobs have a profile
    running: Small  #: (BUCKETS) the first job that finishes in a cycle of this number modulo BUCKETS, or NOBODY
    expected: Expected  #: of no jobs where nobody asks when they end
    coming: Releases  #: what running jobs will give back; scratch
    state: Integers  #: (STATES) NEXT_SUBMIT and the others above


@compiled
def end_of(jobs: Jobs, job: int) -> int:
    """When a job that has started ends."""
    return jobs.start_s[job] + jobs.run_s[jobs.choice[job], job]


@compiled
def put_down(jobs: Jobs, matches: Matches, entry: int, choice: int) -> None:
    """Write down in which choice of its kind, and where, a job runs."""
    job = matches.job[entry]
    first, last = matches.first[entry], matches.first[entry + 1]
    jobs.choice[job] = choice
    if last - first == 1:
        jobs.place[job] = matches.node[first]
    else:
        for at in range(last - first):
            jobs.spread[jobs.place[job] + at] = matches.node[first + at]


@compiled
def node_of_job(jobs: Jobs, job: int, nodes: int, at: int) -> int:
    """The node `at` of a job that runs on so many nodes."""
    return jobs.place[job] if nodes == 1 else jobs.spread[jobs.place[job] + at]
