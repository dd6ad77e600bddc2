"""What slurm.conf's lists of options say, as pyslurm gives them."""

from collections.abc import Mapping
from typing import Any

from slurm_sns.scheduler.observed import BACKFILL_WINDOW_S


def words(value: Any) -> tuple[str, ...]:
    """A list as it is; a mapping of options as `name=value`, or `name` alone where the value is True."""
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())


def backfill_window_s(scheduler_parameters: Any) -> float:
    """bf_window, which Slurm has in minutes, in seconds. What is no number Slurm ignores as well."""
    for word in words(scheduler_parameters):
        name, _, minutes = word.partition("=")
        if name == "bf_window" and minutes.isdecimal() and int(minutes):
            return 60.0 * int(minutes)
    return BACKFILL_WINDOW_S
