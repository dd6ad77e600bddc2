"""What the paper says of figures 6 and 7, as claims on the 5 % of the jobs that take longest to complete.

Source: Cost-based dynamic job rescheduling (2010), section 4.2.
"""

from collections.abc import Mapping

from slurm_sns.sim.reproduce.claims import Claim, interval
from slurm_sns.sim.reproduce.idcp.printed import ALL_TAIL, SUSPENDED_TAIL, near, near_pct
from slurm_sns.sim.reproduce.idcp.statistics import Table, change, difference
from slurm_sns.sim.reproduce.idcp.variants import AVERAGES, READINGS, without

#: The figure, its jobs as the columns of a table name them, its jobs in words, and what the paper says.
FIGURES = (
    ("fig. 6", "all", "of all jobs", ALL_TAIL),
    ("fig. 7", "suspended", "of suspended jobs", SUSPENDED_TAIL),
)


def claims(tables: Mapping[str, Table]) -> list[Claim]:
    """All claims, from the samples of each variant."""
    found = []
    for reading in READINGS:
        one, other = tables[reading], tables[without()]
        for where, jobs, told, printed in FIGURES:
            for name, words, minutes, percent in (
                ("median", "the median", printed.median_min, printed.median_pct),
                ("late", "the 95th percentile", printed.late_min, printed.late_pct),
            ):
                column = f"{jobs}_{name}_min"
                text = f"longest 5 % {told}: restarts lower {words} by {-minutes:g} min ({-percent:g} %)"
                measure = f"{AVERAGES[reading]}: {words}"
                found += [
                    Claim(
                        where,
                        text,
                        f"{measure}, difference in min",
                        interval(difference(column)(one, other)),
                        *near(minutes),
                    ),
                    Claim(
                        where,
                        text,
                        f"{measure}, change in %",
                        interval(change(column)(one, other)),
                        *near_pct(percent),
                    ),
                ]
    return found
