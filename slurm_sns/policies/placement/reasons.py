"""Why a job starts where it does, or why it waits: a short reason for each job of a plan, and the explanation of one.

All of it follows from what the pass wrote down: nothing is a guess, and nothing is planned again. The record of a
member's cycle says what was free at the moment of a job's turn. Free capacity only shrinks in a cycle, so what did not
fit at a job's turn does not fit at the end of the cycle either: reasons are computed there, once for each kind of job.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import BadInput
from slurm_sns.model import GPU, Alternative, Gpus, Job, Plan, Reason, Resources, Seconds, Snapshot, Start, WaitKind
from slurm_sns.node_lists import folded
from slurm_sns.policies.base import Considered, Explanation
from slurm_sns.policies.placement.heuristics import Heuristic, one_group
from slurm_sns.policies.placement.kinds_of_jobs import OncePerKind
from slurm_sns.policies.placement.node_arrays import GPUS, Amounts, Indices, ever_holding, holding, roomy
from slurm_sns.policies.placement.pass_record import Match, MemberRecord, PassRecord, Schedule, Withheld

NEAREST_SHOWN = 3
#: To find the nearest node takes 0.1 ms for each kind of job on 10,000 nodes: it is named to the first kinds in the
#: queue, and to a job of any other kind when somebody asks (`explain`). A queue has seldom so many kinds.
MOST_NEAREST = 500
BEST_SHOWN = 4
#: The resources of a node as reasons name them, in the order of `Resources`.
RESOURCES = ("cores", "memory", "ways", "bandwidth", "CLOSIDs", "GPUs")


class FreeCapacity:
    """What is free on all nodes at one moment of a cycle, with and without the withheld capacity.

    `free` does not include withheld capacity; `free_if_none_withheld` does. Capacity that is withheld for the job
    `observed` counts as free in both: it is there for this job, and was withheld because it is not enough. A place that
    is promised from a later moment on counts as free, too: `promised` says in how many seconds it is needed, and
    `promised_nodes` where such places are.
    """

    def __init__(
        self, record: PassRecord, of: MemberRecord, count: int | None = None, observed: int | None = None
    ) -> None:
        """After so many entries of the member's cycle, None: after all. `observed`: the job to be explained."""
        self.node_arrays = record.node_arrays
        self.free = record.left(of, count)
        self.free_if_none_withheld = self.free.copy()
        self.withheld_for: dict[int, tuple[str, ...]] = {}
        self.promised: dict[int, Seconds] = {}
        self.promised_nodes = np.empty(0, np.int64)
        for job, alternative, nodes, start_s in record.withheld(of, count):
            if start_s is None:
                took = self.node_arrays.taken(alternative, nodes)
                self.free_if_none_withheld[:, nodes] += took
                if job.id == observed:
                    self.free[:, nodes] += took
            elif job.id != observed:
                self.promised[job.id] = start_s - record.now_s
                self.promised_nodes = np.union1d(self.promised_nodes, nodes)
            if job.id != observed:
                self.withheld_for[job.id] = tuple(self.node_arrays.names[node] for node in nodes)

    def permitted(self, job: Job) -> Indices:
        """The nodes the job may use."""
        mask = self.node_arrays.allows(job.allowed)
        return np.arange(len(self.node_arrays.names)) if mask is None else np.flatnonzero(mask)

    def large_enough(self, alternative: Alternative, job: Job) -> int:
        """The number of allowed nodes that hold the alternative when they are empty."""
        return int(np.count_nonzero(ever_holding(self.node_arrays, alternative, job.allowed)))

    def fitting(self, alternative: Alternative, job: Job, *, if_none_withheld: bool = False) -> Indices:
        """The allowed nodes on which the alternative fits, and which have room for the smallest job."""
        free = self.free_if_none_withheld if if_none_withheld else self.free
        mask = holding(free, self.node_arrays.demand(alternative.demand)) & roomy(free)
        if alternative.exclusive:
            mask &= (free == self.node_arrays.capacity).all(axis=0)
        permitted = self.permitted(job)
        return permitted[mask[permitted]]

    def apart(self, alternative: Alternative, fitting: Indices) -> str:
        """That no switch joins enough of the nodes on which the alternative fits; empty where one does."""
        most = self.node_arrays.regions.most_together(fitting)
        is_apart = 1 < alternative.nodes <= len(fitting) and most < alternative.nodes
        return f"; no switch joins more than {most} of them" if is_apart else ""

    def in_the_way(self, alternative: Alternative, job: Job) -> tuple[int, ...]:
        """The jobs for which capacity is withheld, if the alternative would fit without that; otherwise empty."""
        if not self.withheld_for:
            return ()
        fitting = self.fitting(alternative, job, if_none_withheld=True)
        is_enough = len(fitting) >= alternative.nodes and not self.apart(alternative, fitting)
        return tuple(self.withheld_for) if is_enough else ()

    def from_when(self, jobs: Iterable[int]) -> str:
        """From when on capacity is withheld for these jobs, empty for from now on: a job that ends before may pass."""
        starts_s = [self.promised[job_id] for job_id in jobs if job_id in self.promised]
        return f", which starts in {hms(min(starts_s))} if jobs end at their limits" if starts_s else ""

    def nearest(self, columns: Indices, alternative: Alternative, count: int) -> list[Reason]:
        """The `count` nodes, among these columns, that come nearest to fitting, and what they lack, the nearest first.

        Fewer missing resources are nearer, then a smaller sum of missing amounts as shares of the node's capacity. GPUs
        are one resource, whatever their types.
        """
        if not len(columns):
            return []
        free, capacity, names = self.free, self.node_arrays.capacity, self.node_arrays.names
        among = slice(None) if len(columns) == len(names) else columns  # a slice of all nodes needs no copy
        kinds, shares = np.zeros(len(columns), np.int64), np.zeros(len(columns))
        lacks_gpus = np.zeros(len(columns), np.bool_)
        demand = self.node_arrays.amounts([alternative.demand])
        for row, needed in enumerate(demand[:, 0].tolist()):
            if needed > 0:
                lacks = np.maximum(needed - np.maximum(free[row, among], 0), 0)
                if row < GPUS:
                    kinds += lacks > 0
                else:
                    lacks_gpus |= lacks > 0
                shares += lacks / np.maximum(capacity[row, among], 1)
        kinds += lacks_gpus
        not_empty = np.zeros(len(columns), np.bool_)
        if alternative.exclusive:
            not_empty = (free[:, among] != capacity[:, among]).any(axis=0)
            kinds += not_empty
        first = _first(kinds, shares, count)
        left = np.maximum(free[:, columns[first]], 0)
        lacking = np.where(demand > 0, np.maximum(demand - left, 0), 0).T.tolist()
        nowhere = [each for each in alternative.demand.gpus if each[0] not in self.node_arrays.gpu_names]
        return [
            _lack(names[columns[at]], self.node_arrays.resources(lacks), nowhere, not_empty=bool(not_empty[at]))
            for at, lacks in zip(first.tolist(), lacking, strict=True)
        ]


