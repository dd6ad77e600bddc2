"""Figures 14 to 16 of Spread-n-Share: random sequences of 20 jobs on 8 nodes under CE, CS and SNS, and combined.

The paper has 36 sequences. We run many more, and draw blocks of 36 from them: the distribution of each of the paper's
numbers over these blocks is what the printed number is compared with (module judge).

There are several settings. The first is the paper's text: its queue, its throughput. The figures were measured on the
authors' prototype, which had another queue and computed throughput in another way; the other settings follow it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slurm_sns.sim.engine.disciplines import PROTOTYPE, SIMULATOR, TEXT
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CONTENTION, CS, MODELS, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Claim, drawn
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.page import Page, SavedFigure
from slurm_sns.sim.reproduce.spread_n_share.recorded import recorded_claims
from slurm_sns.sim.reproduce.spread_n_share.runs import POLICIES, geometric_mean, run_all, runs_of, shipped_programs
from slurm_sns.sim.reproduce.spread_n_share.statistics import (
    ALPHA,
    ARITHMETIC,
    GEOMETRIC,
    NUMBERS,
    Sequences,
    above_alpha,
    broken_by,
)
from slurm_sns.sim.workloads.sequences import jobs_of, population, scaling_ratio, sequence

#: The paper's number of sequences.
BLOCK = 36
QUICK_SEQUENCES, FEWEST_SEQUENCES = 2 * BLOCK, 10 * BLOCK
#: How many blocks are drawn, and the seed of the draws.
DRAWS, DRAWS_SEED = 2000, 36


#: The page's explanation of the claims that do not hold; each of its sentences is a row of the tables.
WHY = (
    "The queue explains most of the difference in throughput. By the paper's text SNS gains 29 %; with the "
    "prototype's queue 25 %, and with the queue of its simulator 18 %, where both printed gains, the sequences that "
    "SNS loses to CE and those that it wins over CS lie inside 90 % of our draws. How jobs run is another matter, and "
    "no queue changes it: SNS's run times are 4 to 5 % below CE's (printed: 1.8 %), CS slows a job down at most 2.2 "
    "times (printed: 3.5 times), hardly an alpha is broken. The prototype's scales bring run times and broken alphas "
    "nearer to the printed ones, because they spread BFS, too, but raise the gain. What else can break alphas is on a "
    "page of its own ([spread-n-share-phases](../spread-n-share-phases/README.md)). In the authors' model, of which "
    "the table has a note, "
    "neighbours slow no job down, so that CS, which fills every core, gains most."
)


class ThroughputSetting(NamedTuple):
    """How the jobs of a sequence wait and spread, and how a sequence's throughput is computed."""

    title: str
    discipline: str
    throughput: str
    prototype_scales: bool = False


SETTINGS: Mapping[str, ThroughputSetting] = {
    "text": ThroughputSetting("The paper's text", TEXT, ARITHMETIC),
    "prototype": ThroughputSetting("The prototype's queue", PROTOTYPE, GEOMETRIC),
    "simulator": ThroughputSetting("The queue of the prototype's simulator", SIMULATOR, GEOMETRIC),
    "prototype-scales": ThroughputSetting(
        "The prototype's queue and scales", PROTOTYPE, GEOMETRIC, prototype_scales=True
    ),
}


def run(piece: tuple[str, int]) -> dict[str, Any]:
    """One sequence in one setting: every policy; in the text's setting also combined, and both progress models."""
    name, seed = piece
    drawn, setting = sequence(population(shipped_programs()), seed), SETTINGS[name]
    is_text = setting.discipline == TEXT
    results = run_all(
        jobs_of(drawn),
        POLICIES if is_text else (CE, CS, SNS),
        MODELS if is_text else (CONTENTION,),
        discipline=setting.discipline,
        prototype_scales=setting.prototype_scales,
    )
    return {"ratio": scaling_ratio(drawn), **results}


