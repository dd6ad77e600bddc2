"""The report on a site as JSON."""

from typing import Any, cast

from slurm_sns.sim.site_report.comparison import Compared
from slurm_sns.sim.site_report.judged_sample import left_to_slurm
from slurm_sns.sim.site_report.report_types import (
    AccountingReport,
    ComparedValues,
    IdleValues,
    LongerWaitValues,
    PartitionAdviceValues,
    WaitingHoursValues,
)
from slurm_sns.sim.site_report.site_report import Idle, SiteReport
from slurm_sns.sim.site_report.waiting_reasons import REASONS


def values_of(report: SiteReport) -> AccountingReport:
    """The report as JSON."""
    found = report.judged.found
    return {
        "policy": report.asked.policy,
        "seed": report.asked.seed,
        "jobs": report.trace_jobs,
        "dropped": dict(report.dropped),
        "weeks": len(report.replayed),
        "weeks_there": len(report.weeks.begins_s),
        "replayed_jobs": report.replayed_jobs,
        "overall": _compared(report.overall),
        "partitions": [_compared(each) for each in report.partitions],
        "sizes": [_compared(each) for each in report.sizes],
        "advice": [cast("PartitionAdviceValues", each._asdict()) for each in report.advice],
        "interval_s": report.interval_s,
        "mean_wait_s": {str(each): wait_s for each, wait_s in report.mean_wait_s.items()},
        "longest": [cast("LongerWaitValues", each._asdict()) for each in report.longest],
        "waiting_hours": [
            cast("WaitingHoursValues", {"partition": name, **dict(zip(REASONS, hours, strict=True))})
            for name, hours in report.waiting_h.items()
        ],
        "slurm_idle": _idle(report.slurm_idle),
        "sns_idle": _idle(report.sns_idle),
        "lines": report.judged.lines,
        "lines_judged": report.judged.sampled,
        "left_to_slurm": None
        if found is None
        else [{"reason": reason, "jobs": jobs, "core_hours": hours} for reason, jobs, hours in left_to_slurm(found)],
    }


def _compared(each: Compared) -> ComparedValues:
    values: dict[str, Any] = each._asdict()
    interval = values.pop("interval")
    waits = {key: {"mean_s": values[key][0], "p95_s": values[key][1]} for key in ("recorded", "slurm", "sns")}
    return cast("ComparedValues", {**values, **waits, "difference_95": None if interval is None else list(interval)})


def _idle(each: Idle) -> IdleValues:
    values: IdleValues = {
        "idle_cores": each.idle[0],
        "stranded_cores": each.stranded[0],
        "idle_memory": each.idle[1],
        "stranded_memory": each.stranded[1],
    }
    if each.gpus:
        values["gpus"] = [
            {
                "type": of.type,
                "gpus": of.gpus,
                "idle": of.idle,
                "stranded": of.stranded,
                "stranded_hours": of.stranded_h,
            }
            for of in each.gpus
        ]
    return values
