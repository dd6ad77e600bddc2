"""The compiled event loop of fluid jobs, apart from that of whole cores because ends move whenever yields change.

The jobs of a trace advance by their yields, and DFRS decides at each instant.

An instant is one moment at which something happens: first jobs end, then newcomers are submitted and back-offs end,
then the kernel decides once. Between two instants rates do not change, so that ends are computed and no time step is
needed. Moments are whole nanoseconds: ends that should fall together do, whatever the rounding errors.

An instant costs O(running jobs and their tasks), as each of them advances, and what the algorithm looks at. In overload
the number of instants may grow faster than that of jobs: under GREEDY each waiting job's attempts are instants, one in
4,096 s at least.

The plain case is the paper's: a job advances by its yield. Four variants are closer to a site: caps on the CPU that
are set at multiples of an interval only, CPU needs that were measured with an error, time limits, and jobs that are
paused by a requeue. Only those that can restart are, and each begins again with the work of its last checkpoint.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-A.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.dfrs.algorithms import MOST_DOUBLINGS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import (
    RUNNING,
    TURNS,
    WAITING,
    DecisionMoment,
    Flags,
    Floats,
    FluidCluster,
    Integers,
    Places,
    copy,
)
from slurm_sns.policies.dfrs.instant_kernel import decide
from slurm_sns.policies.dfrs.job_lists import add_waiting, take_nodes
from slurm_sns.policies.dfrs.order_kernel import pop, push
from slurm_sns.policies.placement.compiled import entry_point, subroutine

NANOSECONDS = 1_000_000_000
#: Later than everything.
NEVER = 1 << 62
#: The last moment that is simulated, 146 years; a job that would end later ends then in the forecast.
LAST_NS = NEVER - 1
#: A checkpoint that is due after a shorter fraction of its interval has been written.
_ROUNDING = 1e-9
NOW_NS, SUBMITTED, END_NS, CAPS_NS, RETRIES = range(5)


class FluidTimes(NamedTuple):
    """The moments of each job, in nanoseconds, NEVER for what has not happened.

    `start_ns` is the first start, `begun_ns` when the job was last started, resumed or moved. `end_ns` is a forecast as
    long as the job has not ended. Until `penalty_ns` the job makes no progress. `retry_ns` is when a job that has found
    no place `failures` times is tried again.
    """

    submit_ns: Integers
    start_ns: Integers
    begun_ns: Integers
    end_ns: Integers
    penalty_ns: Integers
    retry_ns: Integers
    failures: Integers


class FluidCounts(NamedTuple):
    """What happened to the jobs.

    By job: how often it was preempted and migrated, how many of its tasks left a node in migrations, whether its time
    limit ended it, and the progress that it lost by preemptions. `used` are the CPU and the memory that jobs held from
    the first submit to the last, times seconds. `instants` are the number of decisions, and of those after which a job
    was without nodes.
    """

    preemptions: Integers
    migrations: Integers
    tasks_moved: Integers
    killed: Flags
    lost_s: Floats
    used: Floats
    instants: Integers


class FluidSettings(NamedTuple):
    """How jobs advance: runs are every `period_ns`, a resume or a move costs `penalty_ns`.

    New caps on the CPU of running jobs count from the next multiple of `apply_ns` on; 0: at once. By job: `run_s` with
    all of the CPU need, `measured`, the need that the algorithm knows over the true one, and the time limit `limit_s`.

    Jobs that are `restartable` are paused, no sooner than `protect_ns` after they were started or resumed and at most
    `most_pauses` times. A job keeps the progress of its last checkpoint, one each `checkpoint_s` of progress (0: all of
    it, inf: none). If it `forgets`, its virtual time falls with its progress. Only if it `pauses_again`, a job that was
    paused pauses others.
    """

    period_ns: int
    penalty_ns: int
    apply_ns: int
    run_s: Floats
    measured: Floats
    limit_s: Floats
    restartable: Flags
    checkpoint_s: float
    protect_ns: int
    most_pauses: int
    forgets: bool
    pauses_again: bool


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


@entry_point
def replay_some(algorithm: Algorithm, replay: FluidReplay, most: int) -> bool:
    """Replay at most so many moments; False when each job has ended, or none can go on until LAST_NS."""
    cursor = replay.cursor
    for _ in range(most):
        event_ns = _next_event(algorithm, replay)
        now_ns = min(event_ns, cursor[CAPS_NS])
        if now_ns >= LAST_NS:
            return False
        advance(replay, cursor[NOW_NS], now_ns)
        cursor[NOW_NS] = now_ns
        some_left, changes = False, True
        if now_ns == event_ns:
            _take_ended(replay)
            _list_turns(replay)
            changes, some_left = _decide(algorithm, replay, now_ns)
        if changes or replay.settings.apply_ns:
            set_rates(replay, some_left, now_ns)
        forecast(replay, now_ns)
    return True


@subroutine
def _next_event(algorithm: Algorithm, replay: FluidReplay) -> int:
    """When something happens next, NEVER if nothing does."""
    cursor, times, period_ns, counts = (
        replay.cursor,
        replay.times,
        replay.settings.period_ns,
        replay.cluster.lists.counts,
    )
    next_ns = cursor[END_NS]
    if cursor[SUBMITTED] < len(times.submit_ns):
        next_ns = min(next_ns, times.submit_ns[cursor[SUBMITTED]])
    if algorithm.packs_periodically and counts[RUNNING] + counts[WAITING]:
        next_ns = min(next_ns, (cursor[NOW_NS] // period_ns + 1) * period_ns)
    if cursor[RETRIES]:
        next_ns = min(next_ns, times.retry_ns[replay.retries[0]])
    return next_ns


@subroutine
def _take_ended(replay: FluidReplay) -> None:
    """Take away the jobs that have ended."""
    lists, now_ns = replay.cluster.lists, replay.cursor[NOW_NS]
    if replay.cursor[END_NS] <= now_ns:
        for at in range(lists.counts[RUNNING] - 1, -1, -1):
            if replay.times.end_ns[lists.running[at]] <= now_ns:
                take_nodes(replay.cluster, lists.running[at])


@subroutine
def _list_turns(replay: FluidReplay) -> None:
    """List the jobs whose back-off ends now, then those that are submitted now, which are later ones."""
    cursor, times, lists = replay.cursor, replay.times, replay.cluster.lists
    count = 0
    while cursor[RETRIES] and times.retry_ns[replay.retries[0]] <= cursor[NOW_NS]:
        lists.turns[count] = pop(replay.retries, cursor[RETRIES], times.retry_ns)
        cursor[RETRIES] -= 1
        count += 1
    while cursor[SUBMITTED] < len(times.submit_ns) and times.submit_ns[cursor[SUBMITTED]] <= cursor[NOW_NS]:
        add_waiting(replay.cluster, cursor[SUBMITTED])
        lists.turns[count] = cursor[SUBMITTED]
        cursor[SUBMITTED] += 1
        count += 1
    lists.counts[TURNS] = count


@subroutine
def _decide(algorithm: Algorithm, replay: FluidReplay, now_ns: int) -> tuple[bool, bool]:
    """Let the kernel decide, and carry its decision out; whether yields may change, and whether jobs lost nodes."""
    lists, has_nodes, period_ns = replay.cluster.lists, replay.cluster.states.has_nodes, replay.settings.period_ns
    before = replay.before[: lists.counts[RUNNING]]
    copy(before, lists.running[: len(before)])
    next_run_ns = (now_ns // period_ns + 1) * period_ns
    clock = DecisionMoment(
        now_ns / NANOSECONDS, now_ns % period_ns == 0, period_ns / NANOSECONDS, next_run_ns / NANOSECONDS
    )
    if algorithm.preempts:
        _judge_pauses(replay, before, now_ns)
    changes, some_left = decide(algorithm, replay.cluster, clock), False
    if changes:
        for job in before:
            if not has_nodes[job]:
                replay.counts.preemptions[job] += 1
                _go_back(replay, job)
                replay.had_nodes[job] = False
                some_left = True
        for job in lists.running[: lists.counts[RUNNING]]:
            _carry_out(replay, job, now_ns)
    if algorithm.backs_off:
        for job in lists.turns[: lists.counts[TURNS]]:
            if lists.failed[job]:
                _back_off(replay, job, now_ns)
    replay.counts.instants[0] += 1
    replay.counts.instants[1] += lists.counts[WAITING] > 0
    return changes, some_left


@subroutine
def _judge_pauses(replay: FluidReplay, running: Integers, now_ns: int) -> None:
    """Set which of the running jobs may be paused, and the work in CPU seconds that each would lose."""
    settings, needs, states = replay.settings, replay.cluster.needs, replay.cluster.states
    for job in running:
        states.may_pause[job] = (
            settings.restartable[job]
            and now_ns - replay.times.begun_ns[job] >= settings.protect_ns
            and replay.counts.preemptions[job] < settings.most_pauses
        )
        states.loss[job] = _unsaved_s(replay, job) * needs.cpu[job] * needs.tasks[job]


@subroutine
def _unsaved_s(replay: FluidReplay, job: int) -> float:
    """The job's progress since its last checkpoint."""
    done_s, every_s = replay.pace.done_s[job], replay.settings.checkpoint_s
    if every_s <= 0.0 or every_s == np.inf:
        return done_s if every_s else 0.0
    return max(done_s - every_s * np.floor(done_s / every_s + _ROUNDING), 0.0)


