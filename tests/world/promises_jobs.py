"""What the checker knows of each job: how it truly is, what its owner asked for, and who changed it when.

The history shows each job as it is after each of its events (slurm_jobs.Now). The checker adds whose word a field is:
`own` has what the owner or an administrator asked for, field by field. Where a daemon of ours overwrote a change that
it could not have seen, which the specification allows, that is not known any more (`UNKNOWN`).
"""

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any

from world.history import Event
from world.slurm_jobs import WAITING, Now

#: The daemons that are ours.
OURS = frozenset({"scheduler", "scheduler-2", "watchdog"})
#: Nobody can tell what the owner asked for.
UNKNOWN = object()

_SEGMENT = re.compile(r"(?:\A|(?<=[ \t\n;]))sns:[0-9](?:[^;\n]*[^;\n ])?")
_WORDS = frozenset(
    (
        *("alpha", "program", "max-scale", "heuristic", "exclusive", "reprofile", "restartable", "fixed"),
        *("g", "b", "r", "p", "n", "at", "t", "tg", "mo", "mg", "w", "bw", "free"),
    )
)
_GRANT = re.compile(r"(?:\A|;)sns:grant=[^;]*")
#: Which field of a job each word of an update concerns; two of them have a part of a field.
CONCERNS = {
    "ReqNodeList": "nodes",
    "TresPerNode": "gres",
    "MinMemoryCPU": "memory",
    "MinMemoryNode": "memory",
    "TasksPerNode": "tasks_per_node",
    "NumTasks": "tasks",
    "StartTime": "begin_s",
    "Extra": "extra",
    "AdminComment": "admin_comment",
    "Partition": "partitions",
}


@lru_cache(maxsize=4096)
def mark(text: str) -> Mapping[str, str] | None:
    """The words of our segment in AdminComment; None if it has none. What cannot be read says that the job is Slurm's.

    As the specification has it, for the checker alone.
    """
    segments = _SEGMENT.findall(text)
    if not segments:
        return None
    first, *words = segments[0].split(" ")
    found = dict((*word.split("=", 1), "")[:2] for word in words)
    if len(segments) > 1 or first != "sns:2" or not found.keys() <= _WORDS or len(found) < len(words):
        return {"free": "unreadable"}
    return found


def text_beside(admin_comment: str) -> str:
    """The text of AdminComment without our segment."""
    return _SEGMENT.sub("", admin_comment)


def without_grant(extra: str) -> str:
    """The owner's own text in Extra."""
    return _GRANT.sub("", extra)


def has_grant(extra: str) -> bool:
    """Whether a grant is in it."""
    return _GRANT.search(extra) is not None


def as_seen(now: Now, name: str) -> Any:
    """The value of a field, without what is ours in it."""
    value = getattr(now, name)
    if name == "extra":
        return without_grant(value)
    return text_beside(value) if name == "admin_comment" else value


#: What a placement gives, and the words of the mark for it.
GIVEN = {"nodes": ("n",), "gres": ("w", "bw"), "memory": ("mg",), "tasks_per_node": ("tg",)}


def _is_given(now: Now, name: str, words: Mapping[str, str]) -> bool:
    """Whether a field is what our mark says that we gave: then it counts as ours, whoever wrote it."""
    if not any(word in words for word in GIVEN[name]):
        return False
    given = [words.get(word, "0") for word in GIVEN[name]]
    match name:
        case "nodes":
            return set(now.nodes) == set(given[0].split(","))
        case "gres":
            return [str(amount) for amount in now.gres[:2]] == given
        case "memory":
            return given[0] in map(str, now.memory)
        case _:
            return given[0] == str(now.tasks_per_node)


