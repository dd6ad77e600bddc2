"""Learning in the loop: it follows runs, keeps the state in the store, and tells the agents which reports are stored.

Jobs can be learnt from that are spreadable and whose program has a name. Nothing here keeps a job from being placed:
while the store does not answer, learning pauses, and the reports stay unacknowledged at the agents. A run is stored
before its placement is sent. Evidence and the run that it comes from change in one transaction; a report is
acknowledged after that.

Jobs run by measured profiles where these are complete, by imported ones otherwise. An imported profile serves until the
exploration of that (program, processes) has been complete; it stays in the store. A program without an imported profile
runs by what is measured as soon as that makes a profile.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.model import Start
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence, Scales
from slurm_sns.policies.spread_n_share.learning import Key
from slurm_sns.policies.spread_n_share.profile_reading import LONGEST_SOURCE
from slurm_sns.scheduler.learning.conclusions import Conclusion
from slurm_sns.scheduler.learning.exploration import LearningExplorer, key_of, learnable
from slurm_sns.scheduler.learning.values import (
    LearningChanges,
    LearningRules,
    LearningState,
    LearningStore,
    Learnt,
    RunToLearn,
)
from slurm_sns.scheduler.observation import JobState, Observation, ObservedNode
from slurm_sns.scheduler.ports import Agents
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.node_sets import NodeKinds, kinds_of
from slurm_sns.scheduler.snapshot.situation import Explorations, ExploringRun, Offer, Situation
from slurm_sns.scheduler.snapshot.spreading import SpreadRules
from slurm_sns.task_ids import task_id, task_of
from slurm_sns.wire.values import NodeState, RunId


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
        exploration = self._rules.exploration_on(managed)
        conclusion = Conclusion(self._state, self._rules, exploration, spreading.programs, now_s)
        conclusion.take(reports)
        conclusion.follow(jobs)
        conclusion.renew(self._wishes(observation, spreading))
        changes = conclusion.changes()
        if self._save(changes, now_s):
            for line in changes.said:
                self._log(line)
            if reports:  # also those from which nothing can be learnt (any more)
                self._agents.acknowledge([report.key for report in reports])

    def offer(
        self, observation: Observation, spreading: SpreadRules, states: Mapping[str, NodeState], now_s: float
    ) -> Offer | None:
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
        ).offers

    def place(
        self, starts: Iterable[Start], situation: Situation, spreading: SpreadRules, now_s: float
    ) -> frozenset[int]:
        """Store the runs that are about to be placed; return the ids of the jobs whose ways are to be changed."""
        runs = list(_runs(starts, situation, spreading, now_s))
        if not runs or not self._save(LearningChanges(runs=tuple(runs)), now_s):
            return frozenset()
        return frozenset(run.run.job_id for run in runs if run.step is not None and run.step.samples)

    def _name_tasks(self, observation: Observation, now_s: float) -> None:
        """Give the runs of tasks that were placed from their array's record the job ids that Slurm has given them."""
        unnamed = [run for run in self._state.runs if task_of(run.job_id) is not None]
        if not unnamed:
            return
        ids = {task_id(*job.task): job.id for job in observation.jobs if job.task is not None}
        gone = tuple(run for run in unnamed if run.job_id in ids)
        named = (replace(self._state.runs[run], run=run._replace(job_id=ids[run.job_id])) for run in gone)
        self._save(LearningChanges(runs=tuple(named), gone=gone), now_s)

    def _wishes(self, observation: Observation, spreading: SpreadRules) -> Iterator[tuple[int, Key]]:
        """The ids of our waiting jobs that ask for a re-measurement, each with what it asks that for."""
        if not self._rules.explore:
            return
        for job in observation.jobs:
            hints = job.hints
            if hints is not None and hints.reprofile and job.state is JobState.PENDING:
                key = key_of(job, spreading)
                if key is not None:
                    yield job.id, key

    def _save(self, changes: LearningChanges, now_s: float) -> bool:
        """Make these changes, in the store and here; False if the store does not take them."""
        if not changes:
            return True
        try:
            self._store.save(changes)
        except SnsError as problem:
            self._outage.met(str(problem), now_s)
            return False
        self._outage.over(now_s)
        self._state = self._state.after(changes)
        return True


