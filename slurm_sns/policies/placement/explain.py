"""Why a job was placed where it was, or why it waits: the twin runs again on the same snapshot and watches one job.

Nothing in the answer is a guess: each member of the portfolio goes through its whole cycle again, and the answer
describes the nodes with what was free at the moment of the job's turn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Plan, Resources, Snapshot
from slurm_sns.node_lists import folded
from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.policies.placement.best_by_score import GroupHeuristic
from slurm_sns.policies.placement.cycle import Cycle, CycleStep, Heuristic
from slurm_sns.policies.placement.job_size import wording
from slurm_sns.policies.placement.node_arrays import Amounts, Indices
from slurm_sns.policies.placement.shortfall import FreeCapacity, nearest

NEAREST_SHOWN = 3
BEST_SHOWN = 4


class RecordingHeuristic:
    """A heuristic that remembers the nodes that it scored last; only the job to be explained uses it."""

    def __init__(self, heuristic: Heuristic) -> None:
        self._heuristic = heuristic
        self._seen: tuple[Indices, NDArray[np.generic]] | None = None

    def __call__(self, capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> NDArray[np.generic]:
        """The heuristic's own scores."""
        scores = self._heuristic(capacity, free, candidates, demand)
        self._seen = (candidates, scores)
        return scores

    def best(self, names: Sequence[str]) -> str:
        """The best of the nodes that it scored last, with their scores; on a tie in the machine list's order."""
        if self._seen is None:
            return ""
        candidates, scores = self._seen
        order = np.argsort(scores, kind="stable")[:BEST_SHOWN]
        return ", ".join(f"{names[candidates[at]]} {float(scores[at]):.6g}" for at in order)


class RecordingGroupHeuristic(RecordingHeuristic, GroupHeuristic):
    """The same for a heuristic whose candidates are narrowed to one group first."""


@dataclass(frozen=True, slots=True)
class _View:
    """What one member of the portfolio did with the job, and what was missing if it did not place it."""

    row: Considered
    missing: tuple[str, ...]


def explain(
    snapshot: Snapshot,
    job_id: int,
    *,
    plan: Plan,
    members: Iterable[str],
    cycle: Callable[[str], Cycle],
) -> Explanation:
    """What the cycle on this snapshot, which gave `plan`, does with the job.

    `members` are the members that competed; `cycle` gives the cycle of a member, not yet run.

    Raises:
        BadInput: the job is not among the snapshot's waiting jobs.
    """
    job = next((job for job in snapshot.waiting if job.id == job_id), None)
    if job is None:
        raise BadInput(f"job {job_id} is not among the {len(snapshot.waiting)} waiting jobs of this snapshot")
    chosen = plan.report.chosen
    views = [_view(member, cycle(member), job) for member in members]
    summary = [f"In that cycle {len(snapshot.waiting)} jobs waited; {chosen} matched the most and was dispatched."]
    if job.heuristic:
        summary.append(f"The job has a heuristic of its own, {job.heuristic}: every schedule uses it.")
    missing = next((each.missing for each in views if each.row.name == chosen), ())
    return Explanation(tuple(summary), "heuristic", tuple(each.row for each in views), missing)


def _view(member: str, cycle: Cycle, job: Job) -> _View:
    """Run one member's cycle and keep what concerns the job."""
    names = cycle.opening.node_arrays.names
    watched = _watch(cycle, job)
    jobs_matched = 0
    turn: CycleStep | None = None
    missing: tuple[str, ...] = ()
    for step in cycle.steps():
        jobs_matched += step.match is not None
        if step.job.id == job.id:
            turn = step
            if step.match is None:
                missing = tuple(_missing(cycle, job))
    match = turn.match if turn else None
    if turn is None:  # the job had no turn: the nodes at the end of the cycle
        missing = tuple(_missing(cycle, job))
    withheld = [names[node] for each in cycle.withheld if each.job.id == job.id for node in each.nodes]
    outcome = f"on {folded(names[node] for node in match.nodes)}" if match else "finds no nodes"
    if withheld:
        outcome += f"; capacity withheld on {folded(withheld)}"
    best = watched.best([names[node] for node in cycle.opening.nodes]) if match else ""
    place = turn.position + 1 if turn else "not reached"  # behind the queue depth, or no node had room left
    figures = {"jobs matched": jobs_matched, "place in queue": place}
    return _View(Considered(member, outcome, f"best nodes (smallest score): {best}" if best else "", figures), missing)


def _watch(cycle: Cycle, job: Job) -> RecordingHeuristic:
    """Make the cycle remember how the nodes were scored for the job."""
    choose = cycle.choose
    heuristic = choose(job)
    watched = (RecordingGroupHeuristic if isinstance(heuristic, GroupHeuristic) else RecordingHeuristic)(heuristic)
    cycle.choose = lambda each: watched if each.id == job.id else choose(each)
    return watched


def _missing(cycle: Cycle, job: Job) -> Iterator[str]:
    """How each alternative fits on the nodes as they are now, at the job's turn, and what the nearest nodes lack."""
    moment = FreeCapacity(cycle, observed=job.id)
    columns = moment.permitted(job)
    for alternative in job.alternatives:
        fitting = moment.fitting(alternative, job)
        yield (
            f"It needs {wording(alternative)}. Nodes that had this free at its turn: {len(fitting)}; "
            f"needed: {alternative.nodes}{moment.apart(alternative, fitting)}."
        )
        unfit = np.setdiff1d(columns, fitting, assume_unique=True)
        for lack in nearest(moment.node_arrays, moment.free, unfit, alternative, NEAREST_SHOWN):
            yield f"  nearest: {lack}"
        yield from _in_the_way(moment, alternative, job)


def _in_the_way(moment: FreeCapacity, alternative: Alternative, job: Job) -> Iterator[str]:
    for other in moment.in_the_way(alternative, job):
        yield f"  it would fit, but capacity is withheld for job {other}"
    if moment.large_enough(alternative, job) < alternative.nodes:
        yield "  the nodes that can be planned on now are too small or too few for it, even empty"
