"""Replay each trace under every scheduler, and compare them on the same jobs, as docs/science/sharing-cores.md says.

An instance is one of module dfrs: a synthetic trace at a load, or a week of HPC2N. A unit is what is drawn again for an
interval: all instances of a seed, or a week.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_sns.policies.dfrs.algorithms import GANG, SHARES
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import Interval
from slurm_sns.sim.pages.running import DataTable, Options, PageResults
from slurm_sns.sim.replay.fluid_loop import NEVER
from slurm_sns.sim.replay.fluid_replay import Requeues, SiteVariant, replay_fluid
from slurm_sns.sim.results.metrics import bounded_stretch
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import whole_nodes
from sns_reproductions import dfrs
from sns_reproductions.dfrs import FIVE_MINUTES, HPC2N, SCALED, Found, Instance, Unit
from sns_reproductions.dfrs_beyond.run import estimates, replay_sharing

Floats = NDArray[np.float64]
#: What is drawn: x, and a value with its interval.
Points = list[tuple[float, Interval]]

LOADS, QUICK_LOADS = (0.3, 0.5, 0.7, 0.9), (0.3, 0.9)
#: Weeks from one that is run to the next.
WEEK_STEP, QUICK_WEEK_STEP = 1, 30
TOLD = {SCALED: "synthetic", HPC2N: "HPC2N"}
#: Slurm's default SchedulerTimeSlice, and our guess of what a switch costs.
SLICE_S, SWITCH_S = 30, 2
#: How often units are drawn again, and the seed.
DRAWS, SEED = 10_000, 1

# --- schedulers

#: The group of jobs that can restart in all runs with restarts.
TENTH = 10
PERCENTS, TO_A_CORE = (TENTH, 30, 100), (1, 2)
CHECKPOINTS = {"none": inf, "15 min": 900.0, "1 h": 3600.0}
PRIORITY, LEAST_LOSS = "by priority", "by least loss"


@dataclass(frozen=True)
class SharingScheduler:
    """What is run: EASY where `shares` is None, gang scheduling where it is False.

    Of the jobs `restartable` percent can restart. `restart_s` is the cost of each start after a pause. The rest is as
    `Algorithm`, `Requeues` and `SiteVariant` say.
    """

    shares: bool | None = True
    to_a_core: float = inf
    switch_s: float = 0
    restartable: int = 0
    checkpoint_s: float = inf
    least_loss: bool = False
    restart_s: float = FIVE_MINUTES
    by_weight: bool = True
    retries: bool = True
    forgets: bool = False
    pauses_again: bool = False
    protect_s: float = 0
    most_pauses: int = NEVER


def to_a_core(limit: float) -> str:
    """How a limit is told."""
    return "any number to a core" if limit == inf else f"{limit:g} to a core"


def pausing(percent: int, checkpoints: str, limit: float, victims: str) -> str:
    """The name of shares with pauses."""
    return f"{percent} % restartable, checkpoints {checkpoints}, {to_a_core(limit)}, {victims}"


EASY = "EASY"
GANG_FREE = {limit: f"gang, {to_a_core(limit)}" for limit in (2, inf)}
GANG_PAID = f"gang, {to_a_core(2)}, switches of {SWITCH_S} s"
NO_PAUSES = {limit: f"shares, {to_a_core(limit)}" for limit in (*TO_A_CORE, inf)}

MAIN: Mapping[str, SharingScheduler] = {
    EASY: SharingScheduler(shares=None),
    **{name: SharingScheduler(shares=False, to_a_core=limit) for limit, name in GANG_FREE.items()},
    GANG_PAID: SharingScheduler(shares=False, to_a_core=2, switch_s=SWITCH_S),
    **{name: SharingScheduler(to_a_core=limit) for limit, name in NO_PAUSES.items()},
    **{
        pausing(percent, checkpoints, limit, victims): SharingScheduler(
            to_a_core=limit,
            restartable=percent,
            checkpoint_s=CHECKPOINTS[checkpoints],
            least_loss=victims == LEAST_LOSS,
        )
        for percent, checkpoints, limit, victims in product(PERCENTS, CHECKPOINTS, TO_A_CORE, (PRIORITY, LEAST_LOSS))
    },
}
FEW_KEEP, ALL_KEEP = (pausing(percent, "1 h", 2, PRIORITY) for percent in (TENTH, 100))
ALL_LOSE, ALL_LOSE_LEAST = (pausing(100, "none", 2, victims) for victims in (PRIORITY, LEAST_LOSS))
PAUSING = (FEW_KEEP, ALL_KEEP, ALL_LOSE, ALL_LOSE_LEAST)
#: What is changed to find the cause of a result, and where.
CAUSES: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "the paper's yields": ({"by_weight": False}, (NO_PAUSES[2], NO_PAUSES[inf], FEW_KEEP, ALL_KEEP)),
    "restarts cost nothing": ({"restart_s": 0}, PAUSING),
    "a checkpoint at each pause": ({"checkpoint_s": 0}, (FEW_KEEP, ALL_KEEP)),
    "pauses at submission only": ({"retries": False}, (FEW_KEEP,)),
    "virtual time falls with lost work": ({"forgets": True}, (ALL_LOSE,)),
    "ten minutes protected": ({"protect_s": 600}, PAUSING),
    "five pauses at most": ({"most_pauses": 5}, PAUSING),
    "ten minutes protected, five pauses at most": ({"protect_s": 600, "most_pauses": 5}, PAUSING),
}
SCHEDULERS: Mapping[str, SharingScheduler] = {
    **MAIN,
    **{
        f"{name}; {cause}": replace(MAIN[name], **changed)
        for cause, (changed, names) in CAUSES.items()
        for name in names
    },
}
#: A storm of pauses, which takes minutes on all traces: run on a few seeds and weeks only.
AGAIN = f"{ALL_LOSE}; paused jobs pause others"
AGAIN_SEEDS, AGAIN_STEP = 10, 18
#: The seeds of the trial, from one of its weeks to the next, and its rules, as far as our runs tell.
TRIAL_SEEDS, TRIAL_STEP = 10, 12
TRIAL_RULES: Mapping[str, Any] = {"by_weight": False, "forgets": True, "retries": False, "restart_s": 120}
#: The lines of the figure.
DRAWN = (("1 h", PRIORITY), ("15 min", PRIORITY), ("none", PRIORITY), ("none", LEAST_LOSS))
#: What others are compared with.
BASES = (EASY, *GANG_FREE.values(), *NO_PAUSES.values())

# --- runs

LARGEST, MEAN, HIGH, TENTHS = "largest", "mean", "p99", "mean of the 10 %"
#: Of these the geometric mean over the traces is taken, for the trial's figures of some the average.
STRETCHES = (LARGEST, MEAN, HIGH, TENTHS)


def run_all(instance: Instance, schedulers: Mapping[str, SharingScheduler] = SCHEDULERS) -> Found:
    """All schedulers on one instance: the `outcome` of each.

    Raises:
        BadInput: the instance is of HPC2N, and the log is missing.
    """
    trace, count = dfrs.trace_of(instance)
    # Estimates and lots depend on the seed or week alone: they are the same at each load.
    rng = np.random.default_rng(int(instance[1]))
    expected_s, lots = estimates(trace, rng), rng.random(len(trace))
    return {
        name: outcome(trace, replayed(scheduler, trace, count, expected_s, lots), lots)
        for name, scheduler in schedulers.items()
    }


def run_again(instance: Instance) -> Found:
    """The same where paused jobs may pause others.

    Raises:
        BadInput: as above.
    """
    return run_all(instance, {AGAIN: replace(MAIN[ALL_LOSE], pauses_again=True)})


def as_trial(name: str) -> str:
    """The name of a scheduler with the rules of the trial."""
    return f"{name}; as in the trial"


def run_trial(instance: Instance, names: Sequence[str]) -> Found:
    """Those of the schedulers that share cores, with the rules of the trial.

    Raises:
        BadInput: as above.
    """
    shares = {as_trial(name): MAIN[name] for name in names if MAIN[name].shares}
    return run_all(instance, {name: replace(scheduler, **TRIAL_RULES) for name, scheduler in shares.items()})


def replayed(scheduler: SharingScheduler, trace: TraceArrays, count: int, expected_s: Floats, lots: Floats) -> TraceRun:
    """The trace under one scheduler; those jobs can restart whose lots are lowest."""
    if scheduler.shares is None:
        return replay_sharing(count, trace, expected_s)
    algorithm = GANG._replace(switch_loss=scheduler.switch_s / SLICE_S)
    if scheduler.shares:
        algorithm = SHARES._replace(
            by_weight=scheduler.by_weight, least_loss=scheduler.least_loss, retries_at_events=scheduler.retries
        )
    requeues = Requeues(
        100 * lots < scheduler.restartable,
        scheduler.checkpoint_s,
        scheduler.protect_s,
        scheduler.most_pauses,
        scheduler.forgets,
        scheduler.pauses_again,
    )
    site = SiteVariant(most_to_a_core=scheduler.to_a_core, requeues=requeues)
    return replay_fluid(whole_nodes(count), trace, algorithm, penalty_s=scheduler.restart_s, variant=site)


def outcome(trace: TraceArrays, ran: TraceRun, lots: Floats) -> dict[str, float]:
    """The stretches; the work that was `repeated` and all `work` in the units of needs; the number of pauses."""
    stretch, tenth = bounded_stretch(ran.end_s - trace.submit_s, trace.run_s), 100 * lots < TENTH
    lost_s = ran.lost_s if len(ran.lost_s) else np.zeros(len(trace))
    needed = float((trace.run_s * trace.tasks * trace.cores).sum())
    repeated = float((lost_s * trace.tasks * trace.cores).sum())
    return {
        LARGEST: float(stretch.max()),
        MEAN: float(stretch.mean()),
        HIGH: float(np.percentile(stretch, 99)),
        TENTHS: float(stretch[tenth].mean()) if tenth.any() else 1.0,
        "repeated": repeated,
        "work": needed + repeated,
        "pauses": float(ran.preemptions.sum()),
        "jobs": float(len(trace)),
    }


class MeasuredUnits:
    """What was measured in the units of a workload, and what follows with the units drawn again."""

    def __init__(self, units: Sequence[Unit], found: Mapping[Instance, Found]) -> None:
        """The results must have all instances of the units."""
        self._units, self._found, self.count = units, found, len(units)
        draws = np.random.default_rng(SEED).multinomial(self.count, np.full(self.count, 1 / self.count), DRAWS)
        self._weights = draws / self.count

    def _sums(self, name: str, key: str) -> Floats:
        """By unit the sum of a number over its instances."""
        of: Floats = dfrs.values(self._units, self._found, name, key).sum(axis=1)
        return of

    def logarithms(self, name: str, measure: str) -> Floats:
        """By unit the mean logarithm of a stretch over its traces."""
        of: Floats = np.log(dfrs.values(self._units, self._found, name, measure)).mean(axis=1)
        return of

    def _interval(self, whole: float, draws: Floats) -> Interval:
        """The central 95 % of the draws; a single unit says nothing of what others would give."""
        if self.count == 1:
            return Interval(whole, -inf, inf)
        return Interval(whole, *np.percentile(draws, (2.5, 97.5)).tolist())

    def geometric(self, logarithms: Floats) -> Interval:
        """The geometric mean of what has these logarithms."""
        return self._interval(float(np.exp(logarithms.mean())), np.exp(self._weights @ logarithms))

    def share(self, name: str, part: str, whole: str, factor: float = 1) -> Interval:
        """One sum over another, times a factor."""
        parts, wholes = self._sums(name, part), self._sums(name, whole)
        draws = factor * (self._weights @ parts) / (self._weights @ wholes)
        return self._interval(factor * float(parts.sum() / wholes.sum()), draws)

    def more_repeated(self, one: str, other: str) -> Interval:
        """By how many points of all work more is repeated under one scheduler than under another."""
        shares = []
        for name in (one, other):
            parts, wholes = self._sums(name, "repeated"), self._sums(name, "work")
            shares.append((100 * parts.sum() / wholes.sum(), 100 * (self._weights @ parts) / (self._weights @ wholes)))
        return self._interval(float(shares[0][0] - shares[1][0]), shares[0][1] - shares[1][1])

    def average(self, name: str, measure: str) -> Interval:
        """The average of a measure over the traces."""
        by_unit = dfrs.values(self._units, self._found, name, measure).mean(axis=1)
        return self._interval(float(by_unit.mean()), self._weights @ by_unit)


# --- the page


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run what is missing and draw the figures."""
    units = instances(options)
    found = dfrs.results(options, units.values(), run_all, "sharing-cores")
    few = {SCALED: units[SCALED][:AGAIN_SEEDS], HPC2N: units.get(HPC2N, [])[::AGAIN_STEP]}
    again = dfrs.results(options, few.values(), run_again, "sharing-cores-again")
    alike = {SCALED: units[SCALED][:TRIAL_SEEDS], HPC2N: units.get(HPC2N, [])[::TRIAL_STEP]}
    trial = dfrs.results(options, alike.values(), partial(run_trial, names=list(data["trial"])), "sharing-cores-trial")
    merged = {each: {**of, **again.get(each, {}), **trial.get(each, {})} for each, of in found.items()}
    return results_of(options, data, units, merged)


