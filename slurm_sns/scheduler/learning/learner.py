"""Learning in the loop: it follows runs, keeps the state in the store, and tells the agents which reports are stored.

Jobs can be learnt from that are spreadable and whose program has a name. Nothing here keeps a job from being placed:
while the store does not answer, learning pauses, and the reports stay unacknowledged at the agents. A run is stored
before its placement is sent. Evidence and the run that it comes from change in one transaction; a report is
acknowledged after that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.model import Start
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.learning.conclusions import Reprofile, concluded
from slurm_sns.scheduler.learning.exploration import LearningExplorer, key_of, learnable
from slurm_sns.scheduler.learning.serving import ServedProfiles
from slurm_sns.scheduler.learning.values import (
    LearningChanges,
    LearningRules,
    LearningState,
    LearningStore,
    RunToLearn,
)
from slurm_sns.scheduler.observation import JobState, Observation, ObservedNode
from slurm_sns.scheduler.ports import Agents
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.explorations import Explorations, ExploringRun
from slurm_sns.scheduler.snapshot.node_sets import NodeKinds, kinds_of
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules
from slurm_sns.task_ids import task_id, task_of
from slurm_sns.wire.values import NodeState, RunId, RunReport


class Learner:
    """What the scheduler has learnt of programs, and what it does about it in each cycle."""

    def __init__(
        self, store: LearningStore, agents: Agents, rules: LearningRules, settings: Settings, log: Log
    ) -> None:
        """Go on with what is stored.

        Raises:
            Unreachable: the store cannot be read.
        """
        self._store, self._agents, self._rules, self._settings = store, agents, rules, settings
        self._log = log
        self._outage = Outage(log, "; learning pauses")
        self._serving = ServedProfiles()
        self._state, damaged = store.load()
        for line in damaged:
            log(line)

    @property
    def state(self) -> LearningState:
        """What is kept now; immutable."""
        return self._state

    @property
    def rules(self) -> LearningRules:
        """The rules of the site."""
        return self._rules

    @property
    def trouble(self) -> str:
        """What keeps learning from going on; empty if nothing does."""
        return self._outage.now

    def programs(self, imported: Mapping[str, Program]) -> Mapping[str, Program]:
        """The profiles that jobs run by, by name; the same object while nothing changes."""
        return self._serving.of(imported, self._state.learnt)

    def conclude(self, observation: Observation, spreading: SpreadRules, now_s: float) -> None:
        """Learn from the runs that have ended by now, and acknowledge the reports that are stored.

        `spreading` has the profiles that jobs run by.
        """
        reports = self._agents.reports()
        self._name_tasks(observation, now_s)
        wanted = {run.job_id for run in self._state.runs}
        jobs = {job.id: job for job in observation.jobs if job.id in wanted} if wanted else {}
        managed = number_of_managed(observation.nodes, self._settings)
        state, changes = concluded(
            self._state,
            jobs,
            reports,
            self._wishes(observation, spreading),
            rules=self._rules,
            exploration=self._rules.exploration_on(managed),
            serving=spreading.programs,
            now_s=now_s,
        )
        if self._save(changes, now_s):
            for line in changes.said:
                self._log(line)
            self._state = state
            self._acknowledge(reports)

    def explorer(
        self, observation: Observation, spreading: SpreadRules, states: Mapping[str, NodeState], now_s: float
    ) -> LearningExplorer | None:
        """What offers exploring runs in this cycle; None where exploration is off. `states` are by node."""
        if not self._rules.explore:
            return None
        return LearningExplorer(
            self._state,
            self._rules,
            spreading,
            states=states,
            managed=number_of_managed(observation.nodes, self._settings),
            queue_depth=self._settings.queue_depth,
            now_s=now_s,
        )

    def place(
        self, starts: Iterable[Start], situation: Situation, spreading: SpreadRules, now_s: float
    ) -> frozenset[int]:
        """Store the runs that are about to be placed; return the ids of the jobs whose ways are to be changed."""
        making = _Making(situation, spreading, now_s)
        runs = [run for run in map(making.run, starts) if run is not None]
        if not runs or not self._save(LearningChanges(runs=tuple(runs)), now_s):
            return frozenset()
        known, reports = self._state.runs, self._state.reports
        self._state = LearningState(self._state.learnt, {**known, **{run.run: run for run in runs}}, reports)
        return frozenset(run.run.job_id for run in runs if run.step is not None and run.step.samples)

    def _name_tasks(self, observation: Observation, now_s: float) -> None:
        """Give the runs of tasks that were placed from their array's record the job ids that Slurm has given them."""
        unnamed = [run for run in self._state.runs if task_of(run.job_id) is not None]
        if not unnamed:
            return
        ids = {task_id(*job.task): job.id for job in observation.jobs if job.task is not None}
        names = {run: run._replace(job_id=ids[run.job_id]) for run in unnamed if run.job_id in ids}
        named = {names.get(run, run): replace(each, run=names.get(run, run)) for run, each in self._state.runs.items()}
        changes = LearningChanges(runs=tuple(named[run] for run in names.values()), gone=tuple(names))
        if self._save(changes, now_s):
            self._state = replace(self._state, runs=named)

    def _wishes(self, observation: Observation, spreading: SpreadRules) -> Iterator[Reprofile]:
        """The waiting jobs of ours that ask for a re-measurement."""
        if not self._rules.explore:
            return
        for job in observation.jobs:
            hints = job.hints
            if hints is not None and hints.reprofile and job.state is JobState.PENDING:
                key = key_of(job, spreading)
                if key is not None:
                    yield Reprofile(job.id, key)

    def _acknowledge(self, reports: Iterable[RunReport]) -> None:
        """Acknowledge reports: those that are stored, and those from which nothing can be learnt (any more)."""
        keys = [report.key for report in reports]
        if keys:
            self._agents.acknowledge(keys)

    def _save(self, changes: LearningChanges, now_s: float) -> bool:
        if not changes:
            return True
        try:
            self._store.save(changes)
        except SnsError as problem:
            self._outage.met(str(problem), now_s)
            return False
        self._outage.over(now_s)
        return True


