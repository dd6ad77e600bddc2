"""10,000 gated jobs on a thousand nodes for ten minutes, while jobs are submitted, are cancelled and end.

    PYTHONPATH=containers python tests/benchmarks/load.py [--minutes 10] [--waiting 10000] [--plot FILE.png]
    PYTHONPATH=containers python tests/benchmarks/load.py --nodes 10000 --waiting 100000 --submitters 200 --spare
    SNS_ACCOUNTING=1 PYTHONPATH=containers python tests/benchmarks/load.py --still 60 --minutes 0 --slurmdbd-away 5

Brings up the controller of a thousand nodes (containers/cluster.sh thousand). Prints JSON: the scheduler's memory over
time and its slope, the time of cycles, the rate of RPCs and of renewals, the processor time of slurmctld, Slurm's own
statistics before and after. With --still there are so many minutes before that in which no job comes or ends; with
--slurmdbd-away the slurmdbd of the mini cluster, which must be up, is stopped so long in the middle of these. With
--spare slurmctld makes no table of all jobs for the filter (docs/admins/install.md, tens of thousands of jobs).
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.scheduler.gate.leases import MOST_PER_S
from thousand import Thousand, thousand

SAMPLE_S = 5.0
#: What is measured, in this order.
PHASES = ("still", "churn")
#: How long users' commands are measured, each time.
USERS_S = 60.0
#: Caches and memory pools fill in this first part of the run; the slope is computed from the rest.
WARM_UP = 0.2


class Queue(NamedTuple):
    """So many jobs wait. They are those of `submitters` users, the nth of whom has 1/n as many as the first."""

    waiting: int
    submitters: int

    def churn(self, seconds: float) -> str:
        """The command that lets jobs come and end for so long."""
        return f"sns-load churn {seconds} {self.waiting} {self.submitters}"


def samples_of(cluster: Thousand, until_s: float) -> list[dict[str, Any]]:
    """The scheduler's status, sampled every few seconds."""
    found, began_s = [], time.monotonic()
    while time.monotonic() < until_s:
        status = cluster.status()
        keys = ("cycle_s", "cycle_p50_s", "cycle_p99_s", "cycles", "placed", "waiting", "placing", "running")
        found.append(
            {"at_s": round(time.monotonic() - began_s, 1), "rss_kb": cluster.resident_kb()}
            | {key: status[key] for key in keys}
            | {f"gates_{key}": value for key, value in status["gates"].items()}
            | slurmctld(cluster)
        )
        time.sleep(SAMPLE_S)
    return found


def slurmctld(cluster: Thousand) -> dict[str, float]:
    """The processor time that slurmctld has used so far, its memory, and the messages that it keeps for slurmdbd."""
    told = cluster.run(
        "pid=$(cat /run/slurm/slurmctld.pid); awk '{print $14 + $15}' /proc/$pid/stat; "
        "awk '/^VmRSS/ {print $2}' /proc/$pid/status; sdiag | awk -F: '/DBD Agent queue size/ {print $2}'"
    )
    ticks, rss_kb, queue = map(float, told.split())
    return {"slurmctld_cpu_s": ticks / os.sysconf("SC_CLK_TCK"), "slurmctld_rss_kb": rss_kb, "slurmdbd_queue": queue}


