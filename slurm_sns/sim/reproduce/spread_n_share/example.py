"""Figure 1 of Spread-n-Share: five runs of MG in a row, HC and TS, 16 cores each; CE on three nodes, SNS on two."""

from collections.abc import Mapping

import numpy as np

from slurm_sns.sim.engine.spreading_policies import CE, CONTENTION, MODELS, SNS
from slurm_sns.sim.pages.judge import Claim, exactly
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.progress.progress import PlacedRun
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.reproduce.spread_n_share.runs import cluster, place
from slurm_sns.sim.traces.programs_csv import ProgramJob

PROCESSES = 16
#: Printed run times in seconds, under CE and under SNS. MG is a chain of five runs.
PRINTED: Mapping[str, tuple[float, float]] = {"mg": (487.65, 443.67), "ts": (376.98, 351.75), "hc": (482.33, 500.43)}
CE_NODES, SNS_NODES = 3, 2
#: The printed figure is -34.58 %; the printed times give -31.59 %.
NODE_SECONDS_LESS = 31.59
#: Our times may differ from the printed ones by 5 %, our changes in percent by 2.5 points.
NEAR, NEAR_POINTS = 0.05, 2.5


def reproduce(options: Options) -> Page:
    """Run the example and return the page. Nothing is random."""
    del options
    jobs = tuple(
        ProgramJob(at, 0.0, under_ce_s, name, PROCESSES, None)
        for at, (name, (under_ce_s, _)) in enumerate(PRINTED.items())
    )
    ce = place(CE, CONTENTION, jobs, node_arrays=cluster(CE_NODES))
    claims, rows = [], []
    for model in MODELS:
        sns = place(SNS, model, jobs, node_arrays=cluster(SNS_NODES))
        claims += _claims(model, ce, sns)
        rows += [(model, *_row(name, *each)) for name, *each in zip(PRINTED, ce, sns, strict=True)]
    made = (
        f"`sns reproduce spread-n-share-example`: MG, TS and HC, 16 cores each, are submitted at once, to {CE_NODES} "
        "nodes under "
        f"CE and to {SNS_NODES} under SNS. MG is five runs in a row in the paper and one job here. Run times under CE "
        f"are the printed ones. A printed time is met within {100 * NEAR:g} %, a printed change within {NEAR_POINTS:g} "
        f"points. For the node-seconds the paper prints 34.58 % fewer, but its printed times give {NODE_SECONDS_LESS} "
        "%, which we expect. The example is circular: the speedups of TS and HC at scale 2, which the paper does not "
        "print, were chosen so that these times come out. All of its numbers count as inputs. "
        "[spread-n-share-throughput](../spread-n-share-throughput/README.md) explains the models *authors* and "
        "*contention*."
    )
    return Page(
        title="Spread-n-Share: the example (figure 1)",
        made=[made],
        claims=claims,
        shown=DataTable("placements", _HEADER, rows),
        numbers=[DataTable("placements", _HEADER, rows)],
    )


_HEADER = ("model", "job", "CE s", "SNS s", "printed SNS s", "scale", "nodes", "cores", "ways", "GB/s")


def _row(name: str, ce: PlacedRun, sns: PlacedRun) -> tuple[object, ...]:
    alternative = sns.alternative
    nodes = "+".join(f"n{at}" for at in sns.nodes.tolist())
    demand = alternative.demand
    return (
        name,
        ce.end_s,
        sns.end_s,
        PRINTED[name][1],
        alternative.scale,
        nodes,
        demand.cores,
        demand.ways,
        demand.bandwidth_gbps,
    )


def _claims(model: str, ce: tuple[PlacedRun, ...], sns: tuple[PlacedRun, ...]) -> list[Claim]:
    where = "fig. 1"
    started = sum(each.start_s == 0 for each in sns)
    claims = [
        Claim(
            where,
            "all three start at once on two nodes",
            f"{model}: jobs that start at 0",
            exactly(started),
            2.5,
            3.5,
            is_input=True,
        )
    ]
    for name, each in zip(PRINTED, sns, strict=True):
        printed_s = PRINTED[name][1]
        claims.append(
            Claim(
                where,
                f"{name.upper()} runs {printed_s} s under SNS",
                f"{model}: seconds",
                exactly(float(each.end_s - each.start_s)),
                (1 - NEAR) * printed_s,
                (1 + NEAR) * printed_s,
                is_input=True,
            )
        )
    last_ce, last_sns = max(each.end_s for each in ce), max(each.end_s for each in sns)
    longer = 100 * (last_sns / last_ce - 1)
    less = 100 * (1 - SNS_NODES * last_sns / (CE_NODES * last_ce))
    claims.append(
        Claim(
            where,
            "the last job ends 2.62 % later under SNS",
            f"{model}: %",
            exactly(longer),
            2.62 - NEAR_POINTS,
            2.62 + NEAR_POINTS,
            is_input=True,
        )
    )
    claims.append(
        Claim(
            where,
            f"{NODE_SECONDS_LESS} % fewer node-seconds (printed: 34.58)",
            f"{model}: %",
            exactly(float(np.round(less, 2))),
            NODE_SECONDS_LESS - NEAR_POINTS,
            NODE_SECONDS_LESS + NEAR_POINTS,
            is_input=True,
        )
    )
    return claims
