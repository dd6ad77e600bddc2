"""What a cycle saw and did, for those who ask the scheduler's socket."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_sns.model import Plan
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState
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
