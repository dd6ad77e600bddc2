"""Random jobs with GPUs on the mini cluster: whether Slurm starts each beside those that run, and whether we say so.

By hand, for many: SNS_PROJECT=... python tests/cluster/gpus_beside_slurm.py 200. A job is submitted to a node, held;
what our code reads of the job and of the node says whether it fits now. Then it is released, and Slurm says.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from cluster import GPU_NODES, Cluster
from slurm_sns.errors import Infeasible
from slurm_sns.scheduler.observation import ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import geometry
from slurm_sns.scheduler.snapshot.node_sets import kinds_of
from slurm_sns.slurm import scontrol_text, translate

#: sed commands that let the mini cluster's slurm_sns manage the partition.
MANAGED = (
    "s/^partitions: .*/partitions: [main, small, gpu]/; "
    '/^nodes:/a\\  - {names: "g1", partitions: [gpu], cores: 28, memory_mb: 128000, llc_ways: 20, bandwidth_gbps: 118, '
    'gpus: "gpu:a:4"}\\n'
    '  - {names: "g2", partitions: [gpu], cores: 8, memory_mb: 64000, gpus: "gpu:a:4"}\\n'
    '  - {names: "g3", partitions: [gpu], cores: 8, memory_mb: 64000, gpus: "gpu:a:2,gpu:b:2"}'
)
#: g2, whose GPUs belong to sockets, and g3, which has two types.
NODES = ("g2", "g3")
#: So many jobs run beside the one that is tried, at most.
MOST_RUNNING = 4


@dataclass(frozen=True)
class Tried:
    """A job, and whether it fits by our count and by Slurm."""

    options: str
    node: str
    fits: bool
    starts: bool


def options(draw: random.Random, node: str) -> str:
    """The options of a job of one node."""
    kinds = ["", "a:"] if node == "g2" else ["", "a:", "b:"]
    kind, count = draw.choice(kinds), draw.randint(1, 4)
    tasks = draw.choice([1, 1, 2, 3, 5])
    asked = draw.choice(
        [
            f"--gres=gpu:{kind}{count}",
            f"--gpus-per-node={kind}{count}",
            f"--gpus={kind}{count}",
            f"--gpus-per-task={kind}1",
            f"--gres=gpu:{kind}{count} --cpus-per-gpu=2",
            f"--gpus={kind}{count} --mem-per-gpu=9000",
            "" if draw.random() < 0.5 else "--mem-per-cpu=8000",
        ]
    )
    cpus = "" if "--cpus-per-gpu" in asked else f"-c{draw.choice([1, 1, 2])}"
    return f"-N1 -n{tasks} {cpus} {asked}"


def shown_job(cluster: Cluster, number: int) -> ObservedJob:
    """The job as our code reads it."""
    (record,) = scontrol_text.jobs(cluster.run(f"SLURM_TIME_FORMAT=%s scontrol -o show job {number}")).records
    return translate.job(record)


def shown_node(cluster: Cluster, name: str) -> ObservedNode:
    """The node as our code reads it."""
    (record,) = scontrol_text.nodes(cluster.run(f"scontrol -d -o show node {name}")).records
    return translate.node(record)


def fits(job: ObservedJob, node: ObservedNode) -> bool:
    """Whether the job fits on what is free of the node."""
    try:
        return geometry(job, kinds_of([node])).demand.within(node.left())
    except Infeasible:
        return False


def tried(cluster: Cluster, count: int, seed: int) -> Iterator[Tried]:
    """Try so many jobs, one after another; about half of those that start stay for a while."""
    draw, running = random.Random(seed), list[int]()
    for _ in range(count):
        name = draw.choice(NODES)
        asked = options(draw, name)
        done = cluster.try_run(
            f"sbatch --parsable -o /dev/null -H -p gpu --comment sns:off -w {name} {asked} --wrap 'sleep 600'", "alice"
        )
        if done.returncode:
            continue
        number = int(done.stdout)
        is_fitting = fits(shown_job(cluster, number), shown_node(cluster, name))
        cluster.run(f"scontrol release {number}")

        def answer(number: int = number) -> tuple[str, str]:
            state, reason = cluster.run(f"squeue -h -j {number} -O 'State:20,Reason:40'").split(None, 1)
            return state, reason.strip()

        cluster.wait_for(
            "Slurm has looked at the job", lambda: answer()[1] != "JobHeldUser" and answer() != ("PENDING", "None")
        )
        starts = answer()[0] != "PENDING"
        yield Tried(asked, name, is_fitting, starts)
        if starts and draw.random() < 0.6:
            running.append(number)
        else:
            cancel(cluster, number)
        while len(running) > draw.randint(0, MOST_RUNNING):
            cancel(cluster, running.pop(draw.randrange(len(running))))
    cancel(cluster, *running)


def cancel(cluster: Cluster, *numbers: int) -> None:
    """Cancel the jobs, and wait until their nodes are free again."""
    if numbers:
        listed = ",".join(map(str, numbers))
        cluster.run(f"scancel {' '.join(map(str, numbers))}")
        cluster.wait_for(
            "they have ended",
            lambda: (
                not cluster.run(
                    f"squeue -h -j {listed} -t all -o %T | grep -vE '^(CANC|COMPLETED|FAIL)' || true"
                ).strip()
            ),
        )


def main() -> None:
    """Try as many jobs as told, and print where the answers differ."""
    cluster = Cluster()
    cluster.start_nodes(GPU_NODES)
    try:
        seen = list(tried(cluster, int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1))
    finally:
        cluster.stop_nodes(GPU_NODES)
    for each in seen:
        if each.fits != each.starts:
            sys.stdout.write(f"{each.node} {each.options}: by our count {each.fits}, Slurm {each.starts}\n")
    started = sum(each.starts for each in seen)
    differing = sum(each.fits != each.starts for each in seen)
    sys.stdout.write(f"{len(seen)} jobs, {started} started; {differing} answers differ\n")


if __name__ == "__main__":
    main()
