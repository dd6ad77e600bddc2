"""What decides in `combined`: each part by itself, the chosen ones together, and the same on other sizes and queues.

The design, written before the first run, is in docs/science/combination.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from slurm_sns.sim.pages.judge import Quantity, found_of, interval, percent_above, percent_more
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.combination.judging import (
    MOST_WORSE,
    DefaultDecision,
    Runs,
    candidates,
    decision,
    effects,
    is_safe,
    mean_of,
    percent,
    verdict,
)
from sns_reproductions.combination.pieces import (
    BROKEN,
    CASES,
    FIRST_SEED,
    INTERVALS_S,
    LARGE,
    LOADS,
    NODES,
    OTHER_NODES,
    OTHER_SEEDS,
    POOL_SEEDS,
    REGIMES,
    SCARCE,
    SPREADS,
    TURNAROUND,
    WITHOUT_PROFILES,
    Column,
    Regime,
    run_contended,
    run_final,
    run_log,
    run_parts,
    run_pool,
    run_small,
)
from sns_reproductions.combination.small_cases import BEST
from sns_reproductions.combination.variants import CHOICES, NOW, PARTS, final_variants
from sns_reproductions.netbatch_traces.run import LOGS


def run(options: Options, _data: Mapping[str, Any]) -> PageResults:
    """Run what is missing."""
    seeds = range(options.seeds)
    few = range(min(options.seeds, OTHER_SEEDS))
    parts = _runs(options, "parts", ("parts",), NODES, seeds)
    of_parts = {name: effects(parts, name, variant.beside) for name, variant in PARTS.items()}
    chosen = {part: min(values, key=lambda value: mean_of(of_parts[values[value]])) for part, values in CHOICES.items()}
    safe = [name for name in PARTS if PARTS[name].is_candidate and name != "combined" and is_safe(parts, name)]
    choice = (*chosen.values(), "+".join(safe))
    start = (*choice, "final")
    final = _runs(options, "final", start, NODES, seeds)
    other_nodes = OTHER_NODES[: 1 if options.quick else None]
    sizes = {nodes: _runs(options, f"final-{nodes}", start, nodes, few) for nodes in other_nodes}
    contended = _contended(options, choice, few)
    variants = final_variants(chosen, safe)
    decisions = [decision(final, contended, *each) for each in candidates(variants)]
    tables = [
        _by_regime("parts", of_parts, {name: variant.beside for name, variant in PARTS.items()}),
        *_decides(of_parts, parts),
        _candidate_table(decisions),
        _sizes(final, sizes),
        _contended_table(contended),
        _small(options),
        _without_profiles(options, few),
    ]
    if not options.quick:
        tables.append(_large(options, start))
    quantities: dict[str, Quantity] = {}
    for each in decisions:
        quantities |= each.quantities()
    return PageResults(quantities, tables, {"chosen": chosen, "safe": safe, "decisions": decisions}, options.seeds)


def _runs(options: Options, name: str, start: Piece, nodes: int, seeds: Iterable[int]) -> Runs:
    """The measures by regime and variant; a piece of the part begins with `start`."""
    part = str(start[-1])
    streams = {
        (scarce, load, spreads): [(*start, scarce, load, spreads, nodes, FIRST_SEED[part] + seed) for seed in seeds]
        for scarce, load, spreads in product(SCARCE, LOADS, SPREADS)
    }
    pieces = [piece for of_stream in streams.values() for piece in of_stream]
    results = options.results(name, {"parts": run_parts, "final": run_final}[part], pieces)
    found: dict[tuple[Regime, str], Column] = {}
    for (scarce, load, spreads), of_stream in streams.items():
        for interval_s in INTERVALS_S:
            by_seed = [results[piece][str(interval_s)] for piece in of_stream]
            for variant in by_seed[0]:
                regime = Regime(scarce, load, spreads, interval_s)
                found[regime, variant] = np.array([each[variant] for each in by_seed])
    return found


# --- the parts beside the streams


def _contended(options: Options, choice: tuple[str, ...], seeds: Iterable[int]) -> dict[str, Column]:
    """By variant: the measures under contention, shape (regimes, seeds, measures)."""
    regimes = list(product(SCARCE, LOADS))
    pieces: list[Piece] = [(*choice, *regime, FIRST_SEED["final"] + seed) for regime in regimes for seed in seeds]
    results = options.results("contended", run_contended, pieces)
    names = next(iter(results.values()))
    of = {name: np.array([results[piece][name] for piece in pieces]) for name in names}
    return {name: values.reshape(len(regimes), -1, values.shape[-1]) for name, values in of.items()}


def _small(options: Options) -> DataTable:
    """How often each variant starts as many jobs as can start, and how much more slowdown it has then."""
    cases = options.results("small", run_small, [(seed,) for seed in range(20 if options.quick else CASES)])
    rows = []
    for name in next(iter(cases.values())):
        value, best = (np.array([case[each] for case in cases.values()]) for each in (name, BEST))
        is_most = value[:, 0] == best[:, 0]
        more = 100 * (value[is_most, 1] / best[is_most, 1] - 1)
        rows.append((name, 100 * float(is_most.mean()), float(more.mean()), float((best - value)[:, 0].max())))
    header = ("variant", "starts as many, % of cases", "slowdown above the least then, %", "most jobs fewer")
    return DataTable("small", header, rows)


def _without_profiles(options: Options, seeds: Sequence[int]) -> DataTable:
    """Mean waits under Max-Jobs without profiles, above those as it is, in percent."""
    pools = list(POOLS)[: 1 if options.quick else None]
    few = seeds[: min(POOL_SEEDS, 2 if options.quick else POOL_SEEDS)]
    of_pools = options.results("pools", run_pool, list(product(pools, INTERVALS_S, [1 + seed for seed in few])))
    jobs = 2_000 if options.quick else 0
    of_logs = options.results(
        "logs", run_log, [(name, interval_s, jobs) for name, interval_s in product(LOGS, INTERVALS_S)]
    )
    rows = []
    for name in list(WITHOUT_PROFILES)[1:]:
        cells: list[Any] = []
        for interval_s in INTERVALS_S:
            for pool in pools:
                waits = {
                    each: np.array([of_pools[pool, interval_s, 1 + seed][each] for seed in few])
                    for each in (name, "as it is")
                }
                cells.append(interval(percent_more(waits[name], waits["as it is"])))
            for log in LOGS:
                weeks = {
                    each: np.array(of_logs[log, interval_s, jobs][each])[:, :2].sum(axis=1)
                    for each in (name, "as it is")
                }
                cells.append(percent_above(weeks[name], weeks["as it is"]))
        rows.append((name, *cells))
    columns = [
        f"{name}, {interval_s} s" for interval_s in INTERVALS_S for name in (*(f"pool {p}" for p in pools), *LOGS)
    ]
    return DataTable("without-profiles", ("Max-Jobs", *columns), rows)


def _large(options: Options, start: Piece) -> DataTable:
    """One run on a large cluster: the mean turnaround above that of `combined` as before, in percent."""
    scarce, load, spreads, nodes = LARGE
    piece = (*start, scarce, load, spreads, nodes, FIRST_SEED["final"])
    result = options.results("large", run_final, [piece])[piece]
    rows = [
        (
            name,
            *(
                100 * (result[str(each)][name][TURNAROUND] / result[str(each)][NOW][TURNAROUND] - 1)
                for each in INTERVALS_S
            ),
        )
        for name in result["1"]
    ]
    return DataTable("large", ("variant", *(f"{each} s" for each in INTERVALS_S)), rows)


# --- tables


def _by_regime(stem: str, of: Mapping[str, Mapping[Regime, Column]], beside: Mapping[str, str]) -> DataTable:
    """A row for each variant and regime."""
    rows = [
        (name, beside[name], *regime, found_of(values), verdict(found_of(values)))
        for name, by_regime in of.items()
        for regime, values in by_regime.items()
    ]
    return DataTable(stem, ("variant", "beside", *Regime._fields, "mean turnaround, %", "verdict"), rows)


def _decides(of_parts: Mapping[str, Mapping[Regime, Column]], parts: Runs) -> list[DataTable]:
    """What each setting changes with spreading: a table for each load and interval, a column for what is scarce."""
    often, seldom = INTERVALS_S
    slower = {
        regime: percent_more(
            parts[regime._replace(interval_s=seldom), "combined"][:, TURNAROUND],
            parts[regime._replace(interval_s=often), "combined"][:, TURNAROUND],
        )
        for regime in REGIMES
    }
    beside_combined = {
        name: effects(parts, name, "combined")
        for name, variant in PARTS.items()
        if variant.is_candidate and name != "combined"
    }
    beside_sns = {name: of_parts[name] for name in ("sns, order adaptive", "ce", "cs", "easy over ce", "easy over sns")}
    settings = {f"cycles every {seldom} s instead of {often} s": slower, **beside_combined, **beside_sns}
    tables = []
    for load, interval_s in product(LOADS, INTERVALS_S):
        rows = [
            (name, *(interval(of[Regime(scarce, load, True, interval_s)]) for scarce in SCARCE))
            for name, of in settings.items()
        ]
        tables.append(DataTable(f"decides-{load:g}-{interval_s}s", ("setting", *SCARCE), rows))
    return tables


def _candidate_table(decisions: Sequence[DefaultDecision]) -> DataTable:
    """A row for each candidate."""
    rows = [
        (
            each.candidate,
            each.now,
            each.better,
            f"{each.best[1]} ({each.best[0]})",
            f"{each.worst[1]} ({each.worst[0]})",
            *each.guards.values(),
            "" if each.broken is None else each.broken,
            "changes" if each.changes else "stays",
        )
        for each in decisions
    ]
    header = (
        "candidate",
        "default now",
        f"better in, of {len(REGIMES)} regimes",
        "best regime, %",
        "worst regime, %",
        *(f"{guard} worse by more than {MOST_WORSE:g} %, regimes" for guard in decisions[0].guards),
        "broken alphas, most points more",
        "the default",
    )
    return DataTable("decisions", header, rows)


def _sizes(final: Runs, sizes: Mapping[int, Runs]) -> DataTable:
    """The mean over all regimes of each variant's turnaround beside `combined` as before, by the number of nodes."""
    names = list(dict.fromkeys(name for _, name in final))
    by_size = {NODES: final, **sizes}
    rows = [
        (
            name,
            *(
                found_of(np.mean([percent(of, regime, name, NOW) for regime in REGIMES], axis=0))
                for of in by_size.values()
            ),
        )
        for name in names
        if name != NOW
    ]
    return DataTable("sizes", ("variant", *(f"{nodes} nodes" for nodes in by_size)), rows)


def _contended_table(contended: Mapping[str, Column]) -> DataTable:
    """Under contention, over all regimes: the turnaround beside `combined` as before, and the broken alphas."""
    now = contended[NOW]
    rows = [
        (
            name,
            found_of(percent_more(of[:, :, TURNAROUND], now[:, :, TURNAROUND]).mean(axis=0)),
            found_of(of[:, :, BROKEN].mean(axis=0)),
        )
        for name, of in contended.items()
    ]
    return DataTable("contended", ("variant", "mean turnaround, %", "broken alphas, %"), rows)
