"""A hundred mixed jobs on three nodes with GPUs, with slurm_sns and by Slurm alone: waits, and GPUs that lie stranded.

    make cluster-up
    PYTHONPATH=containers:tests/cluster python tests/cluster/gpu_comparison.py [--seeds 1 2 3] [--jobs 100]

SNS_PROJECT names the cluster, which nobody else may use meanwhile. Sixty of a hundred jobs ask for one, two or four
GPUs, the others for cores and memory alone; each sleeps for 5 to 40 s. GPUs and cores are both asked for a little
faster than the nodes have them, for two and a half minutes.

An idle GPU is *stranded* while a job waits for which its node has enough GPUs, and cores or memory for none of these
jobs. Prints JSON: for each seed and side the mean wait of jobs with GPUs and of all, the GPU-seconds that lay idle
while a job with GPUs waited, those that were stranded, and how long everything took.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpus_beside_slurm import MANAGED
from slurm_conf import added_to_slurm_conf, restart

from cluster import GPU_NODES, Cluster

#: What the nodes of partition gpu have (containers/etc/slurm.conf): cores, MiB, and GPUs by type.
HAVE = {"g1": (28, 128_000, {"a": 4}), "g2": (8, 64_000, {"a": 4}), "g3": (8, 64_000, {"a": 2, "b": 2})}
SPAN_S = 150.0


@dataclass(frozen=True)
class Wanted:
    """A job: when it comes, its GPUs (of any type: ""), cores and MiB, and how long it runs."""

    at_s: float
    gpus: int
    kind: str
    cores: int
    memory_mb: int
    run_s: int

    def words(self) -> str:
        """Its options."""
        kind = f"{self.kind}:" if self.kind else ""
        gres = f"--gres=gpu:{kind}{self.gpus} " if self.gpus else ""
        return f"-p gpu -N1 -n1 -c{self.cores} --mem={self.memory_mb} -t1 {gres}"

    def fits(self, cores: int, memory_mb: int) -> bool:
        """Whether so many cores and MiB are enough."""
        return self.cores <= cores and self.memory_mb <= memory_mb

    def finds(self, idle: Mapping[str, int]) -> bool:
        """Whether these idle GPUs of a node are enough."""
        has = idle.get(self.kind, 0) if self.kind else sum(idle.values())
        return 0 < self.gpus <= has


@dataclass(frozen=True)
class Ran:
    """How a job ran: its node and the GPUs that it had there, by type."""

    wanted: Wanted
    submit_s: int
    start_s: int
    end_s: int
    node: str
    gpus: Mapping[str, int]


def jobs(seed: int, count: int) -> list[Wanted]:
    """The jobs of this seed, in the order in which they come."""
    draw, made = random.Random(seed), list[Wanted]()
    for at_s in sorted(draw.uniform(0, SPAN_S) for _ in range(count)):
        run_s = draw.randint(5, 40)
        if draw.random() < 0.6:
            gpus, kind = draw.choices([1, 2, 4], [5, 3, 2])[0], draw.choice(["", "", "a"])
            cores, of_each_mb = gpus * draw.choice([1, 1, 2, 4]), draw.choice([4_000, 8_000, 16_000])
            made.append(Wanted(at_s, gpus, kind, min(cores, 8), min(gpus * of_each_mb, 60_000), run_s))
        else:
            cores = draw.choice([1, 2, 4, 8])
            made.append(Wanted(at_s, 0, "", cores, cores * draw.choice([1_000, 2_000, 4_000]), run_s))
    return made


def play(cluster: Cluster, wanted: Sequence[Wanted]) -> list[Ran]:
    """Submit the jobs when they come, wait for all ends, and read how they ran."""
    began, numbers = time.monotonic(), list[int]()
    for each in wanted:
        time.sleep(max(0.0, began + each.at_s - time.monotonic()))
        numbers.append(cluster.submit(each.words(), f"sleep {each.run_s}"))
    cluster.wait_for_end(numbers, 900)
    asked = dict(zip(numbers, wanted, strict=True))
    listed = ",".join(map(str, numbers))
    query = f"SLURM_TIME_FORMAT=%s sacct -nPX -j {listed} -o JobIDRaw,Submit,Start,End,NodeList,AllocTRES"
    found = list[Ran]()

    def all_known() -> bool:
        found[:] = [ran for line in cluster.run(query).splitlines() if (ran := _ran(line, asked)) is not None]
        return len(found) == len(numbers)

    cluster.wait_for("slurmdbd knows all ends", all_known, timeout_s=120, every_s=1)
    return found


def _ran(line: str, asked: Mapping[int, Wanted]) -> Ran | None:
    number, submit, start, end, node, allocated = line.split("|")
    if not (start.isdigit() and end.isdigit()):
        return None
    tres = dict(each.split("=") for each in allocated.split(",") if each)
    gpus = {name.rpartition(":")[2]: int(count) for name, count in tres.items() if name.startswith("gres/gpu:")}
    return Ran(asked[int(number)], int(submit), int(start), int(end), node, gpus)


def figures(ran: Sequence[Ran]) -> dict[str, float]:
    """What is printed of one side."""
    with_gpus = [each for each in ran if each.wanted.gpus]
    first_s, last_s = min(each.submit_s for each in ran), max(each.end_s for each in ran)
    idle_s = stranded_s = 0
    for now_s in range(first_s, last_s):
        waiting = [each.wanted for each in with_gpus if each.submit_s <= now_s < each.start_s]
        running = [each for each in ran if each.start_s <= now_s < each.end_s]
        for name in HAVE if waiting else ():
            idle, is_stranded = _idle(name, running, waiting)
            idle_s += idle
            stranded_s += idle if is_stranded else 0
    return {
        "mean_wait_with_gpus_s": _mean_wait_s(with_gpus),
        "mean_wait_s": _mean_wait_s(ran),
        "idle_gpu_s": idle_s,
        "stranded_gpu_s": stranded_s,
        "makespan_s": last_s - first_s,
    }


def _idle(name: str, running: Sequence[Ran], waiting: Sequence[Wanted]) -> tuple[int, bool]:
    """The idle GPUs of a node, and whether only cores or memory keep waiting jobs from them."""
    cores, memory_mb, kinds = HAVE[name]
    idle = dict(kinds)
    for each in running:
        if each.node == name:
            cores, memory_mb = cores - each.wanted.cores, memory_mb - each.wanted.memory_mb
            for kind, count in each.gpus.items():
                idle[kind] -= count
    able = [each for each in waiting if each.finds(idle)]
    return sum(idle.values()), bool(able) and not any(each.fits(cores, memory_mb) for each in able)


def _mean_wait_s(ran: Sequence[Ran]) -> float:
    return round(sum(each.start_s - each.submit_s for each in ran) / len(ran), 1)


@contextmanager
def managed(cluster: Cluster, sns_yaml: str) -> Iterator[None]:
    """The nodes with GPUs, managed as this edit of sns.yaml says."""
    with added_to_slurm_conf(cluster, sns_yaml=sns_yaml):
        restart(cluster)
        yield
    restart(cluster)


def main() -> int:
    """Play each seed's jobs on both sides and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--jobs", type=int, default=100)
    asked = parser.parse_args()
    cluster = Cluster()
    cluster.start_nodes(GPU_NODES)
    found: list[dict[str, Any]] = []
    try:
        for seed in asked.seeds:
            sides = {}
            for side, sns_yaml in (("slurm_sns", MANAGED), ("slurm_alone", "")):
                with managed(cluster, sns_yaml):
                    sides[side] = figures(play(cluster, jobs(seed, asked.jobs)))
                sys.stderr.write(f"seed {seed}, {side}: {sides[side]}\n")
            found.append({"seed": seed, **sides})
    finally:
        cluster.run("scancel -u alice")
        cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 60)
        cluster.stop_nodes(GPU_NODES)
        cluster.close()
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
