"""How much the results depend on assumed numbers: the throughput experiment with one kind of number changed at a time.

Wherever the profile file says *assumed*, one of these is changed by 20 % in either direction: the gain of spreading,
the loss with fewer ways, the bandwidth. In addition, the ways that CG needs for 90 % of its performance go from 10
(figure 6) to 18 ("almost all", section 6.1). The policies plan by the changed numbers and the jobs advance by them: the
programs themselves differ, not only their profiles.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from slurm_sns.policies.profile import Program, Provenance, Run
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CONTENTION, CS, SNS
from slurm_sns.sim.pages.judge import Claim, interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.reproduce.spread_n_share.runs import NODE, shipped_programs
from slurm_sns.sim.reproduce.spread_n_share.runs import run_all as run_policies
from slurm_sns.sim.reproduce.spread_n_share.statistics import Sequences
from slurm_sns.sim.workloads.sequences import jobs_of, population, sequence

LESS, MORE = 0.8, 1.2
CG_WAYS, CG_MOST_WAYS, FEWEST_WAYS = 10, 18, 2
LEAST_KEPT = 0.05
POLICIES = (CS, SNS, COMBINED)

Programs = Mapping[str, Program]


def gains_changed(programs: Programs, factor: float) -> Programs:
    """The profiles with the gain or loss of spreading multiplied by the factor, where it is assumed."""

    def change(run: Run, of: Mapping[int, Run]) -> Run:
        if run.provenance.time_s is not Provenance.ASSUMED or run.scale == 1:
            return run
        alone_s = of[1].time_s
        return replace(run, time_s=alone_s / (1 + factor * (alone_s / run.time_s - 1)))

    return _each(programs, change)


def losses_changed(programs: Programs, factor: float) -> Programs:
    """The profiles with the loss of IPC at fewer ways multiplied by the factor, where it is assumed."""

    def change(run: Run, _: Mapping[int, Run]) -> Run:
        if run.provenance.ipc is not Provenance.ASSUMED:
            return run
        kept = [max(1 - factor * (1 - ipc / run.full_ipc), LEAST_KEPT) for ipc in run.ipc]
        return replace(run, ipc=tuple(run.full_ipc * each for each in kept))

    return _each(programs, change)


def bandwidth_changed(programs: Programs, factor: float) -> Programs:
    """The profiles with the bandwidth multiplied by the factor, where it is assumed; at most the node's bandwidth."""

    def change(run: Run, _: Mapping[int, Run]) -> Run:
        if run.provenance.bandwidth_gbps is not Provenance.ASSUMED:
            return run
        gbps = tuple(min(factor * each, float(NODE.bandwidth_gbps)) for each in run.bandwidth_gbps)
        return replace(run, bandwidth_gbps=gbps)

    return _each(programs, change)


def cg_hungrier(programs: Programs, ways: int = CG_MOST_WAYS) -> Programs:
    """The profiles with CG's curves stretched so that CG needs `ways` ways for 90 % of its performance."""
    step = (CG_WAYS - FEWEST_WAYS) / (ways - FEWEST_WAYS)

    def change(run: Run, _: Mapping[int, Run]) -> Run:
        points = tuple(range(FEWEST_WAYS, ways + 1, 2))
        at = [FEWEST_WAYS + (each - FEWEST_WAYS) * step for each in points]
        return replace(
            run,
            ways=(*points, NODE.ways),
            ipc=(*map(run.ipc_at, at), run.full_ipc),
            bandwidth_gbps=(*map(run.bandwidth_at, at), run.bandwidth_gbps[-1]),
        )

    return {**programs, "cg": _each({"cg": programs["cg"]}, change)["cg"]}


VARIANTS: Mapping[str, Callable[[Programs], Programs]] = {
    "as shipped": lambda programs: programs,
    "gains by spreading -20 %": lambda programs: gains_changed(programs, LESS),
    "gains by spreading +20 %": lambda programs: gains_changed(programs, MORE),
    "cost of fewer ways -20 %": lambda programs: losses_changed(programs, LESS),
    "cost of fewer ways +20 %": lambda programs: losses_changed(programs, MORE),
    "bandwidth -20 %": lambda programs: bandwidth_changed(programs, LESS),
    "bandwidth +20 %": lambda programs: bandwidth_changed(programs, MORE),
    "CG needs 14 ways": lambda programs: cg_hungrier(programs, 14),
    "CG needs 18 ways": cg_hungrier,
}


def run(piece: tuple[str, int]) -> dict[str, Any]:
    """One sequence under one variant of the profiles; the variant does not change which jobs it has."""
    variant, seed = piece
    programs = VARIANTS[variant](shipped_programs())
    jobs = jobs_of(sequence(population(shipped_programs()), seed))
    return run_policies(jobs, (CE, *POLICIES), (CONTENTION,), programs=programs)


def reproduce(options: Options) -> Page:
    """Run the variants and return the page."""
    seeds = range(1, options.seeds + 1)
    pieces = [(variant, seed) for variant in VARIANTS for seed in seeds]
    results = dict(zip(pieces, options.results("assumed", run, pieces), strict=True))
    of = {name: Sequences.of([results[name, seed] for seed in seeds], CONTENTION) for name in VARIANTS}
    rows = [
        (
            name,
            *(interval(found.gains(policy)) for policy in POLICIES),
            interval(found.mean_ratios(SNS)),
            interval(found.broken_shares(SNS)),
        )
        for name, found in of.items()
    ]
    header = ("changed", "CS, % over CE", "SNS, % over CE", "combined, % over CE", "SNS: run over CE's", "broken, %")
    claims = [
        Claim("ours", text, f"{name}: {measure}", interval(found.gains(SNS, over)), low=0)
        for name, found in of.items()
        for text, measure, over in (
            ("SNS has more throughput than CE", "% over CE", CE),
            ("SNS has more throughput than CS", "% over CS", CS),
        )
    ]
    made = (
        f"`sns reproduce spread-n-share-assumed`: {options.seeds} of the sequences of "
        "[spread-n-share-throughput](../spread-n-share-throughput/README.md) under the contention model. Each "
        "variant changes one kind of "
        "assumed number in the profiles; run times under CE stay the same. The column *broken* has the percentage of "
        "jobs that break their alpha under SNS. The claims are ours, not the paper's."
    )
    table = DataTable("assumed", header, rows)
    return Page(
        title="Spread-n-Share: how much depends on the assumed numbers",
        made=[made],
        claims=claims,
        shown=table,
        numbers=[table],
        seeds=options.seeds,
    )


def _each(programs: Programs, change: Callable[[Run, Mapping[int, Run]], Run]) -> dict[str, Program]:
    """Change every run of every program; `change` also gets the runs of the same process count by scale."""
    return {
        name: replace(program, runs=tuple(change(run, program.at(run.processes)) for run in program.runs))
        for name, program in programs.items()
    }
