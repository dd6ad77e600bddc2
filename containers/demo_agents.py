"""The demo's part on the agents: a program that nobody has profiled, and programs that keep their part of a cache.

The programs are emulated, and so are the caches; scheduler, agents and jobs are real. What is shown is read from them.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cluster import Cluster, fold
from ways_picture import Picture, of_nodes

NODES = ("c1", "c2", "c3", "c4")
#: Two scales, so that the demo is short; three quarters of the nodes at most explore.
EXPLORING = "learning: {explore: true, most_nodes: 0.75}"
SOLVER = "-n16 --mem-per-cpu=200 --sns-program=solver --sns-max-scale=2"
#: The programs that share nodes, how many seconds each works alone, and what each is promised.
PAIR = {"lattice": 9, "stream": 9}
ALPHA = 0.9
#: How long lattice is alone on its node before stream comes, in seconds.
ALONE_S = 3
PICTURE = Path("demo-ways.png")


def show_agents(cluster: Cluster, console: Console) -> None:
    """Explore a program, and let two share nodes, with the agents and without."""
    if cluster.try_run("test -e /sys/fs/resctrl/schemata", node="c1").returncode:
        console.print("left out: this host has no /dev/fuse, so the nodes have no emulated resctrl and no agents")
        return
    cluster.run(f"{{ cat /etc/slurm/sns.yaml; echo '{EXPLORING}'; }} > /tmp/sns-exploring.yaml")
    cluster.run("sed '/^  solver:/,/^  # Lives/d' /usr/src/slurm_sns/containers/programs.yaml > /tmp/pair.yaml")
    cluster.run("chmod a+r /tmp/pair.yaml")
    cluster.run("sns profile import /tmp/pair.yaml", "slurm")
    cluster.daemon("restart", config="/tmp/sns-exploring.yaml")
    cluster.wait_for_scheduler()
    cluster.wait_for("the agents are connected", lambda: not cluster.status()["agents"]["away"])
    console.rule("a program that nobody has profiled: alone and measured first, then spread by what was measured")
    console.print(explored(cluster))
    console.print(escape(cluster.run("sns profile show solver", "alice")))
    console.rule("a program that needs the cache beside one that needs memory bandwidth, on each node")
    watchers = {node: watch(cluster, node) for node in NODES}
    jobs, kept = pairs(cluster)
    pictured(cluster, console, watchers, jobs)
    for node in NODES:
        cluster.run("sns-daemon stop agent && sns agent --clean-up", node=node)
    _, lost = pairs(cluster, alone_s=0)
    for node in NODES:
        cluster.run("sns-daemon start agent", node=node)
    console.print(side_by_side(kept, lost))


def explored(cluster: Cluster) -> Table:
    """Submit the program again and again; one row for each run."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("JOB", "SCALE", "NODES", "RUN", "WHAT FOR"):
        table.add_column(name, justify="right" if name in ("JOB", "SCALE", "RUN") else "left")
    while True:
        number = cluster.submit(SOLVER, "sns-emulated solver")
        job = cluster.wait_for_end([number])[number]
        start = cluster.starts([number])[number]
        reason = start["reason"]
        explores = reason.partition("explores ")[2].rpartition(": ")[2] if "explores " in reason else ""
        run_s = f"{job.end_s - job.start_s:.0f} s"
        what = f"explores: {explores}" if explores else "runs by what was measured"
        table.add_row(str(number), str(start["scale"]), fold(job.nodes) + " alone" * start["exclusive"], run_s, what)
        if not explores:
            return table


def pairs(cluster: Cluster, alone_s: float = ALONE_S) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
    """Run one job of each program on each node; return the jobs, and how fast each ran beside the other."""
    jobs: dict[str, list[int]] = {}
    for name, work_s in PAIR.items():
        asked = f"-n12 --mem-per-cpu=200 --sns-program={name} --sns-alpha={ALPHA}"
        jobs[name] = cluster.submit_all([(asked, f"sns-emulated {name} --work-seconds {work_s}")] * len(NODES))
        cluster.wait_for(f"{name} runs", lambda name=name: all(name in speeds(cluster, node) for node in NODES))
        time.sleep(alone_s if name != list(PAIR)[-1] else 1)
    found: dict[str, list[float]] = {name: [] for name in PAIR}
    for node in NODES:
        for name, speed in speeds(cluster, node).items():
            found[name].append(speed)
    cluster.wait_for_end([number for numbers in jobs.values() for number in numbers])
    return jobs, found


def speeds(cluster: Cluster, node: str) -> dict[str, float]:
    """How fast each emulated program of a node runs now: 1 is alone with all ways."""
    lines = cluster.run("cat /sys/fs/resctrl/.emulator/programs", node=node).splitlines()
    programs: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return {each["name"]: each["speed"] for each in programs if each["speed"]}


def watch(cluster: Cluster, node: str) -> int:
    """Begin to note what each group of the node has; the process that does so."""
    return int(cluster.run("cluster-watch-ways /tmp/ways.jsonl > /dev/null 2>&1 & echo $!", node=node))


def pictured(
    cluster: Cluster, console: Console, watchers: Mapping[str, int], jobs: Mapping[str, Sequence[int]]
) -> None:
    """Show which job had which ways, over time."""
    texts = {}
    for node, process in watchers.items():
        time.sleep(0.3)
        texts[node] = cluster.run(f"kill {process}; cat /tmp/ways.jsonl", node=node)
    names = {f"sns_job{number}": f"{name} (job {number})" for name, numbers in jobs.items() for number in numbers}
    picture = Picture(of_nodes(texts), names)
    for line in picture.terminal():
        console.print(line)
    picture.save(PICTURE)
    console.print(f"the same as a picture: {PICTURE.resolve()}")


def side_by_side(kept: Mapping[str, Sequence[float]], lost: Mapping[str, Sequence[float]]) -> Table:
    """How fast the programs ran beside each other, with and without partitions."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("PROGRAM", "PROMISED", "WITH AGENTS", "WITHOUT"):
        table.add_column(name, justify="left" if name == "PROGRAM" else "right")
    for name in PAIR:
        found = [f"{min(each[name]):.0%}" if each[name] else "ended" for each in (kept, lost)]
        table.add_row(name, f"{ALPHA:.0%}", *found)
    table.caption = "of its speed alone, at least, on any of the nodes"
    return table