def starts(schedule: Schedule) -> tuple[Start, ...]:
    """The start actions for the matches of the chosen schedule."""
    count, names = schedule.matched[schedule.chosen], schedule.record.node_arrays.names
    by = f"{schedule.chosen}, which matched {count} {_plural('job', count)}"
    if len(schedule.matched) > 1:
        by += f" (the most of {len(schedule.matched)} heuristics)"
    return tuple(
        Start(
            job_id=match.job.id,
            nodes=tuple(names[node] for node in match.nodes),
            alternative=match.alternative,
            reason=f"own heuristic {match.job.heuristic} in {by}" if match.job.heuristic else f"by {by}",
        )
        for match in schedule.matches
    )


def reasons_to_wait(schedule: Schedule, waiting: Iterable[Job], queue_depth: int) -> dict[int, str]:
    """Job id -> reason for every waiting job without a match.

    A cycle that has looked at fewer than `queue_depth` jobs ended there because no node had room left, or no job was
    left: then the jobs that it did not reach wait for what the nodes lack, wherever they are in the queue.
    """
    placed = {match.job.id for match in schedule.matches}
    left = [job for job in waiting if job.id not in placed]
    if not left:
        return {}
    record, of = schedule.record, schedule.record.members[schedule.chosen]
    looked_at = {record.jobs[at].id for at in of.order.tolist()}
    has_seen_all = len(looked_at) < queue_depth
    after = FreeCapacity(record, of)
    numbers = count()
    reason = OncePerKind(lambda job: _reason(after, job, names_nearest=next(numbers) < MOST_NEAREST)).of
    reasons: dict[int, str] = {}
    behind = Reason(f"behind the first {queue_depth} jobs of the queue (queue_depth)", WaitKind.QUEUE_DEPTH)
    for job in left:
        if not has_seen_all and job.id not in looked_at:
            reasons[job.id] = behind
        elif job.id in after.withheld_for:
            on = _some(after.withheld_for[job.id])
            until = "capacity is withheld for it"
            if job.id in after.promised:
                until = f"in {hms(after.promised[job.id])}, if jobs end at their limits, it starts"
            reasons[job.id] = Reason(f"finds no place yet; {until} on {on}", WaitKind.NEXT, on)
        else:
            reasons[job.id] = reason(job)
    return reasons


