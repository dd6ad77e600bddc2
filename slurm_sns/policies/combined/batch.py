"""FCFS and EASY over any way of placing: that of ce, cs or sns, or one heuristic for jobs with their own geometry.

Source: this project's own combination: the queue disciplines are those of `baselines`.
"""

from slurm_sns.policies.baselines.batch_pass import Placer
from slurm_sns.policies.baselines.ce import compact_exclusive
from slurm_sns.policies.baselines.cs import compact_shared
from slurm_sns.policies.baselines.easy import EasyBackfilling
from slurm_sns.policies.baselines.fcfs import FirstComeFirstServed
from slurm_sns.policies.baselines.parameters import BatchParameters, CompactParameters, EasyParameters
from slurm_sns.policies.placement.kernel_matching import Rules
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.specification import filled, require_within_limits
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters


def fcfs(
    parameters: BatchParameters | None = None, spreading: SpreadingParameters | None = None
) -> FirstComeFirstServed:
    """The policy `fcfs`. Of `sns` the placement cs uses the scales, ce nothing, sns everything.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or BatchParameters()
    return FirstComeFirstServed(placing(parameters.placement, spreading or SpreadingParameters()), parameters)


def easy(parameters: EasyParameters | None = None, spreading: SpreadingParameters | None = None) -> EasyBackfilling:
    """The policy `easy`; `sns` as for `fcfs`.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or EasyParameters()
    return EasyBackfilling(placing(parameters.placement, spreading or SpreadingParameters()), parameters)


def placing(placement: str, spreading: SpreadingParameters) -> Placer:
    """The way of placing with that name.

    It is the plain twin: for a queue of one job that takes less time than filling the kernel's arrays.

    Raises:
        BadInput: there is none, or a parameter is not valid.
    """
    require_within_limits(BatchParameters(placement))
    return _portfolio(placement, spreading).plainly()


def _portfolio(placement: str, spreading: SpreadingParameters) -> Portfolio:
    match placement:
        case "ce":
            return compact_exclusive(filled(CompactParameters, spreading))
        case "cs":
            return compact_shared(filled(CompactParameters, spreading))
        case "sns":
            return spread_n_share(spreading)
        case heuristic:
            return Portfolio(Rules((heuristic,), reservations=0))
