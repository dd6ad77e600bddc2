"""What each question to the scheduler costs it, how that grows with the queue, and what 20 watching users cost a cycle.

    python tests/benchmarks/questions.py [--jobs 10000 100000] [--nodes 10000] [--repeat 7] [--quick]

All jobs wait, of 50 users, and each node runs one more. The questions are those of `sns status`, `queue`, `explain`,
`wait`, `try`, `seff`, `profile`, `release`, of `sns top` and `sns web` (overview) and of the exporter (metrics), by the
owner of a fiftieth of the jobs, and by an admin where the answer differs. Each finds the view of a new cycle, as if it
were the first after that cycle.

Prints JSON. For each question: seconds from the question to the encoded answer, median and p99, processor seconds,
bytes of the answer, MiB by which memory rose, and the share of one cycle's processor time (`to_cycle`). `cycle` is look
and plan, without Slurm. `watched`: the time of cycles, one a second, while nobody asks, while 20 users run
`sns queue --watch`, and while one admin does. `exponents`: of processor time and bytes over the number of jobs.
"""

import argparse
import json
import math
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from live_cycle import measured
from profiled_jobs import PAPER_NODE, PARTITION, SETTINGS, observation_of, programs, running_jobs

from slurm_sns.cli.live.asking import WATCH_SECONDS
from slurm_sns.json_text import encoded
from slurm_sns.model import Plan
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.scheduler.answers.metrics import MetricsAnswers
from slurm_sns.scheduler.answers.overview import SharedOverview
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.trying import SubmissionRules
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.counters import Counters
from slurm_sns.scheduler.loop import uncollected
from slurm_sns.scheduler.observation import Observation
from slurm_sns.scheduler.ports import MeasuredRun
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.measured_runs import StoredMeasurements
from slurm_sns.submit.table import FilterTable, NodeShape
from slurm_sns.wire.values import RunId

ADMIN, USER = 0, 1007
WATCHERS = 20
#: Cycles in which one job each is placed before `placed`: those that `sns seff` plans again.
RECORDED = 3
#: Jobs whose measurements one question of `sns seff` asks for.
MEASURED = 300
#: The settings of a site whose queue is planned as a whole.
TOLD = replace(SETTINGS, partitions=frozenset({PARTITION}))


