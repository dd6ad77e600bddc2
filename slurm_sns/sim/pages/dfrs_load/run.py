"""Run the scaled traces without a rescheduling penalty and with one, and draw degradation factors against load.

An algorithm's degradation factor on an instance is its largest bounded stretch over the smallest one of the paper's
nine algorithms. Each point is the average over the traces of one load.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.pages.dfrs import (
    ASAP_PER,
    FIVE_MINUTES,
    FREE,
    PER,
    SCALED,
    Replicates,
    Table,
    degradation,
    draw_by_load,
    jackknife,
    loads_of,
    quantities,
    ratio,
    replicates,
    results,
    seeds_of,
    units_of,
)
from slurm_sns.sim.pages.judge import Quantity, interval
from slurm_sns.sim.pages.page import DataTable, PageResults
from slurm_sns.sim.pages.running import Options

#: The parts of the figure by their penalties.
PARTS = {FREE: "1a", FIVE_MINUTES: "1b"}
HEADER = ("penalty_s", "algorithm", "load", "average_factor", "low", "high", "deviation", "largest")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figure."""
    loads = loads_of(options)
    units = {penalty_s: units_of(SCALED, seeds_of(options), loads, penalty_s) for penalty_s in PARTS}
    found = results(options, units.values())
    factors = {penalty_s: degradation(of_penalty, found) for penalty_s, of_penalty in units.items()}
    panels = {
        f"({PARTS[penalty_s][1]}) {data['penalties'][PARTS[penalty_s]]}": {
            data["names"].get(name, name): table[name] for name in data["drawn"]
        }
        for penalty_s, table in factors.items()
    }
    draw_by_load(options, "figure-1", panels, loads)
    rows = [
        (penalty_s, name, load, *vars(interval(here)).values(), float(here.std()), float(here.max()))
        for penalty_s, table in factors.items()
        for name, values in table.items()
        for load, here in zip(loads, values.T, strict=True)
    ]
    free, costly = factors[FREE], factors[FIVE_MINUTES]
    preempting = np.minimum(*(costly[name] for name in data["preempting"]))
    return PageResults(
        measured(data, free, costly, loads),
        [DataTable("figure-1", HEADER, rows)],
        {
            "loads": loads,
            "algorithms": list(free),
            # On how many traces one of the preempting algorithms is the best with a penalty.
            "preempting_best_pct": 100 * float((preempting == 1).mean()),
        },
        options.seeds,
    )


def measured(data: Mapping[str, Any], free: Table, costly: Table, loads: Sequence[float]) -> dict[str, Quantity]:
    """The quantities: `1a ...` without a penalty, `1b ...` with one; of some loads `1a nontrivial ...`, `1b LOAD ...`.

    `1a lead`: how many times better ASAP_PER is than PER at the least load, less that at the largest one.
    """

    def over_asap(at: int) -> Replicates:
        per, asap_per = (replicates(np.mean, free[name][:, [at]]) for name in (PER, ASAP_PER))
        return ratio(per, asap_per)

    def some(table: Table, wanted: Callable[[float], bool]) -> Table:
        return {name: values[:, [wanted(load) for load in loads]] for name, values in table.items()}

    gaps = data["gaps"]
    found: dict[str, Quantity] = {
        **quantities(free, gaps, "1a "),
        **quantities(costly, gaps, "1b "),
        **quantities(some(free, lambda load: load > data["turning_load"]), gaps, "1a nontrivial "),
        "1a lead": jackknife(over_asap(0) - over_asap(-1)),
    }
    for load in loads:
        found |= quantities(some(costly, lambda each, load=load: each == load), gaps, f"1b {load:g} ")  # type: ignore[misc]
    return found
