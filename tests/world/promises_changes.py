"""Promises about what we write into jobs: nothing that is their owners', and all of it is taken back in time."""

from collections.abc import Iterator
from math import inf

from slurm_sns.submit import mark
from world.history import Event
from world.promises_life import OUR_NICE, Life, is_note, is_ours, without_notes
from world.promises_tale import Tale

#: A drifting clock may make a placement's timeout so much longer.
DRIFT_S = 2.0
#: What an update of ours may change in a job besides its placement.
OUR_WORDS = frozenset({"Extra", "Nice", "ReqNodeList", "TresPerNode", "MinMemoryCPU", "MinMemoryNode"})
#: What else a placement changes.
PLACING_WORDS = frozenset({"NumTasks", "NtasksPerNode"})


def not_taken_back(event: Event, tale: Tale) -> Iterator[str]:
    """A job that Slurm does not start in time loses its placement, whatever happens to the clock.

    A cycle goes by the time of its beginning: it may be frozen, or wait, before it looks. The time counts from the
    answer to the placement, for which a scheduler that stands still waits for long. For a job that has run, which
    slurmctld has lost, it counts from the first cycle that sees it wait again. A placement from the future
    counts as one from the past: once the clock shows that it lies further ahead than it may last, it is taken back.
    """
    looked_s, began_s = tale.lives.looked_s.get(event.by, 0.0), tale.began_s.get(event.by, 0.0)
    if not event.data["ok"] or tale.had_two:
        return
    for life in tale.lives.waiting.values():
        since_s = max(life.placed_s, life.ours_s)
        answered_s = max(since_s, life.answered_s)
        was_set = tale.services.stepped_s >= since_s
        most_s = tale.place_timeout_s * (2 if was_set else 1) + DRIFT_S
        now_s = max(tale.began_wall_s.get(event.by, inf), event.wall_s)  # the clock may be set before the first cycle
        ahead_s = life.placed_wall_s - now_s if since_s == life.placed_s else 0.0
        if (
            life.placed
            and not (life.is_left or life.is_start_lost)
            and (began_s - answered_s > most_s or ahead_s > tale.place_timeout_s + DRIFT_S)
            and not life.forgotten
            and tale.has_seen(life, looked_s)
        ):
            yield (
                f"not taken back: job {life.id}, placed at {life.placed_s:.3f} s, still has our nodes at "
                f"{event.at_s:.3f} s"
            )
            life.placed = ()


def not_planned_again(event: Event, tale: Tale) -> Iterator[str]:
    """A requeued job that ran by our placement is held again by the first cycle that sees it wait."""
    looked_s = tale.lives.looked_s.get(event.by, 0.0)
    if not event.data["ok"] or not tale.is_placing(event.by) or tale.had_two:
        return
    for life in tale.lives.waiting.values():
        is_unknown = life.forgotten or life.is_behind or event.by in life.forgotten_by
        # On record as placed again, when slurmctld went back.
        is_unknown |= life.requeued_s is not None and min(life.intended_s, life.reverted_s) > life.requeued_s
        if life.requeued_s is not None and not (is_unknown or life.noted) and tale.has_seen(life, looked_s):
            yield f"not planned again: job {life.id}, requeued at {life.requeued_s:.3f} s, was left alone by {event.by}"
            life.requeued_s = None


def not_verified(event: Event, tale: Tale) -> Iterator[str]:
    """A job whose placement was taken back, and that the next look shows free all the same, is held once more."""
    looked_s = tale.lives.looked_s.get(event.by, 0.0)
    unheld = tale.lives.unheld.pop(event.by, ())
    if not event.data["ok"] or not tale.is_placing(event.by) or tale.had_two:
        return
    for life in unheld:
        if life.is_unheld and tale.has_seen(life, looked_s):
            yield f"hold not verified: job {life.id} was free at {looked_s:.3f} s, and was left so by {event.by}"


def nice_left(event: Event, tale: Tale) -> Iterator[str]:
    """After the first cycle that has seen a job of ours run, it has its owner's nice value again."""
    looked_s = tale.lives.looked_s.get(event.by, 0.0)
    if not event.data["ok"] or tale.had_two:
        return
    for life in tale.lives.running():
        is_unknown = life.forgotten and not life.placed
        is_unknown |= tale.keeps_its_boost(life)
        if life.boosted and life.started_s[-1] < looked_s and tale.has_seen(life, looked_s) and not is_unknown:
            yield f"not restored: job {life.id} runs with our nice value at {event.at_s:.3f} s, after a whole cycle"
            life.boosted = False