class Cluster:
    """One cycle on a full queue, with everything that answers questions about it. `folder` gets the database."""

    def __init__(self, jobs: int, nodes: int, folder: Path) -> None:
        waiting = observation_of(jobs, nodes, 0.9, seed=1)
        running = running_jobs(nodes, first=jobs + 1)
        self.observation: Observation = replace(waiting, jobs=(*waiting.jobs, *running))
        self.policy: Portfolio = max_jobs(MatchingParameters(queue_depth=jobs))
        self.now_s = float(jobs)
        situation, plan = self.cycle()
        self.view = View(self.now_s, 0.1, "enforce", False, 1, 0, 0, situation, plan, programs=programs())
        self.placed = next(each for each in plan.starts if situation.jobs[each.job_id].user_id == USER)
        own = [job.id for job in situation.snapshot.waiting if situation.jobs[job.id].user_id == USER]
        self.last, self.running = own[-1], next(job.id for job in running if job.user_id == USER)
        engine = open_store(f"sqlite:///{folder}/{jobs}.db")
        self.recent = RecentCycles()
        self.answers = self._answers(StoredDecisions(engine, 365, 100), StoredMeasurements(engine, 365), nodes)

    def cycle(self) -> tuple[Situation, Plan]:
        """Look and plan."""
        situation = read_situation(self.observation, {}, TOLD, self.now_s)
        return situation, self.policy.plan(situation.snapshot)

    def publish(self) -> None:
        """A cycle has ended that changed nothing."""
        self.recent.publish(replace(self.view))

    def _answers(self, decisions: StoredDecisions, measurements: StoredMeasurements, nodes: int) -> Answers:
        """As `sns scheduler` makes it, with a few recorded cycles, the last of which placed `placed`."""
        others = [each for each in self.view.plan.starts if each is not self.placed][:RECORDED]
        for at, start in enumerate([*others, self.placed]):
            plan = replace(self.view.plan, actions=(start,))
            owners = {start.job_id: self.view.situation.jobs[start.job_id].user_id}
            decisions.record(
                self.now_s + at, self.view.situation.snapshot, plan, {}, owners=owners, explanations={}, tasks={}
            )
        measurements.record(
            [MeasuredRun(RunId(job, 0), "n00000", USER, 1.0, 2, 4, 60.0, 1.0, 5.0) for job in range(MEASURED)], 1.0
        )
        counters, moments = Counters(0.0, {PARTITION}), count(0.0, 1e6)
        metrics = MetricsAnswers(
            self.recent, counters, TOLD, dict, lambda: self.view.at_s, policy="max-jobs", interval_s=1.0
        )
        board = EstimateBoard()
        # An overview that may always be made anew: an hour lies between two questions.
        overview = SharedOverview(TOLD, board, list, interval_s=1.0, now_s=lambda: next(moments))
        shape = NodeShape(PAPER_NODE.cores, PAPER_NODE.cores, PAPER_NODE.memory_mb, nodes)
        table = FilterTable("enforce", {PARTITION: (shape,)}, PARTITION, ("mix-fit",), 1000, "", 15, "")
        return Answers(
            self.recent,
            decisions,
            self.policy,
            frozenset({ADMIN}),
            settings=TOLD,
            asked=set(),
            board=board,
            rules=SubmissionRules(table),
            measurements=measurements,
            metrics=metrics.answer,
            overview=overview.answer,
        )


def questions(cluster: Cluster) -> dict[str, tuple[int, dict[str, Any]]]:
    """Who asks what."""
    status, queue, overview = ({"command": name} for name in ("status", "queue", "overview"))
    options = {"ntasks": "16", "mem-per-cpu": "4G", "time": "60"}
    seff = {"command": "smaller-request", "job_id": cluster.placed.job_id, "memory_mb": 512}
    return {
        "status": (USER, status),
        "status of an admin": (ADMIN, status),
        "queue": (USER, queue),
        "queue of an admin": (ADMIN, queue),
        "overview": (USER, overview),
        "overview of an admin": (ADMIN, overview),
        "explain, waiting": (USER, {"command": "explain", "job_id": cluster.last}),
        "explain, running": (USER, {"command": "explain", "job_id": cluster.running}),
        "wait": (USER, {"command": "job", "job_id": cluster.last}),
        "try": (USER, {"command": "try", "options": options}),
        "seff, measured": (USER, {"command": "measured", "job_ids": [*range(MEASURED)]}),
        "seff, smaller request": (USER, seff),
        "profile list": (USER, {"command": "profile"}),
        "release": (USER, {"command": "release", "job_id": cluster.last}),
        "metrics": (ADMIN, {"command": "metrics"}),
    }


def of_question(cluster: Cluster, user: int, request: dict[str, Any], repeat: int) -> dict[str, float]:
    """Measure one question."""

    def ask() -> bytes:
        return encoded(cluster.answers.answer(request, user)).encode()

    seconds, own_seconds, risen_mb, answer = [], [], 0.0, b""
    for _ in range(repeat):
        cluster.publish()
        before_mb = _memory_mb(reset=True)
        began, own_began = time.perf_counter(), time.process_time()
        answer = ask()
        seconds.append(time.perf_counter() - began)
        own_seconds.append(time.process_time() - own_began)
        risen_mb = max(risen_mb, _memory_mb() - before_mb)
    return {
        "median_s": round(float(np.median(seconds)), 4),
        "p99_s": round(float(np.percentile(seconds, 99)), 4),
        "cpu_median_s": round(float(np.median(own_seconds)), 5),
        "answer_bytes": len(answer),
        "risen_mb": round(risen_mb, 1),
    }


