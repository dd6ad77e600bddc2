"""Figure 20: Trinity's parallel jobs on clusters of three sizes, CE against SNS.

Jobs advance by the authors' model: a job's run time is fixed at its start. The profile of 16 processes serves every
size; GAN and RNN count as compact. The prototype never spreads a job of more than 32 nodes that takes more than half of
the cluster under CE; nor do we, since it would take at least twice its nodes, more than there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import CE, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Draws, drawn, interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, shared_file
from slurm_sns.sim.request import AUTHORS
from slurm_sns.sim.traces.program_trace import ProgramJob
from slurm_sns.sim.workloads.trinity import FILE, trinity_jobs
from sns_reproductions.spread_n_share import NODE, Column, Runs, cluster, members, place

PROCESSES = 16
PARAMETERS = replace(REPRODUCTION, one_profile_for_all_sizes=True, unspreadable_is_compact=True)
POLICIES = (CE, SNS)
WHATS = ("wait_s", "run_s", "turnaround_s")
STUDY_NODES, STUDY_RATIO, STUDY_SEED = 4096, 0.5, 1
BY_SCALE, BY_RUN_TIME, TO_SCALE_4 = "1, 2, 4, 8", "by run time", "1, 2, 4"
#: SNS in other orders of the scales of neutral programs, or without scale 8.
ORDERS = {
    BY_RUN_TIME: replace(PARAMETERS, neutral_by_run_time=True),
    TO_SCALE_4: replace(PARAMETERS, scales=(1, 2, 4)),
}
#: Which jobs of the trace: the paper's; those of the converter in the prototype; the paper's without the widest.
OURS, CONVERTER, NARROW = "ours", "converter", "narrow"
NARROW_NODES = 1024
#: Classes of jobs by their nodes under CE: the last number of nodes of each.
WIDTHS = (1, 16, 128, 1024, 4096)
WEEK_S = 7 * 24 * 3600
WEEKS = 14
WEEKS_HEADER = ("policy", "queue", "jobs", "nodes", "ratio", "draw", "week", "load", "backlog")

#: Policy, discipline, filter, size, ratio and draw.
ScalePiece = tuple[str, str, str, int, float, int]


def piece_of(policy: str, discipline: str, size: int, ratio: float, seed: int) -> ScalePiece:
    """The run of this policy; under CE programs change nothing, so that all ratios and draws share one run."""
    if policy == CE:
        return (policy, discipline, OURS, size, STUDY_RATIO, STUDY_SEED)
    return (policy, discipline, OURS, size, ratio, seed)


def run_trinity(piece: ScalePiece) -> dict[str, Any]:
    """One random assignment of programs to the jobs, under one policy: means, waits by width, the backlog by week.

    The policy is CE, SNS, or one of ORDERS.
    """
    policy, discipline, chosen, size, ratio, seed = piece
    by_program = {each.program: each for each in members() if each.processes == PROCESSES}
    jobs = trinity_jobs(shared_file("traces", FILE), by_program, ratio, seed, by_converter=chosen == CONVERTER)
    if chosen == NARROW:
        jobs = tuple(job for job in jobs if job.processes <= NARROW_NODES * NODE.cores)
    placements = place(
        CE if policy == CE else SNS,
        AUTHORS,
        jobs,
        node_arrays=cluster(size),
        parameters=ORDERS.get(policy, PARAMETERS),
        discipline=discipline,
    )
    runs, nodes = Runs.of(placements), np.array([-(-job.processes // NODE.cores) for job in jobs])
    return {
        "jobs": len(jobs),
        **{
            what: float(of.mean())
            for what, of in zip(WHATS, (runs.wait_s, runs.run_s, runs.wait_s + runs.run_s), strict=True)
        },
        "wait_by_width_s": by_width(runs.wait_s, nodes),
        "backlog": backlog(runs, nodes, size),
        "load": offered_load(jobs, nodes, size),
    }


def by_width(wait_s: Column, nodes: Column) -> list[float | None]:
    """The mean wait of the jobs of each width class; None for a class without jobs."""
    classes = np.searchsorted(WIDTHS, nodes)
    return [float(wait_s[classes == at].mean()) if (classes == at).any() else None for at in range(len(WIDTHS))]


def backlog(runs: Runs, nodes: Column, size: int) -> list[float]:
    """For each week the nodes that waiting jobs ask for, on average over the week, in sizes of the cluster."""
    found = []
    for week in range(WEEKS):
        begin_s, end_s = week * WEEK_S, (week + 1) * WEEK_S
        waits_s = np.clip(np.minimum(runs.submit_s + runs.wait_s, end_s) - np.maximum(runs.submit_s, begin_s), 0, None)
        found.append(float((nodes * waits_s).sum() / (WEEK_S * size)))
    return found


def offered_load(jobs: Sequence[ProgramJob], nodes: Column, size: int) -> list[float]:
    """For each week the node-seconds, under CE, of the jobs that are submitted in it, over those of the cluster."""
    weeks = np.array([min(int(job.submit_s // WEEK_S), WEEKS - 1) for job in jobs])
    run_s = np.array([job.run_s for job in jobs])
    by_week = np.bincount(weeks, nodes * run_s, minlength=WEEKS)
    return [float(each) / (WEEK_S * size) for each in by_week]


#: Discipline, number of nodes and ratio.
Cell = tuple[str, int, float]
#: Policy -> wait, run or turnaround -> mean seconds, by draw.
Means = Mapping[str, Mapping[str, Column]]


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the simulations and draw the figure; quick: the largest cluster alone."""
    sizes = data["sizes_of"][TEXT][-1:] if options.quick else data["sizes_of"][TEXT]
    cells: list[Cell] = [
        (discipline, size, ratio)
        for discipline, run_on in data["sizes_of"].items()
        for size in run_on
        if size in sizes
        for ratio in data["ratios"]
    ]
    seeds = range(1, options.seeds + 1)
    study = [] if options.quick else study_pieces(data)
    of_cells = [piece_of(policy, *cell, seed) for seed in seeds for cell in cells for policy in POLICIES]
    pieces = list(dict.fromkeys([*study, *of_cells]))
    found = options.results("scale", run_trinity, pieces)
    means: dict[Cell, Means] = {
        cell: {
            policy: {what: np.array([found[piece_of(policy, *cell, seed)][what] for seed in seeds]) for what in WHATS}
            for policy in POLICIES
        }
        for cell in cells
    }
    bars = {
        f"{policy.upper()} {what.removesuffix('_s')}": {
            f"{size // 1024}K, {ratio:g}": 100 * of[policy][what] / of[CE]["turnaround_s"]
            for (discipline, size, ratio), of in means.items()
            if discipline == TEXT
        }
        for policy in POLICIES
        for what in ("wait_s", "run_s")
    }
    figures.bars(options.out, "figure-20", bars, ("nodes, scaling ratio", "% of CE's mean turnaround"))
    rows = [
        (*cell, policy, what, *interval(values))
        for cell, by_policy in means.items()
        for policy, of in by_policy.items()
        for what, values in of.items()
    ]
    header = ("queue", "nodes", "ratio", "policy", "what", "mean", "low", "high")
    table = study_table(found, study, data)
    weeks = [
        (*piece, at, found[piece]["load"][at], found[piece]["backlog"][at]) for piece in study for at in range(WEEKS)
    ]
    return PageResults(
        numbers(means),
        [DataTable("figure-20", header, rows), *([table, DataTable("weeks", WEEKS_HEADER, weeks)] if study else [])],
        {
            "quick": options.quick,
            "jobs": found[piece_of(CE, TEXT, sizes[0], STUDY_RATIO, STUDY_SEED)]["jobs"],
            "study": {row[:3]: row[3:] for row in table.rows},
            "highest_load": max((load for piece in study for load in found[piece]["load"]), default=0),
            "study_nodes": STUDY_NODES,
            "study_ratio": STUDY_RATIO,
        },
        options.seeds,
    )


