"""A simulated day with 100,000 jobs: what becomes of memory, tries and the time of a cycle.

The world is that of the schedules, without an end: jobs come by the hour of the day, end and are forgotten. Now and
then an owner edits or holds one, and a node drains. In the afternoon more jobs come than fit, and the scheduler is
killed. The store is the real one, in SQLite. The time of a cycle is the processor time of the scheduler alone, without
that of the simulated Slurm and of the store.
"""

import csv
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import cos, pi
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from slurm_sns.model import Resources
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.restarts.restarter import Restarter
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.history import StoredHistory
from world.daemons import INTERVAL_S, Filter, SchedulerDaemon, WatchdogDaemon, policy, settings
from world.history import History
from world.kernel import World
from world.people import People
from world.ports import (
    ClockOf,
    Controller,
    HeartbeatOf,
    HistoryOf,
    KillSwitchOf,
    ProfilesOf,
    StateOf,
    stand_ins,
)
from world.slurm import Slurm, SlurmSite
from world.slurm_jobs import USER_IDS, WAITING
from world.timed import TimedCalls, TimedScheduler

JOBS, HOURS = 100_000, 24
HOUR_S, MIB = 3600.0, 1 << 20
SAMPLE_S = 300.0
#: Memory fills in the first hours: Python's own, and tables that grow with the largest queue so far.
WARM_H = 2.0
#: 32 nodes of 32 cores; MinJobAge.
NODES, CORES, MEMORY_MB, MIN_JOB_AGE_S = 32, 32, 128_000, 60.0
#: Cores and share of each size of job, and the mean run time: four fifths of the cluster on average, and too many in
#: the afternoon.
SIZES = ((1, 0.5), (2, 0.2), (4, 0.15), (8, 0.1), (64, 0.05))
MEAN_RUN_S = 130.0
#: One submission in so many is an array; its tasks count as jobs.
ARRAYS, ARRAY_TASKS = 0.02, (2, 40)
#: Submissions that slurm_sns does not manage, and those that their owner edits or holds some time later.
PASSES, EDITED = 0.05, 0.02
#: What the configuration keeps by default (conf/sns.yaml).
KEEP_DAYS, KEEP_SNAPSHOTS = 30, 500
#: The scheduler is killed at this hour.
KILLED_H = 15
ACCOUNTS = {"alice": "physics", "bob": "physics", "carol": "chemistry"}


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment. Times of cycles are of those since the sample before."""

    hour: float
    submitted: int
    ended: int
    waiting: int
    known_to_slurm: int
    tries: int
    rss_mib: float
    store_mib: float
    cycles: int
    cycle_median_ms: float
    cycle_p99_ms: float


class Tally(History):
    """A history that only counts: that of a day has a million events."""

    def __init__(self, times: World) -> None:
        super().__init__(times)
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:  # noqa: ARG002 - see above
        self.counts[kind] += 1
        if kind == "submit":
            self.counts["jobs"] += len(data.get("asked", {}).get("array") or (0,))


class _DaysScheduler(TimedCalls, SchedulerDaemon):
    """The scheduler with the real store; `restarts` are its rules for suspended jobs, None for none."""

    def __init__(
        self, controller: Controller, managed: frozenset[str], store: Path, restarts: RestartRules | None = None
    ) -> None:
        super().__init__(controller, "scheduler", managed, "max-jobs")
        self._store, self._restarts = store, restarts

    def _main(self) -> None:
        engine = open_store(f"sqlite:///{self._store}")
        history, plans = StoredHistory(engine), policy("max-jobs")
        ports = Ports(
            state=StateOf(self),
            executor=SlurmExecutor(),
            history=history,
            decisions=StoredDecisions(engine, KEEP_DAYS, KEEP_SNAPSHOTS),
            profiles=ProfilesOf(self, HistoryOf(self), {}),
            heartbeat=HeartbeatOf(self),
            kill_switch=KillSwitchOf(self),
            clock=ClockOf(self),
            log=self.log,
        )
        rules = settings("enforce", self._managed)
        restarter = None if self._restarts is None else Restarter(self._restarts, ports, rules, plans.plan)
        loop = TimedScheduler(ports, plans, rules, restarter=restarter)
        loop.calls = self
        try:
            loop.run(INTERVAL_S, lambda: self.is_stopping, lambda: self.hands_over)
        finally:
            engine.dispose()


class Day:
    """One simulated day; `told` is called with each sample."""

    #: The rules by which suspended jobs are restarted; None: none is.
    restarts: RestartRules | None = None

    def __init__(self, jobs: int, hours: float, seed: int, store: Path, told: Callable[[Sample], object]) -> None:
        self._jobs, self._end_s, self._told, self._store = jobs, hours * HOUR_S, told, store
        self._random = Random(seed)
        self.world = World()
        self.world.random = Random(f"slurm {seed}")  # type: ignore[attr-defined]
        self.tally = self.world.history = Tally(self.world)
        site = self.site()
        self.slurm = self.world.slurm = Slurm(site, self.world)
        self.controller = Controller(self.world, self.slurm, site, Random(f"latency {seed}"))
        managed = frozenset({"main"})
        self.scheduler = _DaysScheduler(self.controller, managed, store, self.restarts)
        self.watchdog = WatchdogDaemon(self.controller, "watchdog", managed)
        self.people = People(self.controller, Filter(self.controller, managed))
        self.samples: list[Sample] = []
        self._labels = 0
        self._cycles = 0

    @staticmethod
    def site() -> SlurmSite:
        """The nodes and partitions."""
        names = tuple(f"n{at:03d}" for at in range(1, NODES + 1))
        room = Resources(CORES, MEMORY_MB)
        return SlurmSite(dict.fromkeys(names, room), {"main": (names, 1)}, min_job_age_s=MIN_JOB_AGE_S)

    def begin(self) -> None:
        """Let the first of what happens happen."""
        self.world.at(5.0, self._submit)
        self.world.at(KILLED_H * HOUR_S, self.scheduler.crash)
        self.world.at(HOUR_S, self._drain)

    def run(self) -> list[Sample]:
        """Run the day and return its samples."""
        self.scheduler.start()
        self.watchdog.start()
        self.world.at(SAMPLE_S, self._sample)
        self.begin()
        with stand_ins(self.controller):
            self.world.run(self._end_s)
        assert not self.controller.defects, self.controller.defects
        return self.samples

    # --- people

    def _submit(self) -> None:
        """One submission, and the next one later: most at three in the afternoon, fewest at night."""
        draw = self._random
        at_once = self._jobs / self._end_s
        hour = self.world.true_s / HOUR_S
        rate = at_once * (1 + 0.4 * cos(2 * pi * (hour - KILLED_H) / HOURS)) / self._jobs_of_a_submission()
        self.world.at(self.world.true_s + draw.expovariate(rate), self._submit)
        user, label = draw.choice(list(USER_IDS)), self._labels
        self._labels += 1
        cores = draw.choices([size for size, _ in SIZES], [share for _, share in SIZES])[0]
        run_s = min(draw.expovariate(1 / MEAN_RUN_S), 3000.0) + 1
        asked: dict[str, Any] = {"tasks": cores, "account": ACCOUNTS[user], "run_s": run_s, "walltime_s": 3600}
        if cores > CORES:
            asked |= {"nodes_min": cores // CORES, "nodes_max": cores // CORES}
        elif draw.random() < ARRAYS:
            asked["array"] = tuple(range(draw.randint(*ARRAY_TASKS)))
        if draw.random() < PASSES:
            asked["comment"] = "sns:off"
        self.people.submit(label, user, asked)
        if draw.random() < EDITED:
            self.world.at(self.world.true_s + draw.uniform(0, 60), lambda: self._edit(label, user))

    @staticmethod
    def _jobs_of_a_submission() -> float:
        return 1 + ARRAYS * (1 - SIZES[-1][1]) * (sum(ARRAY_TASKS) / 2 - 1)

    def _edit(self, label: int, user: str) -> None:
        job_id = self.people.ids.pop(label, None)
        if job_id is None or job_id not in self.slurm.jobs or self.slurm.jobs[job_id].state != WAITING:
            return
        words = self._random.choice(
            [
                ("update", f"JobId={job_id}", "Extra=mine"),
                ("update", f"JobId={job_id}", "Nice=100"),
                ("update", f"JobId={job_id}", "StartTime=now"),
                ("hold", str(job_id)),
                ("release", str(job_id)),
            ]
        )
        self.slurm.scontrol(words, user)
        if words[0] == "hold":
            self.world.at(self.world.true_s + 300, lambda: self._free(job_id, user))

    def _free(self, job_id: int, user: str) -> None:
        job = self.slurm.jobs.get(job_id)
        if job is not None and job.state == WAITING and job.hold == "user":
            self.slurm.scontrol(("release", str(job_id)), user)

    def _drain(self) -> None:
        """Drain a node for half an hour, each hour."""
        node = self._random.choice(list(self.slurm.nodes))
        self.slurm.update_node(node, "drain")
        self.world.at(self.world.true_s + HOUR_S / 2, lambda: self.slurm.update_node(node, "undrain"))
        self.world.at(self.world.true_s + HOUR_S, self._drain)

    # --- samples

    def _sample(self) -> None:
        self.world.at(self.world.true_s + SAMPLE_S, self._sample)
        self.people.ids.clear()
        took_ms = np.array(self.scheduler.cycles_s or [0.0]) * 1000
        self._cycles += len(self.scheduler.cycles_s)
        self.scheduler.cycles_s.clear()
        engine = open_store(f"sqlite:///{self._store}")
        try:
            tries = len(StoredHistory(engine).load())
        finally:
            engine.dispose()
        jobs = self.slurm.jobs.values()
        found = Sample(
            hour=self.world.true_s / HOUR_S,
            submitted=self.tally.counts["jobs"],
            ended=self.tally.counts["end"],
            waiting=sum(len(job.array_tasks) or 1 for job in jobs if job.state == WAITING),
            known_to_slurm=len(jobs),
            tries=tries,
            rss_mib=_rss_mib(),
            store_mib=sum(path.stat().st_size for path in self._store.parent.iterdir()) / MIB,
            cycles=self._cycles,
            cycle_median_ms=float(np.median(took_ms)),
            cycle_p99_ms=float(np.quantile(took_ms, 0.99)),
        )
        self.samples.append(found)
        self._told(found)


def _rss_mib() -> float:
    """The memory of this process now: scheduler, simulated Slurm and the world."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MIB


