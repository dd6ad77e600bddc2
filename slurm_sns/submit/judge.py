"""What happens when a job is submitted: it passes through, is refused, or gets our record (in enforce also a gate).

The module promises this order of checks:

1. With the kill switch, without a fresh heartbeat, in the mode observe, or in a partition that we do not manage, the
   job passes untouched. Nothing else in it is read.
2. In managed partitions, in advise and enforce, bad hints are refused, also on a job that we would not place: a wrong
   hint is a mistake of its writer either way.
3. A job that asks to be left alone, or uses something that we do not place, passes untouched. So does a job that gets
   the whole memory of each of its nodes where the nodes differ in memory: how much it gets depends on the nodes that
   Slurm chooses. So does a job in whose AdminComment a record stands already, and a job that names a partition whose
   jobs share cores beside another one: they are planned apart.
4. In enforce, a job that its partitions could never hold is refused. In advise Slurm decides about it.
5. All other jobs get our record in their AdminComment, beside the text that an administrator or the site's own script
   has set there. In enforce the job is gated: its begin time is `first_lease_s` from now, or its owner's own begin time
   if that is as far away. In advise the record says that the job is Slurm's, and nothing else is changed.

slurmctld waits for the verdict with its locks held. So whatever a user can make long is limited before it is read: the
list of partitions (`MOST_PARTITION_BYTES`), the comment (`MOST_COMMENT_BYTES`) and the hints in it
(`hints.MOST_BYTES`), the SPANK options (`submission.MOST_SPANK_ENTRIES`), the script
(`submission.MOST_SCRIPT_BYTES`) and the node shapes that are counted (`capacity.MOST_SHAPES`). The text of AdminComment
has no limit, because only administrators and the site's own script write it at submission.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_sns.errors import BadInput
from slurm_sns.submit import capacity, hints, record
from slurm_sns.submit.messages import as_bytes
from slurm_sns.submit.record import Record
from slurm_sns.submit.submission import Submission, fixes_geometry, unplaced
from slurm_sns.submit.table import FilterTable, NodeShape

# Slurm itself refuses longer texts, but only later.
MOST_PARTITION_BYTES = 1024
MOST_COMMENT_BYTES = 1024

#: Why a job is Slurm's that names a partition whose jobs share cores, and others.
SHARED_AND_OTHERS = "partitions that share cores and others"
#: Why a job is Slurm's that was submitted in the mode advise.
ADVISE = "advise"


@dataclass(frozen=True, slots=True)
class PassThrough:
    """The job is left exactly as it was submitted; `reason` is for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The job is not accepted; `message` is for its user."""

    message: str


@dataclass(frozen=True, slots=True)
class Manage:
    """The job gets this AdminComment, with our record in it, and this begin time; None leaves the one that it has."""

    admin_comment: str
    begin_s: int | None


Verdict = PassThrough | Refuse | Manage


def judge(job: Submission, table: FilterTable, now_s: int, heartbeat_s: int | None, killed: bool) -> Verdict:
    """The verdict on a job; `heartbeat_s` is None when there is no readable heartbeat."""
    idle = _idle(table, now_s, heartbeat_s, killed)
    if idle is not None:
        return PassThrough(idle)
    names = _partitions(job, table)
    if not names:
        return PassThrough("partition not managed")
    try:
        told = hints.parse(job.comment, job.options, table.heuristics)
    except BadInput as problem:
        return Refuse(str(problem))
    if len(as_bytes(job.comment)) > MOST_COMMENT_BYTES:
        return PassThrough("long comment")
    return _managed(job, told, table, now_s, {name: table.partitions[name] for name in names})


def shares_in_part(partitions: Iterable[str], sharing: Iterable[str]) -> bool:
    """Whether jobs share cores in one of several partitions of a job. In each of them it would be planned by itself."""
    names = set(partitions)
    return len(names) > 1 and not names.isdisjoint(sharing)


def _partitions(job: Submission, table: FilterTable) -> list[str]:
    """The partitions of the job; none when we do not manage all of them."""
    if len(as_bytes(job.partition)) > MOST_PARTITION_BYTES:
        return []
    names = [name for name in job.partition.split(",") if name] or [table.default_partition]
    return names if all(name in table.partitions for name in names) else []


def _managed(
    job: Submission, told: hints.Hints, table: FilterTable, now_s: int, shapes: Mapping[str, Sequence[NodeShape]]
) -> Verdict:
    """The verdict on a job of managed partitions whose hints are in order."""
    reason = "off" if told.off else unplaced(job, places_gpus=table.places_gpus)
    if reason is None and shares_in_part(shapes, table.sharing):
        reason = SHARED_AND_OTHERS
    if reason is None and capacity.leaves_memory_open(job, shapes, table.default_memory_per_cpu_mb):
        reason = "whole memory of unlike nodes"
    if reason is not None:
        return PassThrough(reason)
    noted = replace(told, fixed=fixes_geometry(job))
    if table.mode != "enforce":
        return Manage(record.written(job.admin_comment, Record(noted, free_why=ADVISE)), None)
    message = capacity.refusal(job, shapes, table.default_memory_per_cpu_mb)
    if message:
        return Refuse(message)
    own_s = job.begin_time if job.begin_time is not None and job.begin_time > now_s else None
    gate_s = max(own_s or 0, now_s + table.first_lease_s)
    return Manage(record.written(job.admin_comment, Record(noted, gate_s=gate_s, begin_s=own_s)), gate_s)


def _idle(table: FilterTable, now_s: int, heartbeat_s: int | None, killed: bool) -> str | None:
    """Why the filter does nothing at all now; None when it does its work.

    A heartbeat from the future is as stale as an old one, because clocks can jump.
    """
    if killed:
        return "kill switch"
    if table.mode == "observe":
        return "mode observe"
    if heartbeat_s is None:
        return "no heartbeat"
    if abs(now_s - heartbeat_s) > table.heartbeat_timeout_s:
        return "stale heartbeat"
    return None
