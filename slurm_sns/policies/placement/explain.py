"""Why a job was placed where it was, or why it waits: from what the pass wrote down, with the nodes as they were then.

Nothing in the answer is a guess, and nothing is planned again here: the record of a member's cycle says what was free
at the moment of the job's turn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Plan, Snapshot
from slurm_sns.node_lists import folded
from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.policies.placement.best_by_score import GroupHeuristic, one_group
from slurm_sns.policies.placement.cycle import Heuristic, Match
from slurm_sns.policies.placement.job_size import wording
from slurm_sns.policies.placement.pass_record import MemberRecord, PassRecord
from slurm_sns.policies.placement.shortfall import FreeCapacity, nearest

NEAREST_SHOWN = 3
BEST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _View:
    """What one member of the portfolio did with the job, and what was missing if it did not place it."""

    row: Considered
    missing: tuple[str, ...]


def explain(
    snapshot: Snapshot, plan: Plan, job_id: int, record: PassRecord, heuristic: Callable[[str, Job], Heuristic]
) -> Explanation:
    """What the pass on this snapshot, which gave `plan` and wrote `record`, did with the job.

    `heuristic` is the one that a member uses for a job.

    Raises:
        BadInput: the job is not among the snapshot's waiting jobs.
    """
    job = next((job for job in snapshot.waiting if job.id == job_id), None)
    if job is None:
        raise BadInput(f"job {job_id} is not among the {len(snapshot.waiting)} waiting jobs of this snapshot")
    chosen = plan.report.chosen
    concerned = _Concerned(record, job)
    views = [concerned.by(name, of, heuristic(name, job)) for name, of in record.members.items()]
    summary = [f"In that cycle {len(snapshot.waiting)} jobs waited; {chosen} matched the most and was dispatched."]
    if job.heuristic:
        summary.append(f"The job has a heuristic of its own, {job.heuristic}: every schedule uses it.")
    missing = next((each.missing for each in views if each.row.name == chosen), ())
    return Explanation(tuple(summary), "heuristic", tuple(each.row for each in views), missing)


class _Concerned:
    """What concerns one job in the members' cycles."""

    def __init__(self, record: PassRecord, job: Job) -> None:
        self._record, self._job, self._names = record, job, record.node_arrays.names
        self._place = record.place_of(job.id)

    def by(self, name: str, of: MemberRecord, heuristic: Heuristic) -> _View:
        """What this member did with it."""
        record, job = self._record, self._job
        turn = None if self._place is None else of.turn_of(self._place)
        figures = {"jobs matched": of.matched, "place in queue": "not reached" if turn is None else turn + 1}
        if turn is None:  # behind the queue depth, or no node had room left: the nodes at the end of the cycle
            missing = _missing(FreeCapacity(record.moment(of)), job)
            return _View(Considered(name, "finds no nodes", "", figures), tuple(missing))
        before = of.entries_before(turn)
        entry = next((each for each in record.entries(of, before, before + 1) if each.job.id == job.id), None)
        nodes = "" if entry is None else folded(self._names[node] for node in entry.nodes)
        if isinstance(entry, Match):
            best = _best(FreeCapacity(record.moment(of, before)), entry.alternative, job, heuristic)
            return _View(Considered(name, f"on {nodes}", best, figures), ())
        outcome = f"finds no nodes; capacity withheld on {nodes}" if entry else "finds no nodes"
        after = FreeCapacity(record.moment(of, before + (entry is not None)), observed=job.id)
        return _View(Considered(name, outcome, "", figures), tuple(_missing(after, job)))


def _best(moment: FreeCapacity, alternative: Alternative, job: Job, heuristic: Heuristic) -> str:
    """The nodes that the heuristic scored best, with their scores; on a tie in the machine list's order."""
    arrays = moment.node_arrays
    region = arrays.regions.find(moment.fitting(alternative, job), alternative.nodes)
    if region is None:
        return ""
    candidates = region.equal
    if isinstance(heuristic, GroupHeuristic):
        candidates = one_group(moment.free, candidates, alternative.nodes - len(region.lighter))
    scores = heuristic(arrays.capacity, moment.free, candidates, alternative.demand)
    order = np.argsort(scores, kind="stable")[:BEST_SHOWN]
    shown = ", ".join(f"{arrays.names[candidates[at]]} {float(scores[at]):.6g}" for at in order)
    return f"best nodes (smallest score): {shown}"


def _missing(moment: FreeCapacity, job: Job) -> Iterator[str]:
    """How each alternative fits on the nodes as they were at the job's turn, and what the nearest nodes lacked."""
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
