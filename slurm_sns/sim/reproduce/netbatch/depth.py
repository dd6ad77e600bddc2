"""How far a cycle looks and how many jobs it withholds capacity for: the pools at full size, at equal queueing.

The papers name no queue depth, and withhold capacity for every job without a match. The authors' simulator withholds it
at one position. A depth means something else in a pool of another size. So the pools are replayed at full size, four
days each, at every combination of `DEPTHS` and `RESERVATIONS`, at betas at which all pools queue (a queue that is
shorter than any depth would tell nothing). Beside them stand pools of a twentieth of the machines
and jobs with a twentieth of the depth and of the reservations: what differs there is due to the number of machines.

Two depths that the queue never reaches give the same runs. They are one kind of cycle then, and are counted once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_sns.sim.pages.judge import FAILS, HOLDS, UNDECIDED, Claim, Interval, interval, percent_more
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch.load import HEURISTICS, Results
from slurm_sns.sim.reproduce.netbatch.load_claims import BEST_MEMORY, MIX, claims_of
from slurm_sns.sim.reproduce.netbatch.readings import PERCENT, TOLD
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.reproduce.rows import ROWS, run_with_rows
from slurm_sns.sim.reproduce.runs import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Run, Sweep
from slurm_sns.sim.workloads.netbatch_pools import POOLS

#: None: every waiting job. The first is what a cycle looked at before this page.
DEPTHS = (1_000, 20_000, None)
#: None: one for each unmatched job, as in the paper. One: as in the authors' simulator.
RESERVATIONS = (1, 20, None)
DAYS, QUICK_DAYS = 4.0, 0.25
#: The smaller pools have one machine of so many; `--quick` takes pools of half that size as the full ones.
SHRINK, QUICK_SCALE = 20, 0.1
POLICIES = (*HEURISTICS, MAX_JOBS, FIRST_FIT)
#: What the page shows of a policy's runs beside the mean wait.
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
        return Cell(
            None if self.depth is None else self.depth // SHRINK,
            None if self.reservations is None else self.reservations // SHRINK,
        )


CELLS = tuple(Cell(depth, reservations) for depth, reservations in product(DEPTHS, RESERVATIONS))


def sweeps_of(options: Options) -> dict[Cell, Sweep]:
    """The replays at full size, by kind of cycle."""
    return {cell: _sweep(options, cell, QUICK_SCALE if options.quick else 1.0) for cell in CELLS}


def small_sweeps_of(options: Options) -> dict[Cell, Sweep]:
    """The replays at a twentieth, by the kind of cycle of the full size of which they have equal shares."""
    scale = (QUICK_SCALE if options.quick else 1.0) / SHRINK
    return {cell: _sweep(options, small, scale) for cell in CELLS if (small := cell.shrunk())}


def _sweep(options: Options, cell: Cell, scale: float) -> Sweep:
    return Sweep(
        options.folder,
        options.seeds,
        scale=scale,
        days=QUICK_DAYS if options.quick else DAYS,
        betas=(HIGHEST_LOAD,),
        queue_depth=cell.depth,
        reservations=cell.reservations,
        policies=POLICIES,
        calibrated=True,
    )


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    full, small = sweeps_of(options), small_sweeps_of(options)
    run_with_rows(options, [*small.values(), *full.values()])
    return page_of(full, small)


def page_of(full: Mapping[Cell, Sweep], small: Mapping[Cell, Sweep]) -> Page:
    """The page, from the finished runs. Pools with fewer than two complete seeds of a kind of cycle are left out."""
    cells, smaller = _results(full), _results(small)
    kinds = named(cells)
    claims = [replace(each, where=kind) for cell, kind in kinds.items() for each in claims_of(cells[cell])]
    seeds = {
        cell: {pool: results.sweep.complete(HIGHEST_LOAD, pool) for pool in results.sweep.pools}
        for cell, results in cells.items()
    }
    told = "; ".join(
        f"{cell}: {' '.join(f'{pool} {count}' for pool, count in each.items())}" for cell, each in seeds.items()
    )
    some = next(iter(full.values()))
    told_betas = ", ".join(f"{pool} {some.beta_of(pool, HIGHEST_LOAD):g}" for pool in some.pools)
    return Page(
        title="NetBatch cycles: how far they look, and for how many jobs they withhold capacity",
        made=[
            (
                f"`sns reproduce netbatch-depth`: pools {', '.join(some.pools)} at scale {some.scale:g} (1 is all of "
                f"the paper's machines and jobs) for {some.days:g} days, cycles every 30 s, at betas of equal queueing "
                f"({told_betas}). All policies of a seed replay the same jobs. The column *source* names the kind of "
                "cycle."
            ),
            (
                f"Complete seeds: {told or 'none'}. A pool or a kind of cycle that is missing here has fewer than "
                f"two. `--resume` goes on from the rows beside this page ([{ROWS}]({ROWS}))."
            ),
            *_told_same(cells, kinds),
        ],
        result=[
            "How many of the paper's claims hold under each kind of cycle:",
            counts(claims),
            (
                "How long jobs wait (mean, s), how many wait under Max-Jobs, and how much of the cores and of the "
                "memory it uses, of what the jobs demand (% of capacity). *Above the best* is Max-Jobs' wait against "
                "the kind of cycle with which it waits least in that pool. The last columns are pools of a twentieth "
                "of the machines and jobs, with a twentieth of the (smaller) depth and of the reservations; there is "
                "none for a single reservation. All policies and sizes: [waits.csv](waits.csv)."
            ),
            effects(cells, kinds, smaller),
            *_told_size(cells, smaller),
            f"{TOLD} {PERCENT}",
        ],
        claims=claims,
        groups=[claim.where for claim in claims],
        numbers=[
            waits(cells, kinds, smaller),
            differences(cells, kinds),
            sizes(cells, smaller),
            holding(claims),
            costs(full),
        ],
        remarks=["Under which kinds of cycles each claim holds:"],
        shown=holding(claims),
        seeds=min((count for each in seeds.values() for count in each.values()), default=0),
    )


def _results(sweeps: Mapping[Cell, Sweep]) -> dict[Cell, Results]:
    """The runs of the pools that have at least two complete seeds; kinds of cycles without such pools are left out."""
    found = {}
    for cell, sweep in sweeps.items():
        pools = tuple(pool for pool in sweep.pools if sweep.complete(HIGHEST_LOAD, pool) > 1)
        if pools:
            found[cell] = Results(replace(sweep, pools=pools))
    return found


def named(cells: Mapping[Cell, Results]) -> dict[Cell, str]:
    """The kinds of cycles that gave different runs, and their names; one that gave the same runs shares a name."""
    kept: dict[Cell, list[Cell]] = {}
    runs = {cell: _runs(results) for cell, results in cells.items()}
    for cell in cells:
        same = [each for each in kept if each.reservations == cell.reservations and runs[each] == runs[cell]]
        kept.setdefault(same[0] if same else cell, []).append(cell)
    return {
        cell: f"depth {' or '.join(each.told_depth for each in those)}, {cell.told_reservations}"
        for cell, those in kept.items()
    }


def _runs(results: Results) -> dict[tuple[str, str], list[Run]]:
    """All that replays gave but the time that they took, by pool and policy."""
    return {
        (pool, policy): [
            {metric: value for metric, value in run.items() if metric != "wall_s"}
            for run in results.sweep.read(pool, HIGHEST_LOAD, policy)
        ]
        for pool, policy in product(results.sweep.pools, POLICIES)
    }


def _told_same(cells: Mapping[Cell, Results], kinds: Mapping[Cell, str]) -> list[str]:
    if len(kinds) == len(cells):
        return []
    told = "; ".join(f"*{kind}*" for cell, kind in kinds.items() if kind != f"{cell}")
    sentence = f"Where a kind of cycle has two depths, both gave the same runs of every pool, policy and seed: {told}."
    return [f"{sentence} They are counted once."]


def counts(claims: Sequence[Claim]) -> DataTable:
    """How many claims have each verdict under each kind of cycle."""
    rows = []
    for kind in dict.fromkeys(claim.where for claim in claims):
        verdicts = [claim.verdict for claim in claims if claim.where == kind]
        found = [verdicts.count(verdict) for verdict in (HOLDS, FAILS, UNDECIDED)]
        rows.append((kind, sum(found), *found))
    return DataTable("counts", ("cycle", "claims", "hold", "do not hold", "cannot be told"), rows)


def effects(cells: Mapping[Cell, Results], kinds: Mapping[Cell, str], smaller: Mapping[Cell, Results]) -> DataTable:
    """What a kind of cycle does in each pool: waits, queue and use of capacity, at full size and at a twentieth."""
    rows = []
    for pool in POOLS:
        of_pool = [cell for cell in kinds if pool in cells[cell].sweep.pools]
        above = _above_best({cell: cells[cell].of(pool, MAX_JOBS) for cell in of_pool})
        for cell in of_pool:
            small = smaller.get(cell)
            rows.append(
                (
                    pool,
                    kinds[cell],
                    *_told_waits(cells[cell], pool),
                    above[cell],
                    f"{cells[cell].of(pool, MAX_JOBS, 'mean_queue_length').mean():,.0f}",
                    *(_used(cells[cell], pool, resource) for resource in ("cores", "memory")),
                    *(_told_waits(small, pool) if small and pool in small.sweep.pools else ("", "", "")),
                )
            )
    shown = ("mix-fit", "best-fit-memory", "max-jobs")
    header = ("pool", "cycle", *shown, "above the best (%)", "queue", "cores used", "memory used")
    return DataTable("effects", (*header, *(f"{policy}, a twentieth" for policy in shown)), rows)


def _told_waits(results: Results, pool: str) -> tuple[str, ...]:
    return tuple(f"{results.of(pool, policy).mean():,.0f}" for policy in (MIX, BEST_MEMORY, MAX_JOBS))


def _used(results: Results, pool: str, resource: str) -> str:
    """How much of a resource Max-Jobs uses, and how much the jobs demand, in percent of capacity."""
    used = 100 * results.of(pool, MAX_JOBS, f"utilisation_{resource}").mean()
    return f"{used:.1f} of {results.of(pool, MAX_JOBS, f'load_{resource}').mean():.1f}"


def _above_best(waits: Mapping[Cell, NDArray[np.float64]]) -> dict[Cell, str]:
    """By how many percent each is above the least of them, in pairs by seed."""
    if not waits:
        return {}
    seeds = min(len(values) for values in waits.values())
    best = min(waits, key=lambda cell: float(waits[cell][:seeds].mean()))
    above = {cell: interval(percent_more(values[:seeds], waits[best][:seeds])) for cell, values in waits.items()}
    return {cell: "best" if cell == best else f"{of}" for cell, of in above.items()}


def waits(cells: Mapping[Cell, Results], kinds: Mapping[Cell, str], smaller: Mapping[Cell, Results]) -> DataTable:
    """The mean wait, the queue and the use of capacity of every policy under every kind of cycle, at both sizes."""
    of_kinds = [(kind, "full", cells[cell]) for cell, kind in kinds.items()]
    of_kinds += [(f"{cell.shrunk()}", "a twentieth", results) for cell, results in smaller.items()]
    rows = [
        (
            kind,
            size,
            pool,
            policy,
            *vars(interval(results.of(pool, policy))).values(),
            *(float(results.of(pool, policy, metric).mean()) for metric in USE),
            len(results.of(pool, policy)),
        )
        for kind, size, results in of_kinds
        for pool in results.sweep.pools
        for policy in POLICIES
    ]
    return DataTable("waits", ("cycle", "size", "pool", "policy", "mean_wait_s", "low", "high", *USE, "seeds"), rows)


def differences(cells: Mapping[Cell, Results], kinds: Mapping[Cell, str]) -> DataTable:
    """Of each pool and kind of cycle: Mix-Fit against the best of the others, in percent of the wait, by seed."""
    rows = []
    for cell, kind in kinds.items():
        results = cells[cell]
        for pool in results.sweep.pools:
            best = results.ranked(pool, [each for each in HEURISTICS if each != MIX])[0]
            rows.append((kind, pool, best, results.more(pool, MIX, best)))
    return DataTable("differences", ("cycle", "pool", "best of the others", "% mix-fit above it"), rows)


def sizes(cells: Mapping[Cell, Results], smaller: Mapping[Cell, Results]) -> DataTable:
    """Mix-Fit against Best-Fit-Memory at both sizes, and the difference of the two by seed, at equal shares.

    A comparison whose runs are those of an earlier one, at both sizes, is left out.
    """
    rows: list[tuple[str, str, str, Interval, Interval, Interval]] = []
    compared: list[tuple[object, ...]] = []
    for cell, small in smaller.items():
        if cell not in cells:
            continue
        runs = (cell.reservations, _runs(cells[cell]), _runs(small))
        if runs in compared:
            continue
        compared.append(runs)
        for pool in small.sweep.pools:
            if pool not in cells[cell].sweep.pools:
                continue
            both = [_mix_above(results, pool) for results in (cells[cell], small)]
            seeds = min(len(each) for each in both)
            change = interval(both[0][:seeds] - both[1][:seeds])
            rows.append((f"{cell}", f"{cell.shrunk()}", pool, interval(both[0]), interval(both[1]), change))
    header = ("cycle, full size", "cycle, a twentieth", "pool", "% mix-fit above best-fit-memory, full", "a twentieth")
    return DataTable("sizes", (*header, "points, full - a twentieth"), rows)


def _told_size(cells: Mapping[Cell, Results], smaller: Mapping[Cell, Results]) -> list[str]:
    """Whether the number of machines changes the distance of two heuristics, where the shares are equal."""
    rows = sizes(cells, smaller).rows
    if not rows:
        return []
    clear = sum(change.low > 0 or change.high < 0 for *_, change in rows)
    told = (
        f"The number of machines: in {clear} of {len(rows)} comparisons at equal shares of depth and reservations, the "
        "distance of Mix-Fit from Best-Fit-Memory differs between the full size and a twentieth of it by more than the "
        "seeds explain ([sizes.csv](sizes.csv); a comparison of the same runs is counted once)."
    )
    return [told]


def _mix_above(results: Results, pool: str) -> NDArray[np.float64]:
    return percent_more(results.of(pool, MIX), results.of(pool, BEST_MEMORY))


def holding(claims: Sequence[Claim]) -> DataTable:
    """Of each claim the kinds of cycles under which it holds."""
    rows = []
    for text in dict.fromkeys(claim.text for claim in claims):
        of_text = [claim for claim in claims if claim.text == text]
        kinds = dict.fromkeys(claim.where for claim in of_text)
        hold = [kind for kind in kinds if all(c.verdict == HOLDS for c in of_text if c.where == kind)]
        rows.append((text, "; ".join(hold) or "none"))
    return DataTable("holding", ("claim", "holds with"), rows)


def costs(full: Mapping[Cell, Sweep]) -> DataTable:
    """The seconds that a replay takes, by kind of cycle, pool and policy, on the machine that made the page."""
    rows = []
    for cell, sweep in full.items():
        for pool, policy in product(sweep.pools, sweep.policies):
            runs = sweep.read(pool, HIGHEST_LOAD, policy)
            if runs:
                rows.append((f"{cell}", pool, policy, sum(run["wall_s"] for run in runs) / len(runs), len(runs)))
    return DataTable("costs", ("cycle", "pool", "policy", "wall_s", "seeds"), rows)
