"""DFRS as a policy: a snapshot becomes an instant, and the decision for it becomes a plan.

One part of a job is one of the paper's tasks: its demand of cores is its CPU need, its demand of memory is rigid. A job
is paused by a suspension to storage and moved by such a suspension and a resume elsewhere.

Source: Dynamic fractional resource scheduling (IPDPS 2010).
"""

from collections.abc import Mapping
from functools import partial

from slurm_sns.model import Action, ActiveJob, ActiveState, Plan, Resume, Seconds, SetShare, Snapshot, Start, Suspend
from slurm_sns.policies.base import no_explanation, own_geometry
from slurm_sns.policies.dfrs import algorithms, instant
from slurm_sns.policies.dfrs.algorithms import MOST_DOUBLINGS, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import Scale
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, Nodes, YieldDecision
from slurm_sns.policies.dfrs.parameters import Attempts, DfrsHistory, GreedyParameters, PeriodicParameters

NO_ROOM = "no nodes have memory for all of its tasks"
PAUSED = "its memory is needed for jobs with a higher priority"


class Dfrs:
    """One of the paper's algorithms."""

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)

    def __init__(self, algorithm: Algorithm, parameters: PeriodicParameters | None = None) -> None:
        """The parameters count for periodic algorithms only."""
        self.algorithm = algorithm
        self.period_s = (parameters or PeriodicParameters()).period_s

    def plan(self, snapshot: Snapshot) -> Plan:
        """Where each job is from now on, and its share of the CPU."""
        last = snapshot.history if isinstance(snapshot.history, DfrsHistory) else DfrsHistory()
        at = self._instant(snapshot, last)
        decided = self.decide(at)
        waiting = self._attempts(snapshot, last, at, decided)
        is_idle = not at.jobs or not self.algorithm.packs_periodically
        next_run_s = None if is_idle else at.next_run_s
        wakes = [each.next_s for each in waiting.values() if each.next_s is not None]
        return Plan(
            tuple(_actions(snapshot, decided)),
            {job: self._reason(attempts, next_run_s) for job, attempts in waiting.items()},
            min([*wakes, *([] if next_run_s is None else [next_run_s])], default=None),
            DfrsHistory(waiting, next_run_s, decided.floors),
        )

    def decide(self, at: Instant) -> YieldDecision:
        """The algorithm's decision for this instant."""
        return instant.decide(self.algorithm, at)

    def _instant(self, snapshot: Snapshot, last: DfrsHistory) -> Instant:
        now_s, period_s = snapshot.now_s, self.period_s
        nodes, scale = _nodes(snapshot)
        newcomers = frozenset(job.id for job in snapshot.waiting if job.id not in last.waiting)
        is_run = now_s % period_s == 0 or (last.next_run_s is not None and last.next_run_s <= now_s)
        return Instant(
            now_s,
            nodes,
            _jobs(snapshot, scale),
            newcomers,
            frozenset(job for job, each in last.waiting.items() if each.next_s is not None and each.next_s <= now_s),
            self.algorithm.packs_periodically and is_run,
            period_s,
            now_s // period_s * period_s + period_s,
            last.floors,
        )

    def _attempts(
        self, snapshot: Snapshot, last: DfrsHistory, at: Instant, decided: YieldDecision
    ) -> Mapping[int, Attempts]:
        """The attempts of the jobs that go on waiting."""
        waiting = {}
        for job in snapshot.waiting:
            if job.id in decided.places:
                continue
            attempts = last.waiting.get(job.id, Attempts())
            if self.algorithm.backs_off and job.id in decided.failed:
                failures = attempts.failures + 1
                attempts = Attempts(failures, at.now_s + (1 << min(failures, MOST_DOUBLINGS)))
            waiting[job.id] = attempts
        return waiting

    def _reason(self, attempts: Attempts, next_run_s: Seconds | None) -> str:
        if attempts.next_s is not None:
            return f"{NO_ROOM}; attempt {attempts.failures + 1} is at {float(attempts.next_s):.0f}"
        if next_run_s is not None and not self.algorithm.starts_newcomers:
            return f"it waits for the run at {float(next_run_s):.0f}"
        return NO_ROOM


