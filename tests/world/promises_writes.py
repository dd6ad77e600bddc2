"""Promises about what our daemons write into jobs: never what is their owners', and never a gate beyond its lease."""

from collections.abc import Collection, Iterator
from math import inf

from world.history import Event
from world.promises_jobs import OURS, UNKNOWN, Job, as_seen, has_grant, mark
from world.promises_tale import AT_ONCE_S, Tale
from world.slurm_jobs import WAITING, Now

#: The fields that a placement replaces, and that are given back with it.
GIVEN_BACK = ("nodes", "gres", "memory", "tasks_per_node", "min_cpus_per_node")
#: Gates and clocks are in whole seconds.
ROUNDING_S = 1.0
#: In schedules with unrelated faults at once a gate may stand so much longer: the longest look of a daemon.
LONGEST_LOOK_S = 30.0


def written(event: Event, tale: Tale) -> Iterator[str]:
    """What is wrong with a change of ours."""
    if event.by not in OURS or "was" not in event.data:
        return
    job = tale.jobs.of[event.job]
    told = f"{event.by} at {event.at_s:.3f} s, job {job.id}"
    job.is_mixed |= _meets(event, tale, job)
    yield from _not_ours(event, tale, job, told)
    yield from _overwritten(event, tale, job, told)
    yield from _owners_time(event, tale, job, told)
    if not event.data["is_half"] and not job.is_mixed:
        yield from _mark_and_fields(event, tale, job, told)
        yield from _left(event, tale, job, told)


def _not_ours(event: Event, tale: Tale, job: Job, told: str) -> Iterator[str]:
    """Holds, priorities and nice values are never ours, nor is a job that was given away or has no mark."""
    was, now = event.data["was"], event.data["now"]
    is_tasks = was.tasks != now.tasks and not tale.jobs.is_unseen(job, event.by, "tasks")
    if was.others != now.others or is_tasks:
        yield f"field changed: {told}: {event.data['fields']}"
    if was.partitions != now.partitions and not _widens(event, tale, job):
        yield f"partitions changed: {told}: from {','.join(was.partitions)} to {','.join(now.partitions)}"
    if was.hold not in (now.hold, "bad"):
        yield f"hold changed: {told}: from {was.hold or 'none'} to {now.hold or 'none'}"
    if _places(event) and job.own_hold and not tale.jobs.is_unseen(job, event.by, "hold"):
        yield f"placed while held: {told}: held by {job.own_hold}"
    if tale.jobs.is_unseen(job, event.by) or event.data["fields"] in ({"SiteFactor": "0"}, {}):
        return
    if job.mark is None:
        yield f"taken again: {told}: it has no mark of ours"
    elif "free" in job.mark:
        yield f"taken again: {told}: it was given to Slurm ({job.mark['free']})"
    elif job.is_opened and not tale.set_back_s and now.begin_s > event.wall_s + ROUNDING_S:
        yield f"taken again: {told}: its owner has opened it"


def _widens(event: Event, tale: Tale, job: Job) -> bool:
    """Whether a job got the others of its group after its owner's partitions, and for the first time."""
    was, now = event.data["was"], event.data["now"]
    if tale.jobs.is_unseen(job, event.by, "partitions"):
        job.is_widened = True
        return True
    is_first, job.is_widened = not job.is_widened, True
    is_longer = now.partitions[: len(was.partitions)] == was.partitions and was.state == WAITING
    return is_first and is_longer and any(set(now.partitions) <= set(pool) for pool in tale.pools)


def _overwritten(event: Event, tale: Tale, job: Job, told: str) -> Iterator[str]:
    """What people have written stays, unless they wrote it after our look."""
    was, now = event.data["was"], event.data["now"]
    for name in ("extra", "admin_comment"):
        is_unseen = tale.jobs.is_unseen(job, event.by, name) or _meets(event, tale, job)
        if as_seen(was, name) != as_seen(now, name) and not is_unseen:
            yield f"overwritten: {told}: {name} {getattr(was, name)!r}, now {getattr(now, name)!r}"
    for name in ("nodes", "gres", "memory", "tasks_per_node"):
        before, after, own = getattr(was, name), getattr(now, name), job.own[name]
        may_replace = _places(event) if name in ("memory", "tasks_per_node") else own in ((), (0, 0, ()))
        if before != after and before == own and not (may_replace or tale.jobs.is_unseen(job, event.by, name)):
            yield f"overwritten: {told}: its owner's {name} {before}, now {after}"


