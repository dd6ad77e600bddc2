"""What the submit filter would do with each job of a log: jobs, core-hours and users, also as a page. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from slurm_sns.coverage.logs import JobLog, LoggedJob
from slurm_sns.submit.judge import PassThrough, Refuse, judge
from slurm_sns.submit.table import FilterTable

MANAGED = "managed"
REFUSED = "refused: no partition could ever hold it"
#: Any moment: the scheduler is taken to show signs of life.
_NOW_S = 1_000_000

#: What no log says, so that the part that is managed is an upper bound.
NEVER_SHOWN = (
    "what stands in the scripts (`#SBATCH`) beside what sacct shows of every job, and options from the environment; "
    "edits of waiting jobs; jobs that may preempt others (PriorityTier, QOS), which are given to Slurm; the nodes: "
    "jobs that take the whole memory of unlike nodes (`--mem=0`, or no `--mem` without a DefMemPerCPU) are Slurm's, too"
    "; and jobs that ask for GPUs, unless sns.yaml names those of the nodes"
)
#: What the columns of sacct are needed for; without a column, this is not seen.
COLUMNS = {
    "SubmitLine": "node lists, --exclusive, ranges of nodes and most other options",
    "Constraints": "constraints of scripts",
    "ReqTRES": "GPUs and other gres",
    "Reservation": "reservations",
    "ReqNodes": "node lists",
    "Partition": "partitions that are not managed",
}


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
    """A table by which all partitions that these jobs name are managed, also the default one, and their GPUs."""
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
        places_gpus=True,
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


def page(name: str, log: JobLog, found: Coverage) -> str:
    """The page in Markdown for the log of this name."""
    return "\n".join(_lines(name, log, found)) + "\n"


def _lines(name: str, log: JobLog, found: Coverage) -> Iterator[str]:
    managed = next((each for each in found.tallies if each.reason == MANAGED), None)
    of_jobs, of_hours = (0.0, 0.0) if managed is None else found.part(managed)
    yield f"# Jobs of {name} that slurm_sns would manage"
    yield ""
    yield (
        f"Of {found.jobs:,} jobs with {found.core_hours:,.0f} core-hours, **{of_jobs:.1%} of the jobs and "
        f"{of_hours:.1%} of the core-hours** would be managed. Of {found.users} users, all jobs of "
        f"{found.users_managed_entirely} would be, and no job of {found.users_not_managed}. The others are Slurm's, "
        "by the first reason that the submit filter meets "
        "(docs/admins/which-jobs.md explains each):"
    )
    yield ""
    yield "| | jobs | | core-hours | | users |"
    yield "|---|--:|--:|--:|--:|--:|"
    for each in found.tallies:
        jobs, hours = found.part(each)
        yield f"| {each.reason} | {each.jobs:,} | {jobs:.2%} | {each.core_hours:,.0f} | {hours:.2%} | {each.users} |"
    yield ""
    yield f"Not in a log: {NEVER_SHOWN}."
    lacking = [f"{column} ({what})" for column, what in COLUMNS.items() if log.columns and column not in log.columns]
    if lacking:
        yield f"Not in this one, for want of a column of sacct: {'; '.join(lacking)}."
    if not log.columns:
        yield "Core-hours are tasks times run time: the other cores of whole nodes are not counted."
    for reason, count in sorted(log.unread.items()):
        yield f"Left out: {count:,} records: {reason}."
