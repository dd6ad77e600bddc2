"""The replay of a year at a site with 20 pools, 10,000 machines and 20 million jobs, with and without restarts.

    python tests/benchmarks/rescheduling.py [--days 365] [--scale 1.0] [--repeat 3] [--seed 1]

Prints JSON. Each run is a process of its own, which generates the workload `idcp` and replays it. For each case: the
seconds of the replay (median, p99), their ratio to those without restarts, jobs in a second, and the peak memory of the
process; of the last run what happened. `generate_s` and `generated_mb` are those of the workload alone.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

CASES = {"off": {"restart": "off"}, "on": {}, "on, averages over suspended jobs": {"averages": "suspended"}}


def one(case: str, days: float, scale: float, seed: int) -> dict:
    """One run, in this process."""
    from slurm_sns.cli.compiled_code import keep_by_state

    keep_by_state()
    import resource

    from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters
    from slurm_sns.sim.replay.pool_replay import replay_pools
    from slurm_sns.sim.workloads.idcp import idcp

    parameters = ReschedulingParameters(**CASES[case])
    replay_pools(*idcp(0.01, 1, seed), parameters)  # the first run compiles
    began = time.perf_counter()
    site, trace = idcp(scale, days, seed)
    generate_s = time.perf_counter() - began
    generated_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    run = replay_pools(site, trace, parameters, sample_until_s=int(trace.submit[-1]))
    return {
        "replay_s": time.perf_counter() - began,
        "generate_s": generate_s,
        "generated_mb": generated_mb,
        "jobs": len(trace),
        "machines": len(site.nodes.names),
        "suspended_jobs": int((run.suspensions > 0).sum()),
        "restarts": int(run.restarts.sum()),
        "utilisation": float(run.cores_used.mean() / site.nodes.capacity[0].sum()),
        "most_suspended_at_once": int(run.suspended_jobs.max()),
    }


def measured(arguments: argparse.Namespace, case: str) -> dict:
    """Several runs of one case, each in its own process."""
    options = ["--days", str(arguments.days), "--scale", str(arguments.scale), "--seed", str(arguments.seed)]
    command = [sys.executable, __file__, *options, "--one", case]
    runs, peaks = [], []
    for _ in range(arguments.repeat):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(command)} failed with {process.returncode}")
        runs.append(json.loads(output))
        peaks.append(usage.ru_maxrss / 1024)
    times = [run.pop("replay_s") for run in runs]
    return {
        "median_s": float(np.median(times)),
        "p99_s": float(np.percentile(times, 99)),
        "jobs_per_s": runs[-1]["jobs"] / float(np.median(times)),
        "peak_mb": max(peaks),
        **runs[-1],
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=365)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        sys.stdout.write(json.dumps(one(arguments.one, arguments.days, arguments.scale, arguments.seed)) + "\n")
        return
    found = {case: measured(arguments, case) for case in CASES}
    for figures in found.values():
        figures["to_off"] = figures["median_s"] / found["off"]["median_s"]
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