def greedy(parameters: GreedyParameters | None = None) -> Dfrs:
    """The policy GREEDY."""
    retries = parameters is not None and parameters.retry_at_events
    return Dfrs(algorithms.GREEDY_RETRY_AT_EVENTS if retries else algorithms.GREEDY)


greedy_pmtn = partial(Dfrs, algorithms.GREEDY_PMTN)
greedy_pmtn_migr = partial(Dfrs, algorithms.GREEDY_PMTN_MIGR)
dynmcb8 = partial(Dfrs, algorithms.DYNMCB8)
dynmcb8_per = partial(Dfrs, algorithms.DYNMCB8_PER)
dynmcb8_asap_per = partial(Dfrs, algorithms.DYNMCB8_ASAP_PER)
dynmcb8_stretch_per = partial(Dfrs, algorithms.DYNMCB8_STRETCH_PER)


def _is_ours(job: ActiveJob) -> bool:
    """Whether DFRS may pause and place the job: it runs, or it is in storage."""
    return job.state is not ActiveState.SUSPENDED or job.in_storage


def _nodes(snapshot: Snapshot) -> tuple[Nodes, Scale]:
    """All CPU of each node, and the memory that is not held by jobs which are not ours."""
    memory = {node.name: node.free.memory_mb for node in snapshot.nodes}
    for job in snapshot.active:
        if _is_ours(job) and not job.in_storage:
            for name in job.nodes:
                memory[name] += job.demand.memory_mb
    cpu = [node.capacity.cores for node in snapshot.nodes]
    scale = Scale.of(cpu, [node.capacity.memory_mb for node in snapshot.nodes])
    return (
        Nodes(tuple(scale.cpu * each for each in cpu), tuple(scale.memory * each for each in memory.values())),
        scale,
    )


def _jobs(snapshot: Snapshot, scale: Scale) -> tuple[FluidJob, ...]:
    """The jobs in submit order."""
    at = {node.name: position for position, node in enumerate(snapshot.nodes)}
    jobs = []
    for job in snapshot.waiting:
        asked = job.alternatives[0]
        need = (scale.cpu * asked.demand.cores, scale.memory * asked.demand.memory_mb)
        jobs.append(FluidJob(job.id, job.submit_s, asked.nodes, *need))
    for active in snapshot.active:
        if not _is_ours(active):
            continue
        need = (scale.cpu * active.demand.cores, scale.memory * active.demand.memory_mb)
        nodes = () if active.in_storage else tuple(sorted(at[name] for name in active.nodes))
        jobs.append(FluidJob(active.id, active.submit_s, len(active.nodes), *need, active.virtual_s, nodes))
    return tuple(sorted(jobs, key=lambda job: (job.submit_s, job.id)))


def _actions(snapshot: Snapshot, decided: YieldDecision) -> list[Action]:
    """The actions in an order in which each finds its room.

    Jobs that leave their nodes come first, then those whose share falls, then those that come, then those whose share
    rises.
    """
    names = [node.name for node in snapshot.nodes]
    leaving: list[Action] = []
    coming: list[Action] = []
    falling: list[Action] = []
    rising: list[Action] = []
    for job in snapshot.active:
        if not _is_ours(job):
            continue
        nodes = tuple(names[node] for node in decided.places.get(job.id, ()))
        share = decided.yields.get(job.id, 0)
        runs, stays = not job.in_storage, sorted(nodes) == sorted(job.nodes)
        if runs and not (nodes and stays):
            leaving.append(Suspend(job.id, "moved" if nodes else PAUSED, to_storage=True))
        if nodes and not (runs and stays):
            coming.append(Resume(job.id, nodes, cpu_share=share))
        elif nodes and share != job.cpu_share:
            (rising if share > job.cpu_share else falling).append(SetShare(job.id, share))
    for waiting in snapshot.waiting:
        if waiting.id in decided.places:
            nodes = tuple(names[node] for node in decided.places[waiting.id])
            coming.append(Start(waiting.id, nodes, waiting.alternatives[0], "", decided.yields[waiting.id]))
    return [*leaving, *falling, *coming, *rising]
