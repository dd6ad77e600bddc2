"""The event loop of the simulations: submits, finishes and cycles on one heap of (time, priority, sequence).

Times are whole seconds if those of the trace are; nothing here rounds, so that exact fractions stay exact. At one
moment finishes come first, then submits, then one cycle: at once, or at the next multiple of an interval. A cycle runs
only when a job was submitted or finished since the last one, or when the last one asked for another. A progress model
says when jobs end, and may change the ends of running jobs; the finish events of their old ends are then ignored.

Source: the heap as in SimPy's core.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.errors import SnsError
from slurm_sns.model import Alternative, Job, Seconds
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.run import Cycles, TraceRun
from slurm_sns.sim.trace import Trace, TraceArrays, TraceJob

FINISH, SUBMIT, CYCLE = range(3)


class CycleRecord(NamedTuple):
    """A cycle: how many jobs waited and started, the member that was chosen, and the members with the most matches."""

    time_s: Seconds
    waiting: int
    started: int
    chosen: str
    winners: tuple[str, ...]


@dataclass(frozen=True)
class SimulationOutcome:
    """Every job's placement, in the trace's order, and every cycle that ran."""

    placements: tuple[PlacedRun, ...]
    cycles: tuple[CycleRecord, ...]

    def as_run(self, trace: TraceArrays, members: Sequence[str] | None = None) -> TraceRun:
        """The same as arrays, of this trace; `members` are the portfolio in its order; None: those that appear.

        Each alternative in which some job ran is a kind of its own: a policy may make alternatives as it goes.
        """
        kinds: dict[Alternative, int] = {}
        kind = [kinds.setdefault(placed.alternative, len(kinds)) for placed in self.placements]
        counts = np.array([len(placed.nodes) for placed in self.placements], np.int64)
        several = np.where(counts > 1, counts, 0)
        first = np.cumsum(several) - several
        place = [
            int(begin) if len(placed.nodes) > 1 else int(placed.nodes[0])
            for begin, placed in zip(first, self.placements, strict=True)
        ]
        spread = [placed.nodes for placed in self.placements if len(placed.nodes) > 1]
        if members is None:
            members = list(dict.fromkeys(name for each in self.cycles for name in (*each.winners, each.chosen) if name))
        at = {member: number for number, member in enumerate(members)}
        rows = [
            (each.waiting, each.started, at.get(each.chosen, -1), sum(1 << at[name] for name in each.winners))
            for each in self.cycles
        ]
        return TraceRun(
            replace(
                trace,
                kind=np.array(kind, np.int32),
                kinds=[(each.nodes, each.demand.cores, each.demand.memory_mb, "") for each in kinds],
                given_choices=[(each,) for each in kinds],
                run_in=None,
            ),
            _moments([placed.start_s for placed in self.placements]),
            _moments([placed.end_s for placed in self.placements]),
            np.array(place, np.int64),
            spread=np.concatenate([np.zeros(0, np.int32), *spread]).astype(np.int32),
            choice=np.zeros(len(kind), np.int8),
            cycles=Cycles(_moments([each.time_s for each in self.cycles]), *np.array(rows, np.int64).reshape(-1, 4).T),
            members=members,
        )


def _moments(seconds: Sequence[Seconds]) -> NDArray[Any]:
    """Integers if all of them are whole seconds, floats otherwise."""
    exact = all(int(each) == each for each in seconds)
    return np.array([int(each) if exact else float(each) for each in seconds], np.int64 if exact else np.float64)


class EventLoop(ABC):
    """The replay of a trace; subclasses define what a cycle does and what jobs hold."""

    def __init__(self, trace: Trace, interval_s: int | None) -> None:
        """Cycles run at multiples of `interval_s`, or at the moment of each event if it is None."""
        self.trace = trace
        self.placements: dict[int, PlacedRun] = {}
        self._interval_s = interval_s
        self._cycles: list[CycleRecord] = []
        self._events: list[tuple[Seconds, int, int, TraceJob | PlacedRun | None]] = []
        self._sequence = 0
        self._next_submit = 0
        self._cycle_due_s: Seconds | None = None

    @property
    @abstractmethod
    def waiting(self) -> int:
        """The number of jobs that wait; it must be 0 when no events are left."""

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Add a job to the queue."""

    @abstractmethod
    def finish(self, placed: PlacedRun) -> None:
        """Free what the ended job held."""

    @abstractmethod
    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Run one scheduling pass and carry out its decisions."""

    def run(self, progress: Callable[[int], None] = lambda _started: None) -> SimulationOutcome:
        """Replay the whole trace; `progress` is called after each cycle with the number of jobs started.

        Raises:
            SnsError: jobs are left that never end.
        """
        self._submit_next()
        while self._events:
            time_s, _, _, subject = heapq.heappop(self._events)
            if isinstance(subject, PlacedRun):
                if self.placements.get(subject.job.id) is subject:
                    self.finish(subject)
                    self.want_cycle(time_s)
            elif isinstance(subject, TraceJob):
                self.submit(subject.job)
                self._submit_next()
                self.want_cycle(time_s)
            elif time_s == self._cycle_due_s:
                self._cycle_due_s = None
                self._cycles.append(self.cycle(time_s))
                progress(len(self.placements))
        if self.waiting:
            raise SnsError(f"the simulation ended with {self.waiting} jobs that never started; this is a defect")
        return SimulationOutcome(tuple(self.placements[each.job.id] for each in self.trace.jobs), tuple(self._cycles))

    def want_cycle(self, time_s: Seconds) -> None:
        """Schedule a cycle for this moment, or for the first multiple of the interval that is not before it."""
        due_s = time_s if self._interval_s is None else -(-time_s // self._interval_s) * self._interval_s
        if self._cycle_due_s is None or due_s < self._cycle_due_s:
            self._cycle_due_s = due_s
            self._push(due_s, CYCLE, None)

    def expect(self, timed: Iterable[PlacedRun]) -> None:
        """Put the finishes of these jobs on the heap; they replace earlier ones of the same jobs."""
        for placed in timed:
            self.placements[placed.job.id] = placed
            self._push(placed.end_s, FINISH, placed)

    def _push(self, time_s: Seconds, priority: int, subject: TraceJob | PlacedRun | None) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time_s, priority, self._sequence, subject))

    def _submit_next(self) -> None:
        """Put the next submit on the heap: one at a time keeps it small."""
        if self._next_submit < len(self.trace.jobs):
            job = self.trace.jobs[self._next_submit]
            self._next_submit += 1
            self._push(job.job.submit_s, SUBMIT, job)
