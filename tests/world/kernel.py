"""The kernel of the simulated world: steady time, a heap of events, and processes that can be killed and frozen.

A process is a greenlet: it runs until it waits. While it waits, plain events and the passes of slurmctld run on its own
stack. Only when another process is due does the kernel switch, so a world with one busy daemon switches seldom.
Events of the same moment run in this order: slurmctld, then the others in the order in which they were planned. So the
same calls give the same history, in every process and on every machine.
"""

import heapq
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

from world.history import History

#: The wall clock at the beginning, in Unix seconds: a round number, so that times in a log are easy to compare.
BEGIN_S = 1_700_000_000.0

Action = Callable[[], object]
#: The first entry of an empty heap.
NOTHING_PLANNED = (inf, 0, 0, None)


class Crash(BaseException):  # no Exception: the outermost loops of our daemons survive those
    """The process is killed at this moment."""


class Broken(BaseException):
    """The simulation itself failed: a defect of the model or of a step, never one of slurm_sns."""


class Passes(Protocol):
    """What the kernel needs of the simulated slurmctld."""

    def next_s(self) -> float: ...

    def step(self) -> None: ...


class Process:
    """One process of the world.

    `body` runs in it; `ended` is called after the body's end, with True if it was killed. `owner` is whose process it
    is.
    """

    def __init__(self, world: "World", name: str, body: Action, ended: Callable[[bool], object], owner: Any) -> None:
        self.name = name
        self.owner = owner
        self.can_wake = False
        #: Its wake has been put off because it is frozen.
        self.is_stopped = False
        self.is_doomed = False
        self.is_over = False
        self.is_woken = False
        self.frozen_until_s = 0.0
        self._world, self._body, self._ended = world, body, ended
        #: The number of its next wake; entries of the heap with another number are outdated.
        self.wake = 0
        self.greenlet: greenlet | None = None

    def run(self) -> None:
        """Run the body to its end."""
        try:
            if not self.is_doomed:
                self._body()
        except Crash:
            pass
        finally:
            self.is_over = True
        self._ended(self.is_doomed)


