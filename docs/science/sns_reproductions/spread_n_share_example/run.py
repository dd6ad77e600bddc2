"""Figure 1: five runs of MG in a row, HC and TS, 16 cores each; CE on three nodes, SNS on two."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_sns.sim.engine.spreading_policies import CE, SNS
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.request import CONTENTION, MODELS
from slurm_sns.sim.traces.program_trace import ProgramJob
from sns_reproductions.spread_n_share import cluster, place

PROCESSES, CE_NODES, SNS_NODES = 16, 3, 2
HEADER = ("model", "job", "CE s", "SNS s", "printed SNS s", "scale", "nodes", "cores", "ways", "GB/s")


def run(_: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the example. Nothing is random."""
    times_s = data["times_s"]
    jobs = [ProgramJob(at, 0.0, s, name, PROCESSES, None) for at, (name, (s, _)) in enumerate(times_s.items())]
    ce = place(CE, CONTENTION, jobs, node_arrays=cluster(CE_NODES))
    last_ce_s = max(each.end_s for each in ce)
    known: dict[str, float] = {}
    rows: list[tuple[Any, ...]] = []
    for model in MODELS:
        sns = place(SNS, model, jobs, node_arrays=cluster(SNS_NODES))
        last_s = max(each.end_s for each in sns)
        known |= {
            f"{model} started": sum(each.start_s == 0 for each in sns),
            f"{model} later": 100 * (last_s / last_ce_s - 1),
            f"{model} fewer node-seconds": np.round(100 * (1 - SNS_NODES * last_s / (CE_NODES * last_ce_s)), 2),
        }
        for (name, (_, printed_s)), under_ce, under_sns in zip(times_s.items(), ce, sns, strict=True):
            known[f"{model} {name}"] = float(under_sns.end_s - under_sns.start_s)
            chosen, demand = under_sns.alternative, under_sns.alternative.demand
            nodes = "+".join(f"n{at}" for at in under_sns.nodes.tolist())
            amounts = (chosen.scale, nodes, demand.cores, demand.ways, demand.bandwidth_gbps)
            rows.append((model, name, under_ce.end_s, under_sns.end_s, printed_s, *amounts))
    fields = {"models": MODELS, "ce_nodes": CE_NODES, "sns_nodes": SNS_NODES}
    return PageResults(known, [DataTable("placements", HEADER, rows)], fields)
