"""Placements that came to nothing: when the job is planned again, and when we give up. Pure.

Slurm checks the limits of users, accounts and QOS itself, when it is about to start a job (snapshot.limits). A
job that meets one is gated again and withholds no capacity. Most limits are maxima, of a job or of a group: a job at
least as large as one that exceeded the limit exceeds it, too. So the jobs of one owner that met the same maximum pause
together, along with the owner's jobs that are at least as large and were never tried. After the pause one job tries
again, and one more for each job of the owner that has started or ended since, because a start shows that there is room
and an end makes room. Of those that have met the limit one more tries for each minute without a refusal, too: those
before it may find no nodes. Jobs that are not as large as the one refused last come first, in the order of their last
tries; then the others, the smallest first. So no job waits for ever behind another. The pauses grow (backoff_s). They
are shorter if a job of the same owner, account or QOS has ended since. After any other limit (a minimum, such as
QOSMinCpuNotSatisfied) each job pauses by itself.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from slurm_sns.model import Reason, WaitKind
from slurm_sns.scheduler.gate.job_status import Status, is_limit
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.settings import Settings

#: After this many placements that Slurm refused or did not start, the job is given to Slurm as it is.
MOST_FAILURES = 8
#: Slurm's reasons for not starting a job that may pass: a partition has reached a limit for now, or its dependency can
#: not be fulfilled as things stand. Pauses grow as after any failure, but the job is never given to Slurm.
PASSING_LIMITS = ("Partition", "Dependency")
#: The most letters kept of Slurm's reason; its longest one has 33.
MOST_REASON = 64


@dataclass(frozen=True, slots=True)
class Try:
    """What came of the last placements of a waiting job that Slurm refused or did not start.

    Slurm may reuse job ids after its state was wiped; `submit_s` tells the jobs apart.

    Attributes:
        job_id: Slurm's id of the job, for an array's waiting tasks that of their record.
        submit_s: when it was submitted.
        failures: how many of its placements failed since its last start.
        tried_s: when it was last placed.
        retry_s: when it may be planned again.
        note: why the last placement failed.
        limited_by: Slurm's reason if that was a limit of the job's owner, otherwise empty.
    """

    job_id: int
    submit_s: int
    failures: int = 0
    tried_s: float = 0.0
    retry_s: float = 0.0
    note: str = ""
    limited_by: str = ""


def still_meant(
    tries: Mapping[int, Try], jobs: Iterable[ObservedJob], statuses: Mapping[int, Status]
) -> dict[int, Try]:
    """The tries of jobs that wait for us still, or wait where we placed them."""
    if not tries:
        return {}
    return {
        job.id: tries[job.id]
        for job in jobs
        if job.id in tries
        and tries[job.id].submit_s == job.submit_s
        and job.state is JobState.PENDING
        and statuses[job.id] not in (Status.REQUEUED, Status.SLURMS, Status.FOREIGN)
    }


def not_started(job: ObservedJob, before: Try | None, settings: Settings, now_s: float) -> Try:
    """The try of a placed job that Slurm has not started in time, or will not start now."""
    record = job.record
    placed_s = now_s if record is None or record.placed_s is None else float(record.placed_s)
    why = f"placed on {','.join(job.pinned_to)}, but Slurm did not start it: {job.reason or 'no reason given'}"
    limited_by = job.reason[:MOST_REASON] if is_limit(job.reason) else ""
    after = failed(job, before, why, settings, now_s)
    if limited_by or job.reason.startswith(PASSING_LIMITS):
        after = replace(after, failures=min(after.failures, MOST_FAILURES - 1))
    return replace(after, limited_by=limited_by, tried_s=placed_s)


def failed(job: ObservedJob, before: Try | None, why: str, settings: Settings, now_s: float) -> Try:
    """The try after one more failed placement: the job is planned again after a pause that grows."""
    failures = 0 if before is None else before.failures
    wait_s = min(settings.backoff_max_s, settings.backoff_s * 2**failures)
    return Try(job.id, job.submit_s, failures + 1, tried_s=now_s, retry_s=now_s + wait_s, note=why)


def pause(tried: Try | None, settings: Settings, now_s: float) -> str:
    """Why the job pauses now; empty if it does not. A pause longer than ours comes from a clock that was set back."""
    if tried is None or tried.limited_by or not 0 < tried.retry_s - now_s <= settings.backoff_max_s:
        return ""
    return Reason(f"{tried.note}; tried again in {tried.retry_s - now_s:.0f} s", WaitKind.RETRY)


#: The reasons among them whose limit is a maximum.
_MAXIMUM = re.compile(r"Assoc(Grp|Max|iation)|QOS(Grp|Max|JobLimit|ResourceLimit|TimeLimit)|Max\w+Per(Account|User)$")

#: The longest pause if a job of the account or of the QOS has ended since: Slurm's own main pass runs once a minute.
RELIEVED_S = 60.0
#: For so long without a refusal, one more job tries: a refused job holds its nodes for a second or two.
ONE_MORE_S = 60.0
#: The longest pause if a job of the owner has ended since: a try takes its nodes for a second or two.
OWN_RELIEVED_S = 10.0

#: Account, QOS, partitions and user id of a job: jobs with equal ones share their limits.
Owner = tuple[str, str, tuple[str, ...], int]
#: Nodes, CPUs, memory (MiB), GPUs and time (s) of a job, and its id.
Size = tuple[tuple[int, int, int, int, float], int]
#: Slurm's reason for a limit, and the owner that met it.
Group = tuple[str, Owner]


@dataclass
class _Group:
    """The jobs of one owner that met the same limit: those that wait, and those that are placed and try again now."""

    waiting: list[ObservedJob] = field(default_factory=list)
    trying: list[ObservedJob] = field(default_factory=list)


def waiting_for_limits(
    candidates: Iterable[ObservedJob],
    jobs: Iterable[ObservedJob],
    placed: Collection[int],
    tries: Mapping[int, Try],
    *,
    now_s: float,
    longest_s: float,
) -> dict[int, str]:
    """The candidates that must not be planned now because a limit was met, with the reason, by job id.

    `jobs` are all jobs that Slurm shows, `placed` the ids of those that wait where we placed them. A pause longer than
    `longest_s` is over: it comes from a clock that was set back.
    """
    waiting, seen = list(candidates), list(jobs)
    groups = _groups(waiting, seen, placed, tries) if any(each.limited_by for each in tries.values()) else {}
    if not groups:
        return {}
    untried: dict[Owner, list[ObservedJob]] = {}
    for job in waiting:
        if not _limit_of(job, tries):
            untried.setdefault(_owner(job), []).append(job)
    past = _Past(seen)
    reasons: dict[int, str] = {}
    for (limit, owner), group in groups.items():
        if _MAXIMUM.match(limit):
            reasons |= _together(group, untried.get(owner, ()), tries, past, now_s=now_s, longest_s=longest_s)
        else:
            reasons |= _alone(group.waiting, tries, now_s, longest_s)
    return reasons


class _Past:
    """When the jobs of each owner started and ended, and when the last job of each account and each QOS ended."""

    def __init__(self, jobs: Iterable[ObservedJob]) -> None:
        self._starts: dict[Owner, list[float]] = {}
        self._ends: dict[Owner, list[float]] = {}
        self._last: dict[str, float] = {}
        for job in jobs:
            if job.state is JobState.PENDING:
                continue
            self._starts.setdefault(_owner(job), []).append(job.start_s)
            if job.state is JobState.ENDED:
                self._ends.setdefault(_owner(job), []).append(job.end_s)
                for key in _shared(job):
                    self._last[key] = max(job.end_s, self._last.get(key, 0.0))

    def changes_since(self, owner: Owner, moment_s: float) -> int:
        """How many starts and ends of the owner's jobs there were after that moment."""
        moments = (*self._starts.get(owner, ()), *self._ends.get(owner, ()))
        return sum(each > moment_s for each in moments)

    def pause_s(self, job: ObservedJob, refused_s: float) -> float:
        """The longest pause after that refusal; no limit if nothing has ended since."""
        if any(each > refused_s for each in self._ends.get(_owner(job), ())):
            return OWN_RELIEVED_S
        return RELIEVED_S if any(self._last.get(key, 0.0) > refused_s for key in _shared(job)) else inf


