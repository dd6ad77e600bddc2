"""Placements as JSON values and back: how they get to the processes that send them."""

from typing import Any

from slurm_sns.model import Alternative, Resources, Start
from slurm_sns.scheduler.orders import PlacementOrder

Row = list[Any]


def as_row(placement: PlacementOrder) -> Row:
    """The placement as JSON values."""
    start, alternative = placement.start, placement.start.alternative
    how = [placement.nice, placement.memory_per_node_mb, placement.tasks, placement.extra]
    return [start.job_id, start.nodes, alternative.demand, alternative.tasks_per_node, *how]


def from_row(row: Row) -> PlacementOrder:
    """The placement that `as_row` wrote, with what of it Slurm is told."""
    job_id, nodes, demand, tasks_per_node, *how = row
    alternative = Alternative(len(nodes), Resources(*demand), tasks_per_node)
    return PlacementOrder(Start(job_id, tuple(nodes), alternative), *how)
