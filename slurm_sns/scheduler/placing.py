"""Placements on their way to Slurm, and what it says to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from slurm_sns.errors import Refused
from slurm_sns.model import Start


@dataclass(frozen=True, slots=True)
class Placement:
    """One job that is to be pinned and released: where, with what nice value, and with how much memory on each node.

    `tasks` is the number of all its tasks, sent wherever the tasks of each node are; `extra` is its new mark. None
    leaves the job's own memory, tasks or mark.
    """

    start: Start
    nice: int
    memory_per_node_mb: int | None = None
    tasks: int | None = None
    extra: str | None = None


#: What became of placements, in the order in which Slurm answered: its refusal, None where it took the placement.
Answers = Iterator[tuple[Placement, Refused | None]]


class Places(Protocol):
    """Who places single jobs."""

    def place(self, placement: Placement) -> None:
        """Pin a held job to its nodes and release it, in one RPC."""
        ...


def one_by_one(planner: Places, placements: Sequence[Placement]) -> Answers:
    """Place one after the other.

    Raises:
        Unreachable: slurmctld does not answer; those that were not handed out are still held, but perhaps the first.
    """
    for placement in placements:
        refusal: Refused | None = None
        try:
            planner.place(placement)
        except Refused as problem:
            refusal = problem
        yield placement, refusal
