"""Why jobs break their alpha: phases of the programs, errors of the profiles, and the prototype's choice of scales.

The paper names phases (section 6.2); the prototype's code shows that it spreads programs of every class. Each cause is
put in by itself, and all together. *Phases*: each program has two (module phased), with the profile's means. *Profiles
sampled in them*: 2, 4, 8 and 20 ways for 5 s each in turn, so that each meets its own share of the two phases.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from slurm_sns.policies.profile import Run
from slurm_sns.sim.engine.disciplines import PROTOTYPE
from slurm_sns.sim.engine.spreading_policies import CE, SNS
from slurm_sns.sim.pages import figures
from slurm_sns.sim.pages.judge import HOLDS, Claim, drawn
from slurm_sns.sim.pages.running import DataTable, Options, PageResults, Piece
from slurm_sns.sim.profiling.learning_cluster import SAMPLED_WAYS, as_profiled, sampled
from slurm_sns.sim.progress.phased import Phases, in_phase
from slurm_sns.sim.request import CONTENTION
from sns_reproductions import spread_n_share as sns

#: How long one number of ways is sampled (section 5.1).
SAMPLE_S = 5
FEWEST_SEQUENCES = 2 * sns.BLOCK
NUMBERS_OF_BROKEN = ("broken", "broken by", "broken by most")


def placed(
    seed: int,
    *,
    size: float = 0.0,
    length_s: int = 120,
    sampled: bool = False,
    error: float = 0.0,
    prototype_scales: bool = False,
) -> sns.Kept:
    """One sequence under SNS with phases, profiles that are sampled in them or have errors, the prototype's scales."""
    true, lots = sns.shipped_programs(), np.random.default_rng([seed, length_s])
    programs = true
    if sampled:
        programs = {
            name: replace(of, runs=tuple(sampled_in_phases(run, size, length_s, lots) for run in of.runs))
            for name, of in sorted(true.items())
        }
    placements = sns.place(
        SNS,
        CONTENTION,
        sns.drawn_jobs(seed),
        discipline=PROTOTYPE,
        programs=as_profiled(programs, seed, error) if error else programs,
        true_programs=true,
        phases=Phases(size, length_s, seed) if size else None,
        prototype_scales=prototype_scales,
    )
    return sns.kept(placements)


def sampled_in_phases(run: Run, size: float, length_s: int, lots: np.random.Generator) -> Run:
    """The run as profiled once while the program goes through its phases, from a random moment of the first on."""
    known = sampled(run)
    samples = int(run.time_s // SAMPLE_S)
    begins_s = lots.uniform(0, 2 * length_s) + SAMPLE_S * np.arange(samples)
    in_memory_phase = (begins_s // length_s).astype(int) % 2 == 0
    of = {memory: in_phase(run, size, is_memory_phase=memory) for memory in (True, False)}
    ipc, gbps = [], []
    for at, ways in enumerate(known.ways):
        memory = float(in_memory_phase[at :: len(SAMPLED_WAYS)].mean())
        ipc.append(memory * of[True].ipc_at(ways) + (1 - memory) * of[False].ipc_at(ways))
        gbps.append(memory * of[True].bandwidth_at(ways) + (1 - memory) * of[False].bandwidth_at(ways))
    return replace(known, ipc=tuple(ipc), bandwidth_gbps=tuple(gbps))


def run_sequence(variants: Mapping[str, Any], piece: Piece) -> dict[str, sns.Kept]:
    """One sequence under CE and under SNS in every variant."""
    seed = int(piece[1])
    ce = sns.kept(sns.place(CE, CONTENTION, sns.drawn_jobs(seed), discipline=PROTOTYPE))
    return {CE: ce, **{name: placed(seed, **variant) for name, variant in variants.items()}}


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the sequences and draw the figure."""
    variants, columns = data["variants"], data["columns"]
    count = options.seeds if options.quick else max(options.seeds, FEWEST_SEQUENCES)
    pieces = [("phases", seed) for seed in range(1, count + 1)]
    results = options.results("phases", partial(run_sequence, variants), pieces).values()
    of = {name: sns.Sequences.of([{CE: each[CE], SNS: each[name]} for each in results]) for name in variants}
    found: dict[str, dict[str, Any]] = {
        name: {**sns.summary(each, SNS), "inside": is_inside(each, data["printed"])} for name, each in of.items()
    }
    rows = [
        (name, *(format(each[column], style) for column, (_, style) in columns.items())) for name, each in found.items()
    ]
    shares = {str(at): each.columns(SNS)["broken"] for at, each in enumerate(of.values())}
    labels = ("row of the table, from 0", "% of the runs")
    figures.bars(options.out, "broken", {"broken alphas, %": shares}, labels)
    header = ("put in", *(heading for heading, _ in columns.values()))
    return PageResults({}, [DataTable("variants", header, rows)], {"of": found}, count)


def is_inside(sequences: sns.Sequences, printed: Mapping[str, Any]) -> str:
    """Whether each of the three printed numbers lies inside the central 90 % of our draws of 36 sequences."""
    draws = sns.draws_of(sequences, {name: sns.NUMBERS[name] for name in NUMBERS_OF_BROKEN})
    claims = [Claim("", "", "", drawn(of), printed=printed[name]["number"]) for name, of in draws.items()]
    return ", ".join("yes" if claim.verdict == HOLDS else "no" for claim in claims)
