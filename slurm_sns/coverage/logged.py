"""A job of a log: what it asked for, as far as the log shows it, and what it took."""

from dataclasses import dataclass

from slurm_sns.submit.submission import Submission


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """One job (of an array: one task). `core_hours` are those that it had; 0 for one that never ran."""

    user: str
    asked: Submission
    core_hours: float
