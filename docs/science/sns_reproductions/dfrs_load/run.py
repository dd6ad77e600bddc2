"""Run the scaled traces without a rescheduling penalty and with one, and draw degradation factors against load.

An algorithm's degradation factor on an instance is its largest bounded stretch over the smallest one of the paper's
nine algorithms. Each point is the average over the traces of one load.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_LOADS
from sns_reproductions import dfrs
from sns_reproductions.dfrs import Replicates, Table

#: The parts of the figure by their penalties.
PARTS = {dfrs.FREE: "1a", dfrs.FIVE_MINUTES: "1b"}


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figure."""
    loads = dfrs.QUICK_LOADS if options.quick else PAPER_LOADS
    seeds = range(1, options.seeds + 1)
    units = {penalty_s: dfrs.units_of(dfrs.SCALED, seeds, loads, penalty_s) for penalty_s in PARTS}
    found = dfrs.results(options, units.values())
    factors = {penalty_s: dfrs.degradation(of_penalty, found) for penalty_s, of_penalty in units.items()}
    panels = {
        f"({PARTS[penalty_s][1]}) {data['penalties'][PARTS[penalty_s]]}": {
            data["names"].get(name, name): table[name] for name in data["drawn"]
        }
        for penalty_s, table in factors.items()
    }
    dfrs.draw_by_load(options, "figure-1", panels, loads)
    free, costly = factors[dfrs.FREE], factors[dfrs.FIVE_MINUTES]
    return PageResults(
        measured(data, free, costly, loads),
        (),
        {
            "factors": factors,
            "loads": loads,
            "algorithms": list(free),
            # On how many traces one of the preempting algorithms is the best with a penalty.
            "preempting_best_pct": 100
            * float((np.minimum(*(costly[name] for name in data["preempting"])) == 1).mean()),
        },
        options.seeds,
    )


def measured(data: Mapping[str, Any], free: Table, costly: Table, loads: Sequence[float]) -> dict[str, Quantity]:
    """The quantities: `1a ...` without a penalty, `1b ...` with one; of some loads `1a nontrivial ...`, `1b LOAD ...`.

    `1a lead`: how many times better ASAP_PER is than PER at the least load, less that at the largest one.
    """

    def at(table: Table, columns: Sequence[int | bool]) -> Table:
        return {name: values[:, columns] for name, values in table.items()}

    def over_asap(column: int) -> Replicates:
        of = at(free, [column])
        return dfrs.ratio(*(dfrs.replicates(np.mean, of[name]) for name in (dfrs.PER, dfrs.ASAP_PER)))

    gaps, nontrivial = data["gaps"], [load > data["turning_load"] for load in loads]
    found: dict[str, Quantity] = {
        **dfrs.quantities(free, gaps, "1a "),
        **dfrs.quantities(costly, gaps, "1b "),
        **dfrs.quantities(at(free, nontrivial), gaps, "1a nontrivial "),
        "1a lead": dfrs.jackknife(over_asap(0) - over_asap(-1)),
    }
    for column, load in enumerate(loads):
        found |= dfrs.quantities(at(costly, [column]), gaps, f"1b {load:g} ")
    return found
