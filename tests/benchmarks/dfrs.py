"""DFRS: the time of one allocation by MCB8 with its search, and of the replay of a trace.

    python tests/benchmarks/dfrs.py [--snapshots 300] [--seed 1] [--repeat 3] [--only-overload]

Prints JSON. `allocation` is for 102 jobs on 128 nodes, the largest of the paper, `large` for 1,000 active jobs on
10,000 nodes: milliseconds of the compiled decision (search, packing, yields), the snapshot's arrays being there, and
of all that a live cycle would do (`with_arrays`). `ratio` is that of the oracle's median to the kernel's, on
smaller snapshots. `replay` is the time in seconds for 1,000 jobs of the paper's synthetic trace, by algorithm.

`overload` is the replay of 2,500 to 40,000 jobs of that trace at 1.5 times what the nodes can do, so that most jobs
wait: by algorithm and number of jobs, the median and the largest time in processor seconds of `--repeat` runs, the
exponent with which it grew since the size before (1 is linear), and the number of instants.
"""

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from slurm_sns.cli.compiled_code import keep_by_state

keep_by_state()
sys.path.append(str(Path(__file__).parents[1]))  # oracles

from oracles.dfrs import instant as plain  # noqa: E402  numba's cache directory is set first

from slurm_sns.policies.dfrs import instant  # noqa: E402
from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, DYNMCB8  # noqa: E402
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment  # noqa: E402
from slurm_sns.policies.dfrs.instant import (  # noqa: E402
    FluidJob,
    Instant,
    Nodes,
)
from slurm_sns.policies.dfrs.instant_kernel import decide  # noqa: E402
from slurm_sns.sim.replay.fluid_replay import replay_fluid  # noqa: E402
from slurm_sns.sim.traces.fluid_trace import whole_nodes  # noqa: E402
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_NODES, paper_trace, scaled  # noqa: E402

NOW_S = 100_000
#: Jobs, and the work that they bring over what the nodes can do.
SIZES = (2_500, 5_000, 10_000, 20_000, 40_000)
OVERLOAD = 1.5


def snapshot(rng: np.random.Generator, jobs: int, nodes: int) -> Instant:
    """Jobs of the paper's kind with up to as many tasks as the nodes hold memory for, on nodes of 100 %."""
    most = max(2, nodes // 2)
    tasks = np.where(rng.random(jobs) < 0.24, 1, np.exp2(rng.uniform(1, np.log2(most), jobs)).astype(int))
    memory = np.where(rng.random(jobs) < 0.55, 10, 10 * rng.integers(2, 11, jobs))
    tasks = np.maximum(tasks * min(1.0, 70 * nodes / float((tasks * memory).sum())), 1).astype(int)
    flow = rng.integers(1, 50_000, jobs)
    virtual = (flow * rng.random(jobs)).astype(int)
    listed = sorted(
        (NOW_S - int(f), int(t), 25 if t == 1 else 100, int(m), int(v))
        for f, t, m, v in zip(flow, tasks, memory, virtual, strict=True)
    )
    each = tuple(FluidJob(at, *job[:4], job[4]) for at, job in enumerate(listed))
    return Instant(NOW_S, Nodes((100,) * nodes, (100,) * nodes), each)


def milliseconds(function: Callable[[Instant], object], snapshots: list[Instant]) -> dict[str, float]:
    """The times of the function, called once for each snapshot."""
    took = []
    for at in snapshots:
        began = time.perf_counter()
        function(at)
        took.append(1000 * (time.perf_counter() - began))
    return {
        "mean": round(float(np.mean(took)), 4),
        "median": round(float(np.median(took)), 4),
        "p99": round(float(np.percentile(took, 99)), 4),
        "most": round(max(took), 4),
    }


def of_kernel(snapshots: list[Instant]) -> dict[str, float]:
    """The times of the kernel alone."""
    ready = {id(at): instant.arrays_of(at) for at in snapshots}
    clock = DecisionMoment(float(NOW_S), False, 600.0, NOW_S + 600.0)
    return milliseconds(lambda at: decide(DYNMCB8, ready[id(at)], clock), snapshots)


def overload(seed: int, repeat: int) -> dict[str, dict[int, dict[str, float]]]:
    """How the time of a replay grows with the number of jobs, most of which wait."""
    trace = scaled(paper_trace(np.random.default_rng(seed), jobs=SIZES[-1]), PAPER_NODES, OVERLOAD)
    figures: dict[str, dict[int, dict[str, float]]] = {}
    for name, algorithm in ALGORITHMS.items():
        rows = figures[name] = {}
        replay_fluid(whole_nodes(PAPER_NODES), trace.only(slice(10)), algorithm)  # compiles
        for size in SIZES:
            first = trace.only(slice(size))
            took, instants = [], 0
            for _ in range(repeat):
                began = time.process_time()
                instants = replay_fluid(whole_nodes(PAPER_NODES), first, algorithm).instants[0]
                took.append(time.process_time() - began)
            median = float(np.median(took))
            rows[size] = {"median_s": round(median, 3), "most_s": round(max(took), 3), "instants": instants}
        for few, many in pairwise(SIZES):
            grown = rows[many]["median_s"] / rows[few]["median_s"]
            rows[many]["exponent"] = round(math.log(grown) / math.log(many / few), 2)
    return figures


def main() -> None:
    """Run all and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only-overload", action="store_true", help="no other figures")
    given = parser.parse_args()
    if given.only_overload:
        sys.stdout.write(json.dumps(overload(given.seed, given.repeat), indent=2) + "\n")
        return
    rng = np.random.default_rng(given.seed)
    paper = [snapshot(rng, 102, PAPER_NODES) for _ in range(given.snapshots)]
    large = [snapshot(rng, 1000, 10_000) for _ in range(max(given.snapshots // 10, 10))]
    small = [snapshot(rng, 20, 16) for _ in range(10)]
    instant.decide(DYNMCB8, paper[0])
    oracle, kernel = (milliseconds(lambda at, by=by: by(DYNMCB8, at), small) for by in (plain.decide, instant.decide))
    trace = scaled(paper_trace(np.random.default_rng(given.seed)), PAPER_NODES, 0.7)
    replay_fluid(whole_nodes(PAPER_NODES), trace, ALGORITHMS["dfrs-greedy"])  # compiles
    replays = {}
    for name, algorithm in ALGORITHMS.items():
        began = time.perf_counter()
        replay_fluid(whole_nodes(PAPER_NODES), trace, algorithm, penalty_s=300)
        replays[name] = round(time.perf_counter() - began, 3)
    figures = {
        "allocation_ms": of_kernel(paper),
        "allocation_with_arrays_ms": milliseconds(lambda at: instant.decide(DYNMCB8, at), paper),
        "large_ms": of_kernel(large),
        "large_with_arrays_ms": milliseconds(lambda at: instant.decide(DYNMCB8, at), large),
        "ratio": round(oracle["median"] / kernel["median"], 1),
        "replay_s": replays,
        "overload": overload(given.seed, given.repeat),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
