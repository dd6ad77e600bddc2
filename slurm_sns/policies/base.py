"""The protocol of a policy and the registry of their names.

A policy is a function of values: the same snapshot gives the same plan. Its parameters are a plain
frozen dataclass. Policies are imported when asked for, so that naming one costs nothing.
"""

from importlib import import_module
from typing import Any, NamedTuple, Protocol

from slurm_sns.errors import BadInput
from slurm_sns.model import Plan, Snapshot


class Policy(Protocol):
    """Decides which of the waiting jobs start now, and where."""

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan for the snapshot's moment; every waiting job is either started or has a reason."""
        ...


#: Name -> "module:factory". A factory takes the policy's parameters and gives a Policy.
REGISTRY = {
    "max-jobs": "slurm_sns.policies.matching.max_jobs:MaxJobs",
    "ce": "slurm_sns.policies.baselines.ce:CompactExclusive",
    "cs": "slurm_sns.policies.baselines.cs:CompactShared",
    "sns": "slurm_sns.policies.sns.spread_n_share:SpreadNShare",
    "combined": "slurm_sns.policies.combined.combined:Combined",
}


def load(name: str, parameters: Any) -> Policy:
    """The policy of that name with these parameters.

    Raises:
        BadInput: no policy has that name; the message lists those that exist.
    """
    if name not in REGISTRY:
        raise BadInput(f"policy '{name}' is unknown; valid: {', '.join(REGISTRY)}")
    module, factory = REGISTRY[name].split(":")
    policy: Policy = getattr(import_module(module), factory)(parameters)
    return policy


class HistoryFormat(NamedTuple):
    """How a policy's history is stored: the version of its form, and its type, a frozen dataclass of plain values."""

    version: int
    type: type[Any]