def _memory_mb(*, reset: bool = False) -> float:
    """The most memory that this process has had since the last reset; of a reset itself, what it has now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return int(status.split()[0]) / 1024


@contextmanager
def watching(cluster: Cluster, users: list[int], spent: list[float]) -> Iterator[None]:
    """Each of these users runs `sns queue --watch` meanwhile; `spent` gets the seconds of each answer."""
    ends = threading.Event()

    def watch(user: int, begins_s: float) -> None:
        ends.wait(begins_s)
        while not ends.is_set():
            began = time.perf_counter()
            encoded(cluster.answers.answer({"command": "queue"}, user)).encode()
            spent.append(time.perf_counter() - began)
            ends.wait(WATCH_SECONDS)

    threads = [
        threading.Thread(target=watch, args=(user, at * WATCH_SECONDS / len(users))) for at, user in enumerate(users)
    ]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ends.set()
        for each in threads:
            each.join()


def of_cycles(cluster: Cluster, users: list[int], cycles: int) -> dict[str, float]:
    """The time of cycles, at most one a second, while these users watch their queue."""
    seconds: list[float] = []
    spent: list[float] = []
    with watching(cluster, users, spent):
        for _ in range(cycles):
            began = time.perf_counter()
            with uncollected():
                cluster.cycle()
            seconds.append(time.perf_counter() - began)
            cluster.publish()
            time.sleep(max(0.0, 1.0 - seconds[-1]))
    found = {
        "median_s": round(float(np.median(seconds)), 3),
        "p99_s": round(float(np.percentile(seconds, 99)), 3),
    }
    if spent:
        found |= {"answers": len(spent), "answer_median_s": round(float(np.median(spent)), 3)}
    return found


def figures(jobs: int, nodes: int, repeat: int, folder: Path) -> dict[str, Any]:
    """All figures of one size."""
    cluster = Cluster(jobs, nodes, folder)
    cycle = measured(cluster.cycle, repeat)
    asked = {name: of_question(cluster, *each, repeat) for name, each in questions(cluster).items()}
    for each in asked.values():
        each["to_cycle"] = round(each["cpu_median_s"] / cycle["cpu_median_s"], 4)
    watchers = {"nobody": [], "20 users": [*range(USER, USER + WATCHERS)], "an admin": [ADMIN]}
    return {
        "cycle": cycle,
        "questions": asked,
        "watched": {who: of_cycles(cluster, users, 3 * repeat) for who, users in watchers.items()},
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def exponents(by_jobs: Mapping[int, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The exponents of processor time and bytes between the least and the largest queue."""
    few, many = min(by_jobs), max(by_jobs)

    def of(value: Callable[[dict[str, Any]], float]) -> float:
        return round(math.log(value(by_jobs[many]) / value(by_jobs[few])) / math.log(many / few), 2)

    found = {"cycle": {"cpu": of(lambda size: size["cycle"]["cpu_median_s"])}}
    for name in by_jobs[few]["questions"]:
        found[name] = {
            "cpu": of(lambda size, name=name: size["questions"][name]["cpu_median_s"]),
            "bytes": of(lambda size, name=name: size["questions"][name]["answer_bytes"]),
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="1,000 and 4,000 jobs on 500 nodes, three times each")
    given = parser.parse_args()
    sizes, nodes, repeat = ([1000, 4000], 500, 3) if given.quick else (given.jobs, given.nodes, given.repeat)
    with tempfile.TemporaryDirectory() as folder:
        by_jobs = {jobs: figures(jobs, nodes, repeat, Path(folder)) for jobs in sorted(set(sizes))}
    found: dict[str, Any] = {"nodes": nodes, "jobs": by_jobs}
    if len(by_jobs) > 1:
        found["exponents"] = exponents(by_jobs)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
