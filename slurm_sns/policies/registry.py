"""The policies by name, one line each; and those of other packages, by entry points of the group `slurm_sns.policies`.

An entry point has the name of its policy and leads to a `Specification`. One that cannot be used costs that policy
only: `PROBLEMS` says why.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from slurm_sns.errors import BadInput
from slurm_sns.policies.specification import Specification, require_within_limits

#: Name -> module and constant of the policy's specification.
REGISTRY = {
    "max-jobs": "slurm_sns.policies.matching.parameters:MAX_JOBS",
    "ce": "slurm_sns.policies.baselines.parameters:CE",
    "cs": "slurm_sns.policies.baselines.parameters:CS",
    "sns": "slurm_sns.policies.spread_n_share.parameters:SPREAD_N_SHARE",
    "combined": "slurm_sns.policies.combined.parameters:COMBINED",
    "fcfs": "slurm_sns.policies.combined.parameters:FCFS",
    "easy": "slurm_sns.policies.combined.parameters:EASY",
    "slurm": "slurm_sns.policies.baselines.parameters:SLURM",
    "dfrs-greedy": "slurm_sns.policies.dfrs.parameters:GREEDY",
    "dfrs-greedy-pmtn": "slurm_sns.policies.dfrs.parameters:GREEDY_PMTN",
    "dfrs-greedy-pmtn-migr": "slurm_sns.policies.dfrs.parameters:GREEDY_PMTN_MIGR",
    "dfrs-dynmcb8": "slurm_sns.policies.dfrs.parameters:DYNMCB8",
    "dfrs-dynmcb8-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_PER",
    "dfrs-dynmcb8-asap-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_ASAP_PER",
    "dfrs-dynmcb8-stretch-per": "slurm_sns.policies.dfrs.parameters:DYNMCB8_STRETCH_PER",
    "rescheduling": "slurm_sns.policies.rescheduling.parameters:RESCHEDULING",
}


GROUP = "slurm_sns.policies"
_NAME = re.compile(r"[a-z][a-z0-9-]*")
#: Whose policies the registry has: the package's name, by the policy's name. The others are our own.
PACKAGES: dict[str, str] = {}
#: Why policies of other packages are not there, a line each.
PROBLEMS: list[str] = []


def add_installed(found: Iterable[EntryPoint]) -> None:
    """Add the policies to which these entry points lead, in the order of their packages."""
    for each in sorted(found, key=lambda point: (_package(point), point.name)):
        why = f"the name is taken by {PACKAGES.get(each.name, 'slurm_sns')}" if each.name in REGISTRY else _wrong(each)
        if why:
            PROBLEMS.append(f"policy '{each.name}' of package {_package(each)} is not used: {why}")
        else:
            REGISTRY[each.name], PACKAGES[each.name] = each.value, _package(each)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


def _wrong(point: EntryPoint) -> str:
    """Why an entry point leads to no policy; empty if it does."""
    try:
        found = point.load()
    except Exception as problem:  # noqa: BLE001 -- code of others: whatever is wrong in it is wrong there only
        return f"{point.value} cannot be loaded: {problem}".splitlines()[0]
    if not isinstance(found, Specification):
        return f"{point.value} is a {type(found).__name__}; valid: a Specification"
    if found.name != point.name:
        return f"its specification is named '{found.name}'"
    if not _NAME.fullmatch(found.name):
        return "its name is not valid; valid: a-z, 0-9 and -, a letter first"
    try:
        for parameters in found.parameters:
            require_within_limits(parameters())
    except (TypeError, BadInput) as problem:
        return f"its parameters are not valid: {problem}; valid: dataclasses whose defaults are within their limits"
    return ""


@cache
def specification(name: str) -> Specification:
    """The policy of that name.

    Raises:
        BadInput: no policy has that name; the message lists those that exist.
    """
    if name not in REGISTRY:
        raise BadInput("; ".join([f"policy '{name}' is unknown; valid: {', '.join(REGISTRY)}", *PROBLEMS]))
    module, constant = REGISTRY[name].split(":")
    found: Specification = getattr(import_module(module), constant)
    return found


def live_policies() -> tuple[str, ...]:
    """The names of the policies that a live scheduler may use; the others are for `sns simulate` only."""
    return tuple(name for name in REGISTRY if not specification(name).is_simulated_only)


add_installed(entry_points(group=GROUP))
