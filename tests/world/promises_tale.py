"""What the checker knows at one moment of a history: the jobs, the services, and how long things may take."""

from collections.abc import Mapping
from math import inf
from typing import Any

from slurm_sns.restarts.rules import RestartRules
from world.history import Event
from world.promises_jobs import OURS, Jobs
from world.promises_services import Services
from world.restarts import rules_of
from world.slurm_jobs import Now

#: Gates are in whole seconds, and a cycle looks at its beginning; what was put off is made up for after so long.
ROUNDING_S, LATE_S, AT_ONCE_S = 2.0, 10.0, 0.5


class Tale:
    """The state of a check.

    Attributes:
        is_safety_only: only what must hold under all faults at once is judged.
        began_s: when the present cycle of each scheduler began.
        refused_by: the daemon of ours whose change Slurm refused in the middle, by job; empty when it has ended since.
        accused: the jobs that were found gated while nobody is there, so that each is told once.
    """

    def __init__(self, result: Any) -> None:
        self.jobs = Jobs()
        #: The settings of restarts; None where nothing is restarted.
        self.restart_rules: RestartRules | None = None
        if getattr(result.schedule, "restarts", None) is not None:
            self.restart_rules = rules_of(result.schedule.restarts)
        #: How each daemon saw the jobs with nodes in its last look, and single ones since.
        self.looked: dict[str, dict[int, Now]] = {}
        self.loaded: dict[str, dict[int, Now]] = {}
        #: The work that our restarts have lost, in core-seconds: by user, and by job and its number of restarts.
        self.lost_core_s: dict[str, dict[tuple[int, int], float]] = {}
        #: Whether the clock was ever set, and whether an administrator has ever moved the store away.
        self.was_set = self.was_moved = False
        self.capacity = result.slurm.site.nodes
        self.pools: tuple[tuple[str, ...], ...] = result.settings.pools
        self.place_timeout_s: float = result.settings.place_timeout_s
        times: Mapping[str, float] = result.times
        self.first_lease_s, self.lease_s = times["first_lease_s"], times["lease_s"]
        self.services = Services(times["timeout_s"])
        self._margin_s = times["deadline_margin_s"]
        self._is_double: bool = result.is_double
        self.began_s: dict[str, float] = {}
        self.refused_by: dict[int, str] = {}
        self.accused: set[int] = set()
        #: The daemons that lost an answer since they started.
        self.lost: set[str] = set()
        self.at_s = self.wall_s = 0.0
        #: By how much the clock was set back in all: gates that stood then are longer by that.
        self.set_back_s = 0.0

    @property
    def is_safety_only(self) -> bool:
        return self._is_double or self.services.had_two

    def take(self, event: Event) -> None:
        """Go on by one event."""
        self.at_s, self.wall_s = event.at_s, event.wall_s
        if event.data.get("is_half") and event.by in OURS:
            self.refused_by[event.job] = event.by
        if event.kind == "look" and self.restart_rules is not None:
            self.looked[event.by] = {job.id: job.now for job in self.jobs.running()}
            self.loaded[event.by] = {}
        elif event.kind == "load" and event.job in self.jobs.of:
            self.loaded.setdefault(event.by, {})[event.job] = self.jobs.of[event.job].now
        self.was_moved |= event.kind == "store" and event.data["state"] == "gone"
        if event.kind == "clock":
            self.was_set = True
            self.set_back_s += max(0.0, -event.data["step_s"])
        self.jobs.take(event)
        self.services.take(event)
        if event.kind == "cycle":
            self.began_s[event.by] = event.at_s
        elif event.kind == "daemon" and event.data["what"] == "start":
            self.began_s[event.data["name"]] = event.at_s
            self.lost.discard(event.data["name"])
            self.refused_by = {job: "" if by == event.data["name"] else by for job, by in self.refused_by.items()}
        elif event.kind == "lost":
            self.lost.add(event.by)

    def is_renewed_in_time(self, gate_s: int, event: Event) -> bool:
        """Whether a gate stands for so long that it need not have been renewed by the cycle that ends now.

        While messages for slurmdbd pile up, gates are renewed late, and few in a cycle that follows another at once.
        """
        database = self.services.state["slurmdbd"], self.services.since_s["slurmdbd"]
        is_late = database[0] != "up" or event.at_s - database[1] < LATE_S
        took_s = event.at_s - self.began_s.get(event.by, event.at_s)
        return is_late or took_s < AT_ONCE_S or gate_s - event.wall_s > self.lease_s / 2 - ROUNDING_S - took_s

    def knows_refusal(self, job_id: int, by: str) -> bool:
        """Whether this daemon knows which nodes its own change left on the job when Slurm refused the rest.

        Who only frees all that waits goes by the jobs alone.
        """
        plans = self.services.places(by, self.began_s.get(by, 0.0)) and by not in self.services.stopped
        return plans and self.refused_by.get(job_id) == by

    def latest_s(self, now: Now) -> float:
        """Until when the job may be gated, so that it can meet its deadline."""
        return inf if now.deadline_s is None else now.deadline_s - now.walltime_s - self._margin_s
