"""The Executor port. A long run of the gate's orders is sent by several processes or threads side by side.

Placements of tasks of one array that are alike go by one RPC (array_updates), where our own library can name tasks.

pyslurm holds the interpreter lock while it waits for slurmctld, so threads would wait for each other. One process alone
places 670 of 10,000 jobs a second where several place 1,060 (two cores, tests/benchmarks/placement.py). Each sender
works on one short line of orders at a time. So no pipe fills up, and few orders are under way when slurmctld fails.

Our own library frees the lock: there threads of this process do the same, faster (tests/benchmarks/bindings.py).
"""

import os
import pickle
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from math import ceil
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO

from slurm_sns.errors import Outdated, Refused, Unreachable
from slurm_sns.scheduler.gate.orders import Answer, GateOrder, Order, one_by_one
from slurm_sns.slurm.api import readable
from slurm_sns.slurm.array_updates import each_alone, together
from slurm_sns.slurm.rpc import carry_out, names_tasks, send_together, waits_without_lock
from slurm_sns.slurm.seen_jobs import SeenJobs
from slurm_sns.task_ids import record_of

#: From this number of RPCs on, several processes or threads send them. Fewer take this process less than half a second
#: as a rule; with 100,000 jobs each takes 9 ms, so once the senders run, they send any number of several.
MANY = 64
#: The orders that one RPC carries out.
Update = Sequence[GateOrder]
#: The results of orders, in the sequence in which Slurm answered: its refusal, or None where it made the change.
OrderResults = Iterator[tuple[GateOrder, Refused | None]]

#: At any time, most of them wait for slurmctld. On two cores 8 are a tenth faster than 4, and 16 no faster than 8.
SENDERS = 8
#: Updates in a line at most: 16 take a sender about a hundredth of a second, so it asks for more that often.
LINE = 16
CHANGED = Outdated("it has changed since it was looked at, so it is looked at again first")


class SlurmExecutor:
    """Changes jobs as SlurmUser. With `seen`, one that is no longer as it was seen is not changed."""

    def __init__(self, seen: SeenJobs | None = None) -> None:
        self._seen = seen
        self._senders: Senders | SendingThreads | None = None

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out the orders in sequence. Several senders send a long run of the gate's orders side by side.

        In such a run there is at most one order for each job.
        """
        lost: Unreachable | None = None
        for are_of_gate, alike in groupby(orders, lambda order: isinstance(order, GateOrder)):
            if lost is not None:
                found: Iterator[Answer] = (Answer(order, unreachable=lost) for order in alike)
            elif are_of_gate:
                found = self._send([order for order in alike if isinstance(order, GateOrder)])
            else:
                found = one_by_one(alike, carry_out)
            for answer in found:
                lost = answer.unreachable
                yield answer

    def _send(self, orders: Sequence[GateOrder]) -> Iterator[Answer]:
        unanswered = {order.job_id: order for order in orders}
        try:
            for order in self._outdated(orders):
                del unanswered[order.job_id]
                yield Answer(order, CHANGED)
            wanted = list(unanswered.values())
            updates = together(wanted) if names_tasks() else each_alone(wanted)
            for each in (updates.first, updates.last):
                for order, refusal in self._results(each):
                    del unanswered[order.job_id]
                    yield Answer(order, refusal)
        except Unreachable as problem:
            yield from (Answer(order, unreachable=problem) for order in unanswered.values())

    def _outdated(self, orders: Sequence[GateOrder]) -> list[GateOrder]:
        """The orders to jobs that have changed since they were decided.

        Raises:
            Unreachable: slurmctld does not answer.
        """
        if self._seen is None:
            return []
        with readable():
            outdated = self._seen.outdated(record_of(order.job_id) for order in orders)
        return [order for order in orders if record_of(order.job_id) in outdated]

    def _results(self, updates: Sequence[Update]) -> OrderResults:
        if len(updates) < (MANY if self._senders is None else SENDERS):
            return in_turn(updates)
        if self._senders is None:
            self._senders = SendingThreads() if waits_without_lock() else Senders()
        return self._senders.send(updates)


def in_turn(updates: Iterable[Update]) -> OrderResults:
    """Send each when its first result is asked for; raises Unreachable if slurmctld does not answer."""
    for update in updates:
        yield from zip(update, send_together(update), strict=True)


class Senders:
    """The sender processes. They start when they are first needed, and all start again after one was lost."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-P", "-m", "slurm_sns.slurm.sender")) -> None:
        self._command = command
        self._senders: list[_Sender] = []

    def send(self, updates: Sequence[Update]) -> OrderResults:
        """Send each by one RPC.

        Raises:
            Unreachable: slurmctld does not answer, or a sender was lost. All results until then have been yielded. Of
                the others, a few lines of updates may or may not have taken effect; the rest was not sent.
        """
        left, length = iter(updates), min(LINE, ceil(len(updates) / SENDERS))
        lines = iter(lambda: tuple(islice(left, length)), ())
        lost = ""
        is_complete = False
        try:
            self._start()
            with selectors.DefaultSelector() as busy:
                for sender in self._senders:
                    sender.give(next(lines, ()), busy)
                while busy.get_map():
                    for key, _ in busy.select():
                        sender = key.data
                        busy.unregister(sender.answers)
                        answers, problem = sender.take()
                        lost = lost or problem
                        yield from answers
                        if not lost:
                            sender.give(next(lines, ()), busy)
            is_complete = True
        finally:
            if not is_complete:
                self.close()
        if lost:
            raise Unreachable(lost)

    def _start(self) -> None:
        """Start the processes unless they run, and wait until each is connected to Slurm."""
        if self._senders:
            return
        self._senders = [_Sender(self._command) for _ in range(SENDERS)]
        for sender in self._senders:
            sender.take()

    def close(self) -> None:
        """Kill the processes."""
        for sender in self._senders:
            sender.process.kill()
            sender.process.communicate()
        self._senders = []


