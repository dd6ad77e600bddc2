"""The protocol of a policy: how each job may run, and which jobs start, stop or move now.

A policy is a function of values: the same snapshot gives the same plan. What it remembers from one plan to the next is
the plan's `history`, which comes back in the next snapshot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from slurm_sns.model import Alternative, Plan, Snapshot
from slurm_sns.policies.placement.request import NodeType, Request
from slurm_sns.policies.profile import Program


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a policy knows of a job when it makes the job's alternatives.

    `own` is the job's own geometry. `request` is what the job asks for if its geometry may be chosen, None if it keeps
    its own. `program` is the profile of its program, None if there is none; `program_name` does not depend on that.
    """

    own: Alternative
    request: Request | None = None
    program: Program | None = None
    program_name: str = ""


class Choice(NamedTuple):
    """A job's alternatives, best first, at least one; and why these, as a frozen dataclass of plain values."""

    alternatives: tuple[Alternative, ...]
    explanation: Any = None


#: How a policy makes the alternatives of a job on nodes of these types.
MakeAlternatives = Callable[[JobRequest, Sequence[NodeType]], Choice]


class Policy(Protocol):
    """Decides how jobs may run, and what happens now."""

    def alternatives(self, asked: JobRequest, nodes: Sequence[NodeType], /) -> Choice:
        """The job's alternatives on nodes of these types, which are all nodes that it may ever use.

        Raises:
            Infeasible: the nodes could not hold it even when they are all empty.
        """
        ...

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan for the snapshot's moment; every waiting job is either started or has a reason."""
        ...

    def explain(self, snapshot: Snapshot, job_id: int) -> Any:
        """What `plan` does with this waiting job and why, as a frozen dataclass of plain values, or None.

        Raises:
            BadInput: the job is not among the snapshot's waiting jobs.
        """
        ...


class HistoryFormat(NamedTuple):
    """How a policy's history is stored: its format version and its type, a frozen dataclass of plain values."""

    version: int
    type: type[Any]


def own_geometry(asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:  # noqa: ARG001  a policy's shape
    """The alternatives under a policy that leaves every job its own geometry."""
    return Choice((asked.own,))


def no_explanation(snapshot: Snapshot, job_id: int) -> None:
    """The explanation of a policy that has nothing to add to the reasons in its plan."""
