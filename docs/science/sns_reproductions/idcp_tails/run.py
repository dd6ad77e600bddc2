"""Run the two weeks with restarts and without, and draw how long the longest jobs take.

The longest are the 5 % of the jobs with the highest completion times, of all and of those that were suspended, in each
replay for itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from sns_reproductions.idcp import MINUTE_S, TAIL_SHARES, TAILS, Found, quantities, results, scale_of, table

HEADER = ("jobs", "variant", "seed", "share_of_longest", "completion_s")


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    found = results(options, list(data["restarts"]))
    _draw(options, found, data)
    rows = [
        (key, variant, seed, float(share), seconds)
        for key in TAILS.values()
        for variant, of_variant in found.items()
        for seed, each in enumerate(of_variant, start=1)
        for share, seconds in zip(TAIL_SHARES, each["tails"][key], strict=False)
    ]
    return PageResults(
        quantities({name: table(of_variant) for name, of_variant in found.items()}),
        [DataTable("quantiles", HEADER, rows)],
        {"scale": scale_of(options)},
        options.seeds,
    )


def _draw(options: Options, found: Mapping[str, Sequence[Found]], data: Mapping[str, Any]) -> None:
    """Distributions; a seed without such jobs has none."""
    panels = {}
    for tail in data["tails"][:2]:
        lines = {}
        for variant, told in data["restarts"].items():
            of_seeds = [each["tails"][tail["jobs"]] for each in found[variant]]
            known = np.array([each for each in of_seeds if each], np.float64)
            if len(known):
                lines[told] = (known.mean(axis=0) / MINUTE_S / 1000, 100 * TAIL_SHARES)
        panels[f"{tail['where']}: {tail['jobs']} jobs"] = lines
    figures.curves(options.out, "figures-6-7", panels, ("completion, 1000 min", "% of the longest 5 %"))
