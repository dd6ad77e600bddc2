"""The arrays of a replay of fluid jobs, and how fast each job advances.

The plain case is the paper's: a job advances by its yield. Three variants are closer to a site: caps on the CPU that
are set at multiples of an interval only, CPU needs that were measured with an error, and time limits.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.dfrs.fluid_arrays import RUNNING, Flags, Floats, FluidCluster, Integers, Places
from slurm_sns.policies.placement.compiled import subroutine

NANOSECONDS = 1_000_000_000
#: Later than everything.
NEVER = 1 << 62
#: The last moment that is simulated, 146 years; a job that would end later ends then in the forecast.
LAST_NS = NEVER - 1
NOW_NS, SUBMITTED, END_NS, CAPS_NS, RETRIES = range(5)


class FluidTimes(NamedTuple):
    """The moments of each job, in nanoseconds, NEVER for what has not happened.

    `end_ns` is a forecast as long as the job has not ended. Until `penalty_ns` the job makes no progress. `retry_ns` is
    when a job that has found no place `failures` times is tried again.
    """

    submit_ns: Integers
    start_ns: Integers
    end_ns: Integers
    penalty_ns: Integers
    retry_ns: Integers
    failures: Integers


class FluidCounts(NamedTuple):
    """What happened to the jobs.

    By job: how often it was preempted and migrated, how many of its tasks left a node in migrations, and whether its
    time limit ended it. `used` are the CPU and the memory that jobs held from the first submit to the last, times
    seconds. `instants` are the number of decisions, and of those after which a job was without nodes.
    """

    preemptions: Integers
    migrations: Integers
    tasks_moved: Integers
    killed: Flags
    used: Floats
    instants: Integers


class FluidSettings(NamedTuple):
    """How jobs advance: runs are every `period_ns`, a resume or a move costs `penalty_ns`.

    New caps on the CPU of running jobs count from the next multiple of `apply_ns` on; 0: at once. By job: `run_s` with
    all of the CPU need, `measured`, the need that the algorithm knows over the true one, and the time limit `limit_s`.
    """

    period_ns: int
    penalty_ns: int
    apply_ns: int
    run_s: Floats
    measured: Floats
    limit_s: Floats


class FluidPace(NamedTuple):
    """By job: its cap as a yield, its progress in a second, and what it has done and how long it has had nodes."""

    cap: Floats
    rate: Floats
    done_s: Floats
    wall_s: Floats


class FluidReplay(NamedTuple):
    """A replay: the nodes and jobs, which are in submit order, and what happens to them.

    `cursor` is where the replay stands: NOW_NS, SUBMITTED, the jobs that have been submitted, END_NS and CAPS_NS, when
    a job ends next and when new caps count, and RETRIES, how many jobs are on `retries`, a heap of those that will be
    tried again. `before`, `places` and `had_nodes` are the jobs that had nodes before a decision, and where they were.
    """

    cluster: FluidCluster
    times: FluidTimes
    counts: FluidCounts
    settings: FluidSettings
    pace: FluidPace
    cursor: Integers
    retries: Integers
    before: Integers
    places: Places
    had_nodes: Flags


@subroutine
def advance(replay: FluidReplay, now_ns: int, next_ns: int) -> None:
    """Add what the running jobs do until the next instant."""
    cluster, pace = replay.cluster, replay.pace
    last_submit_ns = replay.times.submit_ns[len(replay.times.submit_ns) - 1]
    counted_s = max(min(next_ns, last_submit_ns) - now_ns, 0) / NANOSECONDS
    for job in cluster.lists.running[: cluster.lists.counts[RUNNING]]:
        held = cluster.needs.tasks[job] * counted_s
        replay.counts.used[0] += held * cluster.needs.cpu[job] * pace.cap[job]
        replay.counts.used[1] += held * cluster.needs.memory[job]
        pace.wall_s[job] += (next_ns - now_ns) / NANOSECONDS
        begin_ns = max(now_ns, replay.times.penalty_ns[job])
        if begin_ns < next_ns:
            did_s = pace.rate[job] * ((next_ns - begin_ns) / NANOSECONDS)
            pace.done_s[job] += did_s
            cluster.states.virtual_s[job] += did_s / replay.settings.measured[job]


@subroutine
def set_rates(replay: FluidReplay, some_left: bool, now_ns: int) -> None:
    """Set the caps that count from now on, and how fast each job advances with them.

    `some_left`: jobs have lost their nodes now. Their caps are set anew when those of others are.
    """
    cluster, pace, apply_ns = replay.cluster, replay.pace, replay.settings.apply_ns
    states, needs, load = cluster.states, cluster.needs, cluster.space.cpu
    running = cluster.lists.running[: cluster.lists.counts[RUNNING]]
    is_time = not apply_ns or now_ns % apply_ns == 0
    some_differ = some_left and not is_time
    for job in running:
        if is_time or not replay.had_nodes[job]:
            pace.cap[job] = states.cpu_yield[job]
        replay.had_nodes[job] = True
        some_differ = some_differ or pace.cap[job] != states.cpu_yield[job]
    replay.cursor[CAPS_NS] = (now_ns // apply_ns + 1) * apply_ns if some_differ else NEVER
    if apply_ns:
        for node in range(len(load)):
            load[node] = 0.0
        for job in running:
            for node in states.places[needs.first[job] : needs.end[job]]:
                load[node] += pace.cap[job] * needs.cpu[job] / cluster.capacity.cpu[node]
    for job in running:
        rate = pace.cap[job]
        if apply_ns:
            # Old and new caps together may exceed a node: the kernel then shares it in proportion to them.
            most = 1.0
            for node in states.places[needs.first[job] : needs.end[job]]:
                most = max(most, load[node])
            rate /= most
        pace.rate[job] = min(rate * replay.settings.measured[job], 1.0)


@subroutine
def forecast(replay: FluidReplay, now_ns: int) -> None:
    """Set the end of each running job as it is now."""
    pace, settings, times, lists = replay.pace, replay.settings, replay.times, replay.cluster.lists
    next_ns = NEVER
    for job in lists.running[: lists.counts[RUNNING]]:
        left_s = max(settings.run_s[job] - pace.done_s[job], 0.0) / pace.rate[job]
        begin_ns = max(now_ns, times.penalty_ns[job])
        end_ns = LAST_NS
        if left_s < (LAST_NS - begin_ns) / NANOSECONDS:
            end_ns = begin_ns + int(np.rint(left_s * NANOSECONDS))
        limit_s = settings.limit_s[job] - pace.wall_s[job]
        is_killed = limit_s < (end_ns - now_ns) / NANOSECONDS - 1e-6
        if is_killed:
            end_ns = now_ns + int(np.rint(max(limit_s, 0.0) * NANOSECONDS))
        replay.counts.killed[job] = is_killed
        times.end_ns[job] = end_ns
        next_ns = min(next_ns, end_ns)
    replay.cursor[END_NS] = next_ns
