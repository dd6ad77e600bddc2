"""GREEDY-PMTN: make room for a newcomer by pausing running jobs, as few of them as possible.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

from collections.abc import Sequence

from oracles.dfrs.occupancy import Occupancy
from slurm_sns.policies.dfrs.instant import FluidJob


def make_room(occupancy: Occupancy, newcomer: FluidJob, running: Sequence[FluidJob]) -> list[FluidJob]:
    """Place the newcomer and return the jobs that were paused for it.

    `running` are the jobs that may be paused, with the highest priority first. They are taken away from the lowest
    priority on until the newcomer finds a place. Then those whose nodes still have room return to them, from the
    highest priority on. If the newcomer finds no place even without all of them, nothing changes.
    """
    marked: list[tuple[FluidJob, tuple[int, ...]]] = []
    is_placed = occupancy.place(newcomer)
    for job in reversed(running):
        if is_placed:
            break
        marked.append((job, occupancy.places[job.id]))
        occupancy.take_away(job)
        is_placed = occupancy.place(newcomer)
    paused = []
    for job, nodes in reversed(marked):
        if not is_placed or occupancy.has_room(job, nodes):
            occupancy.put(job, nodes)
        else:
            paused.append(job)
    return paused
