"""Run the two weeks in all variants of the table.

The generator was calibrated against the column without restarts. So that column is an input, and what restarts change
is the result. Both readings of the averages are judged. The page also has equation 5 as printed, and a virtual pool
that goes by availability. The variants of shorter jobs and of lower bursts test the page's explanations.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Quantity
from slurm_sns.sim.pages.running import Options, PageResults
from sns_reproductions.idcp import VARIANTS, Table, compared, mean, quantities, results, scale_of, table


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    found = results(options, list(data["variants"]))
    return results_of(options, {name: table(of_variant) for name, of_variant in found.items()})


def results_of(options: Options, tables: Mapping[str, Table]) -> PageResults:
    """The results, from the samples of each variant."""
    known = measured(tables)
    return PageResults(
        known,
        (),
        {
            "scale": scale_of(options),
            "samples": tables,
            "baselines": {name: VARIANTS[name].baseline for name in tables},
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
