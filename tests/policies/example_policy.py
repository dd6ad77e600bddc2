"""A policy from end to end: jobs take turns. docs/develop/policy.md walks through it.

A job runs for `turn_s`, at half of its CPU while others wait; then the job that has waited longest has its turn, and
this one is suspended. A job that has had `most_turns` of them starts again from the end of the queue. Only a
simulation carries such plans out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from slurm_sns.model import Action, ActiveState, Plan, Requeue, Resume, SetShare, Snapshot, Start, Suspend
from slurm_sns.policies.base import HistoryFormat, no_explanation, own_geometry
from slurm_sns.policies.specification import Setting, Specification, parameter

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class TurnsParameters:
    turn_s: int = parameter(10, Setting("Seconds that a job runs at a time.", "turns", least=1, most=3600, option=True))
    most_turns: int = parameter(3, Setting("Turns after which a job starts again.", "turns", least=1, most=100))


@dataclass(frozen=True)
class Turns:
    """What the policy remembers: how many turns each job has had, and which jobs have half of their CPU."""

    had: Mapping[int, int] = field(default_factory=dict)
    halved: frozenset[int] = frozenset()


class TakeTurns:
    def __init__(self, parameters: TurnsParameters) -> None:
        self.parameters = parameters

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)

    def plan(self, snapshot: Snapshot) -> Plan:
        last = snapshot.history if isinstance(snapshot.history, Turns) else Turns()
        had, halved = dict(last.had), set(last.halved)
        running = [job for job in snapshot.active if job.state is not ActiveState.SUSPENDED]
        suspended = sorted((job for job in snapshot.active if job not in running), key=lambda job: job.since_s)
        others = bool(snapshot.waiting or suspended)
        actions: list[Action] = []
        for job in running:
            if not others and job.id in halved:
                halved.remove(job.id)
                actions.append(SetShare(job.id, 1, "nobody waits"))
            if others and job.state is ActiveState.RUNNING and snapshot.now_s - job.since_s >= self.parameters.turn_s:
                had[job.id] = had.get(job.id, 0) + 1
                if had[job.id] >= self.parameters.most_turns and job.may_restart:
                    del had[job.id]
                    actions.append(Requeue(job.id, reason="it has had all its turns"))
                else:
                    actions.append(Suspend(job.id, "its turn is over"))
        is_free = len(running) == sum(isinstance(action, Suspend | Requeue) for action in actions)
        first = snapshot.waiting[0] if snapshot.waiting else None
        if is_free and suspended and (first is None or suspended[0].submit_s <= first.submit_s):
            actions.append(Resume(suspended[0].id, reason="its turn", cpu_share=HALF))
            halved.add(suspended[0].id)
        elif is_free and first is not None:
            nodes = tuple(node.name for node in snapshot.nodes[: first.alternatives[0].nodes])
            actions.append(Start(first.id, nodes, first.alternatives[0], "its turn", cpu_share=HALF))
            halved.add(first.id)
        started = {action.job_id for action in actions if isinstance(action, Start)}
        waiting = {job.id: "others have their turn" for job in snapshot.waiting if job.id not in started}
        return Plan(tuple(actions), waiting, snapshot.now_s + self.parameters.turn_s, Turns(had, frozenset(halved)))


TURNS = Specification(
    "turns",
    "Jobs take turns.",
    (TurnsParameters,),
    "example_policy:TakeTurns",
    is_simulated_only=True,
    history=HistoryFormat(1, Turns),
)
