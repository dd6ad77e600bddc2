"""CE, compact and exclusive: today's practice. Each job on its fewest nodes, which it has for itself.

The first idle nodes of the machine list; a job for which there are too few waits, and the next is looked at.

Source: Spread-n-Share (SC'19), sections 1 and 3.2, figure 8.
"""

from collections.abc import Sequence

from slurm_sns.model import Alternative
from slurm_sns.policies.matching.max_jobs import MaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.policies.sns.request import NodeType, Request, fewest_nodes, spread


def alternatives(request: Request, nodes: Sequence[NodeType]) -> tuple[Alternative, ...]:
    """The one way: scale 1 on empty nodes.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    layout = spread(request, fewest_nodes(request, nodes), 1)
    return (Alternative(layout.nodes, layout.demand, layout.tasks_per_node, exclusive=True),)


class CompactExclusive(MaxJobs):
    """The policy `ce`."""

    def __init__(self, parameters: SnsParameters | MatchingParameters | None = None) -> None:
        """Only the queue depth means something here."""
        depth = (parameters or SnsParameters()).queue_depth
        super().__init__(MatchingParameters(portfolio=("first-fit",), queue_depth=depth, reservations=0))
