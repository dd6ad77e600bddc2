"""What a cycle hears of programs and nodes, and what it tells the agents.

It hears imported profiles, measured ones, and what the agents say. Without agents, and without learning, there are only
the imported profiles. It tells two things:

- Which runs are active on a node, by what Slurm shows: running, suspended and completing ones. An agent that sees no
  process of a run any more keeps what the run has as long as the scheduler names it. A grant of an array's task holds
  for the job of which the scheduler says that it is this task.
- Ways and bandwidth that Slurm counts for a running job although no grant told its nodes of them. A pass-through job
  may ask for them itself (--gres=llc:4), and an owner may overwrite the grant of a placed job. Slurm keeps these
  resources from others either way, so the job is to have them, as soon as the agents say that the job is there without
  any. The same holds where an agent has found a job of whose grant it does not know: the job's group may show ways that
  were only spare. An agent that waits for the scheduler's word which array task a run is has the run's whole grant
  after that word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_sns.model import Start
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState
from slurm_sns.scheduler.measured_runs import MeasurementRecord
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.ports import Agents
from slurm_sns.scheduler.snapshot.situation import Offer, Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules
from slurm_sns.wire.values import ActiveRuns, ArrayTask, Change, NodeState, RunId


def runs_by_node(active: Iterable[tuple[RunId, tuple[str, ...]]]) -> Mapping[str, frozenset[RunId]]:
    """The active runs on each node, from the nodes of each run."""
    found: dict[str, set[RunId]] = {}
    for run, nodes in active:
        for name in nodes:
            found.setdefault(name, set()).add(run)
    return {name: frozenset(runs) for name, runs in found.items()}


#: A grant has revision 0: what Slurm counts comes after it.
REVISION = 1


def ungranted(jobs: Iterable[ObservedJob], states: Mapping[str, NodeState]) -> dict[str, list[Change]]:
    """What the agent of each node is to give its jobs; `states` is what the agents say of their nodes."""
    without, is_found = set[tuple[str, RunId]](), set[tuple[str, RunId]]()
    for name, state in states.items():
        for there in state.jobs:
            if there.is_found:
                is_found.add((name, there.run))
            elif not (there.ways or there.bandwidth_gbps or there.awaits_task):
                without.add((name, there.run))
    if not (without or is_found):
        return {}
    found: dict[str, list[Change]] = {}
    for job in jobs:
        if job.state is not JobState.RUNNING:
            continue
        run, is_counted = RunId(job.id, job.restarts), job.ways or job.bandwidth_gbps
        for name in job.allocated:
            if (name, run) in is_found or (is_counted and (name, run) in without):
                found.setdefault(name, []).append(Change(run, REVISION, job.ways, job.bandwidth_gbps))
    return found


class AgentLink:
    """Talks with the agents, learns from them, and keeps the profiles by which jobs are spread (`spreading`).

    `agents` is None where there are none, `learner` where nothing is learnt, `record` where no measurement is kept.
    """

    def __init__(
        self,
        agents: Agents | None,
        learner: Learner | None,
        spreading: SpreadRules,
        record: MeasurementRecord | None = None,
    ) -> None:
        self._agents, self._learner, self._record = agents, learner, record
        self._told: list[tuple[RunId, tuple[str, ...]]] | None = None
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
        if agents is None:
            return None
        self.show_active(agents, observation.jobs)
        if self._record is not None:
            self._record.add(agents.reports(), observation.jobs, now_s)
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

    def show_active(self, agents: Agents, jobs: Iterable[ObservedJob]) -> None:
        """Tell the agents which runs are active, unless these are as they were."""
        active = [job for job in jobs if job.state.occupies_nodes]
        runs = [(RunId(job.id, job.restarts), job.allocated) for job in active]
        if runs == self._told:
            return
        tasks = {job.id: ArrayTask(job.id, *job.task) for job in active if job.task is not None}
        agents.show_active(
            {
                node: ActiveRuns(there, frozenset(tasks[run.job_id] for run in there if run.job_id in tasks))
                for node, there in runs_by_node(runs).items()
            }
        )
        self._told = runs

    def offer(self, observation: Observation, states: Mapping[str, NodeState] | None, now_s: float) -> Offer | None:
        """What offers exploring runs in this cycle; None where nothing is explored."""
        learner = self._learner
        return None if learner is None else learner.offer(observation, self.spreading, states or {}, now_s)

    def place(self, starts: Iterable[Start], situation: Situation, now_s: float) -> frozenset[int]:
        """Note the runs that are about to be placed; return the ids of the jobs whose ways are to be changed."""
        return frozenset() if self._learner is None else self._learner.place(starts, situation, self.spreading, now_s)
