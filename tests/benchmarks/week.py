"""A week of a large site in the simulator: memory, the store, renewals and cycles, and whether each job has one end.

    python tests/benchmarks/week.py [--days 7] [--nodes 10000] [--jobs N] [--interval 300] [--live-minutes 1] [--seed 1]
    python tests/benchmarks/week.py --days 1 --nodes 1000
    python tests/benchmarks/week.py --days 2 --nodes 1000 --jobs 40000 --mix arrays --interval 25

The scheduler is the live one, as `sns scheduler` puts it together from sns.yaml: gates and their leases, placements,
renewals, estimates, counters, the store in SQLite on disk. The simulated slurmctld (tests/world/slurm_large.py) starts,
ends and forgets jobs, and opens the gates that nobody renews. The jobs are those of tests/world/weeks_jobs.py: five a
day for each node unless --jobs says how many in all. In the mix `large`, jobs on whole nodes need most core-hours, in
`arrays` the tasks of arrays do.

Simplified: the scheduler sleeps for `--interval` seconds after each cycle, except in the `--live-minutes` after three
in the afternoon of each day, when it sleeps as long as it chooses itself. With an interval above 15 s the heartbeat may
be twice as old as the interval, and first leases are four intervals. A round of estimates is made in the same thread
every ten minutes, and is no part of a cycle's time. There are no agents, and the watchdog does not run. The store keeps
decisions for `--keep-days`, here 1, so that a week shows whether it grows after that.

Prints JSON, at Ctrl-C that of the days so far. Memory is that of the whole process: scheduler, simulated slurmctld and
the list of jobs.
"""

import argparse
import gc
import json
import resource
import signal
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from profiled_jobs import PAPER_NODE, programs
from world.daemons import Daemon, submission
from world.history import History
from world.kernel import World
from world.ports import ClockOf, Controller, HeartbeatOf, KillSwitchOf, StateOf, stand_ins
from world.slurm import SlurmSite
from world.slurm_jobs import ENDED, USER_IDS, WAITING, Now
from world.slurm_large import LargeSlurm
from world.timed import TimedCalls, TimedScheduler
from world.weeks_jobs import CORES, DAY_S, HOUR_S, MIXES, USERS, asked_of, submissions, user_name

from slurm_sns.cli.live import parts
from slurm_sns.config import configuration
from slurm_sns.log import Outage
from slurm_sns.policies.registry import specification
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.counters import Counters, TimedPolicy, counted
from slurm_sns.scheduler.gate.leases import MOST_PER_S, MOST_URGENT_PER_S
from slurm_sns.scheduler.observation import Observation, TresLimits
from slurm_sns.scheduler.ports import Ports
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.scheduler.start_estimates.estimate_thread import EstimateThread
from slurm_sns.scheduler.start_estimates.estimator import Estimator, rules_of
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.estimates import StoredEstimates
from slurm_sns.store.history import StoredHistory
from slurm_sns.submit import record as records
from slurm_sns.submit.judge import Refuse, judge

MIB = 1 << 20
JOBS_OF_A_NODE = 5
LOAD = 0.9
MEMORY_PER_CPU_MB, MIN_JOB_AGE_S, BF_INTERVAL_S = 2000, 300.0, 60.0
LIVE_H = 15
SAMPLE_S, MINUTE_S = 1800.0, 60.0
ESTIMATES_S = 600.0
#: A node is drained for half an hour, each hour.
DRAINED_S = 1800.0


