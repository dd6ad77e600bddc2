"""Replay the two weeks of bursts as a site may run its pools, without restarts and with restarts as live ones would be.

The design is docs/science/idcp-live.md. All variants of a seed replay the same jobs, each followed to its end.
"""

from collections.abc import Mapping
from math import isnan
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity, found_of
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from sns_reproductions.idcp import READINGS, compared, named, quantities, results, table, without

#: The site's machines and jobs over those of the generator.
SCALE, QUICK_SCALE = 0.2, 0.05
#: Pools bound to their jobs, turn by turn, without restarts: what all others are compared with.
BASELINE = without()


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing, and draw the figure."""
    scale = QUICK_SCALE if options.quick else SCALE
    sites: Mapping[str, str] = {without(site): told for site, told in data["sites"].items()}
    rules: Mapping[str, str] = data["rules"]
    names = [*sites, *(named(rule, reading) for rule in rules for reading in READINGS)]
    tables = {name: table(of) for name, of in results(options, names, scale).items()}
    known: dict[str, Quantity] = dict(quantities(tables))
    for name in names:
        known |= compared(f"{name} from {BASELINE}", tables[name], tables[BASELINE])
        known |= compared(f"{without('common')} over {name}", tables[without("common")], tables[name])
    for rule, other in data["over"].items():
        for reading in READINGS:
            one, than = named(rule, reading), named(other, reading)
            known |= compared(f"{one} over {other}", tables[one], tables[than])

    def row(told: str, averages: str, name: str) -> tuple[Any, ...]:
        change = found_of(known[f"{name} from {BASELINE} change submitted_min"])
        amounts = [found_of(known[f"{name} {column}"]) for column in data["amounts"]]
        return told, averages, change, *("none" if isnan(each.mean) else each for each in amounts)

    rows = [row(told, "", name) for name, told in sites.items()]
    rows += [
        row(told, data["averages"][reading], named(rule, reading))
        for rule, told in rules.items()
        for reading in READINGS
    ]
    changes = {
        data["averages"][reading]: {
            str(number): known[f"{named(rule, reading)} from {BASELINE} change submitted_min"]
            for number, rule in enumerate(rules, 1)
        }
        for reading in READINGS
    }
    figures.bars(options.out, "all-jobs", changes, ("number of the rule", "change, %"))
    header = ("pools and rule", "averages", "completion of all jobs, change in %", *data["amounts"].values())
    fields = {"scale": scale, "live_of": {rule: {each: named(rule, each) for each in READINGS} for rule in rules}}
    return PageResults(known, [DataTable("variants", header, rows)], fields, options.seeds)
