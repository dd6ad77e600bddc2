"""The variants of a replay of the two weeks: the parameters, the machines, and the replay without restarts beside it.

A variant without restarts is its own baseline. All variants of a seed replay the same jobs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from slurm_sns.policies.rescheduling.parameters import (
    ALL_JOBS,
    AVAILABILITY,
    FREED,
    OFF,
    RECENT,
    REMAINING,
    SUSPENDED_JOBS,
    ReschedulingParameters,
)
from slurm_sns.sim.workloads.idcp_parameters import DEFAULTS, IdcpParameters


class PoolVariant(NamedTuple):
    """`baseline` names the variant without restarts on the same machines; `halved`: on half of the machines."""

    parameters: ReschedulingParameters
    baseline: str
    halved: bool = False
    workload: IdcpParameters = DEFAULTS


#: The paper's rule in both readings of its averages.
READINGS: Mapping[str, str] = {"all": ALL_JOBS, "suspended": SUSPENDED_JOBS}
#: How the pages name the readings.
AVERAGES = {"all": "averages over all jobs", "suspended": "averages over suspended jobs"}

#: On half of the machines, with bursts of half the load: as large for their pools as on all machines.
HALF_BURSTS = "half-bursts"
#: With low-priority jobs half as long and twice as many.
SHORT_JOBS = "short-jobs"
#: What tests the pages' explanations: whether the machines are halved, and the jobs.
_OTHER_JOBS: Mapping[str, tuple[bool, IdcpParameters]] = {
    HALF_BURSTS: (True, replace(DEFAULTS, strong_height=DEFAULTS.strong_height / 2)),
    SHORT_JOBS: (False, replace(DEFAULTS, low_run_min=DEFAULTS.low_run_min / 2)),
}
_PAPER = ReschedulingParameters()
#: What makes another replay without restarts, by the names of these replays.
_OTHER_SITES: Mapping[str, ReschedulingParameters] = {
    "availability": replace(_PAPER, virtual_pool=AVAILABILITY),
    "freed": replace(_PAPER, suspended_memory=FREED),
    "best-fit": replace(_PAPER, heuristic="best-fit-cores"),
    "worse-fit": replace(_PAPER, heuristic="worse-fit-cores"),
    "mix-fit": replace(_PAPER, heuristic="mix-fit"),
}
#: What changes restarts only. The windows are a sixth of the paper's and ten times as long.
_OTHER_RESTARTS: Mapping[str, ReschedulingParameters] = {
    "remaining": replace(_PAPER, elsewhere=REMAINING),
    "recent": replace(_PAPER, run_times=RECENT),
    "cost-600": replace(_PAPER, move_cost_s=600),
    "cost-3600": replace(_PAPER, move_cost_s=3600),
    "waiting-600": replace(_PAPER, waiting_check_s=600),
    "keeps-work": replace(_PAPER, keeps_work=True),
    "one-move": replace(_PAPER, max_moves=1),
    "window-1000": replace(_PAPER, window_s=1000),
    "window-60000": replace(_PAPER, window_s=60_000),
}


def named(change: str, reading: str) -> str:
    """The name of the variant with this change, in this reading of the averages."""
    return f"{change}-{reading}" if change else reading


def without(change: str = "") -> str:
    """The name of the variant without restarts."""
    return f"off-{change}" if change else "off"


def _variants() -> dict[str, PoolVariant]:
    found = {}
    for change, changed, halved, workload in (
        ("", _PAPER, False, DEFAULTS),
        ("half", _PAPER, True, DEFAULTS),
        *((change, _PAPER, *other) for change, other in _OTHER_JOBS.items()),
        *((change, changed, False, DEFAULTS) for change, changed in _OTHER_SITES.items()),
    ):
        baseline = without(change)
        found[baseline] = PoolVariant(replace(changed, restart=OFF), baseline, halved, workload)
        for reading, averages in READINGS.items():
            found[named(change, reading)] = PoolVariant(replace(changed, averages=averages), baseline, halved, workload)
    for change, changed in _OTHER_RESTARTS.items():
        for reading, averages in READINGS.items():
            found[named(change, reading)] = PoolVariant(replace(changed, averages=averages), without())
    return found


VARIANTS: Mapping[str, PoolVariant] = _variants()