def _reason(after: FreeCapacity, job: Job, *, names_nearest: bool) -> Reason:
    """Why jobs of this kind found no place: the reason for the first alternative that the nodes could ever hold."""
    possible = [each for each in job.alternatives if after.large_enough(each, job) >= each.nodes]
    if not possible:
        large = after.large_enough(job.alternatives[0], job)
        of = f"of the nodes that can be planned on now {large} {'is' if large == 1 else 'are'} large enough"
        return Reason(f"needs {wording(job.alternatives[0])}; {of}", WaitKind.TOO_LARGE)
    for alternative in possible:
        holders = after.in_the_way(alternative, job)
        if holders:
            jobs = f"job {_some([str(job_id) for job_id in holders])}"
            on = _some(node for job_id in holders for node in after.withheld_for[job_id])
            why = f"would fit, but capacity is withheld for {jobs}{after.from_when(holders)}"
            return Reason(why, WaitKind.WITHHELD, f"{jobs} on {on}")
    alternative = possible[0]
    if alternative.nodes > 1:
        fitting = after.fitting(alternative, job)
        apart = after.apart(alternative, fitting)
        why = f"needs {wording(alternative)}; nodes that fit: {len(fitting)}{apart}"
        return Reason(why, WaitKind.NODES, "one switch" if apart else "")
    demand = wording(replace(alternative, exclusive=False))
    state = f"is empty and has {demand}" if alternative.exclusive else f"has {demand} free"
    if not names_nearest:
        return Reason(f"no allowed node {state}", WaitKind.RESOURCES, "room on a node")
    lack = after.nearest(after.permitted(job), alternative, 1)[0]
    return Reason(f"no allowed node {state}; nearest: {lack}", lack.kind, lack.about)


def _some(names: Iterable[str], limit: int = 3) -> str:
    """The first few names; a job may stretch over thousands of nodes."""
    listed = list(names)
    shown = ", ".join(listed[:limit])
    return shown if len(listed) <= limit else f"{shown} and {len(listed) - limit} more"


def kept_nodes(plan: Plan) -> dict[int, tuple[str, ...]]:
    """The nodes on which the plan withholds capacity for a waiting job, by job id; none for a plan without a record."""
    record = plan.record
    if not isinstance(record, PassRecord) or plan.report.chosen not in record.members:
        return {}
    return FreeCapacity(record, record.members[plan.report.chosen]).withheld_for


def idle_withheld_cores(plan: Plan) -> int | None:
    """The cores that are free after this plan and withheld for a waiting job; None for a plan without a record."""
    record = plan.record
    if not isinstance(record, PassRecord):
        return None
    if not plan.report.withheld_for:
        return 0
    after = FreeCapacity(record, record.members[plan.report.chosen])
    return int((np.maximum(after.free_if_none_withheld[0], 0) - np.maximum(after.free[0], 0)).sum())


