"""Short and long jobs on two nodes: by Slurm's backfill, by its gang scheduling, and where slurm_sns shares the cores.

    make cluster-up
    PYTHONPATH=containers:tests/cluster python tests/cluster/sharing_comparison.py [--rounds 1] [--scene busy]

SNS_PROJECT names the cluster, which nobody else may use meanwhile; the machine needs two CPUs, and nothing else to do.
The nodes of partition shared have one core each, so that a declared core is a CPU. Four long jobs come first, then 40
short ones, each of one core. A job's work is CPU time. It counts it in a file, in which it finds where it was.

The scenes:

- busy: short jobs come faster than two cores can serve them, until all have come.
- light: two cores need two thirds of the time for all jobs.
- memory: as light, but a long job leaves no memory beside it; the long ones may be paused.

Prints JSON: for each scene and side the mean and the 95th percentile of the stretch, the time from submission to end
over the work, of short, long and all jobs, and how often jobs started anew, at most a second of work lost each time.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from slurm_conf import added_to_slurm_conf, restart

from cluster import SHARING_NODES, Cluster

LONG, SHORT, LONG_S, SHORT_S = 4, 40, 40, 4
#: A job works in steps of a second of CPU time, and counts them in its file. It notes each start in another one.
WORK = (
    "touch work/$SLURM_JOB_ID; echo >> work/starts.$SLURM_JOB_ID; "
    "while [ $(wc -l < work/$SLURM_JOB_ID) -lt {work_s} ]; do "
    "(ulimit -t 1; while :; do :; done) 2> /dev/null; echo >> work/$SLURM_JOB_ID; done; true"
)


@dataclass(frozen=True)
class Scene:
    """How far apart the short jobs come, the long ones' options, and how jobs are paused."""

    apart_s: float
    long: str = "--mem=4G"
    pause: str = "none"


SCENES = {
    "busy": Scene(3.0),
    "light": Scene(6.0),
    "memory": Scene(6.0, "--mem=30G --requeue --sns-restartable=1", "restartable, protect_s: 5"),
}
ONE_CORE = "s/^NodeName=f1,f2 CPUs=4 Sockets=1 CoresPerSocket=4/NodeName=f1,f2 CPUs=1 Sockets=1 CoresPerSocket=1/"
MANAGED = (
    "s/^partitions: .*/partitions: [main, small, shared]/; "
    '/^nodes:/a\\  - {names: "f[1-2]", partitions: [shared], cores: 1, memory_mb: 32768}\n'
    "$a sharing: {partitions: [shared], pause: %s}"
)
#: By side: the command that edits the partition, more lines of slurm.conf, and the edit of sns.yaml.
SIDES: dict[str, tuple[str, Sequence[str], str]] = {
    "backfill": ("s/ OverSubscribe=FORCE:2 PreemptMode=OFF//", (), ""),
    "gang": ("s/ PreemptMode=OFF//", ("PreemptMode=GANG", "SchedulerTimeSlice=5"), ""),
    "shares": ("", (), MANAGED),
}


@contextmanager
def prepared(cluster: Cluster, side: str, scene: Scene) -> Iterator[None]:
    """The nodes as this side has them."""
    partition, lines, sns_yaml = SIDES[side]
    with added_to_slurm_conf(cluster, *lines, sns_yaml=sns_yaml and sns_yaml % scene.pause):
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


def run(cluster: Cluster, scene: Scene) -> dict[str, Any]:
    """Submit the jobs, wait for their ends, and return the figures."""
    cluster.run("rm -rf work; mkdir work", "alice")
    options = "-p shared -n1 -N1 -t30"
    submitted_s: dict[int, float] = {}
    work_s: dict[int, int] = {}

    def submit(count: int, more: str, each_s: int) -> None:
        now_s = time.time()  # a requeue makes Slurm's submission time later
        for number in cluster.submit_all([(f"{options} {more}", WORK.format(work_s=each_s))] * count):
            submitted_s[number], work_s[number] = now_s, each_s

    submit(LONG, scene.long, LONG_S)
    began = time.monotonic()
    for at in range(SHORT):
        time.sleep(max(0.0, began + at * scene.apart_s - time.monotonic()))
        submit(1, "--mem=4G", SHORT_S)
    ended = cluster.wait_for_end(submitted_s, 1200)
    stretches = [(ended[each].end_s - at_s) / work_s[each] for each, at_s in submitted_s.items()]
    parts = {"long": stretches[:LONG], "short": stretches[LONG:], "all": stretches}
    found = {name: {"mean": _round(np.mean(of)), "p95": _round(np.percentile(of, 95))} for name, of in parts.items()}
    starts = cluster.run("cat work/starts.* | wc -l", "alice")
    return {
        **found,
        "makespan_s": _round(max(each.end_s for each in ended.values()) - min(submitted_s.values())),
        "starts_anew": int(starts) - len(ended),
        "states": sorted({each.state for each in ended.values()}),
    }


def _round(value: Any) -> float:
    return round(float(value), 2)


def main() -> int:
    """Run all sides and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--scene", choices=SCENES, action="append", help="all, unless named")
    asked = parser.parse_args()
    cluster = Cluster(os.environ.get("SNS_PROJECT", "slurm-sns"))
    figures: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for _ in range(asked.rounds):
        for name in asked.scene or SCENES:
            for side in SIDES:
                with prepared(cluster, side, SCENES[name]):
                    of_side = figures.setdefault(name, {}).setdefault(side, [])
                    of_side.append(run(cluster, SCENES[name]))
                    sys.stderr.write(f"{name}, {side}: {of_side[-1]}\n")
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
