"""FCFS and EASY as policies that make plans."""

from collections.abc import Sequence

from oracles.batch.easy import EasyBackfilling
from oracles.batch.fcfs import FirstComeFirstServed
from oracles.portfolio import plainly
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Policy, no_explanation
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


class MostStarts:
    """Of the plans of several policies the one with the most starts, of equal ones the first."""

    explain = staticmethod(no_explanation)

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self.alternatives = policies[0].alternatives

    def plan(self, snapshot: Snapshot) -> Plan:
        """All plans are made on the same snapshot."""
        return max((each.plan(snapshot) for each in self._policies), key=lambda plan: len(plan.starts))
