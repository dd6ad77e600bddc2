"""The database after a day, a month and a year: its size, and how long reading, writing and deleting take.

    python tests/benchmarks/records.py DIRECTORY [--days 1 30 365] [--jobs 50000] [--cycles 20000] [--repeat 1000]

A SQLite file in DIRECTORY is filled with so many days of so many jobs a day, which are recorded in so many cycles. Each
job has a start and a measured run on a node, every tenth a note, every third is a task of an array, and every fifth has
the explanation of a job that may be spread. Each cycle that is timed records two or three starts and the snapshot of
5,000 waiting jobs on 1,000 nodes, of which 500 are kept. Nothing is extrapolated: the file holds all of these days.

Prints a line of JSON for each number of days, times in milliseconds:

- `explain`: what was decided about a job of any day, with the file in memory; `explain_cold`: from the disk;
- `write`: a recorded cycle while nothing is too old; `write_deleting`: while the first day is;
- `delete`: the transactions of these that delete: the database is locked for as long; `gone_per_write`: of how many
  cycles the rows are deleted for each that is written;
- `file_bytes`, and `snapshot_bytes` of one snapshot.
"""

import argparse
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, event, func, select

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Alternative, Job, Node, Plan, Report, Resources, Snapshot, Start
from slurm_sns.package_files import shared_path
from slurm_sns.policies.base import Explanation, JobRequest, NodeType, Request
from slurm_sns.policies.combined.combined import combined
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions, pack
from slurm_sns.store.schema import cycles, measured_runs

DAY_S = 86_400
KEEP_SNAPSHOTS = 500
OWN = Alternative(1, Resources(16, 64_000))
REASON = "by mix-fit: the nodes where the least is left of cores and memory together"
REPORT = Report("mix-fit", {"mix-fit": 12, "best-fit-cores": 11, "best-fit-memory": 12, "worse-fit": 9, "best-fit": 10})


def explanation() -> Explanation:
    """What `combined` says of a job of the program mg that may be spread."""
    program = next(
        each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml")) if each.name == "mg"
    )
    request = Request(16, memory_per_cpu_mb=4000, alpha=0.9)
    node = NodeType(Resources(28, 128_000, 20, 118, 15), 1000)
    said = combined().alternatives(JobRequest(OWN, request, program, "mg"), [node]).explanation
    if said is None:
        raise AssertionError("combined explains every job that it may spread")
    return said


def snapshot() -> Snapshot:
    """A queue of 5,000 jobs on 1,000 nodes."""
    nodes = tuple(Node(f"node{number:04}", Resources(128, 512_000), Resources(7, 3000)) for number in range(1000))
    allowed = frozenset(node.name for node in nodes)
    return Snapshot(nodes, tuple(Job(10**8 + at, at, (OWN,), order=(at,), allowed=allowed) for at in range(5000)))


class Site:
    """The rows of days of `jobs` jobs in `cycles` cycles each; job 1 is the first of day 0."""

    def __init__(self, jobs: int, cycles: int) -> None:
        self.jobs, self.cycles = jobs, cycles
        self._said = json.dumps(explanation().as_json())
        self._demand = json.dumps(OWN.demand._asdict())
        self._matched = json.dumps(dict(REPORT.matched))

    def fill(self, path: Path, days: range) -> None:
        """Add the rows of these days, in a transaction for each."""
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA synchronous=OFF")
            for day in days:
                for table, columns, rows in (
                    ("cycles", "id, at_s, chosen, matched", self._cycles(day)),
                    (
                        "decisions",
                        "cycle_id, job_id, user_id, at_s, action, nodes, reason, scale, exclusive, demand, considered",
                        self._decisions(day),
                    ),
                    ("array_tasks", "job_id, array_id, task, at_s", self._tasks(day)),
                    (
                        "measured_runs",
                        ", ".join(column.name for column in measured_runs.columns),
                        self._runs(day),
                    ),
                ):
                    places = ", ".join("?" * len(columns.split(",")))
                    database.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)
                database.commit()
        database.close()

    def _jobs_of(self, day: int) -> Iterator[tuple[int, int, float]]:
        """Each job of the day: its id, the id of the cycle that starts it, and when."""
        for at in range(self.jobs):
            cycle = at * self.cycles // self.jobs
            yield day * self.jobs + at + 1, day * self.cycles + cycle + 1, (day + cycle / self.cycles) * DAY_S

    def _cycles(self, day: int) -> Iterator[tuple[object, ...]]:
        for at in range(self.cycles):
            yield day * self.cycles + at + 1, (day + at / self.cycles) * DAY_S, "mix-fit", self._matched

    def _decisions(self, day: int) -> Iterator[tuple[object, ...]]:
        for job, cycle, at_s in self._jobs_of(day):
            said = self._said if job % 5 == 0 else None
            node = f"node{job % 1000:04}"
            yield cycle, job, 2000 + job % 300, at_s, "start", node, REASON, 1, False, self._demand, said
            if job % 10 == 0:
                note = f"placed on {node}, but Slurm did not start it: AssocGrpCpuLimit"
                yield cycle, job, 2000 + job % 300, at_s, "note", "", note, 1, False, "{}", None

    def _tasks(self, day: int) -> Iterator[tuple[object, ...]]:
        for job, _, at_s in self._jobs_of(day):
            if job % 3 == 0:
                yield job, job - job % 300, job % 300, at_s

    def _runs(self, day: int) -> Iterator[tuple[object, ...]]:
        for job, _, at_s in self._jobs_of(day):
            yield job, 0, f"node{job % 1000:04}", 2000 + job % 300, at_s, 4, 20, 3600.0, 1.25, 8.5, 100.0, 1.5


