"""How closely the policy `slurm` starts 300 jobs as a real Slurm does, on 40 nodes of the controller of a thousand.

    PYTHONPATH=containers:tests python tests/benchmarks/slurm_alone.py [--nodes 40] [--epilog] [--as-rendered]

Brings up the controller with so many slurmds, and runs the jobs of tests/cluster/test_slurm_alone.py, each on 1 to 19
times as many nodes (two minutes). Slurm has its default SchedulerParameters, but looks at the whole queue; with
--as-rendered it has those that `sns render` writes. Prints JSON: the mean wait on Slurm and replayed, the largest, and
the share of pairs of jobs that start in another order. Nothing that was measured goes into `by_sleep`: there jobs run
for as long as they sleep. In `by_end` they run from their start to their end, as Slurm has them.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from run_and_replay import Asked, Replayed, parameters_of, replayed, widened, workload

from slurm_sns.model import Resources
from thousand import Thousand, thousand

#: containers/thousand/slurm.conf.
SIZE = Resources(32, 128_000)


def configure(cluster: Thousand, *, epilog: bool, as_rendered: bool) -> None:
    """Write what is asked for into Slurm's configuration, and have it read."""
    commands = ["true"]
    if epilog:
        commands.append("echo Epilog=/bin/true >> /etc/slurm/slurm.conf")
    if not as_rendered:
        file = "/etc/slurm/sns/slurm.conf"
        commands.append(f"sed -i 's/^SchedulerParameters=.*/SchedulerParameters=default_queue_depth=1000/' {file}")
    cluster.run(" && ".join([*commands, "scontrol reconfigure"]))
    time.sleep(3)


def run(cluster: Thousand, asked: Sequence[Asked]) -> tuple[int, list[tuple[int, int]]]:
    """The second in which the jobs became eligible; start and end of each, in the order of their submission."""
    cluster.run("scontrol update PartitionName=real State=DOWN")
    lines = [f"sbatch --parsable -o /dev/null -p real {each.options()} --wrap 'sleep {each.sleep_s}'" for each in asked]
    script = "\n".join(["cd /tmp", *lines])
    numbers = cluster.run(f"runuser -u alice -- bash -s << 'END'\n{script}\nEND").split()
    begin_s = int(cluster.run("date +%s; scontrol update PartitionName=real State=UP"))
    cluster.wait_for("all jobs have ended", lambda: not cluster.run("squeue -h -p real -o %i | head -n 1").strip())
    shown = cluster.run("SLURM_TIME_FORMAT=%s scontrol -o show job").splitlines()
    fields = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in shown]
    found = {each["JobId"]: (int(each["StartTime"]), int(each["EndTime"])) for each in fields}
    return begin_s, [found[number] for number in numbers]


def figures(of: Replayed, real_s: np.ndarray) -> dict[str, float]:
    """What is printed of the replays."""
    return {
        "mean_wait_s": round(of.mean_wait_s(), 2),
        "against_real_percent": round(100 * (of.mean_wait_s() / float(real_s.mean()) - 1), 1),
        "largest_wait_s": round(float(of.wait_s.max(axis=1).mean()), 1),
        "out_of_order_percent": round(100 * of.out_of_order(real_s), 1),
    }


def measure(cluster: Thousand, given: argparse.Namespace) -> dict[str, Any]:
    """Run, replay, compare."""
    configure(cluster, epilog=given.epilog, as_rendered=given.as_rendered)
    asked = widened(workload(), given.nodes, given.seed)
    using = parameters_of(cluster.run("scontrol show config"), epilog=given.epilog)
    began_s = time.monotonic()
    begin_s, ran = run(cluster, asked)
    real_s = np.array([start_s for start_s, _ in ran]) - begin_s
    by = {"by_sleep": [each.sleep_s for each in asked], "by_end": [end_s - start_s for start_s, end_s in ran]}
    return {
        "nodes": given.nodes,
        "jobs": len(asked),
        "parameters": str(using),
        "took_s": round(time.monotonic() - began_s, 1),
        "real": {"mean_wait_s": round(float(real_s.mean()), 2), "largest_wait_s": int(real_s.max())},
    } | {
        name: figures(replayed(asked, runs_s, [SIZE] * given.nodes, begin_s, using), real_s)
        for name, runs_s in by.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=40, help="with a slurmd: each takes 30 MB")
    parser.add_argument("--seed", type=int, default=1, help="of how many nodes each job is on")
    parser.add_argument("--epilog", action="store_true", help="nodes run an Epilog, /bin/true")
    parser.add_argument("--as-rendered", action="store_true", help="Slurm has the SchedulerParameters of slurm_sns")
    given = parser.parse_args()
    os.environ["SNS_SLURMDS"] = str(given.nodes)
    with thousand(anew=True) as cluster:
        result = measure(cluster, given)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
