"""Short and long jobs on two nodes: by Slurm's backfill, by its gang scheduling, and where slurm_sns shares the cores.

    make cluster-up
    PYTHONPATH=containers:tests/cluster python tests/cluster/sharing_comparison.py [--rounds 1]

SNS_PROJECT names the cluster, which nobody else may use meanwhile; the machine needs two CPUs, and nothing else to do.
The nodes of partition shared have one core each, so that a declared core is a CPU. Four long jobs come first, then a
short one every three seconds, 40 in all, each of one core; a job's work is CPU time. Prints JSON: for each side the
mean and the 95th percentile of the stretch, the time from submission to end over the work, of short, long and all jobs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from slurm_conf import added_to_slurm_conf, restart

from cluster import SHARING_NODES, Cluster

LONG, SHORT, LONG_S, SHORT_S, APART_S = 4, 40, 40, 4, 3.0
#: A job that has worked for so many seconds of CPU time is ended by its limit.
WORK = "(ulimit -t {work_s}; while :; do :; done) 2> /dev/null; true"
ONE_CORE = "s/^NodeName=f1,f2 CPUs=4 Sockets=1 CoresPerSocket=4/NodeName=f1,f2 CPUs=1 Sockets=1 CoresPerSocket=1/"
MANAGED = (
    "s/^partitions: .*/partitions: [main, small, shared]/; "
    '/^nodes:/a\\  - {names: "f[1-2]", partitions: [shared], cores: 1, memory_mb: 32768}\n'
    "$a sharing: {partitions: [shared]}"
)
#: By side: the command that edits the partition, more lines of slurm.conf, and the edit of sns.yaml.
SIDES: dict[str, tuple[str, Sequence[str], str]] = {
    "backfill": ("s/ OverSubscribe=FORCE:2 PreemptMode=OFF//", (), ""),
    "gang": ("s/ PreemptMode=OFF//", ("PreemptMode=GANG", "SchedulerTimeSlice=5"), ""),
    "shares": ("", (), MANAGED),
}


@contextmanager
def prepared(cluster: Cluster, side: str) -> Iterator[None]:
    """The nodes as this side has them."""
    partition, lines, sns_yaml = SIDES[side]
    with added_to_slurm_conf(cluster, *lines, sns_yaml=sns_yaml):
        cluster.run(f"sed -i '{ONE_CORE}' /etc/slurm/slurm.conf")
        if partition:
            cluster.run(f"sed -i '/^PartitionName=shared/{partition}' /etc/slurm/slurm.conf")
        cluster.run("scontrol reconfigure")
        cluster.start_nodes(SHARING_NODES, agents=True)
        try:
            restart(cluster)
            yield
        finally:
            cluster.run("scancel -u alice")
            cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 60)
            cluster.stop_nodes(SHARING_NODES)
    restart(cluster)


def run(cluster: Cluster) -> dict[str, Any]:
    """Submit the jobs, wait for their ends, and return the figures."""
    options = "-p shared -n1 -N1 -t30 --mem=4G"
    numbers = cluster.submit_all([(options, WORK.format(work_s=LONG_S))] * LONG)
    began = time.monotonic()
    for at in range(SHORT):
        time.sleep(max(0.0, began + at * APART_S - time.monotonic()))
        numbers.append(cluster.submit(options, WORK.format(work_s=SHORT_S)))
    ended = cluster.wait_for_end(numbers, 1200)
    work_s = dict(zip(numbers, [LONG_S] * LONG + [SHORT_S] * SHORT, strict=True))
    stretches = [(ended[each].end_s - ended[each].submit_s) / work_s[each] for each in numbers]
    last_s = max(each.end_s for each in ended.values()) - min(each.submit_s for each in ended.values())
    parts = {"long": stretches[:LONG], "short": stretches[LONG:], "all": stretches}
    found = {name: {"mean": _round(np.mean(of)), "p95": _round(np.percentile(of, 95))} for name, of in parts.items()}
    return {**found, "makespan_s": last_s, "states": sorted({each.state for each in ended.values()})}


def _round(value: Any) -> float:
    return round(float(value), 2)


def main() -> int:
    """Run all sides and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    cluster = Cluster(os.environ.get("SNS_PROJECT", "slurm-sns"))
    figures: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
    for _ in range(asked.rounds):
        for side in SIDES:
            with prepared(cluster, side):
                figures[side].append(run(cluster))
                sys.stderr.write(f"{side}: {figures[side][-1]}\n")
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
