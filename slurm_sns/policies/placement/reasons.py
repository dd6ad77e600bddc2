"""One short reason for each job that a plan starts or leaves waiting.

The reasons are computed from what the winning cycle left free, once for each kind of job: free capacity only shrinks
in a cycle, so what did not fit at a job's turn does not fit at its end either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from slurm_sns.model import Job, Start
from slurm_sns.policies.placement.cycle import EndedCycle, Match
from slurm_sns.policies.placement.job_size import wording
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.shortfall import FreeCapacity, nearest


def starts(
    matches: Iterable[Match], node_arrays: NodeArrays, chosen: str, matched: Mapping[str, int]
) -> tuple[Start, ...]:
    """The start actions for the matches of the chosen schedule."""
    count = matched[chosen]
    schedule = f"{chosen}, which matched {count} {'job' if count == 1 else 'jobs'}"
    if len(matched) > 1:
        schedule += f" (the most of {len(matched)} heuristics)"
    return tuple(
        Start(
            job_id=match.job.id,
            nodes=tuple(node_arrays.names[node] for node in match.nodes),
            alternative=match.alternative,
            reason=f"own heuristic {match.job.heuristic} in {schedule}" if match.job.heuristic else f"by {schedule}",
        )
        for match in matches
    )


def reasons_to_wait(
    cycle: EndedCycle, matches: Iterable[Match], waiting: Iterable[Job], queue_depth: int
) -> dict[int, str]:
    """Job id -> reason for every waiting job without a match, from a cycle that has run."""
    placed = {match.job.id for match in matches}
    left = [job for job in waiting if job.id not in placed]
    if not left:
        return {}
    behind = {job.id for job in cycle.not_reached()}
    after = FreeCapacity(cycle)
    reason = OncePerKind(partial(_reason, after)).of
    reasons: dict[int, str] = {}
    for job in left:
        if job.id in behind:
            reasons[job.id] = f"behind the first {queue_depth} jobs of the queue (queue_depth)"
        elif job.id in after.withheld_for:
            reasons[job.id] = f"finds no place yet; capacity is withheld for it on {_some(after.withheld_for[job.id])}"
        else:
            reasons[job.id] = reason(job)
    return reasons


def _reason(after: FreeCapacity, job: Job) -> str:
    """Why jobs of this kind found no place: the reason for the first alternative that the nodes could ever hold."""
    possible = [
        alternative for alternative in job.alternatives if after.large_enough(alternative, job) >= alternative.nodes
    ]
    if not possible:
        alternative = job.alternatives[0]
        large = after.large_enough(alternative, job)
        return (
            f"needs {wording(alternative)}; of the nodes that can be planned on now {large} {_are(large)} large enough"
        )
    for alternative in possible:
        holders = after.in_the_way(alternative, job)
        if holders:
            return f"would fit, but capacity is withheld for job {_some([str(job_id) for job_id in holders])}"
    alternative = possible[0]
    if alternative.nodes > 1:
        fitting = after.fitting(alternative, job)
        return f"needs {wording(alternative)}; nodes that fit: {len(fitting)}{after.apart(alternative, fitting)}"
    columns = after.permitted(job)
    lack = nearest(after.node_arrays, after.free, columns, alternative, 1)[0]
    demand = wording(replace(alternative, exclusive=False))
    state = f"is empty and has {demand}" if alternative.exclusive else f"has {demand} free"
    return f"no allowed node {state}; nearest: {lack}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _some(names: Iterable[str], limit: int = 3) -> str:
    """The first few names; a job may stretch over thousands of nodes."""
    listed = list(names)
    shown = ", ".join(listed[:limit])
    return shown if len(listed) <= limit else f"{shown} and {len(listed) - limit} more"