def results_of(options: Options) -> dict[str, list[dict[str, Any]]]:
    """The results of all sequences by setting."""
    count = QUICK_SEQUENCES if options.quick else max(options.seeds // BLOCK * BLOCK, FEWEST_SEQUENCES)
    pieces = [(name, seed) for name in SETTINGS for seed in range(1, count + 1)]
    results = options.results("sequences", run, pieces)
    return {name: results[at * count : (at + 1) * count] for at, name in enumerate(SETTINGS)}


def reproduce(options: Options) -> Page:
    """Run the sequences, draw the figures and return the page."""
    results = results_of(options)
    sequences = {name: Sequences.of(results[name], CONTENTION, SETTINGS[name].throughput) for name in SETTINGS}
    _draw(options, results)
    claims: list[tuple[str, Claim]] = []
    for name, setting in SETTINGS.items():
        claims += [(setting.title, claim) for claim in claims_of(sequences[name])]
        if not setting.prototype_scales:  # under CE nothing is spread
            claims += [(setting.title, claim) for claim in recorded_claims(setting.discipline)]
    return Page(
        title="Spread-n-Share: throughput and run times of random sequences (figures 14-16)",
        made=_made(len(results["text"]), sequences["text"]),
        claims=[claim for _, claim in claims],
        groups=[group for group, _ in claims],
        drawings=[
            SavedFigure("figure-14", "Figure 14: throughput over CE's against the scaling ratio, a point a sequence."),
            SavedFigure("figure-15", "Figure 15: throughput of SNS over CE's and CS's, sequences sorted."),
            SavedFigure("figure-16", "Figure 16: run times over CE's: mean, least and most of each sequence, sorted."),
        ],
        numbers=[DataTable("sequences", ("setting", "seed", "ratio", *_COLUMNS), _rows(results))],
        shown=_summary(results),
        remarks=[WHY],
        seeds=len(results["text"]),
        of_draws=True,
    )


def _made(count: int, by_text: Sequences) -> list[str]:
    drawn = (
        f"`sns reproduce spread-n-share-throughput`: {count} random sequences of 20 jobs. Each job is one of 14 "
        "pairs of a "
        "program and its number of processes; a sequence is drawn again until its scaling ratio, as the prototype "
        "counts it, is between 0.4 and 0.8. All jobs of a sequence are submitted at once to 8 nodes of 28 cores, 20 "
        f"cache ways and 118 GB/s; alpha is {ALPHA:g}. The policies are the paper's CE, CS and SNS, and our combined "
        "policy. Jobs advance by the *contention* model: cache ways, memory bandwidth and neighbours decide the speed "
        "of a job (`slurm_sns/sim/progress/contention.py`)."
    )
    longest_min = max(float((by_text.turnaround_s[p] - by_text.run_s[p]).max()) for p in (CE, CS, SNS)) / 60
    settings = (
        "*The paper's text*: every waiting job is tried in the order of submits (section 4.4), and throughput is "
        "1 / mean turnaround. The text's age limit changes nothing here: no job waits longer than "
        f"{longest_min:.0f} minutes. *The prototype's queue*: the queue and the throughput of the authors' prototype, "
        "on which the figures were measured (`slurm_sns/sim/engine/stride_queue.py`): one job at a time is tried, and "
        "throughput is 1 / geometric mean of the jobs' turnarounds over CE's. *The queue of the prototype's "
        "simulator*: the same, but jobs are tried at submits and finishes only. *The prototype's queue and scales*: in "
        "addition the prototype's scales 1, 2 and 4, shortest run time first for programs of every class "
        "(`slurm_sns/sim/engine/prototype_scales.py`)."
    )
    drawn_blocks = (
        f"A draw is a block of {BLOCK} sequences, as many as the paper has; we draw {DRAWS} blocks from our sequences, "
        "with replacement. Broken alphas are counted and measured as the prototype does: a run breaks its alpha where "
        "c, its run time over that under CE, exceeds 1 / 0.9; the printed 28.3 % and 125.9 % are the geometric mean "
        "and the largest c, less 1. One sequence is recorded job by job in the prototype; its numbers are met within "
        "5 %, and its mean run time is an input, since run times under CE are."
    )
    return [drawn, settings, drawn_blocks]


# --- claims


class Printed(NamedTuple):
    """A number of the paper, by its name in NUMBERS."""

    number: str
    where: str
    text: str
    measure: str
    printed: float


PRINTED = (
    Printed("cs gain", "fig. 14", "CS improves throughput by 13.7 % on average", "% over CE", 13.7),
    Printed("sns gain", "fig. 14", "SNS improves throughput by 19.8 % on average", "% over CE", 19.8),
    Printed("sns most", "fig. 15", "SNS gains 42.1 % at most", "largest of 36, % over CE", 42.1),
    Printed("sns losses", "fig. 15", "SNS loses to CE in one sequence", "sequences of 36", 1),
    Printed("sns least", "fig. 15", "where SNS loses to CE it loses 2 %", "least of 36, % over CE", -2),
    Printed("wins over cs", "fig. 15", "SNS beats CS in 26 of 36 sequences", "sequences of 36", 26),
    Printed("won by", "fig. 15", "where SNS beats CS it gains 11.5 % on average", "% over CS where better", 11.5),
    Printed("won by most", "fig. 15", "SNS beats CS by 27.0 % at most", "largest of 36, % over CS", 27.0),
    Printed("lost by", "fig. 15", "in the other sequences SNS is 9.1 % worse than CS", "% below CS where worse", 9.1),
    Printed("lost by most", "fig. 15", "SNS is 23.2 % worse than CS at worst", "% below CS at worst", 23.2),
    Printed("faster jobs", "abstract", "jobs run 1.8 % faster than under CE", "% less, over all jobs", 1.8),
    Printed("slowest sequence", "fig. 16", "mean run times are at most 17.2 % above CE's", "most of 36, %", 17.2),
    Printed("slower sequences", "fig. 16", "in 9 sequences the mean run time is above CE's", "sequences of 36", 9),
    Printed("faster than cs", "fig. 16", "SNS's mean run time is below CS's in each sequence", "sequences of 36", 36),
    Printed("cs slowest", "fig. 16", "CS slows jobs down up to 3.5 times", "most of 720", 3.5),
    Printed("broken", "sec. 6.2", "136 of 720 runs break their alpha", "runs of 720", 136),
    Printed(
        "broken by", "sec. 6.2", "these runs take 28.3 % longer on average", "geometric mean of c, less 1, %", 28.3
    ),
    Printed("broken by most", "sec. 6.2", "these runs take 125.9 % longer at most", "most of 720: c less 1, %", 125.9),
)


def claims_of(sequences: Sequences) -> list[Claim]:
    """The printed numbers beside our draws of them."""
    half = len(sequences) // 2
    parts = [sequences, sequences.take(np.arange(half)), sequences.take(np.arange(half, len(sequences)))]
    draws = [draws_of(part) for part in parts]
    return [
        Claim(
            each.where,
            each.text,
            each.measure,
            drawn(draws[0][each.number], [of_half[each.number] for of_half in draws[1:]]),
            printed=each.printed,
        )
        for each in PRINTED
    ]


def draws_of(
    sequences: Sequences, numbers: Mapping[str, Callable[[Sequences], float]] = NUMBERS
) -> dict[str, np.ndarray]:
    """The numbers of each drawn block, by name."""
    lots = np.random.default_rng(DRAWS_SEED)
    blocks = [sequences.take(lots.integers(len(sequences), size=BLOCK)) for _ in range(DRAWS)]
    return {name: np.array([float(number(block)) for block in blocks]) for name, number in numbers.items()}


# --- tables and figures

_COLUMNS = tuple(
    f"{policy}_{what}" for policy in (CE, CS, SNS) for what in ("wait_s", "run_s", "turnaround_s", "run_over_ce")
)


def _rows(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[Any, ...]]:
    rows = []
    for name, of in results.items():
        for seed, result in enumerate(of, start=1):
            row: list[Any] = [name, seed, result["ratio"]]
            for policy in (CE, CS, SNS):
                runs = runs_of(result, policy, CONTENTION)
                mean = geometric_mean(runs.run_s / runs_of(result, CE, CONTENTION).run_s)
                row += [runs.wait_s.mean(), runs.run_s.mean(), runs.turnaround_s.mean(), mean]
            rows.append(tuple(row))
    return rows


def _summary(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> DataTable:
    """A row for each setting, policy and model, over all sequences: both throughputs, broken alphas in both units."""
    header = (
        "setting",
        "policy",
        "model",
        "throughput over CE, %: text's",
        "prototype's",
        "mean run over CE's",
        "broken alphas of 720",
        "by c - 1 (geometric), %",
        "above what alpha allows, %",
    )
    rows = []
    for name, of in results.items():
        for model in MODELS if name == "text" else (CONTENTION,):
            sequences = Sequences.of(of, model)
            for policy in [each for each in (CS, SNS, COMBINED) if each in sequences.run_s]:
                broken = sequences.broken(policy)
                rows.append(
                    (
                        SETTINGS[name].title,
                        policy,
                        model,
                        *(
                            f"{sequences.measured_by(each).gains(policy).mean():.2f}"
                            for each in (ARITHMETIC, GEOMETRIC)
                        ),
                        f"{geometric_mean(sequences.ratios(policy).ravel()):.4f}",
                        f"{len(broken) * BLOCK / len(sequences):.1f}",
                        f"{broken_by(broken):.1f}",
                        f"{above_alpha(broken):.1f}",
                    )
                )
    return DataTable("summary", header, rows)


def _draw(options: Options, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The figures, of as many sequences as the paper shows, in the first two settings."""
    points, sorted_gains, run_times = {}, {}, {}
    for name in ("text", "prototype"):
        shown = results[name][:BLOCK]
        of = Sequences.of(shown, CONTENTION, SETTINGS[name].throughput)
        ratio, ranks, title = [each["ratio"] for each in shown], list(range(1, len(of) + 1)), SETTINGS[name].title
        points[title] = {policy.upper(): (ratio, 1 + of.gains(policy) / 100) for policy in (CS, SNS)}
        sorted_gains[title] = {
            f"over {other.upper()}": (ranks, 1 + np.sort(of.gains(SNS, other)) / 100) for other in (CE, CS)
        }
        run_times[title] = {
            f"{policy.upper()} {label}": (ranks, np.array([statistic(each) for each in by_mean]))
            for policy in (CS, SNS)
            for by_mean in [sorted(of.ratios(policy), key=geometric_mean)]
            for label, statistic in (("mean", geometric_mean), ("least", np.min), ("most", np.max))
        }
    out = options.out
    figures.curves(out, "figure-14", points, ("scaling ratio", "throughput / CE's"), joined=False)
    figures.curves(out, "figure-15", sorted_gains, ("sequence, sorted", "throughput of SNS"))
    figures.curves(out, "figure-16", run_times, ("sequence, sorted by mean", "run time / CE's"))
