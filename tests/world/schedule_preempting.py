"""Schedules of a site on which jobs of a higher tier suspend ours, with restarts of these or without.

The partition `urgent` is not managed; its jobs come when jobs of `main` run. What people and faults do is aimed at the
time between a suspension, a restart and the next start: they follow these events, or meet the calls of a restart.
"""

from collections.abc import Callable
from typing import Any

from world.schedule import FAULTS, OF_THE_JOB, OWNER, RPCS, USERS, WHEN, Drawing, Schedule, Step

#: How many schedules have no restarts: then a suspended job stays as it is.
WITHOUT = 0.25
#: The calls around a restart.
CALLS = ("requeue", "requeue", "requeue", "load", "remember", "remember", "jobs", "regate", "place")
#: What keeps a job from running soon, or lets it run for a short time only.
_SELDOM_RUN = frozenset(
    ("array", "array_limit", "held", "begin_in_s", "required", "gres", "is_alone", "after", "deadline_in_s")
)
#: The events of a job between its suspension and the start of its next run.
EVENTS = ("suspend", "suspend", "suspend", "requeue", "requeue", "waits", "resume")


def preempting(seed: int) -> Schedule:
    """The schedule of this seed with preemption, with at most one fault or a pair that shares a cause."""
    return _Preempting(seed).schedule()


