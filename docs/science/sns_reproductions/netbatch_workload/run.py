"""Generate the jobs of each pool, and see how large they are, alone and in buckets of 1000.

This checks the generator: the paper's statements on the traces of the four pools should hold for the generated ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity, in_pairs, interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import DAYS, POOLS

BUCKET = 1000
#: The whole month, as in the paper; quick: two days, in which pool A need not have a bucket above two cores.
QUICK_DAYS = 2.0
#: A bucket's mean of 1000 whole numbers has three.
BUCKET_DIGITS = 3
CORES = (1, 2, 4, 8)
MEMORY_GB = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: Figures 5 and 6 show so many buckets: two weeks' lines would be a solid block.
DRAWN_BUCKETS = 2000


@dataclass(frozen=True)
class Seen:
    """One seed of one pool: the percentage of jobs of each size, and the mean size of each bucket."""

    cores: NDArray[np.float64]
    memory: NDArray[np.float64]
    bucket_cores: NDArray[np.float64]
    bucket_gb: NDArray[np.float64]


def look(piece: tuple[str, int, float]) -> list[list[float]]:
    """Generate the jobs of one seed and count: the fields of `Seen`, in its order."""
    name, seed, days = piece
    totals = np.zeros(len(CORES) + len(MEMORY_GB) + 1)
    means: list[NDArray[np.float64]] = []
    rest = np.zeros((2, 0))
    for part in generate(POOLS[name], scale=1.0, seed=seed, days=days):
        counts = [*((part.cores == size).sum() for size in CORES), *((part.memory_gb == s).sum() for s in MEMORY_GB)]
        totals += [*counts, len(part.cores)]
        both = np.concatenate([rest, [part.cores, part.memory_gb]], axis=1)
        whole = both.shape[1] // BUCKET * BUCKET
        means.append(both[:, :whole].reshape(2, -1, BUCKET).mean(axis=2))
        rest = both[:, whole:]
    shares = 100 * totals[:-1] / totals[-1]
    cores, memory_gb = np.concatenate(means, axis=1).round(BUCKET_DIGITS).tolist()
    return [shares[: len(CORES)].tolist(), shares[len(CORES) :].tolist(), cores, memory_gb]


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Generate the jobs and draw the figures."""
    days = QUICK_DAYS if options.quick else DAYS
    pieces = [(name, seed, days) for name in POOLS for seed in range(1, options.seeds + 1)]
    results = options.results("workload", look, pieces)
    seen = {name: [Seen(*map(np.array, each)) for piece, each in results.items() if piece[0] == name] for name in POOLS}
    for stem, what, label in (("figure-5", "bucket_cores", "mean cores"), ("figure-6", "bucket_gb", "mean GB")):
        panels = {f"pool {name}": getattr(runs[0], what)[:DRAWN_BUCKETS] for name, runs in seen.items()}
        figures.courses(options.out, stem, panels, ("bucket", label))
    rows = []
    for stem, what, label, sizes in (("figure-1", "cores", "cores", CORES), ("figure-2", "memory", "GB", MEMORY_GB)):
        bars = {
            f"pool {name}": {
                str(size): interval([getattr(each, what)[at] for each in runs]) for at, size in enumerate(sizes)
            }
            for name, runs in seen.items()
        }
        figures.bars(options.out, stem, bars, (label, "% of jobs"))
        column = "cores" if what == "cores" else "memory_gb"
        rows += [(pool, column, size, value) for pool, of_pool in bars.items() for size, value in of_pool.items()]
    return PageResults(
        quantities(seen, data),
        [DataTable("sizes", ("pool", "resource", "size", "percent of jobs [95 %]"), rows)],
        {"days": days, "bucket": BUCKET},
        options.seeds,
    )


def quantities(seen: Mapping[str, list[Seen]], data: Mapping[str, Any]) -> dict[str, Quantity]:
    """Of each pool, POOL NAME by seed, and the differences of pools, POOL - POOL NAME; also extremes over the seeds."""
    of = {pool: list(map(dict, (_measured(each, data) for each in runs))) for pool, runs in seen.items()}
    samples = {pool: {name: np.array([each[name] for each in of[pool]]) for name in of[pool][0]} for pool in of}
    found = in_pairs(samples)
    for pool, each in samples.items():
        found |= {f"{pool} least top": float(each["top"].min()), f"{pool} largest top": float(each["top"].max())}
    return found


def _measured(seen: Seen, data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The quantities of a seed."""
    yield "serial", seen.cores[0]
    yield "small", seen.memory[: MEMORY_GB.index(data["small_gb"]) + 1].sum()
    yield "large", seen.memory[MEMORY_GB.index(data["large_gb"]) :].sum()
    yield "four", seen.memory[MEMORY_GB.index(4)]
    yield "top", seen.bucket_cores.max()
    yield "wide", 100 * float((seen.bucket_cores > data["wide_cores"]).mean())
    yield "bursts", (seen.bucket_gb > data["burst_gb"]).sum()
    yield "spread", seen.bucket_cores.std()
    # The root of the mean square by which buckets exceed the median: bursts, without periods of little demand.
    yield "excess", float(np.sqrt((np.maximum(seen.bucket_gb - np.median(seen.bucket_gb), 0) ** 2).mean()))
    yield "low", 100 * (seen.bucket_gb < data["low_gb"]).mean()