class World:
    """Steady time and the wall clock, the events to come, and the processes.

    The wall clock is `BEGIN_S` later, and `offset_s` more: steps and drift of the clock change the offset.
    """

    def __init__(self) -> None:
        self.true_s = 0.0
        self.offset_s = 0.0
        self.history = History(self)
        self.running: Process | None = None
        self.slurm: Passes | None = None
        self.slurmctld_is_up = True
        self.switches = 0
        self._heap: list[tuple[float, int, int, Process | Action]] = []
        self._planned = 0
        self._hub: greenlet | None = None
        self._processes: list[Process] = []
        self._end_s = inf
        self._is_ended = False
        self._slurm_due_s: float | None = None

    def wall_s(self) -> float:
        """The wall clock, in Unix seconds."""
        return BEGIN_S + self.true_s + self.offset_s

    def at(self, at_s: float, action: Action) -> None:
        """Plan an action. It must not wait."""
        self._push(at_s, 0, action)

    def start(
        self, name: str, body: Action, ended: Callable[[bool], object] = lambda _: None, owner: Any = None
    ) -> Process:
        """Start a process now; it first runs when all that is due has run."""
        process = Process(self, name, body, ended, owner)
        self._processes.append(process)
        self._push(self.true_s, 0, process)
        return process

    def kill(self, process: Process) -> None:
        """Kill a process. If it is the running one, it ends when it next waits or calls a port."""
        process.is_doomed = True
        self._wake(process)

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop a process (SIGSTOP) for so long."""
        process.frozen_until_s = max(process.frozen_until_s, self.true_s + seconds)

    def thaw(self, process: Process) -> None:
        """Let a frozen process go on (SIGCONT)."""
        process.frozen_until_s = 0.0
        if process.is_stopped:
            process.wake += 1
            self._push(self.true_s, process.wake, process)

    def interrupt(self, process: Process) -> None:
        """End the process's sleep, now or as soon as it next sleeps: a signal has arrived."""
        process.is_woken = True
        self._wake(process)

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until the running process is interrupted."""
        assert self.running is not None
        if not self.running.is_woken:
            self._wait(self.running, seconds, can_wake=True)

    def wait(self, seconds: float) -> None:
        """Wait so long in the running process.

        Raises:
            Crash: the process was killed.
        """
        process = self.running
        assert process is not None
        until_s = self.true_s + seconds
        if (
            self._slurm_due_s is not None
            and until_s < self._slurm_due_s
            and until_s < self._end_s
            and (not self._heap or until_s < self._heap[0][0])
            and not (process.is_doomed or process.frozen_until_s > self.true_s or self._is_ended)
        ):
            self.true_s = until_s  # nothing else is due: the common case
        else:
            self._wait(process, seconds, can_wake=False)

    def act(self, action: Action) -> None:
        """Do something that may change anything at once.

        Raises:
            Broken: it failed.
        """
        self._slurm_due_s = None
        try:
            action()
        except Exception as problem:
            raise Broken(f"{type(problem).__name__}: {problem}") from problem

    def changing(self, change: Callable[[], Any]) -> Any:
        """Let a daemon change slurmctld: what is due there must be asked again."""
        self._slurm_due_s = None
        return change()

    def end(self) -> None:
        """End the run after the present event."""
        self._is_ended = True

    def run(self, until_s: float) -> None:
        """Run all events up to this moment, or until `end` is called. Then kill what still runs."""
        self._hub, self._end_s = getcurrent(), until_s
        try:
            while not self._is_ended:
                slurm_s = self._slurm_s()
                due_s = self._heap[0][0] if self._heap else inf
                if min(slurm_s, due_s) > until_s:
                    self.true_s = until_s
                    break
                if slurm_s <= due_s:
                    self._step(slurm_s)
                    continue
                at_s, _, number, what = heapq.heappop(self._heap)
                self.true_s = max(self.true_s, at_s)
                if isinstance(what, Process):
                    self._resume(what, number)
                else:
                    self.act(what)
        finally:
            self._end_all()

    def _resume(self, process: Process, number: int) -> None:
        if process.is_over or number != process.wake:
            return
        process.is_stopped = process.frozen_until_s > self.true_s and not process.is_doomed
        if process.is_stopped:
            self._push(process.frozen_until_s, number, process)
            return
        if process.greenlet is None:
            process.greenlet = greenlet(process.run)
        self.running = process
        self.switches += 1
        process.greenlet.switch()
        self.running = None

    def _wait(self, process: Process, seconds: float, *, can_wake: bool) -> None:
        over_s, heap = self.true_s + seconds, self._heap
        while True:
            if process.is_doomed:
                raise Crash
            until_s = max(over_s, process.frozen_until_s)
            if can_wake and process.is_woken and process.frozen_until_s <= self.true_s:
                return
            slurm_s = self._slurm_due_s
            if slurm_s is None:
                slurm_s = self._slurm_s()
            due_s, _, number, what = heap[0] if heap else NOTHING_PLANNED
            # Whether another process must run before the moment comes.
            is_due = due_s <= until_s and isinstance(what, Process) and not what.is_over and number == what.wake
            if is_due or self._is_ended or min(slurm_s, due_s, until_s) > self._end_s:
                self._park(process, over_s, can_wake=can_wake)
                return
            if slurm_s <= due_s and slurm_s <= until_s:
                self._step(slurm_s)
            elif due_s <= until_s:
                heapq.heappop(heap)
                self.true_s = max(self.true_s, due_s)
                if what is not None and not isinstance(what, Process):  # otherwise an outdated wake
                    self.act(what)
            else:
                self.true_s = max(self.true_s, until_s)  # thawed just now, it goes on now
                return

    def _park(self, process: Process, until_s: float, *, can_wake: bool) -> None:
        """Let others run until the moment comes."""
        process.can_wake = can_wake
        self._push(until_s, process.wake, process)
        assert self._hub is not None
        self._hub.switch()
        process.can_wake = False
        if process.is_doomed:
            raise Crash

    def _wake(self, process: Process) -> None:
        """Let a parked process run now, if something has happened that ends its waiting."""
        if process is self.running or process.is_over or not (process.is_doomed or process.can_wake):
            return
        process.wake += 1
        self._push(self.true_s, process.wake, process)

    def _push(self, at_s: float, number: int, what: Process | Action) -> None:
        self._planned += 1
        heapq.heappush(self._heap, (at_s, self._planned, number, what))

    def _slurm_s(self) -> float:
        """When slurmctld is due next."""
        if self._slurm_due_s is None:
            self._slurm_due_s = self.slurm.next_s() if self.slurm is not None and self.slurmctld_is_up else inf
        return self._slurm_due_s

    def _step(self, at_s: float) -> None:
        assert self.slurm is not None
        self.true_s = max(self.true_s, at_s)
        self.act(self.slurm.step)

    def _end_all(self) -> None:
        """Kill what still runs, so that nothing of this world stays in memory."""
        for process in self._processes:
            process.is_doomed = True
            if process.greenlet is not None and not process.is_over:
                self.running = process
                process._ended = lambda _: None
                process.greenlet.switch()
        self.running = None
        self._heap.clear()
