"""Figure 20 of Spread-n-Share: Trinity's parallel jobs on 4,096, 8,192 and 32,768 nodes, CE against SNS.

Jobs advance by the authors' model: a job's run time is fixed at its start, neighbours change nothing. The profile of 16
processes serves every size; GAN and RNN count as compact. The prototype never spreads a job of more than 32 nodes that
takes more than half of the cluster under CE. The rule needs no code here: to spread such a job would take at least
twice its nodes, more than there are.

On 4,096 nodes nearly all is waiting, so that the queue decides. The study at the end of the page looks for what decides
whether waits fall: each queue discipline, two orders in which neutral programs try their scales, two ways to choose the
trace's jobs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.disciplines import AGE_LIMIT, FIRST_JOB, SIMULATOR, TEXT
from slurm_sns.sim.engine.spreading_policies import AUTHORS, CE, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, drawn, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options, shared_file
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.spread_n_share.runs import NODE, Column, Runs, cluster, place, shipped_programs
from slurm_sns.sim.traces.programs_csv import ProgramJob
from slurm_sns.sim.workloads.sequences import population
from slurm_sns.sim.workloads.trinity import FILE, trinity_jobs

SIZES, RATIOS, PROCESSES = (4096, 8192, 32768), (0.9, 0.5), 16
PARAMETERS = replace(REPRODUCTION, one_profile_for_all_sizes=True, unspreadable_is_compact=True)
POLICIES = (CE, SNS)
WHATS = ("wait_s", "run_s", "turnaround_s")
#: The disciplines of the figure, the paper's text first, and on how many nodes: the queue matters where jobs wait.
TITLES = {
    TEXT: "The paper's text",
    AGE_LIMIT: "The paper's text with an age limit of six hours",
    SIMULATOR: "The queue of the prototype's simulator",
}
SIZES_OF = {TEXT: SIZES, AGE_LIMIT: SIZES[:1], SIMULATOR: SIZES[:2]}
#: The disciplines of the study.
STUDIED = (TEXT, AGE_LIMIT, FIRST_JOB, SIMULATOR)
STUDY_NODES, STUDY_RATIO, STUDY_DRAWS = 4096, 0.5, 1
BY_SCALE, BY_RUN_TIME, TO_SCALE_4 = "1, 2, 4, 8", "by run time", "1, 2, 4"
#: Which jobs of the trace: the paper's; those of the converter in the prototype; the paper's without the widest.
OURS, CONVERTER, NARROW = "ours", "converter", "narrow"
FILTERS = {OURS: "2 to 4,096 nodes", CONVERTER: "the converter's", NARROW: "2 to 1,024 nodes"}
NARROW_NODES = 1024
#: A printed number is met within this share of itself: our trace has other jobs than the paper's.
NEAR = 0.25
#: "Slightly more": less than this percent. "Insignificant" waits: less than this percent of the turnaround under CE.
#: "Significant wait time reduction": by at least this percent.
SLIGHTLY_PERCENT, SMALL_PERCENT, MUCH_PERCENT = 10, 5, 10
#: Classes of jobs by their nodes under CE: the last number of nodes of each.
WIDTHS = (1, 16, 128, 1024, 4096)
WEEK_S = 7 * 24 * 3600
WEEKS = 14
#: The page's explanation of the claims that do not hold.
WHY = (
    "On 32K nodes, where nothing waits, the gain at 0.9 is 16 % (printed: 15.7 %). On 4K nodes the queue decides "
    "whether waits fall. With an age limit they fall at 0.5 by 30 to 62 %, as the paper says; but then they fall at "
    "0.9, too, where the paper's grow slightly. With every other queue they grow at 0.5: with the text's by 8 to 34 "
    "%, with the first job alone by 32 %, with the prototype's priorities by 4 to 34 %. No queue that we tried has "
    "both directions of the paper, and none of the rest explains it: whatever the order of neutral programs, the "
    "largest scale or the choice of jobs, waits fall much with an age limit and with no other queue. What grows with "
    "the text's queue are the waits of the jobs of more than 1,024 nodes, 3 % of the jobs and 44 % of the node time; "
    "without these jobs the mean wait under CE is 0.6 hours in place of 13.3, and SNS's is 0.8. The backlog builds up "
    "in the weeks in which up to 1.62 times the cluster is asked for. Run times fall by 4 to 5 % at 0.5, less than "
    "the printed 8 %, and by 6 to 7 % where nothing waits."
)

#: (nodes, ratio) -> policy -> wait, run or turnaround -> mean seconds, by seed.
Means = Mapping[tuple[int, float], Mapping[str, Mapping[str, Column]]]


#: Policy, discipline, filter, size, ratio and draw.
Piece = tuple[str, str, str, int, float, int]


def piece_of(policy: str, discipline: str, size: int, ratio: float, seed: int, *, chosen: str = OURS) -> Piece:
    """The run of this policy; under CE programs change nothing, so that all ratios and draws share one run."""
    if policy == CE:
        return (policy, discipline, chosen, size, STUDY_RATIO, 1)
    return (policy, discipline, chosen, size, ratio, seed)


def run(piece: Piece) -> dict[str, Any]:
    """One random assignment of programs to the jobs, under one policy: means, waits by width, the backlog by week.

    The policy is CE, SNS, SNS with neutral programs tried by run time, or SNS without scale 8.
    """
    policy, discipline, chosen, size, ratio, seed = piece
    members = {each.program: each for each in population(shipped_programs()) if each.processes == PROCESSES}
    jobs = trinity_jobs(shared_file("traces", FILE), members, ratio, seed, by_converter=chosen == CONVERTER)
    if chosen == NARROW:
        jobs = tuple(job for job in jobs if job.processes <= NARROW_NODES * NODE.cores)
    runs = Runs.of(
        place(
            SNS if policy in {BY_RUN_TIME, TO_SCALE_4} else policy,
            AUTHORS,
            jobs,
            node_arrays=cluster(size),
            parameters=replace(PARAMETERS, scales=(1, 2, 4)) if policy == TO_SCALE_4 else PARAMETERS,
            discipline=discipline,
            by_run_time=policy == BY_RUN_TIME,
        )
    )
    nodes = np.array([-(-job.processes // NODE.cores) for job in jobs])
    return {
        "jobs": len(jobs),
        **{what: float(getattr(runs, what).mean()) for what in WHATS},
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
        waits_s = np.clip(np.minimum(runs.start_s, end_s) - np.maximum(runs.submit_s, begin_s), 0, None)
        found.append(float((nodes * waits_s).sum() / (WEEK_S * size)))
    return found


def offered_load(jobs: Sequence[ProgramJob], nodes: Column, size: int) -> list[float]:
    """For each week the node-seconds, under CE, of the jobs that are submitted in it, over those of the cluster."""
    weeks = np.array([min(int(job.submit_s // WEEK_S), WEEKS - 1) for job in jobs])
    run_s = np.array([job.run_s for job in jobs])
    by_week = np.bincount(weeks, nodes * run_s, minlength=WEEKS)
    return [float(each) / (WEEK_S * size) for each in by_week]


def reproduce(options: Options) -> Page:
    """Run the simulations, draw the figure and return the page."""
    sizes = SIZES[-1:] if options.quick else SIZES
    cells = {d: [(nodes, ratio) for nodes in SIZES_OF[d] if nodes in sizes for ratio in RATIOS] for d in TITLES}
    seeds = range(1, options.seeds + 1)
    study = [] if options.quick else study_pieces(min(options.seeds, STUDY_DRAWS))
    pieces = list(
        dict.fromkeys(
            [
                *study,
                *(piece_of(p, d, *cell, seed) for seed in seeds for d in TITLES for cell in cells[d] for p in POLICIES),
            ]
        )
    )
    found = dict(zip(pieces, options.results("scale", run, pieces), strict=True))
    means = {
        discipline: {
            cell: {
                policy: {
                    what: np.array([found[piece_of(policy, discipline, *cell, seed)][what] for seed in seeds])
                    for what in WHATS
                }
                for policy in POLICIES
            }
            for cell in cells[discipline]
        }
        for discipline in TITLES
    }
    _draw(options, means[TEXT])
    rows = [
        (discipline, nodes, ratio, policy, what, *vars(interval(of[nodes, ratio][policy][what])).values())
        for discipline, of in means.items()
        for nodes, ratio in of
        for policy in POLICIES
        for what in WHATS
    ]
    claims: list[tuple[str, Claim]] = [
        (title, claim) for d, title in TITLES.items() if not options.quick for claim in claims_of(means[d])
    ]
    table = study_table(found, study)
    return Page(
        title="Spread-n-Share on large clusters (figure 20)",
        made=_made(options, found[piece_of(CE, TEXT, sizes[0], STUDY_RATIO, 1)]["jobs"]),
        claims=[claim for _, claim in claims],
        groups=[group for group, _ in claims],
        drawings=[SavedFigure("figure-20", "Figure 20: mean wait and run time, over CE's mean turnaround.")],
        shown=table if study else None,
        numbers=[
            DataTable("figure-20", ("queue", "nodes", "ratio", "policy", "what", "mean", "low", "high"), rows),
            *([table, weeks_table(found, study)] if study else []),
        ],
        remarks=[WHY],
        seeds=options.seeds,
        of_draws=True,
    )


def _made(options: Options, jobs: int) -> list[str]:
    figure = (
        f"`sns reproduce spread-n-share-scale`: {jobs:,} parallel jobs of Trinity (each on more than one and at most "
        "4,096 nodes; "
        "the paper has 7,044 jobs, which no filter that we tried gives on the rebuilt trace) on clusters whose nodes "
        "have 28 cores, 20 cache ways and 118 GB/s. Each job is a random test program, a scaling one with probability "
        f"0.9 or 0.5; one assignment of programs is a draw, and there are {options.seeds}. Run times follow the "
        "authors' model. A printed number is met within a quarter of itself, since our trace is not the paper's. In "
        "the claims, 4K, 8K and 32K are the numbers of nodes, 0.9 and 0.5 the probabilities. A job fills its nodes, "
        "and 28 processes do not divide by 8: its scales are 1, 2 and 4. The text's queue was run on all three sizes, "
        "the other two where jobs wait: the age limit on 4K, the simulator's queue on 4K and 8K."
    )
    study = (
        f"The table is a study of {STUDY_NODES:,} nodes at {STUDY_RATIO:g} with one draw: every queue (*first job*: "
        "only the first waiting job is tried, in the order of submits), with neutral programs that try their scales "
        "in the order 1, 2, 4, 8 or by run time, on our jobs or on those of the converter in the authors' prototype "
        "(with jobs of a part of a node, whose scales may be 8, or at most 4); the text's queue also without the jobs "
        "of more than 1,024 nodes. Changes are SNS against CE in percent; waits by width are those of jobs of up to "
        "so many nodes. `weeks.csv` has the load that was offered in each week, and the nodes that waiting jobs ask "
        "for, both in sizes of the cluster."
    )
    return [figure] if options.quick else [figure, study]


def _draw(options: Options, of: Means) -> None:
    """Figure 20 by the paper's text."""
    bars = {
        f"{policy.upper()} {what.removesuffix('_s')}": {
            f"{nodes // 1024}K, {ratio:g}": interval(100 * of[nodes, ratio][policy][what] / _ce(of, nodes, ratio))
            for nodes, ratio in of
        }
        for policy in POLICIES
        for what in ("wait_s", "run_s")
    }
    figures.bars(options.out, "figure-20", bars, ("nodes, scaling ratio", "% of CE's mean turnaround"))


