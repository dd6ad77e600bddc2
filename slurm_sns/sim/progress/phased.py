"""Progress under contention of programs with two phases, whose means over time are those of the profile.

In its *memory phase* a program moves (1 + size) times its bandwidth and loses (1 - size) times as much IPC by fewer
ways; in its *cache phase* it moves (1 - size) times its bandwidth and loses (1 + size) times as much. The two follow
each other from the job's start; a job has its own length of a phase and begins somewhere in its first one. A job that
is alone with all ways runs as long as without phases, whatever the size.

Time is cut into slots. In a slot phases are constant, and the jobs of a node run as fast as `contention` says of jobs
that are always in these phases.

Source: section 6.2 of Spread-n-Share (SC'19) names phases as a cause of broken alphas, without numbers: two phases,
their size and their length are our assumptions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from slurm_sns.model import Seconds
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, WAYS, NodeArrays
from slurm_sns.policies.profile import Run
from slurm_sns.policies.spread_n_share.scales import run_at
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contention import Occupant, SharedNode, speeds
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.trace import SHORTEST_RUN_S, half_up

SLOT_S = 5
#: A phase keeps at least this share of the best IPC, whatever it loses by fewer ways.
LEAST_KEPT = 0.05


@dataclass(frozen=True, slots=True)
class Phases:
    """How programs behave in phases.

    `size`, from 0 to 1: how far the phases are from the mean. `length_s`: the mean length of a phase; jobs differ from
    it by up to a half. `seed`: of the lengths and of where jobs begin.
    """

    size: float
    length_s: int
    seed: int


def in_phase(run: Run, size: float, *, is_memory_phase: bool) -> Run:
    """The run as if the program were always in this phase."""
    moves, loses = (1 + size, 1 - size) if is_memory_phase else (1 - size, 1 + size)
    kept = (max(1 - loses * (1 - ipc / run.full_ipc), LEAST_KEPT) for ipc in run.ipc)
    return replace(
        run,
        ipc=tuple(run.full_ipc * each for each in kept),
        bandwidth_gbps=tuple(moves * each for each in run.bandwidth_gbps),
    )


@dataclass(slots=True, eq=False)
class _Going:
    """A job with a profile: what is left of its work at `since_s`, and its two phases."""

    placed: PlacedRun
    phases: tuple[Occupant, Occupant]
    length: int
    first_slot: int
    left_s: float
    since_s: Seconds

    def phase(self, slot: int) -> int:
        """Which of the two phases it is in."""
        return (slot - self.first_slot) // self.length % 2


class _Node:
    """The jobs on one node, and their speeds by the phases that they are in."""

    def __init__(self, node: SharedNode) -> None:
        self.jobs: list[_Going] = []
        self._node = node
        self._speeds: dict[tuple[int, ...], dict[int, float]] = {}

    def put(self, jobs: list[_Going]) -> None:
        self.jobs = jobs
        self._speeds = {}

    def speed(self, job: _Going, slot: int) -> float:
        """The job's speed on this node in a slot."""
        phases = tuple(each.phase(slot) for each in self.jobs)
        known = self._speeds.get(phases)
        if known is None:
            occupants = tuple(each.phases[phase] for each, phase in zip(self.jobs, phases, strict=True))
            found = speeds(occupants, self._node)
            known = {id(each): speed for each, speed in zip(self.jobs, found, strict=True)}
            self._speeds[phases] = known
        return known[id(job)]


