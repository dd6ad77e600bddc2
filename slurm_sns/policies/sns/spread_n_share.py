"""The policy `sns`: each job in queue order at its first alternative that fits, on the idlest nodes of one group.

It is `combined` with the heuristic `idlest` alone and no withheld capacity but for an over-aged job.

Source: Spread-n-Share (SC'19), section 4.4, figure 11.
"""

from slurm_sns.policies.combined.combined import IDLEST, Combined, CombinedParameters
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.sns.parameters import SnsParameters


class SpreadNShare(Combined):
    """Spread-n-Share."""

    def __init__(self, parameters: SnsParameters | MatchingParameters | None = None) -> None:
        """Of matching's parameters only the queue depth means something here.

        Raises:
            BadInput: a parameter cannot be used.
        """
        if isinstance(parameters, MatchingParameters):
            parameters = SnsParameters(queue_depth=parameters.queue_depth)
        parameters = parameters or SnsParameters()
        matching = MatchingParameters(portfolio=(IDLEST,), queue_depth=parameters.queue_depth, reservations=0)
        super().__init__(CombinedParameters(matching, parameters))