def number_of_managed(nodes: Iterable[ObservedNode], settings: Settings) -> int:
    """How many nodes are in managed partitions."""
    return sum(not node.partitions.isdisjoint(settings.partitions) for node in nodes)


def explored(start: Start, explorations: Explorations) -> ExploringRun | None:
    """The exploring run that the start is; None for an ordinary one."""
    offered = explorations.offered.get(start.job_id)
    return offered if offered is not None and start.alternative == offered.alternative else None


class _Making:
    """Makes the runs of one cycle's placements."""

    def __init__(self, situation: Situation, spreading: SpreadRules, now_s: float) -> None:
        self._situation, self._spreading, self._now_s = situation, spreading, now_s
        self._kinds: dict[tuple[str, ...], NodeKinds] = {}

    def run(self, start: Start) -> RunToLearn | None:
        """The run that this start makes; None if nothing can be learnt from it."""
        job = self._situation.job(start.job_id)
        assert job is not None  # noqa: S101  planning lets no other through
        key = key_of(job, self._spreading)
        exploring = explored(start, self._situation.explorations)
        if exploring is not None:
            wanted, step = exploring.job, exploring.step
        elif key is not None and (kinds := self._kinds_in(job.partitions)):
            wanted, step = learnable(job, key, kinds, self._spreading.programs.get(key[0])), None
        else:
            return None
        alternative = start.alternative
        return RunToLearn(
            RunId(job.id, job.restarts),
            wanted.key,
            alternative.scale,
            start.nodes,
            wanted.request,
            wanted.types,
            ways=alternative.demand.ways,
            step=step,
            user_id=job.user_id,
            placed_s=self._now_s,
        )

    def _kinds_in(self, partitions: tuple[str, ...]) -> NodeKinds:
        """The kinds of these partitions' nodes."""
        if partitions not in self._kinds:
            there, nodes = set(partitions), self._situation.nodes.values()
            self._kinds[partitions] = kinds_of(node for node in nodes if not node.partitions.isdisjoint(there))
        return self._kinds[partitions]
