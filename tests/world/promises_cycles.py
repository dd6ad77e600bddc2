"""Promises about what a whole cycle leaves behind, about the watchdog, and about the heartbeat."""

from collections.abc import Iterator
from math import inf

from world.history import Event
from world.promises_jobs import OURS, Job
from world.promises_tale import AT_ONCE_S, Tale

#: The watchdog frees what is gated within so many seconds, and a daemon needs so long to start.
RELEASED_IN_S, STARTS_IN_S = 5.0, 2.0
#: A drifting clock may make a placement's timeout so much longer.
DRIFT_S = 2.0
#: A cycle that has its answers may still write one heartbeat so long after slurmctld or munge stopped: it may have
#: waited for the store's lock meanwhile, for five seconds. Profiles are read every five seconds.
HONEST_S, STORE_S = 8.0, 13.0
#: A clock that was just set, and a disk that was just full, are not held against us.
JUST_NOW_S = 3.0


def left_as_it_was(event: Event, tale: Tale) -> Iterator[str]:
    """After a whole cycle each job that it has seen is as the state table wants it."""
    by, services = event.by, tale.services
    if not event.data["ok"]:
        return
    looked_s, began_s = tale.jobs.looked_s.get(by, -inf), tale.began_s.get(by, -inf)
    kill_s = services.kill_switch_since_s
    mode = services.mode_of.get(by)
    is_set = mode in ("observe", "advise") and mode == services.mode
    if services.stepped_s >= looked_s:
        return  # what the cycle saw was still to come has passed, or the other way round
    for job in tale.jobs.pending():
        if not job.is_ours or not _was_seen(job, by, looked_s):
            continue
        why = ""
        if kill_s is not None and kill_s < began_s:
            why = "is still ours, with the kill switch on"
        elif is_set:
            why = f"is still ours, in the mode {mode}"
        elif services.places(by, began_s) and job.written_s.get(by, -inf) < looked_s:  # else the next cycle goes on
            why = _wrong(job, tale, event, began_s)
        if why:
            yield f"left as it was: job {job.id} {why}, after a whole cycle of {by} at {event.at_s:.3f} s"
    for job in tale.jobs.running():
        is_shown = job.now.state == "RUNNING" and not job.now.hold  # the priority of others is 0, whatever is in it
        if job.now.is_boosted and is_shown and job.is_placed and _was_seen(job, by, looked_s):
            yield f"left as it was: job {job.id} runs with our boost at {event.at_s:.3f} s, after a whole cycle"


def _was_seen(job: Job, by: str, looked_s: float) -> bool:
    """Whether the look of the cycle has shown all that has happened to the job, and no change was refused since."""
    return max(job.changed_by_others_s(by), job.waits_s, job.refused_s) < looked_s and job.now.state != "COMPLETING"


def _wrong(job: Job, tale: Tale, event: Event, began_s: float) -> str:
    """What about this job is not as the state table says; empty if all is."""
    words, now = job.mark or {}, job.now
    if now.restarts > int(words.get("r", 0)):
        return "was requeued, and is as it was"
    if "n" in words:
        if set(now.nodes) != set(words["n"].split(",")):
            return f"is marked as placed on {words['n']}, and has the nodes {','.join(now.nodes) or 'none'}"
        if now.begin_s > event.wall_s:
            return "is placed, and its gate is shut"
        if job.own_hold:
            return "is placed, and held"
        was_set = tale.services.stepped_s >= job.tries_s
        most_s = tale.place_timeout_s * (2 if was_set else 1) + DRIFT_S
        return "is placed, and has not started in time" if began_s - job.tries_s > most_s else ""
    if now.nodes or now.gres != (0, 0, ()):
        return "has nodes or gres, and is not placed"
    latest_s = tale.latest_s(now)
    if now.begin_s > event.wall_s:
        if not tale.is_renewed_in_time(now.begin_s, event) and "b" not in words and latest_s == inf:
            return f"is gated for {now.begin_s - event.wall_s:.0f} s more, and was not renewed"
        return "" if words.get("g") == str(now.begin_s) else "waits for a begin time that is not in its mark"
    # A gate that opens between the look and the end of the cycle is seen in the next one.
    opened_s = event.at_s - (event.wall_s - now.begin_s)
    is_at_once = event.at_s - began_s < AT_ONCE_S  # few gates are renewed in a cycle that follows another at once
    is_late = not is_at_once and opened_s < tale.jobs.looked_s[event.by] and latest_s > event.wall_s + 1
    return "has lapsed, and is still open" if is_late else ""


