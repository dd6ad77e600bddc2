"""The parameters of rescheduling, and its specification.

The defaults are those of the paper's experiments: a window of 100 minutes, and memory that a suspended job keeps. Where
the paper can be read in several ways, the parameter's text says which values there are.

Source: Cost-based dynamic job rescheduling (2010), sections 2 to 4.
"""

from dataclasses import dataclass
from typing import Any

from slurm_sns.policies.placement.heuristic_names import FOR_PROFILED_JOBS, heuristics
from slurm_sns.policies.specification import Setting, Specification, parameter

#: A year: longer than any job stays in a pool.
LONGEST_WINDOW_S = 31_536_000
#: A move per second for 30 years: far within 64 bits.
MOST_MOVES = 1_000_000_000

ON, OFF = "on", "off"
KEPT, FREED = "kept", "freed"
ALL_JOBS, SUSPENDED_JOBS = "all", "suspended"
ROUND_ROBIN, AVAILABILITY = "round-robin", "availability"
KNOWN, RECENT = "known", "recent"
WHOLE, REMAINING = "whole", "remaining"


def heuristics_of_pools() -> tuple[str, ...]:
    """The heuristics for jobs of which only cores and memory are known."""
    return tuple(name for name in heuristics() if name not in FOR_PROFILED_JOBS)


def _choice(text: str, *valid: str) -> Any:
    """A parameter with these values, of which the first is the default."""
    return parameter(valid[0], Setting(text, choices=lambda: valid, option=True))


def _seconds(default: int, text: str, least: int = 0) -> Any:
    return parameter(default, Setting(text, least=least, most=LONGEST_WINDOW_S, option=True))


@dataclass(frozen=True, slots=True)
class ReschedulingParameters:
    """How suspended jobs are rescheduled.

    `window_s`: jobs that completed within this time are the samples of a decision; `averages`: all of them, or only
    those that were suspended in their life. `restart`: whether suspended jobs may restart in another pool.
    `suspended_memory`: what a suspended job does with its memory. `max_moves`: how often one job may restart elsewhere,
    0 for as often as it pays. `heuristic` chooses the node inside a pool, `virtual_pool` the pool of a job that names
    none.

    `run_times`: whether decisions know the run times, or go by the recent runs of the same program. `elsewhere`: the
    run time that counts for another pool. `move_cost_s` is how much longer an attempt in another pool takes, and
    `keeps_work`: it begins where the job was suspended. `waiting_check_s`: a queued job is decided on whenever it has
    waited so long, 0 for never.
    """

    window_s: int = _seconds(6000, "Jobs that completed within this many seconds count in the averages.", least=1)
    restart: str = _choice("Whether suspended jobs may restart in another pool: on or off.", ON, OFF)
    suspended_memory: str = _choice("The memory of a suspended job: kept, or freed for other jobs.", KEPT, FREED)
    averages: str = _choice(
        "The completed jobs in the averages: all, or only those that were suspended.", ALL_JOBS, SUSPENDED_JOBS
    )
    max_moves: int = parameter(
        0, Setting("Restarts of one job in other pools at most; 0: no limit.", least=0, most=MOST_MOVES, option=True)
    )
    heuristic: str = parameter(
        "first-fit", Setting("How a pool chooses the node of a job.", choices=heuristics_of_pools, option=True)
    )
    virtual_pool: str = _choice(
        "The pool of a job that names none: round-robin, or by availability.", ROUND_ROBIN, AVAILABILITY
    )
    run_times: str = _choice(
        "The run times by which decisions go: known, or recent (the mean of the program's runs that ended in the last "
        "24 hours, else the time limit).",
        KNOWN,
        RECENT,
    )
    elsewhere: str = _choice(
        "The run time that counts for another pool: whole, or remaining as the paper's equation 5 prints.",
        WHOLE,
        REMAINING,
    )
    move_cost_s: int = _seconds(0, "Seconds by which a move lengthens the job's run.")
    keeps_work: bool = parameter(
        False, Setting("Jobs are checkpointed: one that moves goes on where it was suspended.", option=True)
    )
    waiting_check_s: int = _seconds(
        0, "A queued job may move, too, whenever it has waited for so many seconds; 0: never."
    )


RESCHEDULING = Specification(
    "rescheduling",
    "Pools suspend jobs for more urgent ones; a suspended job restarts in another pool where it is expected to end "
    "sooner.",
    (ReschedulingParameters,),
    is_simulated_only=True,
    runner="slurm_sns.sim.runners.pools:pools",
)
