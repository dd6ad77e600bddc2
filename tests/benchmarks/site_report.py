"""How long `sns report` takes for the accounting of a year, and how much memory.

    python tests/benchmarks/site_report.py DIRECTORY [--lines 5000000] [--jobs 2]

Prints JSON: lines and bytes of the dump; seconds, seconds of CPU, and peak memory (of the largest process) of
`sns report DUMP --json` as a process of its own, so with everything that a user waits for. A missing dump is generated
in DIRECTORY: a year on 217 nodes in three partitions, in bursts, at 90 % of the cores, with memory that is short.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

CONF = """\
NodeName=n[001-121] Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=187000 Weight=60
NodeName=m[001-096] Sockets=2 CoresPerSocket=20 ThreadsPerCore=1 RealMemory=384000 Weight=70
PartitionName=main Nodes=n[001-121],m[001-086]
PartitionName=short Nodes=n[001-040]
PartitionName=large Nodes=m[087-096]
"""
YEAR_S = 365 * 24 * 3600
#: Jobs are submitted in bursts of so many on average, as arrays and scripts of loops do.
BURST = 20
AT_A_TIME = 500_000
FIRST_S = pd.Timestamp("2025-01-01").value // 10**9
#: The mean run of a job, so that 5 million of them ask for 90 % of the cores.
MEAN_RUN_S = 7_000


def write_dump(path: Path, lines: int, seed: int = 1) -> None:
    """A dump of so many jobs, as many a second as 5 million are in a year."""
    rng = np.random.default_rng(seed)
    bursts = rng.integers(0, lines // BURST, lines)
    span_s = YEAR_S * lines / 5_000_000
    submit = np.sort(np.sort(rng.uniform(0, span_s, lines // BURST))[bursts] + rng.exponential(60, lines)).astype(int)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for begin in range(0, lines, AT_A_TIME):
            table = _jobs(rng, begin, submit[begin : begin + AT_A_TIME])
            table.to_csv(file, sep="\t", index=False, header=begin == 0)


def _jobs(rng: np.random.Generator, first: int, submit_s: np.ndarray) -> pd.DataFrame:
    count, number = len(submit_s), first + np.arange(len(submit_s))
    partition = rng.choice(["main", "short", "large"], count, p=[0.82, 0.15, 0.03])
    nodes = np.where(partition == "main", rng.choice([1, 2, 4, 8], count, p=[0.975, 0.015, 0.007, 0.003]), 1)
    cores = np.where(nodes > 1, 32, rng.choice([1, 2, 4, 8, 16, 32], count, p=[0.5, 0.15, 0.15, 0.1, 0.06, 0.04]))
    each_gb = rng.choice([1, 2, 4, 8, 16], count, p=[0.2, 0.25, 0.3, 0.15, 0.1])
    memory_gb = np.minimum(cores * each_gb, 180) * nodes
    run_s = np.clip(rng.lognormal(np.log(MEAN_RUN_S) - 1.125, 1.5, count), 1, 7 * 86400).astype(int)
    run_s = np.where(partition == "short", np.minimum(run_s, 3600), run_s)
    limits = np.array([60, 240, 1440, 4320, 10080])
    limit = limits[np.minimum(np.searchsorted(limits * 60, run_s * rng.uniform(1, 6, count)), len(limits) - 1)]
    start_s = submit_s + rng.exponential(1800, count).astype(int)
    user, cpus = rng.zipf(1.5, count) % 300, nodes * cores
    moments = [pd.to_datetime(FIRST_S + each, unit="s").strftime("%Y-%m-%dT%H:%M:%S") for each in (submit_s, start_s)]
    text = {name: pd.Series(values).astype(str) for name, values in (("c", cpus), ("m", memory_gb), ("n", nodes))}
    tres = "billing=" + text["c"] + ",cpu=" + text["c"] + ",mem=" + text["m"] + "G,node=" + text["n"]
    return pd.DataFrame(
        {
            "JobID": 1000 + number,
            "JobIDRaw": 1000 + number,
            "User": "user" + pd.Series(user).astype(str),
            "Account": "account" + pd.Series(user % 40).astype(str),
            "Partition": partition,
            "State": rng.choice(["COMPLETED", "FAILED", "CANCELLED by 1234"], count, p=[0.9, 0.07, 0.03]),
            "Submit": moments[0],
            "Start": moments[1],
            "ElapsedRaw": run_s,
            "TimelimitRaw": limit,
            "NNodes": nodes,
            "AllocCPUS": cpus,
            "ReqMem": text["m"] + "G",
            "ReqTRES": tres,
            "AllocTRES": tres,
            "Priority": rng.integers(1000, 1100, count),
            "Constraints": "",
            "Reservation": "",
            "SubmitLine": "sbatch -N " + text["n"] + " /home/job.sh",
        }
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    dump, conf = given.directory / f"year-{given.lines}.tsv", given.directory / "year.conf"
    conf.write_text(CONF)
    if not dump.is_file():
        write_dump(dump, given.lines)
    command = [
        sys.executable,
        "-c",
        "from slurm_sns.cli import main; main()",
        "report",
        str(dump),
        "--slurm-conf",
        str(conf),
        "--json",
    ]
    began = time.perf_counter()
    done = subprocess.run([*command, "--jobs", str(given.jobs)], check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout)["accounting"]
    result = {
        "lines": given.lines,
        "bytes": dump.stat().st_size,
        "seconds": round(seconds, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
        "replayed_jobs": found["replayed_jobs"],
        "weeks": found["weeks"],
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
