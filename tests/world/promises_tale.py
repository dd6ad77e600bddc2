"""What the checker knows at one moment of a history: the jobs' lives, the services, and what was found so far."""

from math import inf
from typing import Any

from world.history import Event
from world.promises_life import Life, is_ours
from world.promises_lives import Lives
from world.promises_services import Services

#: The heartbeat's timeout in the simulated world (daemons.py).
TIMEOUT_S = 10.0


class Tale:
    """The state of a check. `accused` are the jobs that were found held too long, so that each is told once."""

    def __init__(self, result: Any) -> None:
        site = result.slurm.site
        self.lives = Lives(site.memory_per_cpu_mb)
        self.services = Services(getattr(result, "timeout_s", TIMEOUT_S), "enforce", result.slurm)
        self.capacity = site.nodes
        self._is_basic = site.priority_type == "priority/basic"
        self.place_timeout_s: float = result.settings.place_timeout_s
        self.accused: set[int] = set()
        #: Whether two schedulers ever ran at once. A lock file prevents that: each may undo what the other one does,
        #: but no job starts twice, and no node is overfilled.
        self.had_two = False
        #: When slurmctld last refused a change of ours, by job.
        self.refused_s: dict[int, float] = {}
        self.wall_s = 0.0
        #: When the present cycle of each scheduler began, and what the clock showed then.
        self.began_s: dict[str, float] = {}
        self.began_wall_s: dict[str, float] = {}

    def keeps_its_boost(self, life: Life) -> bool:
        """Whether our nice value stays on the job: under priority/basic Slurm would start a held job without it."""
        is_held = life.hold in ("owner", "admin") or life.state == "suspended"
        return self._is_basic and is_held and life.boosted

    def take(self, event: Event) -> None:
        """Go on by one event."""
        kind = event.kind
        if kind == "hold" and is_ours(event.by):
            self._overlook(event)
        elif kind in ("place", "unpin") or (kind in ("update", "release") and is_ours(event.by)):
            self._overtake(event)
        self.wall_s = event.wall_s
        self.lives.take(event)
        self.services.take(event)
        if kind == "cycle":
            for life in self.lives.waiting.values():
                if life.placed_s >= self.began_s.get(event.by, inf):  # the clock may have been set before it was noted
                    life.placed_wall_s = min(life.placed_wall_s, event.wall_s)
            self.began_s[event.by], self.began_wall_s[event.by] = event.at_s, event.wall_s
            if event.data["ok"]:
                is_alone = len(self.services.schedulers()) <= 1
                self.lives.cycle_ended(event.by, event.at_s, is_alone=is_alone)
        elif kind == "daemon" and event.data["what"] == "start":
            name = event.data["name"]
            self.began_s[name], self.began_wall_s[name] = event.at_s, event.wall_s
            self.had_two |= len(self.services.schedulers()) > 1
        elif kind == "refused":
            self.refused_s[event.job] = event.at_s

    def _overlook(self, event: Event) -> None:
        """An owner's hold that came between our look at the job and our own hold leaves no trace."""
        life = self.lives.of[event.job]
        if life.owner_held_s is not None and self.was_checked_before(life.owner_held_s, event):
            life.owner_held_s = None

    def _overtake(self, event: Event) -> None:
        """What people changed between our look at the job and our change of it may be lost."""
        life = self.lives.of[event.job]
        if event.kind == "release" and not event.data.get("extra"):
            return  # it changes nothing of theirs
        is_late = event.kind not in ("place", "release") and life.people_s >= self.looked_s(life, event)
        if is_late or self.was_checked_before(life.people_s, event):
            life.overtaken = True

    def looked_s(self, life: Life, event: Event) -> float:
        """When the daemon looked at the job that it changes; before it splits tasks off, it looks once more."""
        looked_s = self.lives.looked_s.get(event.by, 0.0)
        if life.split_s != event.at_s or life.array is None:
            return looked_s
        return max(looked_s, self.lives.looked_at_s.get((event.by, life.array), 0.0))

    def was_checked_before(self, since_s: float, event: Event) -> bool:
        """Whether the daemon's last look at this job, before it changed it, came before that moment.

        Then it could not know. A change without such a look in the same cycle has no excuse.
        """
        lives, by = self.lives, event.by
        looked_s = max(lives.looked_at_s.get((by, event.job), -inf), lives.checked_s.get(by, -inf))
        return lives.looked_s.get(by, 0.0) <= looked_s <= since_s

    def is_placing(self, by: str) -> bool:
        """Whether the present cycle of this scheduler holds and places jobs: it reads the kill switch as it begins."""
        return self.services.places(by, self.began_s.get(by, 0.0))

    def has_seen(self, life: Life, looked_s: float) -> bool:
        """Whether the look of a cycle has shown all that has happened to the job, and nobody refused a change since."""
        last_s = max(life.ours_s, life.touched_s, self.refused_s.get(life.id, 0.0))
        return last_s < looked_s and self.is_known(life)

    def is_known(self, life: Life) -> bool:
        """Whether anybody can tell that the job is ours: by its mark, or by a record."""
        return life.marked or life.id in self.lives.records

    def is_hold_off_record(self, life: Life) -> bool:
        """Whether only what is left of our placement says that the job's owner holds it, and no whole cycle saw it.

        It has no mark. They may have cleared our nodes, too: then our nice value says so.
        """
        is_owners = life.hold == "owner" and life.owner_held_s is not None and not life.has_mark
        is_cleared = life.hold == "ours" and life.unclear and life.is_cleared and life.boosted and not life.has_mark
        return (is_owners and (life.owner_held_s or 0.0) > self.lives.seen_s) or (
            is_cleared and life.people_s > self.lives.seen_s
        )

    def is_of_claimed_array(self, life: Life) -> bool:
        """Whether people split the task off an array of theirs, without a mark, and then wrote one into the array."""
        array = None if life.array in (None, life.id) else self.lives.of.get(life.array or 0)
        is_claimed = array is not None and array.wishes["verdict"] == "pass" and array.extra_s > life.split_s
        return is_claimed and not life.has_mark and life.array in self.lives.records

    def is_task_off_record(self, life: Life) -> bool:
        """Whether the store has lost that a task without a mark was released: it looks like one that we have split off.

        Its array, which waits with our mark, is on record again.
        """
        is_of_ours = life.array not in (None, life.id) and life.wishes["verdict"] == "held"
        return is_of_ours and life.forgotten and not life.has_mark and life.array in self.lives.records

    def has_failed_dependency(self, life: Life) -> bool:
        """Whether a job that it waits for has failed: Slurm then shows every hold of it as an administrator's."""
        kind, ids = life.wishes["dependency"] or ("", ())
        others = (other for other in self.lives.of.values() if other.id in ids or other.array in ids)
        return kind == "afterok" and any(other.has_ended and not other.has_succeeded for other in others)
