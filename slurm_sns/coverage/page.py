"""What a log says of the jobs that slurm_sns would manage, as a page in Markdown. Pure."""

from collections.abc import Iterator

from slurm_sns.coverage.judged import MANAGED, Coverage
from slurm_sns.coverage.logs import JobLog

#: What no log says, so that the part that is managed is an upper bound.
NEVER_SHOWN = (
    "what stands in the scripts (`#SBATCH`) beside what sacct shows of every job, and options from the environment; "
    "edits of waiting jobs; jobs that may preempt others (PriorityTier, QOS), which are given to Slurm; the nodes: "
    "jobs that take the whole memory of unlike nodes (`--mem=0`, or no `--mem` without a DefMemPerCPU) are Slurm's, too"
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


def page(name: str, log: JobLog, found: Coverage) -> str:
    """The page for the log of this name."""
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
        "(docs/which-jobs.md explains each):"
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
