"""Promises about restarts: which jobs we requeue, how often, and how much work of a user that may cost.

What a decider knows is what it saw: the jobs in the last look of its cycle, and the one job that it loaded right before
the order. What people did after that, it may not know; Slurm then refuses the order, or the job waits as they want it.
That a restarted job runs once at a time, and is not lost, is promised of all jobs (started_twice, at_the_end).
"""

from collections.abc import Iterator

from world.history import Event
from world.promises_jobs import OURS, Job, mark
from world.promises_tale import Tale
from world.slurm import DISABLED
from world.slurm_jobs import Now

#: Slurm's times are whole seconds.
ROUNDING_S = 1.0


def restarted(event: Event, tale: Tale) -> Iterator[str]:
    """We restart what preemption has suspended and whose owner lets it restart, within the limits of moves and work."""
    if event.by not in OURS:
        return
    job, rules = tale.jobs.of[event.job], tale.restart_rules
    told = f"job {job.id} by {event.by} at {event.at_s:.3f} s"
    if rules is None:
        yield f"not ours to do: {event.by} did a {event.kind} of job {job.id} at {event.at_s:.3f} s"
        return
    looked = tale.looked.get(event.by, {}).get(job.id)
    loaded = tale.loaded.get(event.by, {}).get(job.id)
    if looked is None or (loaded is None and looked.restarts != job.now.restarts):
        yield f"restarted unseen: {told}"
        return
    seen = (looked,) if loaded is None else (looked, loaded)
    for why in dict.fromkeys(_not_preempted(each) for each in seen):
        if why:
            yield f"restarted wrongly: {told}: {why}"
    yield from _not_opted_in(looked, tale, told)
    yield from _while_off(event, tale, told)
    run = job.id, job.now.restarts
    job.moves += 1
    if job.moves > rules.max_moves and not tale.was_moved:
        yield f"restarted too often: {told}: for the {job.moves}. time, at most {rules.max_moves}"
    lost = tale.lost_core_s.setdefault(job.user, {})
    lost[run] = _lost_core_s(looked, job)
    budget_core_s = rules.lost_core_hours_per_user_day * 3600
    if sum(lost.values()) > budget_core_s and not (tale.was_set or tale.was_moved):
        yield f"budget overdrawn: {told}: {job.user} has lost {sum(lost.values()):.0f} of {budget_core_s:.0f} core-s"


def _not_preempted(seen: Now) -> str:
    """What shows that preemption alone had not suspended the job when it was seen; empty if it had."""
    if seen.state != "SUSPENDED":
        return f"it was {seen.state}"
    if seen.is_paused:
        return "a person had suspended it"
    return f"it was held by {seen.hold}" if seen.hold else ""


def _not_opted_in(seen: Now, tale: Tale, told: str) -> Iterator[str]:
    words, rules = mark(seen.admin_comment), tale.restart_rules
    assert rules is not None
    if words is None or "free" in words:
        yield f"restarted wrongly: {told}: it is not ours"
    elif "restartable" not in words and rules.needs_hint:
        yield f"restarted wrongly: {told}: its owner has not asked for that"


def _while_off(event: Event, tale: Tale, told: str) -> Iterator[str]:
    """A cycle that begins with the kill switch on, or is in another mode, restarts nothing."""
    since_s = tale.services.kill_switch_since_s
    if since_s is not None and since_s < tale.began_s.get(event.by, 0.0):
        yield f"restarted wrongly: {told}: the kill switch was on"
    mode = tale.services.mode_of.get(event.by)
    if mode in ("observe", "advise"):
        yield f"restarted wrongly: {told}: the mode was {mode}"


def _lost_core_s(seen: Now, job: Job) -> float:
    """The work of the run that is lost for certain: what it had done when it was seen, without its rounding."""
    return max(0.0, seen.ran_s - ROUNDING_S) * sum(job.takes["cores"])


def asked_in_vain(event: Event, tale: Tale) -> Iterator[str]:
    """Of a job that may not restart, which the look has shown, we do not even ask that."""
    if event.by in OURS and event.data["why"] == DISABLED:
        looked = tale.looked.get(event.by, {}).get(event.job)
        if looked is None or not looked.may_restart:
            yield f"restarted wrongly: job {event.job} by {event.by} at {event.at_s:.3f} s: its owner forbids restarts"
