"""What a job is expected to run: the mean of the recent runs of its program, else its time limit.

Source: Cost-based dynamic job rescheduling (2010), section 3.2 and figure 5: over 24 hours the mean run time of a
program's jobs varies little. The paper's own experiments take run times as known.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import floor

from slurm_sns.model import Seconds

#: Runs that ended earlier than this before a decision do not count.
RECENT_S = 86_400

Runs = Mapping[str, tuple[tuple[Seconds, Seconds], ...]]


def with_run(runs: Runs, program: str, ended_s: Seconds, run_s: Seconds) -> Runs:
    """The runs with one more, which ended now; those of the program that are no longer recent are dropped."""
    return {**runs, program: (*recent(runs, program, ended_s), (ended_s, run_s))} if program else runs


def recent(runs: Runs, program: str, now_s: Seconds) -> tuple[tuple[Seconds, Seconds], ...]:
    """The recent runs of a program: (end, run time)."""
    return tuple(each for each in runs.get(program, ()) if each[0] >= now_s - RECENT_S)


def expected_run_s(runs: Runs, program: str, limit_s: Seconds | None, now_s: Seconds) -> Seconds | None:
    """The mean of the program's recent runs in whole seconds, else the limit, None if that is not known either."""
    found = recent(runs, program, now_s)
    if not found:
        return limit_s
    return floor(Fraction(sum(run_s for _, run_s in found)) / len(found) + Fraction(1, 2))
