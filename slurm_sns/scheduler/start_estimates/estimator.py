"""Makes the estimates of a cycle's waiting jobs: looks ahead three times, and calibrates the range by past starts.

By limits each job runs until its time limit. For the range all jobs use a low, then a high quantile of the shares of
their limits that the past of owner and program suggests (`estimates.past_runs`), and what such ranges missed before is
added (`estimates.calibration`). The first jobs of the queue are looked at in every round; all of them only now and
then, or soon after a job has come.

A job's first estimate is the one that is judged when it starts. An estimate of a job that is held, or waits for
something else than nodes meanwhile, is judged by nobody.
"""

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from slurm_sns.estimates.calibration import Calibration, OwnerBurst, OwnerBursts, WaitRange
from slurm_sns.estimates.look_ahead import Course, Outlook, Scene
from slurm_sns.estimates.past_runs import Kin, PastRun, PastRuns
from slurm_sns.estimates.run_times import HIGH, LOW, ExpectedTimes, TimeLimits
from slurm_sns.model import ActiveJob, ActiveState, Snapshot
from slurm_sns.policies.base import Policy
from slurm_sns.policies.by_partition import ByPartition, parts
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.ports import EstimatedStart
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.scheduler.start_estimates.board import Estimates, StartEstimate

#: No job behind these is estimated, and none of them is looked at.
MOST_JOBS = 10_000
#: So many jobs at the head of the queue are estimated in every round.
FIRST_JOBS = 100
#: All jobs are estimated this often, and this soon after a job has come that has no estimate yet.
ALL_EVERY_S, NEW_EVERY_S = 60.0, 10.0
#: One look ahead may take so long.
MOST_LOOK_S = 1.0
#: The record that is told is that of so many seconds, in whole hours.
RECORD_S, HOUR_S = 7 * 86400.0, 3600.0

#: Names a job until it starts: a task of an array changes its id then.
Key = int | tuple[int, int]


class _First(NamedTuple):
    """The first estimate of a job, which had this id then."""

    job_id: int
    made_s: float
    burst: OwnerBurst
    raw: WaitRange
    told: WaitRange


@dataclass(frozen=True, slots=True)
class NewEvidence:
    """What a round has learnt: the runs that have ended, and the starts that had an estimate. The store keeps it."""

    runs: tuple[PastRun, ...] = ()
    starts: tuple[EstimatedStart, ...] = ()