class SendingThreads:
    """The same by threads, for a binding that frees the interpreter lock during an RPC."""

    def __init__(self, carry_out: Callable[[Update], Sequence[Refused | None]] = send_together) -> None:
        self._carry_out = carry_out

    def send(self, updates: Sequence[Update]) -> OrderResults:
        """Send each by one RPC; raises as `Senders.send` does."""
        run = _ThreadedRun(updates, self._carry_out)
        busy = SENDERS
        for _ in range(busy):
            Thread(target=run.work, daemon=True).start()
        try:
            while busy:
                answer = run.answered.get()
                if answer is None:
                    busy -= 1
                else:
                    yield answer
        finally:
            if busy:
                run.stop(Unreachable("nobody waits for the answers"))
        if run.problem is not None:
            raise run.problem


class _ThreadedRun:
    """Updates that several threads share; `answered` gets the results, and None from each thread that has ended."""

    def __init__(self, updates: Iterable[Update], carry_out: Callable[[Update], Sequence[Refused | None]]) -> None:
        self._left, self._turn, self._carry_out = iter(updates), Lock(), carry_out
        self.answered: SimpleQueue[tuple[GateOrder, Refused | None] | None] = SimpleQueue()
        self.problem: Exception | None = None

    def stop(self, problem: Exception) -> None:
        """Let no thread begin another update."""
        self.problem = self.problem or problem

    def work(self) -> None:
        """Carry out updates until none is left or slurmctld does not answer."""
        try:
            while (update := self._next()) is not None:
                for answer in zip(update, self._carry_out(update), strict=True):
                    self.answered.put(answer)
        except Exception as problem:  # noqa: BLE001 - a defect of ours, too, is raised in the thread that asked
            self.stop(problem)
        finally:
            self.answered.put(None)

    def _next(self) -> Update | None:
        with self._turn:
            return None if self.problem else next(self._left, None)


class _Sender:
    """One process, and the line of updates that it is working on."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(  # noqa: S603 -- our own module, no shell
            [*command, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._line: Sequence[Update] = ()

    @property
    def answers(self) -> IO[bytes]:
        """The pipe on which it writes its results."""
        assert self.process.stdout is not None  # noqa: S101  it is a pipe
        return self.process.stdout

    def give(self, line: Sequence[Update], busy: selectors.BaseSelector) -> None:
        """Send it a line of updates, unless that is empty; then it is among those that are busy.

        Raises:
            Unreachable: the process has ended.
        """
        if not line:
            return
        assert self.process.stdin is not None  # noqa: S101  it is a pipe
        self._line = line
        try:
            pickle.dump(line, self.process.stdin)
            self.process.stdin.flush()
        except OSError:
            raise Unreachable("a sender of orders has ended") from None
        busy.register(self.answers, selectors.EVENT_READ, self)

    def take(self) -> tuple[list[tuple[GateOrder, Refused | None]], str]:
        """Wait for the results of its line.

        Returns the orders that Slurm answered, and why the rest was not sent (empty: all were sent).

        Raises:
            Unreachable: the process has ended.
        """
        try:
            results = pickle.load(self.answers)  # noqa: S301 -- our child's pipe
        except (EOFError, pickle.UnpicklingError):
            raise Unreachable("a sender of orders has ended") from None
        done: list[tuple[GateOrder, Refused | None]] = []
        for update, result in zip(self._line, results, strict=False):
            if isinstance(result, Unreachable):
                return done, str(result)
            done += zip(update, result, strict=True)
        return done, ""
