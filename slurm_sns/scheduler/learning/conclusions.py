"""What follows from the runs that have ended, from reports, and from --sns-reprofile. Pure.

A measurement is made when Slurm says that the run succeeded and all of its nodes have reported. A run that failed gives
none, nor does one whose reports are not complete some time after its end: its step is offered again. After two such
runs in a row the scale is not explored for a while.

An ordinary run that happened to be alone is a measurement too, unless it is strange (policies.spread_n_share.drift).

A run time is that of a run which succeeded, was alone on each of its nodes, kept its ways, was never suspended, and
whose agents were there from its beginning to its end: the longest time of its nodes. Points are averages over its
nodes, weighted by seconds. The order of the reports makes no difference, to the last digit.

Source: Spread-n-Share (SC'19), sections 4.2, 5.1 and 5.2.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import fsum, isfinite
from typing import NamedTuple

from slurm_sns.errors import Infeasible
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.drift import Monitored, deviation
from slurm_sns.policies.spread_n_share.evidence import FEWEST_POINTS, Evidence, KnownEvidence, Measurement
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.learning import Key, Learning
from slurm_sns.scheduler.learning.values import (
    FAILURE_S,
    MOST_FAILURES,
    MOST_LEARNT,
    MOST_USERS,
    REPORTS_WAIT_S,
    REPROFILE_PAUSE_S,
    FailedRuns,
    LearningChanges,
    LearningRules,
    LearningState,
    Learnt,
    Reports,
    RunOutcome,
    RunToLearn,
)
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.snapshot.situation import explores
from slurm_sns.wire.values import Point, RunId, RunReport


class Averages(NamedTuple):
    """What was measured with so many ways: for how long on all nodes together, and averages per node."""

    seconds: float
    ipc: float | None
    bandwidth_gbps: float | None


def averages(reports: Collection[RunReport]) -> dict[int, Averages]:
    """The averages over the nodes, by ways; what was measured where the cache is not partitioned is left out."""
    by_ways: dict[int, list[Point]] = {}
    for report in reports:
        for point in report.points:
            if point.ways > 0 and point.seconds > 0:
                by_ways.setdefault(point.ways, []).append(point)
    return {
        ways: Averages(
            fsum(point.seconds for point in points),
            _mean([(point.ipc, point.seconds) for point in points]),
            _mean([(point.bandwidth_gbps, point.seconds) for point in points]),
        )
        for ways, points in sorted(by_ways.items())
    }


def _mean(weighed: Collection[tuple[float | None, float]]) -> float | None:
    """The mean of the values that were measured, weighed by seconds; None if none was, or if it is no number."""
    measured = [(value, seconds) for value, seconds in weighed if value is not None]
    if not measured:
        return None
    total_s = fsum(seconds for _, seconds in measured)
    mean = fsum(value * (seconds / total_s) for value, seconds in measured)
    return mean if isfinite(mean) else None


def run_time_s(run: RunToLearn, reports: Collection[RunReport]) -> float | None:
    """The run time of a run that has succeeded, None if it was disturbed or was not seen from its beginning."""
    if run.was_suspended or not all(each.was_alone and each.is_whole and not each.was_sampled for each in reports):
        return None
    longest_s = max((each.ran_s for each in reports), default=0.0)
    return longest_s if longest_s > 0 else None


def why_useless(run: RunToLearn, reports: Collection[RunReport]) -> str:
    """Why an exploring run gave no measurement, although it succeeded and all its nodes have reported."""
    shared = sorted(each.node for each in reports if not each.was_alone)
    cut = sorted(each.node for each in reports if not each.is_whole)
    if shared:
        return f"another job was on {','.join(shared)}"
    if run.step is not None and run.step.samples:
        whole = [ways for ways, each in averages(reports).items() if None not in (each.ipc, each.bandwidth_gbps)]
        found = ", ".join(map(str, whole)) or "no number"
        return f"it was measured with {found} of ways; at least {FEWEST_POINTS} and all {run.ways} are needed"
    if run.was_suspended:
        return "it was suspended"
    return f"an agent was not there all the time: {','.join(cut)}" if cut else "its run time is not known"


def sampled(run: RunToLearn, reports: Collection[RunReport]) -> Measurement | None:
    """The curves that an exploring run with changing ways gave.

    None where another job was on one of its nodes, or where a curve would have no end: it was not measured with all of
    its ways, or only with these. So a program that ends before each number of ways has had its turn gives none.
    """
    if not all(each.was_alone for each in reports):
        return None
    ipc, bandwidth_gbps = _curves(reports)
    if len(ipc) < FEWEST_POINTS or max(ipc) < run.ways:
        return None
    return Measurement(run.scale, None, ipc, bandwidth_gbps)


def _curves(reports: Collection[RunReport]) -> tuple[dict[int, float], dict[int, float]]:
    """IPC and bandwidth by ways, where both were measured."""
    found = averages(reports)
    ipc = {ways: each.ipc for ways, each in found.items() if each.ipc is not None and each.ipc > 0}
    gbps = {ways: each.bandwidth_gbps for ways, each in found.items() if each.bandwidth_gbps is not None}
    both = ipc.keys() & gbps.keys()
    return {ways: ipc[ways] for ways in found if ways in both}, {ways: gbps[ways] for ways in found if ways in both}


def timed(run: RunToLearn, reports: Collection[RunReport], before: Evidence | None) -> Measurement | None:
    """The run time of a run that nothing disturbed, None for any other.

    Where its curves have a point at the ways that it had (`before` is the evidence at its scale), it adds to that, too.
    """
    time_s = run_time_s(run, reports)
    if time_s is None:
        return None
    known = before.ipc if before is not None and before.is_sampled else {}
    ipc, gbps = ({ways: each[ways] for ways in each if ways in known} for each in _curves(reports))
    return Measurement(run.scale, time_s, ipc, gbps)


def monitored(run: RunToLearn, reports: Collection[RunReport]) -> Monitored | None:
    """How an ordinary run behaved with the number of ways that it had for longest; None if nothing was measured."""
    found = averages(reports)
    time_s = run_time_s(run, reports)
    if not found:
        return None if time_s is None else Monitored(run.scale, run.ways, None, None, time_s)
    ways = max(found, key=lambda each: (found[each].seconds, each))
    return Monitored(run.scale, ways, found[ways].ipc, found[ways].bandwidth_gbps, time_s)


def may_explore(learnt: Learnt | None, scale: int, now_s: float) -> bool:
    """Whether this scale may be explored now: the last exploring runs there did not all fail."""
    failures = None if learnt is None else learnt.failures.get(scale)
    return failures is None or failures.runs < MOST_FAILURES or abs(now_s - failures.last_s) > FAILURE_S


class Conclusion:
    """The changes of one moment: reports are taken, runs are followed, re-measurements begin.

    `serving` are the profiles that jobs run by.
    """

    def __init__(
        self,
        state: LearningState,
        rules: LearningRules,
        exploration: Exploration,
        serving: Mapping[str, Program],
        now_s: float,
    ) -> None:
        self._state, self._rules, self._serving, self._now_s = state, rules, serving, now_s
        self._exploration = exploration
        self._learnt: dict[Key, Learnt] = {}
        self._runs: dict[RunId, RunToLearn] = {}
        self._gone: list[RunId] = []
        self._reports: dict[RunId, dict[str, RunReport]] = {}
        self._said: list[str] = []

    def take(self, reports: Iterable[RunReport]) -> None:
        """Note the reports about nodes of our runs; of each node the first one counts, however often it comes."""
        for report in reports:
            run = self._state.runs.get(report.run)
            if run is None or report.node not in run.nodes or report.node in self._state.reports.get(report.run, {}):
                continue
            self._reports.setdefault(report.run, {}).setdefault(report.node, report)

    def follow(self, jobs: Mapping[int, ObservedJob]) -> None:
        """Follow each run, and learn from those that are complete, in the order in which they ended.

        `jobs` are those of the runs, as far as Slurm shows them.
        """
        ended: list[RunToLearn] = []
        for before in self._state.runs.values():
            run = follow(before, jobs.get(before.run.job_id), self._now_s)
            if run is None:
                self._gone.append(before.run)
                continue
            if run is not before:
                self._runs[run.run] = run
            if run.outcome is not RunOutcome.UNDER_WAY:
                ended.append(run)
        for run in sorted(ended, key=self._when_it_ended):
            self._conclude(run)

    def _when_it_ended(self, run: RunToLearn) -> tuple[float, RunId]:
        return max((each.ended_s for each in self._reports_of(run).values()), default=run.ended_s), run.run

    def _reports_of(self, run: RunToLearn) -> Reports:
        return {**self._state.reports.get(run.run, {}), **self._reports.get(run.run, {})}

    def _conclude(self, run: RunToLearn) -> None:
        reports = self._reports_of(run)
        is_complete = reports.keys() >= set(run.nodes)
        if run.outcome is RunOutcome.SUCCEEDED and is_complete:
            with suppress(Infeasible):  # its partition's nodes are not what they were: nothing more can be explored
                self._learn(run, tuple(reports.values()))
        elif run.outcome is RunOutcome.FAILED:
            self._note_failure(run, "it did not succeed")
        elif abs(self._now_s - run.ended_s) > REPORTS_WAIT_S:
            silent = ",".join(name for name in run.nodes if name not in reports)
            self._note_failure(run, f"no report came from {silent} within {REPORTS_WAIT_S:g} s")
        else:
            return
        self._gone.append(run.run)

    def _learn(self, run: RunToLearn, reports: tuple[RunReport, ...]) -> None:
        before = self._of(run.key)
        learning = self._learning(run.key, before)
        gathered = before.known.gathering.get(run.scale)
        samples = run.step is not None and run.step.samples
        measured = sampled(run, reports) if samples else timed(run, reports, gathered)
        if run.step is not None and measured is None:
            self._note_failure(run, why_useless(run, reports))
            return
        is_strange = False
        if run.step is None and (seen := monitored(run, reports)) is not None:
            serving = self._serving.get(run.key[0])
            off = deviation(before.known, seen, serving)
            is_strange = off is not None and off > self._rules.drift.threshold
            learning.monitored(run.job, seen, serving)
        if measured is not None and not is_strange:
            learning.measured(run.job, measured)
        failures = {scale: each for scale, each in before.failures.items() if run.step is None or scale != run.scale}
        self._keep(run, replace(before, known=learning.of(run.key), failures=failures))

    def _note_failure(self, run: RunToLearn, why: str) -> None:
        """Note that an exploring run gave no measurement. A scale that is given up may have been the last one."""
        if run.step is None:
            return
        self._said.append(f"job {run.run.job_id} {explores(run.key, run.step)}; this gave no measurement: {why}")
        before = self._of(run.key)
        known = before.failures.get(run.scale, FailedRuns(0, 0.0))
        count = 1 if abs(self._now_s - known.last_s) > FAILURE_S else known.runs + 1
        after = replace(before, failures={**before.failures, run.scale: FailedRuns(count, self._now_s)})
        learning = self._learning(run.key, after)
        with suppress(Infeasible):
            learning.reconsider(run.job)
        self._keep(run, replace(after, known=learning.of(run.key)))

    def _learning(self, key: Key, learnt: Learnt) -> Learning:
        return Learning(
            self._exploration,
            (),
            self._rules.watch,
            can_run=lambda _, scale: may_explore(learnt, scale, self._now_s),
            known={key: learnt.known},
        )

    def _of(self, key: Key) -> Learnt:
        return self._learnt.get(key) or self._state.learnt.get(key) or Learnt(KnownEvidence(*key))

    def _keep(self, run: RunToLearn, learnt: Learnt) -> None:
        users = (*(each for each in learnt.users if each != run.user_id), run.user_id)[-MOST_USERS:]
        self._learnt[run.key] = replace(learnt, used_s=self._now_s, users=users)

    def renew(self, wishes: Iterable[tuple[int, Key]]) -> None:
        """Begin the re-measurements that owners of waiting jobs ask for: of what has a profile, and not too often."""
        for job_id, key in wishes:
            before, serving = self._of(key), self._serving.get(key[0])
            if serving is not None and serving.at(key[1]) and _may_renew(before, job_id, self._now_s):
                renewed = replace(before, known=before.known.renewed(), failures={})
                self._learnt[key] = replace(renewed, renewed_s=self._now_s, renewed_by=job_id)

    def changes(self) -> LearningChanges:
        """What has changed."""
        gone = set(self._gone)
        forgotten = _beyond_the_limit({**self._state.learnt, **self._learnt})
        return LearningChanges(
            {key: each for key, each in self._learnt.items() if key not in forgotten},
            tuple(sorted(key for key in forgotten if key in self._state.learnt)),
            tuple(run for key, run in self._runs.items() if key not in gone),
            tuple(self._gone),
            tuple(each for key, by_node in self._reports.items() if key not in gone for each in by_node.values()),
            tuple(self._said),
        )


def _may_renew(learnt: Learnt, job_id: int, now_s: float) -> bool:
    """Whether a re-measurement may begin: none is under way, and the last one is long enough ago.

    A job begins one once: it may wait for long, and be requeued.
    """
    is_due = not learnt.renewed_s or abs(now_s - learnt.renewed_s) > REPROFILE_PAUSE_S
    return learnt.known.renewal is None and learnt.renewed_by != job_id and is_due


def _beyond_the_limit(learnt: Mapping[Key, Learnt]) -> frozenset[Key]:
    """What is forgotten because there is too much: first what makes no profile, then what was not used for longest."""
    too_many = len(learnt) - MOST_LEARNT
    if too_many <= 0:
        return frozenset()
    order = sorted(learnt, key=lambda key: (learnt[key].known.is_explored, learnt[key].used_s, key))
    return frozenset(order[:too_many])


def follow(run: RunToLearn, job: ObservedJob | None, now_s: float) -> RunToLearn | None:
    """The run as it is now; None if nothing is learnt from it.

    That is so if its placement was taken back or never reached Slurm, if the job was requeued or runs on other nodes,
    and if Slurm forgot the job before we saw how it ended. Of a completing job Slurm shows only the nodes that have not
    completed yet (seen).
    """
    if run.outcome is not RunOutcome.UNDER_WAY:
        return run
    if job is None or job.restarts != run.run.restarts:
        return None
    nodes = set(job.pinned_to if job.state is JobState.PENDING else job.allocated)
    is_there = nodes <= set(run.nodes) if job.is_completing else nodes == set(run.nodes)
    if job.state is JobState.ENDED:
        outcome = RunOutcome.SUCCEEDED if job.has_succeeded else RunOutcome.FAILED
        return replace(run, outcome=outcome, ended_s=now_s, was_suspended=run.was_suspended or job.suspended_s > 0)
    if not is_there:
        return None
    was_suspended = job.state is JobState.SUSPENDED or job.suspended_s > 0
    return replace(run, was_suspended=True) if was_suspended and not run.was_suspended else run
