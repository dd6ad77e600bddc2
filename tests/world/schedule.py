"""A schedule: a site, and what happens there when. It is drawn from a seed, and can be kept as JSON.

Besides the steps of a schedule only latencies and the moments of slurmctld's passes are random; they come from the same
seed. Each schedule draws which kinds of steps it has at all: with all kinds in each, they would hide each other.

People do what they like in every schedule. Of faults `drawn` has at most one, or a pair that shares a cause: that is
the fault model, in which all promises hold (docs/develop/fault-model.md). `doubled` has several that have nothing to do
with each other; there only safety is promised.

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
from world.slurm import REFUSALS, SlurmSite
from world.slurm_jobs import SMALL

USERS = {"alice": "physics", "bob": "physics", "carol": "chemistry"}
PRIORITY_TYPES = ("priority/multifactor", "priority/multifactor", "priority/basic")
#: The earliest moment of a step other than a submission: the scheduler is up by then.
FIRST_S = 2.5
#: A step that follows another one, as a repair does, comes so long after the story's end at the latest.
LATER_S = 3.0
#: How a schedule goes on after its repairs. Only "healthy" has a scheduler that places jobs; "dead" has a watchdog, and
#: "gone" not even that. These two are faults themselves.
ENDINGS = ("healthy", "dead", "gone", "off", "stopped", "observe", "advise")
#: How often slurmctld saves its state (SAVE_MAX_WAIT in state_save.c).
SAVED_EVERY_S = 5.0
#: How many of those who requeue a job do so with requeuehold.
ALSO_HELD = 0.25
#: The longest quiet time: long enough for every pause of ours and of Slurm's.
QUIET_S = 120.0
#: A schedule has no more steps of people than these.
MOST_STEPS = 40

#: The calls of a scheduler's ports that change something, and those around them.
RPCS = ("place", "place", "regate", "free", "renew", "unboost", "load", "jobs", "nodes", "save")
#: Those that are about one job; and the calls of a watchdog.
OF_ONE_JOB = frozenset({"place", "load", "regate", "free", "renew", "unboost", "update"})
WATCHDOGS = ("jobs", "free", "free", "last-beat")
#: The name of the node on which the job of an event is.
OF_THE_JOB = "*"
#: Who owns the job of an event; and the events that few jobs have.
OWNER = "owner"
SELDOM = ("regate", "renew", "free", "hold", "release", "requeue", "suspend")
WHEN = ("before", "in", "after")


@dataclass
class Step:
    """What happens (`what`) when; `data` are its details, plain values only."""

    at_s: float
    what: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Schedule:
    """A site and the steps; from `quiet_from_s` on all is repaired. `many` is how many orders are sent together.

    `is_double`: unrelated faults come at once.
    """

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
    is_double: bool = False
    #: After so long a job may start in all managed partitions; 0: never.
    queued_check_s: float = 0.0
    #: The settings of restarts of suspended jobs (restarts.RestartRules); None: nothing is restarted.
    restarts: dict[str, Any] | None = None

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
    """The schedule of this seed, with at most one fault or a pair that shares a cause."""
    from world.schedule_agents import has_agents, with_agents

    schedule = Drawing(seed).schedule(has_faults=not has_agents(seed))
    return with_agents(schedule) if has_agents(seed) else schedule


def doubled(seed: int) -> Schedule:
    """The schedule of this seed with several faults that have nothing to do with each other."""
    return Drawing(seed).schedule(is_double=True)


def kills(schedule: Schedule) -> bool:
    """Whether slurmctld is killed in this schedule."""
    return any(step.data.get("is_killed") for step in schedule.steps)


class Drawing:
    """Draws one schedule.

    `jobs` and `happenings` are how many jobs it has, and how many other steps of people: the least and the most.
    """

    jobs, happenings = (3, 12), (3, 14)

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

    def schedule(self, *, has_faults: bool = True, is_double: bool = False) -> Schedule:
        policy = "combined" if self.chance(0.12) else "max-jobs"
        self.draw_site(is_spread=policy == "combined")
        for label in range(self.random.randint(*self.jobs)):
            self.draw_submission(label)
        groups = [group for group in PEOPLE if self.chance(group[1])]
        wanted = self.random.randint(*self.happenings)
        for _ in range(wanted if groups else 0):
            if len(self.steps) < MOST_STEPS:
                self.random.choices(groups, [weight for _, _, weight in groups])[0][0](self)
        ending = self.one("off", "stopped", "stopped", "observe", "advise") if self.chance(0.15) else "healthy"
        faults, weights = zip(*FAULTS, strict=True)
        if is_double:
            for fault in self.random.choices(faults, weights, k=self.random.randint(2, 5)):
                fault(self)
            ending = self.one(*ENDINGS) if self.chance(0.3) else "healthy"
        elif has_faults and self.chance(0.15):
            ending = self.one("dead", "gone")
        elif has_faults and self.chance(0.85):
            self.random.choices(faults, weights)[0](self)
        return self.finished(policy, ending, is_double=is_double)

    def finished(self, policy: str, ending: str, *, is_double: bool) -> Schedule:
        """The schedule of the steps drawn so far."""
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
            is_double=is_double,
            # Drawn apart, so that all else stays as it is.
            queued_check_s=Random(f"alike {self.seed}").choice((0.0, 1.0, 3.0)) if len(self.managed) > 1 else 0.0,
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
            "most_database_messages": self.one(20, 10_000),
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
            (0.05, lambda: {"extra": self.one(*_EXTRAS)}),
            (0.05, lambda: {"deadline_in_s": asked["walltime_s"] + self.one(5, 40, 90, 150, 600)}),
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
        self.follow(step, "place", "place", "place", "start", "submit", "split", "regate", "renew", "hold", "release")

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
            "StartTime": lambda: self.one("now", "now", "+2", "+6", "+12", "+30", "+90"),
            "Deadline": lambda: self.one("+70", "+150", "+700"),
            "AdminComment": lambda: self.one("*", "site note"),
            "SiteFactor": lambda: "1000",
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
        self.follow(step, "place", "place", "place", "start", "submit", "regate", "renew", "release", "requeue")
        if what != "release" and self.chance(0.6):
            back = self.add("command", step.at_s + self.between(0.0, 6.0), by=by, job=label, do="release")
            self.follow(back, "hold", often=0.5 if "after" in step.data else 0.1)

    def cancel(self) -> None:
        label = self.label()
        if label is None:
            return
        step = self.of_task(self.add("cancel", by=self.by(label), job=label), label)
        self.follow(step, "place", "start", "regate", "hold", "submit")

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
            self.follow(edit, "place", "place", "start", "submit", "regate", "hold", "release")

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
            what = self.one("requeue", "requeue", "requeue", "requeuehold")
            step = self.of_task(self.add("command", by=by, job=label, do=what), label)
            self.follow(step, "start", "start", "start", "end", often=0.85)

    def suspend(self) -> None:
        label = self.label()
        if label is not None:
            step = self.follow(self.add("command", by="admin", job=label, do="suspend"), "start", often=0.85)
            if self.chance(0.7):
                back = self.add("command", step.at_s + self.between(0.5, 6.0), by="admin", job=label, do="resume")
                self.follow(back, "suspend", often=0.8)

    def remark(self) -> None:
        """An administrator writes into AdminComment: beside our mark, over it, or into it."""
        label = self.label()
        if label is not None:
            text = self.one(
                "*;site note", "*;site note", "site note;*", "", "site note", "sns:2 broken", "*;sns:2 free=me"
            )
            step = self.add("edit", by="admin", job=label, fields={"AdminComment": text})
            self.follow(step, "place", "start", "submit", "regate", "renew", "requeue")

    # --- what fails

    def crash(self) -> None:
        stays_s = self.one(0.0, 0.0, 0.0, self.between(4.0, 40.0))
        step = self.add("crash", daemon="scheduler", stays_dead=stays_s > 0)
        self.trap(step, (*RPCS, "beat", "decisions", "switch", "records", "open", ""), often=0.85)
        if stays_s:
            self.add("start", step.at_s + stays_s, daemon="scheduler")

    def freeze(self) -> None:
        step = self.add("freeze", daemon="scheduler", seconds=self.one(self.between(0.5, 5.0), self.between(8.0, 40.0)))
        self.trap(step, (*RPCS, "beat", ""), often=0.7)

    def race(self) -> None:
        """A scheduler goes on with what it saw, at the very moment at which the watchdog takes it for dead."""
        step = self.trap(self.add("freeze", daemon="scheduler", seconds=self.between(13.0, 20.0)), often=1.0)
        kind = self.random.choice(WATCHDOGS[:-1])
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
            kind = self.random.choice(WATCHDOGS)
            step.data["trap"] = {"daemon": "watchdog", "kinds": [kind], "nth": self.one(1, 2), "when": self.one(*WHEN)}

    def slurmctld(self) -> None:
        """It stops, hangs, is slow, or is killed: then it goes on from what it saved last."""
        what = self.one("down", "down", "slow", "killed", "killed")
        data = {"state": "slow" if what == "slow" else "down", "hangs": what != "killed" and self.chance(0.3)}
        if what == "killed":
            data["is_killed"] = True
        step = self.trap(self.add("slurmctld", **data), often=0.6)
        self.later(step, 0.5, self.one(12.0, 12.0, 45.0), "slurmctld", state="up", hangs=False)

    def munge(self) -> None:
        step = self.trap(self.add("munge", state="down"), often=0.5)
        self.later(step, 0.5, 12.0, "munge", state="up")

    def slurmdbd(self) -> None:
        step = self.add("slurmdbd", 0.0 if self.chance(0.4) else None, state="down")
        self.later(step, 1.0, 12.0, "slurmdbd", state="up")

    def store(self) -> None:
        state = self.one("locked", "full", "full", "gone")
        step = self.trap(self.add("store", state=state), ("save", "decisions", "records", "jobs", "place"), often=0.6)
        if state == "gone":  # a database that an administrator has moved away is new for the next process only
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
        elif self.chance(0.3):  # in the pause after a placement that failed, because its node was drained
            after = {"event": "place", "job": None, "in_s": 0.0}
            drain = self.add("node", FIRST_S, name=OF_THE_JOB, state="drain", after=after)
            for each in self.nodes:  # whichever it was
                self.later(drain, 12.0, 14.0, "node", name=each, state="undrain")
            self.add("clock", FIRST_S, step_s=-3600.0, after={"event": "regate", "job": None, "in_s": 0.1})
        elif self.chance(0.4):  # in a pause, or before a start
            step = self.add("clock", step_s=self.one(-3600.0, -3600.0, -60.0, 60.0, 3600.0))
            self.follow(step, "regate", "place", "renew", often=1.0)
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

    def refuse(self) -> None:
        """Slurm refuses an update of ours in the middle."""
        self.trap(self.add("refuse", at=self.one(*REFUSALS)), often=0.5)

    def killed_and_lost(self) -> None:
        """Slurmctld is killed at a call of ours: it may have taken it, and its state is older."""
        step = self.add("slurmctld", state="down", hangs=False, is_killed=True)
        step.data["trap"] = {
            "daemon": self.one("scheduler", "scheduler", "watchdog"),
            "kinds": [self.random.choice(RPCS)],
            "nth": self.one(1, 1, 2, 3),
            "when": "in",
        }
        self.add("lost", step.at_s, trap={**step.data["trap"], "when": "lost"})
        self.later(step, 0.5, self.one(12.0, 45.0), "slurmctld", state="up", hangs=False)

    def stepped_and_restarted(self) -> None:
        """The clock is set, and the daemons start again, as after a boot; the scheduler may need long for that."""
        step = self.add("clock", step_s=self.one(-3600.0, -60.0, -7.0, 7.0, 15.0, 60.0, 3600.0))
        if self.chance(0.6):
            self.later(step, 0.0, 2.0, self.one("crash", "restart"), daemon="watchdog")
        if self.chance(0.4):
            self.later(step, 0.0, 2.0, "crash", daemon="scheduler", stays_dead=True)
            self.add("start", step.at_s + self.between(8.0, 40.0), daemon="scheduler")
        else:
            self.later(step, 0.0, 2.0, self.one("crash", "restart"), daemon="scheduler")

    def lost(self) -> None:
        """A reply that is lost after the call took effect, or an error of the store after it wrote."""
        kinds = ("place", "place", "regate", "free", "renew", "update", "unboost", "save", "load", "jobs")
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
_EXTRAS = ("", "mine", "mine;too", "sns:grant=forged", "sns:2 free=me")
#: How likely each field of `draw_fields` is, in its order.
_FIELD_WEIGHTS = (3, 3, 4, 2, 2, 1, 2, 1, 1, 4, 1, 1, 1, 1, 1, 1)

Group = tuple[Callable[[Drawing], None], float, int]
#: What people do, owners and administrators: how likely a schedule has the kind at all, and how often it comes then.
PEOPLE: tuple[Group, ...] = (
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
    (Drawing.remark, 0.12, 1),
    (Drawing.stop, 0.2, 1),
    (Drawing.switch, 0.15, 1),
    (Drawing.mode, 0.12, 1),
)
#: What fails, and how often: one fault each, or a pair that shares a cause.
FAULTS: tuple[tuple[Callable[[Drawing], None], int], ...] = (
    (Drawing.crash, 5),
    (Drawing.freeze, 3),
    (Drawing.race, 3),
    (Drawing.watchdog, 2),
    (Drawing.slurmctld, 5),
    (Drawing.munge, 2),
    (Drawing.slurmdbd, 2),
    (Drawing.store, 2),
    (Drawing.disk, 2),
    (Drawing.beat, 2),
    (Drawing.clock, 3),
    (Drawing.second, 1),
    (Drawing.lost, 5),
    (Drawing.refuse, 3),
    (Drawing.killed_and_lost, 2),
    (Drawing.stepped_and_restarted, 2),
)


def described(data: Mapping[str, Any]) -> str:
    """The details of a step in one line."""
    return " ".join(f"{name}={value}" for name, value in data.items())