def numbers(means: Mapping[Cell, Means]) -> dict[str, Draws]:
    """SNS against CE by queue, number of nodes and ratio; a draw is one assignment of programs to the jobs."""
    draws: dict[str, Column] = {}
    for (discipline, size, ratio), of in means.items():
        name, ce, sns = f"{discipline} {size}", of[CE], of[SNS]
        less = {what: 100 * (1 - sns[what] / ce[what]) for what in WHATS}
        draws |= {
            f"{name} {ratio} ce wait": 100 * ce["wait_s"] / ce["turnaround_s"],
            f"{name} {ratio} run less": less["run_s"],
            f"{name} {ratio} wait less": less["wait_s"],
            f"{name} {ratio} turnaround more": -less["turnaround_s"],
            f"{name} {ratio} gain": 100 * (ce["turnaround_s"] / sns["turnaround_s"] - 1),
        }
    for discipline, size, _ in means:
        name = f"{discipline} {size}"
        draws[f"{name} gains more at 0.9"] = draws[f"{name} 0.9 gain"] - draws[f"{name} 0.5 gain"]
    return {name: drawn(of, (of[: (len(of) + 1) // 2], of[len(of) // 2 :])) for name, of in draws.items()}


# --- the study


def study_piece(policy: str, discipline: str, chosen: str) -> ScalePiece:
    """A run of the study."""
    return (policy, discipline, chosen, STUDY_NODES, STUDY_RATIO, STUDY_SEED)


def study_pieces(data: Mapping[str, Any]) -> list[ScalePiece]:
    """The runs of the study; without the widest jobs only that of the paper's text."""
    return [
        study_piece(policy, discipline, chosen)
        for chosen in data["filters"]
        for discipline in (data["studied"] if chosen != NARROW else [TEXT])
        for policy in (CE, SNS, BY_RUN_TIME, *((TO_SCALE_4,) if chosen == CONVERTER else ()))
    ]


def study_table(
    found: Mapping[ScalePiece, Mapping[str, Any]], study: Sequence[ScalePiece], data: Mapping[str, Any]
) -> DataTable:
    """A row for each queue, order and filter: CE's mean wait, and by how many percent SNS's means differ from CE's."""
    rows = []
    for policy, discipline, chosen, *_ in study:
        if policy != CE:
            order = BY_SCALE if policy == SNS else policy
            ce, sns = (
                np.array([*(of[what] for what in WHATS), *of["wait_by_width_s"]], dtype=np.float64)
                for of in (found[study_piece(each, discipline, chosen)] for each in (CE, policy))
            )
            changes = [
                f"{100 * (after / before - 1):+.1f}" if before > 0 else ""
                for before, after in zip(ce, sns, strict=True)
            ]
            rows.append((discipline, order, data["filters"][chosen], f"{ce[0] / 3600:.1f}", *changes))
    return DataTable("study", data["study_columns"], rows)
