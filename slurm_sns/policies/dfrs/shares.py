"""The policy of a partition whose jobs share cores: GREEDY-PMTN on a real Slurm, with what cannot be real left out.

Each part of a job is what Slurm gives it on one node, so parts lie on different nodes. A part goes to the node with the
lowest load, the cores needed there over the node's, among those that have its memory and at most `most_to_a_core` jobs
to a core afterwards. Newcomers come first, in queue order; then paused jobs, those with the highest priority first.

For a newcomer that finds no place, jobs that may restart are paused: those that write checkpoints by the paper's
priority, lowest first; then the others, those first that lose the least work. Then those are spared, last ones first,
whose nodes still have room. A pause is a requeue: memory is free only when the job has left. Until then the newcomer
waits, and nobody else gets its place.

An over-aged job that finds no place keeps the nodes that it may use: nobody behind it starts there.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A. Ours: different nodes for different parts,
jobs to a core, who may be paused, the order of least loss, over-aged jobs. No job is moved.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from slurm_sns.model import ActiveJob, Action, Alternative, Job, Node, Plan, Reason, Requeue, Snapshot, Start, WaitKind
from slurm_sns.policies.base import no_explanation, own_geometry

#: Shorter flow times count as this much, as in the bounded stretch.
SHORTEST_FLOW_S = 30.0


class Shares:
    """The policy. `pauses`: newcomers may have jobs paused."""

    alternatives = staticmethod(own_geometry)
    explain = staticmethod(no_explanation)

    def __init__(self, most_to_a_core: int = 2, *, pauses: bool = False) -> None:
        self._most_to_a_core, self._pauses = most_to_a_core, pauses

    def plan(self, snapshot: Snapshot) -> Plan:
        """Which waiting jobs start, and which jobs are paused for them. O(jobs * nodes * log nodes)."""
        room = _Room(snapshot, self._most_to_a_core)
        paused: dict[int, int] = {}
        actions: list[Action] = []
        waiting: dict[int, str] = {}
        for job in _in_turn(snapshot):
            nodes = room.place(job)
            if nodes:
                actions.append(Start(job.id, nodes, job.alternatives[0], room.words(nodes), room.part(nodes)))
                continue
            victims = room.make_room(job, snapshot, but=paused) if self._pauses and not job.virtual_s else None
            if victims is None:
                waiting[job.id] = room.why_not(job)
                if job.over_aged:
                    room.close(job)
                continue
            paused.update((victim.id, job.id) for victim in victims)
            waiting[job.id] = _waits_for(victims)
        for active in snapshot.active:
            if active.id in paused:
                actions.append(Requeue(active.id, active.pool, f"paused: its memory is needed for job {paused[active.id]}"))
        return Plan(tuple(actions), waiting)


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

    return sorted((job for job in active if job.may_restart), key=turn)


class _NodeRoom:
    """What is left on a node while a plan is made: memory in MiB, and the cores that jobs need there."""

    def __init__(self, node: Node, at: int) -> None:
        self.name, self.cores, self.memory_mb = node.name, node.capacity.cores, node.free.memory_mb
        self.turn = (node.weight, at)
        self.needed, self.jobs = 0, 0
        self.is_ready = True
        self.is_closed = False

    def add(self, cores: int, memory_mb: int) -> None:
        self.needed, self.memory_mb, self.jobs = self.needed + cores, self.memory_mb - memory_mb, self.jobs + 1

    def remove(self, cores: int, memory_mb: int) -> None:
        self.needed, self.memory_mb, self.jobs = self.needed - cores, self.memory_mb + memory_mb, self.jobs - 1


class _Room:
    """The nodes while a plan is made. A node on which a job is completing has room, but nothing starts there yet."""

    def __init__(self, snapshot: Snapshot, most_to_a_core: int) -> None:
        self._most = most_to_a_core
        self._nodes = {node.name: _NodeRoom(node, at) for at, node in enumerate(snapshot.nodes)}
        for job in snapshot.active:
            for node in self._of(job.nodes):
                node.needed, node.jobs = node.needed + job.demand.cores, node.jobs + 1
        for each in snapshot.nodes:
            if each.name in snapshot.completing:  # all of it counts as taken
                node = self._nodes[each.name]
                held = (job.demand.memory_mb for job in snapshot.active if each.name in job.nodes)
                node.is_ready, node.memory_mb = False, each.capacity.memory_mb - sum(held)

    def _of(self, names: Iterable[str]) -> list[_NodeRoom]:
        return [self._nodes[name] for name in names if name in self._nodes]

    def place(self, job: Job) -> tuple[str, ...]:
        """Take room for the job on nodes where it may start now; empty, and nothing changes, if there is none."""
        return self._place(job, only_ready=True)

    def _place(self, job: Job, *, only_ready: bool) -> tuple[str, ...]:
        wanted = job.alternatives[0]
        fitting = [node for node in self._allowed(job) if self._fits(node, wanted) and (node.is_ready or not only_ready)]
        if len(fitting) < wanted.nodes:
            return ()
        fitting.sort(key=lambda node: (node.needed / max(1, node.cores), *node.turn))
        chosen = fitting[: wanted.nodes]
        for node in chosen:
            node.add(wanted.demand.cores, wanted.demand.memory_mb)
            node.is_closed = wanted.exclusive
        return tuple(node.name for node in sorted(chosen, key=lambda node: node.turn[1]))

    def _allowed(self, job: Job) -> list[_NodeRoom]:
        return [node for name, node in self._nodes.items() if job.allowed is None or name in job.allowed]

    def _fits(self, node: _NodeRoom, wanted: Alternative) -> bool:
        cores, memory_mb = wanted.demand.cores, wanted.demand.memory_mb
        has_cores = cores <= node.cores and node.needed + cores <= self._most * node.cores
        return has_cores and memory_mb <= node.memory_mb and not (node.is_closed or (wanted.exclusive and node.jobs))

    def make_room(self, job: Job, snapshot: Snapshot, *, but: Mapping[int, int]) -> list[ActiveJob] | None:
        """Take room for the job where others leave; the jobs to pause for it, and None if that gives it no place.

        None are to be paused where jobs are leaving already. The jobs in `but` are paused for others.
        """
        if self._place(job, only_ready=False):
            return []
        marked: list[ActiveJob] = []
        nodes: tuple[str, ...] = ()
        for victim in _to_pause(snapshot.active, float(snapshot.now_s)):
            there = self._of(victim.nodes)
            if victim.id in but or len(there) < len(victim.nodes) or not self._is_of_use(there, job):
                continue
            marked.append(victim)
            for node in there:
                node.remove(victim.demand.cores, victim.demand.memory_mb)
            if nodes := self._place(job, only_ready=False):
                break
        victims = [victim for victim in reversed(marked) if not (self._return(victim) if nodes else self._keep(victim))]
        return victims[::-1] if nodes else None

    def _is_of_use(self, there: Sequence[_NodeRoom], job: Job) -> bool:
        return any(job.allowed is None or node.name in job.allowed for node in there)

    def _keep(self, victim: ActiveJob) -> bool:
        for node in self._of(victim.nodes):
            node.add(victim.demand.cores, victim.demand.memory_mb)
        return True

    def _return(self, victim: ActiveJob) -> bool:
        """Spare the job if its nodes still have room for it."""
        whole = Alternative(len(victim.nodes), victim.demand)
        return all(self._fits(node, whole) for node in self._of(victim.nodes)) and self._keep(victim)

    def close(self, job: Job) -> None:
        """Let nobody else start on the nodes that this job may use."""
        for node in self._allowed(job):
            node.is_closed = True

    def part(self, nodes: Sequence[str]) -> float:
        """The yield of a job on these nodes."""
        return min(min(1.0, node.cores / node.needed) if node.needed else 1.0 for node in self._of(nodes))

    def words(self, nodes: Sequence[str]) -> str:
        """Why these nodes: how many jobs share them."""
        others = max(node.jobs for node in self._of(nodes)) - 1
        return "its nodes have the lowest load" if not others else f"shares cores with {others} other jobs at most"

    def why_not(self, job: Job) -> Reason:
        """Why the job finds no place, by the node that is nearest to having one."""
        wanted = job.alternatives[0]
        able = [node for node in self._allowed(job) if wanted.demand.cores <= node.cores]
        if not able:
            return Reason("none of its nodes has the cores that it asks for", WaitKind.TOO_LARGE)
        fitting = sum(self._fits(node, wanted) for node in able)
        if fitting:
            return Reason(f"{fitting} of {wanted.nodes} nodes have room for it now", WaitKind.NODES)
        closed = [node for node in able if not node.is_closed]
        if not closed:
            return Reason("its nodes are kept for a job that has waited for too long", WaitKind.WITHHELD)
        best = max(closed, key=lambda node: (node.memory_mb, -node.turn[1]))
        if best.memory_mb < wanted.demand.memory_mb:
            lacks = wanted.demand.memory_mb - max(0, best.memory_mb)
            return Reason(f"{best.name} lacks {lacks} MiB", WaitKind.RESOURCES, "memory")
        return Reason(f"its nodes have {self._most} jobs to each core", WaitKind.RESOURCES, "cores")


def _waits_for(victims: Sequence[ActiveJob]) -> Reason:
    if not victims:
        return Reason("waits until a job has left its nodes", WaitKind.NODES)
    named = ", ".join(str(victim.id) for victim in victims[:3]) + (f" and {len(victims) - 3} more" if victims[3:] else "")
    return Reason(f"job {named} {'is' if len(victims) == 1 else 'are'} being paused for it", WaitKind.NODES)
