"""Small sites with pools, and what engine and replay do with their jobs: each visit, suspension and decision."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from oracles.rescheduling.estimates import Basis, RestartDecision, Term
from oracles.rescheduling.policy import Rescheduling

from slurm_sns.model import ActiveState, Alternative, Job, JobPool, Plan, Requeue, Resources, Resume, Start, Suspend
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.rescheduling.parameters import KNOWN, ReschedulingParameters
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.replay.pool_replay import replay_pools
from slurm_sns.sim.trace import ANY_POOL, Trace, TraceArrays, TraceJob
from slurm_sns.sim.traces.nodes_csv import TraceSite

MIB = 1024


class PoolNode(NamedTuple):
    name: str
    cores: int
    gb: int
    pool: str


class PoolJob(NamedTuple):
    """`pool` empty: the virtual pool chooses; `allowed` empty: all pools."""

    id: int
    submit_s: int
    run_s: int
    cores: int
    gb: int
    pool: str = ""
    priority: int = 0
    allowed: tuple[str, ...] = ()
    limit_s: int | None = None
    program: str = ""


class PoolCase(NamedTuple):
    nodes: Sequence[PoolNode]
    jobs: Sequence[PoolJob]

    def pools(self) -> dict[str, list[PoolNode]]:
        found: dict[str, list[PoolNode]] = {}
        for node in self.nodes:
            found.setdefault(node.pool, []).append(node)
        return found


@dataclass
class VisitSeen:
    """What a job did in one pool."""

    pool: str
    joined_s: int
    start_s: int = -1
    node: str = ""
    suspended_s: int = 0
    ran_s: int = 0


class SuspensionSeen(NamedTuple):
    job: int
    visit: int
    node: str
    from_s: int
    to_s: int
    ended_by: str


@dataclass
class JobSeen:
    """A job's visits, and the state that it is in since `since_s`."""

    visits: list[VisitSeen]
    state: ActiveState | None = None
    since_s: int = 0
    end_s: int = -1
    suspensions: list[SuspensionSeen] = field(default_factory=list)

    def wait_s(self) -> int:
        return sum(visit.start_s - visit.joined_s for visit in self.visits)


class Watched(Rescheduling):
    """Keeps its plans with their moments."""

    def __init__(self, parameters: ReschedulingParameters) -> None:
        super().__init__(parameters)
        self.plans: list[tuple[int, Plan]] = []

    def plan(self, snapshot):
        made = super().plan(snapshot)
        self.plans.append((snapshot.now_s, made))
        return made


class PooledSimulation(PlannedSimulation):
    """A site with pools: a requeue may name one. It loses the job's work, or keeps it, and lengthens the job's run."""

    def __init__(self, cluster: NodeArrays, trace: Trace, policy: Watched, pools: tuple[JobPool, ...]) -> None:
        super().__init__(cluster, trace, policy)
        self._pools, self._parameters, self._now_s = pools, policy.parameters, 0
        self._whole_s = dict(self._run_s)

    def snapshot(self, now_s):
        self._now_s = now_s
        return replace(super().snapshot(now_s), pools=self._pools)

    def _requeue(self, action: Requeue) -> None:
        assert not action.pool or action.pool in {pool.name for pool in self._pools}
        identity, active = action.job_id, self._active.get(action.job_id)
        if active is not None:
            kept_s = self._shared.virtual_s(identity, self._now_s) if self._parameters.keeps_work else 0
            before_s = self._run_s[identity] if self._parameters.keeps_work else self._whole_s[identity]
            self._run_s[identity] = before_s - kept_s + self._parameters.move_cost_s
        super()._requeue(replace(action, pool=""))
        queued = self._waiting[identity]
        self._waiting[identity] = replace(queued, pool=action.pool or (active or queued).pool)


class EngineSeen:
    """A run of the event engine under the oracle: `jobs` by number, `decisions` with their moments."""

    def __init__(self, case: PoolCase, parameters: ReschedulingParameters) -> None:
        pools = case.pools()
        names = {pool: tuple(node.name for node in nodes) for pool, nodes in pools.items()}
        cluster = NodeArrays(
            tuple(node.name for node in case.nodes),
            amounts([Resources(node.cores, node.gb * MIB) for node in case.nodes]),
        )
        jobs = [_trace_job(job, names, knows=parameters.run_times == KNOWN) for job in case.jobs]
        policy = Watched(parameters)
        simulation = PooledSimulation(
            cluster, Trace(tuple(jobs), {}), policy, tuple(JobPool(*each) for each in names.items())
        )
        self.outcome = simulation.run()
        self.decisions: list[tuple[int, str, RestartDecision]] = []
        self.jobs: dict[int, JobSeen] = {}
        submit_s = {job.id: job.submit_s for job in case.jobs}
        for now_s, plan in policy.plans:
            for identity, account in plan.history.accounts.items():
                first = account.earlier[0] if account.earlier else account.visit
                self.jobs.setdefault(identity, JobSeen([VisitSeen(first.pool, submit_s[identity])]))
            for action in plan.actions:
                self._see(now_s, action)
            for each in plan.history.decisions:
                self.decisions.append((now_s, each.terms[0].pool, each))
        for placed in self.outcome.placements:
            seen = self.jobs[placed.job.id]
            seen.end_s = placed.end_s
            seen.visits[-1].ran_s += placed.end_s - seen.since_s

    def _see(self, now_s, action) -> None:
        seen = self.jobs[action.job_id]
        visit = seen.visits[-1]
        match action:
            case Start():
                visit.start_s, visit.node = now_s, action.nodes[0]
                seen.state, seen.since_s = ActiveState.RUNNING, now_s
            case Suspend():
                visit.ran_s += now_s - seen.since_s
                seen.state, seen.since_s = ActiveState.SUSPENDED, now_s
            case Requeue() if seen.state is None:
                visit.node, visit.start_s = "", -1
                seen.visits.append(VisitSeen(action.pool, now_s))
            case Resume() | Requeue():
                moved = isinstance(action, Requeue)
                visit.suspended_s += now_s - seen.since_s
                if moved or now_s > seen.since_s:
                    ended_by = "moved" if moved else "resumed"
                    seen.suspensions.append(
                        SuspensionSeen(action.job_id, len(seen.visits), visit.node, seen.since_s, now_s, ended_by)
                    )
                seen.state, seen.since_s = None if moved else ActiveState.RUNNING, now_s
                if moved:
                    seen.visits.append(VisitSeen(action.pool, now_s))


