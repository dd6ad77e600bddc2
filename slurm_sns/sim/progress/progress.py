"""How jobs advance once they are started: the model that tells the engine when they will end.

`Fixed` knows it at the start. `Contended` (module contended) times running jobs anew when neighbours come and go.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.policies.placement.node_arrays import Indices


@dataclass(frozen=True, slots=True)
class Placement:
    """A job that runs or ran: when, how and on which nodes of the pool."""

    job: Job
    alternative: Alternative
    nodes: Indices
    start_s: Seconds
    end_s: Seconds


class Progress(Protocol):
    """A model of progress, told of every start and every finish in the order of time."""

    def start(self, placed: Placement) -> Iterable[Placement]:
        """The job with its end, and the jobs that it disturbs with the ends that they have now."""
        ...

    def finish(self, placed: Placement) -> Iterable[Placement]:
        """The jobs whose end changes since this one has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every job runs for the seconds that `run_time` gives."""

    run_time: Callable[[Job, Alternative], Seconds]

    def start(self, placed: Placement) -> Iterable[Placement]:
        """The job with its end."""
        return (replace(placed, end_s=placed.start_s + self.run_time(placed.job, placed.alternative)),)

    def finish(self, placed: Placement) -> Iterable[Placement]:  # noqa: ARG002  the protocol's
        """Nobody's end changes."""
        return ()
