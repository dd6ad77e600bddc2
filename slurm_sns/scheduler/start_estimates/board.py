"""The estimates as they stand: the thread that makes them writes it, the loop and the answers read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slurm_sns.model import Snapshot
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.situation import Situation


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a waiting job is expected to start. All moments are Unix seconds.

    Attributes:
        made_s: when it was made.
        low_s, high_s: the range; None if the job does not start within the look ahead.
        limits_s: its start if all jobs run until their limits; None if that lies beyond the look ahead.
        not_before_s: how far was looked, where there is no range.
        waits_for: the job whose end it waits for, by limits; None for none.
        nodes: the nodes that it gets then.
    """

    made_s: float
    low_s: float | None = None
    high_s: float | None = None
    limits_s: float | None = None
    not_before_s: float | None = None
    waits_for: int | None = None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of waiting jobs by job id, and of the starts of the last week how many lay in their range."""

    of: Mapping[int, StartEstimate] = field(default_factory=dict)
    starts: int = 0
    inside: int = 0


NO_ESTIMATES = Estimates()


class EstimateBoard:
    """Where the estimates stand. They are replaced as a whole, never changed, so readers need no lock."""

    def __init__(self) -> None:
        self.now = NO_ESTIMATES
        #: What keeps estimates from being made or stored now; empty when nothing does.
        self.trouble = ""
        #: Estimates a job that is only tried; None where no estimates are made.
        self.of_tried: Callable[[Situation, Snapshot, ObservedJob], StartEstimate | None] | None = None

    def by_limits(self, job_id: int) -> float | None:
        """When the job starts if all jobs run until their limits; None if that is not known."""
        found = self.now.of.get(job_id)
        return None if found is None else found.limits_s