def instances(options: Options) -> dict[str, list[Unit]]:
    """The units of each workload; without the log there are none of HPC2N."""
    loads, step = (QUICK_LOADS, QUICK_WEEK_STEP) if options.quick else (LOADS, WEEK_STEP)
    return {SCALED: dfrs.units_of(SCALED, range(1, options.seeds + 1), loads), **dfrs.weeks_of_log(step)}


def results_of(
    options: Options, data: Mapping[str, Any], units: Mapping[str, Sequence[Unit]], found: Mapping[Instance, Found]
) -> PageResults:
    """Draw the figures; the results, from those of the instances."""
    known: dict[str, Interval] = {}
    for workload, own in units.items():
        of_workload = quantities(MeasuredUnits(own, found))
        known |= {f"{TOLD[workload]}: {key}": value for key, value in of_workload.items()}
    workloads = [TOLD[each] for each in units]
    loads = [float(instance[2]) for instance in units[SCALED][0]]
    by_load = {load: MeasuredUnits([(unit[at],) for unit in units[SCALED]], found) for at, load in enumerate(loads)}
    _draw(options, known, workloads)
    of_load = _by_load(by_load, data["drawn_by_load"])
    figures.logarithmic_lines(options.out, "loads", of_load, ("load", "stretch over EASY's"), ticks=(1, 2, 5))
    return PageResults(
        known,
        [
            _stretches(known, workloads),
            _ratios(known, workloads),
            DataTable(
                "loads",
                ("measure", "scheduler", "load", "over_easy", "low", "high"),
                [
                    (title, name, load, *each)
                    for title, of in of_load.items()
                    for name, at in of.items()
                    for load, each in at
                ],
            ),
        ],
        {
            "loads": loads,
            "weeks": len(units.get(HPC2N, ())),
            "log": dfrs.LOG,
            "jobs": {
                TOLD[each]: round(sum(found[at][EASY]["jobs"] for unit in own for at in unit))
                for each, own in units.items()
            },
            "main": list(MAIN),
            "causes": {
                name: [f"{name}; {cause}" for cause, (_, names) in CAUSES.items() if name in names]
                for name in (NO_PAUSES[2], NO_PAUSES[inf], *PAUSING)
            },
            "like_trial": {TOLD[workload]: _like_trial(own, found, data) for workload, own in units.items()},
            "again": {TOLD[workload]: _again(own, found) for workload, own in units.items()},
        },
        len(units[SCALED]),
    )


