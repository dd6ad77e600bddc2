"""Run all algorithms on three workloads with a penalty of 5 minutes, and compare their degradation factors.

The factor of an algorithm on an instance is its largest bounded stretch over the smallest of the nine algorithms. The
paper has 900 scaled synthetic traces, 100 unscaled ones, and all weeks of the log HPC2N.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from slurm_sns.sim.pages.dfrs import (
    EASY,
    EXTRA_NODES_EASY,
    HPC2N,
    LOG,
    NINE,
    SCALED,
    UNSCALED,
    WEEKS,
    Found,
    Instance,
    Unit,
    beside,
    degradation,
    has_log,
    loads_of,
    quantities,
    results,
    seeds_of,
    units_of,
)
from slurm_sns.sim.pages.judge import Interval
from slurm_sns.sim.pages.page import DataTable, PageResults
from slurm_sns.sim.pages.running import Options

QUICK_WEEKS = 10
HEADER = ("workload", "algorithm", "figure", "published", "ours", "low", "high", "ours_over_published")
INSTANCE_HEADER = ("workload", "instance", "jobs", "load", "best_max_stretch")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing; without the log there is no HPC2N."""
    seeds = seeds_of(options)
    units = {SCALED: units_of(SCALED, seeds, loads_of(options)), UNSCALED: units_of(UNSCALED, seeds)}
    if has_log():
        units[HPC2N] = units_of(HPC2N, range(1, WEEKS + 1, WEEKS // QUICK_WEEKS if options.quick else 1))
    return results_of(data, units, results(options, units.values()), options.seeds)


def results_of(
    data: Mapping[str, Any], units: Mapping[str, Sequence[Unit]], found: Mapping[Instance, Found], seeds: int
) -> PageResults:
    """The results, from those of the instances."""
    factors = {workload: degradation(of_workload, found) for workload, of_workload in units.items()}
    measured: dict[str, Interval] = {}
    for workload, table in factors.items():
        # All weeks of HPC2N are the paper's own workload: what is computed from them is not random.
        is_random = workload != HPC2N or len(units[workload]) < WEEKS
        measured |= quantities(table, data["gaps"], f"{workload} ", is_random=is_random)
    told, printed, variants = data["workloads"], data["table_1"], data["variants"]
    figures = [
        (told[workload], name, figure, *beside(value, measured[f"{workload} {figure} of {name}"]))
        for workload, table in factors.items()
        for name in table
        for figure, value in printed[workload][variants.get(name, name)].items()
    ]
    columns = (*NINE, *variants)
    instances = [
        (
            told[workload],
            instance[1],
            found[instance]["jobs"],
            found[instance]["load"],
            min(found[instance]["algorithms"][name]["max_stretch"] for name in NINE),
            *(float(factors[workload][name][row, column]) for name in columns),
        )
        for workload, of_workload in units.items()
        for row, unit in enumerate(of_workload)
        for column, instance in enumerate(unit)
    ]
    return PageResults(
        measured,
        [DataTable("table-1", HEADER, figures), DataTable("instances", (*INSTANCE_HEADER, *columns), instances)],
        {
            "counts": {workload: sum(map(len, of_workload)) for workload, of_workload in units.items()},
            "orders": {workload: orders(printed[workload]) for workload in units},
            "log": LOG,
        },
        seeds,
    )


def orders(printed: Mapping[str, Mapping[str, float]]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs (better, worse) of `neighbours`, each with what is compared: the pair, and that with EASY's variant."""
    found = []
    for pair in neighbours({name: row["average"] for name, row in printed.items()}):
        better, worse = (EXTRA_NODES_EASY if name == EASY else name for name in pair)
        found += [(pair, compared) for compared in dict.fromkeys((pair, (better, worse)))]
    return found


def neighbours(printed: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs (smaller, larger) of algorithms between whose printed figures no other figure lies.

    Algorithms with equal figures are no pair; each of them is paired with the next smaller and the next larger ones.
    """
    levels = sorted(set(printed.values()))
    by_level = [[name for name, value in printed.items() if value == level] for level in levels]
    return [(smaller, larger) for below, above in pairwise(by_level) for smaller in below for larger in above]
