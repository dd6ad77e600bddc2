"""The compiled event loop of fluid jobs: the jobs of a trace advance by their yields, and DFRS decides at each instant.

An instant is one moment at which something happens: first jobs end, then newcomers are submitted and back-offs end,
then the kernel decides once. Between two instants rates do not change, so that ends are computed and no time step is
needed. Moments are whole nanoseconds: ends that should fall together do, whatever the rounding errors.

An instant costs O(running jobs and their tasks), as each of them advances, and what the algorithm looks at. In overload
the number of instants may grow faster than that of jobs: under GREEDY each waiting job's attempts are instants, one in
4,096 s at least.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-A.
"""

import numpy as np

from slurm_sns.policies.dfrs.algorithms import MOST_DOUBLINGS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import RUNNING, TURNS, WAITING, DecisionMoment, Places, copy
from slurm_sns.policies.dfrs.instant_kernel import decide
from slurm_sns.policies.dfrs.job_lists import add_waiting, take_nodes
from slurm_sns.policies.dfrs.order_kernel import pop, push
from slurm_sns.policies.placement.compiled import entry_point, subroutine
from slurm_sns.sim.replay.fluid_state import (
    CAPS_NS,
    END_NS,
    LAST_NS,
    NANOSECONDS,
    NEVER,
    NOW_NS,
    RETRIES,
    SUBMITTED,
    FluidReplay,
    advance,
    forecast,
    set_rates,
)


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
    changes, some_left = decide(algorithm, replay.cluster, clock), False
    if changes:
        for job in before:
            if not has_nodes[job]:
                replay.counts.preemptions[job] += 1
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
