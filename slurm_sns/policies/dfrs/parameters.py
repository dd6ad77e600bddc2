"""The parameters of DFRS's algorithms, what they remember from one plan to the next, and their specifications.

The published results are for a period of 600 s (IPDPS 2010, section III-B).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_sns.model import Seconds, Share
from slurm_sns.policies.base import HistoryFormat
from slurm_sns.policies.specification import Setting, Specification, parameter

#: A year: longer than any job waits.
LONGEST_PERIOD_S = 31_536_000


@dataclass(frozen=True)
class Attempts:
    """How often a waiting job found no place, and when it is tried again; None if no time is set."""

    failures: int = 0
    next_s: Seconds | None = None


@dataclass(frozen=True)
class DfrsHistory:
    """The jobs that wait, by their attempts, the next periodic run, and the yields that the last one gave (STRETCH).

    `next_run_s` is None while there are no jobs.
    """

    waiting: Mapping[int, Attempts] = field(default_factory=dict)
    next_run_s: Seconds | None = None
    floors: Mapping[int, Share] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GreedyParameters:
    """The parameters of GREEDY."""

    retry_at_events: bool = parameter(
        False, Setting("Try waiting jobs again at every event, not after an exponential back-off.", option=True)
    )


@dataclass(frozen=True, slots=True)
class PeriodicParameters:
    """The parameters of the periodic algorithms: their runs are at the multiples of `period_s`."""

    period_s: int = parameter(
        600, Setting("Seconds between periodic runs.", least=1, most=LONGEST_PERIOD_S, option=True)
    )


def _specification(name: str, text: str, *parameters: type) -> Specification:
    return Specification(
        f"dfrs-{name}",
        text,
        parameters,
        f"slurm_sns.policies.dfrs.policy:{name.replace('-', '_')}",
        is_simulated_only=True,
        is_fluid=True,
        history=HistoryFormat(1, DfrsHistory),
        runner="slurm_sns.sim.runners.fluid:fluid",
    )


GREEDY = _specification(
    "greedy",
    "DFRS: jobs start where memory allows and share the CPU; what finds no room is tried again later.",
    GreedyParameters,
)
GREEDY_PMTN = _specification("greedy-pmtn", "DFRS: as dfrs-greedy, but running jobs are paused to make room.")
GREEDY_PMTN_MIGR = _specification(
    "greedy-pmtn-migr", "DFRS: as dfrs-greedy-pmtn, but a job that is paused may go on elsewhere at once."
)
DYNMCB8 = _specification("dynmcb8", "DFRS: all jobs are packed anew by MCB8 at every event.")
DYNMCB8_PER = _specification("dynmcb8-per", "DFRS: all jobs are packed anew periodically.", PeriodicParameters)
DYNMCB8_ASAP_PER = _specification(
    "dynmcb8-asap-per",
    "DFRS: as dfrs-dynmcb8-per, but newcomers start at once where memory allows.",
    PeriodicParameters,
)
DYNMCB8_STRETCH_PER = _specification(
    "dynmcb8-stretch-per", "DFRS: as dfrs-dynmcb8-per, but for the smallest estimated stretch.", PeriodicParameters
)
