"""10,000 held jobs placed by us, beside Slurm's own scheduler starting the same jobs on the same controller.

    PYTHONPATH=containers python tests/benchmarks/placement.py [--jobs 10000] [--repeat 3]

Brings up the controller of a thousand nodes, anew for each measurement: nothing is left of the one before, no ended
jobs that slurmctld deletes meanwhile and no closed connections that take up ports for a minute. Prints JSON.
Ours: from the first update of a job until the last one is allocated, by the running scheduler. Slurm's: from the
opening of the partition, in which the same jobs wait, until the last one is allocated; with the settings that
`sns render` writes, as ours, and with those that are best for it.
`ratio` is Slurm's time by ours with the same settings, `ratio_to_best` that with the better of the two: 1 is as fast.
`cpu_s` says who used the processors for how long.
"""

import argparse
import json
import statistics
import sys
from typing import Any

from thousand import Thousand, thousand

#: One pass over the whole queue, without a limit on its time: seen to be Slurm's fastest way through such a queue.
BEST_FOR_SLURM = (
    "batch_sched_delay=1,sched_interval=1,sched_min_interval=1000,default_queue_depth=20000,max_sched_time=60"
)
BY_SLURM = ("slurm_as_rendered", "slurm_at_its_best")
FRAGMENT = "/etc/slurm/sns/slurm.conf"
FILLERS = 3


def use(cluster: Thousand, parameters: str | None) -> None:
    """Run slurmctld with these SchedulerParameters; None: as rendered."""
    cluster.run("sns render /etc/slurm/sns")
    if parameters:
        # The mark in the first line goes too, or the next `sns render` would find its own file changed.
        cluster.run(f"sed -i 's/^SchedulerParameters=.*/SchedulerParameters={parameters}/' {FRAGMENT}")
    # The answer to a reconfiguration of a busy slurmctld may be late: what counts is that it is there again.
    cluster.run("scontrol reconfigure || true; until scontrol ping | grep -q UP; do sleep 0.2; done")


def fill(cluster: Thousand, jobs: int) -> int:
    """So many jobs wait in the closed partition."""
    cluster.run("scontrol update partition=main state=DOWN")
    fillers = [cluster.background(f"sns-load fill {jobs // FILLERS} small") for _ in range(FILLERS)]
    for each in fillers:
        each.wait()
    return jobs // FILLERS * FILLERS


def by_slurm(jobs: int, parameters: str | None) -> dict[str, Any]:
    """Slurm starts them; our scheduler does not run and takes nothing of the machine."""
    with thousand(anew=True) as cluster:
        use(cluster, parameters)
        count = fill(cluster, jobs)
        return cluster.load("start", count) | {"jobs": count}


def by_us(jobs: int) -> dict[str, Any]:
    """We place them."""
    with thousand(anew=True) as cluster:
        use(cluster, None)
        cluster.start_scheduler()
        count = fill(cluster, jobs)
        held = cluster.load("look")["held"]
        return cluster.load("watch", held) | {"jobs": held, "passed_through": count - held}


def rate(result: dict[str, Any]) -> float:
    """Jobs in a second."""
    return float(result["jobs"] / result["took_s"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    for _ in range(given.repeat):
        found: dict[str, Any] = {}
        for name, run in (
            ("slurm_as_rendered", lambda: by_slurm(given.jobs, None)),
            ("slurm_at_its_best", lambda: by_slurm(given.jobs, BEST_FOR_SLURM)),
            ("ours", lambda: by_us(given.jobs)),
        ):
            found[name] = run()
            sys.stderr.write(f"{name}: {json.dumps(found[name])}\n")
        as_rendered, at_its_best = (rate(found[name]) for name in BY_SLURM)
        found["ratio"] = round(rate(found["ours"]) / as_rendered, 3)
        found["ratio_to_best"] = round(rate(found["ours"]) / max(as_rendered, at_its_best), 3)
        rounds.append(found)
    result = {
        "jobs": given.jobs,
        "ratio": statistics.median(each["ratio"] for each in rounds),
        "ratio_to_best": statistics.median(each["ratio_to_best"] for each in rounds),
        "ours_per_s": round(statistics.median(rate(each["ours"]) for each in rounds)),
        "slurm_per_s": {name: round(statistics.median(rate(each[name]) for each in rounds)) for name in BY_SLURM},
        "rounds": rounds,
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