def timed(act: Callable[[int], object], repeat: int) -> list[float]:
    """How long each of so many calls takes, in milliseconds."""
    took_ms = []
    for at in range(repeat):
        began_s = time.perf_counter()
        act(at)
        took_ms.append(1000 * (time.perf_counter() - began_s))
    return took_ms


def shown(took_ms: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and the longest."""
    return {
        "median": round(float(np.median(took_ms)), 3),
        "p99": round(float(np.quantile(took_ms, 0.99)), 3),
        "max": round(max(took_ms), 3),
    }


def forget_pages(path: Path) -> None:
    """Make the kernel drop what it has of the file, so that the next reads come from the disk."""
    for each in (path, path.with_name(path.name + "-wal")):
        if each.exists():
            descriptor = os.open(each, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


class Deletes:
    """How long each transaction of the engine that deletes takes, in milliseconds, from its first delete to its end."""

    def __init__(self, engine: Engine) -> None:
        self.took_ms: list[float] = []
        self._began_s: float | None = None
        event.listen(engine, "before_cursor_execute", self._execute)
        event.listen(engine, "checkin", self._end)

    def _execute(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        if self._began_s is None and statement.startswith("DELETE"):
            self._began_s = time.perf_counter()

    def _end(self, *_: object) -> None:
        if self._began_s is not None:
            self.took_ms.append(1000 * (time.perf_counter() - self._began_s))
            self._began_s = None


class Scheduler:
    """Cycles that start two or three jobs each, at a moment, and keep decisions for so many days."""

    def __init__(self, engine: Engine, now_s: float, keep_days: int) -> None:
        self.decisions = StoredDecisions(engine, keep_days, KEEP_SNAPSHOTS)
        self._seen, self._now_s = snapshot(), now_s

    def cycle(self, number: int) -> None:
        """Record the cycle with this number."""
        jobs = range(10**9 + 3 * number, 10**9 + 3 * number + 2 + number % 2)
        starts = tuple(Start(job, ("node0001",), OWN, REASON) for job in jobs)
        owners = dict.fromkeys(jobs, 2001)
        plan = Plan(starts, report=REPORT)
        self.decisions.record(self._now_s, self._seen, plan, {}, owners=owners, explanations={}, tasks={})


def measured(path: Path, site: Site, days: int, repeat: int) -> dict[str, object]:
    """What a file that holds so many days costs."""
    engine, draw, now_s = open_store(f"sqlite:///{path}"), random.Random(1), float(days * DAY_S)
    keeping = Scheduler(engine, now_s, days + 1)
    deleting = Scheduler(engine, now_s + DAY_S, days)  # a day later the first day is too old

    def explain(_: int) -> None:
        keeping.decisions.of_job(draw.randint(1, days * site.jobs))

    def count() -> int:
        with engine.connect() as connection:
            return int(connection.execute(select(func.count(cycles.c.id)).where(cycles.c.at_s < DAY_S)).scalar() or 0)

    found: dict[str, object] = {"days": days, "jobs": days * site.jobs}
    found["write"] = shown(timed(keeping.cycle, max(repeat, KEEP_SNAPSHOTS)))
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    found["file_bytes"], found["snapshot_bytes"] = path.stat().st_size, len(pack(snapshot()))
    forget_pages(path)
    found["explain_cold"] = shown(timed(explain, repeat))
    timed(explain, repeat)
    found["explain"] = shown(timed(explain, repeat))
    before, deletes = count(), Deletes(engine)
    found["write_deleting"] = shown(timed(deleting.cycle, repeat))
    found["gone_per_write"] = round((before - count()) / repeat, 2)
    found["delete"] = shown(deletes.took_ms)
    engine.dispose()
    return found


def main() -> None:
    """Fill, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--days", type=int, nargs="+", default=[1, 30, 365])
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--cycles", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=1000)
    given = parser.parse_args()
    site = Site(given.jobs, given.cycles)
    for days in given.days:
        path = given.directory / f"records-{days}.db"
        open_store(f"sqlite:///{path}").dispose()
        began_s = time.perf_counter()
        site.fill(path, range(days))
        filled_s = round(time.perf_counter() - began_s, 1)
        sys.stdout.write(json.dumps({**measured(path, site, days, given.repeat), "fill_s": filled_s}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
