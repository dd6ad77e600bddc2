"""How fast a dump of sacct is read as a trace, and renamed to be given away.

    python tests/benchmarks/accounting.py DIRECTORY [--lines 500000] [--repeat 3]

Prints JSON: lines and bytes of the dump; seconds (the least of the runs, because other work on the machine can only add
to it) and lines per second for `read_records` and `Pseudonyms.dump`; the peak memory of the process. A missing dump is
generated in DIRECTORY: jobs of 217 nodes in three partitions, of which one is unknown, with constraints and arrays.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from slurm_sns.coverage.sacct import COLUMNS
from slurm_sns.sim.traces.cluster_nodes import read_cluster
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.pseudonyms import Pseudonyms
from slurm_sns.sim.traces.read_trace import read_records

CONF = """\
NodeName=n[001-121] Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=187000 Feature=opa Weight=60
NodeName=m[001-096] Sockets=2 CoresPerSocket=20 ThreadsPerCore=2 RealMemory=754000 Feature=ib Weight=70
PartitionName=main Nodes=ALL
PartitionName=short Nodes=n[001-020]
"""


def write_dump(path: Path, lines: int) -> None:
    """A dump of so many jobs, with the columns of the documented command."""
    rng = np.random.default_rng(1)
    submit, first = np.cumsum(rng.integers(0, 40, lines)), datetime(2026, 1, 1, tzinfo=UTC)
    nodes, run_s = rng.choice([1, 1, 1, 1, 2, 4], lines), rng.exponential(2000, lines).astype(int)
    cpus = nodes * rng.choice([1, 2, 4, 8, 16, 32], lines)
    with path.open("w", encoding="utf-8") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for at in range(lines):
            wanted = f"billing={cpus[at]},cpu={cpus[at]},mem={4 * cpus[at]}G,node={nodes[at]}"
            moment = first + timedelta(seconds=int(submit[at]))
            said = {
                "JobID": f"{1000 + at // 10}_{at % 10}" if at % 3 else str(1000 + at),
                "JobIDRaw": str(1000 + at),
                "User": f"user{at * 7919 % 300}",
                "Account": f"account{at * 7919 % 40}",
                "Partition": ("main", "main", "short", "gone")[at % 4],
                "State": ("COMPLETED", "COMPLETED", "FAILED", "CANCELLED by 1234")[at // 4 % 4],
                "Submit": f"{moment:%Y-%m-%dT%H:%M:%S}",
                "Start": f"{moment + timedelta(seconds=60 + at % 4000):%Y-%m-%dT%H:%M:%S}",
                "ElapsedRaw": str(run_s[at]),
                "TimelimitRaw": str((60, 1440, 4320)[at % 3]),
                "NNodes": str(nodes[at]),
                "AllocCPUS": str(cpus[at]),
                "ReqMem": f"{4 * cpus[at]}G",
                "ReqTRES": wanted,
                "AllocTRES": wanted,
                "Priority": str(at * 7919 % 100_000),
                "Constraints": ("", "", "ib", "ib|opa")[at // 16 % 4],
                "SubmitLine": f"sbatch -n {cpus[at]} /home/job{at}.sh",
            }
            file.write("\t".join(said.get(column, "") for column in COLUMNS) + "\n")


def least_s(act: Callable[[], object], repeat: int) -> float:
    """The least time of so many runs."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--lines", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    dump, conf = given.directory / f"dump-{given.lines}.tsv", given.directory / "slurm.conf"
    conf.write_text(CONF)
    if not dump.is_file():
        write_dump(dump, given.lines)
    node_arrays, partitions = read_cluster(str(conf))
    source = TraceFile.of(str(dump))

    def read() -> object:
        return read_records(str(dump), node_arrays, partitions=partitions, user_estimates=True)

    read_s = least_s(read, given.repeat)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    renamed_s = least_s(lambda: sum(map(len, Pseudonyms().dump(source))), given.repeat)
    result = {
        "lines": given.lines,
        "bytes": dump.stat().st_size,
        "read_s": round(read_s, 3),
        "lines_read_per_s": round(given.lines / read_s),
        "peak_mb": round(peak_mb),
        "renamed_s": round(renamed_s, 3),
        "lines_renamed_per_s": round(given.lines / renamed_s),
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
