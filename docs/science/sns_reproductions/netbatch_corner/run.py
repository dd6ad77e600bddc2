"""Match buckets by Mix-Fit's angle at the top-right corner, as in the paper, and at the origin.

Buckets and machines are those of page netbatch-buckets. At the top-right corner the angle is between what would be left
of cores and memory and the machine's ratio, at the origin between what would be used and that ratio. Both are computed
here, of all buckets at once; the other heuristics are matched by the kernel.

*Loaded machines*: at least half of the cores and half of the memory are used. Of each loaded machine on which a job
fits we record by how many degrees the job would change the machine's angle, at each corner. *Imbalance*: when a bucket
has been matched, the mean over the machines of the difference between the used shares of cores and memory.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.policies.placement import node_arrays
from slurm_sns.sim.pages.judge import Quantity, interval, percent_more
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB
from slurm_sns.sim.traces.nodes_csv import MIB_PER_GB
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import MIX, Shares, by_member, points
from sns_reproductions.netbatch_buckets.run import BUCKET, EMPTY, Sizes, buckets_of, matches, winners

#: Days whose buckets take part.
DAYS, QUICK_DAYS = 0.3, 0.02
TOP_RIGHT, ORIGIN = "top-right corner", "origin"
CORNERS = (TOP_RIGHT, ORIGIN)
#: Of `heuristics.mix_fit`: the machine's size when what is left is computed, and the digits of an angle.
SIZE, DIGITS = 1.01, 9
LOADED = 0.5
#: The other heuristics of the contest.
SINGLE = tuple(member for member in PAPER_PORTFOLIO if member != MIX)
HEADER = ("pool", "measure", *CORNERS)
#: What is measured at each corner, and in which unit.
MEASURES = ("% of buckets won", "jobs matched", "imbalance", "degrees changed on loaded machines")


class AngleMatches(NamedTuple):
    """By bucket: the jobs matched, and the machines' imbalance in points. `degrees`: the mean change by corner."""

    matched: NDArray[np.int64]
    imbalance: NDArray[np.float64]
    degrees: Mapping[str, float]


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run the contests."""
    days, seeds = QUICK_DAYS if options.quick else DAYS, range(1, options.seeds + 1)
    found = options.results("corners", contest, [(pool, seed, days) for seed in seeds for pool in POOLS])
    samples = {
        pool: {corner: by_member(MEASURES, [found[pool, seed, days][corner] for seed in seeds]) for corner in CORNERS}
        for pool in POOLS
    }
    won = Shares({pool: {corner: of[MEASURES[0]] for corner, of in samples[pool].items()} for pool in POOLS}, "won")
    quantities: dict[str, Quantity] = points([won])
    for pool, by_corner in samples.items():
        one, other = by_corner[ORIGIN], by_corner[TOP_RIGHT]
        quantities[f"{pool} jobs"] = percent_more(one["jobs matched"], other["jobs matched"])
        for measure in MEASURES[2:]:
            quantities[f"{pool} {measure}"] = other[measure] - one[measure]
    rows = [
        (pool, measure, *(interval(of[measure]) for of in samples[pool].values()))
        for pool in POOLS
        for measure in MEASURES
    ]
    fields = {"days": days, "bucket": BUCKET, "pools": list(POOLS), "corners": CORNERS, "loaded_pct": 100 * LOADED}
    return PageResults(quantities, [DataTable("corners", HEADER, rows)], fields, options.seeds)


def contest(piece: tuple[str, int, float]) -> dict[str, list[float]]:
    """MEASURES by corner, over a seed's buckets; in each contest are Mix-Fit with this corner, and SINGLE."""
    name, seed, days = piece
    found: dict[str, list[list[float]]] = {corner: [] for corner in CORNERS}
    weights = []
    for sizes in buckets_of(name, seed, days):
        others = matches(sizes, SINGLE)
        weights.append(len(others))
        for corner in CORNERS:
            ours = matched_by_angle(sizes, corner)
            won = winners(np.column_stack([others, ours.matched]))[:, -1]
            found[corner].append([100 * won.mean(), ours.matched.mean(), ours.imbalance.mean(), ours.degrees[corner]])
    return {corner: np.average(rows, axis=0, weights=weights).tolist() for corner, rows in found.items()}


def matched_by_angle(sizes: Sizes, corner: str) -> AngleMatches:
    """Match each bucket to the empty machines, each job to the one with the smallest angle; ties: the first."""
    cores, memory_gb = (each.reshape(-1, BUCKET) for each in sizes)
    demand = np.stack([cores, np.maximum(memory_gb * MIB_PER_GB, SMALLEST_MEMORY_MB)]).astype(np.int64)
    rows = [node_arrays.CORES, node_arrays.MEMORY]
    configured = EMPTY.capacity[rows][:, np.newaxis]
    used = np.zeros((2, len(cores), len(EMPTY.names)), np.int64)
    matched, buckets = np.zeros(len(cores), np.int64), np.arange(len(cores))
    changes = dict.fromkeys(CORNERS, 0.0)
    count = 0
    for job in range(BUCKET):
        after = used + demand[:, :, job, np.newaxis]
        fits = (after <= configured).all(axis=0)
        angles = angle_at(corner, after / configured)
        chosen = np.where(fits, angles, np.inf).argmin(axis=1)
        loaded = fits & (used >= LOADED * configured).all(axis=0)
        if loaded.any():
            count += int(loaded.sum())
            before, then = used[:, loaded] / configured[:, 0, :1], after[:, loaded] / configured[:, 0, :1]
            for each in CORNERS:
                changes[each] += float(np.abs(angle_at(each, then) - angle_at(each, before)).sum())
        placed = buckets[np.any(fits, axis=1)]
        used[:, placed, chosen[placed]] += demand[:, placed, job]
        matched[placed] += 1
    cores_used, memory_used = used / configured
    degrees = {each: float(np.degrees(total / count)) if count else 0.0 for each, total in changes.items()}
    return AngleMatches(matched, 100 * np.abs(cores_used - memory_used).mean(axis=1), degrees)


def angle_at(corner: str, used: NDArray[np.float64]) -> NDArray[np.float64]:
    """The angle in radians at a corner, from the used shares of cores and memory, shape (2, ...)."""
    cores, memory = SIZE - used if corner == TOP_RIGHT else used
    angles: NDArray[np.float64] = np.round(np.abs(np.pi / 4 - np.arctan2(cores, memory)), DIGITS)
    return angles
