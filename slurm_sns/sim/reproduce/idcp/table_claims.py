"""What the paper says of tables 1 and 2, of half the machines and of high-priority jobs, as claims.

Each claim on restarts is judged in both readings of the averages. The targets that are named ours are not of the paper.

Source: Cost-based dynamic job rescheduling (2010), sections 2.2 and 4.1.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from slurm_sns.sim.reproduce.claims import Claim, interval
from slurm_sns.sim.reproduce.idcp.printed import (
    HALF_COMPLETION_MIN,
    HALF_SUSPENDED_CHANGE_PCT,
    HALF_UTILISATION_PCT,
    LITTLE_PCT,
    OWN_ALL_PCT,
    OWN_SUSPENDED_PCT,
    WITH,
    WITHOUT,
    Range,
    change_pct,
    near,
    near_pct,
)
from slurm_sns.sim.reproduce.idcp.statistics import Samples, Table, change, difference, paired, value
from slurm_sns.sim.reproduce.idcp.variants import AVERAGES, READINGS, named, without

TABLE_1, TABLE_2, SECTION, OURS = "table 1", "table 2", "sec. 4.1", "our target"


class RangeStatement(NamedTuple):
    """A statement and the quantity that should lie in the range, from the samples with restarts and without."""

    where: str
    text: str
    measure: str
    found: Callable[[Table, Table], Samples]
    expected: Range


def _changed(where: str, text: str, measure: str, column: str, expected: Range) -> RangeStatement:
    return RangeStatement(where, text, f"{measure}, change in %", change(column), expected)


_BELOW_0 = Range(high=0)
#: On the whole site.
FULL = (
    RangeStatement(
        TABLE_1,
        "99.2 % of the suspended jobs complete in the period, without restarts 97.3 %",
        "% completed, difference in points",
        difference("completed_pct"),
        near(WITH.completed_pct - WITHOUT.completed_pct),
    ),
    RangeStatement(
        TABLE_1,
        "jobs are suspended for 44.9 min on average, without restarts for 1432.6 min",
        "mean suspend time with restarts, min",
        value("suspend_min"),
        near(WITH.suspend_min),
    ),
    _changed(
        TABLE_1,
        "suspended jobs complete after 466.9 min, without restarts after 1824.6 min (75 % less)",
        "mean completion of suspended jobs",
        "suspended_completion_min",
        near_pct(change_pct(WITH.suspended_completion_min, WITHOUT.suspended_completion_min)),
    ),
    _changed(
        TABLE_1,
        "59,875 jobs are suspended, without restarts 36,459",
        "jobs suspended",
        "suspended",
        near_pct(change_pct(WITH.suspended, WITHOUT.suspended)),
    ),
    _changed(
        SECTION,
        "restarts do not reduce the number of suspensions",
        "suspensions",
        "suspensions",
        Range(low=0),
    ),
    _changed(
        TABLE_2,
        "841,074 jobs complete in the period, without restarts 840,552",
        "jobs completed",
        "completed",
        near_pct(change_pct(WITH.completed, WITHOUT.completed)),
    ),
    _changed(
        TABLE_2,
        "all jobs complete after 259.6 min, without restarts after 305.6 min (15 % less)",
        "mean completion of all jobs",
        "completion_min",
        near_pct(change_pct(WITH.completion_min, WITHOUT.completion_min)),
    ),
    RangeStatement(
        TABLE_2,
        "utilisation is 43.4 %, without restarts 42.3 %",
        "utilisation, difference in points",
        difference("utilisation_pct"),
        near(WITH.utilisation_pct - WITHOUT.utilisation_pct),
    ),
    _changed(
        "sec. 2.2",
        "little or no adverse impact on high-priority jobs",
        "mean completion of high-priority jobs",
        "high_min",
        Range(high=LITTLE_PCT),
    ),
    _changed(
        OURS,
        "the mean completion of suspended jobs falls by at least half",
        "mean completion of suspended jobs",
        "suspended_completion_min",
        Range(high=-OWN_SUSPENDED_PCT),
    ),
    RangeStatement(
        OURS,
        "it falls by at least half for the jobs that are suspended without restarts, pair by pair",
        "their mean completion, change in %",
        paired,
        Range(high=-OWN_SUSPENDED_PCT),
    ),
    _changed(
        OURS,
        "the mean completion of all jobs falls by at least 10 %",
        "mean completion of all jobs",
        "completion_min",
        Range(high=-OWN_ALL_PCT),
    ),
)
#: On half of the machines.
HALF = (
    _changed(
        SECTION,
        "half the machines: suspended jobs complete after 71 % less time",
        "mean completion of suspended jobs",
        "suspended_completion_min",
        near_pct(HALF_SUSPENDED_CHANGE_PCT),
    ),
    _changed(
        SECTION,
        "half the machines: restarts are better for all jobs, too",
        "mean completion of all jobs",
        "completion_min",
        _BELOW_0,
    ),
    _changed(
        OURS,
        "half the machines: restarts are better for all jobs, each followed to its end",
        "mean completion of the jobs submitted in the period",
        "submitted_min",
        _BELOW_0,
    ),
)
#: Half of the machines over the whole site, both without restarts.
HALVED = (
    RangeStatement(
        SECTION,
        "half the machines without restarts: utilisation is 80.5 % instead of 42.3 %",
        "utilisation, difference in points",
        difference("utilisation_pct"),
        near(HALF_UTILISATION_PCT - WITHOUT.utilisation_pct),
    ),
    _changed(
        SECTION,
        "half the machines without restarts: all jobs complete after 795.6 min instead of 305.6 min",
        "mean completion of all jobs",
        "completion_min",
        near_pct(change_pct(HALF_COMPLETION_MIN, WITHOUT.completion_min)),
    ),
    _changed(
        SECTION,
        "half the machines without restarts: the mean completion is more than doubled",
        "mean completion of all jobs",
        "completion_min",
        Range(low=100),
    ),
)


def claims(tables: Mapping[str, Table]) -> list[Claim]:
    """All claims, from the samples of each variant."""
    found = []
    for reading in READINGS:
        text = AVERAGES[reading]
        found += [_claim(stated, tables[reading], tables[without()], text) for stated in FULL]
        half, half_off = tables[named("half", reading)], tables[without("half")]
        found += [_claim(stated, half, half_off, text) for stated in HALF]
    return [*found, *(_claim(stated, tables[without("half")], tables[without()]) for stated in HALVED)]


def _claim(stated: RangeStatement, one: Table, other: Table, reading: str = "") -> Claim:
    measure = f"{reading}: {stated.measure}" if reading else stated.measure
    return Claim(stated.where, stated.text, measure, interval(stated.found(one, other)), *stated.expected)
