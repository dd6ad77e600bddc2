"""Why a job was placed where it was, or why it waits: the twin runs again on the same snapshot and watches one job.

The answer is a plain frozen value. Nothing in it is a guess: each member of the portfolio goes through its whole cycle
again, and the answer describes the nodes with what was free at the moment of the job's turn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Job, Plan, Resources, Snapshot
from slurm_sns.policies.placement.best_by_score import GroupHeuristic
from slurm_sns.policies.placement.cycle import Cycle, CycleStep, Heuristic
from slurm_sns.policies.placement.cycle_capacity import CycleCapacity
from slurm_sns.policies.placement.job_size import wording
from slurm_sns.policies.placement.lack import Lack
from slurm_sns.policies.placement.nearest_nodes import nearest
from slurm_sns.policies.placement.node_arrays import Amounts, Indices

NEAREST_SHOWN = 3
BEST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class AlternativeTried:
    """One alternative of the job, at the job's turn in one member's cycle.

    It fitted on `nodes_fitting` nodes and needs `nodes_needed`; `fits_if_empty` says whether the cluster could ever
    hold it. `withheld_in_the_way` are the jobs for which capacity was withheld without which the alternative would have
    fitted. `nearest` are nodes on which it did not fit, the nearest first.
    """

    size: str
    nodes_needed: int
    nodes_fitting: int
    fits_if_empty: bool
    withheld_in_the_way: tuple[int, ...]
    nearest: tuple[Lack, ...]


class Scored(NamedTuple):
    """A node on which the job fitted, and its score by the heuristic: the smallest is the best."""

    node: str
    score: float


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

    def best(self, names: Sequence[str]) -> tuple[Scored, ...]:
        """The best of the nodes that it scored last; on a tie the first in the machine list comes first."""
        if self._seen is None:
            return ()
        candidates, scores = self._seen
        order = np.argsort(scores, kind="stable")[:BEST_SHOWN]
        return tuple(Scored(names[candidates[at]], round(float(scores[at]), 9)) for at in order)


class RecordingGroupHeuristic(RecordingHeuristic, GroupHeuristic):
    """The same for a heuristic whose candidates are narrowed to one group first."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """What one member of the portfolio did with the job.

    `position` is the job's place in this member's queue order, counted from 0; None when the cycle did not get to it
    (behind the queue depth, or no node had room left). `nodes` is None when it was not placed; then `tried` has one
    entry per alternative. `best` are the best candidates for the alternative that was taken, with their scores.
    `withheld_for_it` are the nodes on which capacity was withheld for it.
    """

    heuristic: str
    jobs_matched: int
    won: bool
    position: int | None
    nodes: tuple[str, ...] | None
    best: tuple[Scored, ...]
    alternative: int | None
    withheld_for_it: tuple[str, ...]
    tried: tuple[AlternativeTried, ...]


@dataclass(frozen=True, slots=True)
class JobExplanation:
    """The whole answer for one job: the member that won the cycle, and each member's view in portfolio order.

    `own_heuristic` is the heuristic that the job names, used in every member's schedule. `reason` is the plan's reason.
    """

    job_id: int
    chosen: str
    own_heuristic: str | None
    queue_depth: int
    waiting_jobs: int
    reason: str
    members: tuple[MemberView, ...]


def explain(
    snapshot: Snapshot,
    job_id: int,
    *,
    plan: Plan,
    queue_depth: int,
    members: Iterable[str],
    cycle: Callable[[str], Cycle],
) -> JobExplanation:
    """What the cycle on this snapshot, which gave `plan`, does with the job.

    `members` are the members that competed; `cycle` gives the cycle of a member, not yet run.

    Raises:
        BadInput: the job is not among the snapshot's waiting jobs.
    """
    job = next((job for job in snapshot.waiting if job.id == job_id), None)
    if job is None:
        raise BadInput(f"job {job_id} is not among the {len(snapshot.waiting)} waiting jobs of this snapshot")
    started = {start.job_id: start.reason for start in plan.starts}
    return JobExplanation(
        job_id=job_id,
        chosen=plan.report.chosen,
        own_heuristic=job.heuristic,
        queue_depth=queue_depth,
        waiting_jobs=len(snapshot.waiting),
        reason=started.get(job_id) or plan.waiting[job_id],
        members=tuple(_view(member, cycle(member), job, won=member in plan.report.winners) for member in members),
    )


def _view(member: str, cycle: Cycle, job: Job, *, won: bool) -> MemberView:
    """Run one member's cycle and keep what concerns the job."""
    names = cycle.opening.node_arrays.names
    watched = _watch(cycle, job)
    jobs_matched = 0
    turn: CycleStep | None = None
    tried: tuple[AlternativeTried, ...] = ()
    for step in cycle.steps():
        jobs_matched += step.match is not None
        if step.job.id == job.id:
            turn = step
            if step.match is None:
                tried = _tried(cycle, job)
    match = turn.match if turn else None
    if turn is None:  # the job had no turn: the nodes at the end of the cycle
        tried = _tried(cycle, job)
    withheld = [names[node] for each in cycle.withheld if each.job.id == job.id for node in each.nodes]
    return MemberView(
        heuristic=member,
        jobs_matched=jobs_matched,
        won=won,
        position=turn.position if turn else None,
        nodes=tuple(names[node] for node in match.nodes) if match else None,
        best=watched.best([names[node] for node in cycle.opening.nodes]) if match else (),
        alternative=job.alternatives.index(match.alternative) if match else None,
        withheld_for_it=tuple(withheld),
        tried=tried,
    )


def _watch(cycle: Cycle, job: Job) -> RecordingHeuristic:
    """Make the cycle remember how the nodes were scored for the job."""
    choose = cycle.choose
    heuristic = choose(job)
    watched = (RecordingGroupHeuristic if isinstance(heuristic, GroupHeuristic) else RecordingHeuristic)(heuristic)
    cycle.choose = lambda each: watched if each.id == job.id else choose(each)
    return watched


def _tried(cycle: Cycle, job: Job) -> tuple[AlternativeTried, ...]:
    """How each alternative fits on the nodes as they are now, at the job's turn."""
    moment = CycleCapacity(cycle, observed=job.id)
    columns = moment.permitted(job)
    tried = []
    for alternative in job.alternatives:
        fitting = moment.fitting(alternative, job)
        unfit = np.setdiff1d(columns, fitting, assume_unique=True)
        tried.append(
            AlternativeTried(
                size=wording(alternative),
                nodes_needed=alternative.nodes,
                nodes_fitting=len(fitting),
                fits_if_empty=moment.large_enough(alternative, job) >= alternative.nodes,
                withheld_in_the_way=moment.in_the_way(alternative, job),
                nearest=nearest(moment.node_arrays, moment.free, unfit, alternative, NEAREST_SHOWN),
            )
        )
    return tuple(tried)
