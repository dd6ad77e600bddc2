"""A trace: the jobs that a simulation submits, and how many of the file's jobs were left out, by reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from slurm_sns.errors import BadInput
from slurm_sns.model import Job, Seconds

#: Shorter run times and smaller requests count as this much, as in the authors' simulator.
SHORTEST_RUN_S = 1
SMALLEST_MEMORY_MB = 1024

TOO_LARGE = "larger than any nodes"


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace and how long it runs once it is started."""

    job: Job
    run_s: Seconds


@dataclass(frozen=True)
class Trace:
    """The jobs by submit second, those of one second in the order of the file."""

    jobs: tuple[TraceJob, ...]
    dropped: dict[str, int]


def counted(dropped: Mapping[str, int]) -> dict[str, int]:
    """The reasons for which jobs were left out, in the order of their words, without those that never came up."""
    return {reason: count for reason, count in sorted(dropped.items()) if count}


def no_job_left(name: str, dropped: Mapping[str, int]) -> BadInput:
    """The error of a trace without a job that these nodes can hold."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in counted(dropped).items()) or "it has none"
    return BadInput(f"{name}: no job can run on these nodes: {reasons}")


def half_up(seconds: float | Fraction) -> int:
    """Rounded to whole seconds, halves up."""
    return math.floor(seconds + Fraction(1, 2)) if isinstance(seconds, Fraction) else math.floor(seconds + 0.5)