def stop_slurmdbd(after_s: float, seconds: float) -> None:
    """Stop the mini cluster's slurmdbd after a while, for so long."""
    docker = os.environ.get("DOCKER_COMMAND", "docker").split()
    name = f"{os.environ.get('SNS_PROJECT', 'slurm-sns')}-dbd"
    time.sleep(after_s)
    subprocess.run([*docker, "stop", name], check=True, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    subprocess.run([*docker, "start", name], check=True, stdout=subprocess.DEVNULL)


def statistics(cluster: Thousand) -> dict[str, Any]:
    """Slurm's statistics (sdiag): its own cycle, and the RPCs by type."""
    text = cluster.run("sdiag --json")
    told = json.loads(text)["statistics"]
    rpcs = {each["message_type"]: each["count"] for each in told["rpcs_by_message_type"]}
    took_s = {each["message_type"]: each["total_time"] / 1e6 for each in told["rpcs_by_message_type"]}
    keys = ("schedule_cycle_mean", "schedule_cycle_max", "schedule_cycle_last")
    jobs = ("jobs_submitted", "jobs_started", "jobs_canceled", "server_thread_count")
    most = dict(sorted(rpcs.items(), key=lambda item: -item[1])[:12])
    return {key: told.get(key) for key in keys + jobs} | {"rpcs": most, "rpcs_took_s": took_s}


def slope_kb_per_min(samples: list[dict[str, Any]]) -> float:
    """The slope of the memory after the warm-up, by least squares."""
    later = [each for each in samples if each["at_s"] >= WARM_UP * samples[-1]["at_s"]]
    return round(60 * float(np.polyfit([each["at_s"] for each in later], [each["rss_kb"] for each in later], 1)[0]), 1)


@contextmanager
def few_nodes(cluster: Thousand) -> Iterator[None]:
    """Leave the partition ten nodes for a while: slurmctld tries each job on all nodes when it is submitted."""
    cluster.run("scontrol update PartitionName=main Nodes=n[0001-0010]")
    yield
    cluster.run("scontrol update PartitionName=main Nodes=ALL")


def wait_until_placed(cluster: Thousand) -> None:
    """Wait for two cycles, of which the second began after the nodes came back, and until Slurm has started all."""
    last = cluster.status()["cycles"] + 2

    def is_over() -> bool:
        status = cluster.status()
        return status["cycles"] >= last and not status["placing"]

    cluster.wait_for("all are placed that can be", is_over, timeout_s=900)


def wait_until_renewed(cluster: Thousand) -> None:
    """Wait until the first leases of the jobs that came at once are renewed."""
    cluster.wait_for(
        "first leases are renewed",
        lambda: cluster.status()["gates"]["renewed_per_minute"] <= 60 * MOST_PER_S,
        timeout_s=900,
    )


def beside_users(cluster: Thousand, seconds: float, queue: Queue) -> dict[str, Any]:
    """How long users' commands take, and slurmctld's processor time meanwhile: with us, and without us.

    Slurm alone has no job_submit/lua either, which makes a table of all jobs for our filter before a submission.
    """
    found: dict[str, Any] = {}

    def note(name: str) -> None:
        before, began_s = slurmctld(cluster), time.monotonic()
        found[name] = cluster.load("users", seconds)
        used_s = slurmctld(cluster)["slurmctld_cpu_s"] - before["slurmctld_cpu_s"]
        found[name]["slurmctld_cpu_percent"] = round(100 * used_s / (time.monotonic() - began_s), 1)

    churn = cluster.background(queue.churn(seconds))
    note("with us")
    churn.wait()
    cluster.run("pkill -9 -f 'sns (scheduler|watchdog)'; sleep 2")
    note("gates stand, scheduler killed")
    cluster.run("sns release --all > /dev/null", timeout_s=1200)
    cluster.run("sed -i /^JobSubmitPlugins/d /etc/slurm/sns/slurm.conf; scontrol reconfigure")
    cluster.run("until sdiag > /dev/null 2>&1; do sleep 0.5; done")
    churn = cluster.background(queue.churn(seconds))
    note("Slurm alone")
    churn.wait()
    return found


def spare_table(cluster: Thousand) -> None:
    """Have the filter keep slurmctld from making its table of all jobs, from the next submission on."""
    cluster.run("sed -i 's/-- pcall(filter.without_jobs/pcall(filter.without_jobs/' /etc/slurm/job_submit.lua")


def fill(cluster: Thousand, queue: Queue) -> None:
    """Submit jobs until so many wait, all that fit are placed, and the first leases are renewed."""
    if not cluster.answers():
        cluster.start_scheduler()
    while (missing := queue.waiting - cluster.load("look")["pending"]) > 0:  # at first the nodes take many of them
        with few_nodes(cluster):
            counts = [missing // 3 + number for number in range(3)]
            fillers = [cluster.background(f"sns-load fill {count} large {queue.submitters}") for count in counts]
            for each in fillers:
                each.wait()
        wait_until_placed(cluster)
    wait_until_renewed(cluster)


def phase(cluster: Thousand, minutes: float, queue: Queue, *, still: bool, away_min: float = 0.0) -> dict[str, Any]:
    """Sample the scheduler while jobs come and end, unless all is `still`."""
    before, began_s = statistics(cluster), time.monotonic()
    churn = None if still else cluster.background(queue.churn(60 * minutes))
    if away_min:
        threading.Thread(target=stop_slurmdbd, args=(30 * (minutes - away_min), 60 * away_min), daemon=True).start()
    samples = samples_of(cluster, began_s + 60 * minutes)
    did = {} if churn is None else json.loads(churn.communicate()[0])
    took_s, after = time.monotonic() - began_s, statistics(cluster)
    cycles = [each["cycle_s"] for each in samples]
    rpcs = {name: after["rpcs"][name] - before["rpcs"].get(name, 0) for name in after["rpcs"]}
    return {
        "minutes": minutes,
        "most_waiting": queue.waiting,
        "submitters": queue.submitters,
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
        "slurmctld": {
            "cpu_percent": round(100 * (samples[-1]["slurmctld_cpu_s"] - samples[0]["slurmctld_cpu_s"]) / took_s, 2),
            "rss_mb_first": round(samples[0]["slurmctld_rss_kb"] / 1024),
            "rss_mb_last": round(samples[-1]["slurmctld_rss_kb"] / 1024),
            "most_kept_for_slurmdbd": max(each["slurmdbd_queue"] for each in samples),
        },
        "renewed_per_minute": {
            "mean": round(float(np.mean([each["gates_renewed_per_minute"] for each in samples])), 1),
            "most": max(each["gates_renewed_per_minute"] for each in samples),
        },
        "fewest_gated": min(each["gates_gated"] for each in samples),
        "rpcs_per_s": {name: round(count / took_s, 2) for name, count in rpcs.items() if count},
        # In slurmctld, with the wait for its locks; of all processes, which without churn and users are ours.
        "rpcs_took_percent": {
            name: round(100 * (seconds - before["rpcs_took_s"].get(name, 0.0)) / took_s, 2)
            for name, seconds in after["rpcs_took_s"].items()
        },
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

    phases = [result[name]["samples"] for name in PHASES if name in result]
    ends_min = np.cumsum([0.0, *(samples[-1]["at_s"] / 60 for samples in phases)])
    at_min = [end + each["at_s"] / 60 for end, samples in zip(ends_min, phases, strict=False) for each in samples]
    samples = [each for samples in phases for each in samples]
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    above.plot(at_min, [each["cycle_s"] for each in samples], ".-", linewidth=0.8)
    above.set_ylabel("cycle, s")
    above.set_ylim(bottom=0)
    below.plot(at_min, [each["rss_kb"] / 1024 for each in samples], ".-", linewidth=0.8)
    below.set_ylabel("memory (RSS), MiB")
    below.set_ylim(bottom=0)
    below.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="so many while jobs come and end")
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--submitters", type=int, default=1, help="users who have these jobs, each with fewer (1)")
    parser.add_argument(
        "--still",
        type=float,
        default=0.0,
        metavar="MINUTES",
        help="first so many in which no job comes or ends",
    )
    parser.add_argument(
        "--slurmdbd-away", type=float, default=0.0, metavar="MINUTES", help="stop slurmdbd in the middle of these"
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--spare", action="store_true", help="spare slurmctld its table of all jobs")
    parser.add_argument("--users", action="store_true", help="also measure users' commands, a minute three times")
    parser.add_argument("--plot", help="where to draw the time of a cycle and the memory")
    given = parser.parse_args()
    os.environ["SNS_NODES"] = str(given.nodes)
    with thousand() as cluster:
        queue = Queue(given.waiting, given.submitters)
        if given.spare:
            spare_table(cluster)
        fill(cluster, queue)
        result: dict[str, Any] = {}
        if given.still:
            result["still"] = phase(cluster, given.still, queue, still=True, away_min=given.slurmdbd_away)
        if given.minutes:
            result["churn"] = phase(cluster, given.minutes, queue, still=False)
        if given.users:
            result["users"] = beside_users(cluster, USERS_S, queue)
    if given.plot:
        plot(result, given.plot)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
