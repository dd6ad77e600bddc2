"""How the time of `sns simulate` grows with jobs, machines and queue depth: a table, a plot and a page.

    python tests/benchmarks/growth.py DIRECTORY --out docs/science/results/replay-growth [--repeat 3]

One of the three sizes changes at a time. Missing traces are generated in DIRECTORY. Each point is the smallest
user + system time of the process over the repetitions, minus the smallest of the same process with `--limit 1`.
"""

import argparse
from itertools import pairwise
from math import log
from pathlib import Path

from pool_a import write_pool
from replay import POLICIES, account

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import exactly
from slurm_sns.sim.pages.page import write_page
from slurm_sns.sim.pages.running import DataTable

BASE = {"jobs": 1_000_000, "machines": 1_633, "depth": 1_000}
GROWN = {
    "jobs": (300_000, 1_000_000, 3_000_000),
    "machines": (400, 1_633, 6_500),
    "depth": (100, 1_000, 10_000),
}
SHOWN = ("mix-fit", "max-jobs-5", "max-jobs-7")
#: More load than the machines can serve: thousands of jobs wait, and every cycle looks at `queue_depth` jobs.
LOAD = 1.05


def net_s(trace: Path, nodes: Path, options: list[str], repeat: int) -> tuple[float, float]:
    """Processor seconds of the replay without the start of the process, and the mean queue length."""
    account(trace, nodes, *options, "--limit", "1")  # the first run compiles
    start, whole = [], []
    for _ in range(repeat):
        start.append(account(trace, nodes, *options, "--limit", "1").cpu_s)
        whole.append(account(trace, nodes, *options))
    return min(run.cpu_s for run in whole) - min(start), whole[0].summary["mean_queue_length"]


def measure(directory: Path, repeat: int) -> dict[tuple[int, int, int, str], tuple[float, float]]:
    """(jobs, machines, depth, policy) -> seconds and mean queue length."""
    sizes = [{**BASE, what: value} for what, values in GROWN.items() for value in values]
    found = {}
    for jobs, machines, depth in dict.fromkeys(tuple(size.values()) for size in sizes):
        folder = directory / f"jobs-{jobs}-machines-{machines}"
        made = folder / "trace.csv.gz", folder / "nodes.csv"
        if not made[0].is_file():
            write_pool(folder, jobs, machines, LOAD, seed=1)
        for policy in SHOWN:
            options = [*POLICIES[policy], "--queue-depth", str(depth)]
            found[jobs, machines, depth, policy] = net_s(*made, options, repeat)
    return found


def write(out: Path, found: dict[tuple[int, int, int, str], tuple[float, float]], repeat: int) -> None:
    """Draw the figure and write the page."""
    panels, rows, exponents = {}, [], []
    for what, values in GROWN.items():
        at = list(BASE).index(what)
        sizes = [tuple({**BASE, what: value}.values()) for value in values]
        panels[f"{what}: " + ", ".join(f"{n} {v:,}" for n, v in BASE.items() if n != what)] = {
            policy: [(size[at], exactly(found[*size, policy][0])) for size in sizes] for policy in SHOWN
        }
        rows += [(what, *size, policy, *found[*size, policy]) for size in sizes for policy in SHOWN]
        exponents += [(what, policy, *_exponents(values, [found[*s, policy][0] for s in sizes])) for policy in SHOWN]
    figures.lines(out, "growth", panels, ("size", "processor seconds"), logarithmic=True)
    header = ("grows", *BASE, "policy", "net_cpu_s", "mean_queue_length")
    fields = {
        "load": LOAD,
        "repeat": repeat,
        "base": BASE,
        "exponents": DataTable("exponents", ("grows", "policy", "first step", "second step"), exponents),
    }
    write_page(out, Path(__file__).with_name("growth.md.j2"), [], [DataTable("growth", header, rows)], fields)


def _exponents(sizes: tuple[int, ...], seconds: list[float]) -> list[str]:
    steps = zip(pairwise(sizes), pairwise(seconds), strict=True)
    return [f"{log(after_s / before_s) / log(after / before):.2f}" for (before, after), (before_s, after_s) in steps]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    found = measure(given.directory, given.repeat)
    write(given.out, found, given.repeat)


if __name__ == "__main__":
    main()
