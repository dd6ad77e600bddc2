"""How FCFS and EASY place jobs: as ce, cs or sns does, or by heuristics for jobs with their own geometry.

Source: this project's own combination: the queue disciplines are those of `baselines`.
"""

from slurm_sns.policies.baselines.compact import compact_exclusive, compact_shared
from slurm_sns.policies.baselines.parameters import BatchParameters, CompactParameters
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.specification import filled, require_within_limits
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters


def placing(placement: str, spreading: SpreadingParameters) -> Portfolio:
    """The portfolio of one member that places jobs in this way.

    Raises:
        BadInput: there is none, or a parameter is not valid.
    """
    require_within_limits(BatchParameters(placement))
    match placement:
        case "ce":
            return compact_exclusive(filled(CompactParameters, spreading))
        case "cs":
            return compact_shared(filled(CompactParameters, spreading))
        case "sns":
            return spread_n_share(spreading)
        case heuristic:
            return Portfolio(Rules((heuristic,), reservations=0))