def _trace_job(job: PoolJob, names: dict[str, tuple[str, ...]], *, knows: bool) -> TraceJob:
    allowed = frozenset(node for pool in job.allowed for node in names[pool]) if job.allowed else None
    alternative = Alternative(1, Resources(job.cores, job.gb * MIB))
    made = Job(
        job.id,
        job.submit_s,
        (alternative,),
        pool=job.pool,
        priority=job.priority,
        allowed=allowed,
        expected_run_s=job.run_s if knows else job.limit_s,
        program=job.program,
    )
    return TraceJob(made, job.run_s)


def site_of(case: PoolCase) -> TraceSite:
    pools = list(case.pools())
    return TraceSite(
        NodeArrays(
            tuple(node.name for node in case.nodes),
            amounts([Resources(node.cores, node.gb * MIB) for node in case.nodes]),
        ),
        tuple(pools),
        np.array([pools.index(node.pool) for node in case.nodes]),
    )


def trace_of(case: PoolCase) -> TraceArrays:
    pools = list(case.pools())
    sets = [np.array([not job.allowed or pool in job.allowed for pool in pools]) for job in case.jobs]
    count = len(case.jobs)
    programs = sorted({job.program for job in case.jobs} - {""})

    def column(name: str, factor: int = 1) -> np.ndarray:
        return factor * np.array([getattr(job, name) for job in case.jobs], np.int64)

    return TraceArrays(
        identity=column("id"),
        submit=column("submit_s"),
        run=column("run_s"),
        cores=column("cores"),
        memory=column("gb", MIB),
        priority=column("priority"),
        pool=np.array([pools.index(job.pool) if job.pool else ANY_POOL for job in case.jobs]),
        allowed=np.arange(count),
        allowed_sets=np.array(sets),
        limit=np.array([job.limit_s or 0 for job in case.jobs]),
        program=np.array([programs.index(job.program) if job.program else -1 for job in case.jobs]),
        programs=tuple(programs),
    )


class ReplaySeen:
    """A run of the compiled replay, in the form of `EngineSeen`."""

    def __init__(self, case: PoolCase, parameters: ReschedulingParameters) -> None:
        site, trace = site_of(case), trace_of(case)
        self.run = replay_pools(site, trace, parameters, details=100_000)
        self.jobs: dict[int, JobSeen] = {}
        numbers = trace.identity.tolist()
        for job, pool, joined, start, node, suspended, ran in zip(
            *(column.tolist() for column in self.run.visits()), strict=True
        ):
            seen = self.jobs.setdefault(numbers[job], JobSeen([], end_s=int(self.run.end[job])))
            seen.visits.append(
                VisitSeen(site.pools[pool], joined, start, site.nodes.names[node] if node >= 0 else "", suspended, ran)
            )
        order = np.argsort(site.pool_of, kind="stable")
        for job, visit, node, begin, end, moved, *_ in self.run.details.suspensions.tolist():
            self.jobs[numbers[job]].suspensions.append(
                SuspensionSeen(
                    numbers[job],
                    visit + 1,
                    site.nodes.names[order[node]],
                    begin,
                    end,
                    "moved" if moved else "resumed",
                )
            )
        terms: dict[int, list[Term]] = {}
        for number, pool, samples, basis, waited, suspended, run_s, count, *_ in self.run.details.terms.tolist():
            term = Term(
                site.pools[pool],
                samples,
                list(Basis)[basis],
                Fraction(waited, count),
                Fraction(suspended, count),
                run_s,
            )
            terms.setdefault(number, []).append(term)
        self.decisions = [
            (now, site.pools[own], RestartDecision(numbers[job], tuple(terms[at]), site.pools[chosen]))
            for at, (now, job, own, chosen, *_) in enumerate(self.run.details.decisions.tolist())
        ]
