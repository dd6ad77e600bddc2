"""Agents in a schedule: some schedules have them, with steps of their own, drawn from a source of their own.

So the schedules without agents are what they were. `agents` of a schedule: how many CLOSIDs each node has, whether
programs are explored, and the fraction of the nodes that this may take.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from world.schedule import OWNER, USERS, Schedule, Step

#: One schedule in so many has agents.
SHARE = 13
#: What a schedule becomes while it is made smaller.
PLAIN: Mapping[str, Any] = {"closids": 16, "explores": False, "most_nodes": 1.0}
#: The accesses of an agent at which something may happen, and the calls of a scheduler that has agents.
ACCESSES = (
    *("write-tree", "make-group", "remove-group", "write-file", "rename-file", "unlink", "tasks", "stepds"),
    *("read-counters", "read-tree", ""),
)
CALLS = ("learn", "learn", "acknowledge", "reports", "show-active", "change", "place", "save")
#: Programs without a profile, and with one (agents.py).
PROGRAMS, PROFILED = ("new", "new", "other"), ("cached", "mixed", "streaming")
#: The labels of jobs that are added.
FIRST_LABEL = 100
#: Errors of the kernel: EBUSY, ENOSPC, EIO.
ERRNOS = (16, 28, 5)


def concerns_agents(step: Step) -> bool:
    """Whether the step needs agents."""
    trap, after = step.data.get("trap", {}), step.data.get("after", {})
    of_agents = str(trap.get("daemon", "")).startswith("c") or after.get("event") in (
        "prolog",
        "epilog",
        "group",
        "changing",
    )
    return step.what.startswith("agent-") or of_agents


def has_agents(seed: int) -> bool:
    """Whether the schedule of this seed has agents. Then all its faults are around them."""
    return Random(f"agents of {seed}").randrange(SHARE) == 0


def with_agents(schedule: Schedule) -> Schedule:
    """The schedule with agents."""
    return _Adding(schedule, Random(f"agents and {schedule.seed}")).schedule()


class _Adding:
    """Adds agents to one schedule."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        self._schedule, self._random = schedule, random
        self._explores = self._chance(0.4)
        self._steps: list[Step] = []

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _between(self, least: float, most: float) -> float:
        return round(self._random.uniform(least, most), 3)

    def schedule(self) -> Schedule:
        """The schedule with agents."""
        base, random = self._schedule, self._random
        base.nodes = {name: (*amounts[:2], 20, 118) for name, amounts in base.nodes.items()}
        base.policy = "combined"
        base.agents = {
            "closids": random.choice((16, 16, 5)),
            "explores": self._explores,
            "most_nodes": random.choice((1.0, 0.5)),
        }
        self._name_programs()
        wanted = random.choices(_KINDS, [weight for _, weight in _KINDS], k=random.randint(1, 5))
        # What fails of the scheduler's is one thing at most.
        ours = [make for make, _ in wanted if make in (_Adding.crash, _Adding.store, _Adding.half)]
        for make, _ in wanted:
            if make not in ours or make is ours[0]:
                make(self)
        base.steps = sorted([*base.steps, *self._steps], key=lambda step: step.at_s)
        return base

    def _name_programs(self) -> None:
        """Let most jobs say which program they run; where programs are explored, mostly one without a profile."""
        for step in self._schedule.steps:
            if step.what != "submit" or "comment" in step.data["asked"] or not self._chance(0.7):
                continue
            asked = step.data["asked"]
            is_new = self._explores and self._chance(0.8)
            asked["comment"] = f"sns:program={self._random.choice(PROGRAMS if is_new else PROFILED)}"
            if is_new and self._chance(0.7):
                for name in ("nodes_min", "nodes_max", "tasks_per_node", "array", "array_limit", "held", "begin_in_s"):
                    asked.pop(name, None)
                asked |= {"tasks": 4, "cpus_per_task": 1, "run_s": self._between(1.5, 4.0)}

    # --- small parts

    def _node(self) -> str:
        return self._random.choice(list(self._schedule.nodes))

    def _moment(self) -> float:
        return self._between(2.5, max(3.0, self._schedule.quiet_from_s - 3.0))

    def _add(self, what: str, at_s: float | None = None, **data: Any) -> Step:
        step = Step(self._moment() if at_s is None else round(at_s, 3), what, data)
        self._steps.append(step)
        return step

    def _later(self, step: Step, most_s: float, **data: Any) -> None:
        at_s = min(step.at_s + self._between(0.5, most_s), self._schedule.quiet_from_s - 0.3)
        self._add(step.what, at_s, **{**step.data, **data})

    def _at_access(self, step: Step, often: float = 0.7) -> Step:
        """Perhaps let the step happen at an access of an agent's."""
        if self._chance(often):
            step.data["trap"] = {
                "daemon": step.data.get("node") or self._node(),
                "kinds": [self._random.choice(ACCESSES)],
                "nth": self._random.choice((1, 1, 2, 3, 5)),
                "when": self._random.choice(("before", "after")),
            }
        return step

    def _after(self, step: Step, *events: str) -> Step:
        """Let the step follow an event of any job."""
        in_s = self._random.choice((0.0, 0.01, self._between(0.0, 0.5), self._between(0.0, 3.0)))
        step.data["after"] = {"event": self._random.choice(events), "job": None, "in_s": in_s}
        step.at_s = self._between(0.0, min(step.at_s, 6.0))
        return step

    # --- the steps

    def kill(self) -> None:
        state = self._random.choice(("kept", "kept", "kept", "lost", "damaged"))
        step = self._at_access(self._add("agent-kill", node=self._node(), state=state))
        if "trap" not in step.data:
            self._after(step, "prolog", "epilog", "start", "end")

    def restart(self) -> None:
        self._add("agent-restart", node=self._node())

    def freeze(self) -> None:
        self._add("agent-freeze", node=self._node(), seconds=self._between(0.5, 8.0))

    def reboot(self) -> None:
        self._at_access(self._add("agent-reboot", node=self._node(), seconds=self._between(1.0, 4.0)), 0.3)

    def disk(self) -> None:
        step = self._add("agent-disk", node=self._node(), full=True)
        self._later(step, 8.0, full=False)
        if self._chance(0.5):
            self._add("agent-kill", step.at_s + self._between(0.0, 5.0), node=step.data["node"], state="kept")

    def refuse(self) -> None:
        number = self._random.choice(ERRNOS)
        self._add("agent-refuse", node=self._node(), times=self._random.randint(1, 6), number=number)

    def half(self) -> None:
        """Slurm refuses a placement with cache ways in the middle."""
        self._add("refuse", at="gres")

    def mount(self) -> None:
        step = self._add("agent-mount", node=self._node(), on=False)
        self._later(step, 6.0, on=True)

    def cut(self) -> None:
        self._at_access(self._add("agent-cut", node=self._node()), 0.4)

    def away(self) -> None:
        step = self._add("agent-away", node=self._random.choice(("", self._node())), on=True)
        self._later(step, 12.0, on=False)

    def slow(self) -> None:
        step = self._add("agent-slow", node=self._node(), on=True)
        self._later(step, 10.0, on=False)

    def lost(self) -> None:
        kind, times = self._random.choice(("prolog", "epilog", "epilog")), self._random.randint(1, 3)
        self._add("agent-lost", self._between(0.5, 6.0), node=self._node(), kind=kind, times=times)

    def forge(self) -> None:
        how = self._random.choice(("signed", "copied", "changed", "old", "old"))
        self._after(
            self._add("agent-forge", how=how), *(("requeue",) if how == "old" else ("place", "start", "submit"))
        )

    def change(self) -> None:
        for _ in range(self._random.randint(1, 3)):
            self._after(self._add("agent-change", ways=self._random.choice((0, 0, 2, 4))), "start", "prolog", "place")

    def late_change(self) -> None:
        """A change reaches a node late: its job has been requeued."""
        for node in self._schedule.nodes:
            self._later(self._add("agent-slow", 0.5, node=node, on=True), 15.0, on=False)
        self._after(self._add("agent-change", ways=2), "prolog")
        requeue = self._after(self._add("command", by="admin", job=0, do="requeue"), "changing")
        requeue.data["after"]["in_s"] = self._between(0.0, 0.3)

    def failures(self) -> None:
        """A program fails whenever it runs."""
        users = sorted(USERS)
        for at in range(self._random.randint(4, 6)):
            by = self._random.choice(users)
            asked = {"tasks": 2, "run_s": self._between(0.3, 0.8), "walltime_s": 60, "partition": "main", "fails": True}
            asked |= {"account": USERS[by], "comment": "sns:program=failing"}
            self._add("submit", 2.0 + 0.4 * at, label=FIRST_LABEL + at, by=by, asked=asked)

    def cancel(self) -> None:
        """A job ends during its setup."""
        label = self._random.randrange(3)
        self._after(self._add("cancel", by=OWNER, job=label), "prolog", "start")

    def requeue(self) -> None:
        self._after(self._add("command", by="admin", job=0, do="requeue"), "prolog", "start", "group")

    def crash(self) -> None:
        """The scheduler is killed at a call that is about agents."""
        step = self._add("crash", daemon="scheduler", stays_dead=False)
        step.data["trap"] = {
            "daemon": "scheduler",
            "kinds": [self._random.choice(CALLS)],
            "nth": self._random.choice((1, 1, 2, 3)),
            "when": self._random.choice(("before", "in", "after")),
        }

    def store(self) -> None:
        """The store is full, or cannot be written, when something is learnt."""
        step = self._add("store", state=self._random.choice(("full", "full", "locked")))
        if self._chance(0.6):
            self._after(step, "spooled").data["after"]["in_s"] = 0.0
            self._after(self._add("store", state="up"), "end").data["after"]["in_s"] = 4.0
        else:
            self._later(step, 6.0, state="up")


_KINDS: tuple[tuple[Callable[[_Adding], None], int], ...] = (
    (_Adding.kill, 6),
    (_Adding.restart, 1),
    (_Adding.freeze, 2),
    (_Adding.reboot, 2),
    (_Adding.disk, 2),
    (_Adding.refuse, 2),
    (_Adding.half, 3),
    (_Adding.mount, 1),
    (_Adding.cut, 2),
    (_Adding.away, 3),
    (_Adding.slow, 2),
    (_Adding.lost, 4),
    (_Adding.forge, 4),
    (_Adding.change, 3),
    (_Adding.late_change, 1),
    (_Adding.failures, 2),
    (_Adding.cancel, 1),
    (_Adding.requeue, 2),
    (_Adding.crash, 4),
    (_Adding.store, 2),
)
