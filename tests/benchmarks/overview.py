"""What the overview of `sns top` and `sns web` costs the scheduler, beside a cycle on the same jobs and nodes.

    python tests/benchmarks/overview.py [--jobs 10000] [--nodes 1000] [--repeat 7]

All jobs wait, and each node runs one that takes most of it. Prints JSON: `made` is the overview as Python values,
`encoded` its JSON for an admin and `for_user` that for the owner of a fiftieth of the jobs, `publish` what each cycle
pays for the last day's curves while no moment is due. `cycle` is the baseline: look and plan, without Slurm. Processor
seconds, median and p99. `each_s` is how often it is made anew if it may take 2 % of the time.
"""

import argparse
import json
import resource
import sys
from dataclasses import replace

from live_cycle import measured
from profiled_jobs import PARTITION, SETTINGS, observation_of, running_jobs

from slurm_sns.log import Outage
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.last_day import LastDay
from slurm_sns.scheduler.answers.overview import MOST_OF_TIME, SharedOverview
from slurm_sns.scheduler.answers.redaction import for_user
from slurm_sns.scheduler.answers.view import View
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.start_estimates.board import EstimateBoard


class Forgets:
    """A store that keeps nothing."""

    def load_memory(self, _policy: str) -> None:
        """Nothing."""

    def save(self, *_: object) -> None:
        """Nothing."""


def figures(jobs: int, nodes: int, repeat: int) -> dict:
    """What is printed."""
    waiting = observation_of(jobs, nodes, 0.9, seed=1)
    observation = replace(waiting, jobs=(*waiting.jobs, *running_jobs(nodes, first=jobs + 1)))
    policy = max_jobs(MatchingParameters(queue_depth=max(jobs, 1)))

    def look() -> Situation:
        return read_situation(observation, {}, replace(SETTINGS, partitions=frozenset({PARTITION})), jobs)

    situation = look()
    view = View(jobs, 0.1, "enforce", False, 1, 0, 0, situation, policy.plan(situation.snapshot))
    shared = SharedOverview(SETTINGS, EstimateBoard(), list, interval_s=1.0)
    day = LastDay(Forgets(), list, Outage(sys.stderr.write))
    day.publish(view)
    whole = shared._made(view)
    user = whole["jobs"][0]["user"]
    found = {
        "jobs": len(whole["jobs"]),
        "nodes": len(whole["nodes"]),
        "answer_mb": round(len(json.dumps(whole)) / 1e6, 2),
        "made": measured(lambda: shared._made(view), repeat),
        "encoded": measured(lambda: json.dumps(whole), repeat),
        "for_user": measured(lambda: json.dumps(for_user(whole, user)), repeat),
        "publish": measured(lambda: day.publish(view), repeat),
        "cycle": measured(lambda: policy.plan(look().snapshot), repeat),
    }
    cost_s = found["made"]["cpu_median_s"] + found["encoded"]["cpu_median_s"]
    return {
        **found,
        "each_s": round(cost_s / MOST_OF_TIME, 1),
        "made_and_encoded_to_cycle": round(cost_s / found["cycle"]["cpu_median_s"], 3),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(figures(given.jobs, given.nodes, given.repeat), indent=2) + "\n")


if __name__ == "__main__":
    main()
