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
    "fcfs": "slurm_sns.policies.combined.parameters:FCFS",
    "easy": "slurm_sns.policies.combined.parameters:EASY",
    "dfrs-greedy": "slurm_sns.policies.dfrs.parameters:GREEDY",
    "dfrs-greedy-pmtn": "slurm_sns.policies.dfrs.parameters:GREEDY_PMTN",
    "dfrs-greedy-pmtn-migr": "slurm_sns.policies.dfrs.parameters:GREEDY_PMTN_MIGR",
    "dfrs-dynmcb8": "slurm_sns.policies.dfrs.parameters:DYNMCB8",
    "dfrs-dynmcb8-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_PER",
    "dfrs-dynmcb8-asap-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_ASAP_PER",
    "dfrs-dynmcb8-stretch-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_STRETCH_PER",
    "rescheduling": "slurm_sns.policies.rescheduling.parameters:RESCHEDULING",
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


def live_policies() -> tuple[str, ...]:
    """The names of the policies that a live scheduler may use; the others are for `sns simulate` only."""
    return tuple(name for name in REGISTRY if not specification(name).is_simulated_only)
