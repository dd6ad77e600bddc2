"""Figures 1, 2, 5 and 6 of the Max-Jobs paper: sizes of jobs, and bursts over buckets of 1000 jobs.

This checks the generator: the paper's statements on the traces of the four pools should hold for the generated ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, exactly, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import DAYS, POOLS

BUCKET = 1000
#: The whole month, as in the paper; quick: two days, in which pool A need not have a bucket above two cores.
QUICK_DAYS = 2.0
#: A bucket's mean of 1000 whole numbers has three.
BUCKET_DIGITS = 3
CORES = (1, 2, 4, 8)
MEMORY_GB = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: Our readings of "virtually no bursts" and of memory that is "particularly low".
NO_BURST_CORES, LOW_MEMORY_GB = 1.3, 3.0
#: Our reading of "a bucket" above two cores among 13 thousand: at most so many percent of them.
MOST_ABOVE_TWO = 1.0
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


def reproduce(options: Options) -> Page:
    """Generate the jobs, draw the figures and return the page."""
    days = QUICK_DAYS if options.quick else DAYS
    pieces = [(name, seed, days) for name in POOLS for seed in range(1, options.seeds + 1)]
    results = options.results("workload", look, pieces)
    seen = {
        name: [Seen(*map(np.array, each)) for piece, each in zip(pieces, results, strict=True) if piece[0] == name]
        for name in POOLS
    }
    numbers = _draw(options, seen)
    return Page(
        title="NetBatch workload: sizes and bursts (figures 1, 2, 5, 6)",
        made=[
            (
                f"`sns reproduce netbatch-workload`: the generator's pools A-D at full size, {days:g} days each, "
                f"{options.seeds} seeds. The paper's traces are not available. This page checks that the generated "
                "traces have the properties that the paper prints; the generator was built to give them these "
                "properties."
            )
        ],
        claims=[*_sizes(seen), *_bursts(seen)],
        drawings=[
            SavedFigure("figure-1", "Figure 1: cores that jobs ask for."),
            SavedFigure("figure-2", "Figure 2: memory that jobs ask for."),
            SavedFigure("figure-5", f"Figure 5: mean cores in buckets of {BUCKET} jobs, one seed."),
            SavedFigure("figure-6", f"Figure 6: mean memory in buckets of {BUCKET} jobs, one seed."),
        ],
        numbers=[numbers],
        seeds=options.seeds,
    )


def _draw(options: Options, seen: dict[str, list[Seen]]) -> DataTable:
    def shares(what: str, sizes: tuple[int, ...]) -> dict[str, dict[str, object]]:
        return {
            f"pool {name}": {
                str(size): interval([getattr(each, what)[at] for each in runs]) for at, size in enumerate(sizes)
            }
            for name, runs in seen.items()
        }

    cores, memory = shares("cores", CORES), shares("memory", MEMORY_GB)
    figures.bars(options.out, "figure-1", cores, ("cores", "% of jobs"))  # type: ignore[arg-type]
    figures.bars(options.out, "figure-2", memory, ("GB", "% of jobs"))  # type: ignore[arg-type]
    for stem, what, label in (("figure-5", "bucket_cores", "mean cores"), ("figure-6", "bucket_gb", "mean GB")):
        panels = {f"pool {name}": getattr(runs[0], what)[:DRAWN_BUCKETS] for name, runs in seen.items()}
        figures.courses(options.out, stem, panels, ("bucket", label))
    rows = [
        (pool, resource, size, value)
        for resource, table in (("cores", cores), ("memory_gb", memory))
        for pool, sizes in table.items()
        for size, value in sizes.items()
    ]
    return DataTable("sizes", ("pool", "resource", "size", "percent of jobs [95 %]"), rows)


def _sizes(seen: dict[str, list[Seen]]) -> list[Claim]:
    claims = []
    small, more = MEMORY_GB.index(8), MEMORY_GB.index(32)
    for name, runs in seen.items():
        serial = interval([each.cores[0] for each in runs])
        claims.append(
            Claim(
                "fig. 1", "the vast majority of jobs are serial", f"{name}: % of 1 core", serial, low=80, is_input=True
            )
        )
        below = interval([each.memory[: small + 1].sum() for each in runs])
        claims.append(
            Claim(
                "fig. 2", "memory is mostly 8 GB and below", f"{name}: % of at most 8 GB", below, low=50, is_input=True
            )
        )
        large = interval([each.memory[more:].sum() for each in runs])
        claims.append(
            Claim(
                "fig. 2",
                "some need 16, 32 GB or more",
                f"{name}: % of 32 GB or more",
                large,
                low=0,
                high=15,
                is_input=True,
            )
        )
    four = MEMORY_GB.index(4)
    for other in "ACD":
        more_in_b = [b.memory[four] - o.memory[four] for b, o in zip(seen["B"], seen[other], strict=True)]
        claims.append(
            Claim(
                "sec. 5",
                "B has the largest share of 4 GB jobs",
                f"points B - {other}",
                interval(more_in_b),
                low=0,
                is_input=True,
            )
        )
    return claims


def _bursts(seen: dict[str, list[Seen]]) -> list[Claim]:
    claims = []
    for name, runs in seen.items():
        tops = [float(each.bucket_cores.max()) for each in runs]
        top = exactly(min(tops) if name == "A" else max(tops))
        bounds: dict[str, Any] = {"low": 2.0} if name == "A" else {"high": 2.0}
        text = "only A has a bucket with a mean of more than 2 cores"
        claims.append(
            Claim(
                "fig. 5",
                text,
                f"{name}: largest bucket mean, cores; the {'least' if name == 'A' else 'largest'} of the seeds",
                top,
                **bounds,
                is_input=True,
            )
        )
    rare = interval([100 * float((each.bucket_cores > 2).mean()) for each in seen["A"]])
    text = 'A "is the only pool that had a bucket" above 2 cores: such buckets are rare'
    claims.append(
        Claim("fig. 5", text, "A: % of buckets above 2 cores", rare, low=0, high=MOST_ABOVE_TWO, is_input=True)
    )
    steady = interval([each.bucket_cores.max() for each in seen["D"]])
    claims.append(
        Claim(
            "fig. 5",
            "D: virtually no bursts of cores",
            "D: largest bucket mean, cores",
            steady,
            high=NO_BURST_CORES,
            is_input=True,
        )
    )
    many = interval([(each.bucket_gb > 20).sum() for each in seen["A"]])
    claims.append(
        Claim("fig. 6", "A has multiple buckets above 20 GB", "A: buckets above 20 GB", many, low=2, is_input=True)
    )
    for other in "BCD":
        cores = [a.bucket_cores.std() - o.bucket_cores.std() for a, o in zip(seen["A"], seen[other], strict=True)]
        claims.append(
            Claim(
                "fig. 5",
                "A is the burstiest in cores",
                f"std of buckets, A - {other}",
                interval(cores),
                low=0,
                is_input=True,
            )
        )
    for bursty, calm in (("A", "B"), ("A", "C"), ("A", "D"), ("B", "C"), ("B", "D")):
        memory = [_excess(o.bucket_gb) - _excess(c.bucket_gb) for o, c in zip(seen[bursty], seen[calm], strict=True)]
        text = "A, then B, are the burstiest in memory"
        measure = f"excess of buckets over the median (GB), {bursty} - {calm}"
        claims.append(Claim("fig. 6", text, measure, interval(memory), low=0, is_input=True))
    low = interval([100 * (each.bucket_gb < LOW_MEMORY_GB).mean() for each in seen["D"]])
    text = "D has periods of particularly low memory demand"
    claims.append(Claim("fig. 6", text, f"D: % of buckets below {LOW_MEMORY_GB:g} GB", low, low=5, is_input=True))
    return claims


def _excess(means: NDArray[np.float64]) -> float:
    """The root of the mean square by which buckets exceed the median: bursts, without periods of little demand."""
    return float(np.sqrt((np.maximum(means - np.median(means), 0) ** 2).mean()))
