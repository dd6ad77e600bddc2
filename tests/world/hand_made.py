"""A small history made by hand, for the tests of the checker's promises."""

from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

from default_settings import SETTINGS

from slurm_sns.model import Resources
from slurm_sns.scheduler.gate.failed_placements import Try
from world.daemons import times
from world.history import Event, History
from world.promises import check
from world.slurm import Slurm, SlurmSite
from world.slurm_jobs import ModelJob, Now, now_of

BEGIN_S = 1_700_000_000
#: A running job of one task, as the model tells it.
ALONE = {"cores": (1,), "memory_mb": (1000,), "ways": 0, "bandwidth": 0, "pinned": True, "restarts": 0}
ALONE["partition"] = "main"
BOOST = 2_000_000_000


def at(seconds: float) -> int:
    """The wall clock at this moment of the history."""
    return BEGIN_S + int(seconds)


@dataclass
class Case:
    """A history made by hand: two nodes of four cores, jobs of alice's, a scheduler and a watchdog that live.

    The scheduler beats once a second up to `beats_until_s`. Events are put into their order at the check.
    """

    true_s: float = 0.0
    beats_until_s: float = inf
    end_s: float = 30.0
    quiet_from_s: float = 20.0
    ending: str = "healthy"
    is_double: bool = False
    restarts: dict[str, Any] | None = None
    events: list[Event] = field(default_factory=list)
    store: dict[int, Try] = field(default_factory=dict)
    now: dict[int, Now] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(0)
        self.history = History(self)
        nodes = {"c1": Resources(4, 8000), "c2": Resources(4, 8000)}
        self.slurm = Slurm(SlurmSite(nodes, {"main": (("c1", "c2"), 1)}), self)
        self.add(0, "daemon", name="scheduler", what="start")
        self.add(0, "daemon", name="watchdog", what="start")

    def wall_s(self) -> float:
        return BEGIN_S + self.true_s

    def add(self, at_s: float, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        self.events.append(Event(at_s, BEGIN_S + at_s, kind, job, by, data))

    def event(self, at_s: float, kind: str, job: int, by: str, changed: dict[str, Any], **data: Any) -> None:
        """An event of a job after which these fields have these values."""
        was = self.now[job]
        self.now[job] = was._replace(**changed)
        self.add(at_s, kind, job, by, now=self.now[job], was=was, **data)

    def submit(self, at_s: float = 2.0, job: int = 1, gate_s: float | None = 20.0, **asked: Any) -> None:
        """A job of alice's, gated until then by the filter; None: it passes through."""
        made = ModelJob(job, "alice", asked, at(at_s), memory_per_cpu_mb=1000, **asked)
        if gate_s is not None:
            made.admin_comment, made.begin_s = f"sns:2 g={at(gate_s)}", at(gate_s)
        self.now[job] = now_of(made)
        verdict = "pass" if gate_s is None else "gated"
        self.add(at_s, "submit", job, "alice", now=self.now[job], asked=asked, verdict=verdict)

    def edit(self, at_s: float, words: tuple[str, ...], job: int = 1, by: str = "alice", **changed: Any) -> None:
        """Somebody updates these words, so that these fields change."""
        self.event(at_s, "update", job, by, changed, fields=dict.fromkeys(words, "?"), is_half=False)

    def write(
        self, at_s: float, kind: str, words: tuple[str, ...], job: int = 1, *, by: str = "scheduler", **changed: Any
    ) -> None:
        """A daemon of ours does."""
        values = {"ReqNodeList": ",".join(changed.get("nodes", self.now[job].nodes))}
        fields = {word: values.get(word, "?") for word in words}
        self.event(at_s, kind, job, by, changed, fields=fields, is_half=False)

    def place(self, at_s: float, job: int = 1, *, look: bool = True, **more: Any) -> None:
        """A cycle looks, and places the job on c1."""
        if look:
            self.look(at_s - 0.1)
        mark = f"sns:2 g={at(20)} n=c1 at={at(at_s)}"
        changed = {"nodes": ("c1",), "begin_s": at(at_s), "admin_comment": mark, "site_factor": BOOST, **more}
        self.write(at_s, "place", ("ReqNodeList", "AdminComment", "StartTime", "SiteFactor"), job, **changed)

    def regate(self, at_s: float, job: int = 1, gate_s: float = 40.0, **more: Any) -> None:
        """It takes the placement back."""
        back = {"nodes": (), "begin_s": at(gate_s), "admin_comment": f"sns:2 g={at(gate_s)}", "site_factor": 0, **more}
        self.write(at_s, "regate", ("ReqNodeList", "AdminComment", "StartTime", "SiteFactor"), job, **back)

    def free(self, at_s: float, job: int = 1, by: str = "scheduler", **more: Any) -> None:
        """It gives the job to Slurm."""
        back = {"nodes": (), "begin_s": at(at_s), "admin_comment": "sns:2 free=test", "site_factor": 0, **more}
        self.write(at_s, "free", ("ReqNodeList", "AdminComment", "StartTime", "SiteFactor"), job, by=by, **back)

    def renew(self, at_s: float, job: int = 1, gate_s: float = 40.0, **more: Any) -> None:
        """It moves the gate."""
        changed = {"begin_s": at(gate_s), "admin_comment": f"sns:2 g={at(gate_s)}", **more}
        self.write(at_s, "renew", ("AdminComment", "StartTime"), job, **changed)

    def widen(self, at_s: float, *partitions: str, job: int = 1) -> None:
        """It looks, and lets the job run in these partitions."""
        self.look(at_s - 0.1)
        self.write(at_s, "widen", ("Partition", "AdminComment"), job, partitions=partitions)

    def start(self, at_s: float, job: int = 1, *nodes: str, **more: Any) -> None:
        """It starts; we have taken off the boost by the time that anybody looks."""
        self.event(
            at_s,
            "start",
            job,
            "slurm",
            {"state": "RUNNING", "site_factor": 0},
            nodes=nodes or ("c1",),
            **{**ALONE, **more},
        )

    def suspend(self, at_s: float, job: int = 1, by: str = "slurm", **more: Any) -> None:
        """Preemption suspends it, or an administrator does."""
        changed = {"state": "SUSPENDED", "ran_s": int(at_s), "is_paused": by != "slurm", **more}
        self.event(at_s, "suspend", job, by, changed)

    def requeue(self, at_s: float, job: int = 1, by: str = "scheduler") -> None:
        """It is requeued, and waits again at once."""
        restarts = self.now[job].restarts + 1
        self.event(at_s, "requeue", job, by, {})
        self.event(at_s + 0.1, "waits", job, "slurm", {"state": "PENDING", "restarts": restarts, "ran_s": 0})

    def ends(self, at_s: float, job: int = 1, how: str = "completed") -> None:
        self.event(at_s, "end", job, "slurm", {"state": "COMPLETED"}, how=how)

    def look(self, at_s: float, by: str = "scheduler") -> None:
        self.add(at_s, "look", by=by)

    def cycle(self, at_s: float, by: str = "scheduler") -> None:
        """A whole cycle that sends nothing."""
        self.look(at_s, by)
        self.add(at_s + 0.1, "cycle", by=by, ok=True)

    def found(self) -> list[str]:
        """The promises that the history breaks, by sentence."""
        self.add(0.7, "look", by="scheduler")
        for at_s in range(1, int(min(self.beats_until_s, self.end_s)) + 1):
            self.add(at_s, "beat", by="scheduler", value=BEGIN_S + at_s)
        self.add(self.end_s, "log", line="the end")
        self.history.events = sorted(self.events, key=lambda event: event.at_s)
        self.true_s = self.end_s
        for job_id, now in self.now.items():
            if job_id not in self.slurm.jobs:
                made = ModelJob(job_id, "alice", {}, 0, state=now.state, required=now.nodes, begin_s=now.begin_s)
                made.memory_per_cpu_mb, made.admin_comment = now.memory[0], now.admin_comment
                self.slurm.jobs[job_id] = made
        return check(
            SimpleNamespace(
                history=self.history,
                slurm=self.slurm,
                store=self.store,
                settings=replace(SETTINGS, place_timeout_s=5.0, backoff_max_s=20.0, pools=(("main", "old"),)),
                times=times(),
                is_double=self.is_double,
                alive=self.ending == "healthy",
                schedule=SimpleNamespace(ending=self.ending, restarts=self.restarts),
                quiet_from_s=self.quiet_from_s,
                end_s=self.end_s,
            )
        )

    def names(self) -> list[str]:
        """The names of the promises that the history breaks."""
        return [sentence.split(":")[0] for sentence in self.found()]