def _jobs(units: Sequence[Unit], found: Mapping[Instance, Found]) -> int:
    """The number of jobs in these units."""
    return sum(int(found[each][EASY]["jobs"]) for unit in units for each in unit)


def _like_trial(
    units: Sequence[Unit], found: Mapping[Instance, Found], data: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """By scheduler the figures that the trial has, from as few seeds or weeks as it had, by its rules.

    The work repeated is that over the work needed.
    """
    few = MeasuredUnits(units[::TRIAL_STEP] if units[0][0][0] == HPC2N else units[:TRIAL_SEEDS], found)
    figures_of = {}
    for name in data["trial"]:
        alike = as_trial(name) if MAIN[name].shares else name
        repeated = few.share(alike, "repeated", "work").mean
        figures_of[name] = {
            LARGEST: few.geometric(few.logarithms(alike, LARGEST)).mean,
            **{f"average {measure}": few.average(alike, measure).mean for measure in (MEAN, HIGH)},
            "repeated": 100 * repeated / (1 - repeated),
        }
    return figures_of


def _again(units: Sequence[Unit], found: Mapping[Instance, Found]) -> dict[str, float]:
    """Where paused jobs pause others: mean stretches with and without, pauses per job, work repeated in percent."""
    few = MeasuredUnits([unit for unit in units if all(AGAIN in found[each] for each in unit)], found)
    return {
        "units": few.count,
        MEAN: few.geometric(few.logarithms(AGAIN, MEAN)).mean,
        "without": few.geometric(few.logarithms(ALL_LOSE, MEAN)).mean,
        "pauses": few.share(AGAIN, "pauses", "jobs").mean,
        "repeated": few.share(AGAIN, "repeated", "work", 100).mean,
    }


def quantities(measured: MeasuredUnits) -> dict[str, Interval]:
    """What the claims judge and the tables show, of one workload.

    `A: MEASURE` for each scheduler, `A / B: MEASURE` with each of BASES, and contrasts of two such ratios or shares.
    """
    known = {}
    of = {each: measured.logarithms(*each) for each in product(SCHEDULERS, STRETCHES)}
    for (name, measure), values in of.items():
        known[f"{name}: {measure}"] = measured.geometric(values)
        for base in BASES:
            known[f"{name} / {base}: {measure}"] = measured.geometric(values - of[base, measure])
    for name in SCHEDULERS:
        known[f"{name}: repeated"] = measured.share(name, "repeated", "work", 100)
        known[f"{name}: pauses"] = measured.share(name, "pauses", "jobs")
        for measure in (MEAN, HIGH):
            known[f"{name}: average {measure}"] = measured.average(name, measure)
    for percent, measure in product(PERCENTS, STRETCHES):
        # What pauses give beside what sharing gives: below 1 if pauses give more.
        pauses, shares = (of[each, measure] for each in (pausing(percent, "1 h", 2, PRIORITY), NO_PAUSES[2]))
        known[f"{percent} %, pauses / sharing: {measure}"] = measured.geometric(pauses - 2 * shares + of[EASY, measure])
    for percent, limit in product(PERCENTS, TO_A_CORE):
        by_loss, by_priority = (pausing(percent, "none", limit, each) for each in (LEAST_LOSS, PRIORITY))
        known[f"{by_loss} - {by_priority}: repeated"] = measured.more_repeated(by_loss, by_priority)
    return known


# --- tables and figures


def _stretches(known: Mapping[str, Interval], workloads: Sequence[str]) -> DataTable:
    """A row for each scheduler."""
    measures = {
        **{measure: measure.replace(" ", "_").replace("%", "percent") for measure in STRETCHES},
        "repeated": "repeated_percent",
        "pauses": "pauses_per_job",
    }
    header = [f"{column}{bound}" for column in measures.values() for bound in ("", "_low", "_high")]
    rows = [
        (told, name, *(value for measure in measures for value in known[f"{told}: {name}: {measure}"]))
        for told, name in product(workloads, SCHEDULERS)
    ]
    return DataTable("stretches", ("workload", "scheduler", *header), rows)


def _ratios(known: Mapping[str, Interval], workloads: Sequence[str]) -> DataTable:
    """A row for each scheduler, base and measure, of those that the text compares."""
    rows = [
        (told, name, base, measure, *known[f"{told}: {name} / {base}: {measure}"])
        for told, name, base, measure in product(
            workloads, SCHEDULERS, (EASY, GANG_FREE[2], NO_PAUSES[2]), (MEAN, HIGH)
        )
        if name != base
    ]
    return DataTable("ratios", ("workload", "scheduler", "over", "measure", "ratio", "low", "high"), rows)


def _draw(options: Options, known: Mapping[str, Interval], workloads: Sequence[str]) -> None:
    """The mean and the 99th percentile by the percentage of jobs that can restart, two to a core."""
    panels = {}
    for told, (measure, words) in product(workloads, {MEAN: "mean stretch", HIGH: "99th percentile"}.items()):
        flat = {
            short: [(at, known[f"{told}: {name}: {measure}"]) for at in (0, *PERCENTS)]
            for short, name in {"EASY": EASY, "gang": GANG_FREE[2]}.items()
        }
        lines = {
            f"checkpoints {checkpoints}{'' if victims == PRIORITY else f', {victims}'}": [
                (0, known[f"{told}: {NO_PAUSES[2]}: {measure}"]),
                *((each, known[f"{told}: {pausing(each, checkpoints, 2, victims)}: {measure}"]) for each in PERCENTS),
            ]
            for checkpoints, victims in DRAWN
        }
        panels[f"{told}: {words}"] = {**flat, **lines}
    labels = ("jobs that can restart (%)", "bounded stretch, geometric mean")
    figures.logarithmic_lines(options.out, "restartable", panels, labels, ticks=(1, 2, 5))


def _by_load(by_load: Mapping[float, MeasuredUnits], names: Mapping[str, str]) -> dict[str, dict[str, Points]]:
    """The mean and the 99th percentile of synthetic traces over those of EASY, by load."""
    return {
        words: {
            told: [
                (load, measured.geometric(measured.logarithms(name, measure) - measured.logarithms(EASY, measure)))
                for load, measured in by_load.items()
            ]
            for told, name in names.items()
        }
        for measure, words in {MEAN: "mean stretch", HIGH: "99th percentile"}.items()
    }
