"""The time to place 10,000 gated jobs, compared with Slurm's own scheduler starting the same jobs.

    PYTHONPATH=containers python tests/benchmarks/placement.py [--jobs 10000] [--repeat 3] [--array]

Brings up a new controller of a thousand nodes for each measurement: then slurmctld has no ended jobs to delete, and no
closed connections occupy ports for a minute. Prints JSON.
Our time is from the first update of a job until the last one is allocated, by the running scheduler. Slurm's time is
from the opening of the partition in which the same jobs wait until the last one is allocated. It is measured with the
settings that `sns render` writes, which ours also uses, and with those that are best for Slurm.
With `--array` the jobs are the tasks of one array, each of one core.
`ratio` is Slurm's time divided by ours with the same settings, `ratio_to_best` the better of Slurm's two times divided
by ours; 1 means equally fast. `cpu_s` is the processor time of each process.
"""

import argparse
import json
import statistics
import sys
from typing import Any

from thousand import Thousand, thousand

#: One pass over the whole queue without a limit on its time: these settings were measured to be Slurm's fastest here.
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
        # The mark in the first line is removed, too: otherwise the next `sns render` would find its own file changed.
        cluster.run(f"sed -i 's/^SchedulerParameters=.*/SchedulerParameters={parameters}/' {FRAGMENT}")
    # A busy slurmctld may answer too late to a reconfiguration; it is enough that it is up again.
    cluster.run("scontrol reconfigure || true; until scontrol ping | grep -q UP; do sleep 0.2; done")


def fill(cluster: Thousand, jobs: int, *, is_array: bool) -> int:
    """Submit the jobs to a closed partition, where they wait."""
    cluster.run("scontrol update partition=main state=DOWN")
    if is_array:
        return int(cluster.load("array", jobs)["submitted"])
    fillers = [cluster.background(f"sns-load fill {jobs // FILLERS} small") for _ in range(FILLERS)]
    for each in fillers:
        each.wait()
    return jobs // FILLERS * FILLERS


def by_slurm(jobs: int, parameters: str | None, *, is_array: bool) -> dict[str, Any]:
    """Measure Slurm alone; our scheduler does not run, so it uses no processor time."""
    with thousand(anew=True) as cluster:
        use(cluster, parameters)
        count = fill(cluster, jobs, is_array=is_array)
        return cluster.load("start", count) | {"jobs": count}


def by_us(jobs: int, *, is_array: bool) -> dict[str, Any]:
    """Measure our scheduler."""
    with thousand(anew=True) as cluster:
        use(cluster, None)
        cluster.start_scheduler()
        count = fill(cluster, jobs, is_array=is_array)
        gated = cluster.load("look")["gated"]
        if is_array:  # one record of all tasks
            gated *= count
        return cluster.load("watch", gated) | {"jobs": gated, "passed_through": count - gated}


def rate(result: dict[str, Any]) -> float:
    """Jobs per second."""
    return float(result["jobs"] / result["took_s"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--array", action="store_true", help="one array of so many tasks")
    given = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    for _ in range(given.repeat):
        found: dict[str, Any] = {}
        for name, run in (
            ("slurm_as_rendered", lambda: by_slurm(given.jobs, None, is_array=given.array)),
            ("slurm_at_its_best", lambda: by_slurm(given.jobs, BEST_FOR_SLURM, is_array=given.array)),
            ("ours", lambda: by_us(given.jobs, is_array=given.array)),
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