def _meets(event: Event, tale: Tale, job: Job) -> bool:
    """Whether another daemon of ours has changed the job since this one looked."""
    looked_s = tale.jobs.looked_s.get(event.by, -inf)
    return any(name != event.by and at_s >= looked_s for name, at_s in job.written_s.items())


def _places(event: Event) -> bool:
    return bool(event.data["fields"].get("ReqNodeList"))


def _owners_time(event: Event, tale: Tale, job: Job, told: str) -> Iterator[str]:
    """A begin time that the owner wants stays in force: we may gate the job for longer, never for shorter."""
    begin_s = event.data["now"].begin_s
    if "StartTime" not in event.data["fields"] or not job.begins_later(event.wall_s + tale.set_back_s):
        return
    if begin_s < job.own["begin_s"] and not tale.jobs.is_unseen(job, event.by, "begin_s"):
        yield f"owner's time lost: {told}: begins {job.own['begin_s'] - begin_s} s before its owner's begin time"


def _mark_and_fields(event: Event, tale: Tale, job: Job, told: str) -> Iterator[str]:
    """What one change of ours sets, its mark says."""
    now, fields = event.data["now"], event.data["fields"]
    words = mark(now.admin_comment) or {}
    if _places(event) and set(words.get("n", "").split(",")) != set(now.nodes):
        yield f"not in the mark: {told}: nodes {','.join(now.nodes)}, the mark has {words.get('n', 'none')}"
    is_gate = "StartTime" in fields and now.begin_s > event.wall_s + ROUNDING_S
    is_waiting = "AdminComment" in fields and words and "n" not in words and now.state == WAITING
    # A gate that is past already, because the clock was set, opens the job at once.
    is_past = int(words.get("g", 0)) <= event.wall_s and now.begin_s <= event.wall_s
    is_unseen = is_past or tale.jobs.is_unseen(job, event.by, "begin_s")
    if (is_gate or (is_waiting and not is_unseen)) and "free" not in words and words.get("g") != str(now.begin_s):
        yield f"not in the mark: {told}: begin {now.begin_s}, the mark has {words.get('g', 'none')}"


def _left(event: Event, tale: Tale, job: Job, told: str) -> Iterator[str]:
    """A mark without a placement: then nothing of a placement is left on the job."""
    now = event.data["now"]
    words = mark(now.admin_comment)
    # Two daemons of ours may meet at a job: one that stood still goes on with what it saw before.
    if "AdminComment" not in event.data["fields"] or not words or "n" in words or job.is_mixed:
        return
    unseen = {name for name in GIVEN_BACK if tale.jobs.is_unseen(job, event.by, name)}
    if job.id in tale.refused_by and not tale.knows_refusal(job.id, event.by):
        job.own["nodes"] = UNKNOWN  # who knew that Slurm had put them there, and then refused the rest, is gone
    for what in left_of_ours(job, now, unseen):
        yield f"left on the job: {told}: {what}"
    if "free" in words and now.begin_s > event.wall_s + ROUNDING_S and not _is_slurms_or_owners(event, tale, job):
        yield f"left on the job: {told}: a begin time {now.begin_s - event.wall_s:.0f} s ahead"


def left_of_ours(job: Job, now: Now, unknown: Collection[str] = ()) -> Iterator[str]:
    """What a job has of a placement of ours, but for the fields that are `unknown`."""
    for name in GIVEN_BACK:
        has, own = getattr(now, name), job.own[name]
        if own is not UNKNOWN and has != own and name not in unknown:
            yield f"{name} {has}, its owner's are {own}"
    if now.is_boosted:
        yield "the boost"
    if has_grant(now.extra) and now.extra != job.own_extra and job.own["extra"] is not UNKNOWN:
        yield "the grant"


def _is_slurms_or_owners(event: Event, tale: Tale, job: Job) -> bool:
    """Whether a begin time ahead is the owner's, or Slurm's own after a requeue, or we could not have seen it."""
    was, begin_s = event.data["was"], event.data["now"].begin_s
    is_slurms = begin_s == was.begin_s and was.restarts > 0
    is_owners = job.own["begin_s"] in (begin_s, UNKNOWN)
    return tale.set_back_s > 0 or is_slurms or is_owners or tale.jobs.is_unseen(job, event.by, "begin_s")