def explain(
    snapshot: Snapshot,
    plan: Plan,
    job_id: int,
    record: PassRecord,
    heuristic: Callable[[str, Job], Heuristic],
    *,
    adaptive_depth: int | None = None,
) -> Explanation:
    """What the pass on this snapshot, which gave `plan` and wrote `record`, did with the job.

    `heuristic` is the one that a member uses for a job. `adaptive_depth`: how many jobs a cycle looks at, if the order
    of alternatives is adaptive.

    Raises:
        BadInput: the job is not among the snapshot's waiting jobs.
    """
    job = next((job for job in snapshot.waiting if job.id == job_id), None)
    if job is None:
        raise BadInput(f"job {job_id} is not among the {len(snapshot.waiting)} waiting jobs of this snapshot")
    chosen = plan.report.chosen
    place = record.place_of(job_id)
    views = [_view(record, (job, place), name, heuristic(name, job)) for name in record.members]
    waited = f"{len(snapshot.waiting)} {_plural('job', len(snapshot.waiting))}"
    summary = [f"In that cycle {waited} waited; {chosen} matched the most and was dispatched."]
    if adaptive_depth is not None:
        order = _order(record, chosen, min(len(snapshot.waiting), adaptive_depth))
        summary.append(f"Alternatives were tried {order} (alternatives_order: adaptive).")
    if job.heuristic:
        summary.append(f"The job has a heuristic of its own, {job.heuristic}: every schedule uses it.")
    missing = next((missing for row, missing in views if row.name == chosen), ())
    return Explanation(tuple(summary), "heuristic", tuple(row for row, _ in views), missing)


def _order(record: PassRecord, chosen: str, whole: int) -> str:
    """Which order of alternatives ruled in the pass, and why; `whole`: of how many jobs the whole queue consists."""
    if record.best_first is not None:
        started = f"best first only {record.best_first} of the jobs would have started"
        return f"by slowdown times dominant share, the least first, because {started}"
    matched = record.members[chosen].matched
    if matched == whole:
        return "best first, because the whole queue starts so"
    why = "no job that was looked at has them in another order" if matched else "no job that was looked at can start"
    return f"best first, because {why}"


def _view(
    record: PassRecord, at: tuple[Job, int | None], member: str, heuristic: Heuristic
) -> tuple[Considered, tuple[str, ...]]:
    """What this member did with the job at this place of the record, and what was missing if it did not place it."""
    of, (job, place) = record.members[member], at
    turn = None if place is None else of.turn_of(place)
    figures = {"jobs matched": of.matched, "place in queue": "not reached" if turn is None else turn + 1}
    if turn is None:  # behind the queue depth, or no node had room left: the nodes at the end of the cycle
        return Considered(member, "finds no nodes", "", figures), tuple(_missing(FreeCapacity(record, of), job))
    before = of.entries_before(turn)
    entry = next((each for each in record.entries(of, slice(before, before + 1)) if each.job.id == job.id), None)
    nodes = "" if entry is None else folded(record.node_arrays.names[node] for node in entry.nodes)
    if isinstance(entry, Match):
        best = _best(FreeCapacity(record, of, before), entry.alternative, job, heuristic)
        return Considered(member, f"on {nodes}", best, figures), ()
    outcome = f"finds no nodes; capacity withheld on {nodes}" if entry else "finds no nodes"
    if isinstance(entry, Withheld) and entry.start_s is not None:
        outcome += f" from {hms(entry.start_s - record.now_s)} from now on"
    after = FreeCapacity(record, of, before + (entry is not None), observed=job.id)
    return Considered(member, outcome, "", figures), tuple(_missing(after, job))


