"""What the submit filter would do with each job of a log, and what that makes of jobs, core-hours and users. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurm_sns.coverage.logged import LoggedJob
from slurm_sns.submit.judge import PassThrough, Refuse, judge
from slurm_sns.submit.table import FilterTable

MANAGED = "managed"
REFUSED = "refused: no partition could ever hold it"
#: Any moment: the scheduler is taken to show signs of life.
_NOW_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Tally:
    """The jobs that have the same first reason why they are left to Slurm, or are managed."""

    reason: str
    jobs: int
    core_hours: float
    users: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The tallies, the managed jobs first, then by core-hours; and how many users are managed entirely."""

    tallies: tuple[Tally, ...]
    users: int
    users_managed_entirely: int
    users_not_managed: int

    @property
    def jobs(self) -> int:
        """All jobs."""
        return sum(each.jobs for each in self.tallies)

    @property
    def core_hours(self) -> float:
        """The core-hours of all jobs."""
        return sum(each.core_hours for each in self.tallies)

    def part(self, tally: Tally) -> tuple[float, float]:
        """The tally's part of all jobs and of all core-hours."""
        hours = self.core_hours
        return tally.jobs / self.jobs, tally.core_hours / hours if hours else 0.0


def all_partitions(jobs: Iterable[LoggedJob]) -> FilterTable:
    """A table by which all partitions that these jobs name are managed, also the default one, with unknown nodes."""
    named = {name for job in jobs for name in job.asked.partition.split(",")}
    return FilterTable(
        mode="enforce",
        partitions=dict.fromkeys(sorted({*named, ""}), ()),
        default_partition="",
        heuristics=(),
        default_memory_per_cpu_mb=0,
        heartbeat_path="",
        heartbeat_timeout_s=30,
        kill_switch_path="",
    )


def coverage(jobs: Sequence[LoggedJob], table: FilterTable) -> Coverage:
    """Judge each job by this table, in which the mode is enforce."""
    by_reason: dict[str, list[LoggedJob]] = defaultdict(list)
    reasons_of: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        reason = _reason(job, table)
        by_reason[reason].append(job)
        reasons_of[job.user].add(reason)
    tallies = [_tally(reason, of) for reason, of in by_reason.items()]
    tallies.sort(key=lambda each: (each.reason != MANAGED, -each.core_hours, each.reason))
    return Coverage(
        tuple(tallies),
        len(reasons_of),
        sum(reasons == {MANAGED} for reasons in reasons_of.values()),
        sum(MANAGED not in reasons for reasons in reasons_of.values()),
    )


def _reason(job: LoggedJob, table: FilterTable) -> str:
    verdict = judge(job.asked, table, _NOW_S, _NOW_S, killed=False)
    if isinstance(verdict, PassThrough):
        return verdict.reason
    return REFUSED if isinstance(verdict, Refuse) else MANAGED


def _tally(reason: str, jobs: Iterable[LoggedJob]) -> Tally:
    listed = list(jobs)
    return Tally(reason, len(listed), sum(job.core_hours for job in listed), len({job.user for job in listed}))
