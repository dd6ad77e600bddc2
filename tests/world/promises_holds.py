"""Promises about holds: whose they are, what stays Slurm's, and how long we may hold a job while we are dead or off."""

from collections.abc import Iterable, Iterator

from world.history import Event
from world.promises_life import OUR_NICE, is_ours
from world.promises_services import STARTS_IN_S
from world.promises_tale import Tale

#: The watchdog acts within so long after the heartbeat's timeout (scheduler/watchdog.py, store/fallback_records.py).
RELEASED_IN_S = 5.0


def hold_undone(event: Event, tale: Tale) -> Iterator[str]:
    """We release, place or hold no job that its owner or an administrator holds."""
    if not is_ours(event.by) or tale.had_two:
        return
    life = tale.lives.of[event.job]
    for who, since_s in (("its owner", life.owner_held_s), ("an administrator", life.admin_held_s)):
        if since_s is None or tale.was_checked_before(since_s, event):
            continue
        if who == "an administrator" and event.kind == "release" and tale.has_failed_dependency(life):
            continue  # it can never start, and Slurm says so
        if event.kind == "release" and who == "its owner" and life.placed and life.is_unknown:
            continue  # it looks like a job that we hold, with a node list of its owner's
        if event.kind == "release" and who == "its owner" and tale.lives.is_overwritten(life):
            continue  # it looks like a job that we hold, and is released once
        if event.kind == "release" and who == "its owner" and tale.lives.is_gift_untold(life, event.by):
            continue  # the same, for a daemon that does not know of the release
        if event.kind == "release" and who == "its owner" and tale.is_of_claimed_array(life):
            continue  # it looks like a task that we have split off, and whose mark its owner has overwritten
        if event.kind == "release" and who == "its owner" and tale.is_task_off_record(life):
            continue  # it looks like a task that we have split off, as above
        if event.kind == "hold" and who == "its owner":  # a hold of ours looks like theirs, and takes nothing away
            continue
        yield (
            f"hold undone: job {event.job}, held by {who} since {since_s:.3f} s, was met by a {event.kind} "
            f"by {event.by} at {event.at_s:.3f} s"
        )


def taken_again(event: Event, tale: Tale) -> Iterator[str]:
    """A job that was given to Slurm, or that its owner has taken from us, is never held or pinned by us again."""
    life = tale.lives.of[event.job]
    if tale.had_two:
        return
    if event.kind == "place" and not life.marked and life.people_s < tale.lives.looked_s.get(event.by, 0.0):
        yield f"taken again: job {event.job}, no longer marked as ours, was placed by {event.by} at {event.at_s:.3f} s"
    is_known = life.wishes["nice"] not in OUR_NICE  # else, released, it looks like a job with our boost
    if is_ours(event.by) and is_known and life.given_s is not None and not tale.was_checked_before(life.given_s, event):
        yield (
            f"taken again: job {event.job}, Slurm's since {life.given_s:.3f} s, was met by a {event.kind} "
            f"by {event.by} at {event.at_s:.3f} s"
        )
        life.given_s = None


def placed_unheld(event: Event, tale: Tale) -> Iterator[str]:
    """Only a job that is held is placed."""
    if not event.data["had_hold"] and not tale.was_checked_before(tale.lives.of[event.job].touched_s, event):
        yield f"placed though not held: job {event.job} by {event.by} at {event.at_s:.3f} s"


def not_recorded(event: Event, tale: Tale) -> Iterator[str]:
    """What we intend is recorded before it is sent: in the same cycle, by the scheduler that sends it.

    The id may be that of a new job since the last check of the old one, which slurmctld has lost.
    """
    life = tale.lives.of[event.job]
    is_new = tale.was_checked_before(life.submitted_s, event)
    if life.saved.get(event.by, -1.0) < tale.lives.looked_s.get(event.by, 0.0) and not is_new:
        yield f"not recorded: job {event.job} was placed by {event.by} at {event.at_s:.3f} s without a record of it"


def held_while_off(event: Event, tale: Tale) -> Iterator[str]:
    """While the heartbeat is stale or the kill switch is on, submitted jobs pass through."""
    if event.data["verdict"] != "held":
        return
    services = tale.services
    wall_s = int(event.wall_s)  # the filter sees whole seconds
    if services.kill_switch_since_s is not None:
        yield f"held while off: job {event.job} was submitted at {event.at_s:.3f} s, with the kill switch on"
    elif services.is_stale(wall_s):
        yield f"held while off: job {event.job} was submitted at {event.at_s:.3f} s, without a heartbeat"
    elif services.mode != "enforce":
        yield f"held while off: job {event.job} was submitted at {event.at_s:.3f} s, in the mode {services.mode}"


def placed_while_off(event: Event, tale: Tale) -> Iterator[str]:
    """A cycle that begins with the kill switch on places nothing."""
    since_s = tale.services.kill_switch_since_s
    if since_s is not None and since_s < tale.began_s.get(event.by, 0.0):
        yield (
            f"held while off: job {event.job} was placed by {event.by} at {event.at_s:.3f} s; the kill switch "
            f"had been on since {since_s:.3f} s"
        )


def off_but_holding(event: Event, tale: Tale) -> Iterator[str]:
    """A cycle with the kill switch on, or in a mode that holds nothing, ends with no job of ours that it has seen."""
    began_s = tale.began_s.get(event.by)
    looked_s = tale.lives.looked_s.get(event.by, 0.0)
    since_s = tale.services.kill_switch_since_s
    is_off = since_s is not None and began_s is not None and since_s < began_s
    mode = tale.services.mode_of.get(event.by)
    is_set = mode in ("observe", "advise") and mode == tale.services.mode  # not changed since, while it was frozen
    if not event.data["ok"] or not (is_off or is_set) or tale.had_two:
        return
    for life in tale.lives.waiting.values():
        is_left = life.is_ours if is_off else life.hold == "ours" and not life.unclear
        is_left &= bool(life.placed) or not tale.keeps_its_boost(life)
        if is_left and tale.has_seen(life, looked_s):
            why = "the kill switch on" if is_off else f"the mode {mode}"
            yield f"held too long: job {life.id} is still ours at {event.at_s:.3f} s, after a cycle with {why}"


def held_too_long(event: Event, tale: Tale) -> Iterable[str]:
    """While the heartbeat is stale and the watchdog works, no job is held by us or carries our placement."""
    since_s = tale.services.watch(event)
    is_over = event.at_s - since_s > RELEASED_IN_S + STARTS_IN_S and not tale.had_two
    return _held_since(since_s, event, tale) if is_over else ()


def _held_since(since_s: float, event: Event, tale: Tale) -> Iterator[str]:
    for life in tale.lives.waiting.values():
        if not life.is_ours or life.id in tale.accused or not tale.is_known(life):
            continue
        if tale.is_hold_off_record(life) or (life.is_forgotten_bad and not life.has_mark):
            continue
        if tale.keeps_its_boost(life) and not life.placed:
            continue
        known_s = 0.0 if life.marked else life.recorded_s  # without a mark the record alone tells
        from_s = max(since_s, life.ours_s, known_s, tale.refused_s.get(life.id, 0.0))
        if event.at_s - from_s > RELEASED_IN_S + STARTS_IN_S:
            tale.accused.add(life.id)
            what = "held by us" if life.hold == "ours" else "pinned or boosted by us"
            yield (
                f"held too long: job {life.id} is {what} at {event.at_s:.3f} s; the watchdog could have "
                f"released it since {from_s:.3f} s"
            )
