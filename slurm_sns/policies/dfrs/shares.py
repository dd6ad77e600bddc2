"""The policy of a partition whose jobs share cores: GREEDY-PMTN on a real Slurm, with what cannot be real left out.

Each part of a job is what Slurm gives it on one node, so parts lie on different nodes. A part goes to the node with the
lowest load, the cores needed there over the node's, among those that have its memory and at most `most_to_a_core` jobs
to a core afterwards. Slurm keeps a node's jobs in so many rows, each job in one of them: three, three and two cores do
not share four, although they are eight in all. A node is left out where its jobs, largest first, each in the first row
with room, leave the new one none. Slurm's own order may leave less; then it does not start the job. Newcomers come
first, in queue order; then paused jobs, those with the highest priority first.

For a newcomer that finds no place, jobs that may restart are paused: those that write checkpoints by the paper's
priority, lowest first; then the others, those first that lose the least work. Then those are spared, last ones first,
whose nodes still have room. A pause is a requeue: memory is free only when the job has left. Until then the newcomer
waits, and nobody else gets its place.

An over-aged job that finds no place keeps the nodes that could hold it: nobody behind it starts there, as long as
capacity may be withheld for its owner.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A. Ours: different nodes for different parts,
jobs to a core, who may be paused, the order of least loss, over-aged jobs. No job is moved.
"""

from collections.abc import Iterable, Sequence
from math import inf

from slurm_sns.model import (
    Action,
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    Node,
    Plan,
    Reason,
    Report,
    Requeue,
    Resources,
    Snapshot,
    Start,
    WaitKind,
)
from slurm_sns.policies.base import no_explanation, own_geometry

#: Victims are looked for, for so many newcomers of a cycle: each pause takes several cycles.
MOST_SOUGHT = 10
#: Shorter flow times count as this much, as in the bounded stretch.
SHORTEST_FLOW_S = 30.0


class CoreSharing:
    """The policy. `pauses`: newcomers may have jobs paused."""

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)

    def __init__(self, most_to_a_core: int = 2, *, pauses: bool = False) -> None:
        self._most_to_a_core, self._pauses = most_to_a_core, pauses

    def plan(self, snapshot: Snapshot) -> Plan:
        """Which waiting jobs start, and which jobs are paused for them.

        O(kinds of jobs that differ in demand or nodes * nodes * log nodes, and jobs * log jobs); for `MOST_SOUGHT`
        newcomers besides, O(jobs that may be paused + nodes).
        """
        room, now_s = _Room(snapshot, self._most_to_a_core), float(snapshot.now_s)
        victims = _to_pause(snapshot.active, now_s) if self._pauses else []
        sought = 0
        paused: dict[int, int] = {}
        actions: list[Action] = []
        waiting: dict[int, str] = {}
        withheld: list[int] = []
        without_place: dict[tuple[Alternative, frozenset[str] | None], Reason] = {}  # what is free now never grows
        for job in _in_turn(snapshot):
            kind = job.alternatives[0], job.allowed
            nodes = () if kind in without_place else room.place(job)
            if nodes:
                actions.append(Start(job.id, nodes, job.alternatives[0], room.words(nodes)))
                continue
            if kind not in without_place:
                without_place[kind] = room.why_not(job)
            waiting[job.id] = without_place[kind]
            if victims and not job.virtual_s and sought < MOST_SOUGHT:
                sought += 1
                found = room.make_room(job, [victim for victim in victims if victim.id not in paused])
                if found is not None:
                    paused.update((victim.id, job.id) for victim in found)
                    waiting[job.id] = _waits_for(found)
                    continue
            if job.over_aged and job.withholds and room.close(job):
                withheld.append(job.id)
                without_place.clear()  # their reasons are others now
        actions += [
            Requeue(active.id, active.pool, f"paused: its memory is needed for job {paused[active.id]}")
            for active in snapshot.active
            if active.id in paused
        ]
        return Plan(tuple(actions), waiting, report=Report(withheld_for=tuple(withheld)))


def priority(submit_s: float, virtual_s: float, now_s: float) -> float:
    """The paper's priority of a job; infinite before it has made progress."""
    return max(SHORTEST_FLOW_S, now_s - submit_s) / virtual_s**2 if virtual_s > 0 else inf


def lost_s(job: ActiveJob, now_s: float) -> float:
    """How much of its run a running job loses at most if it is paused now, in seconds."""
    ran_s = max(0.0, now_s - float(job.since_s))
    return ran_s if job.checkpoint_s is None else min(ran_s, float(job.checkpoint_s))


def _in_turn(snapshot: Snapshot) -> list[Job]:
    """Newcomers in queue order, then paused jobs by priority; over-aged ones before all."""
    now_s = float(snapshot.now_s)

    def turn(job: Job) -> tuple[bool, float]:
        return not job.over_aged, -priority(float(job.submit_s), float(job.virtual_s), now_s)

    return sorted(snapshot.waiting, key=turn)