@dataclass
class Job:
    """One job record. Moments are steady seconds.

    Attributes:
        own: what its owner, or an administrator, asked for in each field of `CONCERNS`.
        own_extra: Extra as people wrote it last; a grant that they wrote themselves is theirs.
        own_hold: "user" or "admin" while somebody holds it.
        is_opened: its owner has opened our gate.
        is_widened: we have given it more partitions.
        people_s: when people last changed each field.
        changed_s: when anybody but the daemons in `written_s` last changed it.
        written_s: when each daemon of ours last changed it.
        waits_s: since when it waits, and no longer completes; infinity from a requeue until then.
        tries_s: since when a placement of ours waits for Slurm to start the job, with slurmctld there; infinity while
            the job waits for other jobs.
        is_mixed: its mark was changed by others: by an administrator, or by a daemon of ours, unseen by the next one.
        allowed: how often it may have started by now.
        moves: how often we have restarted it.
    """

    id: int
    user: str
    now: Now
    asked: Mapping[str, Any]
    own: dict[str, Any] = field(default_factory=dict)
    own_extra: str = ""
    own_hold: str = ""
    is_opened: bool = False
    is_widened: bool = False
    people_s: dict[str, float] = field(default_factory=dict)
    changed_s: float = 0.0
    written_s: dict[str, float] = field(default_factory=dict)
    refused_s: float = -inf
    waits_s: float = 0.0
    tries_s: float = inf
    started_s: list[float] = field(default_factory=list)
    allowed: int = 1
    moves: int = 0
    takes: Mapping[str, Any] = field(default_factory=dict)
    is_gone: bool = False
    is_mixed: bool = False

    @property
    def mark(self) -> Mapping[str, str] | None:
        """The words of our mark."""
        return mark(self.now.admin_comment)

    @property
    def is_ours(self) -> bool:
        """Whether it waits with a mark of ours that does not say it is Slurm's."""
        words = self.mark
        return self.now.state == WAITING and words is not None and "free" not in words

    @property
    def is_placed(self) -> bool:
        """Whether our mark names a placement."""
        return "n" in (self.mark or {})

    def begins_later(self, wall_s: float) -> bool:
        """Whether its owner wants it to begin later."""
        return self.own["begin_s"] is not UNKNOWN and self.own["begin_s"] > wall_s + 1

    def is_gated(self, wall_s: float) -> bool:
        """Whether a gate of ours keeps it from starting."""
        return self.is_ours and self.now.begin_s > wall_s and self.now.begin_s != self.own["begin_s"]

    def changed_by_others_s(self, by: str) -> float:
        """When anybody but this daemon last changed it."""
        return max(self.changed_s, *(at_s for name, at_s in self.written_s.items() if name != by), -inf)