def wrongly_restored(event: Event, tale: Tale) -> Iterator[str]:
    """What we restore is what the job's owner wants: the nice value, the memory; their own node list and gres stay.

    A nice value that people wrote, and that slurmctld has lost, may be restored.
    """
    fields, life = event.data["fields"], tale.lives.of[event.job]
    is_refused = tale.refused_s.get(event.job) == event.at_s
    if not is_ours(event.by) or is_refused or tale.had_two or life.people_s >= tale.looked_s(life, event):
        return
    told = f"not restored: {event.by} at {event.at_s:.3f} s"
    if "Nice" in fields and int(fields["Nice"]) not in {life.wishes["nice"], *life.lost_nice} and is_nice_known(life):
        yield f"{told} set the nice value of job {life.id} to {fields['Nice']}, asked for {life.wishes['nice']}"
    if event.kind != "unpin" or life.forgotten or not is_nice_known(life):
        return
    is_theirs = set(life.wishes["required"]) not in (set(life.last_nodes), set(life.nodes_before)) and not life.placed
    is_theirs &= (
        life.placed_s > 0 or not life.started
    )  # one that ran before we saw it looks like a requeued one of ours
    if fields.get("ReqNodeList") == "" and life.wishes["required"] and is_theirs:
        yield f"{told} cleared the node list of job {life.id}, its owner's: {','.join(life.wishes['required'])}"
    for word, name in (("MinMemoryCPU", "memory_per_cpu_mb"), ("MinMemoryNode", "memory_per_node_mb")):
        if word in fields and int(fields[word]) != (life.wishes[name] or 0):
            yield f"{told} set {word} of job {life.id} to {fields[word]}, asked for {life.wishes[name]}"
    is_left = life.whole_mb is not None and not {"MinMemoryCPU", "MinMemoryNode"} & set(fields)
    is_readable = tale.services.state["store"] != "locked"  # else the watchdog may not know what is ours
    looks_placed = life.was_unknown and not life.placed_s  # requeued before we saw it wait
    is_told = (is_readable and not looks_placed) or "gres/gpu" in life.wishes.get("tres", "")  # never taken for ours
    if fields.get("TresPerNode") == "" and life.wishes.get("tres") and is_told:
        yield f"{told} cleared the gres of job {life.id}, its owner's: {life.wishes['tres']}"
    if is_left and is_readable and not life.is_memory_lost:
        yield f"{told} left job {life.id} the memory of a whole node, {life.whole_mb} MiB"


def field_changed(event: Event, tale: Tale) -> Iterator[str]:
    """Name, comment, partition, time limit and dependency are never changed by us, and nothing is given but taken.

    When Slurm refuses a placement, it keeps the parts before the one that it refuses.
    """
    if not is_ours(event.by):
        return
    fields = event.data["fields"]
    is_refused = tale.refused_s.get(event.job) == event.at_s
    is_unseen = tale.lives.of[event.job].people_s >= tale.lives.looked_s.get(event.by, 0.0)
    if (
        "Extra" in fields
        and not is_refused
        and not is_unseen
        and not _is_gift(fields["Extra"], tale.lives.of[event.job])
    ):
        yield f"extra overwritten: {event.by} wrote {fields['Extra']!r} into job {event.job} at {event.at_s:.3f} s"
    for word in sorted(set(fields) - OUR_WORDS - (PLACING_WORDS if is_refused else frozenset())):
        yield f"field changed: {event.by} set {word} of job {event.job} at {event.at_s:.3f} s"
    for word in () if is_refused else ("ReqNodeList", "TresPerNode"):
        if fields.get(word):
            yield f"field changed: {event.by} set {word} of job {event.job} to {fields[word]} at {event.at_s:.3f} s"


def extra_overwritten(event: Event, tale: Tale) -> Iterator[str]:
    """A placement writes its note into our mark only."""
    extra = event.data["fields"].get("extra")
    life = tale.lives.of[event.job]
    if extra is None or life.overtaken or tale.was_checked_before(life.touched_s, event):
        return
    if not life.marked or is_note(extra) or without_notes(extra) != without_notes(life.wishes["extra"]):
        yield (
            f"extra overwritten: {event.by} wrote {extra!r} over {life.wishes['extra']!r} of job {event.job} "
            f"at {event.at_s:.3f} s"
        )


def _is_gift(extra: str, life: Life) -> bool:
    """Whether the text is the job's mark, that says in addition that the job is Slurm's, or has no grant any more."""
    is_taken_back = mark.is_marked(extra) and mark.grant_in(extra) is None
    is_same = without_notes(extra) == without_notes(life.wishes["extra"])
    return life.has_mark and (is_note(extra) or is_taken_back) and is_same


def is_nice_known(life: Life) -> bool:
    """Whether the job's own nice value can be known.

    It cannot if its owner changed it while we placed the job, if it equals one of our own, or if record and mark are
    lost.
    """
    return not (life.overtaken or life.wishes["nice"] in OUR_NICE or life.is_nice_lost)
