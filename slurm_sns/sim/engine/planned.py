"""The simulation of any policy: each cycle gives the policy a snapshot and carries out the actions of its plan.

It is the live loop without Slurm: the same `plan`, the same actions, and the policy's history comes back in the next
snapshot. An action that Slurm would refuse ends the simulation: nothing changes here between the snapshot and the plan,
so such an action is a defect of the policy.

Each part of a running job holds its memory and, of its cores, the job's CPU share. A part of a suspended job holds only
its memory.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil

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
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.engine.event_loop import CycleRecord, EventLoop
from slurm_sns.sim.progress.cpu_shares import Shared
from slurm_sns.sim.progress.progress import Placement
from slurm_sns.sim.traces.trace import Trace

#: The rounding error that a sum of CPU shares may have in floats.
ROUNDING = 1e-9
#: After so many cycles in a row without an action, a policy is no longer woken: what it waits for never comes.
MOST_IDLE_CYCLES = 10_000


class PlannedSimulation(EventLoop):
    """A cluster on which a trace is replayed under a policy. `plans` are all of its plans."""

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
    ) -> None:
        """Start without jobs. `may_restart` says which jobs may be requeued."""
        run_s = {each.job.id: each.run_s for each in trace.jobs}
        self._shared = Shared(lambda job, _alternative: run_s[job.id])
        super().__init__(trace, self._shared, interval_s)
        self._policy = policy
        self._pools = pools
        self._may_restart = may_restart
        capacities = nodes.capacity.T.tolist()
        self._capacity = {name: Resources(*each) for name, each in zip(nodes.names, capacities, strict=True)}
        self._at = {name: at for at, name in enumerate(nodes.names)}
        self._free = dict(self._capacity)
        self._waiting: dict[int, Job] = {}
        self._active: dict[int, ActiveJob] = {}
        self._shares = shares or {}
        self._history: object | None = None
        self._idle_cycles = 0
        self.plans: list[Plan] = []

    @property
    def waiting(self) -> int:
        """The number of jobs that were submitted and have not ended; it must be 0 when no events are left."""
        return len(self._waiting) + len(self._active)

    def submit(self, job: Job) -> None:
        """Add the job to the queue."""
        self._waiting[job.id] = job

    def finish(self, placed: Placement) -> None:
        """Free what the job held."""
        self._give_back(self._active.pop(placed.job.id))
        self.expect(self.progress.finish(placed))

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Ask the policy for a plan and carry it out."""
        waiting = len(self._waiting)
        plan = self._policy.plan(self.snapshot(now_s))
        for action in plan.actions:
            self._carry_out(action, now_s)
        self._history = plan.history
        self.plans.append(plan)
        self._idle_cycles = 0 if plan.actions else self._idle_cycles + 1
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
            nodes=tuple(Node(name, self._capacity[name], free) for name, free in self._free.items()),
            waiting=tuple(self._waiting.values()),
            projects={name: Project(self._shares.get(name, 1.0), used.get(name, NOTHING)) for name in names},
            now_s=now_s,
            active=tuple(self._active.values()),
            pools=self._pools,
            history=self._history,
        )

    def _carry_out(self, action: Action, now_s: Seconds) -> None:
        match action:
            case Start():
                self._start(action, now_s)
            case Suspend():
                job = self._in_state(action, ActiveState.RUNNING)
                self._change(job, replace(job, state=ActiveState.SUSPENDED, since_s=now_s))
                self.placements[job.id] = self._shared.pace(job.id, 0, now_s)
            case Resume():
                job = self._in_state(action, ActiveState.SUSPENDED)
                on = action.nodes or job.nodes
                self._change(
                    job,
                    replace(job, state=ActiveState.RUNNING, nodes=on, since_s=now_s, cpu_share=action.cpu_share),
                )
                self._shared.move(job.id, replace(self.placements[job.id], nodes=self._indices(on)))
                self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])
            case SetShare():
                job = self._in_state(action, ActiveState.RUNNING)
                self._change(job, replace(job, cpu_share=action.cpu_share))
                self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])
            case Requeue():
                self._requeue(action)
            case Release():
                raise self._defect(action, "a simulation has no Slurm that could schedule the job")

    def _start(self, action: Start, now_s: Seconds) -> None:
        if action.job_id not in self._waiting:
            raise self._defect(action, "it does not wait")
        job = self._waiting.pop(action.job_id)
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
        )
        self._active[job.id] = started
        self._take(started)
        placed = Placement(job, action.alternative, self._indices(action.nodes), start_s=now_s, end_s=now_s)
        self._shared.start(placed)
        self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])

    def _requeue(self, action: Requeue) -> None:
        job = self._active.get(action.job_id)
        if job is None:
            raise self._defect(action, "it has no nodes")
        if not job.may_restart:
            raise self._defect(action, "it may not restart")
        if action.pool and action.pool not in {pool.name for pool in self._pools}:
            raise self._defect(action, f"there is no pool {action.pool}")
        self._give_back(self._active.pop(job.id))
        placed = self.placements.pop(job.id)
        self._shared.finish(placed)
        self._waiting[job.id] = replace(placed.job, pool=action.pool or job.pool)

    def _in_state(self, action: Suspend | Resume | SetShare, state: ActiveState) -> ActiveJob:
        job = self._active.get(action.job_id)
        if job is None or job.state is not state:
            raise self._defect(action, f"it is not {state}")
        return job

    def _change(self, before: ActiveJob, after: ActiveJob) -> None:
        self._give_back(before)
        self._active[after.id] = after
        self._take(after)

    def _take(self, job: ActiveJob) -> None:
        if not 0 < job.cpu_share <= 1:
            raise SnsError(
                f"job {job.id}: cpu_share is {job.cpu_share}; valid: above 0, at most 1; this is a defect of the policy"
            )
        for name, amount in _holds(job).items():
            if name not in self._free:
                raise SnsError(f"job {job.id}: there is no node {name}; this is a defect of the policy")
            left = self._free[name].minus(amount)
            if min(left) < 0:
                raise SnsError(f"job {job.id}: node {name} has no room for it; this is a defect of the policy")
            self._free[name] = left

    def _give_back(self, job: ActiveJob) -> None:
        for name, amount in _holds(job).items():
            self._free[name] = self._free[name].plus(amount)

    def _indices(self, names: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.array([self._at[name] for name in names], dtype=np.intp)

    def _defect(self, action: Action, why: str) -> SnsError:
        return SnsError(
            f"job {action.job_id}: {type(action).__name__} in a plan, but {why}; this is a defect of the policy"
        )


def _holds(job: ActiveJob) -> dict[str, Resources]:
    """What all parts of the job on a node hold together, by node; cores are rounded up."""
    share = 0 if job.state is ActiveState.SUSPENDED else job.cpu_share
    return {
        name: Resources(
            ceil(float(share * parts * job.demand.cores) - ROUNDING),
            *(parts * amount for amount in job.demand[1:]),
        )
        for name, parts in Counter(job.nodes).items()
    }
