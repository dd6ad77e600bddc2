"""Tells owners at once of jobs that nobody could ever start as they are: a line of the log, and a mail where asked for.

Such a job waits for its owner or an admin: it has grown larger than all nodes, or asks for more than its partition
gives, or depends on a job that has failed. The mail goes by Slurm's MailProg to the MailUser of a job whose MailType
has FAIL (so has ALL), because nothing is a failure more than a job that never starts. Of a dependency that can never be
fulfilled Slurm itself sends a mail (INVALID_DEPEND), so we send none.

Each job is told once, and again only if the reason changes. What is told of one user comes every `PAUSE_S` at most, and
then counts all their jobs since the last time, so ten thousand jobs are one line and one mail. What was told is not
stored: a job that is too large becomes Slurm's by that same cycle and is not seen here again. A job that its partition
does not allow stays ours, and is told once more after a restart of the scheduler.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from slurm_sns.log import printable
from slurm_sns.scheduler.gate.job_status import NEVER_SATISFIED
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.ports import Mail, Ports
from slurm_sns.scheduler.snapshot.situation import Situation

NEVER = "can never start as it is"
#: The most notes in the decision record that one cycle makes.
MOST_NOTES = 200
#: The least time between two lines, or two mails to one address, about the jobs of one user.
PAUSE_S = 30.0
#: The most users that one cycle tells about; the next cycle goes on.
MOST_USERS = 10
#: The most addresses to which the jobs of one user may have mail sent in `PAUSE_S`; other jobs of theirs send none.
MOST_ADDRESSES = 3

#: The most letters of a reason, of a job's name, and of all addresses of a job.
MOST_REASON, MOST_NAME, MOST_TO = 300, 60, 256
#: A user or an address, without anything that a mail program takes for an option, a file, a command or a header.
_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(@[A-Za-z0-9][A-Za-z0-9.-]*)?", re.ASCII)


@dataclass
class _Group:
    """Jobs of which the first and its reason are named, and the others are counted."""

    job: ObservedJob
    why: str
    count: int = 0

    @property
    def others(self) -> str:
        """The other jobs, in words; empty if there are none."""
        more = self.count - 1
        return f"; nor can {more} more job{'' if more == 1 else 's'} of {self.job.user}" if more else ""


@dataclass
class _Untold:
    """What is to be told of one user's jobs: all of them in a line, and those of each address in a mail."""

    line: _Group
    mails: dict[str, _Group] = field(default_factory=dict)


class NeverStarting:
    """Remembers what was told, of the jobs that Slurm still knows."""

    def __init__(self, ports: Ports) -> None:
        self._clock, self._log, self._mailer = ports.clock, ports.log, ports.mailer
        self._told: dict[int, str] = {}
        self._untold: dict[int, _Untold] = {}
        self._last_s: dict[int, float] = {}

    def tell(self, situation: Situation) -> dict[int, str]:
        """Log and mail what is new in this cycle, and what was put off in earlier ones. It waits for nothing.

        Returns:
            What the decision record is to say of the new ones, by job id: of `MOST_NOTES` of them.
        """
        new: dict[int, str] = {}
        if self._told:
            known = {job.id for job in situation.observed}
            self._told = {job_id: why for job_id, why in self._told.items() if job_id in known}
        for job_id, why in situation.never.items():
            job = situation.jobs.get(job_id)
            if job is not None and self._told.get(job_id) != why:
                self._told[job_id] = new[job_id] = why
                self._add(job, why)
        now_s = self._clock.steady()
        self._last_s = {user_id: at_s for user_id, at_s in self._last_s.items() if now_s - at_s < PAUSE_S}
        due = [user_id for user_id in self._untold if user_id not in self._last_s]
        for user_id in due[:MOST_USERS]:
            self._last_s[user_id] = now_s
            self._send(self._untold.pop(user_id), situation.observation.mail_program)
        return {job_id: f"{NEVER}: {why}" for job_id, why in islice(new.items(), MOST_NOTES)}

    def _add(self, job: ObservedJob, why: str) -> None:
        untold = self._untold.setdefault(job.user_id, _Untold(_Group(job, why)))
        untold.line.count += 1
        to = "" if job.reason == NEVER_SATISFIED else address(job.mail_to)
        if to and (to in untold.mails or len(untold.mails) < MOST_ADDRESSES):
            untold.mails.setdefault(to, _Group(job, why)).count += 1

    def _send(self, untold: _Untold, program: str) -> None:
        of = untold.line
        self._log(f"job {of.job.label} of {of.job.user} {NEVER}: {of.why[:MOST_REASON]}{of.others}")
        if self._mailer is not None and program:
            for to, group in untold.mails.items():
                self._mailer.send(mail(program, to, group.job, f"{group.why[:MOST_REASON]}{group.others}"))


def address(written: str) -> str:
    """The MailUser of a job if it is one address or several with commas between, in plain letters; otherwise empty."""
    is_good = len(written) <= MOST_TO and all(_ADDRESS.fullmatch(each) for each in written.split(","))
    return written if is_good else ""


def mail(program: str, to: str, job: ObservedJob, why: str) -> Mail:
    """The mail about a job that can never start, with Slurm's form of subject and its environment variables."""
    name = _plain(job.name, MOST_NAME)
    subject = f"Slurm {_job_in_subject(job)} Name={name} {NEVER.capitalize()}: {why}"
    return Mail(program, to, printable(subject), dict(_variables(job, name)))


def _job_in_subject(job: ObservedJob) -> str:
    """The job as Slurm's subjects name it, which some mail programs read."""
    if job.array_id is None:
        return f"Job_id={job.id}"
    if job.array_task is None:
        return f"Array Summary Job_id={job.array_id}_* ({job.id})"
    return f"Array Task Job_id={job.label} ({job.id})"


def _variables(job: ObservedJob, name: str) -> Iterator[tuple[str, str]]:
    yield "SLURM_JOB_ID", str(job.id)
    yield "SLURM_JOBID", str(job.id)
    yield "SLURM_JOB_NAME", name
    yield "SLURM_JOB_USER", job.user
    yield "SLURM_JOB_UID", str(job.user_id)
    yield "SLURM_JOB_ACCOUNT", _plain(job.account, MOST_NAME)
    yield "SLURM_JOB_PARTITION", ",".join(job.partitions)
    yield "SLURM_JOB_STATE", "PENDING"
    yield "SLURM_JOB_MAIL_TYPE", "Never starts"
    if job.array_id is not None:
        yield "SLURM_ARRAY_JOB_ID", str(job.array_id)


def _plain(text: str, most: int) -> str:
    return printable(text[:most])