class _Preempting(Drawing):
    """Draws one such schedule."""

    jobs, happenings = (2, 5), (1, 6)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.story_s = self.random.triangular(9.0, 22.0, 12.0)

    def schedule(self, *, has_faults: bool = True, is_double: bool = False) -> Schedule:
        self.draw_site(is_spread=False)
        for label in range(self.random.randint(*self.jobs)):
            self.draw_submission(label)
        for _ in range(self.random.randint(3, 6)):
            self.draw_urgent()
        for _ in range(self.random.randint(*self.happenings)):
            self.random.choices(_PEOPLE, _WEIGHTS)[0](self)
        if self.chance(0.4):
            self.edit()
        ending = self.one("off", "stopped", "observe", "advise") if self.chance(0.1) else "healthy"
        if has_faults and self.chance(0.05):
            ending = self.one("dead", "gone")
        elif has_faults and self.chance(0.7):
            weights = [weight + _MORE.get(fault.__name__, 0) for fault, weight in FAULTS]
            (fault, _) = self.random.choices(FAULTS, weights)[0]
            getattr(self, fault.__name__)()
        schedule = self.finished("max-jobs", ending, is_double=is_double)
        if not self.chance(WITHOUT):
            schedule.restarts = {
                "opt_in": self.one("restartable", "restartable", "requeue"),
                "least_suspended_s": self.one(0.0, 0.0, 1.0, 3.0),
                "max_moves": self.one(1, 1, 2),
                "lost_core_hours_per_user_day": self.one(0.004, 0.02, 0.05, 500.0, 500.0),
            }
        return schedule

    def draw_site(self, *, is_spread: bool) -> None:
        super().draw_site(is_spread=is_spread)
        names = tuple(self.nodes)
        self.partitions = {
            "main": (names, 1),
            "urgent": (names if self.chance(0.6) else names[: self.random.randint(1, len(names))], 10),
        }
        self.managed = ("main",)
        self.slurm |= {"suspends_by_tier": True, "kill_wait_s": self.one(0.0, 0.0, 1.0, 3.0)}

    def draw_asked(self, label: int) -> dict[str, Any]:
        asked = super().draw_asked(label)
        asked["partition"] = "main"
        if self.chance(0.6):
            asked = {name: value for name, value in asked.items() if name not in _SELDOM_RUN}
        if "array" not in asked:
            asked["run_s"] = self.between(2.0, 18.0)
        if "memory_per_node_mb" not in asked and self.chance(0.9):  # both jobs' memory must fit
            asked["memory_per_cpu_mb"] = self.one(100, 300)
        if self.chance(0.85):
            asked["comment"] = "sns:restartable"
        asked["may_restart"] = self.chance(0.9)
        return asked

    def draw_urgent(self) -> None:
        """A job that suspends ours: it often comes when one of ours has started."""
        label, inside = len(self.owners), self.partitions["urgent"][0]
        cores = min(self.nodes[name][0] for name in inside)
        number = self.random.randint(1, len(inside))
        asked: dict[str, Any] = {
            "tasks": self.one(1, cores * number, cores * len(inside), cores * len(inside)),
            "run_s": self.between(0.8, 12.0),
            "walltime_s": 600,
            "partition": "urgent",
            "memory_per_cpu_mb": 100,
        }
        user = self.random.choice(list(USERS))
        asked["account"] = USERS[user]
        step = self.add("submit", self.between(3.0, self.story_s), label=label, by=user, asked=asked)
        if self.chance(0.55):
            job = self.one(None, *self.owners)
            step.at_s = self.between(0.0, 3.0)
            step.data["after"] = {"event": "start", "job": job, "in_s": self.between(0.0, 4.0)}
        elif self.chance(0.5):  # once the restarted job runs again
            step.at_s = self.between(0.0, 3.0)
            step.data["after"] = {"event": "requeue", "job": None, "in_s": self.between(3.0, 12.0)}
        self.owners[label] = user

    # --- what people do meanwhile

    def meanwhile(self, what: str, *, by: str = "", **data: Any) -> Step:
        """A step that follows an event of some job between two runs, or meets a call about it."""
        step = self.add(what, job=self.label(), **data)
        if by:
            step.data["by"] = by
        if self.chance(0.55):
            event = self.random.choice(EVENTS)
            in_s = self.one(0.0, 0.001, self.between(0.0, 0.6), self.between(0.0, 3.0))
            step.data["after"] = {"event": event, "job": None, "in_s": in_s}
            step.at_s = self.between(0.0, 4.0)
        else:
            kind = self.random.choice(CALLS[:4])
            nth, when = self.one(1, 1, 2, 3), self.one(*WHEN)
            step.data["trap"] = {"daemon": "scheduler", "kinds": [kind], "nth": nth, "when": when, "meets": True}
            step.at_s = self.between(2.5, 6.0)
        return step

    def cancels(self) -> None:
        self.meanwhile("cancel", by=OWNER)

    def holds(self) -> None:
        by = self.one(OWNER, OWNER, "admin")
        step = self.meanwhile("command", by=by, do=self.one("hold", "hold", "release"))
        if self.chance(0.5):
            back = self.add("command", by=by, job=step.data["job"], do="release")
            back.data["after"] = {"event": "hold", "job": None, "in_s": self.between(0.0, 5.0)}

    def requeues(self) -> None:
        self.meanwhile("command", by=self.one(OWNER, "admin"), do=self.one("requeue", "requeue", "requeuehold"))

    def suspends(self) -> None:
        """An administrator suspends what preemption has suspended, or may suspend; and perhaps resumes it."""
        step = self.meanwhile("command", by="admin", do="suspend")
        if self.chance(0.7):
            what = self.one("resume", "resume", "release")
            back = self.add("command", by="admin", job=step.data["job"], do=what)
            back.data["after"] = {"event": "suspend", "job": None, "in_s": self.between(0.5, 6.0)}

    def opts(self) -> None:
        """The owner allows or forbids a restart, or an administrator does."""
        self.meanwhile("edit", by=self.one(OWNER, OWNER, "admin"), fields={"Requeue": self.one("0", "0", "1")})

    def edits(self) -> None:
        self.meanwhile("edit", by=OWNER, fields=self.draw_fields())

    def node_dies(self) -> None:
        """The node of a suspended job goes down, or is drained."""
        away, back = self.one(("drain", "undrain"), ("down", "up"), ("down", "up"))
        step = self.add("node", self.between(0.0, 4.0), name=OF_THE_JOB, state=away)
        event = self.random.choice(EVENTS[:5])
        step.data["after"] = {"event": event, "job": None, "in_s": self.one(0.0, self.between(0.0, 3.0))}
        for each in self.nodes:  # whichever it was
            self.later(step, 6.0, 14.0, "node", name=each, state=back)

    def urgent_ends(self) -> None:
        """The job that has the cores ends, at the very moment of a restart or soon."""
        urgent = [step.data["label"] for step in self.steps if step.what == "submit" and _is_urgent(step)]
        label = self.random.choice(urgent)
        step = self.add("cancel", self.moment(), by=self.owners[label], job=label)
        step.data["trap"] = {
            "daemon": "scheduler",
            "kinds": [self.random.choice(CALLS[:5])],
            "nth": self.one(1, 1, 2),
            "when": self.one(*WHEN),
        }

    def switches(self) -> None:
        step = self.add("switch", on=True)
        self.aimed(step)
        if self.chance(0.8):
            self.later(step, 0.5, 8.0, "switch", on=False)

    def aimed(self, step: Step) -> Step:
        """Let the step happen at a call of a restart."""
        kinds, when = [self.random.choice(CALLS)], self.one(*WHEN)
        step.data["trap"] = {"daemon": "scheduler", "kinds": kinds, "nth": self.one(1, 1, 2, 3), "when": when}
        step.at_s = self.between(2.5, 7.0)
        return step

    # --- what fails: mostly at a restart

    def trap(self, step: Step, kinds: Any = RPCS, when: Any = WHEN, often: float = 0.5) -> Step:
        if step.what in _AIMED and self.chance(0.7):
            return self.aimed(step)
        return super().trap(step, kinds, when, often)

    def lost(self) -> None:
        self.lost_at_requeue(super().lost)

    def killed_and_lost(self) -> None:
        self.lost_at_requeue(super().killed_and_lost)

    def lost_at_requeue(self, draw: Callable[[], None]) -> None:
        """An answer is lost, mostly that to a requeue; the steps of the fault meet the same call."""
        at, kind, early_s = len(self.steps), self.one("requeue", "requeue", "load"), self.between(2.5, 6.0)
        draw()
        if self.chance(0.7):
            for step in self.steps[at:]:
                if "trap" in step.data:
                    step.data["trap"] |= {"daemon": "scheduler", "kinds": [kind], "nth": 1}
                    step.at_s = min(step.at_s, early_s)


def _is_urgent(step: Step) -> bool:
    return bool(step.data["asked"]["partition"] == "urgent")


#: The faults that come more often here, and those that mostly happen at a restart.
_MORE = {"crash": 5, "lost": 7, "killed_and_lost": 3}
_AIMED = frozenset({"crash", "freeze", "stop", "restart", "slurmctld", "munge", "store", "disk", "clock"})
_KINDS: tuple[tuple[Callable[[_Preempting], None], int], ...] = (
    (_Preempting.cancels, 2),
    (_Preempting.holds, 3),
    (_Preempting.requeues, 2),
    (_Preempting.suspends, 3),
    (_Preempting.opts, 2),
    (_Preempting.edits, 2),
    (_Preempting.node_dies, 2),
    (_Preempting.urgent_ends, 3),
    (_Preempting.switches, 2),
    (_Preempting.stop, 1),
    (_Preempting.mode, 1),
)
_PEOPLE, _WEIGHTS = zip(*_KINDS, strict=True)