# --- the result


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Draw the course of the day: jobs, tries, memory and cycles."""
    figure = Figure(figsize=(9, 9), layout="constrained")
    hours = [each.hour for each in samples]
    panels: Mapping[str, tuple[str, ...]] = {
        "jobs": ("waiting", "known_to_slurm", "tries"),
        "memory of the process, MiB": ("rss_mib",),
        "size of the store, MiB": ("store_mib",),
        "processor time of a cycle, ms": ("cycle_median_ms", "cycle_p99_ms"),
    }
    for number, (label, names) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(len(panels), 1, number)
        for name in names:
            axis.plot(hours, [getattr(each, name) for each in samples], label=name.replace("_", " "))
        axis.set_ylabel(label)
        axis.set_ylim(0, 1.1 * max(getattr(each, name) for each in samples for name in names) or 1)
        axis.legend(loc="upper left")
    axis.set_xlabel("hour of the day")
    figure.savefig(path)


def write(samples: Sequence[Sample], folder: Path) -> None:
    """Write the samples as day.csv and day.png, and README.md, which says what they show."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Sample)]
    with (folder / "day.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([f"{getattr(each, name):.6g}" for name in names] for each in samples)
    draw(samples, folder / "day.png")
    (folder / "README.md").write_text(page(samples), encoding="utf-8")


def page(samples: Sequence[Sample]) -> str:
    """What the samples show, in Markdown: whether memory, tries and the time of a cycle are flat, or follow what.

    The first hours, in which memory fills, are told apart from the rest.
    """
    settled = [each for each in samples if each.hour >= WARM_H] or list(samples)
    memory = [each.rss_mib for each in settled]
    growth = np.polyfit([each.hour for each in settled], memory, 1)[0] if len(settled) > 1 else 0.0
    known, cycle = ([getattr(each, name) for each in samples] for name in ("known_to_slurm", "cycle_median_ms"))
    follows = np.corrcoef(known, cycle)[0, 1] if len(samples) > 1 else 1.0
    most = max(each.tries for each in samples)
    shown = [field.name for field in fields(Sample)]
    step = max(1, len(samples) // 12)
    rows = [[f"{getattr(each, name):.6g}" for name in shown] for each in samples[step - 1 :: step]]
    table = [[name.replace("_", " ") for name in shown], ["---"] * len(shown), *rows]
    last = samples[-1]
    per_job = (last.store_mib - samples[0].store_mib) * MIB / max(1, last.submitted - samples[0].submitted)
    return f"""# A simulated day: {last.submitted:,} jobs in {last.hour:.0f} hours

`PYTHONPATH=tests python -m world day FOLDER` runs the scheduler for a day in the simulated world of faults:
{NODES} nodes of {CORES} cores, more jobs in the afternoon than fit, owners who edit and hold jobs, nodes that drain,
and a scheduler that is killed and started again. Each sample covers {SAMPLE_S:.0f} s of the day. The time of a cycle is
the processor time of the scheduler alone.

![Jobs and tries, memory, size of the store and time of a cycle over the day.](day.png)

- **Memory** of the process, which holds the simulated Slurm as well: {min(memory):.1f} to {max(memory):.1f} MiB
  after the first {WARM_H:.0f} hours. A straight line through these samples changes by {growth:+.2f} MiB an hour.
- **Tries** of placements that Slurm refused or did not start: at most {most} are remembered.
- **Size of the store**: {samples[0].store_mib:.0f} to {last.store_mib:.0f} MiB, {per_job:.0f} bytes for each job.
  It keeps what was decided for each job, and with what reasons, for `keep_days`.
- **Time of a cycle** (median of a sample): {min(cycle):.1f} to {max(cycle):.1f} ms. Its correlation with the number of
  jobs that Slurm knows is {follows:.2f} over the day.

{"".join(f"| {' | '.join(row)} |" + chr(10) for row in table)}
Numbers: [day.csv](day.csv).
"""


def main(folder: Path, jobs: int = JOBS, hours: float = HOURS, seed: int = 1) -> list[Sample]:
    """Simulate the day, tell each sample as a line, and write the result to the folder."""
    with tempfile.TemporaryDirectory() as scratch:
        samples = Day(jobs, hours, seed, Path(scratch) / "sns.db", _tell).run()
    write(samples, folder)
    return samples


def _tell(sample: Sample) -> None:
    sys.stdout.write(
        f"{sample.hour:5.2f} h: {sample.submitted} submitted, {sample.waiting} waiting, {sample.tries} tries, "
        f"{sample.rss_mib:.0f} MiB, cycle {sample.cycle_median_ms:.1f} ms, p99 {sample.cycle_p99_ms:.1f} ms\n"
    )
    sys.stdout.flush()