def _to_pause(active: Iterable[ActiveJob], now_s: float) -> list[ActiveJob]:
    """The jobs that may be paused, in the order in which they are."""

    def turn(job: ActiveJob) -> tuple[float, ...]:
        rank = priority(float(job.submit_s), float(job.virtual_s), now_s)
        if job.checkpoint_s is not None:
            return 0, rank, job.id
        return 1, lost_s(job, now_s) * job.demand.cores * len(job.nodes), rank, job.id

    return sorted((job for job in active if job.may_restart and job.state is ActiveState.RUNNING), key=turn)


class _Left:
    """What is left on a node: memory in MiB, and the cores that each of its jobs needs there, `needed` in all."""

    def __init__(self, memory_mb: int) -> None:
        self.memory_mb, self.needed, self.jobs = memory_mb, 0, list[int]()

    def add(self, demand: Resources) -> None:
        self.needed, self.memory_mb = self.needed + demand.cores, self.memory_mb - demand.memory_mb
        self.jobs.append(demand.cores)

    def remove(self, demand: Resources) -> None:
        self.needed, self.memory_mb = self.needed - demand.cores, self.memory_mb + demand.memory_mb
        self.jobs.remove(demand.cores)

    def has_row(self, cores: int, rows: int, of_cores: int) -> bool:
        """Whether `rows` rows of `of_cores` cores hold all jobs and one that needs `cores`."""
        if self.needed + cores > rows * of_cores:
            return False
        if self.needed <= rows * (of_cores - cores):  # however the others lie, one row has room
            return True
        left = [of_cores] * rows
        for each in sorted([*self.jobs, cores], reverse=True):
            row = next((row for row, room in enumerate(left) if room >= each), None)
            if row is None:
                return False
            left[row] -= each
        return True


class _NodeRoom:
    """A node while a plan is made: what is left `now`, and what is left when all that leave have left.

    What jobs are to start on later, when others have left, is gone from the second only.
    """

    def __init__(self, node: Node, at: int, *, is_ready: bool, held_mb: int) -> None:
        self.name, self.cores, self.turn = node.name, node.capacity.cores, (node.weight, at)
        self.has_mb = node.capacity.memory_mb
        self.now = _Left(node.free.memory_mb)
        self.after = _Left(node.free.memory_mb if is_ready else node.capacity.memory_mb - held_mb)
        self.is_ready = is_ready
        self.is_closed = False


