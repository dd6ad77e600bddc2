"""What a cycle saw and did, for those who ask the scheduler's socket: the view, the decision record, redacted texts.

The decision record only explains, so the scheduler goes on when it cannot be written. Of the jobs of others, an
ordinary user sees what `sinfo` shows everybody: how full each node is, and how many jobs there are. Beyond that, a job
that withheld capacity keeps waiting is told on which nodes it is withheld, but not for whom.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, TypeVar

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.model import Plan
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.answers.answer_types import ConnectedAgents
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import NO_RESTARTS, NONE_TAKEN_BACK, Decisions, RestartNote, TakenBack
from slurm_sns.scheduler.restarts.restarter import NO_RESTARTS_YET, RestartView
from slurm_sns.scheduler.sharing.sharer import NOTHING_SHARED, SharingView
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.wire.values import NodeState, RunId

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class View:
    """What the last cycle saw and did, for status, queue, explain and profile. Immutable: other threads read it.

    `at_s` is when the cycle ended, `took_s` how long it took; `cycles`, `placed` and `taken_back` (placements that
    Slurm did not start in time) count since the scheduler began, `renewed_per_minute` counts the gates that were
    renewed during the last minute.
    `disabled` is True while the kill switch is on. `programs` are the profiles that the cycle planned with,
    `imported` are those among them, or replaced by them, that were imported, and `learning` is what is measured of
    programs. `agents` is what the connected agents said of their nodes, by node; None where there are no agents.
    `restarts` is what is told of restarts of suspended jobs, `sharing` of jobs that share cores.
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
    restarts: RestartView = NO_RESTARTS_YET
    taken_back: TakenBack = NONE_TAKEN_BACK
    sharing: SharingView = NOTHING_SHARED
    _made: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, make: "Callable[[View], Made]") -> Made:
        """What `make` makes of this view: made when somebody first asks, the same for all who ask until the next cycle.

        It costs as much as the queue is long, and an answer to one user should not. Two threads may both make it.
        """
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made


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

    def add(
        self,
        at_s: float,
        situation: Situation,
        plan: Plan,
        notes: Mapping[int, str],
        restarts: Mapping[int, RestartNote] = NO_RESTARTS,
    ) -> None:
        """Write the plan of a cycle that began then, as it was carried out; `notes` say what was done to other jobs."""
        if not self._sends:
            plan = self._new_starts(plan)
        if not (plan.starts or notes or restarts):
            return
        concerned = {start.job_id for start in plan.starts} | notes.keys() | restarts.keys()
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
                restarts=restarts,
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


#: The most nodes that a sentence about a job names.
MOST_NAMED = 3


def agents_data(
    states: Mapping[str, NodeState], partitioned: Set[str], sharing: Set[str] = frozenset()
) -> ConnectedAgents:
    """Which agents are connected, as JSON values.

    The nodes that need one are those whose cache or bandwidth jobs share, `partitioned`, or whose cores, `sharing`.
    `away` are those of them without one. By node, `troubles` says what keeps an agent from working, and
    `unpartitioned` why an agent does not partition its node's cache. On those of `confined` a job may not use all CPUs.
    """
    names = sorted(partitioned | sharing)
    return {
        "nodes": len(names),
        "connected": sum(name in states for name in names),
        "away": [name for name in names if name not in states],
        "troubles": {name: each.trouble for name, each in sorted(states.items()) if each.trouble},
        "unpartitioned": {
            name: why
            for name, each in sorted(states.items())
            if name not in sharing - partitioned and (why := _unpartitioned(each))
        },
        "confined": [
            name for name in sorted(sharing & states.keys()) if any(each.is_confined for each in states[name].jobs)
        ],
    }


def _unpartitioned(state: NodeState) -> str:
    if state.facts.mode != "partition":
        return "its agent only measures (sns agent --observe)"
    if state.facts.why_unpartitioned or state.facts.ways:
        return state.facts.why_unpartitioned
    return "its cache cannot be partitioned"


def whys_unpartitioned(states: Mapping[str, NodeState], jobs: Iterable[ObservedJob]) -> dict[int, str]:
    """Why running jobs do not have the ways that they were promised, on which nodes: by job id."""
    found: dict[int, str] = {}
    shared = {
        (name, there.run): there.why_shared for name, each in states.items() for there in each.jobs if there.why_shared
    }
    for job in jobs:
        if job.state is not JobState.RUNNING:
            continue
        run = RunId(job.id, job.restarts)
        by_why: dict[str, list[str]] = {}
        for name in job.allocated:
            why = shared.get((name, run), "")
            if not why and job.ways and name not in states:
                why = "no agent answers there"
            if why:
                by_why.setdefault(why, []).append(name)
        if by_why:
            found[job.id] = "; ".join(f"unpartitioned on {_named(names)}: {why}" for why, names in by_why.items())
    return found


def named_nodes(names: Sequence[str]) -> str:
    """`node c1`, `nodes c1, c2`; of many the first ones and how many more there are."""
    return f"{'node' if len(names) == 1 else 'nodes'} {_named(names)}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
