"""10,000 held jobs on a thousand nodes for ten minutes, while jobs are submitted, are cancelled and end.

    PYTHONPATH=containers python tests/benchmarks/load.py [--minutes 10] [--held 10000] [--plot FILE.png]

Brings up the controller of a thousand nodes (containers/cluster.sh thousand). Prints JSON: the scheduler's memory over
time and its slope, the time of cycles, the rate of RPCs, Slurm's own statistics before and after.
"""

import argparse
import json
import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np

from thousand import Thousand, thousand

SAMPLE_S = 5.0
#: Caches and memory pools fill in this first part of the run; the slope is computed from the rest.
WARM_UP = 0.2


def samples_of(cluster: Thousand, until_s: float) -> list[dict[str, Any]]:
    """The scheduler's status, sampled every few seconds."""
    found, began_s = [], time.monotonic()
    while time.monotonic() < until_s:
        status = cluster.status()
        keys = ("cycle_s", "cycle_p50_s", "cycle_p99_s", "cycles", "placed", "waiting", "placing", "running")
        found.append(
            {"at_s": round(time.monotonic() - began_s, 1), "rss_kb": cluster.resident_kb()}
            | {key: status[key] for key in keys}
        )
        time.sleep(SAMPLE_S)
    return found


def statistics(cluster: Thousand) -> dict[str, Any]:
    """Slurm's statistics (sdiag): its own cycle, and the RPCs by type."""
    text = cluster.run("sdiag --json")
    told = json.loads(text)["statistics"]
    rpcs = {each["message_type"]: each["count"] for each in told["rpcs_by_message_type"]}
    keys = ("schedule_cycle_mean", "schedule_cycle_max", "schedule_cycle_last", "jobs_submitted", "jobs_started")
    keys += ("jobs_canceled", "server_thread_count")
    return {key: told.get(key) for key in keys} | {"rpcs": dict(sorted(rpcs.items(), key=lambda item: -item[1])[:12])}


def slope_kb_per_min(samples: list[dict[str, Any]]) -> float:
    """The slope of the memory after the warm-up, by least squares."""
    later = [each for each in samples if each["at_s"] >= WARM_UP * samples[-1]["at_s"]]
    return round(60 * float(np.polyfit([each["at_s"] for each in later], [each["rss_kb"] for each in later], 1)[0]), 1)


def measure(cluster: Thousand, minutes: float, held: int) -> dict[str, Any]:
    """Submit the held jobs, and sample the scheduler while other jobs come and go."""
    if not cluster.answers():
        cluster.start_scheduler()
    missing = max(0, held - cluster.load("look")["pending"])
    fillers = [cluster.background(f"sns-load fill {missing // 3 + number} large") for number in range(3)]
    for each in fillers:
        each.wait()
    before, began_s = statistics(cluster), time.monotonic()
    churn = cluster.background(f"sns-load churn {60 * minutes} {held}")
    samples = samples_of(cluster, began_s + 60 * minutes)
    did = json.loads(churn.communicate()[0])
    took_s, after = time.monotonic() - began_s, statistics(cluster)
    cycles = [each["cycle_s"] for each in samples]
    rpcs = {name: after["rpcs"][name] - before["rpcs"].get(name, 0) for name in after["rpcs"]}
    return {
        "minutes": minutes,
        "held": held,
        "churn": did,
        "placed": samples[-1]["placed"] - samples[0]["placed"],
        "cycles": samples[-1]["cycles"] - samples[0]["cycles"],
        "cycle_s": {
            "p50": round(float(np.percentile(cycles, 50)), 3),
            "p99": round(float(np.percentile(cycles, 99)), 3),
            "p50_of_scheduler": samples[-1]["cycle_p50_s"],
            "p99_of_scheduler": samples[-1]["cycle_p99_s"],
        },
        "rss_mb": {
            "first": round(samples[0]["rss_kb"] / 1024),
            "last": round(samples[-1]["rss_kb"] / 1024),
            "most": round(max(each["rss_kb"] for each in samples) / 1024),
            "slope_kb_per_min": slope_kb_per_min(samples),
        },
        "rpcs_per_s": {name: round(count / took_s, 2) for name, count in rpcs.items() if count},
        "longest_without_a_cycle_s": round(
            max((b["at_s"] - a["at_s"] for a, b in pairwise(samples) if b["cycles"] == a["cycles"]), default=0.0), 1
        ),
        "sdiag": {"before": before, "after": after},
        "at_the_end": cluster.load("look"),
        "samples": samples,
    }


def plot(result: dict[str, Any], path: str) -> None:
    """Plot the time of a cycle and the memory over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    at_min = [each["at_s"] / 60 for each in result["samples"]]
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    above.plot(at_min, [each["cycle_s"] for each in result["samples"]], ".-", linewidth=0.8)
    above.set_ylabel("cycle, s")
    above.set_ylim(bottom=0)
    below.plot(at_min, [each["rss_kb"] / 1024 for each in result["samples"]], ".-", linewidth=0.8)
    below.set_ylabel("memory (RSS), MiB")
    below.set_ylim(bottom=0)
    below.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--held", type=int, default=10_000)
    parser.add_argument("--plot", help="where to draw the time of a cycle and the memory")
    given = parser.parse_args()
    with thousand() as cluster:
        result = measure(cluster, given.minutes, given.held)
    if given.plot:
        plot(result, given.plot)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
