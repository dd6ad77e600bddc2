"""The yields of placed jobs: one yield for all, then raised job by job with the CPU that is left.

The largest yield that all jobs can have is 1 / max(1, L), where L is the highest CPU load of any node. Then the jobs
whose nodes all have CPU left are raised one after the other, each as far as possible: those first that need the least
CPU over all their tasks (ties: the earlier submit). A job that has been raised has yield 1, or a node without CPU left;
so one pass over the jobs raises all that can be raised.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil

from oracles.dfrs.occupancy import Occupancy
from slurm_sns.model import Seconds, Share
from slurm_sns.policies.dfrs.instant import FluidJob, Nodes


def equal_yield(occupancy: Occupancy, nodes: Nodes) -> Fraction:
    """The largest yield that all placed jobs can have."""
    return 1 / max(Fraction(1), *(occupancy.load(node) for node in range(len(nodes.cpu))))


def sliced(occupancy: Occupancy, jobs: Sequence[FluidJob], switch_loss: float = 0) -> dict[int, Share]:
    """The yields under gang scheduling.

    A node with a CPU load of 2.5 has three time slices, in each of which some of its jobs run at full speed. A job runs
    on all of its nodes at once, so its node with the most slices decides. The slices are not filled up with others.
    Each of several slices loses a fraction by the switch to it.
    """
    found: dict[int, Share] = {}
    for job in jobs:
        if job.id in occupancy.places:
            slices = max(1, *(ceil(occupancy.load(node)) for node in occupancy.places[job.id]))
            found[job.id] = Fraction(1, slices) * (1 if slices == 1 else 1 - Fraction(switch_loss))
    return found


def weighed(occupancy: Occupancy, jobs: Sequence[FluidJob]) -> dict[int, Share]:
    """The yields by weight: the node with the highest load decides, which shares its CPU in proportion to needs."""
    return {
        job.id: 1 / max(Fraction(1), *(occupancy.load(node) for node in occupancy.places[job.id]))
        for job in jobs
        if job.id in occupancy.places
    }


def average_yield(job: FluidJob) -> int:
    """The order in which raising yields improves their average most."""
    return job.cpu * job.tasks


def average_stretch(next_run_s: Seconds) -> Callable[[FluidJob], Seconds]:
    """The order in which raising yields improves the average of the stretches estimated for the next run most."""
    return lambda job: job.cpu * job.tasks * (next_run_s - job.submit_s)


def raised(
    nodes: Nodes,
    jobs: Sequence[FluidJob],
    places: Mapping[int, tuple[int, ...]],
    yields: Mapping[int, Share],
    order: Callable[[FluidJob], Seconds] = average_yield,
) -> dict[int, Share]:
    """The yields raised as far as possible, in this order of the jobs (given in submit order)."""
    left: list[Seconds] = list(nodes.cpu)
    result = dict(yields)
    placed = [job for job in jobs if job.id in places]
    for job in placed:
        for node in places[job.id]:
            left[node] -= job.cpu * yields[job.id]
    for job in sorted(placed, key=order):
        tasks = Counter(places[job.id])
        raise_by = min(
            1 - result[job.id], *(_divided(max(left[node], 0), count * job.cpu) for node, count in tasks.items())
        )
        result[job.id] += raise_by
        for node, count in tasks.items():
            left[node] -= count * job.cpu * raise_by
    return result


def _divided(amount: Seconds, by: int) -> Seconds:
    return amount / by if isinstance(amount, float) else Fraction(amount, by)
