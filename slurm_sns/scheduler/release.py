"""Giving held jobs to Slurm: on a clean stop, on `sns release --all`, when disabled, and by the watchdog."""

from slurm_sns.errors import Refused
from slurm_sns.scheduler.ports import Log, Planner
from slurm_sns.scheduler.situation import Situation
from slurm_sns.scheduler.standing import Standing


def release_held(situation: Situation, planner: Planner, log: Log, reason: str) -> int:
    """Release every job that we hold, and unpin every placed one that Slurm has not started; the number of both.

    Not those that their owners hold. Slurm lets a job be released twice: one that is free already stays as it is. A job
    that stays pinned would wait for its nodes alone, and nobody would look after it.

    Raises:
        Unreachable: slurmctld does not answer; jobs may still be held.
    """
    released = 0
    for job_id, what in situation.standings.items():
        try:
            if not _freed(situation, job_id, what, planner):
                continue
        except Refused as refusal:
            log(f"job {job_id}: could not be released: {refusal}")
            continue
        released += 1
        log(f"job {job_id}: released to Slurm: {reason}")
    return released


def _freed(situation: Situation, job_id: int, what: Standing, planner: Planner) -> bool:
    """Whether the job was ours to free, and was."""
    if what in (Standing.PLACED, Standing.OVERDUE, Standing.REQUEUED):
        record = situation.records[job_id]
        planner.unpin(situation.jobs[job_id].address, record.nice, record.own_memory, hold=False)
        if situation.jobs[job_id].priority == 0:  # Slurm holds it, since it could never run where we placed it
            planner.release(job_id)
        return True
    lost_its_mark = what is Standing.MARK_LOST and situation.jobs[job_id].priority == 0
    if what is Standing.WAITING or lost_its_mark:
        planner.release(job_id)
        return True
    return False
