"""Run the pools under every combination of depth and reservations, at full size and at a twentieth of it.

The papers name no queue depth, and withhold capacity for every job without a match. The authors' simulator withholds it
at one position. A depth means something else in a pool of another size. So the pools are replayed at full size, at betas
at which all pools queue (a queue that is shorter than any depth would tell nothing). Beside them stand pools of a
twentieth of the machines and jobs with a twentieth of the depth and of the reservations: what differs there is due to
the number of machines.

Two depths that the queue never reaches give the same runs. They are one kind of cycle then, and are counted once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.judge import HOLDS, Claim, interval, percent_more
from slurm_sns.sim.pages.netbatch import (
    ABOUT,
    BEST_MEMORY,
    MIX,
    Results,
    Samples,
    comparisons,
    fewest,
    finished,
    verdicts,
)
from slurm_sns.sim.pages.netbatch_sweeps import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Sweep, full_size, run_with_rows
from slurm_sns.sim.pages.page import DataTable, PageResults
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.workloads.netbatch_pools import POOLS

#: None: every waiting job. The first is what a cycle looked at before this page.
DEPTHS = (1_000, 20_000, None)
#: None: one for each unmatched job, as in the paper. One: as in the authors' simulator.
RESERVATIONS = (1, 20, None)
#: The smaller pools have one machine of so many.
SHRINK = 20
POLICIES = (*PAPER_PORTFOLIO, MAX_JOBS, FIRST_FIT)
#: The policies whose waits the page shows.
SHOWN = (MIX, BEST_MEMORY, MAX_JOBS)
#: What the table of waits has of a policy's runs beside the mean wait.
USE = ("mean_queue_length", "utilisation_cores", "utilisation_memory", "load_cores", "load_memory")


class Cell(NamedTuple):
    """A kind of cycle; None: every waiting job, one reservation for each unmatched job."""

    depth: int | None
    reservations: int | None

    def __str__(self) -> str:
        return f"depth {self.told_depth}, {self.told_reservations}"

    @property
    def told_depth(self) -> str:
        """The depth in words."""
        return "all" if self.depth is None else f"{self.depth:,}"

    @property
    def told_reservations(self) -> str:
        """The reservations in words."""
        if self.reservations is None:
            return "one reservation for each unmatched job"
        return "1 reservation" if self.reservations == 1 else f"{self.reservations} reservations"

    def shrunk(self) -> "Cell | None":
        """The same shares of a pool of a twentieth of the size; None where that is less than one reservation."""
        if self.reservations is not None and self.reservations < SHRINK:
            return None
        return Cell(*(None if each is None else each // SHRINK for each in self))


#: Results by the kind of cycle at full size.
ByCell = Mapping[Cell, Results]

CELLS = tuple(Cell(depth, reservations) for depth, reservations in product(DEPTHS, RESERVATIONS))


def sweeps_of(options: Options) -> dict[Cell, Sweep]:
    """The replays at full size, by kind of cycle."""
    of = {"betas": (HIGHEST_LOAD,), "policies": POLICIES, "calibrated": True}
    return {cell: full_size(options, queue_depth=cell.depth, reservations=cell.reservations, **of) for cell in CELLS}


def small_sweeps_of(options: Options) -> dict[Cell, Sweep]:
    """The replays at a twentieth, by the kind of cycle of the full size of which they have equal shares."""
    return {
        cell: replace(sweep, scale=sweep.scale / SHRINK, queue_depth=small.depth, reservations=small.reservations)
        for cell, sweep in sweeps_of(options).items()
        if (small := cell.shrunk())
    }


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    full, small = sweeps_of(options), small_sweeps_of(options)
    run_with_rows(options, [*small.values(), *full.values()])
    return results_of(full, small)


def results_of(full: Mapping[Cell, Sweep], small: Mapping[Cell, Sweep]) -> PageResults:
    """The results, from the finished runs."""
    cells, smaller = finished(full), finished(small)
    kinds = different(cells)
    compared = sizes(cells, smaller)
    return PageResults(
        comparisons(kinds.values()),
        [waits(kinds, smaller), differences(kinds.values()), compared, holding, costs(full)],
        {
            **ABOUT,
            "some": next(iter(full.values())),
            "cells": cells,
            "results": list(kinds.values()),
            "same": [each.group for cell, each in kinds.items() if each.group != f"{cell}"],
            "effects": effects(kinds, smaller),
            "clear": sum(change.low > 0 or change.high < 0 for *_, change in compared.rows),
        },
        fewest(cells.values()),
    )


def different(cells: ByCell) -> dict[Cell, Results]:
    """The kinds of cycles that gave different runs, with their names; one that gave the same runs shares a name."""
    kept: dict[Cell, list[Cell]] = {}
    runs = {cell: _runs(results) for cell, results in cells.items()}
    for cell in cells:
        same = [each for each in kept if each.reservations == cell.reservations and runs[each] == runs[cell]]
        kept.setdefault(same[0] if same else cell, []).append(cell)
    return {
        cell: replace(
            cells[cell], group=f"depth {' or '.join(each.told_depth for each in those)}, {cell.told_reservations}"
        )
        for cell, those in kept.items()
    }


def _runs(results: Results) -> object:
    """All that replays gave but the time that they took."""
    return {
        (at, policy): [{**run, "wall_s": 0} for run in runs]
        for at, of_policies in results.runs.items()
        for policy, runs in of_policies.items()
    }


def effects(kinds: ByCell, smaller: ByCell) -> DataTable:
    """What a kind of cycle does in each pool: waits, queue and use of capacity, at full size and at a twentieth."""
    rows = []
    for pool in POOLS:
        of_pool = {cell: each for cell, each in kinds.items() if pool in each.pools}
        above = _above_best({cell: each.of(pool, MAX_JOBS) for cell, each in of_pool.items()})
        for cell, each in of_pool.items():
            rows.append(
                (
                    pool,
                    each.group,
                    *_told_waits(each, pool),
                    above[cell],
                    f"{each.mean(pool, MAX_JOBS, 'mean_queue_length'):,.0f}",
                    *(_used(each, pool, resource) for resource in ("cores", "memory")),
                    *_told_waits(smaller.get(cell), pool),
                )
            )
    header = ("pool", "cycle", *SHOWN, "above the best (%)", "queue", "cores used", "memory used")
    return DataTable("effects", (*header, *(f"{policy}, a twentieth" for policy in SHOWN)), rows)


def _told_waits(results: Results | None, pool: str) -> tuple[str, ...]:
    if results is None or pool not in results.pools:
        return ("",) * len(SHOWN)
    return tuple(f"{results.mean(pool, policy):,.0f}" for policy in SHOWN)


def _used(results: Results, pool: str, resource: str) -> str:
    """How much of a resource Max-Jobs uses, and how much the jobs demand, in percent of capacity."""
    used = 100 * results.mean(pool, MAX_JOBS, f"utilisation_{resource}")
    return f"{used:.1f} of {results.mean(pool, MAX_JOBS, f'load_{resource}'):.1f}"


def _above_best(waits: Mapping[Cell, Samples]) -> dict[Cell, str]:
    """By how many percent each is above the least of them, in pairs by seed."""
    seeds = min((len(values) for values in waits.values()), default=0)
    best = min(waits, key=lambda cell: float(waits[cell][:seeds].mean()), default=None)
    return {
        cell: "best" if cell == best else f"{interval(percent_more(values[:seeds], waits[best][:seeds]))}"
        for cell, values in waits.items()
        if best is not None
    }


def waits(kinds: ByCell, smaller: ByCell) -> DataTable:
    """The mean wait, the queue and the use of capacity of every policy under every kind of cycle, at both sizes."""
    of_kinds = [(each.group, "full", each) for each in kinds.values()]
    of_kinds += [(f"{cell.shrunk()}", "a twentieth", each) for cell, each in smaller.items()]
    rows = [
        (
            kind,
            size,
            pool,
            policy,
            *vars(interval(each.of(pool, policy))).values(),
            *(each.mean(pool, policy, metric) for metric in USE),
            each.count(pool),
        )
        for kind, size, each in of_kinds
        for pool in each.pools
        for policy in POLICIES
    ]
    return DataTable("waits", ("cycle", "size", "pool", "policy", "mean_wait_s", "low", "high", *USE, "seeds"), rows)


def differences(kinds: Sequence[Results]) -> DataTable:
    """Of each pool and kind of cycle: Mix-Fit against the best of the others, in percent of the wait, by seed."""
    rows = [
        (each.group, pool, best, each.above(pool, MIX, best))
        for each in kinds
        for pool in each.pools
        for best in each.ranked(pool, [MIX])[:1]
    ]
    return DataTable("differences", ("cycle", "pool", "best of the others", "% mix-fit above it"), rows)


def sizes(cells: ByCell, smaller: ByCell) -> DataTable:
    """Mix-Fit against Best-Fit-Memory at both sizes, and the difference of the two by seed, at equal shares.

    A comparison whose runs are those of an earlier one, at both sizes, is left out.
    """
    rows: list[tuple[Any, ...]] = []
    compared: list[tuple[object, ...]] = []
    for cell in (each for each in smaller if each in cells):
        runs = (cell.reservations, _runs(cells[cell]), _runs(smaller[cell]))
        if runs in compared:
            continue
        compared.append(runs)
        for pool in (each for each in smaller[cell].pools if each in cells[cell].pools):
            both = [each[cell].percents(pool)[f"{MIX} above {BEST_MEMORY}"] for each in (cells, smaller)]
            seeds = min(len(each) for each in both)
            change = interval(both[0][:seeds] - both[1][:seeds])
            rows.append((f"{cell}", f"{cell.shrunk()}", pool, *map(interval, both), change))
    header = ("cycle, full size", "cycle, a twentieth", "pool", "% mix-fit above best-fit-memory, full", "a twentieth")
    return DataTable("sizes", (*header, "points, full - a twentieth"), rows)


def holding(claims: Sequence[Claim]) -> DataTable:
    """Of each claim the kinds of cycles under which it holds."""
    rows = []
    for text in dict.fromkeys(claim.text for claim in claims):
        kinds = [kind for kind, verdict in verdicts(claims, text).items() if verdict == HOLDS]
        rows.append((text, "; ".join(kinds) or "none"))
    return DataTable("holding", ("claim", "holds with"), rows)


def costs(full: Mapping[Cell, Sweep]) -> DataTable:
    """The seconds that a replay takes, by kind of cycle, pool and policy, on the machine that made the page."""
    rows = [
        (f"{cell}", pool, policy, sum(run["wall_s"] for run in runs) / len(runs), len(runs))
        for cell, sweep in full.items()
        for pool, policy in product(sweep.pools, sweep.policies)
        if (runs := sweep.read(pool, HIGHEST_LOAD, policy))
    ]
    return DataTable("costs", ("cycle", "pool", "policy", "wall_s", "seeds"), rows)
