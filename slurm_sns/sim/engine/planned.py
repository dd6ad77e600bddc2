"""The simulation of any policy: each cycle gives the policy a snapshot and carries out the actions of its plan.

It is the live loop without Slurm: the same `plan`, the same actions, and the policy's history comes back in the next
snapshot. An action that Slurm would refuse ends the simulation: nothing changes here between the snapshot and the plan,
so such an action is a defect of the policy.

Each part of a running job holds its memory and, of its cores, the job's CPU share. A part of a suspended job holds only
its memory, and nothing if the job is in storage. A part of an exclusive job holds its whole node. Shares of cores are
summed as they are.

In a second a running job does its share of a second's work, a suspended job none. A job's work is its run time in the
trace; the job ends when the integral of its share, its virtual time, reaches its work. Nothing is rounded if shares and
times are exact fractions. Ends that are floats are rounded to nanoseconds: ends that should fall together do, whatever
the rounding errors.

After a resume from storage a job makes no progress for the rescheduling penalty. The penalty is not known to the
policy: it is as in the DFRS paper (IPDPS 2010, section IV-A).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, inf

import numpy as np

from slurm_sns.errors import SnsError
from slurm_sns.model import (
    NOTHING,
    Action,
    ActiveJob,
    ActiveState,
    Job,
    Node,
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
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.trace import Trace

#: After so many cycles in a row without an action and without a job that runs, a policy is no longer woken: what it
#: waits for never comes.
MOST_IDLE_CYCLES = 10_000
#: The rounding error that a sum of CPU shares may have in floats, in cores.
ROUNDING = 1e-6
#: Decimals of an end in seconds that is a float.
DECIMALS = 9


class PlannedSimulation(EventLoop):
    """A cluster on which a trace is replayed under a policy."""

    def __init__(
        self,
        nodes: NodeArrays,
        trace: Trace,
        policy: Policy,
        *,
        interval_s: int | None = None,
        shares: Mapping[str, float] | None = None,
        penalty_s: Seconds = 0,
    ) -> None:
        """Start without jobs; `penalty_s` is the rescheduling penalty."""
        self._run_s = {each.job.id: each.run_s for each in trace.jobs}
        super().__init__(trace, interval_s)
        self._shared = Shared(self._run_s)
        self._policy = policy
        self._nodes = HeldCapacity(nodes)
        self._shown = [nodes.node(at, NOTHING) for at in range(len(nodes.names))]
        self._at = {name: at for at, name in enumerate(nodes.names)}
        self._penalty_s = penalty_s
        self._waiting: dict[int, Job] = {}
        self._active: dict[int, ActiveJob] = {}
        self._shares = shares or {}
        self._history: object | None = None
        self._idle_cycles = 0

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
        self._shared.forget(placed.job.id)
        self._idle_cycles = 0

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Ask the policy for a plan and carry it out."""
        waiting = len(self._waiting)
        plan = self._policy.plan(self.snapshot(now_s))
        for action in plan.actions:
            self._carry_out(action, now_s)
        self._history = plan.history
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
                self._requeue(action)
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
            may_restart=True,
            cpu_share=action.cpu_share,
            expected_end_s=None if expected_s is None else now_s + expected_s,
        )
        self._active[job.id] = started
        self._nodes.start(started, is_exclusive=action.alternative.exclusive)
        placed = PlacedRun(job, action.alternative, self._indices(action.nodes), start_s=now_s, end_s=now_s)
        self._shared.start(placed)
        self.expect([self._shared.pace(job.id, action.cpu_share, now_s)])

    def _requeue(self, action: Requeue) -> None:
        """Put the job at the end of the queue; its work is lost."""
        if action.pool:
            raise self._defect(action, f"there is no pool {action.pool}")
        if action.job_id in self._waiting:
            self._waiting[action.job_id] = self._waiting.pop(action.job_id)
        elif action.job_id in self._active:
            self._nodes.end(self._active.pop(action.job_id))
            placed = self.placements.pop(action.job_id)
            self._shared.forget(action.job_id)
            self._waiting[action.job_id] = placed.job
        else:
            raise self._defect(action, "it is not there")

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


