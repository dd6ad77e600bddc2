"""The report on restarts of suspended jobs in the store of a scheduler: what was done, or would have been done."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from slurm_sns.cli.json_types import RestartsReport
from slurm_sns.cli.live.terminal import zoned_clock
from slurm_sns.durations import duration
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable

if TYPE_CHECKING:
    from slurm_sns.store.recorded_plans import RecordedRestart

TITLE = "Restarts of suspended jobs"
HOUR_S, DAY_S = 3600.0, 86_400.0
MOST_NAMED, MOST_POINTS = 20, 120
EXPECTED = (
    "Times are those that were expected when it was decided; what became of the jobs is in accounting: sacct -D -j "
    "JOBID shows each run. sns explain JOBID has the terms of a decision."
)
NOTHING = (
    "The store has no restart and no proposal: no job that may restart was suspended for long enough, or staying was "
    "better each time. sns queue says of each suspended job why it stays; sns check says what Slurm must do."
)


def restart_values(restarts: Sequence["RecordedRestart"], user_name: Callable[[int], str]) -> RestartsReport:
    """The figures."""
    return {
        "restarts": sum(not each.is_proposal for each in restarts),
        "proposals": sum(each.is_proposal for each in restarts),
        "decisions": [
            {
                "job": each.label,
                "user": user_name(each.user_id),
                "at_s": each.at_s,
                "proposal": each.is_proposal,
                "stays_s": each.stays_s,
                "restarts_s": each.restarts_s,
                "lost_core_h": each.lost_core_s / HOUR_S,
            }
            for each in restarts
        ],
    }


def restart_page(values: RestartsReport) -> ReportPage:
    """The page."""
    decided = values["decisions"]
    if not decided:
        return ReportPage(TITLE, [NOTHING], [])
    began_s, ended_s = decided[0]["at_s"], decided[-1]["at_s"]
    gained_s = [each["stays_s"] - each["restarts_s"] for each in decided]
    jobs, lost_h = len({each["job"] for each in decided}), sum(each["lost_core_h"] for each in decided)
    summary = [
        (
            f"{zoned_clock(began_s)} to {zoned_clock(ended_s)}: {values['restarts']:,} restarts of suspended jobs, and "
            f"{values['proposals']:,} that were only proposed; of {jobs:,} jobs."
        ),
        (
            f"They were expected to complete {duration(sum(gained_s) / len(gained_s))} sooner on average, at a cost of "
            f"{lost_h:,.1f} core-hours of work at most."
        ),
    ]
    return ReportPage(TITLE, summary, [_by_user(values), _longest(values)])


def _by_user(values: RestartsReport) -> ReportSection:
    users = Counter(each["user"] for each in values["decisions"])
    rows = []
    for user, count in users.most_common(MOST_NAMED):
        own = [each for each in values["decisions"] if each["user"] == user]
        sooner_s = sum(each["stays_s"] - each["restarts_s"] for each in own) / count
        rows.append([user, f"{count:,}", duration(sooner_s), f"{sum(each['lost_core_h'] for each in own):,.1f}"])
    columns = ["user", "restarts", "sooner, mean", "core-hours lost"]
    note = f"The {MOST_NAMED} users with most, of {len(users):,}." if len(users) > MOST_NAMED else ""
    return ReportSection("By owner", [], [ReportTable(columns, rows, frozenset({1, 2, 3}), note)], [_over_time(values)])


def _over_time(values: RestartsReport) -> ReportChart:
    decided = values["decisions"]
    began_s, ended_s = decided[0]["at_s"], decided[-1]["at_s"]
    unit_s, unit = (DAY_S, "day") if ended_s - began_s > MOST_POINTS * HOUR_S else (HOUR_S, "hour")
    counts = Counter(int((each["at_s"] - began_s) // unit_s) for each in decided)
    points = [ChartPoint(float(at), counts[at]) for at in range(int((ended_s - began_s) // unit_s) + 1)]
    labels = (f"{unit}s since the first", f"restarts in each {unit}")
    return ReportChart("Restarts and proposals over time", "lines", {"restarts": points}, labels)


def _longest(values: RestartsReport) -> ReportSection:
    gain = sorted(values["decisions"], key=lambda each: each["restarts_s"] - each["stays_s"])
    rows = [
        [
            each["job"],
            each["user"],
            zoned_clock(each["at_s"]),
            "proposed" if each["proposal"] else "restarted",
            duration(each["stays_s"]),
            duration(each["restarts_s"]),
            f"{each['lost_core_h']:,.1f}",
        ]
        for each in gain[:MOST_NAMED]
    ]
    columns = ["job", "user", "when", "", "would complete in", "elsewhere in", "core-hours lost"]
    return ReportSection("Those that gain most", [EXPECTED], [ReportTable(columns, rows, frozenset({0, 4, 5, 6}))])