def _together(
    group: _Group,
    untried: Sequence[ObservedJob],
    tries: Mapping[int, Try],
    past: _Past,
    *,
    now_s: float,
    longest_s: float,
) -> dict[int, str]:
    """The jobs of a group that wait, with the reason: their pause, or a job that tries the limit before them."""
    first = min((*group.waiting, *group.trying), key=_size)
    refused = max(group.waiting or group.trying, key=lambda job: tries[job.id].tried_s)
    last = tries[refused.id]
    all_waiting = sorted(
        (*group.waiting, *(job for job in untried if _is_as_large(job, first))),
        key=lambda job: _turn(job, refused, tries),
    )
    until_s = min(last.retry_s, last.tried_s + past.pause_s(first, last.tried_s))
    if group.waiting and 0 < until_s - now_s <= longest_s:
        return _reasons(all_waiting, tries, last.limited_by, f"tried again in {until_s - now_s:.0f} s")
    may_try = 1 + past.changes_since(_owner(first), last.tried_s) - len(group.trying)
    more = int(abs(now_s - until_s) / ONE_MORE_S)  # a time from the future: the clock was set back
    # A record waits as a whole: only tasks that were split off have met the limit.
    able = [job for job in all_waiting if not job.is_array_record]
    ahead = (*group.trying, *able)[0]
    # One that was never tried withholds capacity, and is at least as large as one that was: it waits for these.
    wait = [job for at, job in enumerate(able) if at >= may_try + (more if _limit_of(job, tries) else 0)]
    wait += [job for job in all_waiting if job.is_array_record]
    return _reasons(wait, tries, last.limited_by, f"job {ahead.id} tries that limit first")


