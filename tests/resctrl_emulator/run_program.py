#!/usr/bin/env python3
"""A job's task that is an emulated program on this node until its work is done: it computes nothing.

    run_program.py NAME [--processes P] [--scale K] [--work-seconds S]

It tells the emulated resctrl of this node which program it is, with the cores that it has here (P over the job's nodes,
in equal parts on both cache domains), and waits: how long the work takes follows from the ways and the bandwidth that
it has, and from its neighbours. S is the time that the work takes alone with all ways; default: the profile's. With
several tasks on a node the first one is the program, the others end at once. It ends with 0 when the work is done.

Standard library only, so that a job starts it at once; the profile is read by the emulator.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

ROOT = Path("/sys/fs/resctrl")
#: How often it looks whether the work is done: no more often than this, and as seldom as its speed allows.
LEAST_S, MOST_S = 0.05, 1.0


def register(root: Path, chosen: argparse.Namespace) -> None:
    """Begin."""
    nodes = chosen.nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    cores = math.ceil(chosen.processes / nodes)
    halves = {"0": cores - cores // 2, "1": cores // 2}
    wish: dict[str, object] = {
        "start": chosen.name,
        "processes": chosen.processes,
        "scale": chosen.scale,
        "tasks": [os.getpid()],
        "cores": {domain: count for domain, count in halves.items() if count},
    }
    wish["work_s"] = "profile" if chosen.work_seconds is None else chosen.work_seconds
    (root / ".emulator" / "programs").write_text(json.dumps(wish))


def mine(root: Path) -> dict[str, float] | None:
    """What the emulator says of this program; None if it does not know it (any more)."""
    for line in (root / ".emulator" / "programs").read_text().splitlines():
        program = json.loads(line)
        if os.getpid() in program["tasks"]:
            return program
    return None


def main() -> int:
    """Run to the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="of a profile")
    parser.add_argument("--processes", type=int, default=int(os.environ.get("SLURM_NTASKS", "16")))
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--nodes", type=int, help="default: those of the job")
    parser.add_argument("--work-seconds", type=float)
    parser.add_argument("--root", type=Path, default=ROOT)
    chosen = parser.parse_args()
    if os.environ.get("SLURM_LOCALID", "0") != "0":
        return 0
    register(chosen.root, chosen)
    while True:
        program = mine(chosen.root)
        if program is None:
            sys.stderr.write("the emulator has forgotten this program: it was started anew\n")
            return 1
        left_s = (program["work_s"] or math.inf) - program["done_s"]
        if left_s <= 0:
            return 0
        speed = program["speed"] or 1.0
        time.sleep(min(MOST_S, max(LEAST_S, 0.5 * left_s / speed)))


if __name__ == "__main__":
    sys.exit(main())
