"""Run the two weeks in all variants of the table.

The generator was calibrated against the column without restarts. So that column is an input, and what restarts change
is the result. Both readings of the averages are judged. The page also has equation 5 as printed, and a virtual pool
that goes by availability. The variants of shorter jobs and of lower bursts test the page's explanations.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Interval, Quantity, found_of, interval
from slurm_sns.sim.pages.page import DataTable, PageResults
from slurm_sns.sim.pages.running import Options
from sns_reproductions.idcp import VARIANTS, Table, compared, mean, quantities, results, scale_of, table


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    found = results(options, list(data["variants"]))
    return results_of(options, data, {name: table(of_variant) for name, of_variant in found.items()})


def results_of(options: Options, data: Mapping[str, Any], tables: Mapping[str, Table]) -> PageResults:
    """The results, from the samples of each variant."""
    known, shown = measured(tables), data["shown"]
    seeds = [
        (name, seed, *(float(tables[name][column][seed - 1]) for column in shown))
        for name in data["variants"]
        for seed in range(1, len(tables[name]["suspended"]) + 1)
    ]
    changes = ("change_pct", "change_low", "change_high")
    return PageResults(
        known,
        [
            DataTable(
                "inputs",
                ("measure", "published, without restarts (input)", "ours, without restarts"),
                inputs(data, tables),
            ),
            DataTable(
                "variants", ("variant", "quantity", "mean", "low", "high", *changes), list(_variant_rows(tables, known))
            ),
            DataTable("seeds", ("variant", "seed", *shown), seeds),
        ],
        {
            "scale": scale_of(options),
            "means": {name: mean(np.asarray(samples)) for name, samples in known.items()},
            # How long the suspended jobs run and wait, and how often a job is suspended that is suspended at all.
            "own_min": {name: mean(of["suspended_completion_min"] - of["suspend_min"]) for name, of in tables.items()},
            "times": {name: mean(of["suspensions"] / of["suspended"]) for name, of in tables.items()},
        },
        options.seeds,
    )


def measured(tables: Mapping[str, Table]) -> dict[str, Quantity]:
    """The quantities by name; *halved*: half of the machines over the whole site, both without restarts."""
    return quantities(tables) | compared("halved", tables["off-half"], tables["off"])


def inputs(data: Mapping[str, Any], tables: Mapping[str, Table]) -> list[tuple[str, float, Interval]]:
    """The printed column without restarts beside ours."""
    printed = data["printed"]["without"]
    return [(told, printed[column], interval(tables["off"][column])) for column, told in data["inputs"].items()]


def _variant_rows(tables: Mapping[str, Table], known: Mapping[str, Quantity]) -> Iterator[tuple[Any, ...]]:
    """Each quantity of each variant, and its change in percent from the replay without restarts."""
    for name, of in tables.items():
        baseline = VARIANTS[name].baseline
        for column, samples in of.items():
            is_compared = baseline != name and bool((tables[baseline][column] > 0).all())
            changed = vars(found_of(known[f"{name} change {column}"])).values() if is_compared else ("", "", "")
            yield (name, column, *vars(interval(samples)).values(), *changed)
