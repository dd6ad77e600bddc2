"""A schedule: a site, and what happens there when. It is drawn from a seed, and can be kept as JSON.

Besides the steps of a schedule only latencies and the moments of slurmctld's passes are random; they come from the same
seed. Each schedule draws which kinds of steps it has at all: with all kinds in each, they would hide each other.

A step happens at its moment. With a `trap` it happens at the n-th call of a daemon's ports from then on, and if it
`meets` the call, to the job that the call is about; with `after`, so long after the next event of that kind in the life
of a job (None: of any job), and to the job or the node of the event.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from slurm_sns.model import Resources
from world.slurm import SlurmSite
from world.slurm_jobs import SMALL

USERS = {"alice": "physics", "bob": "physics", "carol": "chemistry"}
#: priority/basic is not drawn: there a boost stays on a held job (nice.stays_while_held), and a hold that comes between
#: our look and our change is undone by Slurm, which the promises do not allow for. Kept schedules and a test on the
#: cluster have it. It is a choice of three still, so that each seed stays the schedule that it was.
PRIORITY_TYPES = ("priority/multifactor",) * 3
#: The earliest moment of a step other than a submission: the scheduler is up by then.
FIRST_S = 2.5
#: A step that follows another one, as a repair does, comes so long after the story's end at the latest.
LATER_S = 3.0
#: How a schedule goes on after its repairs. Only "healthy" has a scheduler that places jobs.
ENDINGS = ("healthy", "dead", "off", "stopped", "observe", "advise")
#: How many of the schedules in which slurmctld stops let it be killed, which loses what it has not saved; and how often
#: it saves its state (SAVE_MAX_WAIT in state_save.c).
KILLED = 0.4
SAVED_EVERY_S = 5.0
#: How many of those who requeue a job do so with requeuehold.
ALSO_HELD = 0.25
#: The longest quiet time: long enough for every pause of ours and of Slurm's.
QUIET_S = 120.0

#: The calls of a scheduler's ports that change something, and those around them.
RPCS = ("place", "load", "unpin", "uhold", "release", "nice", "split", "update", "jobs", "nodes", "save", "check")
#: Those that are about one job; and the calls of a watchdog.
OF_ONE_JOB = frozenset({"place", "load", "unpin", "uhold", "release", "nice", "update"})
WATCHDOGS = ("jobs", "load", "load", "unpin", "unpin", "release", "update")
#: The name of the node on which the job of an event is.
OF_THE_JOB = "*"
#: Who owns the job of an event; and the events that few jobs have.
OWNER = "owner"
SELDOM = ("unpin", "hold", "release", "requeue", "suspend")
WHEN = ("before", "in", "after")


@dataclass
class Step:
    """What happens (`what`) when; `data` are its details, plain values only."""

    at_s: float
    what: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Schedule:
    """A site and the steps; from `quiet_from_s` on all is repaired. `many` is how many placements are sent together."""

    seed: int
    nodes: dict[str, tuple[int, ...]]
    partitions: dict[str, tuple[tuple[str, ...], int]]
    managed: tuple[str, ...]
    slurm: dict[str, Any]
    policy: str
    many: int
    ending: str
    quiet_from_s: float
    steps: list[Step]
    #: What there is of agents on the nodes (schedule_agents); None: none.
    agents: dict[str, Any] | None = None

    def site(self) -> SlurmSite:
        """The cluster."""
        nodes = {name: Resources(*amounts) for name, amounts in self.nodes.items()}
        partitions = {name: (tuple(each), tier) for name, (each, tier) in self.partitions.items()}
        return SlurmSite(nodes, partitions, **self.slurm)

    def to_json(self) -> str:
        """The schedule as text: a step on each line."""
        fields = asdict(self)
        steps = ",\n".join(f"    {json.dumps(step)}" for step in fields.pop("steps"))
        head = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
        return f'{{\n{head},\n  "steps": [\n{steps}\n  ]\n}}\n'


def from_json(text: str) -> Schedule:
    """The schedule that `to_json` wrote."""
    fields = json.loads(text)
    fields["steps"] = [Step(**step) for step in fields["steps"]]
    fields["nodes"] = {name: tuple(amounts) for name, amounts in fields["nodes"].items()}
    fields["partitions"] = {name: (tuple(each), tier) for name, (each, tier) in fields["partitions"].items()}
    fields["managed"] = tuple(fields["managed"])
    return Schedule(**fields)


def load(path: Path) -> Schedule:
    """The schedule in the file."""
    return from_json(path.read_text(encoding="utf-8"))


def drawn(seed: int) -> Schedule:
    """The schedule of this seed."""
    from world.schedule_agents import with_agents

    return with_faults(with_agents(Drawing(seed).schedule()))


def with_faults(schedule: Schedule) -> Schedule:
    """The schedule with what is drawn apart, so that everything else stays as it was without it."""
    return _with_kills(_with_holds(schedule))


def _with_holds(schedule: Schedule) -> Schedule:
    """Let some of those who requeue a job hold it as well."""
    random = Random(f"requeuehold {schedule.seed}")
    for step in schedule.steps:
        if step.data.get("do") == "requeue" and random.random() < ALSO_HELD:
            step.data["do"] = "requeuehold"
    return schedule


def _with_kills(schedule: Schedule) -> Schedule:
    """Let slurmctld be killed in some of the schedules in which it stops; then it has lost its last seconds.

    With agents it is not: what a node does with a job that slurmctld has forgotten is not modelled there.
    """
    stops = [step for step in schedule.steps if step.what == "slurmctld" and step.data["state"] == "down"]
    if schedule.agents is None and Random(f"kill {schedule.seed}").random() < KILLED:
        for step in stops:
            step.data |= {"hangs": False, "is_killed": True}
    return schedule


def kills(schedule: Schedule) -> bool:
    """Whether slurmctld is killed in this schedule."""
    return any(step.data.get("is_killed") for step in schedule.steps)


class Drawing:
    """Draws one schedule."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.steps: list[Step] = []
        self.owners: dict[int, str] = {}
        self.arrays: dict[int, tuple[int, ...]] = {}
        self.story_s = self.random.triangular(6.0, 18.0, 8.0)

    # --- small parts

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def between(self, least: float, most: float) -> float:
        return round(self.random.uniform(least, most), 3)

    def moment(self) -> float:
        return self.between(FIRST_S, self.story_s)

    def add(self, what: str, at_s: float | None = None, **data: Any) -> Step:
        step = Step(self.moment() if at_s is None else round(at_s, 3), what, data)
        self.steps.append(step)
        return step

    def later(self, step: Step, least_s: float, most_s: float, what: str, **data: Any) -> None:
        """A step that follows another one."""
        self.add(what, min(step.at_s + self.between(least_s, most_s), self.story_s + LATER_S), **data)

    def trap(self, step: Step, kinds: Sequence[str] = RPCS, when: Sequence[str] = WHEN, often: float = 0.5) -> Step:
        """Perhaps let the step happen at a call of the scheduler's ports."""
        if self.chance(often):
            kind = self.random.choice(kinds)
            nth = self.one(1, 1, 1, 2, 3)
            step.data["trap"] = {"daemon": "scheduler", "kinds": [kind], "nth": nth, "when": self.random.choice(when)}
            if "job" in step.data and self.chance(0.5):
                self.meet(step)
        return step

    def meet(self, step: Step) -> None:
        """Let a person's step be about the very job that a daemon changes, or looks at, at that moment."""
        trap = step.data["trap"]
        if self.chance(0.2):
            trap |= {"daemon": "watchdog", "kinds": [self.random.choice(WATCHDOGS)], "nth": 1}
        if trap["kinds"][0] in OF_ONE_JOB:
            trap["meets"] = True
            step.data.pop("task", None)
            if step.data.get("by") in USERS:
                step.data["by"] = OWNER

    def follow(self, step: Step, *events: str, often: float = 0.6) -> Step:
        """Perhaps let the step follow an event of its job, else perhaps a call of the scheduler's ports."""
        if not self.chance(often):
            return self.trap(step)
        event, job = self.random.choice(events), step.data.get("job", self.label())
        if event in SELDOM:  # of any job, or it would not come
            job = None
            if step.data.get("by") in USERS:
                step.data["by"] = OWNER
        in_s = self.one(0.0, 0.001, self.between(0.0, 1.2), self.between(0.0, 3.0))
        step.data["after"] = {"event": event, "job": job, "in_s": in_s}
        step.data.pop("task", None)
        step.at_s = self.between(0.0, min(step.at_s, 4.0))
        return step

    def label(self) -> int | None:
        return self.random.choice(list(self.owners)) if self.owners else None

    # --- the schedule

    def schedule(self) -> Schedule:
        policy = "combined" if self.chance(0.12) else "max-jobs"
        self.draw_site(is_spread=policy == "combined")
        for label in range(self.random.randint(3, 12)):
            self.draw_submission(label)
        groups = [group for group in GROUPS if self.chance(group[1])]
        wanted = self.random.randint(3, 16)
        for _ in range(wanted if groups else 0):
            if len(self.steps) < 40:
                self.random.choices(groups, [weight for _, _, weight in groups])[0][0](self)
        return self.finished(policy)

    def finished(self, policy: str) -> Schedule:
        """The schedule of the steps drawn so far, with an ending."""
        ending = "healthy"
        if self.chance(0.3):
            ending = self.one("dead", "dead", "off", "off", "stopped", "stopped", "observe", "advise")
        many = self.one(64, 64, 2, 3)
        if self.chance(0.2):
            self.use_qos()
        quiet_from_s = round(max([self.story_s, *(step.at_s for step in self.steps)]) + 0.5, 3)
        self.steps.sort(key=lambda step: step.at_s)
        return Schedule(
            seed=self.seed,
            nodes=self.nodes,
            partitions=self.partitions,
            managed=self.managed,
            slurm=self.slurm,
            policy=policy,
            many=many,
            ending=ending,
            quiet_from_s=quiet_from_s,
            steps=self.steps,
        )

    def draw_site(self, *, is_spread: bool) -> None:
        number = self.random.randint(2, 4)
        gres = (20, 118) if is_spread or self.chance(0.1) else (0, 0)
        shape = (self.one(4, 8), self.one(8000, 16000))
        self.nodes: dict[str, tuple[int, ...]] = {}
        for name in (f"c{at + 1}" for at in range(number)):
            if self.chance(0.2):
                shape = (self.one(4, 8), self.one(8000, 16000))
            self.nodes[name] = (*shape, *gres)
        names = tuple(self.nodes)
        self.partitions: dict[str, tuple[tuple[str, ...], int]] = {"main": (names, 1)}
        managed = ["main"]
        if self.chance(0.3):
            self.partitions["urgent"] = (names[: self.random.randint(1, number)], 2)
            managed.append("urgent")
        if self.chance(0.3):
            self.partitions["other"] = (names[self.random.randint(0, number - 1) :], self.one(1, 1, 2))
        self.managed = tuple(managed)
        self.slurm = {
            "min_job_age_s": self.one(3.0, 8.0, 20.0),
            "priority_type": self.one(*PRIORITY_TYPES),
            "bf_interval_s": self.one(4.0, 10.0, 30.0),
            "requeue_delay_s": self.one(0.0, 2.0, 4.0),
        }

    def draw_submission(self, label: int) -> None:
        user = self.random.choice(list(USERS))
        at_s = self.between(0.0, 3.0) if self.chance(0.25) else self.between(1.8, 0.8 * self.story_s)
        asked = self.draw_asked(label)
        asked["account"] = USERS[user]
        self.owners[label] = user
        if asked.get("array"):
            self.arrays[label] = tuple(asked["array"])
        self.trap(self.add("submit", at_s, label=label, by=user, asked=asked), often=0.1)

    def draw_asked(self, label: int) -> dict[str, Any]:
        cores = max(each[0] for each in self.nodes.values())
        memory_mb = min(each[1] for each in self.nodes.values())
        asked: dict[str, Any] = {"tasks": self.one(1, 1, 2, 3, 4, cores, cores + 2), "run_s": self.between(0.5, 8.0)}
        asked["walltime_s"] = self.one(60, 120, 600, 3600)
        asked["partition"] = "main" if self.chance(0.75) else self.random.choice(list(self.partitions))
        if self.chance(0.15):
            asked["array"] = list(range(self.random.randint(2, 9)))
            asked.update(tasks=self.one(1, 1, 2), run_s=self.between(0.5, 3.0))
            if self.chance(0.5):
                asked["array_limit"] = self.one(1, 2, 3)
        self.draw_geometry(asked, cores, memory_mb)
        for chance, more in (
            (0.1, lambda: {"nice": self.one(1, 50, 1000)}),
            (0.07, lambda: {"begin_in_s": self.between(1.0, 12.0)}),
            (0.08, lambda: {"held": True}),
            (0.3, lambda: {"may_restart": False}),
            (0.12, lambda: {"fails": True}),
            (0.12, lambda: {"comment": self.one(*_COMMENTS)}),
            (0.05, lambda: {"extra": self.one("mine", "sns:1", "sns:1 advised", "sns")}),
            (0.06, lambda: {"required": [self.random.choice(self.partitions[asked["partition"]][0])]}),
            (0.03, lambda: {"gres": ["gpu"]}),
            (0.03, lambda: {"is_alone": True}),
            (0.12 if label else 0.0, lambda: {"after": [self.one("afterok", "afterany"), self.label()]}),
        ):
            if self.chance(chance):
                asked.update(more())
        return asked

    def draw_geometry(self, asked: dict[str, Any], cores: int, memory_mb: int) -> None:
        """Nodes, tasks on each node and memory; mostly left open."""
        most = len(self.partitions[asked["partition"]][0])
        if self.chance(0.15) and asked["tasks"] >= 2 and most >= 2:
            asked |= {"nodes_min": 2, "nodes_max": 2}
        elif self.chance(0.1):
            asked |= {"nodes_min": 1, "nodes_max": 1, "tasks": min(asked["tasks"], cores)}
        elif self.chance(0.05) and asked["tasks"] >= 2:
            asked["tasks_per_node"] = 2
        if self.chance(0.1):
            asked["cpus_per_task"] = 2
            asked["tasks"] = min(asked["tasks"], cores // 2)
            if asked.get("nodes_min", 1) > asked["tasks"]:
                asked |= {"nodes_min": 1, "nodes_max": 1}
        if self.chance(0.2):
            asked["memory_per_node_mb"] = self.one(500, 2000, memory_mb)
        elif self.chance(0.2):
            asked["memory_per_cpu_mb"] = self.one(100, 500, 2000)

    # --- what users do

    def edit(self) -> None:
        label = self.label()
        if label is None:
            return
        step = self.add("edit", by=self.by(label), job=label, fields=self.draw_fields())
        self.of_task(step, label)
        self.follow(step, "place", "place", "place", "start", "submit", "split", "unpin", "hold", "release")

    def draw_fields(self) -> dict[str, str]:
        nodes = list(self.nodes)
        choices: dict[str, Callable[[], str]] = {
            "Extra": lambda: self.one(*_EXTRAS),
            "Nice": lambda: str(self.one(0, 0, 50, 100, 10000, -5, -60000, -2000000000)),
            "ReqNodeList": lambda: self.one("", "", *nodes, ",".join(nodes[:2])),
            "Partition": lambda: self.random.choice(list(self.partitions)),
            "MinMemoryCPU": lambda: self.one("100", "500", "2000", "90000"),
            "MinMemoryNode": lambda: self.one("100", "2000", "90000"),
            "TresPerNode": lambda: self.one("", "gres/gpu:1", "gres/llc:3", "gres/llc:3,gres/membw:10"),
            "TimeLimit": lambda: "1",
            "NumTasks": lambda: self.one("1", "2", "4"),
            "StartTime": lambda: self.one("+2", "+6", "+12"),
            "ExcNodeList": lambda: self.one("", *nodes),
            "ArrayTaskThrottle": lambda: self.one("0", "1", "2"),
            "Comment": lambda: "sns:off",
        }
        names = self.random.choices(list(choices), _FIELD_WEIGHTS, k=self.one(1, 1, 1, 2, 3))
        return {name: choices[name]() for name in names}

    def hold(self) -> None:
        self.hold_by(admin=False)

    def hold_by(self, *, admin: bool) -> None:
        label = self.label()
        if label is None:
            return
        by = "admin" if admin else self.by(label)
        what = self.one("hold", "hold", "release", "uhold") if not admin else self.one("hold", "hold", "release")
        step = self.add("command", by=by, job=label, do=what)
        self.of_task(step, label)
        self.follow(step, "place", "place", "place", "start", "submit", "unpin", "hold", "release", "requeue")
        if what != "release" and self.chance(0.6):
            back = self.add("command", step.at_s + self.between(0.0, 6.0), by=by, job=label, do="release")
            self.follow(back, "hold", often=0.5 if "after" in step.data else 0.1)

    def cancel(self) -> None:
        label = self.label()
        if label is None:
            return
        step = self.of_task(self.add("cancel", by=self.by(label), job=label), label)
        self.follow(step, "place", "start", "unpin", "hold", "submit")

    def flood(self) -> None:
        """One user submits many small jobs, or arrays."""
        user, at_s = self.random.choice(list(USERS)), self.moment()
        for _ in range(self.random.randint(2, 6)):
            label = len(self.owners)
            asked: dict[str, Any] = {"tasks": 1, "run_s": self.between(0.3, 2.0), "walltime_s": 60, "partition": "main"}
            if self.chance(0.3):
                asked["array"] = list(range(self.random.randint(2, 6)))
                self.arrays[label] = tuple(asked["array"])
            self.owners[label] = user
            asked["account"] = USERS[user]
            self.add("submit", at_s + self.between(0.0, 0.2), label=label, by=user, asked=asked)

    def by(self, label: int) -> str:
        """Mostly the owner; sometimes another user, who is refused, or an administrator."""
        draw = self.random.random()
        if draw < 0.06:
            return self.random.choice(list(USERS))
        return "admin" if draw < 0.12 else self.owners[label]

    def of_task(self, step: Step, label: int) -> Step:
        if label in self.arrays and self.chance(0.6):
            step.data["task"] = self.random.choice(self.arrays[label])
        return step

    # --- what administrators do

    def node(self) -> None:
        name = self.random.choice(list(self.nodes))
        away, back = self.one(("drain", "undrain"), ("down", "up"))
        step = self.follow(self.add("node", name=name, state=away), "place", "place", "start")
        if "after" in step.data:
            step.data["name"] = OF_THE_JOB
            for each in self.nodes:  # whichever it was
                self.later(step, 4.0, 14.0, "node", name=each, state=back)
        elif self.chance(0.7):
            self.later(step, 0.5, 10.0, "node", name=name, state=back)

    def partition(self) -> None:
        name = self.random.choice(list(self.partitions))
        fields = self.one(
            {"state": "DOWN"}, {"state": "DRAIN"}, {"max_time_s": 60}, {"max_nodes": 1}, {"state": "INACTIVE"}
        )
        step = self.follow(self.add("partition", name=name, fields=fields), "place", "submit", often=0.3)
        if self.chance(0.6):
            back = {"state": "UP"} if "state" in fields else dict.fromkeys(fields)
            self.later(step, 1.0, 8.0, "partition", name=name, fields=back)

    def limit(self) -> None:
        if self.chance(0.6):
            account = self.one("physics", "chemistry")
            step = self.add("limit", account=account, cores=self.one(1, 2, 4, 6))
            back: dict[str, Any] = {"account": account, "cores": None}
        else:
            user = self.random.choice(list(USERS))
            step, back = self.add("limit", user=user, jobs=self.one(1, 2)), {"user": user, "jobs": None}
        self.follow(step, "place", "submit", often=0.4)
        if self.chance(0.5):
            self.later(step, 2.0, 12.0, "limit", **back)

    def use_qos(self) -> None:
        """Some jobs have the small QOS, which may be limited; drawn last, so that nothing else depends on it."""
        asked = [step.data["asked"] for step in self.steps if step.what == "submit"]
        for each in self.random.sample(asked, self.random.randint(1, len(asked))):
            each["qos"] = SMALL
        for _ in range(self.random.randint(0, 2)):
            step = self.add("limit", qos=SMALL, cores=self.one(0, 1, 2, 4))
            self.follow(step, "place", "submit", often=0.4)
            if self.chance(0.5):
                self.later(step, 2.0, 12.0, "limit", qos=SMALL, cores=None)
        for _ in range(self.random.randint(0, 2)):
            label = self.random.choice(list(self.owners))
            edit = self.add("edit", by=self.by(label), job=label, fields={"QOS": self.one(SMALL, "normal")})
            self.of_task(edit, label)
            self.follow(edit, "place", "place", "start", "submit", "unpin", "hold", "release")

    def reserve(self) -> None:
        nodes = self.random.sample(list(self.nodes), self.random.randint(1, len(self.nodes)))
        name = f"r{len(self.steps)}"
        step = self.trap(
            self.add("reserve", name=name, nodes=sorted(nodes), in_s=self.one(0, 5, 30), for_s=self.one(5, 10, 600))
        )
        if self.chance(0.5):
            self.later(step, 1.0, 8.0, "unreserve", name=name)

    def admin_hold(self) -> None:
        self.hold_by(admin=True)

    def requeue(self) -> None:
        label = self.label()
        if label is not None:
            by = self.one("admin", "admin", self.owners[label])
            step = self.of_task(self.add("command", by=by, job=label, do="requeue"), label)
            self.follow(step, "start", "start", "start", "end", often=0.85)

    def suspend(self) -> None:
        label = self.label()
        if label is not None:
            step = self.follow(self.add("command", by="admin", job=label, do="suspend"), "start", often=0.85)
            if self.chance(0.7):
                back = self.add("command", step.at_s + self.between(0.5, 6.0), by="admin", job=label, do="resume")
                self.follow(back, "suspend", often=0.8)

    # --- what fails

    def crash(self) -> None:
        stays_s = self.one(0.0, 0.0, 0.0, self.between(4.0, 20.0))
        step = self.add("crash", daemon="scheduler", stays_dead=stays_s > 0)
        self.trap(step, (*RPCS, "beat", "decisions", "switch", "records", "open", ""), often=0.85)
        if stays_s:
            self.add("start", min(step.at_s + stays_s, self.story_s), daemon="scheduler")

    def freeze(self) -> None:
        step = self.add("freeze", daemon="scheduler", seconds=self.one(self.between(0.5, 5.0), self.between(8.0, 20.0)))
        self.trap(step, (*RPCS, "beat", ""), often=0.7)

    def race(self) -> None:
        """A scheduler goes on with what it saw, at the very moment at which the watchdog takes it for dead."""
        step = self.trap(self.add("freeze", daemon="scheduler", seconds=self.between(3.0, 9.0)), often=1.0)
        kind = self.random.choice(WATCHDOGS)
        step.data["until"] = {
            "daemon": "watchdog",
            "kinds": [kind],
            "nth": self.one(1, 1, 2, 3),
            "when": self.one(*WHEN),
        }

    def stop(self) -> None:
        what = self.one("stop", "restart", "restart")
        step = self.trap(self.add(what, daemon="scheduler"), (*RPCS, "beat"), often=0.6)
        if what == "stop":
            self.later(step, 1.0, 10.0, "start", daemon="scheduler")

    def watchdog(self) -> None:
        step = self.add(self.one("crash", "freeze", "restart"), daemon="watchdog")
        if step.what == "freeze":
            step.data["seconds"] = self.between(1.0, 15.0)
        if self.chance(0.6):
            kind = self.one("jobs", "load", "update", "unpin", "release", "last-beat", "records")
            step.data["trap"] = {"daemon": "watchdog", "kinds": [kind], "nth": self.one(1, 2), "when": self.one(*WHEN)}

    def slurmctld(self) -> None:
        state = self.one("down", "down", "slow")
        step = self.trap(self.add("slurmctld", state=state, hangs=self.chance(0.3)), often=0.6)
        self.later(step, 0.5, 12.0, "slurmctld", state="up", hangs=False)

    def munge(self) -> None:
        step = self.trap(self.add("munge", state="down"), often=0.5)
        self.later(step, 0.5, 12.0, "munge", state="up")

    def slurmdbd(self) -> None:
        step = self.add("slurmdbd", 0.0 if self.chance(0.4) else None, state="down")
        self.later(step, 1.0, 12.0, "slurmdbd", state="up")

    def store(self) -> None:
        state = self.one("locked", "full", "full", "gone")
        step = self.trap(self.add("store", state=state), ("save", "decisions", "records", "jobs", "place"), often=0.6)
        if state == "gone":
            self.later(step, 0.5, 6.0, self.one("restart", "crash"), daemon="scheduler")
        else:
            self.later(step, 0.5, 10.0, "store", state="up")

    def disk(self) -> None:
        step = self.trap(self.add("disk", state="full"), ("beat", "save", "jobs", "place", "stop"), often=0.4)
        self.later(step, 0.5, 14.0, "disk", state="up")

    def beat(self) -> None:
        self.trap(self.add("beat", text=self.one(None, "", "nan\n", "inf\n", "x\n", "0\n", "99999999999999999999\n")))

    def clock(self) -> None:
        if self.chance(0.2):
            self.add("drift", per_s=self.one(-0.2, 0.2, 0.5), seconds=self.between(2.0, 10.0))
        elif self.chance(0.4):  # in a pause, or before a start
            step = self.add("clock", step_s=self.one(-3600.0, -3600.0, -60.0, 60.0, 3600.0))
            self.follow(step, "unpin", "place", often=1.0)
        else:
            self.trap(self.add("clock", step_s=self.one(-3600.0, -60.0, -7.0, -1.0, 1.0, 7.0, 15.0, 60.0, 3600.0)))

    def switch(self) -> None:
        step = self.trap(self.add("switch", on=True), (*RPCS, "switch"), often=0.4)
        if self.chance(0.8):
            self.later(step, 0.5, 8.0, "switch", on=False)

    def second(self) -> None:
        step = self.add("start", daemon="scheduler-2")
        self.later(step, 2.0, 8.0, self.one("crash", "stop", "restart"), daemon=self.one("scheduler", "scheduler-2"))

    def mode(self) -> None:
        step = self.add("mode", mode=self.one("observe", "advise"), restart=self.chance(0.8))
        if self.chance(0.7):
            self.later(step, 2.0, 8.0, "mode", mode="enforce", restart=True)

    def lost(self) -> None:
        """A reply that is lost after the call took effect, or an error of the store after it wrote."""
        kinds = ("place", "unpin", "uhold", "release", "nice", "split", "save", "update", "load", "jobs")
        step = self.add("lost")
        step.data["trap"] = {
            "daemon": self.one("scheduler", "scheduler", "scheduler", "watchdog"),
            "kinds": [self.random.choice(kinds)],
            "nth": self.one(1, 1, 2),
            "when": "lost",
        }


_COMMENTS = (
    "sns:exclusive",
    "sns:exclusive",
    "sns:off",
    "sns:alpha=0.9,program=mg",
    "sns:program=cg",
    "sns:bad",
    "mine",
)
_EXTRAS = ("", "mine", "sns:1", "sns:1 advised", "sns:1 nice=77", "sns:1 fixed", "sns:2", "sns:1 exclusive")
_FIELD_WEIGHTS = (4, 4, 4, 2, 2, 1, 2, 1, 1, 2, 1, 1, 1)

#: The kinds of steps: how likely a schedule has the kind at all, and how often it comes then.
GROUPS: tuple[tuple[Callable[[Drawing], None], float, int], ...] = (
    (Drawing.edit, 0.6, 4),
    (Drawing.hold, 0.5, 3),
    (Drawing.cancel, 0.4, 1),
    (Drawing.flood, 0.15, 1),
    (Drawing.node, 0.35, 2),
    (Drawing.partition, 0.25, 1),
    (Drawing.limit, 0.3, 1),
    (Drawing.reserve, 0.2, 1),
    (Drawing.admin_hold, 0.3, 2),
    (Drawing.requeue, 0.4, 2),
    (Drawing.suspend, 0.2, 1),
    (Drawing.crash, 0.4, 2),
    (Drawing.freeze, 0.25, 1),
    (Drawing.race, 0.12, 1),
    (Drawing.stop, 0.25, 1),
    (Drawing.watchdog, 0.25, 1),
    (Drawing.slurmctld, 0.25, 1),
    (Drawing.munge, 0.15, 1),
    (Drawing.slurmdbd, 0.15, 1),
    (Drawing.store, 0.25, 1),
    (Drawing.disk, 0.15, 1),
    (Drawing.beat, 0.15, 1),
    (Drawing.clock, 0.25, 1),
    (Drawing.switch, 0.2, 1),
    (Drawing.second, 0.12, 1),
    (Drawing.mode, 0.15, 1),
    (Drawing.lost, 0.35, 2),
)


def described(data: Mapping[str, Any]) -> str:
    """The details of a step in one line."""
    return " ".join(f"{name}={value}" for name, value in data.items())