class WeekTally(History):
    """Counts what happens to the jobs, each task of an array by itself; keeps nothing that grows."""

    def __init__(self, times: World, jobs: int, days: int) -> None:
        super().__init__(times)
        #: How often each job has started and ended, in the order of submission.
        self.starts, self.ends = np.zeros(jobs, np.uint8), np.zeros(jobs, np.uint8)
        self.submitted = 0
        self.refused: Counter[str] = Counter()
        self.starts_by: Counter[str] = Counter()
        self.minutes = np.zeros(days * DAY_S // 60 + 1, np.uint32)
        self.urgent_minutes = np.zeros_like(self.minutes)
        self.lapsed_renewals = 0
        self.ended = 0
        self.first_lease_s = 60
        #: The number of the first task, and how many have not ended, by array id or job id.
        self._numbers: dict[int, list[int]] = {}

    def add(self, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        match kind:
            case "submit":
                tasks = len(data["asked"].get("array") or (0,))
                self._numbers[job] = [self.submitted, tasks]
                self.submitted += tasks
            case "start":
                self.starts[self._number(job, data["now"])] += 1
                self.starts_by[_by_whom(data["now"], data["pinned"])] += 1
            case "end":
                self._end(job, data["now"])
            case "refused":
                self.refused[f"{by}: {data['why']}"] += 1
            case "renew":
                self._renewed(data["was"].begin_s)

    def _number(self, job: int, now: Now) -> int:
        array_id, task = now.array
        return self._numbers[job][0] if array_id is None else self._numbers[array_id][0] + (task or 0)

    def _end(self, job: int, now: Now) -> None:
        self.ends[self._number(job, now)] += 1
        self.ended += 1
        whole = now.array[0] or job
        self._numbers[whole][1] -= 1
        if not self._numbers[whole][1]:
            del self._numbers[whole]

    def _renewed(self, begin_s: int) -> None:
        left_s = begin_s - self._times.wall_s()
        minute = int(self._times.true_s // MINUTE_S)
        (self.urgent_minutes if left_s <= self.first_lease_s else self.minutes)[minute] += 1
        self.lapsed_renewals += left_s <= 0


def _by_whom(now: Now, pinned: bool) -> str:
    """Why a job could start: we placed it, it was never ours or was given to Slurm, or its gate has lapsed."""
    record = records.read(now.admin_comment)
    if record is None:
        return "left to Slurm by its owner"
    if record.is_placed and pinned:
        return "placed"
    return "given to Slurm" if record.is_slurms else "gate lapsed"


class WeekState(StateOf):
    """The State port, which knows these users."""

    limits = TresLimits(of_users={user_name(number): frozenset() for number in range(USERS)})

    def observe(self) -> Observation:
        return replace(super().observe(), tres_limits=self.limits)


class StoredPrograms:
    """The Profiles port: the shipped profiles."""

    def __init__(self) -> None:
        self._programs = programs()

    def load(self) -> Mapping[str, Any]:
        return self._programs


class WeekScheduler(TimedCalls, Daemon):
    """`sns scheduler` (cli/live/daemons.py), without its threads."""

    def __init__(self, controller: Controller, config: configuration.Config) -> None:
        super().__init__(controller, "scheduler", frozenset(config.partitions))
        self._config = config
        self._estimated_s = -ESTIMATES_S
        self.estimates_s: list[float] = []
        self.recent = RecentCycles()
        self.problems: Counter[str] = Counter()

    def log(self, line: str) -> None:
        if "error" in line or "defect" in line or "cannot" in line:
            self.problems[line.split(": ", 1)[-1][:80]] += 1
        super().log(line)

    def _main(self) -> None:
        config, engine = self._config, open_store(self._config.database_url)
        policy, told, clock = config.the_policy(), parts.settings(config), ClockOf(self)
        counters, board = Counters(clock.now(), told.partitions), EstimateBoard()
        ports = Ports(
            state=WeekState(self),
            executor=SlurmExecutor(),
            history=StoredHistory(engine),
            decisions=StoredDecisions(engine, config.store.keep_days, config.store.keep_snapshots),
            profiles=StoredPrograms(),
            heartbeat=HeartbeatOf(self),
            kill_switch=KillSwitchOf(self),
            clock=clock,
            log=self.log,
        )
        ports = counted(ports, counters)
        rules = rules_of(policy)
        assert rules is not None
        estimator = Estimator(rules, told, time.monotonic)
        estimating = EstimateThread(estimator, board, StoredEstimates(engine), clock, Outage(self.log))
        metrics = parts.metrics(config, self.recent, counters, dict, clock)
        publish = parts.publisher(self.recent, metrics, parts.last_day(ports, counters), None)
        loop = TimedScheduler(
            ports,
            TimedPolicy(policy, counters, clock.steady),
            told,
            parts.spread_rules(config, policy, KnownAlternatives()),
            lambda view: self._publish(view, publish, estimating),
            specification=specification(config.policy),
            by_limits=parts.by_limits(estimating, board),
        )
        loop.calls = self
        loop.run(config.scheduler.interval_s, lambda: self.is_stopping, lambda: True)

    def _publish(self, view: View, publish: Any, estimating: EstimateThread) -> None:
        """What follows each cycle, and a round of estimates now and then: outside of the cycle's time."""
        publish(view)
        true_s = self.controller.world.true_s
        if true_s - self._estimated_s >= ESTIMATES_S:
            self._estimated_s, began_s = true_s, time.process_time()
            estimating.round(view.situation, {start.job_id for start in view.plan.starts})
            took_s = time.process_time() - began_s
            self.estimates_s.append(took_s)
            self.outside_s += took_s


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment."""

    at_s: float
    rss_mib: float
    store_mib: float
    known: int
    waiting: int
    running: int
    gated: int
    cores_in_use: float
    """As a part of all."""


class Week:
    """Some simulated days of a site."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.days, self.nodes = given.days, given.nodes
        self.jobs = given.jobs or JOBS_OF_A_NODE * given.nodes * given.days
        self._given = given
        self._rows = submissions(self.jobs, self.days, self.nodes, LOAD, mix=given.mix, seed=given.seed)
        self._at = 0
        self.config = _config(given, folder)
        self._store = Path(folder) / "state"
        self._table = self.config.filter_table()
        self._profiled = sorted(programs())
        self.world = World()
        self.world.random = Random(f"slurm {given.seed}")  # type: ignore[attr-defined]
        self.tally = self.world.history = WeekTally(self.world, self.jobs, self.days)
        self.tally.first_lease_s = self._table.first_lease_s
        names = tuple(f"n{at:05}" for at in range(self.nodes))
        site = SlurmSite(
            dict.fromkeys(names, PAPER_NODE),
            {"main": (names, 1)},
            min_job_age_s=MIN_JOB_AGE_S,
            bf_interval_s=BF_INTERVAL_S,
            memory_per_cpu_mb=MEMORY_PER_CPU_MB,
        )
        self.slurm = self.world.slurm = LargeSlurm(site, self.world)
        self.controller = Controller(
            self.world,
            self.slurm,
            site,
            Random(f"latency {given.seed}"),
            has_library=True,
            quiet_interval_s=self._quiet_s,
        )
        self.scheduler = WeekScheduler(self.controller, self.config)
        self._draw = Random(f"drains {given.seed}")
        self.samples: list[Sample] = []
        self.cycles: list[list[float]] = []
        self.live_gaps_s: list[float] = []
        self.passed = self.cancelled = 0

    def run(self) -> None:
        """Run all days."""
        self.scheduler.start()
        self.world.at(SAMPLE_S, self._sample)
        self.world.at(HOUR_S, self._drain)
        self.world.at(float(self._rows["at_s"][0]), self._submit)
        signal.signal(signal.SIGINT, lambda *_: self.world.end())
        with stand_ins(self.controller):
            self.world.run(self.days * DAY_S)
        assert not self.controller.defects, self.controller.defects

    def _quiet_s(self) -> float:
        """How long the scheduler sleeps at least: until the next live minutes begin at most, and not at all in them."""
        return quiet_s(self.world.true_s, self._given.interval, self._given.live_minutes)

    def _submit(self) -> None:
        """All submissions that are due, and the next one later."""
        rows, slurm = self._rows, self.slurm
        while self._at < len(rows) and rows[self._at]["at_s"] <= self.world.true_s:
            row = rows[self._at]
            self._at += 1
            asked, by = asked_of(row, self._profiled), user_name(int(row["user"]))
            files = self.controller.files
            now_s = int(self.world.wall_s())
            verdict = judge(submission(asked), self._table, now_s, files.beat_in_lua_s(), files.kill_switch)
            assert not isinstance(verdict, Refuse), verdict
            self.passed += asked.get("comment") is None and not hasattr(verdict, "begin_s")
            job_id = slurm.submit(asked, by, verdict)
            if row["cancelled_s"] < self.days * DAY_S:
                self.world.at(
                    self.world.true_s + float(row["cancelled_s"]), lambda who=by, it=job_id: self._cancel(it, who)
                )
        if self._at < len(rows):
            self.world.at(float(rows[self._at]["at_s"]), self._submit)

    def _cancel(self, job_id: int, by: str) -> None:
        job = self.slurm.jobs.get(job_id)
        if job is not None and job.state not in ENDED and job.state != "COMPLETING":
            self.slurm.cancel(job_id, by)
            self.cancelled += 1

    def _drain(self) -> None:
        node = self._draw.choice(list(self.slurm.nodes))
        self.slurm.update_node(node, "drain")
        self.world.at(self.world.true_s + DRAINED_S, lambda: self.slurm.update_node(node, "undrain"))
        self.world.at(self.world.true_s + HOUR_S, self._drain)

    def _sample(self) -> None:
        self.world.at(self.world.true_s + SAMPLE_S, self._sample)
        jobs, view = list(self.slurm.jobs.values()), self.scheduler.recent.view
        now_s = self.world.wall_s()
        day = int((self.world.true_s - 1) // DAY_S)
        while len(self.cycles) <= day:
            self.cycles.append([])
        self.cycles[day] += self.scheduler.cycles_s
        self.scheduler.cycles_s.clear()
        found = Sample(
            self.world.true_s,
            rss_mib(),
            sum(path.stat().st_size for path in self._store.rglob("*") if path.is_file()) / MIB,
            len(jobs),
            sum(len(job.array_tasks) or 1 for job in jobs if job.state == WAITING),
            sum(job.state == "RUNNING" for job in jobs),
            sum(job.state == WAITING and job.begin_s > now_s for job in jobs),
            sum(taken.cores for taken in self.slurm.taken().values()) / (CORES * self.nodes),
        )
        self.samples.append(found)
        sys.stderr.write(
            f"day {found.at_s / DAY_S:5.2f}: {self.tally.submitted:,} submitted, {found.waiting:,} wait, "
            f"{found.running:,} run on {100 * found.cores_in_use:.0f} % of the cores, "
            f"{found.rss_mib:.0f} MiB, store {found.store_mib:.0f} MiB, "
            f"{view.cycles if view else 0:,} cycles, median {1000 * np.median(self.cycles[day] or [0]):.0f} ms, "
            f"{time.process_time():.0f} s\n"
        )

    # --- the result

    def found(self) -> dict[str, Any]:
        """All figures."""
        tally, rows = self.tally, self._rows
        left = {"waiting": self.samples[-1].waiting, "running": self.samples[-1].running}
        ends = tally.ends[: tally.submitted]
        unended = int((ends == 0).sum())
        alive = sum(
            len(job.array_tasks) or 1
            for job in self.slurm.jobs.values()
            if job.state not in ENDED and job.state != "COMPLETING"
        )
        late = tally.minutes[: int(self.world.true_s // MINUTE_S)]
        urgent = tally.urgent_minutes[: len(late)]
        return {
            "days": round(self.world.true_s / DAY_S, 2),
            "nodes": self.nodes,
            "submissions": len(rows),
            "jobs": {
                "submitted": tally.submitted,
                "started": int((tally.starts[: tally.submitted] > 0).sum()),
                "ended": tally.ended,
                "cancelled": self.cancelled,
                "left": left,
                "ended_once": int((ends == 1).sum()),
                "ended_more_than_once": int((ends > 1).sum()),
                "lost": unended - alive,
                "started_more_than_once": int((tally.starts > 1).sum()),
            },
            "starts": dict(tally.starts_by),
            "passed_by_the_filter_unasked": self.passed,
            "refused": dict(tally.refused.most_common(10)),
            "problems_logged": dict(self.scheduler.problems.most_common(10)),
            "renewals_per_minute": {
                "routine": spread(late, MOST_PER_S * 60),
                "urgent": spread(urgent, MOST_URGENT_PER_S * 60),
                "of_lapsed_gates": tally.lapsed_renewals,
                "most_gated": max(each.gated for each in self.samples),
            },
            "days_by_day": [self._day(day) for day in range(len(self.cycles))],
            "memory_slope_mib_per_day": slope(self.samples, "rss_mib"),
            "store_slope_mib_per_day": slope(self.samples, "store_mib"),
            "round_of_estimates_s": of_times(self.scheduler.estimates_s),
            "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }

    def _day(self, day: int) -> dict[str, Any]:
        samples = [each for each in self.samples if day * DAY_S < each.at_s <= (day + 1) * DAY_S]
        return {
            "cycles": len(self.cycles[day]),
            "cycle_s": of_times(self.cycles[day]),
            "most_waiting": max(each.waiting for each in samples),
            "most_known": max(each.known for each in samples),
            "cores_in_use": round(float(np.mean([each.cores_in_use for each in samples])), 3),
            "rss_mib": [round(pick(each.rss_mib for each in samples)) for pick in (min, max)],
            "store_mib": round(samples[-1].store_mib, 1),
        }


def quiet_s(now_s: float, interval_s: float, live_minutes: float) -> float:
    """How long the scheduler is to sleep at least."""
    into_s = (now_s - LIVE_H * HOUR_S) % DAY_S
    if into_s < live_minutes * 60:
        return 0.0
    return min(interval_s, DAY_S - into_s) if live_minutes else interval_s


def spread(minutes: np.ndarray, bound: int) -> dict[str, float]:
    """Mean and most of the counts of minutes, beside what the bound allows."""
    return {"mean": round(float(minutes.mean()), 1), "most": int(minutes.max()), "bound": bound}


def of_times(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and most."""
    if not seconds:
        return {}
    values = np.array(seconds)
    parts_of = {"p50": np.median(values), "p99": np.quantile(values, 0.99), "most": values.max()}
    return {name: round(float(each), 3) for name, each in parts_of.items()}


def slope(samples: Sequence[Sample], name: str) -> float | None:
    """The slope of a straight line through all samples after the first day; None of a single day."""
    later = [each for each in samples if each.at_s > DAY_S]
    if len(later) < 2:
        return None
    values = [getattr(each, name) for each in later]
    return round(float(np.polyfit([each.at_s / DAY_S for each in later], values, 1)[0]), 2)


def rss_mib() -> float:
    """The memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MIB


def _config(given: argparse.Namespace, folder: Path) -> configuration.Config:
    """The shipped defaults for this site; only the policy and what the simplified rhythm needs are other values."""
    for name in ("state", "run", "slurm"):
        (folder / name).mkdir()
    room = {"cores": PAPER_NODE.cores, "memory_mb": PAPER_NODE.memory_mb}
    told = {
        "mode": "enforce",
        "policy": "combined",
        "partitions": ["main"],
        "default_partition": "main",
        "nodes": [
            {
                "names": f"n[00000-{given.nodes - 1:05}]",
                "partitions": ["main"],
                **room,
                "llc_ways": PAPER_NODE.ways,
                "bandwidth_gbps": PAPER_NODE.bandwidth_gbps,
            }
        ],
        "slurm": {"memory_per_cpu_mb": MEMORY_PER_CPU_MB},
        "paths": {f"{name}_dir": str(folder / name) for name in ("state", "run", "slurm")},
        "scheduler": {"heartbeat_timeout_s": max(30, ceil(2 * given.interval))},
        "store": {"keep_days": given.keep_days},
    }
    path = folder / "sns.yaml"
    path.write_text(json.dumps(told), encoding="utf-8")  # JSON is YAML
    return configuration.load(path)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, help="of all days; default: five a day for each node")
    parser.add_argument("--mix", choices=MIXES, default="large")
    parser.add_argument("--interval", type=float, default=300.0)
    parser.add_argument("--live-minutes", type=float, default=1.0)
    parser.add_argument("--keep-days", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="say on stderr what grew in the last half of the time")
    given = parser.parse_args()
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    users = {user_name(number): 3000 + number for number in range(USERS)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(patch.dict(USER_IDS, users))
        week = Week(given, folder)
        parts.warm_up(week.config.the_policy())
        if given.trace:
            trace_growth(week)
        week.run()
        found = week.found()
    found |= {"wall_s": round(time.monotonic() - began_s), "processor_s": round(time.process_time() - began_cpu_s)}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


def trace_growth(week: Week) -> None:
    """Compare what is allocated at the half with what is at the end."""
    snapshots: list[tracemalloc.Snapshot] = []

    def take() -> None:
        gc.collect()
        snapshots.append(tracemalloc.take_snapshot())
        if len(snapshots) > 1:
            for line in snapshots[-1].compare_to(snapshots[0], "lineno")[:25]:
                sys.stderr.write(f"{line}\n")

    tracemalloc.start(1)
    end_s = week.days * DAY_S
    week.world.at(end_s / 2, take)
    week.world.at(end_s - 1, take)


if __name__ == "__main__":
    main()
