"""How jobs advance once they are started: the model that tells the engine when they will end.

`Fixed` knows the end at the start. `Contended` (module contended) changes ends when neighbours start and end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.policies.placement.node_arrays import Indices


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """A job that runs or ran: when, how and on which nodes of the pool."""

    job: Job
    alternative: Alternative
    nodes: Indices
    start_s: Seconds
    end_s: Seconds


class Progress(Protocol):
    """A progress model, told of every start and every finish in the order of time."""

    def start(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The job with its end, and the jobs that it disturbs with their new ends."""
        ...

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The jobs whose ends change because this job has ended, with their new ends."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every job runs for the seconds that `run_time` gives."""

    run_time: Callable[[Job, Alternative], Seconds]

    def start(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The job with its end."""
        job, alternative, nodes, start_s = placed.job, placed.alternative, placed.nodes, placed.start_s
        return (PlacedRun(job, alternative, nodes, start_s, end_s=start_s + self.run_time(job, alternative)),)

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:  # noqa: ARG002  the protocol's
        """No other job's end changes."""
        return ()
