"""What a cycle hears of programs and nodes: imported profiles, measured ones, and what the agents say.

Without agents, and without learning, there are only the imported profiles.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_sns.model import Start
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.active_runs import ActiveRunsTold
from slurm_sns.scheduler.gres_of_jobs import ungranted
from slurm_sns.scheduler.learning.exploration import Explorer
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState
from slurm_sns.scheduler.observation.observed import Observation
from slurm_sns.scheduler.ports import NO_AGENTS, Agents
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.snapshot.spreading import Spreading
from slurm_sns.wire.values import NodeState


class Hearing:
    """Talks with the agents, learns from them, and keeps the profiles by which jobs are spread (`spreading`).

    `learner` is None where nothing is learnt.
    """

    def __init__(self, agents: Agents, learner: Learner | None, spreading: Spreading) -> None:
        self._agents, self._learner = agents, learner
        self._active_runs = ActiveRunsTold(agents)
        self.spreading = spreading

    @property
    def trouble(self) -> str:
        """What keeps learning from going on; empty when nothing does."""
        return "" if self._learner is None else self._learner.trouble

    @property
    def learning(self) -> LearningState:
        """What is measured of programs."""
        return NOTHING_LEARNT if self._learner is None else self._learner.state

    def spread_by(self, imported: Mapping[str, Program]) -> None:
        """Spread jobs by these profiles, and by those that are measured here."""
        programs = imported if self._learner is None else self._learner.programs(imported)
        if programs is not self.spreading.programs:
            self.spreading = replace(self.spreading, programs=programs)

    def hear(
        self, observation: Observation, imported: Mapping[str, Program], now_s: float
    ) -> Mapping[str, NodeState] | None:
        """Learn from what the agents report, and tell them which runs are active; return what they say of their nodes.

        Jobs whose ways and bandwidth no grant has told them get them now. Where nothing is learnt, their reports are
        acknowledged all the same: they would keep them for ever. None: there are no agents.
        """
        agents = self._agents
        if agents is NO_AGENTS:
            return None
        self._active_runs.tell(observation.jobs)
        if self._learner is None:
            agents.acknowledge([report.key for report in agents.reports()])
        else:
            self._learner.conclude(observation, self.spreading, now_s)
            self.spread_by(imported)
        states = agents.states()
        changes = ungranted(observation.jobs, states)
        if changes:
            agents.change(changes)
        return states

    def explorer(
        self, observation: Observation, states: Mapping[str, NodeState] | None, now_s: float
    ) -> Explorer | None:
        """What offers exploring runs in this cycle; None where nothing is explored."""
        learner = self._learner
        return None if learner is None else learner.explorer(observation, self.spreading, states or {}, now_s)

    def place(self, starts: Iterable[Start], situation: Situation, now_s: float) -> frozenset[int]:
        """Note the runs that are about to be placed; return the ids of the jobs whose ways are to be changed."""
        return frozenset() if self._learner is None else self._learner.place(starts, situation, self.spreading, now_s)
