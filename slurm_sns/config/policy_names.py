"""The names of policies and of heuristics that a configuration may have."""

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from slurm_sns.config.grammar import invalid
from slurm_sns.policies.placement.heuristic_names import heuristics
from slurm_sns.policies.registry import REGISTRY, live_policies

#: The names that may stand in the configuration and in --sns-heuristic.
HEURISTICS = heuristics()

_POLICIES = live_policies()


def _policy_name(name: str) -> str:
    """Check the name of a policy that may place jobs on a cluster."""
    if name not in _POLICIES:
        why = f" ({name} is for sns simulate only)" if name in REGISTRY else ""
        raise invalid(f"one of {', '.join(_POLICIES)}{why}")
    return name


PolicyName = Annotated[str, AfterValidator(_policy_name), WithJsonSchema({"enum": list(_POLICIES)})]