class WeekOfStarts:
    """How many starts with an estimate each hour of the last week had, and how many of them lay in their range.

    By the hour, so that it takes no more memory where a hundred thousand jobs start in a day.
    """

    def __init__(self) -> None:
        self._of_hours: dict[int, tuple[int, int]] = {}

    def add(self, started_s: float, *, is_inside: bool) -> None:
        """Count a start."""
        hour = int(started_s // HOUR_S)
        starts, inside = self._of_hours.get(hour, (0, 0))
        self._of_hours[hour] = starts + 1, inside + is_inside

    def forget(self, now_s: float) -> None:
        """Forget the hours that are over for a week, and those that far ahead: the clock was set back."""
        first, last = (now_s - RECORD_S) // HOUR_S, (now_s + RECORD_S) // HOUR_S
        self._of_hours = {hour: each for hour, each in self._of_hours.items() if first <= hour <= last}

    def counts(self) -> tuple[int, int]:
        """The starts of the week, and how many of them lay in their range."""
        counts = self._of_hours.values()
        return sum(starts for starts, _ in counts), sum(inside for _, inside in counts)


class Estimator:
    """Makes estimates, round after round, and learns from what has come of them.

    `runs` and `starts` are those of the past, oldest first. `steady` gives seconds, by which look aheads are bounded.
    """

    def __init__(
        self,
        rules: Rules,
        settings: Settings,
        steady: Callable[[], float],
        runs: Iterable[PastRun] = (),
        starts: Iterable[EstimatedStart] = (),
    ) -> None:
        runs = tuple(runs)
        self._rules, self._settings, self._steady = rules, settings, steady
        self._past = PastRuns(runs)
        self._ended = {run.job_id for run in runs}
        self._calibration, self._bursts = Calibration(), OwnerBursts()
        self._record = WeekOfStarts()
        self._first: dict[Key, _First] = {}
        self._all_s = -inf
        self._lock = threading.Lock()
        self.now = Estimates()
        for start in starts:
            self._judge(start)

    def round(self, situation: Situation, starting: Collection[int]) -> NewEvidence:
        """Learn from what is seen, and estimate anew; `starting` are jobs that this cycle has placed.

        Jobs that share cores are not estimated.
        """
        if sharing := self._settings.sharing_partitions:
            situation = replace(situation, snapshot=parts(situation.snapshot, sharing)[1])
        waiting = {job.id for job in situation.snapshot.waiting}
        with self._lock:
            learnt = self._learn(situation, waiting)
            wanted = self._wanted(situation, starting)
            estimates = self._estimates(situation, situation.snapshot, wanted) if wanted else {}
        waiting.difference_update(starting)
        kept = {job_id: each for job_id, each in self.now.of.items() if job_id in waiting}
        found = kept | estimates
        self.now = Estimates(found | _of_records(situation, found), *self._record.counts())
        return learnt

    def of_tried(self, situation: Situation, snapshot: Snapshot, job: ObservedJob) -> StartEstimate | None:
        """The estimate of a job that is only tried, and waits in this snapshot; nobody judges it. For any thread."""
        if sharing := self._settings.sharing_partitions:
            snapshot = parts(snapshot, sharing)[1]
            if all(each.id != job.id for each in snapshot.waiting):
                return None
        with self._lock:
            return self._estimates(situation, snapshot, frozenset({job.id}), tried=job)[job.id]

    # --- what is learnt

    def _learn(self, situation: Situation, open_jobs: Collection[int]) -> NewEvidence:
        """Learn from the jobs that have started or ended; `open_jobs` wait for a place."""
        runs, starts, ended = list[PastRun](), list[EstimatedStart](), set[int]()
        waiting = {key for key, first in self._first.items() if first.job_id in open_jobs}
        for job in situation.holding:  # the others are gated, and no more than that
            key = _key(job)
            if job.state is JobState.ENDED:
                ended.add(job.id)
                if job.id not in self._ended and (run := _run_of(job)) is not None:
                    runs.append(run)
            if situation.statuses[job.id].has_placement and job.id in situation.jobs:
                waiting.add(key)
            if (first := self._first.get(key)) is not None and _has_started(job, first.made_s):
                del self._first[key]
                starts.append(_start_of(job, first))
        waiting |= {_key(job) for job in situation.tasks.values()}
        self._first = {key: each for key, each in self._first.items() if key in waiting}
        self._ended = ended
        for run in runs:
            self._past.add(run)
        for start in sorted(starts, key=lambda each: each.started_s):
            self._judge(start)
        self._record.forget(float(situation.snapshot.now_s))
        return NewEvidence(tuple(runs), tuple(starts))

    def _judge(self, start: EstimatedStart) -> None:
        """Take a start that had an estimate into the calibration and the record."""
        told = WaitRange(start.low_s, start.middle_s, start.high_s)
        wait_s = start.started_s - start.made_s
        raw, burst = WaitRange.of(start.raw_low_s, start.raw_high_s), OwnerBurst(start.owner, start.burst_s)
        self._calibration.learn(raw, told, wait_s, burst)
        self._record.add(start.started_s, is_inside=told.has(wait_s))

    # --- what is estimated

    def _wanted(self, situation: Situation, starting: Collection[int]) -> frozenset[int]:
        """The jobs to estimate in this round."""
        waiting = [job.id for job in situation.snapshot.waiting[:MOST_JOBS] if job.id not in starting]
        since_s = situation.snapshot.now_s - self._all_s
        is_new = since_s >= NEW_EVERY_S and any(job_id not in self.now.of for job_id in waiting)
        if since_s < 0 or since_s >= ALL_EVERY_S or is_new:
            self._all_s = float(situation.snapshot.now_s)
            return frozenset(waiting)
        return frozenset(waiting[:FIRST_JOBS])

    def _estimates(
        self, situation: Situation, snapshot: Snapshot, wanted: frozenset[int], tried: ObservedJob | None = None
    ) -> dict[int, StartEstimate]:
        settings = self._settings
        by_priority = settings.is_by_priority(has_priorities=situation.observation.has_priorities)
        course = Course(
            age_limit_s=settings.age_limit_s,
            ages_head_only=by_priority,
            withhold_for_s=settings.withhold_limit_s,
            most_jobs=MOST_JOBS,
        )
        scene = Scene(self._rules, snapshot, course)
        limits = _limits(situation, scene, tried)
        by_limits = self._look(scene, limits.reached(), wanted)
        low, high = (self._look(scene, limits.used(self._past, each, scene.now_s), wanted) for each in (LOW, HIGH))
        return {
            job_id: self._estimate(scene.now_s, job_id, situation.job(job_id), (by_limits, low, high))
            for job_id in wanted
        }

    def _look(self, scene: Scene, times: ExpectedTimes, wanted: frozenset[int]) -> Outlook:
        until_s = self._steady() + MOST_LOOK_S
        return scene.outlook(*times, wanted, lambda: self._steady() < until_s)

    def _estimate(
        self, now_s: float, job_id: int, job: ObservedJob | None, found: tuple[Outlook, Outlook, Outlook]
    ) -> StartEstimate:
        by_limits, low, high = (each.starts.get(job_id) for each in found)
        limits_s = None if by_limits is None else by_limits.at_s
        told_of = by_limits or high or low
        waits_for, nodes = (None, ()) if told_of is None else (told_of.waits_for, told_of.nodes)
        if low is None or high is None:
            until_s = min(each.until_s for each in found[1:])
            return StartEstimate(now_s, None, None, limits_s, until_s, waits_for, nodes)
        raw = WaitRange.of(low.at_s - now_s, high.at_s - now_s)
        told = self._calibration.told(raw)
        if job is not None and _key(job) not in self._first:
            self._first[_key(job)] = _First(job_id, now_s, self._bursts.of(job.user_id, now_s), raw, told)
        return StartEstimate(now_s, now_s + told.low_s, now_s + told.high_s, limits_s, None, waits_for, nodes)


def _limits(situation: Situation, scene: Scene, tried: ObservedJob | None) -> TimeLimits:
    """The time limits of the scene's jobs; one that is only `tried` waits in the scene alone."""
    of_tried = {} if tried is None else {tried.id: tried}
    waiting = [of_tried.get(job_id) or situation.job(job_id) for job_id in scene.job_ids]
    holding = {job.id: job for job in situation.holding}
    active = [holding.get(each.id) or situation.job(each.id) for each in scene.active]
    ends_s = [_end_s(each, job, scene.now_s) for each, job in zip(scene.active, active, strict=True)]
    return TimeLimits(
        np.array([_limit_s(job) for job in waiting], np.float64),
        [None if job is None else _kin(job) for job in waiting],
        np.array([_limit_s(job) for job in active], np.float64),
        np.array(ends_s, np.float64),
        [None if job is None else _kin(job) for job in active],
    )


def rules_of(policy: Policy) -> Rules | None:
    """The rules by which the policy's cycles match; None for one that a look ahead does not know.

    Where some partitions share cores they are those of all others.
    """
    policy = policy.others if isinstance(policy, ByPartition) else policy
    return policy.rules if isinstance(policy, Portfolio) else None


def look_once(rules: Rules, snapshot: Snapshot) -> None:
    """Look ahead once, so that the kernel is compiled."""
    scene = Scene(rules, snapshot, Course())
    scene.outlook(np.ones(len(scene.jobs)), np.ones(len(scene.active)))


def _of_records(situation: Situation, found: dict[int, StartEstimate]) -> dict[int, StartEstimate]:
    """The estimates of array records, by the records' ids: those of their first tasks."""
    records: dict[int, StartEstimate] = {}
    for task_id, task in situation.tasks.items():
        if task_id in found and task.array_id is not None:
            records.setdefault(task.array_id, found[task_id])
    return {job_id: each for job_id, each in records.items() if job_id not in found}


def _key(job: ObservedJob) -> Key:
    return job.task or job.id


def _kin(job: ObservedJob) -> Kin:
    return Kin(job.user_id, job.stored_name)


def _limit_s(job: ObservedJob | None) -> float:
    return inf if job is None or not job.walltime_s else float(job.walltime_s)


def _end_s(active: ActiveJob, job: ObservedJob | None, now_s: float) -> float:
    """When the job ends if it runs until its limit."""
    if job is None or not job.walltime_s:
        return inf
    if active.state is not ActiveState.RUNNING:
        return now_s + job.walltime_s
    return float(job.end_s if job.end_s > job.start_s else job.start_s + job.walltime_s)


def _run_of(job: ObservedJob) -> PastRun | None:
    """The ended job as a run of the past; None if it had no limit or did not run."""
    ran_s = job.end_s - job.start_s
    if not job.walltime_s or job.start_s <= 0 or ran_s <= 0:
        return None
    return PastRun(job.id, float(job.end_s), *_kin(job), min(1.0, ran_s / job.walltime_s))


def _has_started(job: ObservedJob, since_s: float) -> bool:
    has_run = job.state.occupies_nodes or (job.state is JobState.ENDED and bool(job.allocated))
    return has_run and job.start_s >= since_s


def _start_of(job: ObservedJob, first: _First) -> EstimatedStart:
    raw, told = first.raw, first.told
    moments = (float(job.start_s), first.made_s, *first.burst)
    return EstimatedStart(job.id, *moments, raw.low_s, raw.high_s, told.low_s, told.middle_s, told.high_s)
