"""What happens to a job at its submission: pass through, refuse, or mark it (and hold it, in the mode enforce).

The module promises this order of checks:

1. With the kill switch, without a fresh heartbeat, in the mode observe, or in a partition that we do not manage, the
   job passes untouched. Nothing else in it is read, neither hints nor mark.
2. In managed partitions, in advise and enforce, bad hints are refused, also on a job that we would not place: a wrong
   hint is a mistake of its writer either way. An `--extra` that looks like a mark is refused as well.
3. A job that asks to be left alone, or uses something that we do not place, passes untouched. So does a job that gets
   the whole memory of each of its nodes where the nodes differ in memory: how much it gets depends on the nodes that
   Slurm chooses.
4. In enforce, a job that its partitions could never hold is refused. In advise Slurm decides about it.
5. All other jobs are marked. In enforce they are also held; in advise the mark says `advised`.

slurmctld waits for the verdict with its locks held. So whatever a user can make long is limited before it is read: the
list of partitions (`MOST_PARTITION_BYTES`), the comment (`MOST_COMMENT_BYTES`) and the hints in it
(`hints.MOST_BYTES`), the SPANK options (`submission.MOST_SPANK_ENTRIES`), the script
(`submission.MOST_SCRIPT_BYTES`) and the node shapes that are counted (`capacity.MOST_SHAPES`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_sns.errors import BadInput
from slurm_sns.submit import capacity, hints, mark
from slurm_sns.submit.messages import as_bytes, quote, say
from slurm_sns.submit.submission import Submission, fixes_geometry, unplaced
from slurm_sns.submit.table import FilterTable, NodeShape

# Slurm itself refuses longer texts, but only later.
MOST_PARTITION_BYTES = 1024
MOST_COMMENT_BYTES = 1024


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
    """The job gets our mark; `hold` also sets its priority to 0 until the scheduler places it."""

    extra: str
    hold: bool


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
    if job.extra.startswith(hints.PREFIX):
        return Refuse(say("extra", {"value": quote(job.extra)}))
    return _managed(job, told, table, {name: table.partitions[name] for name in names})


def _partitions(job: Submission, table: FilterTable) -> list[str]:
    """The partitions of the job; none when we do not manage all of them."""
    if len(as_bytes(job.partition)) > MOST_PARTITION_BYTES:
        return []
    names = [name for name in job.partition.split(",") if name] or [table.default_partition]
    return names if all(name in table.partitions for name in names) else []


def _managed(
    job: Submission, told: hints.Hints, table: FilterTable, shapes: Mapping[str, Sequence[NodeShape]]
) -> Verdict:
    """The verdict on a job of managed partitions whose hints are in order."""
    reason = "off" if told.off else unplaced(job)
    if reason is None and capacity.leaves_memory_open(job, shapes, table.default_memory_per_cpu_mb):
        reason = "whole memory of unlike nodes"
    if reason is not None:
        return PassThrough(reason)
    hold = table.mode == "enforce"
    if hold:
        message = capacity.refusal(job, shapes, table.default_memory_per_cpu_mb)
        if message:
            return Refuse(message)
    return Manage(mark.write(replace(told, fixed=fixes_geometry(job), advised=not hold)), hold)


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
