"""Reads options of slurm.conf in the form in which pyslurm returns them."""

from collections.abc import Mapping
from typing import Any

from slurm_sns.scheduler.observation import BACKFILL, Backfill

#: What PrioritySiteFactorPlugin is without one.
_NO_PLUGIN = (None, "", "site_factor/none")


def words(value: Any) -> tuple[str, ...]:
    """A list unchanged; a mapping of options as `name=value`, or `name` alone where the value is True."""
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())


def backfill(scheduler_parameters: Any) -> Backfill:
    """How Slurm's backfill plans: bf_window is in minutes, bf_interval in seconds. Invalid values and 0 are ignored."""
    numbers = {}
    for word in words(scheduler_parameters):
        name, _, number = word.partition("=")
        if number.isdecimal() and int(number):
            numbers[name] = float(number)
    return Backfill(
        60 * numbers["bf_window"] if "bf_window" in numbers else BACKFILL.window_s,
        numbers.get("bf_interval", BACKFILL.interval_s),
    )


def has_boost(priority_type: str | None, site_factor_plugin: str | None, scheduler_parameters: Any) -> bool:
    """Whether a SiteFactor of ours counts: jobs have factors, and no plugin of the site sets this one.

    Where users may say `scontrol top`, there is none: Slurm would move the priority of a user's placed job, with our
    boost in it, to another of the user's jobs, as a nice value that stays (seen).
    """
    has_factors = priority_type == "priority/multifactor" and site_factor_plugin in _NO_PLUGIN
    return has_factors and all(word.lower() != "enable_user_top" for word in words(scheduler_parameters))


def has_extra(scheduler_parameters: Any) -> bool:
    """Whether Slurm leaves the text of Extra alone: with extra_constraints it refuses what does not parse as such."""
    return all(word.lower() != "extra_constraints" for word in words(scheduler_parameters))
