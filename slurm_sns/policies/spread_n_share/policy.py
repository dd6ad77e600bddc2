"""The policy `sns`: jobs in queue order, each with its first alternative that fits, on the idlest nodes of one group.

Capacity is withheld only for an over-aged job: whole nodes are kept for it.

Source: Spread-n-Share (SC'19), section 4.4, figure 11.
"""

from collections.abc import Sequence
from functools import partial

from slurm_sns.policies.base import Choice, JobRequest, NodeType
from slurm_sns.policies.placement.heuristic_names import IDLEST
from slurm_sns.policies.placement.kernel_matching import Rules
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters, require_valid
from slurm_sns.policies.spread_n_share.scales import choose


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
        shared_ways=parameters.shared_ways,
    )
    return Portfolio(rules, partial(alternatives, parameters))


def alternatives(parameters: SpreadingParameters, asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """The alternatives by the program's profile if the job's geometry may be chosen, otherwise its own geometry.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    if asked.request is None:
        return Choice((asked.own,))
    return choose(asked.request, asked.program, nodes, parameters, asked.program_name)
