"""How soon small jobs run on an idle cluster, beside Slurm alone: single jobs, `sbatch --wait`, `%3` arrays and chains.

    SNS_PROJECT=small containers/cluster.sh up
    export SNS_PROJECT=small PYTHONPATH=containers:tests
    python tests/benchmarks/small_jobs.py [--rounds 5] [--kinds array chain] [--before CHECKOUT]

Needs the mini cluster, and nothing else on it. In each round the same jobs run with Slurm alone (the scheduler has
stopped, so submissions pass through), with the scheduler of the image and, with `--before`, with that of another
checkout; each round begins with the next of them. Prints JSON: for each kind of job the seconds of every round, their
median, and that divided by Slurm's.

- `single`: from sbatch to the first line of the script, the median of eight jobs at random moments,
- `wait`: `sbatch --wait` of a job of one second, the median of three,
- `array`: 20 tasks of one second, at most three at a time, from sbatch to the end of the last,
- `chain`: five jobs of one second, each after the one before (afterok), from the first sbatch to the last end.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from cluster import PYTHON, Cluster

#: Where the scheduler of another checkout is put on the controller.
BEFORE = "/opt/before"
ALONE, NOW = "slurm alone", "now"
KINDS = ["single", "wait", "array", "chain"]
#: Runs on the controller as the user whose jobs these are, whose home all nodes have.
MEASURE = r"""
import json, pathlib, random, statistics, subprocess, sys, time
there = pathlib.Path.home() / "small-jobs"
there.mkdir(exist_ok=True)
OPTIONS = ["--parsable", "-t1", "-n1", "--mem-per-cpu=100", "-o", "/dev/null"]
NOTE = f"date +%s.%N > {there}/.$SLURM_JOB_ID; mv {there}/.$SLURM_JOB_ID {there}/$SLURM_JOB_ID"

def submit(script, *more):
    command = ["sbatch", *OPTIONS, *more, "--wrap", script]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

def noted(number):
    until = time.time() + 120
    while len(found := [each for each in there.iterdir() if not each.name.startswith(".")]) < number:
        if time.time() > until:
            sys.exit(f"{len(found)} of {number} jobs have run after two minutes")
        time.sleep(0.05)
    moments = [float(each.read_text()) for each in found]
    for each in found:
        each.unlink()
    return max(moments)

def single():
    time.sleep(1.2 + random.random())
    began = time.time()
    submit(NOTE)
    return noted(1) - began

def wait():
    time.sleep(1.2 + random.random())
    began = time.time()
    submit("sleep 1", "--wait")
    return time.time() - began

def array():
    began = time.time()
    submit("sleep 1; " + NOTE, "--array=0-19%3")
    return noted(20) - began

def chain():
    began, after = time.time(), []
    for _ in range(5):
        after = [f"-dafterok:{submit('sleep 1; ' + NOTE, *after).strip()}"]
    return noted(5) - began

found = {}
for kind, times in ((single, 8), (wait, 3), (array, 1), (chain, 1)):
    if kind.__name__ not in sys.argv[1:]:
        continue
    found[kind.__name__] = statistics.median(kind() for _ in range(times))
    time.sleep(2)
print(json.dumps(found))
"""


def measure(cluster: Cluster, state: str, kinds: list[str]) -> dict[str, float]:
    """Seconds by kind of job, with Slurm alone or a scheduler."""
    if state != ALONE:
        path = f"PYTHONPATH={BEFORE} " if state != NOW else ""
        cluster.run(f"{path}sns-daemon start scheduler")
        cluster.wait_for_scheduler()
    time.sleep(5)
    try:
        told = cluster.run(f"{PYTHON} - {' '.join(kinds)} << 'END'\n{MEASURE}\nEND", "alice", timeout_s=300)
    finally:
        cluster.try_run("sns-daemon stop scheduler")
    found = {kind: round(took_s, 2) for kind, took_s in json.loads(told).items()}
    sys.stderr.write(f"{state}: {json.dumps(found)}\n")
    return found


def table(rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """For each kind of job and each state: all rounds, the median, and that divided by Slurm's."""
    found: dict[str, Any] = {}
    for kind in rounds[0][ALONE]:
        times = {state: [each[state][kind] for each in rounds] for state in rounds[0]}
        slurms_s = statistics.median(times[ALONE])
        medians = {state: statistics.median(each) for state, each in times.items()}
        found[kind] = {
            state: {"median_s": median_s, "to_slurm": round(median_s / slurms_s, 2), "rounds_s": times[state]}
            for state, median_s in medians.items()
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--before", type=Path, help="a checkout whose scheduler is measured, too")
    given = parser.parse_args()
    cluster, states = Cluster(), [ALONE, NOW]
    if given.before is not None:
        states.insert(1, "before")
        cluster.run(f"rm -rf {BEFORE} && mkdir {BEFORE}")
        cluster.engine("cp", str(given.before / "slurm_sns"), f"{cluster.project}-ctl:{BEFORE}/slurm_sns")
    cluster.try_run("sns-daemon stop scheduler")
    rounds: list[dict[str, dict[str, float]]] = []
    for at in range(given.rounds):
        first = at % len(states)
        done = {state: measure(cluster, state, given.kinds) for state in (*states[first:], *states[:first])}
        rounds.append({state: done[state] for state in states})
    cluster.run("sns-daemon start scheduler")
    sys.stdout.write(json.dumps(table(rounds), indent=1) + "\n")


if __name__ == "__main__":
    main()
