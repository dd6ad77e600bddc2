"""`sns simulate` as a whole process on a trace like pool-a; the operating system counts its times.

    python tests/benchmarks/replay.py DIRECTORY [--jobs 1000000] [--nodes 1633] [--repeat 3]

Prints JSON. For each policy: user + system seconds of the process (least, median, p99); the least of them minus the
least of the same process with `--limit 1` (`net_s`); the ratio of these two least times; the wall time, the peak
memory, and figures from the command's own summary. A missing trace is generated in DIRECTORY. The least time is used
because other work on the machine can only add to it. `growth.py` measures how the time grows.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pool_a import write_pool

AUTHORS_PORTFOLIO = (
    "best-fit-memory,worse-fit-memory,best-fit-cores,worse-fit-cores,mix-fit,memory-first-best,memory-first-worse"
)
POLICIES = {
    name: ["--policy", name]
    for name in ("first-fit", "best-fit-cores", "best-fit-memory", "worse-fit-cores", "worse-fit-memory", "mix-fit")
}
POLICIES["max-jobs-5"] = ["--policy", "max-jobs"]
POLICIES["max-jobs-7"] = ["--policy", "max-jobs", "--portfolio", AUTHORS_PORTFOLIO]
SNS = [sys.executable, "-c", "from slurm_sns.cli import main; main()", "simulate"]


class Account(NamedTuple):
    """What the operating system counted for one process, and the summary that the process printed."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    summary: dict


def account(trace: Path, nodes: Path, *options: str, checkout: Path | None = None) -> Account:
    """Run the command once, of another checkout if one is given."""
    began = time.perf_counter()
    command = [*SNS, str(trace), "--nodes", str(nodes), "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=checkout) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}")
    wall_s = time.perf_counter() - began
    return Account(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024, json.loads(output))


def measured(trace: Path, nodes: Path, repeat: int, *options: str) -> dict:
    """Measure runs of one policy, in turn with runs of only one job."""
    account(trace, nodes, *options, "--limit", "1")  # the first run compiles
    whole, start = [], []
    for _ in range(repeat):
        start.append(account(trace, nodes, *options, "--limit", "1"))
        whole.append(account(trace, nodes, *options))
    cpu = [run.cpu_s for run in whole]
    start_s = min(run.cpu_s for run in start)
    last = whole[-1].summary
    return {
        "cpu_s": round(min(cpu), 3),
        "cpu_median_s": round(float(np.median(cpu)), 3),
        "cpu_p99_s": round(float(np.percentile(cpu, 99)), 3),
        "limit_1_s": round(start_s, 3),
        "net_s": round(min(cpu) - start_s, 3),
        "to_limit_1": round(min(cpu) / start_s, 2),
        "wall_s": round(float(np.median([run.wall_s for run in whole])), 3),
        "peak_mb": round(max(run.peak_mb for run in whole)),
        "replay_s": last["wall_s"],
        **{name: last[name] for name in ("jobs", "read_s", "mean_wait_s", "load_cores")},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=1_633)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policies", default=",".join(POLICIES))
    given = parser.parse_args()
    trace, nodes = given.directory / "trace.csv.gz", given.directory / "nodes.csv"
    if not trace.is_file():
        write_pool(given.directory, given.jobs, given.nodes, given.load, seed=1)
    result = {name: measured(trace, nodes, given.repeat, *POLICIES[name]) for name in given.policies.split(",")}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
