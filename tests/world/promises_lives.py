"""The lives of all jobs, as the history tells them.

The checker's own account, from the events alone. It knows who did what, which Slurm does not show; so it can say what
scheduler and watchdog should have done without asking how they decide.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf

from world.history import Event
from world.promises_life import (
    COMPLETES_IN_S,
    OUR_NICE,
    PEOPLE,
    RECORDS,
    RELEASES,
    RUNNING,
    UNSAID,
    WORDS,
    Life,
    is_mark,
    is_note,
    is_ours,
    node_names,
    without_notes,
)
from world.slurm_jobs import USER_IDS

#: What a task that is split off an array has from it.
_INHERITED = (
    *("hold", "owner_held_s", "admin_held_s", "placed", "boosted", "given_s"),
    *("marked", "marked_by_owner", "noted", "forgotten", "known", "people_s", "unseen", "unclear", "has_ended"),
    *("overtaken", "unnoted_s", "is_told"),
)

#: What Slurm knows of a job, and loses when slurmctld is killed.
_SLURMS = (
    *("state", "hold", "owner_held_s", "admin_held_s", "placed", "placed_s", "placed_wall_s", "boosted", "whole_mb"),
    "is_requeued_held",
    *("given_s", "marked", "marked_by_owner", "noted", "requeued_s", "takes", "has_ended", "has_succeeded"),
)


class Lives:
    """All jobs of one history, by job id."""

    def __init__(self, memory_per_cpu_mb: int) -> None:
        self.of: dict[int, Life] = {}
        #: Those that wait: most of a history concerns few of many jobs.
        self.waiting: dict[int, Life] = {}
        self.records: set[int] = set()
        #: When each daemon last looked at all jobs, at the beginning of its cycle; when it last checked all of them
        #: before it placed some, and when it last looked at one of them.
        self.looked_s: dict[str, float] = {}
        self.checked_s: dict[str, float] = {}
        self.looked_at_s: dict[tuple[str, int], float] = {}
        #: When the last cycle that ended well has looked.
        self.seen_s = -1.0
        self._started_s: dict[str, float] = {}
        self._loose: dict[str, list[Life]] = {}
        #: What each scheduler's last look showed as Slurm's by its mark, and what ran with a mark that people wrote.
        self._noted: dict[str, list[Life]] = {}
        self._claimed: dict[str, list[Life]] = {}
        #: Of each scheduler: the jobs whose placement it has taken back to plan them again, by id; and those of them
        #: that its next look showed free all the same, which it holds once more.
        self._taken_back: dict[str, dict[int, Life]] = {}
        self.unheld: dict[str, list[Life]] = {}
        #: Jobs that slurmctld has lost, with the nodes of their last placement while that is on record: their ids may
        #: come again.
        self.lost_ids: dict[int, tuple[str, ...]] = {}
        self._was_lost = False  # a scheduler that goes on without its store has in its memory what no other one knows
        self._memory_per_cpu_mb = memory_per_cpu_mb
        self._takers: dict[str, Callable[[Event], None]] = {
            "submit": self._submit,
            "hold": self._hold,
            "release": self._release,
            "lost": self._lost,
            "update": self._update,
            "place": self._place,
            "unpin": self._update,
            "split": self._split,
            "start": self._start,
            "end": self._end,
            "requeue": self._requeue,
            "suspend": self._suspend,
            "resume": self._resume,
            "purge": self._purge,
            "bad": self._bad,
            "look": self._look,
            "record": self._record,
            "store": self._store,
            "daemon": self._daemon,
        }

    def take(self, event: Event) -> None:
        """Go on by one event."""
        taker = self._takers.get(event.kind)
        if taker is not None:
            taker(event)

    def go_back(self, past: "Lives", at_s: float) -> None:
        """Slurmctld was killed: Slurm's jobs are as they were in the past. What we know and have on record is not.

        Jobs that people have changed since look changed by nobody; if we have not seen the job since it was given to
        Slurm, its hold looks like its owner's. A requeued job that we have placed again looks like that placement.
        """
        changed = []
        for life in list(self.of.values()):
            was = past.of.get(life.id)
            self.waiting.pop(life.id, None)
            if was is None:
                del self.of[life.id]
                changed.append(life)
                self.lost_ids[life.id] = life.last_nodes
                continue
            if self._gone_back(life, was, at_s):
                changed.append(life)
            if life.state == "waiting":
                self.waiting[life.id] = life
        for shown in (*self._loose.values(), *self._noted.values(), *self._claimed.values()):
            shown[:] = [life for life in shown if life not in changed]
        for taken in self._taken_back.values():
            for life in changed:
                taken.pop(life.id, None)
        self.unheld = {by: [life for life in free if life not in changed] for by, free in self.unheld.items()}

    def _gone_back(self, life: Life, was: Life, at_s: float) -> bool:
        """The job is as it `was`, and what was done to it since is lost. Returns whether anything was."""
        is_new = life.touched_s > was.touched_s
        is_mark_lost, had_word = self._is_mark_lost(life, was), life.noted
        was_given = life.given_s is not None and was.given_s is None
        if was_given or (was.hold == "ours" and life.hold != "ours" and not life.placed):
            is_unseen = max(life.given_s or 0.0, life.word_s) >= self.seen_s
            life.unclear |= is_unseen or not life.noted or not was.has_mark
        starts_s = life.started_s[was.started - life.started :] if life.started > was.started else [inf]
        was_seen_running = starts_s[0] < self._last_look_s()
        life.is_start_lost = was.state == "waiting" and was_seen_running
        is_theirs = life.given_s is not None or life.hold == "owner" or (life.hold != "ours" and not life.has_mark)
        is_left = is_theirs or not (life.hold or life.placed)  # or its owner has released it
        is_indistinct = is_left and not life.placed and not (was.boosted or (was.has_mark and life.noted))
        is_hold_lost = was.hold == "owner" and bool(was.placed) and not was.boosted and self._is_held_again(life, was)
        looks_placed = life.is_recorded_since(was)
        is_memory_lost = life.placed_s > was.placed_s and life.whole_mb is None  # our record has the later placement's
        # A record goes when Slurm forgets the job: nobody knows then that it ran.
        if life.state == "purged":
            life.is_behind |= life.id not in self.records
            life.forgotten_by.update(by for by in self._started_s if self._has_looked_since(life.touched_s, by))
        for name in _SLURMS:
            setattr(life, name, getattr(was, name))
        if life.wishes["nice"] != was.wishes["nice"]:
            life.lost_nice = {*life.lost_nice, *life.nices, life.wishes["nice"]}
        if is_mark_lost:
            life.hold, life.owner_held_s, life.unclear = "ours", None, True
        if looks_placed:
            life.requeued_s = None
        life.unclear |= was.unclear
        life.wishes = dict(was.wishes)
        life.is_memory_lost = is_memory_lost and life.whole_mb is not None
        if is_hold_lost:
            life.hold, life.owner_held_s, life.unclear = "ours", None, True
        if life.placed and (is_indistinct or is_hold_lost):  # nobody can tell our nodes from its owner's any more
            life.wishes["required"], life.placed = life.placed, ()
        if had_word and not was.noted:
            life.unnoted_s = at_s
        life.allowed = max(life.allowed, life.started + 1)
        life.is_behind |= life.requeues > was.requeues
        life.requeues = was.requeues
        if was_given:
            life.given_known.clear()
        if is_new:
            life.touched_s = life.people_s = life.ours_s = life.reverted_s = at_s
            life.overtaken = was.overtaken
        return is_new

    @staticmethod
    def _is_held_again(life: Life, was: Life) -> bool:
        """Whether we hold the job, whose placement its owner held in that past and then released.

        Without our boost it looks like a job that we hold, with a node list of its owner's.
        """
        is_ours = (life.hold == "ours" or life.unseen) and not life.placed and not life.noted
        return is_ours and life.held_by[1] > (was.owner_held_s or 0.0)

    def _has_looked_since(self, since_s: float, by: str) -> bool:
        """Whether this scheduler has looked at all jobs after that moment, and since it was started."""
        since_s = max(since_s, self._started_s[by])
        return by.startswith("scheduler") and self.looked_s.get(by, -1.0) > since_s

    def _last_look_s(self) -> float:
        """When a scheduler last looked at all jobs."""
        return max((at_s for by, at_s in self.looked_s.items() if by.startswith("scheduler")), default=-1.0)

    def _is_mark_lost(self, life: Life, was: Life) -> bool:
        """Whether slurmctld has lost the mark that people had written into a job that its owner holds.

        To who has a record of it, and none of its owner's hold, the mark looks overwritten: the job is released. A
        scheduler whose store does not answer has the record in its memory.
        """
        was_lost = life.hold == "ours" and life.unclear  # when slurmctld was killed before
        is_lost = (life.marked_by_owner or was_lost) and not was.has_mark and was.hold == "owner"
        is_waiting = life.hold == "owner" and life.state == "waiting"
        is_hold_known = is_waiting and (life.owner_held_s or 0.0) < self.seen_s
        is_on_record = life.known or bool(life.claimed_by)
        return is_lost and is_on_record and not (is_hold_known or self._knows_given(life))

    def running(self) -> Iterator[Life]:
        """The jobs that have nodes."""
        return (life for life in self.of.values() if life.state in RUNNING)

    def cycle_ended(self, by: str, at_s: float, *, is_alone: bool) -> None:
        """The scheduler `by`, which `is_alone` or not, has ended a cycle well: what it saw released is on record."""
        looked_s = self.looked_s.get(by, -1.0)
        self.seen_s = max(self.seen_s, looked_s)
        for life in self.waiting.values():
            life.claimed_by.discard(by)
            if life.is_start_lost and life.touched_s < looked_s:
                life.is_start_lost, life.answered_s = False, looked_s
        for life in self._loose.pop(by, ()):
            life.unseen = False
            life.unnoted_s = life.unnoted_s if life.unnoted_s >= looked_s else -inf
            was_noted = life in self._noted[by]
            if was_noted and life.marked and not life.noted:
                continue  # people have taken the word out since: it looks as if slurmctld had lost it
            is_plain = life.is_plain and life.extra_s < looked_s and not (life.noted or was_noted)
            is_known = life.id in self.records or (is_plain and not self._was_lost)
            if is_alone and life.given_s is None and is_known and (life.is_loose or was_noted):
                life.given_s = at_s
        for life in self._claimed.pop(by, ()):
            self._taken_for_slurms(life, at_s)

    def _taken_for_slurms(self, life: Life, at_s: float) -> None:
        """People wrote a mark on a job that ran without a placement of ours: it is Slurm's from now on.

        Whether the job still occupied nodes when it was seen is not known if it was requeued just before. One with a
        node list of its owner's may run by a placement of ours whose record is lost.
        """
        if life.hold == "ours":
            life.hold, life.owner_held_s = "owner", None
        if life.wishes["required"]:
            return
        if life.runs:
            life.given_s = at_s if life.given_s is None else life.given_s
        else:
            life.unclear = True

    # --- the kinds of events

    def _submit(self, event: Event) -> None:
        if event.data["verdict"] == "refused":
            return
        asked = {**UNSAID, **event.data}
        if asked["memory_per_node_mb"]:
            asked["memory_per_cpu_mb"] = None
        elif asked["memory_per_cpu_mb"] is None:
            asked["memory_per_cpu_mb"] = self._memory_per_cpu_mb
        is_array = bool(event.data.get("array"))
        life = Life(event.job, event.by, asked, event.at_s, event.job if is_array else None)
        life.marked = is_mark(asked["extra"])
        life.marked_by_owner = life.marked and asked["verdict"] == "pass"
        life.noted = is_note(asked["extra"])
        life.ours_s = life.touched_s = life.people_s = event.at_s
        if event.data.get("held") and life.is_claimed:
            life.hold = "ours"
        elif event.data.get("held"):
            life.hold, life.owner_held_s = "owner", event.at_s
        elif asked["verdict"] == "held":
            life.hold = "ours"
        self.of[event.job] = self.waiting[event.job] = life

    def _hold(self, event: Event) -> None:
        life, had = self._touched(event), event.data["had"]
        is_replaced = life.is_requeued_held and event.by not in USER_IDS  # an administrator's hold replaces it
        life.is_requeued_held &= not is_replaced
        if is_ours(event.by):
            life.hold, life.ours_s, life.admin_held_s = "ours", max(life.ours_s, event.at_s), None
            life.held_by = (event.by, event.at_s)
            life.unclear = is_note(life.wishes["extra"])  # people wrote the word while we were about to hold the job
            life.lifted = None
        elif event.data.get("is_requeued"):  # Slurm says so: it is no hold of ours
            life.unseen |= life.is_marked_held
            life.hold, life.owner_held_s, life.admin_held_s, life.unclear = "owner", event.at_s, None, False
            life.is_requeued_held = True
        elif event.data["admin"]:
            # A suspended job that is requeued is held by Slurm itself, and for a moment Slurm does not say how.
            life.hold, life.admin_held_s = "admin", None if event.by == "slurm" else event.at_s
        elif not is_replaced and self._changes_nothing(life, event):
            life.is_forgotten_bad |= had == "bad"  # a hold that is there stays as it is, whose ever it is
        elif self._is_without_trace(life):
            # A hold of a job that we hold leaves no trace, nor does one that comes while we take a placement back, just
            # before our own hold, or before our own release of a job that Slurm held. After a release that nobody has
            # seen, it looks as if the job had been held all the time. So does one that somebody has made a user's hold
            # of an administrator's, and one of a job whose record is lost.
            life.unclear |= life.hold != "ours"
            life.hold, life.owner_held_s, life.admin_held_s = "ours", None, None
        elif life.is_told and not life.noted and life.unnoted_s > -inf:
            # They have just taken our word out of its mark, or slurmctld has lost it: as if it had lost both.
            life.hold, life.admin_held_s, life.given_s, life.unclear = "ours", None, None, True
        else:
            life.hold, life.owner_held_s, life.admin_held_s = "owner", event.at_s, None

    @staticmethod
    def _changes_nothing(life: Life, event: Event) -> bool:
        """Whether this hold leaves the one that is there as it is."""
        had, by_user = event.data["had"], event.by in USER_IDS
        return had == "user" or bool(by_user and (had or life.state == "suspended"))

    def _is_without_trace(self, life: Life) -> bool:
        """Whether an owner's hold of the job would look like ours."""
        is_by_us = life.is_marked_held or life.unseen or life.is_claimed or life.unverified
        is_cleared = life.is_cleared and (life.runs or life.requeues > 0) and life.given_s is None and not life.noted
        is_unsaid = self._is_off_record(life) or self._is_gift_unsaid(life) or is_cleared
        is_placed = bool(life.placed) and life.noted  # the word is in its mark, and we placed it all the same
        return (bool(is_by_us) or is_unsaid or self._is_being_released(life)) and not is_placed

    def _is_gift_unsaid(self, life: Life) -> bool:
        """Whether we gave the job to Slurm, and neither its mark nor anybody says so; a record says that we hold it."""
        is_unsaid = life.given_s is not None and not life.noted and not self._knows_given(life)
        return is_unsaid and life.id in self.records

    def is_gift_untold(self, life: Life, by: str) -> bool:
        """Whether another daemon has released a job without a mark, and could not yet tell this one."""
        is_told = life.has_mark or RECORDS in life.given_known or by in life.given_known
        return life.given_s is not None and not is_told and life.id in self.records

    def _is_being_released(self, life: Life) -> bool:
        """Whether a daemon's update has just lifted Slurm's own hold of the job, and its release is still to come.

        A mark that says already that the job is Slurm's tells such a hold from ours.
        """
        return life.lifted is not None and not life.noted and life.lifted[1] >= self.looked_s.get(life.lifted[0], 0.0)

    def _is_off_record(self, life: Life) -> bool:
        """Whether the store was lost, and with it that the job with our mark was released."""
        return life.marked and life.forgotten and life.id not in self.records

    def _was_off_record(self, life: Life, by: str) -> bool:
        """Whether it was off record when this daemon looked: the record may come from that look."""
        is_new = life.recorded_s >= self.looked_s.get(by, 0.0)
        return life.marked and life.forgotten and (is_new or life.id not in self.records)

    def _release(self, event: Event) -> None:
        life, had = self._touched(event), event.data["had_hold"]
        self._met_by_another(life, event)
        if is_ours(event.by):
            life.freed_s = event.at_s
            self._taken_back.get(event.by, {}).pop(life.id, None)
        if had == "bad":
            life.lifted = (event.by, event.at_s) if is_ours(event.by) else None
            self._let_go(life, event)
            return
        if is_ours(event.by):
            if self._is_hold_taken_back(life, event):
                self._let_go(life, event)
                return
            life.given_known.add(event.by)
            life.lifted = None
            if had and life.given_s is None and not life.runs:
                life.given_s, life.noted = event.at_s, life.has_mark or is_note(event.data.get("extra") or "")
            elif is_note(event.data.get("extra") or "") and life.given_s is None:
                life.given_s, life.noted = event.at_s, True  # it was placed or released in the meantime
            life.is_told |= life.noted and event.by.startswith("scheduler")
            life.overtaken |= not had
            self._array_unmarked(life, event.by)
            life.boosted = life.boosted and bool(had)  # Slurm's habit, for root and SlurmUser
        elif not had and event.data["admin"] and not event.data.get("was_paused", life.state == "suspended"):
            life.wishes["nice"], life.boosted = 0, False  # the same
        self._let_go(life, event)

    def _met_by_another(self, life: Life, event: Event) -> None:
        """Note whether a scheduler that does not know the job's placement takes it back or gives the job to Slurm."""
        is_another = event.by.startswith("scheduler") and event.by != life.placed_by
        life.is_met_by_another |= bool(life.placed or life.boosted) and is_another

    def _is_hold_taken_back(self, life: Life, event: Event) -> bool:
        """Whether the scheduler ends only the hold that it has just set: it met a job that had started.

        If the job was requeued in between, it is planned again. Who gives a job to Slurm says so in its mark.
        """
        by, held_s = life.held_by
        is_new = life.hold == "ours" and by == event.by and held_s >= self.looked_s.get(by, 0.0)
        return is_new and life.has_mark and not life.noted and event.data.get("extra") is None

    def _lost(self, event: Event) -> None:
        """The answer to a call was lost. Of a job without a mark nobody then knows that it was released."""
        life = self.of.get(event.job)
        if life is None or event.data["call"] != "release" or life.has_mark:
            return
        self._gift_forgotten(life, event.by)

    def _gift_forgotten(self, life: Life, by: str) -> None:
        """This daemon does not know, or no longer knows, that the job was given to Slurm."""
        life.given_known.discard(by)
        if life.hold == "owner" and not life.has_mark and self._is_gift_unsaid(life):
            life.hold, life.owner_held_s, life.unclear = "ours", None, True

    def _let_go(self, life: Life, event: Event) -> None:
        """Nobody holds the job any more."""
        life.unseen = not is_ours(event.by) and (life.unseen or life.is_marked_held)
        if life.is_left or life.hold in ("slurm", "admin"):  # while it was held so, what is left of ours stayed on it
            life.ours_s = max(life.ours_s, event.at_s)
        life.hold, life.owner_held_s, life.admin_held_s, life.unclear = "", None, None, False
        life.is_requeued_held = life.is_forgotten_bad = False

    def _update(self, event: Event) -> None:
        life, fields = self._touched(event), event.data["fields"]
        if is_ours(event.by):
            self._ours(life, event)
            return
        for word, text in fields.items():
            if word == "StartTime":
                later = text.removeprefix("now")
                life.wishes["begin_s"] = int(later or 0) + (int(event.wall_s) if later != text else 0)
            elif word == "Priority":
                self._prioritised(life, event)
            else:
                name, value = WORDS.get(word, (word, str))
                life.wishes[name] = value(text)
        if "ReqNodeList" in fields:
            self._unplaced(life)
        if "Nice" in fields:
            life.boosted, life.lost_nice = False, set()
            life.nices.add(life.wishes["nice"])
        if life.wishes["memory_per_node_mb"] and "MinMemoryNode" in fields:
            life.wishes["memory_per_cpu_mb"] = None
        elif "MinMemoryCPU" in fields:
            life.wishes["memory_per_node_mb"] = None
        if "MinMemoryCPU" in fields or "MinMemoryNode" in fields:
            life.whole_mb = None
        if "Extra" in fields:
            held_s = life.owner_held_s
            self._marked(life, event)
            if life.is_requeued_held:  # whatever the mark says, Slurm says whose hold it is
                life.hold, life.owner_held_s, life.unclear = "owner", held_s, False
        self._shown(life, fields)

    def _shown(self, life: Life, fields: Mapping[str, str]) -> None:
        """What people have written may make the job look as if slurmctld had gone back to a placement of ours."""
        has_last_nodes = bool(life.last_nodes) and set(life.wishes["required"]) == set(life.last_nodes)
        if has_last_nodes and life.marked and not life.noted and {"Extra", "ReqNodeList"} & set(fields):
            life.given_s = None
        if {"Nice", "ReqNodeList"} & set(fields) and life.wishes["required"] and life.wishes["nice"] in OUR_NICE:
            life.unclear |= life.hold == "ours"

    def _unplaced(self, life: Life) -> None:
        """People have undone our placement; whether they hold the job or not, it looks as if we had never placed it.

        A mark that says that the job is Slurm's tells their hold from ours all the same, and so does a requeuehold.
        """
        if life.placed:
            life.unseen = life.is_cleared = True
        if life.placed and life.hold == "owner" and not (life.noted or life.is_requeued_held):
            life.hold, life.owner_held_s, life.unclear = "ours", None, True
        life.placed = ()

    def _marked(self, life: Life, event: Event) -> None:
        """People have written Extra. With `advised` the job is Slurm's, held as it is; with our mark alone, ours."""
        extra = life.wishes["extra"]
        was_noted, was_marked, life.extra_s = life.noted, life.marked, event.at_s
        life.noted = is_note(extra)
        life.marked = life.marked_by_owner = is_mark(extra)
        if life.noted and not was_noted:
            life.word_s = event.at_s
        is_word_taken, is_word_on_record = life.given_s is not None, life.is_told and not was_marked
        life.unnoted_s = event.at_s if was_noted and life.marked and not life.hold else -inf
        if life.noted and life.hold == "ours" and life.unverified:
            life.unclear = True  # we take it for the watchdog's word, which came in between
        elif was_noted and life.marked and not life.hold and not self._knows_given(life):
            life.given_s, life.unseen = None, True  # it looks as if we had never given it to Slurm
        elif life.marked and not was_marked and life.given_s is not None and not self._knows_given(life):
            life.given_s, life.unseen = None, True  # the answer to the release of a job without a mark was lost
        elif life.noted and life.hold == "ours":
            life.hold, life.owner_held_s = "owner", event.at_s
        elif was_noted and not life.has_mark:
            life.owner_held_s = None  # a job that has lost its mark is released
        elif life.marked and not was_marked and life.unverified:
            life.given_s = None  # nothing says any more that we have given it away since we took it back
            if life.hold == "owner":  # it looks as if slurmctld had lost their hold
                life.hold, life.owner_held_s, life.unclear = "ours", None, True
        elif life.marked and life.hold == "owner" and (is_word_taken if was_noted else is_word_on_record):
            # Who has a record knows that it is Slurm's; anybody else takes it for one that the filter has held. To who
            # has the word on record, which people have taken out with all of the mark before, slurmctld has lost it.
            life.hold, life.owner_held_s, life.given_s, life.unclear = "ours", None, None, True
        elif life.hold == "owner" and (life.is_claimed or (was_noted and life.marked and life.given_s is None)):
            life.hold, life.owner_held_s = "ours", None
        if was_noted and life.marked and life.hold and life.given_s is not None:
            life.given_s, life.unclear = None, True  # it looks as if slurmctld had lost our word
        if was_noted and not life.noted and life.array == life.id:
            self._array_marked(life)

    def is_overwritten(self, life: Life) -> bool:
        """Whether people have overwritten our mark since we released the job last, and nobody knows it as Slurm's."""
        was_ours = life.wishes["verdict"] == "held" and not life.has_mark
        return was_ours and life.extra_s >= life.freed_s and not self._knows_given(life)

    def _knows_given(self, life: Life) -> bool:
        """Whether anything but its mark says that it was given to Slurm: the records, or a scheduler that runs."""
        return any(each == RECORDS or each.startswith("scheduler") for each in life.given_known)

    def _array_marked(self, array: Life) -> None:
        """People have taken our word out of an array's mark: tasks split off before look like tasks split off since."""
        for life in self.waiting.values():
            if life.array == array.id and life is not array and life.id not in self.records:
                life.unclear |= life.hold == "ours"

    def _array_unmarked(self, array: Life, by: str) -> None:
        """We have released an array without a mark: tasks that people split off since our look look like Slurm's."""
        for life in self.waiting.values() if array.array == array.id and not array.has_mark else ():
            is_new = life.array == array.id and life.split_s >= self.looked_s.get(by, 0.0)
            life.unclear |= is_new and life.hold == "ours" and not life.has_mark

    def _array_noted(self, array: Life, by: str) -> None:
        """We have said in an array's mark that it is Slurm's, as we had seen it released.

        Tasks that people split off between our look and this look like tasks that were split off before the release.
        """
        for life in self.waiting.values():
            is_new = life.array == array.id and life.split_s >= self.looked_s.get(by, 0.0)
            if is_new and life.marked and not life.noted:
                life.given_s, life.unseen = None, True
                if life.hold == "owner":
                    life.hold, life.owner_held_s, life.unclear = "ours", None, True

    def _ours(self, life: Life, event: Event) -> None:
        """An update of ours. If Slurm refuses a placement, a part of it may be on the job all the same."""
        fields = event.data["fields"]
        if event.kind == "unpin":
            self._met_by_another(life, event)
        if event.kind == "unpin" and life.is_memory_lost and not {"MinMemoryCPU", "MinMemoryNode"} & set(fields):
            life.wishes |= {"memory_per_node_mb": life.whole_mb, "memory_per_cpu_mb": None}
            life.whole_mb = None
        if "Extra" in fields:
            self._ours_marked(life, event)
        has_our_nice = bool(life.wishes["required"]) and life.wishes["nice"] in OUR_NICE
        looks_placed = (life.boosted and life.forgotten and life.has_mark) or has_our_nice
        if "Nice" in fields and (int(fields["Nice"]) in life.lost_nice or life.is_nice_lost):
            life.wishes["nice"] = int(fields["Nice"])
        if "Nice" in fields:
            life.boosted = int(fields["Nice"]) < 0 and int(fields["Nice"]) != life.wishes["nice"]
        if "MinMemoryCPU" in fields or "MinMemoryNode" in fields:
            life.whole_mb = None
        is_unknown = self._was_off_record(life, event.by) or (not life.placed_s and (life.forgotten or not life.known))
        looks_requeued = life.has_mark and life.started and is_unknown
        was_changed = life.people_s >= self.looked_s.get(event.by, 0.0)  # we know the list of before
        # A job that slurmctld has lost had its id, and it was requeued before anybody saw it.
        is_new = life.requeues > 0 and not life.marked
        lost_nodes = self.lost_ids.get(life.id, ()) if is_new else ()
        required = set(life.wishes["required"])
        is_last = required in (set(life.last_nodes), set(life.nodes_before), set(lost_nodes))
        looks_ours = looks_requeued or looks_placed or was_changed or is_last
        extra = fields.get("Extra", "")
        is_other = without_notes(extra) != without_notes(life.wishes["extra"]) or life.noted
        if was_changed and is_mark(extra) and is_other:  # what people have just written there, we have overwritten
            life.wishes["extra"], life.marked, life.marked_by_owner = without_notes(extra), True, False
            life.noted = False
        if fields.get("ReqNodeList") == "" and looks_ours:
            # "By us" means the nodes of our record's last placement, or without a record those of a requeued job
            # (CONTRIBUTING): such a list of theirs is ours.
            life.wishes["required"] = ()
            life.unclear |= life.hold == "ours"
        if "ReqNodeList" in fields:
            life.placed = node_names(fields["ReqNodeList"])
            life.placed_s, life.placed_wall_s = event.at_s, event.wall_s
        if event.kind == "unpin" and event.by.startswith("scheduler"):
            # What people did since it looked it does not know: it may take what they do next for Slurm's doing.
            life.was_unheld |= not life.marked or life.people_s >= self.looked_s.get(event.by, 0.0)
            if not (life.was_unheld or life.noted or is_note(fields.get("Extra", ""))):
                self._taken_back.setdefault(event.by, {})[life.id] = life
            life.unverified.add(event.by)
            if life.hold == "owner" and (life.owner_held_s or 0.0) >= self.looked_s.get(event.by, 0.0):
                life.hold, life.owner_held_s, life.unclear = "ours", None, True  # our own hold would have come now

    def _ours_marked(self, life: Life, event: Event) -> None:
        """An update of ours writes the mark: with `advised` it gives the job to Slurm."""
        if is_note(event.data["fields"]["Extra"]):
            life.given_known.add(event.by)
            life.noted = True
            life.is_told |= event.by.startswith("scheduler")
            if life.given_s is None:
                life.given_s = event.at_s
            # An administrator has given a held job nodes and one of our nice values: it looks as if we had placed it,
            # and its owner held it.
            life.unclear |= life.hold == "ours" and life.wishes["nice"] in OUR_NICE and not life.placed_s
            if life.array == life.id:
                self._array_noted(life, event.by)
        elif self._was_given_unseen(life, event):
            life.given_s, life.noted = None, False  # the watchdog's word, and what people made of it, is lost
            life.given_known.clear()

    def _was_given_unseen(self, life: Life, event: Event) -> bool:
        """Whether another daemon of ours gave the job to Slurm after this one had read its mark, just before this."""
        read_s = self.looked_at_s.get((event.by, life.id), -1.0)
        began_s = self.looked_s.get(event.by, 0.0)
        return life.given_s is not None and began_s <= read_s <= life.given_s

    def _prioritised(self, life: Life, event: Event) -> None:
        """An administrator's priority clears the nice value; the largest number releases the job."""
        if not life.hold:
            life.wishes["nice"], life.boosted = 0, False
        if event.data["fields"]["Priority"] == RELEASES:
            self._let_go(life, event)

    def _place(self, event: Event) -> None:
        life = self._touched(event)
        life.hold, life.owner_held_s, life.admin_held_s, life.is_requeued_held = "", None, None, False
        life.placed = life.last_nodes = tuple(event.data["nodes"])
        life.placed_s, life.placed_wall_s, life.boosted, life.given_s = event.at_s, event.wall_s, True, None
        life.placed_by, life.is_met_by_another = event.by, False
        life.noted &= "extra" not in event.data["fields"]
        extra = event.data["fields"].get("extra")
        if extra is not None and without_notes(extra) != without_notes(life.wishes["extra"]):
            life.wishes["extra"], life.marked_by_owner = without_notes(extra), False
        life.marked |= extra is not None  # also where people had written there that it is Slurm's
        life.ours_s = max(life.ours_s, event.at_s)  # it may still be completing
        life.was_unheld, life.is_start_lost, life.is_told, life.is_cleared = False, False, False, False
        life.is_memory_lost = False
        life.given_known.clear()
        life.whole_mb = event.data["fields"].get("memory_per_node", life.whole_mb)
        life.unverified.clear()

    def _split(self, event: Event) -> None:
        record = self._touched(event)
        for job_id in event.data["ids"]:
            life = Life(job_id, record.user, dict(record.wishes), record.submitted_s, record.array)
            for name in _INHERITED:
                setattr(life, name, getattr(record, name))
            life.ours_s = life.touched_s = life.split_s = event.at_s
            life.unclear |= job_id in self.lost_ids and job_id in self.records  # it looks like the lost one
            self.of[job_id] = self.waiting[job_id] = life

    def _start(self, event: Event) -> None:
        life = self._touched(event)
        life.state, life.is_start_lost = "running", False
        life.hold, life.owner_held_s, life.admin_held_s = "", None, None
        life.started += 1
        life.started_s.append(event.at_s)
        life.takes = event.data
        self.waiting.pop(event.job, None)

    def _end(self, event: Event) -> None:
        life = self._touched(event)
        if event.data["how"] == "requeued":
            self._waits_again(life, event)
            return
        is_completing = event.at_s < life.ours_s
        life.has_ended_held = (life.runs or is_completing) and bool(life.hold)
        life.state = "ended"  # a hold stays, should it be requeued
        life.has_ended = True
        life.has_succeeded |= event.data["how"] == "completed" and not life.wishes.get("fails")
        self.waiting.pop(event.job, None)

    def _requeue(self, event: Event) -> None:
        life = self._touched(event)
        life.allowed = life.started + 1
        life.requeues += 1
        life.was_unknown |= not life.known
        if not life.runs:  # a job that has ended: no other event says that it waits again
            if life.has_ended_held:  # Slurm shows a hold that was set while it ran as an administrator's
                life.hold, life.owner_held_s, life.unclear, life.is_requeued_held = "admin", None, False, False
            self._waits_again(life, event)

    def _waits_again(self, life: Life, event: Event) -> None:
        life.state = "waiting"  # and held, if it was held while it ran
        life.ours_s = event.at_s + COMPLETES_IN_S
        if life.placed and life.given_s is None and not life.hold:
            life.requeued_s = event.at_s
        self.waiting[life.id] = life

    def _suspend(self, event: Event) -> None:
        self._touched(event).state = "suspended"

    def _resume(self, event: Event) -> None:
        life = self._touched(event)
        life.state = "running"
        self._let_go(life, event)

    def _purge(self, event: Event) -> None:
        self._touched(event).state = "purged"

    def _bad(self, event: Event) -> None:
        self._touched(event).hold = "slurm"

    def _look(self, event: Event) -> None:
        if event.job:
            self.looked_at_s[event.by, event.job] = event.at_s
            return
        if event.data["is_check"]:
            self.checked_s[event.by] = event.at_s
            return
        self.looked_s[event.by] = event.at_s
        if not event.by.startswith("scheduler"):
            return
        self._loose[event.by] = []
        free = [life for life in self._taken_back.pop(event.by, {}).values() if life.is_unheld]
        self.unheld[event.by] = [life for life in free if life.ours_s <= event.at_s]
        for life in free:  # also if it may be completing: one that was cancelled while it waited is not, and is seen
            life.was_unheld = True
        for life in self.waiting.values():
            if life.ours_s > event.at_s:
                continue  # it is still completing
            life.is_told |= life.noted
            if life.is_claimed:
                life.claimed_by.add(event.by)
            if not life.boosted:
                life.lost_nice = set()  # what it has now is on record from here on
            is_unsure = life.unverified and not life.wishes["required"]  # it looks as if Slurm had undone our hold
            if (life.is_loose and not is_unsure) or life.noted:
                self._loose[event.by].append(life)
            life.unverified.discard(event.by)
        self._loose[event.by] += [life for life in self.of.values() if life.unseen and life.runs]
        self._noted[event.by] = [life for life in self._loose[event.by] if life.noted]
        occupying = (life for life in self.of.values() if life.runs or life.ours_s > event.at_s)
        self._claimed[event.by] = [life for life in occupying if life.is_claimed and life.id not in self.records]

    def _record(self, event: Event) -> None:
        for job_id in set(event.data["saved"]) & self.of.keys() - self.records:
            life = self.of[job_id]
            life.recorded_s = event.at_s
            if life.requeues and life.has_mark and not (life.noted or life.placed_s):
                life.last_nodes = tuple(life.wishes["required"])  # by its restart count, we have placed it there
        self.records.update(event.data["saved"])
        self.records.difference_update(event.data["gone"])
        self.lost_ids.update((job_id, ()) for job_id in self.lost_ids.keys() & set(event.data["gone"]))
        for job_id in event.data["saved"]:
            life = self.of.get(job_id)
            if life is not None:
                placing = event.data.get("placing", {}).get(job_id, life.last_nodes)
                if set(placing) != set(life.last_nodes):
                    life.last_nodes, life.nodes_before = placing, life.last_nodes
                    if life.placed and life.boosted:  # slurmctld has just gone back to it: it looks like its owner's
                        life.wishes["required"], life.placed = life.placed, ()
                life.intended_s = event.at_s if job_id in event.data.get("placing", {}) else life.intended_s
                if job_id in event.data.get("placing", {}) and self.looked_s.get(event.by, 0.0) <= life.placed_s:
                    life.answered_s = event.at_s
                if job_id in event.data.get("released", ()) and life.hold == "ours" and not life.saved:
                    # A task without a mark of its own, split off just before its array was released, looks like one
                    # that its owner holds.
                    life.unclear |= not life.has_mark
                life.saved[event.by], life.known = event.at_s, True
                if job_id in event.data.get("holding", ()):  # what comes now, it may take for its own
                    life.unverified.add(event.by)
                life.given_known.discard(RECORDS)
                if job_id in event.data.get("released", ()):
                    life.given_known.add(RECORDS)
                life.unseen &= life not in self._loose.get(event.by, ())
                is_noted = life.noted or not life.has_mark  # else people have taken the word out since the look
                if life.given_s is None and is_noted and life in self._noted.get(event.by, ()):
                    life.given_s = event.at_s

    def _store(self, event: Event) -> None:
        """A store that is gone has taken with it what only our records told."""
        if event.data["state"] != "gone":
            return
        self._was_lost = True
        self.records.clear()
        for life in self.of.values():
            life.forgotten = True
            life.given_known.discard(RECORDS)
            if life.noted:  # the mark says it
                continue
            life.given_s = None
            if life.marked and not life.placed:
                life.owner_held_s = None

    def _daemon(self, event: Event) -> None:
        for life in self.of.values() if event.data["what"] in ("start", "stop", "crash", "handover") else ():
            self._gift_forgotten(life, event.data["name"])
        if event.data["what"] == "start":  # it takes what is free for released by its owner
            self._started_s[event.data["name"]] = event.at_s
            self._taken_back.pop(event.data["name"], None)
            for life in self.of.values():
                life.claimed_by.discard(event.data["name"])
                life.forgotten_by.discard(event.data["name"])

    def _touched(self, event: Event) -> Life:
        life = self.of[event.job]
        life.touched_s = event.at_s
        if event.by != "slurm":
            life.requeued_s = None
        if event.by in PEOPLE:
            life.people_s = event.at_s
        return life
