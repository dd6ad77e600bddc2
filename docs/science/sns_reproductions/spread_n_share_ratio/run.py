"""Figure 19: run and wait times against the fraction of jobs that gain from spreading.

The sequences have 30 jobs of 28 cores on 8 nodes, BW (scaling) and HC (neutral) in 11 proportions. Each proportion is
run in as many random orders as there are seeds; the authors ran one. CS is left out: every job fills a node, so CS
would equal CE.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Draws, interval
from slurm_sns.sim.pages.running import Options, PageResults, Piece
from slurm_sns.sim.request import AUTHORS, CONTENTION, MODELS
from slurm_sns.sim.workloads.sequences import SWEEP_JOBS, jobs_of, scaling_ratio, sweep_sequence
from sns_reproductions.spread_n_share import Column, Sequences, drawn_in_halves, members, run_all

#: How many of the 30 jobs are BW, for ratios from 0 to 1.
SCALING_JOBS = tuple(range(0, SWEEP_JOBS + 1, 3))

#: Run, wait or turnaround -> the policy's mean divided by CE's, shape (ratios, seeds).
Shares = Mapping[str, Column]


def run_sequence(piece: Piece) -> dict[str, Any]:
    """One order of one proportion under CE and SNS; by the text's queue also combined, and both progress models."""
    discipline, scaling_jobs, seed = str(piece[0]), int(piece[1]), int(piece[2])
    jobs = jobs_of(sweep_sequence(members(), scaling_jobs, seed))
    chosen = ((CE, SNS, COMBINED), MODELS) if discipline == TEXT else ((CE, SNS), (CONTENTION,))
    return run_all(jobs, *chosen, discipline=discipline)


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the sequences and draw the figure."""
    queues, seeds = data["queues"], range(1, options.seeds + 1)
    pieces = [(queue, jobs, seed) for queue in queues for jobs in SCALING_JOBS for seed in seeds]
    results = options.results("ratio", run_sequence, pieces)
    ratios = np.array([scaling_ratio(sweep_sequence(members(), jobs, 1)) for jobs in SCALING_JOBS])
    noted = [*((queue, SNS, CONTENTION) for queue in queues), (TEXT, SNS, AUTHORS), (TEXT, COMBINED, CONTENTION)]
    shares = {
        (queue, policy, model): shares_of(
            [Sequences.of([results[queue, jobs, seed][model] for seed in seeds]) for jobs in SCALING_JOBS], policy
        )
        for queue, policy, model in noted
    }
    by_queue = {queue: shares[queue, SNS, CONTENTION] for queue in queues}
    panels = {
        queues[queue]: {
            what.removesuffix("_s"): [(ratio, interval(each)) for ratio, each in zip(ratios, values, strict=True)]
            for what, values in of.items()
        }
        for queue, of in by_queue.items()
    }
    figures.lines(options.out, "figure-19", panels, ("scaling ratio", "SNS / CE"))
    between = ratios_between(ratios, data)
    return PageResults(
        {name: each for queue, of in by_queue.items() for name, each in numbers(queue, of, ratios, data).items()},
        (),
        {
            "shares": shares,
            "ratios": ratios,
            "between": ratios[between],
            "turnaround": {queue: of["turnaround_s"].mean(axis=1) for queue, of in by_queue.items()},
            "less_pct": {
                queue: sorted(100 * (1 - of["turnaround_s"][between].mean(axis=1))) for queue, of in by_queue.items()
            },
        },
        options.seeds,
    )


def shares_of(of: Sequence[Sequences], policy: str) -> Shares:
    """The policy's means over CE's, from the sequences at each ratio."""
    return {
        what: np.array([column(each, policy).mean(axis=1) / column(each, CE).mean(axis=1) for each in of])
        for what, column in (
            ("run_s", lambda each, policy: each.run_s[policy]),
            ("wait_s", lambda each, policy: each.wait_s[policy]),
            ("turnaround_s", Sequences.turnaround_s),
        )
    }


def ratios_between(ratios: Column, data: Mapping[str, Any]) -> np.ndarray:
    """At which of the ratios turnaround is better, as printed."""
    low, high = data["better_between"]
    return np.flatnonzero((low <= ratios) & (ratios <= high))


def numbers(queue: str, shares: Shares, ratios: Column, data: Mapping[str, Any]) -> dict[str, Draws]:
    """What the paper's sentences speak of; a draw is one order at each ratio."""
    run, wait, turnaround = (shares[what] for what in ("run_s", "wait_s", "turnaround_s"))
    draws = {
        "off at 0": 100 * np.abs(turnaround[0] - 1),
        "run falls": 100 * (run[0] - run[-1]),
        "least wait at": ratios[wait.argmin(axis=0)],
        "turnaround less": 100 * (1 - turnaround[ratios_between(ratios, data)]).min(axis=0),
        "better": np.all([each < 1 for each in shares.values()], axis=0).mean(axis=0),
    }
    return {f"{queue} {name}": drawn_in_halves(of) for name, of in draws.items()}
