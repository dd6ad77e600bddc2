"""Placements as JSON values and back, for the pipes to the sender processes."""

from typing import Any

from slurm_sns.model import Alternative, Resources, Start
from slurm_sns.scheduler.orders import PlacementOrder

Row = list[Any]


def as_row(placement: PlacementOrder) -> Row:
    """The placement as JSON values."""
    start, alternative = placement.start, placement.start.alternative
    job_fields = [placement.nice, placement.memory_per_node_mb, placement.tasks, placement.extra]
    return [start.job_id, start.nodes, alternative.demand, alternative.tasks_per_node, *job_fields]


def from_row(row: Row) -> PlacementOrder:
    """The placement that `as_row` wrote, with only those fields that go to Slurm."""
    job_id, nodes, demand, tasks_per_node, *job_fields = row
    alternative = Alternative(len(nodes), Resources(*demand), tasks_per_node)
    return PlacementOrder(Start(job_id, tuple(nodes), alternative), *job_fields)
