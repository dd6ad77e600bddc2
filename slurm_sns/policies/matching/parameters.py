"""The parameters of matching, with the defaults of the paper or of its authors."""

from dataclasses import dataclass

from slurm_sns.policies.placement.heuristic_names import BEST_FIT_GPUS, LIST, fixed_tie_rules, heuristics, tie_rules
from slurm_sns.policies.specification import DEFAULT_QUEUE_DEPTH, QUEUE_DEPTH, Setting, Specification, parameter

#: The paper's five (section 4), in the order that breaks ties between equally good schedules.
PAPER_PORTFOLIO = ("best-fit-memory", "worse-fit-memory", "best-fit-cores", "worse-fit-cores", "mix-fit")
#: Where nodes have GPUs these come before the paper's five, unless a portfolio is named. Mostly all members match as
#: many jobs, and the first decides; and none of the five keeps idle GPUs for the jobs that need them.
WITH_GPUS = (BEST_FIT_GPUS,)
#: The portfolio of the authors' simulator: the paper's five and two that the paper does not mention.
AUTHORS_PORTFOLIO = (*PAPER_PORTFOLIO, "memory-first-best", "memory-first-worse")
#: The paper's cycle (JSSPP 2013, section 5), in seconds.
PAPER_INTERVAL_S = 30
#: How capacity is withheld for a job without a place: its demand for the rest of the cycle, as in the paper, however
#: long it waits; or a place from the moment on at which it can start, if jobs end at their limits.
WHOLE_WAIT, UNTIL_START = "whole-wait", "until-start"


def ways_to_withhold() -> tuple[str, ...]:
    """The valid values of `withhold`."""
    return WHOLE_WAIT, UNTIL_START


@dataclass(frozen=True, slots=True)
class MatchingParameters:
    """How one cycle matches.

    `portfolio`: the heuristics that compete; with one name Max-Jobs is that heuristic alone. None: the paper's five,
    and WITH_GPUS before them where some node has GPUs. `queue_depth`: how many jobs of the ordered queue a cycle looks
    at. `reservations`: at how many of the first queue positions capacity is withheld for a job without a match.
    `default_heuristic`: the heuristic for jobs that name none; None leaves it to each member. `withhold`: how that is
    done; until a job's start, for so many jobs without a place, wherever they are. `ties`: whose schedule wins among
    equally good ones. `withhold_up_to_s`: in simulations, no capacity is withheld for a job that has waited longer;
    None: however long. (A cluster limits it by user: `withhold_limit_s`.)
    """

    portfolio: tuple[str, ...] | None = parameter(
        None,
        Setting(
            "The heuristics that compete, separated by commas; by default the paper's five, and best-fit-gpus before "
            "them where nodes have GPUs.",
            "matching",
            choices=heuristics,
            option=True,
        ),
    )
    queue_depth: int = parameter(DEFAULT_QUEUE_DEPTH, QUEUE_DEPTH)
    reservations: int = parameter(
        1,
        Setting(
            "First queue positions for which capacity is withheld.",
            "matching",
            least=0,
            site_most=1_000_000,
            option=True,
        ),
    )
    withhold: str = parameter(
        WHOLE_WAIT,
        Setting(
            "How capacity is withheld for a job without a place: for its whole wait, or so that it can start as soon "
            "as limits allow and shorter jobs pass (until-start).",
            "matching",
            choices=ways_to_withhold,
            option=True,
        ),
    )
    default_heuristic: str | None = parameter(
        None, Setting("The heuristic of jobs that name none.", "matching", choices=heuristics)
    )
    ties: str = parameter(
        LIST,
        Setting(
            "Whose schedule wins among equally good ones.",
            "matching",
            choices=tie_rules,
            site_choices=fixed_tie_rules,
            option=True,
        ),
    )
    withhold_up_to_s: int | None = parameter(
        None,
        Setting(
            "Capacity is withheld for jobs that have waited at most so many seconds.", least=0, most=1e9, option=True
        ),
    )


MAX_JOBS = Specification(
    "max-jobs",
    "Run every heuristic of the portfolio, keep what matches most jobs.",
    (MatchingParameters,),
    "slurm_sns.policies.matching.max_jobs:max_jobs",
    interval_s=PAPER_INTERVAL_S,
    runner="slurm_sns.sim.runners.matching:matching",
)
