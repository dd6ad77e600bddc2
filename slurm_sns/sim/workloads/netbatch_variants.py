"""The NetBatch pools with one assumption changed at a time, to see whether the assumption decides the paper's claims.

The paper prints none of these properties. Each variant keeps the printed totals. The mean of the run times is chosen so
that the load of the scarcer of cores and memory stays the same, before run times are cut at a day. The cut takes much
from "uneven run times" alone. That one, "even run times" and "daily cycle" queue far less or far longer than the pools
as generated at the same betas, and have betas of their own (`netbatch_pools.VARIANT_BETAS`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from slurm_sns.sim.workloads.netbatch_pools import CORES_STEP, NetBatchPool

AS_GENERATED = "as generated"


def double_memory(pool: NetBatchPool) -> NetBatchPool:
    """Twice the memory on every machine: cores are the scarce resource."""
    return replace(pool, gb_per_core={2 * gb: share for gb, share in pool.gb_per_core.items()})


def least_memory(pool: NetBatchPool) -> NetBatchPool:
    """Every machine has the pool's smallest memory per core: memory is the scarce resource."""
    return replace(pool, gb_per_core={min(pool.gb_per_core): 100.0})


def equal_machines(pool: NetBatchPool) -> NetBatchPool:
    """One size of machine (as far as the printed totals allow) with the pool's mean memory per core."""
    size = CORES_STEP * max(1, round(pool.cores / pool.machines / CORES_STEP))
    shares = sum(pool.gb_per_core.values())
    gb = round(sum(gb * share for gb, share in pool.gb_per_core.items()) / shares)
    return replace(pool, machine_cores={size: 100.0}, gb_per_core={gb: 100.0})


def no_bursts(pool: NetBatchPool) -> NetBatchPool:
    """Ordinary phases only: neither bursts of cores or of memory nor phases of little memory."""
    return replace(pool, phases=replace(pool.phases, wide_bursts=0.0, large_bursts=0.0, low_phases=0.0))


def frequent_bursts(pool: NetBatchPool) -> NetBatchPool:
    """Twice as many bursts."""
    phases = pool.phases
    return replace(
        pool, phases=replace(phases, wide_bursts=2 * phases.wide_bursts, large_bursts=2 * phases.large_bursts)
    )


def long_bursts(pool: NetBatchPool) -> NetBatchPool:
    """Bursts that last as long as other phases."""
    return replace(pool, times=replace(pool.times, burst_s=pool.times.phase_s))


def _with_times(**times: float) -> Callable[[NetBatchPool], NetBatchPool]:
    return lambda pool: replace(pool, times=replace(pool.times, **times))


#: More or longer bursts than the generator has. Reproduction netbatch-generator shows them at the original load on
#: three seeds. For "frequent long bursts" alone these suffice to tell that the heuristics differ there.
BURSTS: Mapping[str, Callable[[NetBatchPool], NetBatchPool]] = {
    "frequent bursts": frequent_bursts,
    "long bursts": long_bursts,
    "frequent long bursts": lambda pool: long_bursts(frequent_bursts(pool)),
}

VARIANTS: Mapping[str, Callable[[NetBatchPool], NetBatchPool]] = {
    AS_GENERATED: lambda pool: pool,
    "double memory": double_memory,
    "least memory": least_memory,
    "equal machines": equal_machines,
    "no bursts": no_bursts,
    "daily cycle": _with_times(daily_swing=0.5),
    "even run times": _with_times(spread_of_run=0.7),
    "uneven run times": _with_times(spread_of_run=2.0),
    "single arrivals": _with_times(batch=1.0),
    "large batches": _with_times(batch=32.0),
    **BURSTS,
}
