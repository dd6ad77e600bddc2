"""Figure 13: the test programs' speedup on 2, 4 and 8 nodes over one, each alone on its nodes.

The speedups are inputs of our profiles. The page checks that the code that plans by the profiles returns the printed
speedups and the classes that the paper gives.
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.policies.spread_n_share.classify import classify
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import exactly
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from sns_reproductions.spread_n_share import shipped_programs

PROCESSES = 16


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Compute the speedups and draw the figure. Nothing is random."""
    programs = shipped_programs()
    runs = {name: program.at(PROCESSES) for name, program in sorted(programs.items())}
    faster = {
        name: {at: 100 * (of[1].time_s / each.time_s - 1) for at, each in of.items()} for name, of in runs.items()
    }
    classes = {name: classify(of, REPRODUCTION, max_scale=programs[name].max_scale) for name, of in runs.items()}
    scales = sorted(runs["mg"])
    bars = {
        f"scale {at}": {name.upper(): exactly(1 + of.get(at, 0.0) / 100) for name, of in faster.items() if len(of) > 1}
        for at in scales
    }
    figures.bars(options.out, "figure-13", bars, ("", "speedup over one node"))
    rows = [
        (name, of.kind.value, of.ideal_scale, of.bottleneck, *(faster[name].get(at, "") for at in scales[1:]))
        for name, of in classes.items()
    ]
    known: dict[str, float] = {
        f"{kind} programs": sum(classes[name].kind.value == kind for name in names)
        for kind, names in data["classes"].items()
    }
    known["spread"] = sum(len(faster[name]) > 1 for name in data["one_node"])
    for name, of in faster.items():
        best = max(of, key=of.__getitem__)
        known |= {f"{name} best scale": best, f"{name} faster": of[best]}
        known |= {f"{name} faster at {at}": each for at, each in of.items()}
    header = ("program", "class", "ideal scale", "bottleneck", *(f"% faster at {at}" for at in scales[1:]))
    return PageResults(known, [DataTable("figure-13", header, rows)], {"processes": PROCESSES})
