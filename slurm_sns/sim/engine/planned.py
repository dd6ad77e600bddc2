"""The simulation of any policy: each cycle gives the policy a snapshot and carries out the actions of its plan.

It is the live loop without Slurm: the same `plan`, the same actions, and the policy's history comes back in the next
snapshot. An action that Slurm would refuse ends the simulation: nothing changes here between the snapshot and the plan,
so such an action is a defect of the policy.

Module held_capacity says what jobs hold on the nodes. After a resume from storage a job makes no progress for the
rescheduling penalty. The penalty is not known to the policy: it is as in the DFRS paper (IPDPS 2010, section IV-A).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from slurm_sns.errors import SnsError
from slurm_sns.model import (
    NOTHING,
    Action,
    ActiveJob,
    ActiveState,
    Job,
    JobPool,
    Node,
    Plan,
    Project,
    Release,
    Requeue,
    Resources,
    Resume,
    Seconds,
    SetShare,
    Snapshot,
    Start,
    Suspend,
    total,
)
from slurm_sns.policies.base import Policy
from slurm_sns.policies.baselines.expected_times import expected_run_s
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.engine.event_loop import CycleRecord, EventLoop
from slurm_sns.sim.engine.held_capacity import HeldCapacity
from slurm_sns.sim.progress.cpu_shares import Shared
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.traces.trace import Trace

#: After so many cycles in a row without an action and without a job that runs, a policy is no longer woken: what it
#: waits for never comes.
MOST_IDLE_CYCLES = 10_000


class PlannedSimulation(EventLoop):
    """A cluster on which a trace is replayed under a policy.

    `plans` are all of its plans if these are kept.
    """

    def __init__(
        self,
        nodes: NodeArrays,
        trace: Trace,
        policy: Policy,
        *,
        interval_s: int | None = None,
        shares: Mapping[str, float] | None = None,
        pools: tuple[JobPool, ...] = (),
        may_restart: Callable[[Job], bool] = lambda _: True,
        penalty_s: Seconds = 0,
        requeue_cost_s: Seconds = 0,
        keeps_work: bool = False,
        keeps_plans: bool = False,
    ) -> None:
        """Start without jobs.

        `may_restart` says which jobs may be requeued, `penalty_s` is the rescheduling penalty. A requeue loses the
        job's work unless `keeps_work`, and lengthens its run by `requeue_cost_s`.
        """
        run_s = {each.job.id: each.run_s for each in trace.jobs}
        self._shared = Shared(lambda job, _alternative: run_s[job.id])
        super().__init__(trace, self._shared, interval_s)
        self._policy = policy
        self._pools = pools
        self._may_restart = may_restart
        self._nodes = HeldCapacity(nodes)
        self._shown = [nodes.node(at, NOTHING) for at in range(len(nodes.names))]
        self._at = {name: at for at, name in enumerate(nodes.names)}
        self._penalty_s = penalty_s
        self._requeue_cost_s, self._keeps_work = requeue_cost_s, keeps_work
        self._taken_over_s: dict[int, Seconds] = {}
        self._waiting: dict[int, Job] = {}
        self._active: dict[int, ActiveJob] = {}
        self._shares = shares or {}
        self._history: object | None = None
        self._idle_cycles = 0
        self._keeps_plans = keeps_plans
        self.plans: list[Plan] = []

    @property
    def waiting(self) -> int:
        """The number of jobs that were submitted and have not ended; it must be 0 when no events are left."""
        return len(self._waiting) + len(self._active)

    def submit(self, job: Job) -> None:
        """Add the job to the queue."""
        self._waiting[job.id] = job
        self._idle_cycles = 0

    def finish(self, placed: PlacedRun) -> None:
        """Free what the job held."""
        self._nodes.end(self._active.pop(placed.job.id))
        self.expect(self.progress.finish(placed))
        self._idle_cycles = 0

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Ask the policy for a plan and carry it out."""
        waiting = len(self._waiting)
        plan = self._policy.plan(self.snapshot(now_s))
        for action in plan.actions:
            self._carry_out(action, now_s)
        self._history = plan.history
        if self._keeps_plans:
            self.plans.append(plan)
        is_idle = not plan.actions and all(job.state is not ActiveState.RUNNING for job in self._active.values())
        self._idle_cycles = self._idle_cycles + 1 if is_idle else 0
        if plan.wake_s is not None and self.waiting and self._idle_cycles < MOST_IDLE_CYCLES:
            self.want_cycle(max(plan.wake_s, now_s))
        return CycleRecord(now_s, waiting, len(plan.starts), plan.report.chosen, plan.report.winners)

    def snapshot(self, now_s: Seconds) -> Snapshot:
        """The snapshot of this moment."""
        used: dict[str, Resources] = {}
        for job in self._active.values():
            used[job.project] = used.get(job.project, NOTHING).plus(total([job.demand] * len(job.nodes)))
        names = {**self._shares, **used}
        return Snapshot(
            nodes=tuple(
                Node(each.name, each.capacity, self._nodes.free(each.name), each.weight, each.switches)
                for each in self._shown
            ),
            waiting=tuple(self._waiting.values()),
            projects={name: Project(self._shares.get(name, 1.0), used.get(name, NOTHING)) for name in names},
            now_s=now_s,
            active=tuple(
                replace(job, virtual_s=self._shared.virtual_s(job.id, now_s)) for job in self._active.values()
            ),
            pools=self._pools,
            history=self._history,
        )

    def _carry_out(self, action: Action, now_s: Seconds) -> None:
        match action:
            case Start():
                self._start(action, now_s)
            case Suspend():
                job = self._in_state(action, ActiveState.RUNNING)
                stopped = replace(job, state=ActiveState.SUSPENDED, since_s=now_s, in_storage=action.to_storage)
                self._change(job, stopped)
                self.placements[job.id] = self._shared.stop(job.id, now_s)
            case Resume():
                self._resume(action, now_s)
            case SetShare():
                job = self._in_state(action, ActiveState.RUNNING)
                self._change(job, replace(job, cpu_share=action.cpu_share))
                self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])
            case Requeue():
                self._requeue(action, now_s)
            case Release():
                raise self._defect(action, "a simulation has no Slurm that could schedule the job")

    def _resume(self, action: Resume, now_s: Seconds) -> None:
        job = self._in_state(action, ActiveState.SUSPENDED)
        on = action.nodes or job.nodes
        going = replace(
            job,
            state=ActiveState.RUNNING,
            nodes=on,
            since_s=now_s,
            cpu_share=action.cpu_share,
            in_storage=False,
        )
        self._change(job, going)
        self._shared.move(job.id, replace(self.placements[job.id], nodes=self._indices(on)))
        penalty_s = self._penalty_s if job.in_storage else 0
        self.expect([self._shared.pace(job.id, action.cpu_share, now_s, penalty_s=penalty_s)])

    def _start(self, action: Start, now_s: Seconds) -> None:
        if action.job_id not in self._waiting:
            raise self._defect(action, "it does not wait")
        job = self._waiting.pop(action.job_id)
        expected_s = expected_run_s(job, action.alternative)
        started = ActiveJob(
            job.id,
            ActiveState.RUNNING,
            action.nodes,
            action.alternative.demand,
            now_s,
            job.submit_s,
            job.project,
            job.pool,
            job.priority,
            self._may_restart(job),
            action.cpu_share,
            expected_end_s=None if expected_s is None else now_s + expected_s,
        )
        self._active[job.id] = started
        self._nodes.start(started, is_exclusive=action.alternative.exclusive)
        placed = PlacedRun(job, action.alternative, self._indices(action.nodes), start_s=now_s, end_s=now_s)
        self._shared.start(placed, done_s=self._taken_over_s.get(job.id, 0))
        self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])

    def _requeue(self, action: Requeue, now_s: Seconds) -> None:
        if action.pool and action.pool not in {pool.name for pool in self._pools}:
            raise self._defect(action, f"there is no pool {action.pool}")
        if action.job_id in self._waiting:
            queued = self._waiting.pop(action.job_id)
            self._waiting[queued.id] = replace(queued, pool=action.pool or queued.pool)
            return
        job = self._active.get(action.job_id)
        if job is None:
            raise self._defect(action, "it is not there")
        if not job.may_restart:
            raise self._defect(action, "it may not restart")
        done_s = self._shared.virtual_s(job.id, now_s) if self._keeps_work else 0
        self._taken_over_s[job.id] = done_s - self._requeue_cost_s
        self._nodes.end(self._active.pop(job.id))
        placed = self.placements.pop(job.id)
        self._shared.finish(placed)
        self._waiting[job.id] = replace(placed.job, pool=action.pool or job.pool)

    def _in_state(self, action: Suspend | Resume | SetShare, state: ActiveState) -> ActiveJob:
        job = self._active.get(action.job_id)
        if job is None or job.state is not state:
            raise self._defect(action, f"it is not {state}")
        return job

    def _change(self, before: ActiveJob, after: ActiveJob) -> None:
        self._nodes.change(before, after)
        self._active[after.id] = after

    def _indices(self, names: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.array([self._at[name] for name in names], dtype=np.intp)

    def _defect(self, action: Action, why: str) -> SnsError:
        return SnsError(
            f"job {action.job_id}: {type(action).__name__} in a plan, but {why}; this is a defect of the policy"
        )
