"""What agents have measured of each run, for its owner: from their reports to one row for a run on a node.

Writing is a record and no more: a store that does not answer costs the record, never a cycle, and nothing is decided by
what is stored. A report is written once, however often it is heard; a value that cannot be right is left out alone.
"""

from collections.abc import Collection, Iterable, Mapping
from math import fsum, isfinite

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import MeasuredRun, Measurements
from slurm_sns.wire.values import ReportKey, RunReport


def measured_run(report: RunReport, user_id: int | None, now_s: float) -> MeasuredRun | None:
    """What the report says of the run over all its ways; None if nothing was measured.

    The agent's clock may be ahead: no run ends after this moment. A sampled run had few ways while it was alone, by
    our choice, so its IPC alone says nothing of neighbours.
    """
    points = [each for each in report.points if each.seconds > 0]
    if not points:
        return None
    alone = [(each.alone_ipc, each.alone_s) for each in points if 0 < each.alone_s <= each.seconds]
    ipc_alone = None if report.was_sampled else _mean(alone)
    return MeasuredRun(
        run=report.run,
        node=report.node,
        user_id=user_id,
        ended_s=min(report.ended_s, now_s),
        least_ways=min(each.ways for each in points),
        most_ways=max(each.ways for each in points),
        seconds=fsum(each.seconds for each in points),
        ipc=_mean([(each.ipc, each.seconds) for each in points]),
        bandwidth_gbps=_mean([(each.bandwidth_gbps, each.seconds) for each in points]),
        alone_s=0.0 if ipc_alone is None else fsum(seconds for ipc, seconds in alone if ipc is not None),
        ipc_alone=ipc_alone,
    )


def _mean(weighed: Iterable[tuple[float | None, float]]) -> float | None:
    """The mean of the values that are known, weighed by seconds; None if there is none, or if it is no number."""
    known = [(value, seconds) for value, seconds in weighed if value is not None]
    total_s = fsum(seconds for _, seconds in known)
    mean = fsum(value * seconds for value, seconds in known) / total_s if total_s else None
    return mean if mean is not None and isfinite(mean) else None


class MeasurementRecord:
    """Writes what reports say, each report once while the agent repeats it."""

    def __init__(self, measurements: Measurements, log: Log) -> None:
        self._measurements = measurements
        self._outage = Outage(log, "; what was measured of single runs is lost meanwhile")
        #: The reports that were seen before and are still waiting for their acknowledgement.
        self._seen: frozenset[ReportKey] = frozenset()

    def add(self, reports: Collection[RunReport], jobs: Iterable[ObservedJob], now_s: float) -> None:
        """Write what is new in these reports, which are all that wait. `jobs` are those of which Slurm knows."""
        new = [report for report in reports if report.key not in self._seen]
        self._seen = frozenset(report.key for report in reports)
        if not new:
            return
        wanted = {report.run.job_id for report in new}
        owners: Mapping[int, int] = {job.id: job.user_id for job in jobs if job.id in wanted}
        found = [measured_run(report, owners.get(report.run.job_id), now_s) for report in new]
        runs = [each for each in found if each is not None]
        if not runs:
            return
        try:
            self._measurements.record(runs, now_s)
        except SnsError as problem:
            self._outage.met(str(problem), now_s)
        else:
            self._outage.over(now_s)
