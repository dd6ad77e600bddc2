"""How often the jobs of a simulation in the event engine are preempted and migrated.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section V.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from slurm_sns.model import ActiveJob, ActiveState
from slurm_sns.sim.engine.planned import PlannedSimulation

#: The nodes of each running job.
Running = Mapping[int, tuple[str, ...]]


@dataclass(slots=True)
class Disruptions:
    """How often a job was preempted and migrated, and how many of its tasks left a node in migrations.

    A job was preempted if it ran before an instant and not after it, and migrated if it ran before and after, but on
    other nodes.
    """

    preemptions: int = 0
    migrations: int = 0
    tasks_moved: int = 0


def running(active: Mapping[int, ActiveJob]) -> Running:
    """The nodes of the jobs that run."""
    return {job.id: job.nodes for job in active.values() if job.state is ActiveState.RUNNING}


def count(found: dict[int, Disruptions], before: Running, after: Running) -> None:
    """Add what happened between before an instant and after it, by job."""
    for identity, nodes in before.items():
        if identity not in after:
            found.setdefault(identity, Disruptions()).preemptions += 1
        elif left := (Counter(nodes) - Counter(after[identity])).total():
            mine = found.setdefault(identity, Disruptions())
            mine.migrations += 1
            mine.tasks_moved += left


class CountedSimulation(PlannedSimulation):
    """A simulation with the `disruptions` of each job that had some."""

    def __init__(self, *given, **more) -> None:
        """Start without jobs; the arguments are those of `PlannedSimulation`."""
        super().__init__(*given, **more)
        self.disruptions: dict[int, Disruptions] = {}

    def cycle(self, now_s):
        """Count what the plan changes."""
        before = running(self._active)
        record = super().cycle(now_s)
        count(self.disruptions, before, running(self._active))
        return record