def gated_while_dead(event: Event, tale: Tale) -> Iterator[str]:
    """While the heartbeat is stale and the watchdog works, no job is gated or carries our placement."""
    since_s = tale.services.watch(event)
    if event.at_s - since_s <= RELEASED_IN_S + STARTS_IN_S:
        return
    for job in tale.jobs.pending():
        is_kept = job.is_ours and (job.is_placed or job.is_gated(event.wall_s))
        if not is_kept or job.id in tale.accused:
            continue
        from_s = max(since_s, job.changed_s, job.refused_s, job.waits_s, *job.written_s.values())
        if event.at_s - from_s > RELEASED_IN_S + STARTS_IN_S:
            tale.accused.add(job.id)
            what = "placed" if job.is_placed else "gated"
            yield f"not freed: job {job.id} is {what} by us at {event.at_s:.3f} s, the scheduler is dead"


# --- the heartbeat


def not_honest(event: Event, tale: Tale) -> Iterator[str]:
    """Only a living scheduler writes the heartbeat, whose cycles get answers, and never one of the future."""
    if event.by not in OURS:
        return
    services, value = tale.services, event.data["value"]
    told = f"heartbeat not honest: {event.by} wrote {value} at {event.at_s:.3f} s"
    if event.by not in services.started_s:
        yield f"{told}, when it did not run"
        return
    if value == 0:
        return
    began_s = tale.began_s.get(event.by, 0.0)  # a daemon that was frozen may write what it read before
    if value > event.wall_s + 1 and event.at_s - services.stepped_s > JUST_NOW_S and began_s > services.stepped_s:
        yield f"{told}, which is {value - event.wall_s:.0f} s in the future"
    if event.by in services.stopped:
        yield f"{told}, after it had made it stale for its stop"
    if tale.jobs.looked_s.get(event.by, -1.0) < services.started_s[event.by]:
        yield f"{told}, before it had seen any job"
    for service, allowed_s in (("slurmctld", HONEST_S), ("munge", HONEST_S), ("store", STORE_S)):
        # A daemon that stood still ends its cycle first.
        for_s = event.at_s - max(services.since_s[service], services.thawed_s.get(event.by, 0.0))
        if services.state[service] in ("down", "locked") and for_s > allowed_s:
            yield f"{told}, with {service} {services.state[service]} for {for_s:.1f} s"


def not_stopped(event: Event, tale: Tale) -> Iterator[str]:
    """After a clean stop the heartbeat is stale at once, and no job is ours, as far as the stop could do that."""
    name, services = event.data["name"], tale.services
    if event.data["what"] != "stop" or not name.startswith("scheduler"):
        return
    disk_s = event.at_s - services.since_s["disk"]
    if services.state["disk"] == "up" and disk_s > JUST_NOW_S and not services.is_stale(event.wall_s):
        yield f"heartbeat not honest: it is fresh at {event.at_s:.3f} s, after the clean stop of {name}"
    looked_s = tale.jobs.looked_s.get(name, -inf)
    is_reached = all(
        services.state[each] == "up" and services.since_s[each] < looked_s for each in ("slurmctld", "munge")
    )
    for job in tale.jobs.pending() if is_reached and name not in tale.lost else ():
        if job.is_ours and _was_seen(job, name, looked_s) and (job.is_placed or job.is_gated(event.wall_s)):
            yield f"left as it was: job {job.id} is still ours at {event.at_s:.3f} s, after the clean stop of {name}"