def _reasons(jobs: Iterable[ObservedJob], tries: Mapping[int, Try], limit: str, why: str) -> dict[int, str]:
    """The reason of each job to wait: its own note, or the limit that its owner has met if the job was never tried."""
    owners = f"its owner has met a limit, {limit}"
    notes = {job.id: tries[job.id].note if _limit_of(job, tries) else owners for job in jobs}
    return {job_id: Reason(f"{note}; {why}", WaitKind.LIMIT, limit) for job_id, note in notes.items()}


def _alone(jobs: Iterable[ObservedJob], tries: Mapping[int, Try], now_s: float, longest_s: float) -> dict[int, str]:
    """The jobs that still pause, each for its own refusal, with the reason."""
    known = (tries[job.id] for job in jobs)
    return {
        tried.job_id: Reason(
            f"{tried.note}; tried again in {tried.retry_s - now_s:.0f} s", WaitKind.LIMIT, tried.limited_by
        )
        for tried in known
        if 0 < tried.retry_s - now_s <= longest_s
    }


def _groups(
    waiting: Iterable[ObservedJob], jobs: Iterable[ObservedJob], placed: Collection[int], tries: Mapping[int, Try]
) -> dict[Group, _Group]:
    groups: dict[Group, _Group] = {}
    for job in waiting:
        limit = _limit_of(job, tries)
        if limit:
            groups.setdefault((limit, _owner(job)), _Group()).waiting.append(job)
    for job in jobs:
        limit = _limit_of(job, tries) if job.id in placed else ""
        if limit:
            groups.setdefault((limit, _owner(job)), _Group()).trying.append(job)
    return groups


def _limit_of(job: ObservedJob, tries: Mapping[int, Try]) -> str:
    """The limit that the job has met; empty if it has met none.

    An array's record has the id of its last task, and itself tries none.
    """
    tried = tries.get(job.id)
    return "" if tried is None or job.is_array_record else tried.limited_by


def _owner(job: ObservedJob) -> Owner:
    """What the job's limits depend on, also its partitions: an association or a QOS may be that of a partition."""
    return job.account, job.qos, job.partitions, job.user_id


def _shared(job: ObservedJob) -> tuple[str, str]:
    return f"account {job.account}", f"qos {job.qos}"


def _amounts(job: ObservedJob) -> tuple[int, int, int, int, float]:
    """Nodes, CPUs, memory (MiB), GPUs, time (s)."""
    memory_mb = job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * job.cpus
    gpus = 0 if job.gpus is None else job.gpus.in_all(job.tasks, job.fewest_nodes)
    return job.fewest_nodes, job.cpus, memory_mb, gpus, inf if job.walltime_s is None else job.walltime_s


def _demands(job: ObservedJob) -> frozenset[str]:
    """What a job asks for beyond these amounts: whole nodes, the cache ways and the bandwidth of its program."""
    program = None if job.hints is None else job.hints.program
    return frozenset(filter(None, ("whole nodes" if job.wants_empty_nodes else "", program)))


def _size(job: ObservedJob) -> Size:
    """Sorts jobs by size: the smallest is the likeliest to be within a limit."""
    return _amounts(job), job.id


def _turn(job: ObservedJob, refused: ObservedJob, tries: Mapping[int, Try]) -> tuple[bool, float, Size]:
    """Sorts the jobs that may try a limit, given the one that was refused last."""
    if _is_as_large(job, refused):
        return True, 0.0, _size(job)
    return False, tries[job.id].tried_s if _limit_of(job, tries) else inf, _size(job)


def _is_as_large(job: ObservedJob, other: ObservedJob) -> bool:
    """Whether a job asks for at least as much as another one, so that it finds no nodes where that one finds none."""
    is_more = all(mine >= theirs for mine, theirs in zip(_amounts(job), _amounts(other), strict=True))
    return is_more and _demands(other) <= _demands(job)
