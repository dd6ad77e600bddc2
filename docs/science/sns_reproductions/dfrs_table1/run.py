"""Run all algorithms on three workloads with a penalty of 5 minutes, and compare their degradation factors.

The factor of an algorithm on an instance is its largest bounded stretch over the smallest of the nine algorithms. The
paper has 900 scaled synthetic traces, 100 unscaled ones, and all weeks of the log HPC2N.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from slurm_sns.sim.pages.judge import Interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.workloads.dfrs_synthetic import PAPER_LOADS
from sns_reproductions import dfrs
from sns_reproductions.dfrs import HPC2N, NINE, SCALED, UNSCALED, WEEKS, Table

QUICK_WEEKS = 10
HEADER = ("workload", "algorithm", "figure", "published", "ours", "low", "high", "ours_over_published")
INSTANCE_HEADER = ("workload", "instance", "jobs", "load", "best_max_stretch")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing; without the log there is no HPC2N."""
    seeds = range(1, options.seeds + 1)
    units = {
        SCALED: dfrs.units_of(SCALED, seeds, dfrs.QUICK_LOADS if options.quick else PAPER_LOADS),
        UNSCALED: dfrs.units_of(UNSCALED, seeds),
        **dfrs.weeks_of_log(WEEKS // QUICK_WEEKS if options.quick else 1),
    }
    found = dfrs.results(options, units.values())
    factors = {workload: dfrs.degradation(of_workload, found) for workload, of_workload in units.items()}
    known, told, variants = measured(data, factors), data["workloads"], data["variants"]
    figures = [
        (told[workload], name, figure, *dfrs.beside(printed, known[f"{workload} {figure} of {name}"]))
        for workload, table in factors.items()
        for name in table
        for figure, printed in data["table_1"][workload][variants.get(name, name)].items()
    ]
    instances = []
    for workload, of_workload in units.items():
        for row, unit in enumerate(of_workload):
            for column, instance in enumerate(unit):
                ran = found[instance]
                best = min(ran["algorithms"][name]["max_stretch"] for name in NINE)
                own = (float(factors[workload][name][row, column]) for name in (*NINE, *variants))
                instances.append((told[workload], instance[1], ran["jobs"], ran["load"], best, *own))
    return PageResults(
        known,
        [
            DataTable("table-1", HEADER, figures),
            DataTable("instances", (*INSTANCE_HEADER, *NINE, *variants), instances),
        ],
        {
            "counts": {workload: table[NINE[0]].size for workload, table in factors.items()},
            "neighbours": {workload: neighbours(data["table_1"][workload]) for workload in factors},
            "log": dfrs.LOG,
        },
        options.seeds,
    )


def measured(data: Mapping[str, Any], factors: Mapping[str, Table]) -> dict[str, Interval]:
    """The quantities of each workload.

    All weeks of HPC2N are the paper's own workload: what is computed from them is not random.
    """
    found: dict[str, Interval] = {}
    for workload, table in factors.items():
        is_random = workload != HPC2N or len(table[NINE[0]]) < WEEKS
        found |= dfrs.quantities(table, data["gaps"], f"{workload} ", is_random=is_random)
    return found


def neighbours(printed: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    """Pairs (smaller, larger) of algorithms between whose printed averages no other average lies.

    Algorithms with equal averages are no pair; each of them is paired with the next smaller and the next larger ones.
    """
    levels = sorted({row["average"] for row in printed.values()})
    by_level = [[name for name, row in printed.items() if row["average"] == level] for level in levels]
    return [(smaller, larger) for below, above in pairwise(by_level) for smaller in below for larger in above]
