"""What is kept of live learning, and its rules: evidence by (program, processes), runs to learn from, their reports.

All of it is stored, so that a restart of the scheduler at any moment loses nothing and counts nothing twice. The rules
are the site's settings, and the limits that bound what learning keeps and costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from sys import maxsize
from typing import NamedTuple, Protocol

from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key, LearnableJob
from slurm_sns.wire.values import RunId, RunReport

#: How long after the end of a run its reports are waited for: an agent reconnects within ten seconds (authenticated),
#: and an epilog that takes two minutes is longer than Slurm's own default limit for it.
REPORTS_WAIT_S = 120.0
#: After so many exploring runs in a row without a measurement a scale is not explored ...
MOST_FAILURES = 2
#: ... for a day: such as a program that does not run on so many nodes, or that ends before it was sampled.
FAILURE_S = 86_400.0
#: A program is re-measured at its users' request at most once in this time: nobody can keep another user's program in
#: exploration for ever.
REPROFILE_PAUSE_S = 86_400.0
#: The most (program, processes) with evidence. Their names come from users. Each takes about 2 KB in memory and in the
#: store, so all of them 20 MB; a large site has some hundred programs.
MOST_LEARNT = 10_000
#: The most users kept for one (program, processes), who may see what is learnt of it.
MOST_USERS = 32


@dataclass(frozen=True, slots=True)
class LearningRules:
    """The rules of a site. `explore`: exploring runs are made, for at most `most_nodes` (a fraction) of its nodes."""

    exploration: Exploration
    drift: DriftParameters
    explore: bool = False
    most_nodes: float = 0.25

    def exploration_on(self, nodes: int) -> Exploration:
        """How far exploration goes on a cluster with so many managed nodes."""
        return replace(self.exploration, most_nodes=self.limit(nodes))

    def limit(self, nodes: int) -> int:
        """How many of this number of managed nodes may hold exploring runs at any time: at least one."""
        return max(1, int(self.most_nodes * nodes))

    @property
    def watch(self) -> DriftParameters:
        """When a program counts as changed. Without exploration strange runs are only counted."""
        return self.drift if self.explore else replace(self.drift, patience=maxsize)


class FailedRuns(NamedTuple):
    """How many exploring runs in a row gave no measurement at a scale, and when the last one ended (Unix seconds)."""

    runs: int
    last_s: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is learnt of one (program, processes).

    Attributes:
        known: the evidence.
        used_s: when it was last learnt from a run (Unix seconds).
        failures: the exploring runs that gave no measurement, by scale.
        renewed_s: when a re-measurement last began at the request of an owner (--sns-reprofile), 0 if never.
        renewed_by: the job id of that owner's job, 0 if there was none.
        users: the user ids of those whose runs were learnt from last, the latest last.
    """

    known: KnownEvidence
    used_s: float = 0.0
    failures: Mapping[int, FailedRuns] = field(default_factory=dict)
    renewed_s: float = 0.0
    renewed_by: int = 0
    users: tuple[int, ...] = ()


class RunOutcome(StrEnum):
    """What became of a run, as Slurm's record says."""

    UNDER_WAY = "under way"
    """It is placed, or runs, or is suspended."""
    SUCCEEDED = "succeeded"
    """Slurm's COMPLETED: it ended by itself, with the exit code 0."""
    FAILED = "failed"
    """It has ended in any other way."""


@dataclass(frozen=True, slots=True)
class RunToLearn:
    """A run of a job whose program has a name: what its measurement will mean.

    `scale`, `nodes` and `ways` (its own on each node) are those of its placement; `request` and `types` say how far its
    program can be explored. `step` is what it explores, None for an ordinary run. `ended_s` is when we saw that it had
    ended, 0 before. `was_suspended`: its time is no run time.
    """

    run: RunId
    key: Key
    scale: int
    nodes: tuple[str, ...]
    request: Request
    types: tuple[NodeType, ...]
    ways: int = 0
    step: ExplorationStep | None = None
    user_id: int = 0
    placed_s: float = 0.0
    outcome: RunOutcome = RunOutcome.UNDER_WAY
    ended_s: float = 0.0
    was_suspended: bool = False

    @property
    def job(self) -> LearnableJob:
        """Its job, as learning knows it."""
        return LearnableJob(self.run.job_id, self.key, self.request, self.types)

    @property
    def explores_now(self) -> bool:
        """Whether it is an exploring run that has not ended."""
        return self.step is not None and self.outcome is RunOutcome.UNDER_WAY


#: Reports about a run, by node.
Reports = Mapping[str, RunReport]


@dataclass(frozen=True, slots=True)
class LearningState:
    """Everything that is kept of learning. `reports` are those about `runs`, by run and node."""

    learnt: Mapping[Key, Learnt] = field(default_factory=dict)
    runs: Mapping[RunId, RunToLearn] = field(default_factory=dict)
    reports: Mapping[RunId, Reports] = field(default_factory=dict)

    def after(self, changes: "LearningChanges") -> "LearningState":
        """What is kept once these changes are made."""
        if not changes:
            return self
        gone, forgotten, learnt = set(changes.gone), set(changes.forgotten), self.learnt
        runs = {**self.runs, **{each.run: each for each in changes.runs}}
        runs = {key: run for key, run in runs.items() if key not in gone}
        reports = {key: dict(each) for key, each in self.reports.items() if key in runs}
        for report in changes.reports:
            reports.setdefault(report.run, {})[report.node] = report
        if changes.learnt or forgotten:  # else it stays the same object, so that no profile is made again
            learnt = {key: each for key, each in {**learnt, **changes.learnt}.items() if key not in forgotten}
        return LearningState(learnt, runs, reports)


NOTHING_LEARNT = LearningState()


@dataclass(frozen=True, slots=True)
class LearningChanges:
    """What changes in the store, in one transaction. The reports about runs that are gone go with them.

    `said` are lines for the log: exploring runs that gave no measurement.
    """

    learnt: Mapping[Key, Learnt] = field(default_factory=dict)
    forgotten: tuple[Key, ...] = ()
    runs: tuple[RunToLearn, ...] = ()
    gone: tuple[RunId, ...] = ()
    reports: tuple[RunReport, ...] = ()
    said: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.learnt or self.forgotten or self.runs or self.gone or self.reports)


class LearningStore(Protocol):
    """Keeps the state of learning over a restart."""

    def load(self) -> tuple[LearningState, tuple[str, ...]]:
        """The state, and a line for each stored row that cannot be read; such a row is left out.

        Raises:
            Unreachable: the store cannot be read.
        """
        ...

    def save(self, changes: LearningChanges) -> None:
        """Write the changes in one transaction.

        Raises:
            Unreachable: nothing was written.
        """
        ...
