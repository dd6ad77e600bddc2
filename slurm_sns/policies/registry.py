"""The policies by name, one line each."""

from functools import cache
from importlib import import_module

from slurm_sns.errors import BadInput
from slurm_sns.policies.specification import Specification

#: Name -> module and constant of the policy's specification.
REGISTRY = {
    "max-jobs": "slurm_sns.policies.matching.parameters:MAX_JOBS",
    "ce": "slurm_sns.policies.baselines.parameters:CE",
    "cs": "slurm_sns.policies.baselines.parameters:CS",
    "sns": "slurm_sns.policies.sns.parameters:SNS",
    "combined": "slurm_sns.policies.combined.parameters:COMBINED",
}


@cache
def specification(name: str) -> Specification:
    """The policy of that name.

    Raises:
        BadInput: no policy has that name; the message lists those that exist.
    """
    if name not in REGISTRY:
        raise BadInput(f"policy '{name}' is unknown; valid: {', '.join(REGISTRY)}")
    module, constant = REGISTRY[name].split(":")
    found: Specification = getattr(import_module(module), constant)
    return found
