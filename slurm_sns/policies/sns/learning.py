"""Profiles that are learnt from the jobs which run: which job explores next, and what is known of its program so far.

The first waiting job of a (program, processes) explores, on empty nodes (module exploration). The others run as the
profile so far says, or wait while there is none. What a run gave changes what is known (module evidence), and begins a
renewal where the program has changed (module drift).

How a run is measured, and what a program truly does, is the caller's: an agent on the nodes, or a simulation.

Source: Spread-n-Share (SC'19), sections 4.2 and 5.2.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.request import NodeType, Request
from slurm_sns.policies.sns.alternatives import alternatives
from slurm_sns.policies.sns.drift import DriftParameters, Monitored, watched
from slurm_sns.policies.sns.evidence import Known, Measurement
from slurm_sns.policies.sns.exploration import Exploration, Step, exploring

#: By what profiles are kept: a program and its number of processes.
Key = tuple[str, int]


class LearnableJob(NamedTuple):
    """A job whose program has a name, so that what its run gives can be kept."""

    id: int
    key: Key
    request: Request


class Offer(NamedTuple):
    """How a job may run now: its alternatives, none while it has to wait for another job of its program.

    With a `step` it explores if it is started by the first of them.
    """

    alternatives: tuple[Alternative, ...]
    step: Step | None = None


def can_always_run(_key: Key, _scale: int) -> bool:
    """Whether a program can be run at a scale: yes."""
    return True


@dataclass
class Learning:
    """What is known of each (program, processes), and which steps of exploration run now.

    `types` are the nodes that there are. `known` and `steps` (by job) are all that has to be kept over a restart.
    `can_run` tells whether a program can be run at a scale; no step is taken at one at which it cannot.
    """

    exploration: Exploration
    types: tuple[NodeType, ...]
    drift: DriftParameters = field(default_factory=DriftParameters)
    can_run: Callable[[Key, int], bool] = can_always_run
    known: dict[Key, Known] = field(default_factory=dict)
    steps: dict[int, tuple[Key, Step]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_profile: dict[Key, dict[Request, tuple[Alternative, ...]]] = {}

    def of(self, key: Key) -> Known:
        """What is known of it so far."""
        return self.known.setdefault(key, Known(*key))

    def offers(self, waiting: Iterable[LearnableJob]) -> dict[int, Offer]:
        """What each waiting job may do now, by its id; of one program the first job is offered the step.

        Raises:
            Infeasible: the nodes could not hold one of the jobs even when they are all empty.
        """
        explored_now = {key for key, _ in self.steps.values()}
        offers = {}
        for job in waiting:
            others = self._alternatives(job.key, job.request)
            step = None if job.key in explored_now else self._next_step(self.of(job.key), job)
            if step is None:
                offers[job.id] = Offer(others)
            else:
                explored_now.add(job.key)
                offers[job.id] = Offer(exploring(step, others, job.request, self.types), step)
        return offers

    def started(self, job: LearnableJob, step: Step) -> None:
        """The job has taken the step that it was offered: no other job of its program explores until it has ended."""
        self.steps[job.id] = (job.key, step)

    def ended(self, job_id: int) -> Step | None:
        """The job has ended, whatever its run gave; the step that it had taken, None where it did not explore."""
        _, step = self.steps.pop(job_id, (None, None))
        return step

    def measured(self, job: LearnableJob, measurement: Measurement) -> None:
        """Take in what the exploring run of a job gave."""
        self._learn(self.of(job.key).with_measurement(measurement), job)

    def monitored(self, job: LearnableJob, seen: Monitored) -> None:
        """Take in what was seen of a run that did not explore; nothing can follow from it without a profile."""
        known = self.of(job.key)
        self._learn(watched(known, seen, self.drift), job)

    def _learn(self, known: Known, job: LearnableJob) -> None:
        """Know this from now on; a renewal of which no step is left to run is complete."""
        if known.renewal and self._next_step(known, job) is None:
            known = known.settled()
        if known.current != self.of(job.key).current:
            self._by_profile.pop(job.key, None)
        self.known[job.key] = known

    def _next_step(self, known: Known, job: LearnableJob) -> Step | None:
        """What is still to be run of the job's program, as far as it can be run."""
        step = self.exploration.next_step(known, job.request, self.types)
        return step if step is not None and self.can_run(job.key, step.scale) else None

    def _alternatives(self, key: Key, request: Request) -> tuple[Alternative, ...]:
        """The alternatives by the profile so far, none without one; they stand until something is learnt."""
        by_request = self._by_profile.setdefault(key, {})
        if request not in by_request:
            profile = self.of(key).profile()
            by_request[request] = alternatives(request, profile, self.types, self.exploration.sns) if profile else ()
        return by_request[request]
