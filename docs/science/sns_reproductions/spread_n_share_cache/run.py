"""Figures 3, 4, 6 and 12: the programs' demand for cache and memory bandwidth.

These numbers are inputs of every other experiment rather than results: the code that plans must return the printed
numbers from the profile file, and the law of module contention must fit STREAM's. One thing is a result: the
fewest ways that a profiler finds when it samples 2, 4, 8 and all ways and interpolates, as the paper's profiler does.
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.profiling.learning_cluster import SAMPLED_WAYS, sampled
from slurm_sns.sim.progress.contention import ONE_CORE_GBPS, Traffic, settled
from sns_reproductions.spread_n_share import NODE, shipped_programs

PROCESSES, KEPT = 16, 0.9


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Compute the numbers and draw the figures. Nothing is random."""
    programs = shipped_programs()
    runs = {name: program.at(PROCESSES)[1] for name, program in sorted(programs.items())}
    ways = list(range(2, NODE.ways + 1))
    shown = {name.upper(): (ways, [runs[name].kept_at(each) for each in ways]) for name in data["drawn"]}
    figures.curves(options.out, "figure-6", {"": shown}, ("ways", "share of best performance"))
    at, gbps = zip(*data["stream_gbps"], strict=True)
    peak_gbps = gbps[-1]
    cores = list(range(1, NODE.cores + 1))
    law = [peak_gbps * settled([Traffic(ONE_CORE_GBPS * each, 1.0)], peak_gbps) for each in cores]
    panel = {"the law": (cores, law), "STREAM": (at, gbps)}
    figures.curves(options.out, "figure-3", {"": panel}, ("cores", "GB/s"), joined=False)
    known, rows = {f"stream {at}": gbps for at, gbps in zip(cores, law, strict=True)}, []
    known["mg on two nodes"] = programs["mg"].at(PROCESSES)[2].bandwidth_at(NODE.ways)
    for name, of in runs.items():
        fewest, found = (each.fewest_ways(KEPT, NODE.ways) or NODE.ways for each in (of, sampled(of)))
        known |= {f"{name} ways": fewest, f"{name} gbps": of.bandwidth_at(NODE.ways)}
        rows.append((name, fewest, of.bandwidth_at(fewest), known[f"{name} gbps"], found, found - fewest))
    fields = {"processes": PROCESSES, "sampled_ways": SAMPLED_WAYS}
    return PageResults(known, [DataTable("figure-12", data["columns"], rows)], fields)
