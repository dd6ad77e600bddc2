"""What becomes of the jobs of the version before, which held its waiting jobs and kept a mark in `Extra`. Pure.

Only for `sns adopt`; both go with the next release. That version's mark is `sns:1`, then the hints, `fixed`, and words
of its own: `advised` (the job is Slurm's), `nice=` and `grant=`. A placed job had a nice value below every owner's.
"""

from enum import StrEnum
from typing import NamedTuple

from slurm_sns.scheduler.observation.observed import JobState, ObservedJob
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record

_BEGIN = "sns:1"
_ADVISED = "advised"
_OWN_WORDS = ("nice=", "grant=")
#: The smaller of its two boosts, and the larger one.
_BOOSTS = (-60_000, -2_000_000_000)
#: Slurm's reason for a hold by the submit filter of that version, and by an owner.
_HELD = "JobHeldUser"


class Becomes(StrEnum):
    """What becomes of a job; the value is shown to admins."""

    GATED = "gated"
    FREED = "given to Slurm as its owner wrote it"
    HELD = "given to Slurm, held by its owner"
    SLURMS = "Slurm's already"


class Adoption(NamedTuple):
    """What becomes of a waiting job of that version, and what is written into it.

    Attributes:
        job: the job.
        becomes: what becomes of it.
        admin_comment: its new AdminComment, if it is gated.
        nice: its owner's nice value, if ours is on it.
    """

    job: ObservedJob
    becomes: Becomes
    admin_comment: str = ""
    nice: int | None = None


def adoption(job: ObservedJob, gate_s: int) -> Adoption | None:
    """What becomes of this job; None if it does not wait or has no mark of that version.

    A job that is held without a placement on it was held by that version, and is gated until `gate_s`. All others are
    Slurm's from now on: whose hold it is, and which memory was the owner's own, that version kept elsewhere.
    """
    words = job.extra.split(" ")
    if job.state is not JobState.PENDING or job.record is not None or words[0] != _BEGIN:
        return None
    if _ADVISED in words:
        return Adoption(job, Becomes.SLURMS, nice=_own_nice(job, words))
    is_boosted = job.nice <= max(_BOOSTS)
    if job.priority == 0 and job.reason == _HELD and not job.pinned_to and not is_boosted:
        hints = [word for word in words[1:] if not word.startswith(_OWN_WORDS)]
        read = records.read(" ".join((records.BEGIN, *hints)))
        if read is not None and not read.is_slurms:
            record = Record(read.hints, gate_s=gate_s, restarts=job.restarts)
            return Adoption(job, Becomes.GATED, records.written(job.admin_comment, record))
        return Adoption(job, Becomes.FREED)
    becomes = Becomes.HELD if job.priority == 0 else Becomes.FREED
    return Adoption(job, becomes, nice=_own_nice(job, words))


def _own_nice(job: ObservedJob, words: list[str]) -> int | None:
    """The owner's nice value: a value above 0 stands in the mark, another one has our boost added."""
    if job.nice > max(_BOOSTS):
        return None
    noted = next((word.removeprefix("nice=") for word in words if word.startswith("nice=")), "")
    added = next(boost for boost in reversed(_BOOSTS) if job.nice <= boost or boost == _BOOSTS[0])
    return int(noted) if noted.isdecimal() else job.nice - added
