"""Run the two weeks with one thing at a time changed in the paper's rule, in both readings of its averages.

Changes are compared in pairs: with the replay without restarts beside each, and with the paper's rule in the same
reading. Jobs are followed to their end, so that the same jobs are compared.
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import found_of
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from sns_reproductions.idcp import READINGS, VARIANTS, Table, compared, named, quantities, results, scale_of, table


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    names = [named(each, reading) for each in data["changed"] for reading in READINGS]
    # The replays of one baseline follow one another, so that a process makes it once.
    baselines = dict.fromkeys(VARIANTS[name].baseline for name in names)
    ordered = [[base, *(name for name in names if VARIANTS[name].baseline == base)] for base in baselines]
    found = results(options, [name for group in ordered for name in group])
    return results_of(options, data, {name: table(of_variant) for name, of_variant in found.items()})


def results_of(options: Options, data: Mapping[str, Any], tables: Mapping[str, Table]) -> PageResults:
    """Draw the figures; the results, from the samples of each variant."""
    known, rows = quantities(tables), []
    for number, (change, told) in enumerate(data["changed"].items(), start=1):
        for reading in READINGS:
            name = named(change, reading)
            over = found_of(compared("", tables[name], tables[reading])[" change submitted_min"]) if change else ""
            measured = [found_of(known[f"{name} {each['of']}"]) for each in data["measures"]]
            amounts = [found_of(known[f"{name} {column}"]) for column in data["amounts"]]
            rows.append((number, told, reading, *measured, over, *amounts))
    for at, measure in enumerate(data["measures"], start=3):
        groups = {
            data["averages"][reading]: {str(row[0]): row[at] for row in rows if row[2] == reading}
            for reading in READINGS
        }
        figures.bars(options.out, measure["stem"], groups, ("number of the change", "change, %"))
    percents = [f"{told}, %" for told in (*(each["told"] for each in data["measures"]), data["added"])]
    header = ("no.", "change", "averages", *percents, *data["amounts"].values())
    return PageResults(
        known,
        [DataTable("variants", header, rows)],
        {
            "scale": scale_of(options),
            "variant_of": {each: {reading: named(each, reading) for reading in READINGS} for each in data["changed"]},
        },
        options.seeds,
    )
