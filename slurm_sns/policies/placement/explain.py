"""Why a job was placed where it was, or why not: the twin rerun on the same snapshot, watching one job.

The answer is a plain frozen value. Nothing in it is a guess: each member of the portfolio goes through its whole cycle
again, and what is said of the nodes is what was free at the very moment at which the job had its turn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import Job, Plan, Resources, Snapshot
from slurm_sns.policies.placement.best_by_score import Grouping
from slurm_sns.policies.placement.cycle import Cycle, Heuristic, Step
from slurm_sns.policies.placement.cycle_capacity import CycleCapacity
from slurm_sns.policies.placement.job_size import wording
from slurm_sns.policies.placement.node_arrays import Amounts, Indices
from slurm_sns.policies.placement.shortfall import Lack, nearest

NEAREST_SHOWN = 3
BEST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class AlternativeTried:
    """One way to run the job, at its turn in one member's cycle.

    `nodes_fitting` of `nodes_needed` nodes were free enough; `fits_if_empty` says whether the cluster could ever hold
    it. `withheld_in_the_way` names the jobs for which capacity was withheld that would have made it fit. `nearest` are
    nodes on which it did not fit, the nearest first.
    """

    size: str
    nodes_needed: int
    nodes_fitting: int
    fits_if_empty: bool
    withheld_in_the_way: tuple[int, ...]
    nearest: tuple[Lack, ...]


class Scored(NamedTuple):
    """A node on which the job fitted, and the heuristic's score of it: the smallest is the best."""

    node: str
    score: float


class Watched:
    """A heuristic that remembers the nodes it scored last, for the one job that is asked about."""

    def __init__(self, heuristic: Heuristic) -> None:
        self._heuristic = heuristic
        self._seen: tuple[Indices, NDArray[np.generic]] | None = None

    def __call__(self, capacity: Amounts, free: Amounts, candidates: Indices, demand: Resources) -> NDArray[np.generic]:
        """The heuristic's own scores."""
        scores = self._heuristic(capacity, free, candidates, demand)
        self._seen = (candidates, scores)
        return scores

    def best(self, names: Sequence[str]) -> tuple[Scored, ...]:
        """The best of the nodes that it scored, the first in the machine list on a tie."""
        if self._seen is None:
            return ()
        candidates, scores = self._seen
        order = np.argsort(scores, kind="stable")[:BEST_SHOWN]
        return tuple(Scored(names[candidates[at]], round(float(scores[at]), 9)) for at in order)


class WatchedGrouping(Watched, Grouping):
    """The same of a heuristic whose candidates are narrowed first."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """What one member of the portfolio did with the job.

    `position` is the job's place in this member's queue order, counted from 0; None when the cycle did not get to it
    (behind the queue depth, or no node had room left). `nodes` is None when it was not placed; then `tried` has one
    entry per alternative. `best` are the nodes of the alternative that was taken, with the heuristic's scores.
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
    """The whole answer for one job: the winner of the cycle, and the view of each member in portfolio order.

    `own_heuristic` is the job's own choice, used in every member's schedule. `reason` is the plan's own sentence.
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

    `members` are those that competed; `cycle` gives each one's cycle, not yet run.

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
    turn: Step | None = None
    tried: tuple[AlternativeTried, ...] = ()
    for step in cycle.steps():
        jobs_matched += step.match is not None
        if step.job.id == job.id:
            turn = step
            if step.match is None:
                tried = _tried(cycle, job)
    match = turn.match if turn else None
    if turn is None:  # what there was after the last job that had a turn
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


def _watch(cycle: Cycle, job: Job) -> Watched:
    """Have the cycle remember how the job's nodes were scored."""
    choose = cycle.choose
    heuristic = choose(job)
    watched = (WatchedGrouping if isinstance(heuristic, Grouping) else Watched)(heuristic)
    cycle.choose = lambda each: watched if each.id == job.id else choose(each)
    return watched


def _tried(cycle: Cycle, job: Job) -> tuple[AlternativeTried, ...]:
    """Each alternative at the job's turn."""
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