# --- claims


def _ce(means: Means, nodes: int, ratio: float, what: str = "turnaround_s") -> Column:
    return means[nodes, ratio][CE][what]


def _less(means: Means, nodes: int, ratio: float, what: str) -> Column:
    """By how many percent SNS's mean is below CE's."""
    return 100 * (1 - means[nodes, ratio][SNS][what] / _ce(means, nodes, ratio, what))


def _gain(means: Means, nodes: int, ratio: float) -> Column:
    """By how many percent the throughput under SNS exceeds CE's."""
    return 100 * (_ce(means, nodes, ratio) / means[nodes, ratio][SNS]["turnaround_s"] - 1)


def claims_of(means: Means) -> list[Claim]:
    """The paper's claims for one queue; a draw is one assignment of programs to the jobs."""
    small, middle, large = SIZES
    high, low = RATIOS

    def halves(draws: Column) -> tuple[Column, Column]:
        return draws[: (len(draws) + 1) // 2], draws[len(draws) // 2 :]

    def claim(text: str, measure: str, draws: Column, **bounds: Any) -> Claim:
        return Claim("fig. 20", text, measure, drawn(draws, halves(draws)), **bounds)

    def number(text: str, measure: str, printed: float, draws: Column) -> Claim:
        return claim(text, measure, draws, low=(1 - NEAR) * printed, high=(1 + NEAR) * printed)

    waits = 100 * _ce(means, small, high, "wait_s") / _ce(means, small, high)
    claims: list[Claim] = [
        claim("4K, 0.9: waiting dominates", "wait under CE, % of turnaround", waits, low=50),
        claim(
            "4K, 0.9: SNS is slightly worse",
            "turnaround, % over CE's",
            -_less(means, small, high, "turnaround_s"),
            low=0,
            high=SLIGHTLY_PERCENT,
        ),
        claim("4K, 0.5: clearly better", "throughput, % over CE's", _gain(means, small, low), low=0),
        number("4K, 0.5: run time about -8 %", "% less", 8, _less(means, small, low, "run_s")),
        claim("4K, 0.5: waits fall much", "% less", _less(means, small, low, "wait_s"), low=MUCH_PERCENT),
    ]
    if (middle, high) in means:
        claims.append(
            claim(
                "8K, 0.9: the gain in run time far outweighs longer waits",
                "turnaround, % over CE's",
                -_less(means, middle, high, "turnaround_s"),
                high=0,
            )
        )
    if (large, high) in means:
        claims.append(number("32K, 0.9: +15.7 % throughput", "% over CE's", 15.7, _gain(means, large, high)))
    for nodes in [each for each in (middle, large) if (each, high) in means]:
        short = 100 * _ce(means, nodes, low, "wait_s") / _ce(means, nodes, low)
        size = f"{nodes // 1024}K"
        claims.append(
            claim(f"{size}: waits are insignificant", "0.5: wait under CE, % of turnaround", short, high=SMALL_PERCENT)
        )
        more = _gain(means, nodes, high) - _gain(means, nodes, low)
        claims.append(claim(f"{size}: the gain is larger at 0.9 than at 0.5", "points of throughput", more, low=0))
    return claims


# --- the study


def study_pieces(draws: int) -> list[Piece]:
    """The runs of the study; without the widest jobs only that of the paper's text."""
    return [
        piece_of(policy, discipline, STUDY_NODES, STUDY_RATIO, seed, chosen=chosen)
        for seed in range(1, draws + 1)
        for chosen in FILTERS
        for discipline in (STUDIED if chosen != NARROW else STUDIED[:1])
        for policy in (CE, SNS, BY_RUN_TIME, *((TO_SCALE_4,) if chosen == CONVERTER else ()))
    ]


def study_table(found: Mapping[Piece, Mapping[str, Any]], study: Sequence[Piece]) -> DataTable:
    """A row for each queue, order and filter: SNS against CE."""
    header = (
        "queue",
        "neutral programs try",
        "jobs",
        "CE's wait, h",
        "wait, %",
        "run, %",
        "turnaround, %",
        *(f"wait to {most:,}, %" for most in WIDTHS),
    )
    compared = [(d, policy, chosen) for policy, d, chosen, *_ in dict.fromkeys(study) if policy != CE]
    rows = []
    for discipline, policy, chosen in dict.fromkeys(compared):
        pairs = [
            tuple(
                found[piece_of(each, discipline, STUDY_NODES, STUDY_RATIO, seed, chosen=chosen)]
                for each in (CE, policy)
            )
            for seed in sorted({piece[-1] for piece in study})
        ]
        order = BY_SCALE if policy == SNS else policy
        rows.append((discipline, order, FILTERS[chosen], *_compared(pairs)))
    return DataTable("study", header, rows)


def _compared(pairs: Sequence[tuple[Mapping[str, Any], ...]]) -> list[str]:
    """CE's mean wait, and by how many percent SNS's means differ from CE's, over all draws together."""
    if not pairs:
        return []

    def change(of: Any) -> str:
        values = [(of(ce), of(sns)) for ce, sns in pairs]
        if any(None in pair or pair[0] == 0 for pair in values):
            return ""
        before, after = np.array(values).sum(axis=0)
        return f"{100 * (after / before - 1):+.1f}"

    wait_h = np.mean([ce["wait_s"] for ce, _ in pairs]) / 3600
    return [
        f"{wait_h:.1f}",
        *(change(lambda each, what=what: each[what]) for what in WHATS),
        *(change(lambda each, at=at: each["wait_by_width_s"][at]) for at in range(len(WIDTHS))),
    ]


def weeks_table(found: Mapping[Piece, Mapping[str, Any]], study: Sequence[Piece]) -> DataTable:
    """The offered load and the backlog of every study run by week."""
    rows = [
        (*piece, week, found[piece]["load"][week], found[piece]["backlog"][week])
        for piece in study
        for week in range(WEEKS)
    ]
    return DataTable("weeks", ("policy", "queue", "jobs", "nodes", "ratio", "draw", "week", "load", "backlog"), rows)