class Phased:
    """The progress of the jobs of one simulation."""

    def __init__(self, node_arrays: NodeArrays, model: AuthorsModel, phases: Phases, *, is_partitioned: bool) -> None:
        """Start without jobs; `is_partitioned` as in `Contended`."""
        self._model, self._phases = model, phases
        self._nodes = [
            _Node(SharedNode.of(int(ways), float(bandwidth), is_partitioned=is_partitioned))
            for ways, bandwidth in zip(node_arrays.capacity[WAYS], node_arrays.capacity[BANDWIDTH], strict=True)
        ]
        self._all_ways = int(node_arrays.capacity[WAYS].max())
        self._going: dict[int, _Going] = {}

    def start(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The job with its end, and the neighbours whose ends change."""
        job, alternative, now_s = placed.job, placed.alternative, placed.start_s
        work_s = self._model.seconds(job, alternative.scale)
        runs = self._model.runs.get(job.id)
        if not runs:
            return (replace(placed, end_s=now_s + max(half_up(work_s), SHORTEST_RUN_S)),)
        ways = self._all_ways if alternative.exclusive else alternative.demand.ways
        run, cores = run_at(runs, alternative.scale), alternative.demand.cores
        lots = np.random.default_rng([self._phases.seed, job.id])
        length = max(1, round(self._phases.length_s * lots.uniform(0.5, 1.5) / SLOT_S))
        both = [
            Occupant(in_phase(run, self._phases.size, is_memory_phase=memory), cores, ways) for memory in (True, False)
        ]
        first_slot = int(now_s // SLOT_S) - int(lots.integers(2 * length))
        mine = _Going(placed, (both[0], both[1]), length, first_slot, work_s, now_s)
        neighbours = self._neighbours(placed)
        self._advance(neighbours, now_s)
        self._going[job.id] = mine
        for node in placed.nodes.tolist():
            self._nodes[node].put([*self._nodes[node].jobs, mine])
        return self._timed_anew([*neighbours, mine], now_s)

    def finish(self, placed: PlacedRun) -> Iterable[PlacedRun]:
        """The remaining neighbours whose ends change."""
        mine = self._going.pop(placed.job.id, None)
        if mine is None:
            return ()
        neighbours = [each for each in self._neighbours(placed) if each is not mine]
        self._advance(neighbours, placed.end_s)
        for node in placed.nodes.tolist():
            self._nodes[node].put([each for each in self._nodes[node].jobs if each is not mine])
        return self._timed_anew(neighbours, placed.end_s)

    def _neighbours(self, placed: PlacedRun) -> list[_Going]:
        """The jobs on these nodes, each once."""
        return list({id(each): each for node in placed.nodes.tolist() for each in self._nodes[node].jobs}.values())

    def _advance(self, jobs: Iterable[_Going], now_s: Seconds) -> None:
        """Subtract the work that each job has done since it was last looked at."""
        for job in jobs:
            for begin_s, end_s, speed in self._slots(job):
                if begin_s >= now_s:
                    break
                job.left_s = max(0.0, job.left_s - speed * float(min(end_s, now_s) - begin_s))
            job.since_s = now_s

    def _timed_anew(self, jobs: Iterable[_Going], now_s: Seconds) -> list[PlacedRun]:
        """The jobs whose ends change, with their new ends."""
        changed = []
        for job in jobs:
            end_s = max(self._end_s(job), now_s, job.placed.start_s + SHORTEST_RUN_S)
            if end_s != job.placed.end_s:
                job.placed = replace(job.placed, end_s=end_s)
                changed.append(job.placed)
        return changed

    def _end_s(self, job: _Going) -> int:
        """When the job ends if its neighbours stay, in whole seconds."""
        left_s = job.left_s
        for begin_s, end_s, speed in self._slots(job):
            if left_s <= speed * (end_s - begin_s):
                return half_up(begin_s + left_s / speed)
            left_s -= speed * (end_s - begin_s)
        raise AssertionError

    def _slots(self, job: _Going) -> Iterator[tuple[float, float, float]]:
        """The slots from `since_s` on, without end: begin, end, and the job's speed on the slowest of its nodes."""
        begin_s = float(job.since_s)
        nodes = [self._nodes[node] for node in job.placed.nodes.tolist()]
        while True:
            slot = int(begin_s // SLOT_S)
            end_s = float((slot + 1) * SLOT_S)
            yield begin_s, end_s, min(node.speed(job, slot) for node in nodes)
            begin_s = end_s
