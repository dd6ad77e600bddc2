"""The policy `sns`: jobs in queue order, each with its first alternative that fits, on the idlest nodes of one group.

Capacity is withheld only for an over-aged job: whole nodes are kept for it.

Source: Spread-n-Share (SC'19), section 4.4, figure 11.
"""

from functools import partial

from slurm_sns.policies.placement.heuristic_names import IDLEST
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters, require_valid
from slurm_sns.policies.spread_n_share.scales import alternatives


def spread_n_share(parameters: SpreadingParameters | None = None) -> Portfolio:
    """Spread-n-Share.

    Raises:
        BadInput: a parameter cannot be used.
    """
    parameters = parameters or SpreadingParameters()
    require_valid(parameters)
    rules = Rules(
        (IDLEST,),
        parameters.queue_depth,
        reservations=0,
        beta=parameters.beta,
        keeper=IDLEST,
        weighs=True,
        order=parameters.alternatives_order,
        shared_ways=parameters.shared_ways,
    )
    return Portfolio(rules, partial(alternatives, parameters))
