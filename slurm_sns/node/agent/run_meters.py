"""The counters of the runs on a node, and what they add up to by the ways that each run had.

An interval begins with a reading and the ways of that moment, and ends with the next reading. Whoever changes ways ends
the intervals before, and begins them after: no interval spans a change.

The first and the last interval of a run are not added where there are others: in a part of the first the program had
not begun yet, and in a part of the last it had ended. Where there are no others, their IPC counts, which does not
depend on that; their bandwidth would be too low, and stays unknown.

What was executed while no other run was on the node is added up a second time, so that a run can be compared with
itself beside others. A run that begins or ends changes ways, so an interval has neighbours or has none.

An interval counts only if something was executed in it: a suspended job has no IPC of 0. What a node cannot measure
stays unknown (None), whatever the other values are.

IPC comes from the job's cgroup (cgroup v2): all its processes, whenever they were started. Elsewhere its threads are
counted, and what they start; a step that starts later is counted from the next opening on. The counters are opened anew
when the threads of the job are others than at the last opening, at most once in each interval between two readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from slurm_sns.node.agent.tasks_of_job import Tasks
from slurm_sns.node.counters.node_counters import JobCounters, NodeCounters
from slurm_sns.node.counters.readings import Rates, Reading, rates
from slurm_sns.wire.values import Point


@dataclass(frozen=True, slots=True)
class PointSum:
    """Sums over the intervals with one number of ways; a value and the seconds in which it was known.

    The last two are those of the intervals among them in which the run was alone on the node.
    """

    seconds: float = 0.0
    ipc_seconds: float = 0.0
    ipc_sum: float = 0.0
    gbps_seconds: float = 0.0
    gbps_sum: float = 0.0
    alone_seconds: float = 0.0
    alone_ipc_sum: float = 0.0


#: The sums by number of ways.
Sums = Mapping[int, PointSum]


class CountedInterval(NamedTuple):
    """What a run did between two readings, at this number of ways; `is_alone`: no other run was on the node."""

    ways: int
    rates: Rates
    is_alone: bool = False


def with_interval(sums: Sums, interval: CountedInterval, *, measures_ipc: bool) -> Sums:
    """The sums with one more interval.

    `measures_ipc` is false on a node that counts no instructions: whether anything was executed is not known there.
    """
    ways, (seconds, ipc, gbps), is_alone = interval
    if seconds <= 0 or (ipc is None and (measures_ipc or gbps is None)):
        return sums
    before = sums.get(ways, PointSum())
    alone_ipc = ipc if is_alone else None
    after = PointSum(
        before.seconds + seconds,
        before.ipc_seconds + (0.0 if ipc is None else seconds),
        before.ipc_sum + (ipc or 0.0) * seconds,
        before.gbps_seconds + (0.0 if gbps is None else seconds),
        before.gbps_sum + (gbps or 0.0) * seconds,
        before.alone_seconds + (0.0 if alone_ipc is None else seconds),
        before.alone_ipc_sum + (alone_ipc or 0.0) * seconds,
    )
    return {**sums, ways: after}


def points(sums: Sums) -> tuple[Point, ...]:
    """The averages, by increasing number of ways."""
    return tuple(
        Point(
            ways,
            each.seconds,
            each.ipc_sum / each.ipc_seconds if each.ipc_seconds else None,
            each.gbps_sum / each.gbps_seconds if each.gbps_seconds else None,
            each.alone_seconds,
            each.alone_ipc_sum / each.alone_seconds if each.alone_seconds else None,
        )
        for ways, each in sorted(sums.items())
    )


class _Run:
    """The open counters of one run, and the interval that they are in."""

    def __init__(self, counters: JobCounters, opened_for: tuple[object, ...]) -> None:
        self.counters, self.opened_for = counters, opened_for
        self.before: Reading | None = None
        self.ways, self.is_alone = 0, False
        #: The reading that ended the last interval, if nothing has changed since.
        self.last: Reading | None = None


class RunMeters:
    """The runs that are counted, by job id."""

    def __init__(self, counters: NodeCounters) -> None:
        self.counters = counters
        self._runs: dict[int, _Run] = {}
        self._sums: dict[int, Sums] = {}
        #: The first interval of each job, and the last one so far.
        self._first: dict[int, CountedInterval] = {}
        self._last: dict[int, CountedInterval] = {}

    def restore(self, sums: Mapping[int, Sums]) -> None:
        """What an earlier agent has measured of the runs that are still here."""
        self._sums.update(sums)

    def sums(self) -> Mapping[int, Sums]:
        """What was measured of each job so far; the last interval counts, as if it were not the end."""
        last = {job_id: self._with(self._sums.get(job_id, {}), each) for job_id, each in self._last.items()}
        return {**self._sums, **last}

    def is_open(self, job_id: int) -> bool:
        """Whether the job is counted."""
        return job_id in self._runs

    def end_intervals(self) -> None:
        """Read the counters: from now on the ways of the runs may change."""
        for job_id in self._runs:
            self.end_interval(job_id)

    def end_interval(self, job_id: int) -> None:
        """Read the counters of one run, and add up what it did since its interval began."""
        run = self._runs.get(job_id)
        if run is None:
            return
        if run.before is None:
            run.last = None  # nobody knows what became of its ways since
            return
        run.last = run.counters.read()
        self._note(job_id, CountedInterval(run.ways, rates(run.before, run.last), run.is_alone))
        run.before = None

    def _note(self, job_id: int, interval: CountedInterval) -> None:
        """Note an interval; the one before it is added, unless it is the first. One without any work is none."""
        if self.counters.measures_ipc and interval.rates.ipc is None:
            return
        if job_id not in self._first and not self._sums.get(job_id):
            self._first[job_id] = interval
            return
        if job_id in self._last:
            self._add(job_id, self._last[job_id])
        self._last[job_id] = interval

    def _add(self, job_id: int, interval: CountedInterval) -> None:
        self._sums[job_id] = self._with(self._sums.get(job_id, {}), interval)

    def _with(self, sums: Sums, interval: CountedInterval) -> Sums:
        return with_interval(sums, interval, measures_ipc=self.counters.measures_ipc)

    def begin_interval(self, job_id: int, ways: int, *, is_alone: bool = False) -> None:
        """The run has these ways of each domain from now on, and is alone or not, until its interval is ended.

        Where it has as many as in the interval before, the two have one reading between them.
        """
        run = self._runs.get(job_id)
        if run is not None:
            is_seamless = run.last is not None and run.ways == ways
            run.before, run.ways = run.last if is_seamless else run.counters.read(), ways
            run.is_alone, run.last = is_alone, None

    def count(
        self, job_id: int, tasks: Tasks, *, group: Path | None, domains: tuple[int, ...] | None, is_alone: bool
    ) -> None:
        """Count these tasks in this resctrl group; see `NodeCounters.job`.

        The interval of the job, if one is under way, ends when other counters are needed.
        """
        threads = () if tasks.directory is not None else tasks.threads  # with a cgroup they do not matter
        wanted = (tasks.directory, threads, group, domains, is_alone)
        run = self._runs.get(job_id)
        if run is not None and run.opened_for == wanted:
            return
        self.uncount(job_id)
        opened = self.counters.job(
            cgroup=tasks.directory,
            cpus=tasks.cpus,
            threads=tasks.threads,
            group=group,
            domains=domains,
            is_alone=is_alone,
        )
        self._runs[job_id] = _Run(opened, wanted)

    def uncount(self, job_id: int) -> None:
        """Close the counters of the job: `count` opens them anew."""
        self.end_interval(job_id)
        run = self._runs.pop(job_id, None)
        if run is not None:
            run.counters.close()

    def finish(self, job_id: int) -> Sums:
        """Stop counting the job; the result is all that was measured of it."""
        self.uncount(job_id)
        edges = [known.pop(job_id) for known in (self._first, self._last) if job_id in known]
        if not self._sums.get(job_id):
            for each in edges:
                self._add(job_id, each._replace(rates=each.rates._replace(bandwidth_gbps=None)))
        return self._sums.pop(job_id, {})

    def begin_with(self, counters: NodeCounters) -> None:
        """Use other counters from now on: the tree is another one. What was measured stays."""
        self.close()
        self.counters = counters

    def close(self) -> None:
        """Stop counting."""
        for job_id in tuple(self._runs):
            self.uncount(job_id)
        self.counters.close()
