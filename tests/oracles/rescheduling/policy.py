"""Rescheduling as a policy: pools serve their queues by priority, and a suspended job restarts where it ends sooner.

At one moment jobs that have ended become samples, new jobs get their pools, every pool serves its waiting jobs, and
then each newly suspended job is decided on, in the order of suspension. A move takes effect at once: the job joins the
end of the other pool's queue, both pools serve, and the next decision sees the result.

Source: Cost-based dynamic job rescheduling (2010).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oracles.rescheduling import samples as windows
from oracles.rescheduling import virtual_pool
from oracles.rescheduling.estimates import Candidate, RestartDecision, decide
from oracles.rescheduling.history import Account, ReschedulingHistory, Sample, Visit
from oracles.rescheduling.run_times import Runs, expected_run_s, with_run
from oracles.rescheduling.serving import by, serve, waiting
from oracles.rescheduling.site import SiteJob, SiteState
from slurm_sns.model import ActiveState, Alternative, Job, Plan, Snapshot
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.rescheduling.parameters import (
    AVAILABILITY,
    ON,
    RECENT,
    REMAINING,
    SUSPENDED_JOBS,
    ReschedulingParameters,
)

QUEUED = "its pool has no room for it, and no jobs of lower priority that could make room on one node"


class Rescheduling:
    """The policy, as the event engine runs it.

    Every job runs on one node of the pool that it names, or that the virtual pool chooses.
    """

    def __init__(self, parameters: ReschedulingParameters | None = None) -> None:
        """With the parameters of the paper's experiments unless others are given."""
        self.parameters = parameters or ReschedulingParameters()
        self._choose = by(HEURISTICS[self.parameters.heuristic])

    def plan(self, snapshot: Snapshot) -> Plan:
        """Who starts, is suspended, resumes and restarts elsewhere."""
        last = snapshot.history if isinstance(snapshot.history, ReschedulingHistory) else ReschedulingHistory()
        site = self._site(snapshot, last)
        samples, runs = self._samples(site, last)
        last_pool = self._take_submitted(site, snapshot, last)
        for pool in site.pools:
            serve(site, pool, self._choose)
        decisions = self._decide_all(site, samples, runs) if self.parameters.restart == ON else []
        accounts = {job.id: job.account for job in site.jobs.values()}
        history = ReschedulingHistory(accounts, samples, runs, last_pool, site.joined, tuple(decisions))
        checks = [account.check_s for account in accounts.values() if account.check_s is not None]
        wake_s = min(checks, default=None) if self.parameters.restart == ON else None
        return Plan(tuple(site.actions), _reasons(site, decisions), wake_s, history)

    def _site(self, snapshot: Snapshot, last: ReschedulingHistory) -> SiteState:
        site = SiteState(
            snapshot.now_s,
            {pool.name: pool.nodes for pool in snapshot.pools},
            {node.name: node.capacity for node in snapshot.nodes},
            {node.name: node.free for node in snapshot.nodes},
            parameters=self.parameters,
            joined=last.joined,
        )
        accounts = last.accounts
        active = [
            SiteJob(job.id, Alternative(1, job.demand), accounts[job.id], job.state, job.nodes[0], job.may_restart)
            for job in snapshot.active
            if job.id in accounts
        ]
        queued = [
            SiteJob(job.id, job.alternatives[0], accounts[job.id]) for job in snapshot.waiting if job.id in accounts
        ]
        site.jobs = {job.id: job for job in sorted([*active, *queued], key=lambda job: job.place)}
        return site

    def _samples(self, site: SiteState, last: ReschedulingHistory) -> tuple[tuple[Sample, ...], Runs]:
        """The window's samples and the recent runs, with the jobs that have ended since the last plan."""
        now_s, runs = site.now_s, last.runs
        ended = [account for job, account in last.accounts.items() if account.is_running and job not in site.jobs]
        for account in ended:
            runs = with_run(runs, account.program, now_s, account.ran_s + now_s - account.since_s)
        samples = (*last.samples, *(windows.sample_of(account, now_s) for account in ended))
        return windows.in_window(samples, now_s, self.parameters.window_s), runs

    def _take_submitted(self, site: SiteState, snapshot: Snapshot, last: ReschedulingHistory) -> str:
        """Put each new job into a pool; returns the pool that the virtual pool took last."""
        taken, place = last.last_pool, max((job.place for job in site.jobs.values()), default=0)
        for job in snapshot.waiting:
            if job.id in site.jobs:
                continue
            place += 1
            allowed = _allowed_pools(job, site.pools)
            pool = job.pool
            if not pool:
                candidates = virtual_pool.candidates(site, job.alternatives[0].demand, allowed)
                if self.parameters.virtual_pool == AVAILABILITY:
                    pool = virtual_pool.freest_pool(site, candidates)
                else:
                    pool = taken = virtual_pool.next_pool(site, candidates, taken)
            account = Account(
                Visit(pool),
                0,
                site.now_s,
                place=place,
                expected_run_s=job.expected_run_s,
                allowed=allowed,
                priority=job.priority,
                program=job.program,
            )
            new = SiteJob(job.id, job.alternatives[0], account)
            site.jobs[job.id] = new
            site.join(new, Visit(pool))
        return taken

    def _decide_all(self, site: SiteState, samples: tuple[Sample, ...], runs: Runs) -> list[RestartDecision]:
        """Decide on the newly suspended jobs one by one, then on queued ones that are due.

        A move takes effect at once.
        """
        decisions: list[RestartDecision] = []
        while (job := _next_to_decide(site)) is not None:
            decision = self._decide(site, samples, runs, job)
            decisions.append(decision)
            if decision.moves:
                left = job.pool
                change = site.leave_queue if job.state is None else site.move
                change(job, decision.chosen, decision.reason())
                for pool in site.pools:
                    if pool in (left, decision.chosen):
                        serve(site, pool, self._choose)
        return decisions

    def _decide(self, site: SiteState, samples: tuple[Sample, ...], runs: Runs, job: SiteJob) -> RestartDecision:
        counted = windows.counted(samples, job.priority, only_suspended=self.parameters.averages == SUSPENDED_JOBS)
        may_move = job.may_restart and not 0 < self.parameters.max_moves <= job.account.moves
        pools = virtual_pool.candidates(site, job.demand, job.account.allowed) if may_move else []
        others = [
            Candidate(pool, windows.means_in(counted, pool), site.has_room(pool, job.demand))
            for pool in pools
            if pool != job.pool
        ]
        own = Candidate(job.pool, windows.means_in(counted, job.pool))
        run_s, site_means = job.account.expected_run_s, windows.means_in(counted)
        if self.parameters.run_times == RECENT:
            run_s = expected_run_s(runs, job.account.program, run_s, site.now_s)
        is_queued = job.state is None
        if run_s is None:  # the run time counts as 0, and the job stays
            return decide(job.id, own, (), site=site_means, run_s=0, left_s=0, is_queued=is_queued)
        left_s = max(run_s - job.account.ran_s, 0)
        keeps = self.parameters.keeps_work or self.parameters.elsewhere == REMAINING or is_queued
        there_s = (left_s if keeps else run_s) + (0 if is_queued else self.parameters.move_cost_s)
        return decide(job.id, own, others, site=site_means, run_s=there_s, left_s=left_s, is_queued=is_queued)


def _next_to_decide(site: SiteState) -> SiteJob | None:
    """The next newly suspended job, else the next queued one that is due; it is not to be decided on again now."""
    for identity in site.newly_suspended:
        del site.newly_suspended[identity]
        return site.jobs[identity]
    due = [job for job in site.jobs.values() if job.account.check_s is not None and job.account.check_s <= site.now_s]
    if not due:
        return None
    job = min(due, key=lambda job: (job.account.check_s, job.account.check))
    site.joined += 1
    job.account = replace(job.account, check_s=site.now_s + site.parameters.waiting_check_s, check=site.joined)
    return job


def _allowed_pools(job: Job, pools: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """The pools whose nodes the job may all use."""
    if job.allowed is None:
        return None
    return frozenset(pool for pool, nodes in pools.items() if job.allowed.issuperset(nodes))


def _reasons(site: SiteState, decisions: list[RestartDecision]) -> Mapping[int, str]:
    """Why the queued jobs wait, and where the suspended ones that were decided on now go on."""
    reasons = {each.job_id: each.reason() for each in decisions}
    for pool in site.pools:
        for job in waiting(site, pool):
            if job.state is not ActiveState.SUSPENDED:
                reasons[job.id] = QUEUED
    return reasons
