"""The counters of the runs on a node, and what they add up to by the ways that each run had.

An interval begins with a reading and the ways of that moment, and ends with the next reading. Whoever changes ways ends
the intervals before, and begins them after: no interval spans a change.

The first and the last interval of a run are not added where there are others: in a part of the first the program had
not begun yet, and in a part of the last it had ended. Where there are no others, their IPC counts, which does not
depend on that; their bandwidth would be too low, and stays unknown.

IPC comes from the job's cgroup (cgroup v2): all its processes, whenever they were started. Elsewhere its threads are
counted, and what they start; a step that starts later is counted from the next opening on. The counters are opened anew
when the threads of the job are others than at the last opening, at most once in each interval between two readings.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from slurm_sns.node.agent.sampling import Sums, with_interval
from slurm_sns.node.agent.tasks_of_job import Tasks
from slurm_sns.node.counters.node_counters import JobCounters, NodeCounters
from slurm_sns.node.counters.readings import Rates, Reading, rates


class Counted(NamedTuple):
    """What is counted of a run: its tasks, its resctrl group, its cache domains, whether it is alone on the node."""

    tasks: Tasks
    group: Path | None = None
    domains: tuple[int, ...] | None = None
    is_alone: bool = False

    @property
    def opened(self) -> tuple[object, ...]:
        """What needs other counters when it changes: with a cgroup the threads do not matter."""
        threads = () if self.tasks.directory is not None else self.tasks.threads
        return (self.tasks.directory, threads, self.group, self.domains, self.is_alone)


class _Run:
    """The open counters of one run, and the interval that they are in."""

    def __init__(self, counters: JobCounters, counted: Counted) -> None:
        self.counters, self.counted = counters, counted
        self.before: Reading | None = None
        self.ways = 0
        #: The reading that ended the last interval, if nothing has changed since.
        self.last: Reading | None = None


class RunMeters:
    """The runs that are counted, by job id."""

    def __init__(self, counters: NodeCounters) -> None:
        self.counters = counters
        self._runs: dict[int, _Run] = {}
        self._sums: dict[int, Sums] = {}
        #: The first interval of each job, and the last one so far: its ways and what happened in it.
        self._first: dict[int, tuple[int, Rates]] = {}
        self._last: dict[int, tuple[int, Rates]] = {}

    def restore(self, sums: Mapping[int, Sums]) -> None:
        """What an earlier agent has measured of the runs that are still here."""
        self._sums.update(sums)

    def sums(self) -> Mapping[int, Sums]:
        """What was measured of each job so far; the last interval counts, as if it were not the end."""
        return {job_id: self._sum_of(job_id) for job_id in {**self._sums, **self._last}}

    def _sum_of(self, job_id: int) -> Sums:
        last = self._last.get(job_id)
        before = self._sums.get(job_id, {})
        return before if last is None else self._with(before, last)

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
        self._note(job_id, (run.ways, rates(run.before, run.last)))
        run.before = None

    def _note(self, job_id: int, interval: tuple[int, Rates]) -> None:
        """Note an interval; the one before it is added, unless it is the first. One without any work is none."""
        if self.counters.measures_ipc and interval[1].ipc is None:
            return
        if job_id not in self._first and not self._sums.get(job_id):
            self._first[job_id] = interval
            return
        if job_id in self._last:
            self._add(job_id, self._last[job_id])
        self._last[job_id] = interval

    def _add(self, job_id: int, interval: tuple[int, Rates]) -> None:
        self._sums[job_id] = self._with(self._sums.get(job_id, {}), interval)

    def _with(self, sums: Sums, interval: tuple[int, Rates]) -> Sums:
        ways, happened = interval
        return with_interval(sums, ways, happened, measures_ipc=self.counters.measures_ipc)

    def begin_interval(self, job_id: int, ways: int) -> None:
        """The run has these ways of each domain from now on, until its interval is ended.

        Where it has as many as in the interval before, the two have one reading between them.
        """
        run = self._runs.get(job_id)
        if run is not None:
            is_seamless = run.last is not None and run.ways == ways
            run.before, run.ways = run.last if is_seamless else run.counters.read(), ways
            run.last = None

    def count(self, job_id: int, counted: Counted) -> None:
        """Count this of the job. Its interval, if one is under way, ends when other counters are needed."""
        run = self._runs.get(job_id)
        if run is not None and run.counted.opened == counted.opened:
            return
        self._close(job_id)
        tasks = counted.tasks
        opened = self.counters.job(
            cgroup=tasks.directory,
            cpus=tasks.cpus,
            threads=tasks.threads,
            group=counted.group,
            domains=counted.domains,
            is_alone=counted.is_alone,
        )
        self._runs[job_id] = _Run(opened, counted)

    def reopen(self, job_id: int) -> None:
        """Its group has been made anew: other files count it from now on."""
        self._close(job_id)

    def finish(self, job_id: int) -> Sums:
        """Stop counting the job; the result is all that was measured of it."""
        self._close(job_id)
        edges = [each.pop(job_id) for each in (self._first, self._last) if job_id in each]
        if not self._sums.get(job_id):
            for ways, happened in edges:
                self._add(job_id, (ways, happened._replace(bandwidth_gbps=None)))
        return self._sums.pop(job_id, {})

    def begin_with(self, counters: NodeCounters) -> None:
        """Use other counters from now on: the tree is another one. What was measured stays."""
        for job_id in tuple(self._runs):
            self._close(job_id)
        self.counters.close()
        self.counters = counters

    def close(self) -> None:
        """Stop counting."""
        for job_id in tuple(self._runs):
            self._close(job_id)
        self.counters.close()

    def _close(self, job_id: int) -> None:
        self.end_interval(job_id)
        run = self._runs.pop(job_id, None)
        if run is not None:
            run.counters.close()
