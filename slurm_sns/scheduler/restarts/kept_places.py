"""The places that are kept for jobs on their way from a requeue to their next placement.

While such a job is completing, or Slurm's requeue_delay lasts, nobody else gets its place. Once it can be planned it
comes before all others. After the time that the requeue takes, nothing is kept any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from slurm_sns.model import Resources
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.scheduler.restarts.places import Place
from slurm_sns.scheduler.snapshot.situation import Situation


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The place, until when it is kept (Unix seconds), and the job's restarts when it was requeued."""

    place: Place
    until_s: float
    restarts: int


def still_kept(kept: Mapping[int, KeptPlace], situation: Situation) -> dict[int, KeptPlace]:
    """Those whose job is on its way: it has not been placed yet, and nobody has held it or taken it from us."""
    jobs = {job.id: job for job in situation.observed if job.id in kept}
    now_s = situation.snapshot.now_s
    return {
        job_id: each
        for job_id, each in kept.items()
        if now_s < each.until_s and job_id in jobs and _is_on_its_way(jobs[job_id], each, situation)
    }


def _is_on_its_way(job: ObservedJob, kept: KeptPlace, situation: Situation) -> bool:
    if job.state is JobState.ENDED or job.priority == 0 or job.record is None or job.record.is_slurms:
        return False
    has_started = job.state.occupies_nodes and job.restarts > kept.restarts and not job.is_completing
    return not has_started and not situation.statuses[job.id].has_placement


def with_kept(situation: Situation, kept: Mapping[int, KeptPlace]) -> Situation:
    """The situation in which these jobs come first, and in which nobody gets the places of those that cannot come."""
    if not kept:
        return situation
    snapshot = situation.snapshot
    first = [replace(job, over_aged=True) for job in snapshot.waiting if job.id in kept]
    others = [job for job in snapshot.waiting if job.id not in kept]
    comes = {job.id for job in first if job.allowed is None or job.allowed.issuperset(kept[job.id].place.nodes)}
    taken = _taken([each.place for job_id, each in kept.items() if job_id not in comes])
    nodes = tuple(
        replace(node, free=node.free.minus(taken[node.name])) if node.name in taken else node for node in snapshot.nodes
    )
    return replace(situation, snapshot=replace(snapshot, nodes=nodes, waiting=(*first, *others)))


def _taken(places: list[Place]) -> dict[str, Resources]:
    taken: dict[str, Resources] = {}
    for place in places:
        for name in place.nodes:
            taken[name] = place.demand if name not in taken else taken[name].plus(place.demand)
    return taken