@subroutine
def _go_back(replay: FluidReplay, job: int) -> None:
    """Take from a job that was paused what it did since its last checkpoint."""
    lost_s = _unsaved_s(replay, job)
    replay.pace.done_s[job] -= lost_s
    replay.counts.lost_s[job] += lost_s
    replay.cluster.states.was_paused[job] = not replay.settings.pauses_again
    if replay.settings.forgets:
        replay.cluster.states.virtual_s[job] -= lost_s / replay.settings.measured[job]


@subroutine
def _carry_out(replay: FluidReplay, job: int, now_ns: int) -> None:
    """Start, resume or move the job, or leave it where it is, and count what happened."""
    counts, times = replay.counts, replay.times
    places = slice(replay.cluster.needs.first[job], replay.cluster.needs.end[job])
    old, new = replay.places[places], replay.cluster.states.places[places]
    left = _left_behind(old, new) if replay.had_nodes[job] else 0
    counts.migrations[job] += left > 0
    counts.tasks_moved[job] += left
    if left or not replay.had_nodes[job]:
        copy(old, new)
        times.begun_ns[job] = now_ns
        if times.start_ns[job] == NEVER:
            times.start_ns[job] = now_ns
        else:
            times.penalty_ns[job] = now_ns + replay.settings.penalty_ns
        replay.had_nodes[job] = False  # its new cap counts at once


@subroutine
def _left_behind(before: Places, after: Places) -> int:
    """How many of the places before, in increasing order as those after, are not among those after."""
    left, at = 0, 0
    for node in before:
        while at < len(after) and after[at] < node:
            at += 1
        if at < len(after) and after[at] == node:
            at += 1
        else:
            left += 1
    return left


@subroutine
def _back_off(replay: FluidReplay, job: int, now_ns: int) -> None:
    """Set the next attempt of a job that has found no place."""
    times = replay.times
    times.failures[job] += 1
    doublings = min(times.failures[job], MOST_DOUBLINGS)
    times.retry_ns[job] = now_ns + (np.int64(1) << doublings) * NANOSECONDS
    push(replay.retries, replay.cursor[RETRIES], times.retry_ns, job)
    replay.cursor[RETRIES] += 1


# --- how jobs advance


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
