"""A small history made by hand, for the tests of the checker's promises."""

from dataclasses import dataclass, field
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

from slurm_sns.model import Resources
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.settings import Settings
from world.history import Event, History
from world.promises import check
from world.slurm import Slurm, SlurmSite
from world.slurm_jobs import ModelJob

BEGIN_S = 1_700_000_000.0
BOOSTED = -2_000_000_000
#: A running job of one task, as the model tells it.
ALONE = {"cores": (1,), "memory_mb": (1000,), "ways": 0, "bandwidth": 0, "pinned": True, "restarts": 0}


@dataclass
class Case:
    """A history made by hand: two nodes of four cores, one job of alice's, a scheduler and a watchdog that live.

    The scheduler beats once a second up to `beats_until_s`. Events are put into their order at the check.
    """

    true_s: float = 0.0
    beats_until_s: float = inf
    end_s: float = 30.0
    quiet_from_s: float = 20.0
    alive: bool = True
    events: list[Event] = field(default_factory=list)
    store: dict[int, JobRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(0)
        self.history = History(self)
        nodes = {"c1": Resources(4, 8000), "c2": Resources(4, 8000)}
        self.slurm = Slurm(SlurmSite(nodes, {"main": (("c1", "c2"), 1), "small": (("c2",), 1)}), self)
        self.add(0, "daemon", name="scheduler", what="start")
        self.add(0, "daemon", name="watchdog", what="start")

    def wall_s(self) -> float:
        return BEGIN_S + self.true_s

    def add(self, at_s: float, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        self.events.append(Event(at_s, BEGIN_S + at_s, kind, job, by, data))

    def submit(self, at_s: float = 2.0, job: int = 1, verdict: str = "held", by: str = "alice", **asked: Any) -> None:
        asked = {"run_s": 3.0, "extra": "sns:1" if verdict == "held" else "", **asked, "verdict": verdict}
        self.add(at_s, "submit", job, by, **asked)

    def seen(self, at_s: float, *recorded: int, by: str = "scheduler") -> None:
        """A cycle begins: it looks, and saves records."""
        self.add(at_s, "look", by=by, is_check=False)
        if recorded:
            self.add(at_s + 0.01, "record", by=by, saved=recorded, gone=())

    def cycle(self, at_s: float, *recorded: int, by: str = "scheduler") -> None:
        """A whole cycle that sends nothing."""
        self.seen(at_s, *recorded, by=by)
        self.add(at_s + 0.1, "cycle", by=by, ok=True)

    def place(self, at_s: float, job: int = 1, had: str = "user", *, checked: bool = True, **fields: Any) -> None:
        """A placement on c1, which the cycle has recorded; the check of the job comes just before."""
        self.seen(at_s - 0.1, job)
        if checked:
            self.add(at_s - 0.002, "look", job, "scheduler", is_check=False)
        self.add(at_s, "place", job, "scheduler", nodes=("c1",), nice=BOOSTED, had_hold=had, fields=fields)

    def start(self, at_s: float, job: int = 1, *nodes: str, **more: Any) -> None:
        self.add(at_s, "start", job, "slurm", nodes=nodes or ("c1",), **{**ALONE, **more})

    def ran(self, at_s: float, job: int = 1, how: str = "completed") -> None:
        """The job is placed, starts and ends."""
        self.place(at_s, job)
        self.start(at_s + 0.5, job)
        self.add(at_s + 3.5, "end", job, "slurm", how=how)

    def released(self, cycles: int) -> None:
        """Its owner releases the job, and so many cycles see it."""
        self.submit(begin_s=int(BEGIN_S) + 900)
        self.cycle(2.5, 1)
        self.add(3, "release", 1, "alice", admin=False, had_hold="user")
        for at_s in range(4, 4 + cycles):
            self.cycle(at_s, 1)
        self.shows(begin_s=int(BEGIN_S) + 900)

    def shows(self, job: int = 1, **fields: Any) -> None:
        """What the model shows of the job at the end."""
        shown = {"memory_per_cpu_mb": 1000, "extra": "sns:1", "submit_s": 0, **fields}
        self.slurm.jobs[job] = ModelJob(job, "alice", {}, **shown)

    def found(self) -> list[str]:
        """The promises that the history breaks, by sentence."""
        last_s = min(self.beats_until_s, self.end_s)
        self.add(0.7, "look", by="scheduler", is_check=False)
        for at_s in range(1, int(last_s) + 1):
            self.add(at_s, "beat", by="scheduler", value=int(BEGIN_S + at_s))
        self.add(self.end_s, "log", line="the end")
        self.history.events = sorted(self.events, key=lambda event: event.at_s)
        self.true_s = self.end_s
        return check(
            SimpleNamespace(
                history=self.history,
                slurm=self.slurm,
                store=self.store,
                settings=Settings(backoff_max_s=20.0),
                alive=self.alive,
                quiet_from_s=self.quiet_from_s,
                end_s=self.end_s,
            )
        )

    def names(self) -> list[str]:
        """The names of the promises that the history breaks."""
        return [sentence.split(":")[0] for sentence in self.found()]
