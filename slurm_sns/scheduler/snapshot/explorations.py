"""Exploring runs that waiting jobs are offered. `scheduler.learning` decides which; what a policy plans on has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from slurm_sns.model import Alternative, Job, Node
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.policies.spread_n_share.learning import Key, LearnableJob
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.eligibility import Eligibility


def explores(key: Key, step: ExplorationStep) -> str:
    """What an exploring run does, in words."""
    program, processes = key
    how = "its ways are changed while it runs" if step.samples else "it is timed"
    return f"explores {program} with {processes} processes at scale {step.scale}: {how}"


@dataclass(frozen=True, slots=True)
class ExploringRun:
    """An exploring run that a waiting job is offered on the nodes `allowed`.

    It explores if it is started with `alternative`.
    """

    job: LearnableJob
    step: ExplorationStep
    alternative: Alternative
    allowed: frozenset[str]

    def __str__(self) -> str:
        return explores(self.job.key, self.step)


@dataclass(frozen=True, slots=True)
class Explorations:
    """What is offered in a cycle, and why other jobs, whose programs are not explored yet, are not: by job id."""

    offered: Mapping[int, ExploringRun] = field(default_factory=dict)
    not_offered: Mapping[int, str] = field(default_factory=dict)


NO_EXPLORATIONS = Explorations()


class Explorer(Protocol):
    """Offers exploring runs in one cycle."""

    def offers(
        self, waiting: Sequence[Job], jobs: Mapping[int, ObservedJob], eligibility: Eligibility, nodes: Sequence[Node]
    ) -> tuple[list[Job], Explorations]:
        """The waiting jobs, in their order, some with an exploring alternative before the others; and what is offered.

        `jobs` are the observed ones by id, `nodes` those of the snapshot.
        """
        ...
