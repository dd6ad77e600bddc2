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
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.policies.sns.spread_n_share import spread_n_share
from slurm_sns.policies.specification import filled, require_within_limits


def fcfs(parameters: BatchParameters | None = None, sns: SnsParameters | None = None) -> FirstComeFirstServed:
    """The policy `fcfs`. Of `sns` the placement cs uses the scales, ce nothing, sns everything.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or BatchParameters()
    return FirstComeFirstServed(placing(parameters.placement, sns or SnsParameters()), parameters)


def easy(parameters: EasyParameters | None = None, sns: SnsParameters | None = None) -> EasyBackfilling:
    """The policy `easy`; `sns` as for `fcfs`.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or EasyParameters()
    return EasyBackfilling(placing(parameters.placement, sns or SnsParameters()), parameters)


def placing(placement: str, sns: SnsParameters) -> Placer:
    """The way of placing with that name.

    It is the plain twin: for a queue of one job that takes less time than filling the kernel's arrays.

    Raises:
        BadInput: there is none, or a parameter is not valid.
    """
    require_within_limits(BatchParameters(placement))
    return _portfolio(placement, sns).plainly()


def _portfolio(placement: str, sns: SnsParameters) -> Portfolio:
    match placement:
        case "ce":
            return compact_exclusive(filled(CompactParameters, sns))
        case "cs":
            return compact_shared(filled(CompactParameters, sns))
        case "sns":
            return spread_n_share(sns)
        case heuristic:
            return Portfolio(Rules((heuristic,), reservations=0))
