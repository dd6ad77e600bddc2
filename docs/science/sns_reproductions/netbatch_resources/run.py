"""Run the pools with jobs that demand a third resource of their machine, or a third and a fourth.

These are as scarce as the scarcer of cores and memory, and independent of both. They stand for anything that a machine
has a fixed amount of: scratch space, disk bandwidth, licences. (In the code they are memory bandwidth and cache ways,
the further resources that the scheduler knows.) Mix-Fit then balances all of them, or still only cores and memory; each
further resource also has a best-fit and a worse-fit of its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.node_arrays import BANDWIDTH, CORES, MEMORY, WAYS, NodeArrays
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import ABOUT, MIX, above, beside, waits_of
from sns_reproductions.netbatch_sweeps import HIGHEST_LOAD, INTERVAL_S, MAX_JOBS, generated

#: How many resources jobs demand.
COUNTS, QUICK_COUNTS = (2, 3, 4), (2, 3)
#: What a job demands of a further resource, in units of its own, and the shares of jobs (assumed: most demand little).
LEVELS, SHARES = (100, 200, 400, 1200), (0.4, 0.3, 0.2, 0.1)
#: Scale and days; quick.
SIZE, QUICK_SIZE = (0.05, 10.0), (0.02, 0.5)

MIX_OF_TWO, WITH_PAIRS = "mix-fit of cores and memory", "max-jobs with their pairs"
#: The heuristics of the third and of the fourth resource.
PAIRS = (("best-fit-bandwidth", "worse-fit-bandwidth"), ("best-fit-ways", "worse-fit-ways"))


def policies(count: int) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Policy -> its portfolio, and whether its heuristics see the further resources."""
    pairs = tuple(name for pair in PAIRS[: count - 2] for name in pair)
    found: dict[str, tuple[tuple[str, ...], bool]] = {name: ((name,), True) for name in (*PAPER_PORTFOLIO, *pairs)}
    found[MAX_JOBS] = (PAPER_PORTFOLIO, True)
    if pairs:
        found[MIX_OF_TWO] = ((MIX,), False)
        found[WITH_PAIRS] = ((*PAPER_PORTFOLIO, *pairs), True)
    return found


def compare(piece: tuple[str, int, int, float, float]) -> dict[str, float]:
    """The mean wait under each policy; the piece is pool, number of resources, seed, scale and days."""
    name, count, seed, scale, days = piece
    pool, records = generated(POOLS[name], HIGHEST_LOAD, scale=scale, seed=seed, days=days)
    if count > 2:
        pool, records = with_more(pool, records, count - 2, np.random.default_rng([seed, count]))
    waits = {}
    for policy, (members, seen) in policies(count).items():
        rules = rules_of(MatchingParameters(portfolio=members))
        replayed = replay(pool, records, rules, interval_s=INTERVAL_S, only_cores_and_memory=not seen)
        waits[policy] = float((replayed.start_s - records.submit_s).mean())
    return waits


def with_more(
    pool: NodeArrays, records: TraceArrays, further: int, rng: np.random.Generator
) -> tuple[NodeArrays, TraceArrays]:
    """The pool and the jobs with one or two further resources: bandwidth, then cache ways.

    A machine has them in proportion to its cores, so much that their load is that of the scarcer of cores and memory.
    A job that no machine could hold demands as much as the largest machine for it has.
    """
    levels = rng.choice(len(LEVELS), size=(len(records), further), p=SHARES)
    demand = np.array(LEVELS)[levels]
    held = np.array([[nodes * cores, nodes * memory_mb] for nodes, cores, memory_mb, _ in records.kinds], np.float64)
    run_s = records.run_s.astype(np.float64)
    work = (held[records.kind] * run_s[:, np.newaxis]).sum(axis=0)
    whole = pool.capacity[[CORES, MEMORY]].sum(axis=1)
    scarcest = float((work / whole).max())  # seconds in which the whole pool would do the work
    per_core = (demand * run_s[:, np.newaxis]).sum(axis=0) / scarcest / whole[0]

    capacity = pool.capacity.copy()
    rows = [BANDWIDTH, WAYS][:further]
    for row, amount in zip(rows, per_core.tolist(), strict=True):
        capacity[row] = np.rint(capacity[CORES] * amount)
    number = records.kind.astype(np.int64)
    for column in levels.T:
        number = number * len(LEVELS) + column
    found, kind = np.unique(number, return_inverse=True)
    kinds = [records.kinds[int(each) // len(LEVELS) ** further] for each in found]
    amounts = np.zeros((len(found), 2), np.int64)
    for at, row in enumerate(rows):
        level = found // len(LEVELS) ** (further - 1 - at) % len(LEVELS)
        most = np.array([_largest(capacity, cores, memory_mb, row) for _, cores, memory_mb, _ in kinds])
        amounts[:, row - WAYS] = np.minimum(np.array(LEVELS)[level], most)
    choices = [
        (Alternative(nodes, Resources(cores, memory_mb, int(ways), int(bandwidth))),)
        for (nodes, cores, memory_mb, _), (ways, bandwidth) in zip(kinds, amounts, strict=True)
    ]
    changed = replace(records, kind=kind.astype(np.int32).ravel(), kinds=kinds, given_choices=choices)
    return NodeArrays(pool.names, capacity), changed


def _largest(capacity: NDArray[np.int64], cores: int, memory_mb: int, row: int) -> int:
    """The most of a further resource on a machine that is large enough in cores and memory."""
    holds = (capacity[CORES] >= cores) & (capacity[MEMORY] >= memory_mb)
    return int(capacity[row, holds].max())


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    counts, size = (QUICK_COUNTS, QUICK_SIZE) if options.quick else (COUNTS, SIZE)
    waits = waits_of(options, "resources", compare, counts, size)
    single = {key: [policy for policy, (members, _) in policies(key[1]).items() if len(members) == 1] for key in waits}
    about = {
        "counts": counts,
        "scale": size[0],
        "days": size[1],
        "levels": LEVELS,
        "shares": SHARES,
        "waits": waits,
        "best": {key: min(names, key=lambda each: float(waits[key][each].mean())) for key, names in single.items()},
    }
    table = beside("beside", "resources", waits, policies(counts[-1]), shown_only=True)
    return PageResults(above(waits), [table], {**ABOUT, **about}, options.seeds)