def number_of_managed(nodes: Iterable[ObservedNode], settings: Settings) -> int:
    """How many nodes are in managed partitions."""
    return sum(not node.partitions.isdisjoint(settings.partitions) for node in nodes)


def explored(start: Start, explorations: Explorations) -> ExploringRun | None:
    """The exploring run that the start is; None for an ordinary one."""
    offered = explorations.offered.get(start.job_id)
    return offered if offered is not None and start.alternative == offered.alternative else None


def _runs(starts: Iterable[Start], situation: Situation, spreading: SpreadRules, now_s: float) -> Iterator[RunToLearn]:
    """The runs that these starts make, as far as something can be learnt from them."""

    @cache
    def kinds_in(partitions: tuple[str, ...]) -> NodeKinds:
        there = set(partitions)
        return kinds_of(node for node in situation.nodes.values() if not node.partitions.isdisjoint(there))

    for start in starts:
        job = situation.job(start.job_id)
        assert job is not None  # noqa: S101  planning lets no other through
        key = key_of(job, spreading)
        exploring = explored(start, situation.explorations)
        if exploring is not None:
            wanted, step = exploring.job, exploring.step
        elif key is not None and (kinds := kinds_in(job.partitions)):
            wanted, step = learnable(job, key, kinds, spreading.programs.get(key[0])), None
        else:
            continue
        yield RunToLearn(
            RunId(job.id, job.restarts),
            wanted.key,
            start.alternative.scale,
            start.nodes,
            wanted.request,
            wanted.types,
            ways=start.alternative.demand.ways,
            step=step,
            user_id=job.user_id,
            placed_s=now_s,
        )


MEASURED_HERE = "measured here"


class ServedProfiles:
    """Joins imported and measured profiles. A profile that stays the same stays the very same object."""

    def __init__(self) -> None:
        self._imported: Mapping[str, Program] = {}
        self._learnt: Mapping[Key, Learnt] = {}
        self._programs: Mapping[str, Program] = {}
        self._measured: dict[Key, tuple[Scales, Program | None]] = {}

    def of(self, imported: Mapping[str, Program], learnt: Mapping[Key, Learnt]) -> Mapping[str, Program]:
        """The programs by name."""
        if imported is self._imported and learnt is self._learnt:
            return self._programs
        measured: dict[str, list[Program]] = {}
        kept: dict[Key, tuple[Scales, Program | None]] = {}
        for key, each in learnt.items():
            known = self._measured.get(key)
            if known is None or known[0] is not each.known.current:
                known = (each.known.current, each.known.profile())
            kept[key] = known
            if known[1] is not None and serves(each.known, imported.get(key[0])):
                measured.setdefault(key[0], []).append(known[1])
        found = dict(imported)
        for name, programs in measured.items():
            joined = _joined(imported.get(name), programs)
            before = self._programs.get(name)
            found[name] = before if before == joined and before is not None else joined
        self._measured, self._imported, self._learnt = kept, imported, learnt
        if found != self._programs:
            self._programs = found
        return self._programs


def serves(known: KnownEvidence, imported: Program | None) -> bool:
    """Whether jobs run by what is measured, if it makes a profile, rather than by the imported profile."""
    return known.is_explored or imported is None or not imported.at(known.processes)


def _joined(imported: Program | None, measured: list[Program]) -> Program:
    """One program with the measured runs, and the imported ones of all other numbers of processes.

    What was measured beyond the imported program's largest scale is left out: it was measured before the import.
    """
    ours = {run.processes for program in measured for run in program.runs}
    others = () if imported is None else tuple(run for run in imported.runs if run.processes not in ours)
    most = None if imported is None else imported.max_scale
    here = (run for program in measured for run in program.runs if most is None or run.scale <= most)
    runs = tuple(sorted((*others, *here), key=lambda run: (run.processes, run.scale)))
    if imported is None:
        return replace(measured[0], runs=runs, source=MEASURED_HERE)
    counts = ", ".join(map(str, sorted(ours)[:20]))
    here_too = f"{counts} processes {MEASURED_HERE}"
    room = LONGEST_SOURCE - len(here_too) - 2
    source = f"{imported.source[:room]}; {here_too}" if others else MEASURED_HERE
    return replace(imported, runs=runs, source=source)
