"""What a cycle loses where estimates are made beside it: cycles with and without, in turn, on a long queue.

    python tests/benchmarks/estimates.py [--jobs 10000] [--nodes 1000] [--busy 0.9] [--interval 1.0] [--repeat 40]

Prints JSON: the median and the 90th percentile of a cycle's wall-clock seconds, from the values that Slurm shows to the
plan, without and with estimates, and by how many percent the median is longer; how long a round of estimates takes, and
how many there were. A cycle begins every interval, as in the loop, and the thread gets the situation when it ends.
Blocks of cycles with and without take turns, so that other work on the machine meets both alike.
"""

import argparse
import json
import sys
import time
from dataclasses import replace

import numpy as np
from profiled_jobs import PARTITION, SETTINGS, observation_of

from slurm_sns.log import Outage
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.scheduler.loop import uncollected
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.scheduler.start_estimates.estimate_thread import EstimateThread
from slurm_sns.scheduler.start_estimates.estimator import Estimator, NewEvidence

#: So many cycles in a row are with estimates, then as many without.
BLOCK = 5
FIRST_RUNNING = 1_000_000
BEGAN_S = 2_000


def with_running(of: Observation) -> Observation:
    """The same with a running job on each node, which has what is taken there."""
    running = tuple(
        ObservedJob(
            id=FIRST_RUNNING + at,
            user_id=1000 + at % 50,
            submit_s=1,
            state=JobState.RUNNING,
            account=f"account-{at % 20}",
            partitions=(PARTITION,),
            allocated=(node.name,),
            start_s=BEGAN_S,
            end_s=BEGAN_S + 600 * (1 + at % 100),
            walltime_s=600 * (1 + at % 100),
            occupies=node.allocated,
        )
        for at, node in enumerate(of.nodes)
    )
    return replace(of, jobs=(*of.jobs, *running))


class TimedEstimator(Estimator):
    """Writes down how long its rounds take."""

    def __init__(self, *arguments, **named) -> None:
        """As `Estimator`."""
        super().__init__(*arguments, **named)
        self.took_s: list[float] = []

    def round(self, situation, starting) -> NewEvidence:
        """One round, timed."""
        began_s = time.perf_counter()
        learnt = super().round(situation, starting)
        self.took_s.append(time.perf_counter() - began_s)
        return learnt


class NoStore:
    """Keeps nothing."""

    def save(self, runs, starts) -> None:
        """Keep nothing."""


class WallClock:
    """The time."""

    now, steady = staticmethod(time.time), staticmethod(time.monotonic)


def measured(jobs: int, nodes: int, busy: float, interval_s: float, repeat: int) -> dict:
    """Cycles with and without estimates."""
    policy = max_jobs()
    observation = with_running(observation_of(jobs, nodes, busy, seed=1))

    def cycle(now_s: float) -> tuple[Situation, set[int]]:
        situation = read_situation(observation, {}, SETTINGS, now_s)
        return situation, {start.job_id for start in policy.plan(situation.snapshot).starts}

    estimator = TimedEstimator(policy.rules, SETTINGS, time.monotonic)
    cycle(BEGAN_S + jobs)
    estimator.round(*cycle(BEGAN_S + jobs))  # compiles
    estimator.took_s.clear()
    times: dict[bool, list[float]] = {False: [], True: []}
    with EstimateThread(estimator, EstimateBoard(), NoStore(), WallClock(), Outage(print)) as thread:
        for at in range(2 * repeat):
            shows = at // BLOCK % 2 == 1
            began_s = time.perf_counter()
            with uncollected():
                seen = cycle(BEGAN_S + jobs + at)
            times[shows].append(time.perf_counter() - began_s)
            if shows:
                thread.show(*seen)
            time.sleep(max(0.0, interval_s - (time.perf_counter() - began_s)))
    without, beside = (np.array(times[each][1:]) for each in (False, True))
    return {
        "without": {
            "median_s": round(float(np.median(without)), 4),
            "p90_s": round(float(np.quantile(without, 0.9)), 4),
        },
        "with": {"median_s": round(float(np.median(beside)), 4), "p90_s": round(float(np.quantile(beside, 0.9)), 4)},
        "longer_percent": round(100 * float(np.median(beside) / np.median(without) - 1), 1),
        "rounds": len(estimator.took_s),
        "round_median_s": round(float(np.median(estimator.took_s)), 4),
        "round_most_s": round(max(estimator.took_s), 4),
        "estimated": len(estimator.now.of),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--busy", type=float, default=0.9)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=40)
    given = parser.parse_args()
    found = measured(given.jobs, given.nodes, given.busy, given.interval, given.repeat)
    sys.stdout.write(
        json.dumps({"jobs": given.jobs, "nodes": given.nodes, "busy": given.busy, **found}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