class _Room:
    """The nodes while a plan is made. Nothing starts now on a node on which a job is completing."""

    def __init__(self, snapshot: Snapshot, most_to_a_core: int) -> None:
        self._most = most_to_a_core
        held: dict[str, int] = {}
        for job in snapshot.active:
            for name in job.nodes:
                held[name] = held.get(name, 0) + job.demand.memory_mb
        self._nodes = {
            node.name: _NodeRoom(
                node, at, is_ready=node.name not in snapshot.completing, held_mb=held.get(node.name, 0)
            )
            for at, node in enumerate(snapshot.nodes)
        }
        for job in snapshot.active:
            cores = job.demand._replace(memory_mb=0)  # the memory is not among what is free
            for node in self._of(job.nodes):
                node.now.add(cores)
                node.after.add(cores)

    def _of(self, names: Iterable[str]) -> list[_NodeRoom]:
        return [self._nodes[name] for name in names if name in self._nodes]

    def place(self, job: Job) -> tuple[str, ...]:
        """Take room for the job on nodes where it may start now; empty, and nothing changes, if there is none."""
        return self._place(job, only_ready=True)

    def _place(self, job: Job, *, only_ready: bool) -> tuple[str, ...]:
        wanted = job.alternatives[0]
        fitting = [node for node in self._allowed(job) if self._fits(node, wanted, only_ready=only_ready)]
        if len(fitting) < wanted.nodes:
            return ()
        fitting.sort(key=lambda node: (node.after.needed / max(1, node.cores), *node.turn))
        chosen = fitting[: wanted.nodes]
        for node in chosen:
            node.after.add(wanted.demand)
            if only_ready:
                node.now.add(wanted.demand)
            node.is_closed = wanted.exclusive
        return tuple(node.name for node in sorted(chosen, key=lambda node: node.turn[1]))

    def _allowed(self, job: Job) -> list[_NodeRoom]:
        return [node for name, node in self._nodes.items() if job.allowed is None or name in job.allowed]

    def _fits(self, node: _NodeRoom, wanted: Alternative, *, only_ready: bool = False) -> bool:
        if node.is_closed or (only_ready and not node.is_ready) or wanted.demand.cores > node.cores:
            return False
        left = (node.now, node.after) if only_ready else (node.after,)
        return all(self._holds(node, each, wanted) for each in left)

    def _holds(self, node: _NodeRoom, left: _Left, wanted: Alternative) -> bool:
        if wanted.demand.memory_mb > left.memory_mb or (wanted.exclusive and left.jobs):
            return False
        return left.has_row(wanted.demand.cores, self._most, node.cores)

    def make_room(self, job: Job, victims: Iterable[ActiveJob]) -> list[ActiveJob] | None:
        """Take room for the job where others leave; the jobs to pause for it, and None if that gives it no place.

        None are to be paused where jobs are leaving already. `victims` may be paused, in this order.
        """
        if self._place(job, only_ready=False):
            return []
        wanted = job.alternatives[0]
        victims = [victim for victim in victims if all(name in self._nodes for name in victim.nodes)]
        able = self._able(job, victims)
        if len(able) < wanted.nodes:
            return None
        fitting = {name for name in able if self._fits(self._nodes[name], wanted)}
        marked: list[ActiveJob] = []
        for victim in victims:
            if able.isdisjoint(victim.nodes):
                continue
            marked.append(victim)
            for node in self._of(victim.nodes):
                node.after.remove(victim.demand)
                if node.name in able and self._fits(node, wanted):
                    fitting.add(node.name)
            if len(fitting) >= wanted.nodes:
                break
        nodes = self._place(job, only_ready=False)
        left = [victim for victim in reversed(marked) if not (self._return(victim) if nodes else self._keep(victim))]
        return left[::-1] if nodes else None

    def _able(self, job: Job, victims: Iterable[ActiveJob]) -> set[str]:
        """The nodes that could hold a part of the job if all of these jobs left."""
        for victim in victims:
            for node in self._of(victim.nodes):
                node.after.remove(victim.demand)
        able = {node.name for node in self._allowed(job) if self._fits(node, job.alternatives[0])}
        for victim in victims:
            self._keep(victim)
        return able

    def _keep(self, victim: ActiveJob) -> bool:
        for node in self._of(victim.nodes):
            node.after.add(victim.demand)
        return True

    def _return(self, victim: ActiveJob) -> bool:
        """Spare the job if its nodes still have room for it."""
        whole = Alternative(len(victim.nodes), victim.demand)
        return all(self._fits(node, whole) for node in self._of(victim.nodes)) and self._keep(victim)

    def close(self, job: Job) -> bool:
        """Let nobody else start on the nodes that this job may use; False if they are too few to hold it ever."""
        wanted = job.alternatives[0]
        able = [
            node
            for node in self._allowed(job)
            if wanted.demand.cores <= node.cores and wanted.demand.memory_mb <= node.has_mb
        ]
        if len(able) < wanted.nodes:
            return False
        for node in able:
            node.is_closed = True
        return True

    def words(self, nodes: Sequence[str]) -> str:
        """Why these nodes: how many jobs share them."""
        others = max(len(node.now.jobs) for node in self._of(nodes)) - 1
        return "its nodes have the lowest load" if not others else f"at most {others} more on one of its nodes"

    def why_not(self, job: Job) -> Reason:
        """Why the job finds no place, by the node that is nearest to having one."""
        wanted = job.alternatives[0]
        able = [node for node in self._allowed(job) if wanted.demand.cores <= node.cores]
        if not able:
            return Reason("none of its nodes has the cores that it asks for", WaitKind.TOO_LARGE)
        fitting = sum(self._fits(node, wanted, only_ready=True) for node in able)
        if fitting:
            return Reason(f"{fitting} of {wanted.nodes} nodes have room for it now", WaitKind.NODES)
        left = [node for node in able if not node.is_closed]
        if not left:
            return Reason("its nodes are kept for a job that has waited for too long", WaitKind.WITHHELD)
        best = max(left, key=lambda node: (min(node.now.memory_mb, node.after.memory_mb), -node.turn[1]))
        left_mb = min(best.now.memory_mb, best.after.memory_mb)
        if left_mb < wanted.demand.memory_mb:
            lacks = wanted.demand.memory_mb - max(0, left_mb)
            return Reason(f"{best.name} lacks {lacks} MiB", WaitKind.RESOURCES, "memory")
        cores = f"{wanted.demand.cores} {'core' if wanted.demand.cores == 1 else 'cores'}"
        return Reason(f"no node has {cores} for it with {self._most} jobs to a core", WaitKind.RESOURCES, "cores")


def _waits_for(victims: Sequence[ActiveJob]) -> Reason:
    if not victims:
        return Reason("waits until a job has left its nodes", WaitKind.NODES)
    named = ", ".join(str(victim.id) for victim in victims[:3]) + (
        f" and {len(victims) - 3} more" if victims[3:] else ""
    )
    return Reason(f"job {named} {'is' if len(victims) == 1 else 'are'} being paused for it", WaitKind.NODES)
