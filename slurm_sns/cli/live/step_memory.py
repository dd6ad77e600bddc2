"""How much memory a job used on its fullest node, as far as accounting can tell: a guess between two bounds.

A job's request for memory is for each of its nodes. What accounting has is of another kind: of each step the peak of
its largest task (MaxRSS), and the sum over its tasks of what each had when it was last looked at (TRESUsageInTot; Slurm
looks every JobAcctGatherFrequency seconds). So for a step on its fullest node:

- at least: the largest task, because it was on some node.
- about: the larger one of that and of the sum divided by the step's nodes. The sum is no bound: a task that has freed
  memory before it ended counts with the rest only, and tasks may have been looked at last at different moments.
- at most: the largest task times the most tasks that may have been there.

Steps that ran at the same time on the same node add up, for `about` and `at most`: the batch script and its `srun`, or
several `srun` in the background. Their peaks may have been at different moments, so `at least` is that of one step.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class MemoryBounds(NamedTuple):
    """MiB on the fullest node."""

    at_least_mb: int
    about_mb: int
    at_most_mb: int


@dataclass(frozen=True, slots=True)
class StepUse:
    """A step as accounting knows it.

    `end_s` is infinite while it runs. `fullest_tasks` is the most tasks that a node of it may have. `largest_mb` and
    `last_total_mb` are MaxRSS and the memory of TRESUsageInTot, None where accounting has none.
    """

    name: str
    state: str
    start_s: float
    end_s: float
    nodes: tuple[str, ...]
    tasks: int
    fullest_tasks: int
    largest_mb: int | None
    last_total_mb: int | None = None

    @property
    def memory(self) -> MemoryBounds | None:
        """What it used on its fullest node; None if accounting has nothing, or 0 as of a step that was too short."""
        if not self.largest_mb:
            return None
        mean_mb = -(-(self.last_total_mb or 0) // max(1, len(self.nodes)))
        at_most_mb = self.largest_mb * max(1, self.fullest_tasks)
        return MemoryBounds(self.largest_mb, min(max(self.largest_mb, mean_mb), at_most_mb), at_most_mb)


def tasks_on_fullest_node(tasks: int, nodes: int, most_cpus: int) -> int:
    """The most tasks that one of the nodes may have, as nothing says how they were spread (`srun -m plane=8`).

    All but one on each of the others, and not more than a node has CPUs.
    """
    return tasks if nodes <= 1 else max(1, min(tasks - nodes + 1, most_cpus))


def cpus_on_fullest_node(cpus: int, nodes: int, first: int) -> int:
    """The most CPUs that one of the nodes may have given: all but one of each of the others, and the `first` one's."""
    if nodes <= 1:
        return cpus
    return max(first, cpus - max(first, 1) - (nodes - 2))


def job_memory(steps: Iterable[StepUse]) -> MemoryBounds | None:
    """What the steps used together on the job's fullest node; None if accounting has no memory of any."""
    known = [(step, memory) for step in steps if (memory := step.memory) is not None]
    if not known:
        return None
    on: defaultdict[str, list[tuple[StepUse, MemoryBounds]]] = defaultdict(list)
    for step, memory in known:
        for node in step.nodes or ("",):
            on[node].append((step, memory))
    return MemoryBounds(
        max(memory.at_least_mb for _, memory in known),
        max(_peak([(step, memory.about_mb) for step, memory in there]) for there in on.values()),
        max(_peak([(step, memory.at_most_mb) for step, memory in there]) for there in on.values()),
    )


def _peak(steps: Sequence[tuple[StepUse, int]]) -> int:
    """The largest sum over steps that ran at the same time. One that ends when another one begins is before it."""
    # A step that began and ended within a second counts as having run in that second.
    changes = [(step.start_s, 1, amount) for step, amount in steps]
    changes += [(max(step.end_s, step.start_s + 1), 0, -amount) for step, amount in steps]
    peak = now = 0
    for _, _, amount in sorted(changes):
        now += amount
        peak = max(peak, now)
    return peak
