"""Profiles learnt from running jobs: which job explores next, and what is known of its program so far.

The first waiting job of a (program, processes) explores, on empty nodes (module exploration). The others run by the
profile so far, or wait while there is none. Each run adds to what is known (module evidence), and starts a
re-measurement if the program has changed (module drift).

The caller runs and measures the programs: an agent on the nodes, or a simulation.

Source: Spread-n-Share (SC'19), sections 4.2 and 5.2.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from slurm_sns.model import Alternative
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.drift import DriftParameters, Monitored, watched
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence, Measurement
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep, exploring
from slurm_sns.policies.spread_n_share.scales import choose, without_shared_ways

#: What a profile is kept for: a program and its number of processes.
Key = tuple[str, int]


class LearnableJob(NamedTuple):
    """A job whose program has a name, so that the measurements of its run can be kept.

    `types` are the types of the nodes that it may ever use; empty for all nodes of the cluster.
    """

    id: int
    key: Key
    request: Request
    types: tuple[NodeType, ...] = ()


class Offer(NamedTuple):
    """How a job may run now: its alternatives, none while it has to wait for another job of its program.

    A job with a `step` explores if it is started with its first alternative.
    """

    alternatives: tuple[Alternative, ...]
    step: ExplorationStep | None = None


@dataclass
class Learning:
    """What is known of each (program, processes), and which exploring runs are under way.

    `types` are the node types of the cluster. `known` and `steps` (by job id) are all that must survive a restart.
    `can_run` tells whether a program can run at a scale; where it cannot, nothing is explored.
    """

    exploration: Exploration
    types: tuple[NodeType, ...]
    drift: DriftParameters = field(default_factory=DriftParameters)
    can_run: Callable[[Key, int], bool] = lambda _key, _scale: True
    known: dict[Key, KnownEvidence] = field(default_factory=dict)
    steps: dict[int, tuple[Key, ExplorationStep]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_profile: dict[Key, dict[Request, tuple[Alternative, ...]]] = {}

    def of(self, key: Key) -> KnownEvidence:
        """What is known of this program and number of processes."""
        return self.known.setdefault(key, KnownEvidence(*key))

    def offers(self, waiting: Iterable[LearnableJob]) -> dict[int, Offer]:
        """How each waiting job may run now, by job id; only the first job of a (program, processes) is offered a step.

        Raises:
            Infeasible: the nodes could not hold one of the jobs even when they are all empty.
        """
        explored_now = {key for key, _ in self.steps.values()}
        offers = {}
        for job in waiting:
            others = self._alternatives(job)
            step = None if job.key in explored_now else self.next_step(job)
            if step is not None:
                explored_now.add(job.key)
            offers[job.id] = Offer(others) if step is None else self.offer(job, step, others)
        return offers

    def next_step(self, job: LearnableJob) -> ExplorationStep | None:
        """The next exploring run of the job's program, whoever explores now.

        None if there is none, or if the job cannot run at that scale.

        Raises:
            Infeasible: the nodes could not hold the job even when they are all empty.
        """
        return self._next_step(self.known.get(job.key) or KnownEvidence(*job.key), job)

    def offer(self, job: LearnableJob, step: ExplorationStep, others: Iterable[Alternative]) -> Offer:
        """The offer of this step: empty nodes at its scale, then the job's other alternatives."""
        types = without_shared_ways(self._types(job), self.exploration.spreading.shared_ways)
        return Offer(exploring(step, others, job.request, types), step)

    def started(self, job: LearnableJob, step: ExplorationStep) -> None:
        """Note that the job explores; until it has ended, no other job of its (program, processes) does."""
        self.steps[job.id] = (job.key, step)

    def ended(self, job_id: int) -> ExplorationStep | None:
        """Note that the job has ended; return its step, or None if it did not explore."""
        _, step = self.steps.pop(job_id, (None, None))
        return step

    def measured(self, job: LearnableJob, measurement: Measurement) -> None:
        """Learn from the measurement of an exploring run."""
        self._learn(self.of(job.key).with_measurement(measurement), job)

    def monitored(self, job: LearnableJob, seen: Monitored, serving: Program | None = None) -> None:
        """Learn from an ordinary run; it can show drift only if the program has a profile.

        `serving` is the profile that jobs run by, if that is not the one that has been learnt.
        """
        known = self.of(job.key)
        self._learn(watched(known, seen, self.drift, serving), job)

    def reconsider(self, job: LearnableJob) -> None:
        """Look again whether exploration is complete: what can run may have changed."""
        self._learn(self.of(job.key), job)

    def _learn(self, known: KnownEvidence, job: LearnableJob) -> None:
        """Store what is known now; exploration without further steps is complete."""
        if known.gathering and self._is_complete(known, job):
            known = known.settled()
        if known.current != self.of(job.key).current:
            self._by_profile.pop(job.key, None)
        self.known[job.key] = known

    def _next_step(self, known: KnownEvidence, job: LearnableJob) -> ExplorationStep | None:
        """The next exploring run of the job's program; None if there is none or it cannot run at that scale."""
        step = self.exploration.next_step(known, job.request, self._types(job))
        return step if step is not None and self.can_run(job.key, step.scale) else None

    def _is_complete(self, known: KnownEvidence, job: LearnableJob) -> bool:
        """Whether exploration is complete: no scale is left, for the job and for any other with as many processes.

        A job that cannot be spread as far as others (fewer tasks, --sns-max-scale) takes no scale from the profile.
        """
        if self._next_step(known, job) is not None:
            return False
        widest = replace(job.request, tasks=job.request.processes, cpus_per_task=1, max_scale=None)
        is_all_there = known.gathering.keys() >= known.current.keys()
        return is_all_there or self._next_step(known, job._replace(request=widest)) is None

    def _types(self, job: LearnableJob) -> tuple[NodeType, ...]:
        return job.types or self.types

    def _alternatives(self, job: LearnableJob) -> tuple[Alternative, ...]:
        """The alternatives by the profile so far, none without one; remembered until the profile changes."""
        by_request = self._by_profile.setdefault(job.key, {})
        if job.request not in by_request:
            profile, spreading = self.of(job.key).profile(), self.exploration.spreading
            chosen = choose(job.request, profile, self._types(job), spreading).alternatives if profile else ()
            by_request[job.request] = chosen
        return by_request[job.request]