# --- gates


def gated_too_long(event: Event, tale: Tale) -> Iterator[str]:
    """No gate is further away than a lease, and none so far that the job would miss its deadline."""
    if "now" not in event.data or not (event.kind == "submit" or event.by in OURS):
        return
    now, wall_s = event.data["now"], event.wall_s
    job = tale.jobs.of.get(event.job)
    own_s = event.data["asked"].get("begin_s", 0) if event.kind == "submit" else job.own["begin_s"] if job else 0
    is_written = event.kind == "submit" or "StartTime" in event.data.get("fields", ())
    is_wanted = own_s is not UNKNOWN and own_s >= now.begin_s  # its owner wants it to begin later anyway, or did
    is_wanted |= job is not None and (own_s is UNKNOWN or tale.jobs.is_unseen(job, event.by, "begin_s"))
    if not is_written or now.begin_s <= wall_s or is_wanted:
        return
    lease_s = tale.first_lease_s if event.kind == "submit" else tale.lease_s
    more_s = ROUNDING_S + tale.set_back_s + (LONGEST_LOOK_S if tale.is_safety_only else 0.0)
    ahead_s = now.begin_s - wall_s - more_s
    told = f"gated too long: job {event.job} by {event.by} at {event.at_s:.3f} s"
    if ahead_s > lease_s:
        yield f"{told}: {ahead_s:.0f} s, a lease is {lease_s:.0f} s"
    # The submit filter cannot see the deadline of a job that says it on the command line.
    is_seen = event.kind != "submit" and not tale.jobs.is_unseen(tale.jobs.of[event.job], event.by)
    if not tale.is_safety_only and is_seen and not tale.set_back_s and now.begin_s > tale.latest_s(now) + ROUNDING_S:
        yield f"{told}: it would miss its deadline"


def gated_while_off(event: Event, tale: Tale) -> Iterator[str]:
    """While nobody shows a sign of life, with the kill switch or in another mode new jobs pass through ungated."""
    if event.data["verdict"] != "gated":
        return
    services, told = tale.services, f"gated while off: job {event.job} was submitted at {event.at_s:.3f} s"
    if services.kill_switch_since_s is not None:
        yield f"{told}, with the kill switch on"
    elif services.is_stale(int(event.wall_s)):  # the filter sees whole seconds
        yield f"{told}, without a heartbeat"
    elif services.mode != "enforce":
        yield f"{told}, in the mode {services.mode}"


def placed_while_off(event: Event, tale: Tale) -> Iterator[str]:
    """A cycle that begins with the kill switch on places nothing."""
    since_s = tale.services.kill_switch_since_s
    if event.by in OURS and _places(event) and since_s is not None and since_s < tale.began_s.get(event.by, 0.0):
        yield f"gated while off: job {event.job} was placed at {event.at_s:.3f} s; the kill switch was on"


def lapsed_left(event: Event, tale: Tale) -> Iterator[str]:
    """A cycle places nothing before it has gated again what has lapsed."""
    looked_s = tale.jobs.looked_s.get(event.by, -inf)
    is_at_once = looked_s - tale.began_s.get(event.by, -inf) < AT_ONCE_S  # few gates are renewed then
    if event.by not in OURS or not _places(event) or is_at_once or tale.services.stepped_s >= looked_s:
        return
    for job in tale.jobs.pending():
        opened_s = event.at_s - (event.wall_s - job.now.begin_s)
        is_lapsed = job.is_ours and not job.is_placed and 0 < opened_s < looked_s - ROUNDING_S
        is_seen = max(job.waits_s, job.refused_s, *job.written_s.values(), job.changed_s, -inf) < looked_s
        if is_lapsed and is_seen and tale.latest_s(job.now) > event.wall_s + ROUNDING_S:
            yield f"lapsed gate left: {event.by} placed job {event.job} at {event.at_s:.3f} s before it gated {job.id}"


def forbidden(event: Event, _tale: Tale) -> Iterator[str]:
    """We never hold or release a job, and our policies here never suspend, resume or cancel one."""
    if event.by in OURS:
        yield f"not ours to do: {event.by} did a {event.kind} of job {event.job} at {event.at_s:.3f} s"
