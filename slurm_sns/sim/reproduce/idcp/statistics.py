"""The quantities of the pages as samples, one for each seed, and what changes from one variant to another.

Variants are compared in pairs: the change is computed for each seed, on the same jobs. A quantity that a seed does not
have, such as a mean over no job, is nan, and a claim on it cannot be decided.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.reproduce.claims import percent_more
from slurm_sns.sim.reproduce.idcp.runs import TAIL_SHARES, Found

#: One value for each seed.
Samples = NDArray[np.float64]
#: Samples by quantity, of one variant.
Table = Mapping[str, Samples]
#: A quantity of two variants.
Statistic = Callable[[Table, Table], Samples]

MINUTE_S, HOUR_S = 60, 3600
MEDIAN, LATE = (int(np.argmin(np.abs(TAIL_SHARES - share))) for share in (0.5, 0.95))
#: The keys of `tails` in a result, by the beginnings of the columns.
TAILS = {"all": "all", "suspended": "suspended", "among_all": "suspended_among_all"}


def table(found: Sequence[Found]) -> dict[str, Samples]:
    """The samples of a variant from its results by seed: see `_quantities`."""
    rows = [_quantities(each) for each in found]
    return {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64) for name in rows[0]
    }


def _quantities(found: Found) -> dict[str, Any]:
    """Units are last in the names; those without one are numbers of jobs or of events."""
    period, paired, submitted = found["period"], found["paired"], found["submitted_s"]
    wasted = period["wasted_core_s_total"]
    return {
        "suspended": period["jobs_suspended"],
        "completed_pct": period["suspended_completed_pct"],
        "suspend_min": _minutes(period["mean_suspend_s"]),
        "resumed_suspend_min": _minutes(period["resumed_mean_suspend_s"]),
        "moved_at_once": period["moved_at_once"],
        "suspended_completion_min": _minutes(period["suspended_mean_completion_s"]),
        "completed": period["jobs_completed"],
        "completion_min": _minutes(period["mean_completion_s"]),
        "suspended_pct": period["suspended_pct_of_completed"],
        "utilisation_pct": period["utilisation_sampled_pct"],
        "suspensions": period["suspensions_total"],
        "restarts": period["restarts_total"],
        "wasted_core_h": wasted / HOUR_S,
        "wasted_pct": 100 * wasted / found["work_core_s"],
        "submitted_min": _minutes(submitted["all"]),
        "high_min": _minutes(submitted["high"]),
        "low_min": _minutes(submitted["low"]),
        "paired_jobs": paired["jobs"],
        "paired_without_min": _minutes(paired["without_s"]),
        "paired_with_min": _minutes(paired["with_s"]),
        "paired_earlier_pct": paired["earlier_pct"],
        "paired_later_pct": paired["later_pct"],
        **{
            f"{jobs}_{name}_min": _minutes(found["tails"][key][at]) if found["tails"][key] else None
            for jobs, key in TAILS.items()
            for name, at in (("median", MEDIAN), ("late", LATE))
        },
    }


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / MINUTE_S


# --- quantities of two variants


def value(column: str) -> Statistic:
    """The quantity of the first variant."""
    return lambda one, _other: one[column]


def difference(column: str) -> Statistic:
    """By how much the first variant's quantity exceeds that of the second."""
    return lambda one, other: one[column] - other[column]


def change(column: str) -> Statistic:
    """The change in percent from the second variant to the first."""
    return lambda one, other: percent_more(one[column], other[column])


def paired(one: Table, _other: Table) -> Samples:
    """The change in percent, over the jobs that are suspended without restarts, of their mean completion."""
    return percent_more(one["paired_with_min"], one["paired_without_min"])
