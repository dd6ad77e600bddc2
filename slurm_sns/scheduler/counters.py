"""What a scheduler counts while it runs, for its metrics: counters and histograms of fixed size.

`counted` wraps the ports, so that the loop knows nothing of it. The loop's thread writes, the threads that answer
requests read: every key is there from the beginning, and a number that is one behind does no harm.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from slurm_sns.errors import Outdated, SnsError
from slurm_sns.metric_table import CYCLE_BOUNDS_S, WAIT_BOUNDS_S
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Choice, Explanation, JobRequest, NodeType, Policy
from slurm_sns.scheduler.gate.orders import Answer, GateOrder, Order, OrderKind, SignalOrder
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.ports import Executor, Ports, State

PHASES = ("observe", "plan", "send")
REQUEUE, SIGNAL = "requeue", "signal"
KINDS = (*(kind.value for kind in OrderKind), REQUEUE, SIGNAL)
RESULTS = DONE, REFUSED, UNREACHABLE = ("done", "refused", "unreachable")
#: The partition of jobs that run elsewhere than sns.yaml says, as after a change of it.
OTHER = "other"
#: For so long after its start a job is remembered as counted, and a start is still counted. Slurm shows an ended job
#: for MinJobAge, and a scheduler may be without an answer for a while.
REMEMBERED_S = 3600.0


class Histogram:
    """Counts of values in buckets with these upper bounds, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count this value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def read(self) -> tuple[list[int], float]:
        """The count of each bucket, that beyond the last bound at the end, and the sum."""
        return self._counts.copy(), self._sum


class Counters:
    """What is counted. `began_s` is when that began, Unix seconds."""

    def __init__(self, began_s: float, partitions: Collection[str]) -> None:
        self.began_s = began_s
        self.cycles = Histogram(CYCLE_BOUNDS_S)
        self.reads = Histogram(CYCLE_BOUNDS_S)
        self.read_errors = 0
        self.phase_s = dict.fromkeys(PHASES, 0.0)
        self.changes = {(kind, result): 0 for kind in KINDS for result in RESULTS}
        self.waits = {name: Histogram(WAIT_BOUNDS_S) for name in (*sorted(partitions), OTHER)}
        #: The starts that are counted, by job id and restarts: when each was.
        self._counted_s: dict[tuple[int, int], int] = {}
        self._latest_waits_s: list[float] = []

    def answered(self, answer: Answer) -> None:
        """Count the answer to an order that was sent."""
        if isinstance(answer.refused, Outdated):
            return
        match answer.order:
            case GateOrder(kind=of_gate):
                kind = of_gate.value
            case SignalOrder():
                kind = SIGNAL
            case _:
                kind = REQUEUE
        result = UNREACHABLE if answer.unreachable is not None else DONE if answer.refused is None else REFUSED
        self.changes[kind, result] += 1

    def started(self, jobs: Iterable[ObservedJob], now_s: float) -> None:
        """Count the waits of the jobs that have started where we placed them, each start once."""
        since_s = max(self.began_s, now_s - REMEMBERED_S)
        for job in jobs:
            if job.start_s < since_s or job.state is JobState.PENDING:
                continue
            record, run = job.record, (job.id, job.restarts)
            if record is None or not record.is_placed or not job.allocated or run in self._counted_s:
                continue
            self._counted_s[run] = job.start_s
            partition = job.partitions[0] if job.partitions else OTHER
            wait_s = max(0.0, job.start_s - job.submit_s)
            self.waits[partition if partition in self.waits else OTHER].add(wait_s)
            self._latest_waits_s.append(wait_s)
        if any(at_s < since_s for at_s in self._counted_s.values()):
            self._counted_s = {run: at_s for run, at_s in self._counted_s.items() if at_s >= since_s}

    def take_waits_s(self) -> list[float]:
        """The waits that were counted since this was asked last."""
        taken, self._latest_waits_s = self._latest_waits_s, []
        return taken


class CountedState:
    """A state, whose reads are counted."""

    def __init__(self, state: State, counters: Counters, steady: Callable[[], float]) -> None:
        self._state, self._counters, self._steady = state, counters, steady

    def observe(self) -> Observation:
        """Read once."""
        began_s = self._steady()
        try:
            return self._state.observe()
        except SnsError:
            self._counters.read_errors += 1
            raise
        finally:
            took_s = self._steady() - began_s
            self._counters.reads.add(took_s)
            self._counters.phase_s["observe"] += took_s


class CountedExecutor:
    """An executor, whose answers are counted."""

    def __init__(self, executor: Executor, counters: Counters, steady: Callable[[], float]) -> None:
        self._executor, self._counters, self._steady = executor, counters, steady

    def execute(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Carry out these orders; what their caller does between two answers is no time of sending."""
        answers = iter(self._executor.execute(orders))
        while True:
            began_s = self._steady()
            answer = next(answers, None)
            self._counters.phase_s["send"] += self._steady() - began_s
            if answer is None:
                return
            self._counters.answered(answer)
            yield answer


class TimedPolicy:
    """A policy, whose planning is timed."""

    def __init__(self, policy: Policy, counters: Counters, steady: Callable[[], float]) -> None:
        self._policy, self._counters, self._steady = policy, counters, steady

    def alternatives(self, asked: JobRequest, nodes: Sequence[NodeType], /) -> Choice:
        """The policy's."""
        return self._policy.alternatives(asked, nodes)

    def plan(self, snapshot: Snapshot) -> Plan:
        """The policy's plan."""
        began_s = self._steady()
        try:
            return self._policy.plan(snapshot)
        finally:
            self._counters.phase_s["plan"] += self._steady() - began_s

    def explain(self, snapshot: Snapshot, plan: Plan, job_id: int) -> Explanation | None:
        """The policy's."""
        return self._policy.explain(snapshot, plan, job_id)


def counted(ports: Ports, counters: Counters) -> Ports:
    """The ports, with state and executor counted."""
    timed: tuple[Counters, Any] = counters, ports.clock.steady
    return replace(ports, state=CountedState(ports.state, *timed), executor=CountedExecutor(ports.executor, *timed))
