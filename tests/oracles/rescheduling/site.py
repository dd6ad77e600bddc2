"""The jobs and nodes of a site while a plan is made: every change here is an action of the plan.

A suspended job gives its cores back. It keeps its memory, or gives that back, too (parameter `suspended_memory`).

Source: Cost-based dynamic job rescheduling (2010), section 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oracles.rescheduling.history import Account, Visit
from slurm_sns.model import (
    Action,
    ActiveState,
    Alternative,
    Requeue,
    Resources,
    Resume,
    Seconds,
    Start,
    Suspend,
)
from slurm_sns.policies.rescheduling.parameters import FREED, ReschedulingParameters

#: A job that waits in a queue is in no active state.
State = ActiveState | None


@dataclass(slots=True)
class SiteJob:
    """A job of the site: `node` is where it runs or is suspended."""

    id: int
    alternative: Alternative
    account: Account
    state: State = None
    node: str = ""
    may_restart: bool = True

    @property
    def place(self) -> int:
        """Its place in submit order."""
        return self.account.place

    @property
    def priority(self) -> int:
        """Its priority; larger is more urgent."""
        return self.account.priority

    @property
    def pool(self) -> str:
        """The pool in which it waits, runs or is suspended."""
        return self.account.visit.pool

    @property
    def demand(self) -> Resources:
        """What it holds on its node while it runs."""
        return self.alternative.demand


class SiteState:
    """The site at one moment."""

    def __init__(
        self,
        now_s: Seconds,
        pools: Mapping[str, Sequence[str]],
        capacity: Mapping[str, Resources],
        free: Mapping[str, Resources],
        *,
        parameters: ReschedulingParameters,
        joined: int,
    ) -> None:
        """`pools` are the pools' nodes, both in list order; `joined` is the last number of an order."""
        self.parameters = parameters
        self.now_s = now_s
        self.pools = pools
        self.capacity = capacity
        self.free = dict(free)
        self.frees_memory = parameters.suspended_memory == FREED
        self.joined = joined
        self.jobs: dict[int, SiteJob] = {}
        self.actions: list[Action] = []
        self.newly_suspended: dict[int, None] = {}

    def of_pool(self, pool: str, state: State) -> list[SiteJob]:
        """The jobs of a pool in this state, in submit order."""
        return [job for job in self.jobs.values() if job.pool == pool and job.state is state]

    def fits_when_empty(self, pool: str, demand: Resources) -> bool:
        """Whether a node of the pool is large enough."""
        return any(demand.within(self.capacity[node]) for node in self.pools[pool])

    def has_room(self, pool: str, demand: Resources) -> bool:
        """Whether a node of the pool has so much free."""
        return any(demand.within(self.free[node]) for node in self.pools[pool])

    def resuming(self, job: SiteJob) -> Resources:
        """What a suspended job takes when it resumes."""
        return job.demand if self.frees_memory else job.demand._replace(memory_mb=0)

    def join(self, job: SiteJob, visit: Visit) -> None:
        """Put the job at the end of a pool's queue."""
        self.joined += 1
        check_s = self.now_s + self.parameters.waiting_check_s if self.parameters.waiting_check_s else None
        job.account = replace(
            job.account,
            visit=visit,
            joined=self.joined,
            since_s=self.now_s,
            is_running=False,
            check_s=check_s,
            check=self.joined,
        )

    def start(self, job: SiteJob, node: str) -> None:
        """Start a queued job."""
        account, now_s = job.account, self.now_s
        visit = replace(account.visit, waited_s=account.visit.waited_s + now_s - account.since_s)
        job.account = replace(account, visit=visit, since_s=now_s, attempt_s=now_s, is_running=True, check_s=None)
        job.state, job.node = ActiveState.RUNNING, node
        self.free[node] = self.free[node].minus(job.demand)
        self.actions.append(Start(job.id, (node,), job.alternative))

    def suspend(self, job: SiteJob, reason: str) -> None:
        """Suspend a running job."""
        account = job.account
        ran_s = account.ran_s + self.now_s - account.since_s
        job.account = replace(
            account, since_s=self.now_s, ran_s=ran_s, suspensions=account.suspensions + 1, is_running=False
        )
        job.state = ActiveState.SUSPENDED
        self.free[job.node] = self.free[job.node].plus(self.resuming(job))
        self.newly_suspended[job.id] = None
        self.actions.append(Suspend(job.id, reason, to_storage=self.frees_memory))

    def resume(self, job: SiteJob) -> None:
        """Let a suspended job run on; if it was suspended at this moment, it never was."""
        account = job.account
        suspensions = account.suspensions
        if account.since_s == self.now_s:
            self.newly_suspended.pop(job.id, None)
            suspensions -= 1
        job.account = replace(
            account, visit=self._suspended(account), since_s=self.now_s, suspensions=suspensions, is_running=True
        )
        job.state = ActiveState.RUNNING
        self.free[job.node] = self.free[job.node].minus(self.resuming(job))
        self.actions.append(Resume(job.id, (job.node,) if self.frees_memory else ()))

    def move(self, job: SiteJob, pool: str, reason: str) -> None:
        """Take a suspended job from its node, and let it join the queue of another pool."""
        if not self.frees_memory:
            self.free[job.node] = self.free[job.node].plus(Resources(0, job.demand.memory_mb))
        kept_s = job.account.ran_s if self.parameters.keeps_work else 0
        ran_s = kept_s - self.parameters.move_cost_s
        self._change_pool(job, pool, replace(job.account, visit=self._suspended(job.account), ran_s=ran_s), reason)

    def leave_queue(self, job: SiteJob, pool: str, reason: str) -> None:
        """Take a job from its queue, and let it join that of another pool."""
        visit = job.account.visit
        waited = replace(visit, waited_s=visit.waited_s + self.now_s - job.account.since_s)
        self._change_pool(job, pool, replace(job.account, visit=waited), reason)

    def _change_pool(self, job: SiteJob, pool: str, account: Account, reason: str) -> None:
        job.account = replace(account, earlier=(*account.earlier, account.visit))
        job.state, job.node = None, ""
        self.join(job, Visit(pool))
        self.actions.append(Requeue(job.id, pool, reason))

    def _suspended(self, account: Account) -> Visit:
        """The present visit with the suspension that ends now."""
        return replace(account.visit, suspended_s=account.visit.suspended_s + self.now_s - account.since_s)
