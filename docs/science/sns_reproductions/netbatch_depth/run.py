"""Run the pools under every combination of depth and reservations, at full size and at a twentieth of it.

The papers name no queue depth, and withhold capacity for every job without a match. The authors' simulator withholds it
at one position. A depth means something else in a pool of another size. So the pools are replayed at full size, where
all of them queue (a queue that is shorter than any depth would tell nothing). Beside them stand pools of a twentieth of
the machines and jobs with a twentieth of the depth and of the reservations: what differs there is due to the number of
machines.

Two depths that the queue never reaches give the same runs. They are one kind of cycle then, and are counted once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO
from slurm_sns.sim.pages.judge import interval, percent_more
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch import (
    ABOUT,
    BEST_MEMORY,
    MIX,
    Results,
    comparisons,
    fewest,
    finished,
    verdicts,
)
from sns_reproductions.netbatch_sweeps import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Run, Sweep, full_size, run_sweeps

#: None: every waiting job. The first is what a cycle looked at before this page.
DEPTHS = (1_000, 20_000, None)
#: None: one for each unmatched job, as in the paper. One: as in the authors' simulator.
RESERVATIONS = (1, 20, None)
#: The smaller pools have one machine of so many.
SHRINK = 20
POLICIES = (*PAPER_PORTFOLIO, MAX_JOBS, FIRST_FIT)


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


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    full, small = sweeps_of(options), small_sweeps_of(options)
    run_sweeps(options, [*small.values(), *full.values()])
    return results_of(full, small)


def results_of(full: Mapping[Cell, Sweep], small: Mapping[Cell, Sweep]) -> PageResults:
    """The results, from the finished runs."""
    cells, smaller = finished(full), finished(small)
    kinds = different(cells)
    compared = sizes(cells, smaller)
    return PageResults(
        comparisons(kinds.values()),
        (),
        {
            **ABOUT,
            "some": next(iter(full.values())),
            "cells": cells,
            "results": list(kinds.values()),
            "same": [each.group for cell, each in kinds.items() if each.group != f"{cell}"],
            "kinds": kinds,
            "smaller": smaller,
            "cycles": [
                *((each.group, "full", each) for each in kinds.values()),
                *((f"{cell.shrunk()}", "a twentieth", each) for cell, each in smaller.items()),
            ],
            "above_best": {pool: above_best(kinds, pool) for pool in POOLS},
            "compared": compared,
            "clear": sum(change.low > 0 or change.high < 0 for *_, change in compared),
            "runs": {cell: runs for cell, sweep in full.items() if (runs := runs_of(sweep))},
            "verdicts": verdicts,
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


def above_best(kinds: ByCell, pool: str) -> dict[Cell, str]:
    """By how many percent Max-Jobs waits longer than with the kind of cycle with which it waits least."""
    waits = {cell: each.of(pool, MAX_JOBS) for cell, each in kinds.items() if pool in each.pools}
    seeds = min((len(values) for values in waits.values()), default=0)
    best = min(waits, key=lambda cell: float(waits[cell][:seeds].mean()), default=None)
    return {
        cell: "best" if cell == best else f"{interval(percent_more(values[:seeds], waits[best][:seeds]))}"
        for cell, values in waits.items()
        if best is not None
    }


def sizes(cells: ByCell, smaller: ByCell) -> list[Sequence[Any]]:
    """Mix-Fit against Best-Fit-Memory at both sizes, and the difference of the two by seed, at equal shares.

    A comparison whose runs are those of an earlier one, at both sizes, is left out.
    """
    rows: list[Sequence[Any]] = []
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
    return rows


def runs_of(sweep: Sweep) -> dict[tuple[str, str], Sequence[Run]]:
    """The complete seeds by pool and policy."""
    pairs = product(sweep.pools, sweep.policies)
    return {pair: runs for pair in pairs if (runs := sweep.read(pair[0], HIGHEST_LOAD, pair[1]))}
