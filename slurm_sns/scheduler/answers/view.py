"""What a cycle saw and did: the view for those who ask the scheduler's socket, and the decision record.

The decision record only explains, so the scheduler goes on when it cannot be written.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.model import Plan
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState
from slurm_sns.scheduler.ports import Decisions
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.wire.values import NodeState


@dataclass(frozen=True, slots=True)
class View:
    """What the last cycle saw and did, for status, queue, explain and profile. Immutable: other threads read it.

    `at_s` is when the cycle ended, `took_s` how long it took; `cycles` and `placed` count since the scheduler began,
    `renewed_per_minute` counts the gates that were renewed during the last minute.
    `disabled` is True while the kill switch is on. `programs` are the profiles that the cycle planned with,
    `imported` are those among them, or replaced by them, that were imported, and `learning` is what is measured of
    programs. `agents` is what the connected agents said of their nodes, by node; None where there are no agents.
    """

    at_s: float
    took_s: float
    mode: str
    disabled: bool
    cycles: int
    placed: int
    renewed_per_minute: int
    situation: Situation
    plan: Plan
    programs: Mapping[str, Program] = field(default_factory=dict)
    imported: Mapping[str, Program] = field(default_factory=dict)
    learning: LearningState = NOTHING_LEARNT
    agents: Mapping[str, NodeState] | None = None


#: Ten minutes of cycles of one second.
CYCLES_KEPT = 600


class RecentCycles:
    """The loop's thread writes it, the threads that answer requests read it: a view is replaced, never changed."""

    def __init__(self) -> None:
        self.view: View | None = None
        self.began_s = 0.0
        self._took_s: deque[float] = deque(maxlen=CYCLES_KEPT)

    def publish(self, view: View) -> None:
        """Take the view of a cycle that has just ended."""
        if self.view is None:
            self.began_s = view.at_s - view.took_s
        self._took_s.append(view.took_s)
        self.view = view

    def took_s(self, share: float) -> float:
        """The time within which this share of the recent cycles ended (nearest rank); 0 before the first."""
        times = sorted(self._took_s.copy())
        return times[max(0, ceil(share * len(times)) - 1)] if times else 0.0


class DecisionRecord:
    """Writes what cycles have decided. In the modes that send nothing (`sends` is False) a start is written once."""

    def __init__(self, decisions: Decisions, log: Log, *, sends: bool) -> None:
        self._decisions, self._sends = decisions, sends
        self._last_starts: Mapping[int, tuple[str, ...]] = {}
        self._outage = Outage(log)

    @property
    def trouble(self) -> str:
        """What keeps it from being written now; empty when nothing does."""
        return self._outage.now

    def add(self, at_s: float, situation: Situation, plan: Plan, notes: Mapping[int, str]) -> None:
        """Write the plan of a cycle that began then, as it was carried out; `notes` say what was done to other jobs."""
        if not self._sends:
            plan = self._new_starts(plan)
        if not plan.starts and not notes:
            return
        concerned = {start.job_id for start in plan.starts} | notes.keys()
        jobs = {job.id: job for job in (*situation.observed, *situation.tasks.values()) if job.id in concerned}
        try:
            self._decisions.record(
                at_s,
                situation.snapshot,
                plan,
                notes,
                owners={job_id: job.user_id for job_id, job in jobs.items()},
                explanations=situation.explanations,
                tasks={job_id: job.task for job_id, job in jobs.items() if job.task is not None},
                repeated=situation.repeated,
            )
            self._outage.over(at_s)
        except SnsError as problem:
            self._outage.met(str(problem), at_s)

    def _new_starts(self, plan: Plan) -> Plan:
        """The plan with only the starts that the last plan did not have: unsent starts come again every cycle."""
        starts = {start.job_id: start.nodes for start in plan.starts}
        new = tuple(start for start in plan.starts if self._last_starts.get(start.job_id) != start.nodes)
        self._last_starts = starts
        return replace(plan, actions=new)
