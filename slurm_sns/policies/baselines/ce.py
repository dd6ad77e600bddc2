"""CE, compact and exclusive, today's practice: each job runs alone on its fewest nodes.

A job gets the first idle nodes of the machine list. When too few are idle it waits, and the next job is looked at.

Source: Spread-n-Share (SC'19), sections 1 and 3.2, figure 8.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.policies.base import Choice, JobRequest, NodeType
from slurm_sns.policies.baselines.parameters import CompactParameters
from slurm_sns.policies.placement.cycle import Rules
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.request import compact


def compact_exclusive(parameters: CompactParameters | None = None) -> Portfolio:
    """The policy CE. Of the parameters it uses the queue depth only.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or CompactParameters()
    return Portfolio(Rules(("first-fit",), parameters.queue_depth, reservations=0), alternatives)


def alternatives(asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """The only alternative: scale 1, or the job's own geometry if it is fixed, on empty nodes.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    alternative = asked.own if asked.request is None else compact(asked.request, nodes)
    return Choice((replace(alternative, exclusive=True),))
