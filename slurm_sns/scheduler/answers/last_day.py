"""The last 24 hours in moments of five minutes: cores that waited, cores that were stranded, how long jobs had waited.

It is kept over a restart as the history `day`. That may be lost: then the curves begin anew.
"""

import json
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.log import Outage
from slurm_sns.scheduler.answers.metrics import waiting_jobs
from slurm_sns.scheduler.answers.overview_types import DayPoint
from slurm_sns.scheduler.answers.stranded import left_free, stranded, waiting_needs
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.ports import History, PolicyHistory

#: The name and the version of what is kept.
NAME, VERSION = "day", 1
DAY_S, EACH_S = 86_400.0, 300.0
#: The names of a point's values, in the order in which they are kept.
FIELDS = ("at_s", "waiting_cores", "stranded_cores", "wait_p50_s", "wait_p90_s")


class LastDay:
    """Notes a moment every five minutes. `take_waits` gives the waits of the jobs that started since it was called."""

    def __init__(self, history: History, take_waits: Callable[[], Sequence[float]], outage: Outage) -> None:
        self._history, self._take_waits, self._outage = history, take_waits, outage
        #: Oldest first; replaced, never changed: other threads read it.
        self.points: tuple[DayPoint, ...] = ()
        try:
            self.points = _read(history.load_memory(NAME))
        except SnsError as problem:
            outage.met(str(problem), 0.0)

    def publish(self, view: View) -> None:
        """Note what a cycle shows that has just ended, if it is time."""
        last_s = self.points[-1]["at_s"] if self.points else 0.0
        if 0 <= view.at_s - last_s < EACH_S:
            return
        kept = (each for each in self.points if 0 <= view.at_s - each["at_s"] < DAY_S)  # the clock may be set back
        self.points = (*kept, _point(view, self._take_waits()))
        text = json.dumps([[each[name] for name in FIELDS] for each in self.points])  # type: ignore[literal-required]
        try:
            self._history.save((), (), PolicyHistory(NAME, VERSION, text))
            self._outage.over(view.at_s)
        except SnsError as problem:
            self._outage.met(str(problem), view.at_s)


def _point(view: View, waits_s: Sequence[float]) -> DayPoint:
    planned = {job.id: job.alternatives[0] for job in view.situation.snapshot.waiting}
    cores = 0
    for job, _ in waiting_jobs(view):
        first = planned.get(job.id)
        cores += job.cpus if first is None else first.nodes * first.demand.cores
    ordered, needs = sorted(waits_s), waiting_needs(view)
    return {
        "at_s": view.at_s,
        "waiting_cores": cores,
        "stranded_cores": sum(stranded(needs, node).cores for node in left_free(view)),
        "wait_p50_s": _within(ordered, 0.5),
        "wait_p90_s": _within(ordered, 0.9),
    }


def _within(ordered: Sequence[float], share: float) -> float | None:
    """The wait that this share of them did not exceed (nearest rank); None of none."""
    return ordered[ceil(share * len(ordered)) - 1] if ordered else None


def _read(kept: PolicyHistory | None) -> tuple[DayPoint, ...]:
    """What was kept; nothing if it is not of this form."""
    if kept is None or kept.version != VERSION:
        return ()
    try:
        rows: list[list[Any]] = json.loads(kept.text)
        return tuple(_as_point(dict(zip(FIELDS, row, strict=True))) for row in rows)
    except (ValueError, TypeError):
        return ()


def _as_point(of: dict[str, Any]) -> DayPoint:
    return {
        "at_s": float(of["at_s"]),
        "waiting_cores": int(of["waiting_cores"]),
        "stranded_cores": int(of["stranded_cores"]),
        "wait_p50_s": None if of["wait_p50_s"] is None else float(of["wait_p50_s"]),
        "wait_p90_s": None if of["wait_p90_s"] is None else float(of["wait_p90_s"]),
    }
