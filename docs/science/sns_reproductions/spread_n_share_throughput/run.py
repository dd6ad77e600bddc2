"""Figures 14 to 16: random sequences of 20 jobs on 8 nodes under CE, CS and SNS, and combined.

The paper has 36 sequences. We draw blocks of 36 from many more: the distribution of each printed number over them is
what it is compared with (module judge). The first setting is the paper's text; the others follow the prototype.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import CE, CS, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Quantity, drawn
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece
from slurm_sns.sim.request import AUTHORS, CONTENTION, MODELS
from slurm_sns.sim.workloads.sequences import jobs_of, scaling_ratio, sequence
from sns_reproductions import spread_n_share as sns

QUICK_SEQUENCES, FEWEST_SEQUENCES = 2 * sns.BLOCK, 10 * sns.BLOCK
PAPER = (CE, CS, SNS)


def run_sequence(piece: Piece) -> dict[str, Any]:
    """One sequence in one setting: every policy; in the text's setting also combined, and both progress models."""
    discipline, prototype_scales, seed = str(piece[0]), bool(piece[1]), int(piece[2])
    chosen = (sns.POLICIES, MODELS) if discipline == TEXT else (PAPER, (CONTENTION,))
    return sns.run_all(sns.drawn_jobs(seed), *chosen, discipline=discipline, prototype_scales=prototype_scales)


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the sequences and draw the figures."""
    settings = data["settings"]
    count = QUICK_SEQUENCES if options.quick else max(options.seeds // sns.BLOCK * sns.BLOCK, FEWEST_SEQUENCES)
    seeds = range(1, count + 1)
    pieces = {
        name: [(of["discipline"], int(of["prototype_scales"]), seed) for seed in seeds] for name, of in settings.items()
    }
    results = options.results("sequences", run_sequence, chain.from_iterable(pieces.values()))
    # By setting and model.
    found = {
        name: {
            model: sns.Sequences.of([results[piece][model] for piece in of], settings[name]["throughput"])
            for model in results[of[0]]
        }
        for name, of in pieces.items()
    }
    contended = {name: of[CONTENTION] for name, of in found.items()}
    ratios = [scaling_ratio(sequence(sns.members(), seed)) for seed in seeds]
    _draw(options, {settings[name]["title"]: contended[name].take(slice(sns.BLOCK)) for name in data["drawn"]}, ratios)
    columns = [f"{policy}_{what}" for policy in PAPER for what in ("wait_s", "run_s", "turnaround_s", "run_over_ce")]
    rows = [(name, *row) for name, of in contended.items() for row in zip(seeds, ratios, *_means(of), strict=True)]
    return PageResults(
        printed_numbers(contended) | recorded_numbers(data),
        [DataTable("sequences", ("setting", "seed", "ratio", *columns), rows)],
        {
            "alpha": sns.ALPHA,
            "block": sns.BLOCK,
            "draws": sns.DRAWS,
            "longest_wait_min": max(float(contended["text"].wait_s[policy].max()) for policy in PAPER) / 60,
            "summary": {
                name: {model: {p: sns.summary(each, p) for p in each.run_s if p != CE} for model, each in of.items()}
                for name, of in found.items()
            },
        },
        count,
    )


def printed_numbers(found: Mapping[str, sns.Sequences]) -> dict[str, Quantity]:
    """Our draws of the printed numbers, by setting."""
    numbers: dict[str, Quantity] = {}
    for name, of in found.items():
        half = len(of) // 2
        draws, *halves = (sns.draws_of(part) for part in (of, of.take(slice(half)), of.take(slice(half, None))))
        numbers |= {f"{name} {each}": drawn(draws[each], [of_half[each] for of_half in halves]) for each in draws}
    return numbers


def recorded_numbers(data: Mapping[str, Any]) -> dict[str, Quantity]:
    """Our numbers of the recorded sequence under CE, where no job has neighbours: all progress models agree."""
    by_name = {f"{member.program}-{member.processes}": member for member in sns.members()}
    jobs = jobs_of(by_name[name] for name in data["recorded_jobs"])
    numbers: dict[str, Quantity] = {}
    for setting, of in data["settings"].items():
        runs = sns.Runs.of(sns.place(CE, AUTHORS, jobs, discipline=of["discipline"]))
        ours = (runs.wait_s.mean(), runs.run_s.mean(), (runs.wait_s + runs.run_s).max() / 3600)
        numbers |= {
            f"{setting} recorded {name}": float(each) for name, each in zip(data["recorded"], ours, strict=True)
        }
    return numbers


def _means(of: sns.Sequences) -> list[np.ndarray]:
    """Of each policy by sequence: mean wait, run and turnaround, and the mean run time over CE's."""
    return [
        values
        for policy in PAPER
        for values in (
            of.wait_s[policy].mean(axis=1),
            of.run_s[policy].mean(axis=1),
            of.turnaround_s(policy).mean(axis=1),
            of.mean_ratios(policy),
        )
    ]


def _draw(options: Options, shown: Mapping[str, sns.Sequences], ratios: Sequence[float]) -> None:
    """The figures, of as many sequences as the paper shows."""
    points, sorted_gains, run_times = {}, {}, {}
    for title, of in shown.items():
        ranks = list(range(1, len(of) + 1))
        points[title] = {policy.upper(): (ratios[: len(of)], 1 + of.gains(policy) / 100) for policy in (CS, SNS)}
        sorted_gains[title] = {
            f"over {other.upper()}": (ranks, 1 + np.sort(of.gains(SNS, other)) / 100) for other in (CE, CS)
        }
        run_times[title] = {
            f"{policy.upper()} {label}": (ranks, np.array([statistic(each) for each in by_mean]))
            for policy in (CS, SNS)
            for by_mean in [sorted(of.ratios(policy), key=sns.geometric_mean)]
            for label, statistic in (("mean", sns.geometric_mean), ("least", np.min), ("most", np.max))
        }
    out = options.out
    figures.curves(out, "figure-14", points, ("scaling ratio", "throughput / CE's"), joined=False)
    figures.curves(out, "figure-15", sorted_gains, ("sequence, sorted", "throughput of SNS"))
    figures.curves(out, "figure-16", run_times, ("sequence, sorted by mean", "run time / CE's"))
