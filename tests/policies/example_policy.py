"""A policy from end to end: jobs take turns. CONTRIBUTING.md, "How to add a policy", walks through it.

A job runs for `turn_s`, at half of its CPU while others wait; then the job that has waited longest has its turn, and
this one is suspended. A job that was suspended `most_turns` times starts again from the end of the queue.
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
class TurnsHad:
    """How often each job was suspended."""

    of_job: Mapping[int, int] = field(default_factory=dict)


class TakeTurns:
    def __init__(self, parameters: TurnsParameters) -> None:
        self.parameters = parameters

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)

    def plan(self, snapshot: Snapshot) -> Plan:
        had = dict(snapshot.history.of_job) if isinstance(snapshot.history, TurnsHad) else {}
        running = [job for job in snapshot.active if job.state is not ActiveState.SUSPENDED]
        suspended = sorted((job for job in snapshot.active if job not in running), key=lambda job: job.since_s)
        actions: list[Action] = []
        if running and not snapshot.waiting and not suspended:  # alone
            actions += [SetShare(job.id, 1, "nobody waits") for job in running if job.cpu_share < 1]
        for job in running:
            is_over = job.state is ActiveState.RUNNING and snapshot.now_s - job.since_s >= self.parameters.turn_s
            if is_over and (snapshot.waiting or suspended):
                had[job.id] = had.get(job.id, 0) + 1
                again = had[job.id] >= self.parameters.most_turns and job.may_restart
                if again:
                    del had[job.id]
                actions.append(Requeue(job.id, reason="again") if again else Suspend(job.id, "its turn is over"))
                running.remove(job)
                break
        if (
            not running
            and suspended
            and (not snapshot.waiting or suspended[0].submit_s <= snapshot.waiting[0].submit_s)
        ):
            actions.append(Resume(suspended[0].id, reason="its turn", cpu_share=HALF))
        elif not running and snapshot.waiting:
            first = snapshot.waiting[0]
            nodes = tuple(node.name for node in snapshot.nodes[: first.alternatives[0].nodes])
            actions.append(Start(first.id, nodes, first.alternatives[0], "its turn", cpu_share=HALF))
        started = {action.job_id for action in actions if isinstance(action, Start)}
        waiting = {job.id: "others have their turn" for job in snapshot.waiting if job.id not in started}
        return Plan(tuple(actions), waiting, snapshot.now_s + self.parameters.turn_s, TurnsHad(had))


TURNS = Specification(
    "turns",
    "Jobs take turns.",
    (TurnsParameters,),
    "example_policy:TakeTurns",
    runs_at_events=True,
    history=HistoryFormat(1, TurnsHad),
)