class HeldCapacity:
    """The nodes, and what is held on each. An action that exceeds a node is a defect of the policy."""

    def __init__(self, nodes: NodeArrays) -> None:
        """Start without jobs."""
        self.capacity = dict(zip(nodes.names, map(nodes.resources, nodes.capacity.T.tolist()), strict=True))
        self._held = dict.fromkeys(nodes.names, NOTHING)
        self._cores: dict[str, Seconds] = dict.fromkeys(nodes.names, 0)
        self._exclusive: set[int] = set()

    def start(self, job: ActiveJob, *, is_exclusive: bool) -> None:
        """Let a job begin to hold its nodes.

        Raises:
            SnsError: a node is not there or has no room, or the share is not valid.
        """
        if is_exclusive:
            self._exclusive.add(job.id)
        self._take(job)

    def change(self, before: ActiveJob, after: ActiveJob) -> None:
        """Let a job hold something else.

        Raises:
            SnsError: as in `start`.
        """
        self._give_back(before)
        self._take(after)

    def end(self, job: ActiveJob) -> None:
        """Free what the job holds."""
        self._give_back(job)
        self._exclusive.discard(job.id)

    def free(self, name: str) -> Resources:
        """What is free on a node: of its cores only those that are free as a whole."""
        left = self.capacity[name].minus(self._held[name])
        return left._replace(cores=max(floor(left.cores - self._cores[name] + ROUNDING), 0))

    def _take(self, job: ActiveJob) -> None:
        if not 0 < job.cpu_share <= 1:
            raise SnsError(
                f"job {job.id}: cpu_share is {job.cpu_share}; valid: above 0, at most 1; this is a defect of the policy"
            )
        for name, parts in Counter(job.nodes).items():
            if name not in self._held:
                raise SnsError(f"job {job.id}: there is no node {name}; this is a defect of the policy")
            self._hold(job, name, parts)
            cores_left = self.capacity[name].cores - self._cores[name]
            if cores_left < -ROUNDING or not self._held[name].within(self.capacity[name]._replace(cores=0)):
                raise SnsError(f"job {job.id}: node {name} has no room for it; this is a defect of the policy")

    def _give_back(self, job: ActiveJob) -> None:
        for name, parts in Counter(job.nodes).items():
            self._hold(job, name, -parts)

    def _hold(self, job: ActiveJob, name: str, parts: int) -> None:
        """Add what so many parts of the job hold on a node."""
        demand = self.capacity[name] if job.id in self._exclusive else job.demand
        if not job.in_storage:
            self._held[name] = self._held[name].plus(demand.times(parts)._replace(cores=0))
        if job.state is not ActiveState.SUSPENDED:
            self._cores[name] += job.cpu_share * parts * demand.cores


@dataclass(slots=True)
class _Work:
    """A job's work, what it had done at `since_s`, and the share at which it advances from then on."""

    placed: PlacedRun
    work_s: Seconds
    done_s: Seconds
    since_s: Seconds
    share: Seconds


class Shared:
    """The progress of the jobs of one simulation."""

    def __init__(self, run_s: Mapping[int, Seconds]) -> None:
        """Start without jobs; `run_s` is each job's work."""
        self._run_s = run_s
        self._running: dict[int, _Work] = {}

    def start(self, placed: PlacedRun) -> None:
        """The job starts; `pace` sets its share."""
        self._running[placed.job.id] = _Work(placed, self._run_s[placed.job.id], 0, placed.start_s, 1)

    def pace(self, job_id: int, share: Seconds, now_s: Seconds, *, penalty_s: Seconds = 0) -> PlacedRun:
        """The job with its end at this share from now on; at a share of 0 the end is infinite.

        With `penalty_s` it makes no progress for so long first; a penalty that is under way goes on until its end.
        """
        work = self._running[job_id]
        begin_s = max(now_s + penalty_s, work.since_s)
        work.done_s, work.since_s, work.share = self.virtual_s(job_id, now_s), begin_s, share
        return _timed(work)

    def stop(self, job_id: int, now_s: Seconds) -> PlacedRun:
        """The job at a share of 0; a penalty that is under way is over."""
        work = self._running[job_id]
        work.done_s, work.since_s, work.share = self.virtual_s(job_id, now_s), now_s, 0
        return _timed(work)

    def virtual_s(self, job_id: int, now_s: Seconds) -> Seconds:
        """The job's virtual time."""
        work = self._running[job_id]
        return work.done_s + work.share * (now_s - work.since_s) if now_s > work.since_s else work.done_s

    def move(self, job_id: int, placed: PlacedRun) -> None:
        """Store the placement with the nodes on which the job goes on."""
        self._running[job_id].placed = placed

    def forget(self, job_id: int) -> None:
        """The job has ended, or was requeued."""
        del self._running[job_id]


def _timed(work: _Work) -> PlacedRun:
    """The job with its end; at a share of 1 nothing is divided, so that whole seconds stay whole."""
    left_s = work.work_s - work.done_s
    end_s = work.since_s + (left_s if work.share == 1 else left_s / work.share if work.share else inf)
    work.placed = replace(work.placed, end_s=round(end_s, DECIMALS) if isinstance(end_s, float) else end_s)
    return work.placed