def _best(moment: FreeCapacity, alternative: Alternative, job: Job, heuristic: Heuristic) -> str:
    """The nodes that the heuristic scored best, with their scores; on a tie in the machine list's order."""
    arrays = moment.node_arrays
    region = arrays.regions.find(moment.fitting(alternative, job), alternative.nodes)
    if region is None:
        return ""
    candidates = region.equal
    if heuristic.grouped:
        candidates = one_group(moment.free, candidates, alternative.nodes - len(region.lighter))
    scores = heuristic(arrays.capacity, moment.free, candidates, arrays.demand(alternative.demand))
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
        for lack in moment.nearest(unfit, alternative, NEAREST_SHOWN):
            yield f"  nearest: {lack}"
        for other in moment.in_the_way(alternative, job):
            yield f"  it would fit, but capacity is withheld for job {other}{moment.from_when([other])}"
        if moment.large_enough(alternative, job) < alternative.nodes:
            yield "  the nodes that can be planned on now are too small or too few for it, even empty"


def _first(kinds: Amounts, shares: NDArray[np.float64], count: int) -> Indices:
    """The first `count` columns by `kinds`, then by `shares`; on a tie the first in the machine list."""
    if count == 1:  # for one node there is no need to sort ten thousand
        fewest = np.flatnonzero(kinds == kinds.min())
        return fewest[[np.argmin(shares[fewest])]]
    return np.lexsort((shares, kinds))[:count]


def _lack(node: str, lacks: Resources, nowhere: Iterable[tuple[str, int]], *, not_empty: bool) -> Reason:
    """How much a node lacks of each resource, as in: c3 lacks 4 cores and 2000 MiB; and of GPUs that no node has."""
    closid = "CLOSID (each job with cache ways there has one)"
    lacks = lacks._replace(gpus=(*lacks.gpus, *nowhere))
    units = (_plural("core", lacks.cores), "MiB", "ways", "GB/s of bandwidth", closid)
    parts = [f"{amount} {unit}" for amount, unit in zip(lacks.all_but_gpus, units, strict=True) if amount > 0]
    parts += gpus_in_words(lacks.gpus)
    if parts:
        names = [name for amount, name in zip(lacks, RESOURCES, strict=True) if amount]  # no amount is negative
        return Reason(f"{node} lacks {' and '.join(parts)}", WaitKind.RESOURCES, " and ".join(names))
    if not_empty:
        return Reason(f"{node} is not empty", WaitKind.RESOURCES, "an empty node")
    return Reason(f"{node} has no room for even 1 core and 1024 MiB", WaitKind.RESOURCES, "cores or memory")


def wording(alternative: Alternative) -> str:
    """The size of an alternative in words, as in: 2 empty nodes with 4 cores and 8192 MiB each."""
    demand = alternative.demand
    parts = [f"{demand.cores} {_plural('core', demand.cores)}"]
    if demand.ways:
        parts.append(f"{demand.ways} {_plural('way', demand.ways)}")
    if demand.bandwidth_gbps:
        parts.append(f"{demand.bandwidth_gbps} GB/s")
    if demand.closids:
        parts.append(f"{demand.closids} {_plural('CLOSID', demand.closids)}")
    parts += gpus_in_words(demand.gpus)
    per_node = ", ".join(parts) + f" and {demand.memory_mb} MiB"
    if alternative.nodes == 1 and not alternative.exclusive:
        return per_node
    empty = "empty " if alternative.exclusive else ""
    return f"{alternative.nodes} {empty}{_plural('node', alternative.nodes)} with {per_node} each"


def gpus_in_words(gpus: Gpus) -> list[str]:
    """Numbers of GPUs in words, as in: 2 a100 GPUs, 1 GPU; the last are of any type."""
    counts = dict(gpus)
    any_type = counts.pop(GPU, 0)
    parts = [(count, f"{name.removeprefix(f'{GPU}:')} ") for name, count in counts.items()]
    parts.append((any_type - sum(counts.values()), ""))
    return [f"{count} {kind}{_plural('GPU', count)}" for count, kind in parts if count > 0]


def hms(seconds: Seconds) -> str:
    """A time span as Slurm writes it: 2:05:00, 3-00:00:00."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}" if days else f"{hour}:{minute:02}:{second:02}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"
