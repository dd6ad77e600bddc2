"""When a job is expected to start, in local time: `14:10 to 16:40`, by limits `22:05`, `after Sun 09:00`.

Times are to the minute, and to ten minutes where a range is wider than an hour, its ends outward.
"""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]

#: The step of a narrow range's ends, and of a wide one's.
MINUTE_S, TEN_MINUTES_S = 60, 600
WIDE_S = 3600
DAY_S = 86_400
#: The range of a job that still waits when it is over.
LATE = "late"


def start_range(row: Row, now_s: float) -> str:
    """The range of the row's start, `late` once it is over; `after` the look ahead if there is none; `-` if unknown."""
    starts = row.get("starts")
    if starts is None:
        return "-"
    if starts["low_s"] is None:
        return f"after {moment(starts['not_before_s'], now_s)}" if starts["not_before_s"] > now_s else "-"
    low_s, high_s = starts["low_s"], starts["high_s"]
    if high_s <= now_s:
        return LATE
    step_s = MINUTE_S if high_s - low_s <= WIDE_S else TEN_MINUTES_S
    earliest, latest = moment(low_s // step_s * step_s, now_s), moment(-(-high_s // step_s) * step_s, now_s)
    return earliest if earliest == latest else f"{earliest} to {latest}"


def by_limits(row: Row, now_s: float) -> str:
    """The row's start if all jobs run until their limits; `-` if it is not known."""
    starts = row.get("starts")
    return "-" if starts is None or starts["limits_s"] is None else moment(starts["limits_s"], now_s)


def sentence(row: Row, now_s: float) -> str:
    """Both, and what the job waits for, as a sentence; empty if nothing is known now."""
    starts = row.get("starts")
    if starts is None:
        return ""
    told = start_range(row, now_s)
    if told == LATE:
        return "is later than its expected range"
    if told == "-":
        return ""
    when = told if starts["low_s"] is None else f"between {told.replace(' to ', ' and ')}" if " to " in told else told
    limits = "" if starts["limits_s"] is None else f" (by limits {by_limits(row, now_s)})"
    what = f", when {starts['waits_for']} come free" if starts["waits_for"] else ""
    if what.startswith(", when node "):
        what = what.replace(" come free", " comes free")
    return f"starts {when}{limits}{what}"


def moment(at_s: float, now_s: float) -> str:
    """The time of today, with the day where it is another one; `now` for what is past."""
    from datetime import datetime

    if at_s <= now_s:
        return "now"
    at, now = datetime.fromtimestamp(at_s).astimezone(), datetime.fromtimestamp(now_s).astimezone()
    if at.date() == now.date():
        return at.strftime("%H:%M")
    return at.strftime("%a %H:%M" if at_s - now_s < 6 * DAY_S else "%d %b %H:%M")
