"""What an algorithm does at one instant: where each job's tasks are from now on, and the job's yield.

The order: newcomers and jobs whose back-off has ended, by submit; then paused jobs are resumed; then, where it is due,
all jobs are packed anew; then the yields, once. Jobs that have ended are no longer among the jobs.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III.
"""

from collections.abc import Mapping

from oracles.dfrs import stretch_search, yield_search
from oracles.dfrs.occupancy import Occupancy
from oracles.dfrs.preemption import make_room
from oracles.dfrs.priority import by_decreasing_priority
from oracles.dfrs.yields import average_stretch, average_yield, equal_yield, raised, sliced, weighed
from slurm_sns.model import Seconds, Share
from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.instant import FluidJob, Instant, YieldDecision
from slurm_sns.policies.dfrs.policy import Dfrs


class PlainDfrs(Dfrs):
    """The policy with the decisions of this module."""

    def decide(self, at: Instant) -> YieldDecision:
        """The algorithm's decision for this instant, in exact numbers."""
        return decide(self.algorithm, at)


def decide(algorithm: Algorithm, at: Instant) -> YieldDecision:
    """The decision for this instant."""
    occupancy = Occupancy(at.nodes, at.jobs, at.most_to_a_core)
    failed: set[int] = set()
    if algorithm.starts_newcomers:
        paused, failed = _start(algorithm, at, occupancy)
        if algorithm.preempts:
            _resume(algorithm, at, occupancy, paused)
    floors = {job: share for job, share in at.floors.items() if job in occupancy.places}
    if algorithm.packs_at_events or (algorithm.packs_periodically and at.is_run):
        by_priority = by_decreasing_priority(at.jobs, at.now_s)
        if algorithm.minimises_stretch:
            packing, found = stretch_search.search(at.nodes, at.jobs, by_priority, at.now_s, at.period_s)
            floors = dict(found)
        else:
            packing = yield_search.search(at.nodes, at.jobs, by_priority).packing
        occupancy = Occupancy(at.nodes, [job._replace(nodes=packing.get(job.id, ())) for job in at.jobs])
    return YieldDecision(occupancy.places, _yields(algorithm, at, occupancy, floors), frozenset(failed), floors)


def _start(algorithm: Algorithm, at: Instant, occupancy: Occupancy) -> tuple[set[int], set[int]]:
    """Place the jobs whose turn it is; the jobs that were paused for them, and those that found no place."""
    paused: set[int] = set()
    failed: set[int] = set()
    for job in at.jobs:
        has_turn = job.id in at.newcomers or job.id in at.due or (algorithm.retries_at_events and not job.was_paused)
        if not has_turn or job.id in occupancy.places or job.id in paused:
            continue
        if not algorithm.preempts:
            if not occupancy.place(job):
                failed.add(job.id)
            continue
        victims = [
            each
            for each in at.jobs
            if each.id in occupancy.places and each.may_pause and (each.nodes or not algorithm.retries_at_events)
        ]
        paused.update(each.id for each in make_room(occupancy, job, _victims(algorithm, victims, at.now_s)))
    if algorithm.retries_at_events:
        for job in _victims(algorithm, [each for each in at.jobs if each.id in paused], at.now_s):
            if occupancy.has_room(job, job.nodes):
                occupancy.put(job, job.nodes)
    return paused, failed


def _victims(algorithm: Algorithm, jobs: list[FluidJob], now_s: Seconds) -> list[FluidJob]:
    """These jobs, given in submit order, with the first one to pause last."""
    if algorithm.least_loss:
        return sorted(jobs, key=lambda each: -each.loss)
    return by_decreasing_priority(jobs, now_s)


def _resume(algorithm: Algorithm, at: Instant, occupancy: Occupancy, paused: set[int]) -> None:
    """Place paused jobs greedily, those with the highest priority first; what does not fit is skipped."""
    for job in by_decreasing_priority(at.jobs, at.now_s):
        if job.id not in occupancy.places and (algorithm.migrates or job.id not in paused):
            occupancy.place(job)


def _yields(algorithm: Algorithm, at: Instant, occupancy: Occupancy, floors: Mapping[int, Share]) -> dict[int, Share]:
    """The yields of the jobs that have nodes."""
    base: dict[int, Share]
    if algorithm.slices_time:
        return sliced(occupancy, at.jobs, algorithm.switch_loss)
    if algorithm.by_weight:
        return weighed(occupancy, at.jobs)
    if algorithm.minimises_stretch:
        base = {job: floors.get(job, stretch_search.LEAST_YIELD) for job in occupancy.places}
        return raised(at.nodes, at.jobs, occupancy.places, base, average_stretch(at.next_run_s))
    base = dict.fromkeys(occupancy.places, equal_yield(occupancy, at.nodes))
    return raised(at.nodes, at.jobs, occupancy.places, base, average_yield)
