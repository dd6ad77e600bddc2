"""The names of heuristics that policies and their parameters use, without an import of the heuristics themselves."""

from importlib import import_module

#: The heuristic that chooses nodes as Spread-n-Share does.
IDLEST = "idlest"
#: The heuristics for jobs whose demand in ways and bandwidth is known from a profile.
FOR_PROFILED_JOBS = ("best-fit-ways", "worse-fit-ways", "best-fit-bandwidth", "worse-fit-bandwidth", IDLEST)
#: How much more an occupied share of the cache counts than one of cores or bandwidth (the prototype's value).
PAPER_BETA = 2.0


def heuristics() -> tuple[str, ...]:
    """The names of all heuristics."""
    return tuple(import_module("slurm_sns.policies.placement.heuristics").HEURISTICS)
