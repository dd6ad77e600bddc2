"""The compiled event loop of fluid jobs: the jobs of a trace advance by their yields, and DFRS decides at each instant.

An instant is one moment at which something happens: first jobs end, then newcomers are submitted and back-offs end,
then the kernel decides once. Between two instants rates do not change, so that ends are computed and no time step is
needed. Moments are whole nanoseconds: ends that should fall together do, whatever the rounding errors.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section IV-A.
"""

import numpy as np

from slurm_sns.policies.dfrs.algorithms import MOST_DOUBLINGS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment, Integers, Places, copy
from slurm_sns.policies.dfrs.instant_kernel import decide
from slurm_sns.policies.placement.compiled import entry_point, subroutine
from slurm_sns.sim.replay.fluid_state import (
    IN_SYSTEM,
    LAST_NS,
    NANOSECONDS,
    NEVER,
    NOW_NS,
    SUBMITTED,
    FluidReplay,
    advance,
    set_rates,
)


@entry_point
def replay_some(algorithm: Algorithm, replay: FluidReplay, most: int) -> bool:
    """Replay at most so many moments; False when each job has ended, or none can go on until LAST_NS."""
    cursor = replay.cursor
    for _ in range(most):
        now_ns, system = cursor[NOW_NS], replay.system[: cursor[IN_SYSTEM]]
        event_ns = _next_event(algorithm, replay, system, now_ns)
        next_ns = min(event_ns, _next_caps(replay, system, now_ns))
        if next_ns >= LAST_NS:
            return False
        advance(replay, system, now_ns, next_ns)
        cursor[NOW_NS] = next_ns
        if next_ns == event_ns:
            _take_ended(replay)
            first = cursor[SUBMITTED]
            _submit(replay)
            _decide(algorithm, replay, replay.system[: cursor[IN_SYSTEM]], next_ns)
            for job in range(first, cursor[SUBMITTED]):
                replay.cluster.turns.is_new[job] = False
        else:
            for job in system:
                replay.had_nodes[job] = replay.cluster.states.has_nodes[job]
        set_rates(replay, replay.system[: cursor[IN_SYSTEM]], next_ns)
    return True


@subroutine
def _next_event(algorithm: Algorithm, replay: FluidReplay, system: Integers, now_ns: int) -> int:
    """When something happens next, NEVER if nothing does."""
    times, period_ns = replay.times, replay.settings.period_ns
    submitted = replay.cursor[SUBMITTED]
    next_ns = times.submit_ns[submitted] if submitted < len(times.submit_ns) else NEVER
    if algorithm.packs_periodically and len(system):
        next_ns = min(next_ns, (now_ns // period_ns + 1) * period_ns)
    for job in system:
        next_ns = min(next_ns, times.end_ns[job], times.retry_ns[job])
    return next_ns


@subroutine
def _next_caps(replay: FluidReplay, system: Integers, now_ns: int) -> int:
    """When new caps count, NEVER if all do."""
    apply_ns = replay.settings.apply_ns
    if apply_ns:
        for job in system:
            if replay.pace.cap[job] != replay.cluster.states.cpu_yield[job]:
                return (now_ns // apply_ns + 1) * apply_ns
    return NEVER


@subroutine
def _take_ended(replay: FluidReplay) -> None:
    """Take away the jobs that have ended."""
    count = 0
    for job in replay.system[: replay.cursor[IN_SYSTEM]]:
        if replay.times.end_ns[job] > replay.cursor[NOW_NS]:
            replay.system[count] = job
            count += 1
    replay.cursor[IN_SYSTEM] = count


@subroutine
def _submit(replay: FluidReplay) -> None:
    """Add the jobs that are submitted now."""
    cursor, submit_ns = replay.cursor, replay.times.submit_ns
    while cursor[SUBMITTED] < len(submit_ns) and submit_ns[cursor[SUBMITTED]] <= cursor[NOW_NS]:
        replay.cluster.turns.is_new[cursor[SUBMITTED]] = True
        replay.system[cursor[IN_SYSTEM]] = cursor[SUBMITTED]
        cursor[IN_SYSTEM] += 1
        cursor[SUBMITTED] += 1


@subroutine
def _decide(algorithm: Algorithm, replay: FluidReplay, system: Integers, now_ns: int) -> None:
    """Let the kernel decide, and carry its decision out."""
    cluster, times, period_ns = replay.cluster, replay.times, replay.settings.period_ns
    states, turns = cluster.states, cluster.turns
    for job in system:
        turns.is_due[job] = times.retry_ns[job] <= now_ns
        replay.had_nodes[job] = states.has_nodes[job]
        if states.has_nodes[job]:
            places = slice(cluster.needs.first[job], cluster.needs.end[job])
            copy(replay.places[places], states.places[places])
    next_run_ns = (now_ns // period_ns + 1) * period_ns
    clock = DecisionMoment(
        now_ns / NANOSECONDS, now_ns % period_ns == 0, period_ns / NANOSECONDS, next_run_ns / NANOSECONDS
    )
    decide(algorithm, cluster, system, clock)
    some_wait = False
    for job in system:
        if replay.had_nodes[job] or states.has_nodes[job]:
            _carry_out(replay, job, now_ns)
        some_wait = some_wait or not states.has_nodes[job]
        if algorithm.backs_off:
            _back_off(replay, job, now_ns)
    replay.counts.instants[0] += 1
    replay.counts.instants[1] += some_wait


@subroutine
def _carry_out(replay: FluidReplay, job: int, now_ns: int) -> None:
    """Start, pause, resume or move the job, and count what happened."""
    counts, times = replay.counts, replay.times
    if not replay.cluster.states.has_nodes[job]:
        counts.preemptions[job] += 1
        return
    if times.start_ns[job] == NEVER:
        times.start_ns[job] = now_ns
        return
    left = 0
    if replay.had_nodes[job]:
        places = slice(replay.cluster.needs.first[job], replay.cluster.needs.end[job])
        left = _left_behind(replay.places[places], replay.cluster.states.places[places])
        counts.migrations[job] += left > 0
        counts.tasks_moved[job] += left
    if left or not replay.had_nodes[job]:
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
    """Set the next attempt of a job that has found no place; a job that has nodes needs none."""
    times = replay.times
    if replay.cluster.turns.failed[job]:
        times.failures[job] += 1
        doublings = min(times.failures[job], MOST_DOUBLINGS)
        times.retry_ns[job] = now_ns + (np.int64(1) << doublings) * NANOSECONDS
    elif replay.cluster.states.has_nodes[job]:
        times.retry_ns[job] = NEVER