class Jobs:
    """All jobs, as the history tells it."""

    def __init__(self) -> None:
        self.of: dict[int, Job] = {}
        self.looked_s: dict[str, float] = {}
        self._saved: dict[int, Job] = {}

    def pending(self) -> list[Job]:
        """Those that wait."""
        return [job for job in self.of.values() if job.now.state == WAITING and not job.is_gone]

    def running(self) -> list[Job]:
        """Those that have nodes."""
        return [job for job in self.of.values() if job.now.state in ("RUNNING", "SUSPENDED") and not job.is_gone]

    def is_unseen(self, job: Job, by: str, name: str = "") -> bool:
        """Whether this daemon has not looked since people changed this field, or since anybody changed the job."""
        since_s = job.people_s.get(name, -inf) if name else job.changed_by_others_s(by)
        return since_s >= self.looked_s.get(by, -inf)

    def take(self, event: Event) -> None:
        """Go on by one event."""
        kind = event.kind
        if kind == "look":
            self.looked_s[event.by] = event.at_s
        elif kind == "saved":
            self._saved = {job_id: _kept(job) for job_id, job in self.of.items() if not job.is_gone}
        elif kind == "reverted":
            self._go_back(event)
        elif kind == "submit" and "now" in event.data:
            self._submitted(event)
        elif kind == "refused" and event.job in self.of:
            self.of[event.job].refused_s = event.at_s
        elif kind in ("waits for others", "may start"):
            _looked_at_by_slurm(event, self.of[event.job])
        elif "now" in event.data:
            self._changed(event, self.of[event.job])

    def _submitted(self, event: Event) -> None:
        now, asked = event.data["now"], event.data["asked"]
        job = self.of[event.job] = Job(event.job, event.by, now, asked, changed_s=event.at_s, waits_s=event.at_s)
        job.own = {name: as_seen(now, name) for name in {*CONCERNS.values(), "min_cpus_per_node"}}
        job.own_extra = now.extra
        job.own["begin_s"] = asked.get("begin_s", 0)
        job.own_hold = "user" if asked.get("held") else ""

    def _changed(self, event: Event, job: Job) -> None:
        before, job.now = job.now, event.data["now"]
        by, kind = event.by, event.kind
        if by in OURS:
            job.written_s[by] = event.at_s
            self._ours(event, job)
        else:
            job.changed_s = event.at_s
        if kind == "update" and by not in OURS:
            self._edited(event, job, before)
        elif kind in ("hold", "release"):
            if job.is_opened or job.now.begin_s != before.begin_s:  # Slurm has forgotten a begin time that is past
                job.own["begin_s"] = UNKNOWN
            job.own_hold = job.now.hold if job.now.hold in ("user", "admin") else ""
            job.is_opened = False
            job.people_s["hold"] = event.at_s
        elif kind == "resume":
            job.own_hold = ""
        elif kind == "split":
            self._split(event, job)
        elif kind == "start":
            job.started_s.append(event.at_s)
            job.takes = event.data
        elif kind == "requeue":
            job.allowed += 1
            job.is_opened, job.waits_s = False, inf
            words = job.mark or {}
            if str(job.own["begin_s"]) not in (words.get("b"), words.get("g")) and job.begins_later(event.wall_s):
                job.own["begin_s"] = UNKNOWN  # not on record yet, it looks like Slurm's own delay
        elif kind == "waits":
            job.waits_s = event.at_s
        job.is_gone = kind == "purge"
        if job.is_placed and before.admin_comment != job.now.admin_comment:
            job.tries_s = event.at_s

    def _edited(self, event: Event, job: Job, before: Now) -> None:
        """People have changed fields: from now on these are theirs, unless they wrote what was ours there already."""
        now = job.now
        for word in event.data["fields"]:
            name = CONCERNS.get(word)
            if name is None:
                continue
            was_ours = getattr(before, name) == getattr(now, name) and as_seen(before, name) != job.own[name]
            is_unknown = was_ours or (name in GIVEN and _is_given(now, name, job.mark or {}))
            job.own[name] = UNKNOWN if is_unknown else as_seen(now, name)
            job.people_s[name] = event.at_s
        if "Extra" in event.data["fields"]:
            job.own_extra = now.extra
        if "StartTime" in event.data["fields"]:
            words = job.mark or {}
            is_requeued = now.restarts > int(words.get("r", 0))  # Slurm has given it a begin time, too
            if is_requeued or words.get("g") == str(now.begin_s):  # or ours happens to be the same
                job.own["begin_s"] = UNKNOWN
            is_simple = not (job.asked.get("dependency") or job.now.array[0])
            job.is_opened = now.begin_s <= event.wall_s and is_simple and not job.is_placed and not is_requeued
            if now.begin_s <= event.wall_s and not is_simple:
                job.own["begin_s"] = UNKNOWN  # Slurm may forget it, and then it looks as if a gate had lapsed
        if "AdminComment" in event.data["fields"] and mark(before.admin_comment) != mark(now.admin_comment):
            # Without its mark nobody can tell what on it is ours.
            job.own |= {name: UNKNOWN for name in job.own if as_seen(now, name) != job.own[name]}
            job.is_mixed = True

    def _ours(self, event: Event, job: Job) -> None:
        """We have changed fields: where people had done so since we looked, nobody can tell their wish any more."""
        job.is_opened = job.is_opened and "StartTime" not in event.data.get("fields", ())
        for word in event.data.get("fields", ()):
            name = CONCERNS.get(word)
            is_same = name in ("extra", "admin_comment") and as_seen(job.now, name) == job.own[name]
            if name and self.is_unseen(job, event.by, name) and not is_same:
                job.own[name] = UNKNOWN

    def _split(self, event: Event, job: Job) -> None:
        for task, job_id in zip(event.data["tasks"], event.data["ids"], strict=True):
            new = self.of[job_id] = _kept(job)
            new.id, new.now = job_id, job.now._replace(array=(job.now.array[0], task))

    def _go_back(self, event: Event) -> None:
        """Slurmctld goes on from what it has saved. What it has lost, it has never known."""
        now_of: Mapping[int, Now] = event.data["jobs"]
        self.of = {job_id: _kept(job) for job_id, job in self._saved.items() if job_id in now_of}
        for job_id, job in self.of.items():
            job.now, job.changed_s, job.waits_s = now_of[job_id], event.at_s, event.at_s
            job.tries_s = event.at_s if job.is_placed else inf
            job.people_s = dict.fromkeys(CONCERNS.values(), event.at_s)


def _looked_at_by_slurm(event: Event, job: Job) -> None:
    """A pass of Slurm has found that other jobs keep this one from starting, or do so no more."""
    job.now = event.data["now"]
    job.tries_s = event.at_s if event.kind == "may start" and job.is_placed else inf


def _kept(job: Job) -> Job:
    kept = copy(job)
    kept.own, kept.people_s, kept.written_s = dict(job.own), dict(job.people_s), dict(job.written_s)
    kept.started_s = list(job.started_s)
    return kept
