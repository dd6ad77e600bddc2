"""FCFS and EASY as policies that make plans."""

from oracles.batch.easy import EasyBackfilling
from oracles.batch.fcfs import FirstComeFirstServed
from oracles.portfolio import plainly
from slurm_sns.policies.baselines.parameters import BatchParameters, EasyParameters
from slurm_sns.policies.combined.batch import placing
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters


def fcfs(
    parameters: BatchParameters | None = None, spreading: SpreadingParameters | None = None
) -> FirstComeFirstServed:
    """Of `spreading` the placement cs uses the scales, ce nothing, sns everything."""
    parameters = parameters or BatchParameters()
    return FirstComeFirstServed(plainly(placing(parameters.placement, spreading or SpreadingParameters())), parameters)


def easy(parameters: EasyParameters | None = None, spreading: SpreadingParameters | None = None) -> EasyBackfilling:
    """The same for EASY."""
    parameters = parameters or EasyParameters()
    return EasyBackfilling(plainly(placing(parameters.placement, spreading or SpreadingParameters())), parameters)
