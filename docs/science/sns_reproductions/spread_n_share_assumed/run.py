"""How much the results depend on assumed numbers: the throughput experiment with one kind of number changed at a time.

Wherever the profile file says *assumed*, one of these is changed by a factor: the gain of spreading, the loss with
fewer ways, the bandwidth. In addition, CG needs more ways. The policies plan by the changed numbers and the jobs
advance by them: the programs themselves differ, not only their profiles.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from slurm_sns.policies.profile import Program, Provenance, Run
from slurm_sns.sim.engine.spreading_policies import CE, COMBINED, CS, SNS
from slurm_sns.sim.pages.judge import in_pairs
from slurm_sns.sim.pages.running import Options, PageResults, Piece
from sns_reproductions import spread_n_share as sns

#: The program whose need for ways is changed, the ways that it needs for 90 % of its performance, and the fewest ways.
CG, CG_WAYS, FEWEST_WAYS = "cg", 10, 2
LEAST_KEPT = 0.05


def gains(run: Run, alone: Run, factor: float) -> Run:
    """The gain or loss of spreading multiplied by the factor, where it is assumed."""
    if run.provenance.time_s is not Provenance.ASSUMED or run.scale == 1:
        return run
    return replace(run, time_s=alone.time_s / (1 + factor * (alone.time_s / run.time_s - 1)))


def losses(run: Run, _: Run, factor: float) -> Run:
    """The loss of IPC at fewer ways multiplied by the factor, where it is assumed."""
    if run.provenance.ipc is not Provenance.ASSUMED:
        return run
    kept = [max(1 - factor * (1 - ipc / run.full_ipc), LEAST_KEPT) for ipc in run.ipc]
    return replace(run, ipc=tuple(run.full_ipc * each for each in kept))


def bandwidth(run: Run, _: Run, factor: float) -> Run:
    """The bandwidth multiplied by the factor, where it is assumed; at most the node's bandwidth."""
    if run.provenance.bandwidth_gbps is not Provenance.ASSUMED:
        return run
    gbps = tuple(min(factor * each, float(sns.NODE.bandwidth_gbps)) for each in run.bandwidth_gbps)
    return replace(run, bandwidth_gbps=gbps)


def cg_ways(run: Run, _: Run, ways: float) -> Run:
    """CG's curves stretched so that it needs `ways` ways for 90 % of its performance."""
    step = (CG_WAYS - FEWEST_WAYS) / (ways - FEWEST_WAYS)
    points = tuple(range(FEWEST_WAYS, int(ways) + 1, 2))
    at = [FEWEST_WAYS + (each - FEWEST_WAYS) * step for each in points]
    return replace(
        run,
        ways=(*points, sns.NODE.ways),
        ipc=(*map(run.ipc_at, at), run.full_ipc),
        bandwidth_gbps=(*map(run.bandwidth_at, at), run.bandwidth_gbps[-1]),
    )


#: What is changed -> a run, that of the same processes at scale 1, and the factor, to the changed run.
CHANGES: Mapping[str, Callable[[Run, Run, float], Run]] = {
    "none": lambda run, _alone, _factor: run,
    "gains": gains,
    "losses": losses,
    "bandwidth": bandwidth,
    "cg_ways": cg_ways,
}


def changed_programs(change: str, factor: float) -> dict[str, Program]:
    """The shipped profiles with one change."""
    return {
        name: replace(
            program,
            runs=tuple(CHANGES[change](run, program.at(run.processes)[1], factor) for run in program.runs),
        )
        if change != "cg_ways" or name == CG
        else program
        for name, program in sns.shipped_programs().items()
    }


def run_sequence(piece: Piece) -> dict[str, sns.Kept]:
    """One sequence with one change of the profiles, which does not change which jobs it has."""
    change, factor, seed = str(piece[0]), float(piece[1]), int(piece[2])
    programs = changed_programs(change, factor)
    return sns.run_compared(sns.drawn_jobs(seed), programs=programs)


def run(options: Options, data: Mapping[str, Any]) -> PageResults:
    """Run the variants."""
    seeds, variants = range(1, options.seeds + 1), data["variants"]
    pieces = [(*change, seed) for change in variants.values() for seed in seeds]
    results = options.results("assumed", run_sequence, pieces)
    columns = {}
    for name, change in variants.items():
        of = sns.Sequences.of([results[*change, seed] for seed in seeds])
        gained = {policy: of.gains(policy) for policy in sns.COMPARED if policy != CE}
        pairs = ((COMBINED, SNS), (sns.COMBINED_WITHHOLDING, sns.SNS_WITHHOLDING))
        more = {f"{one} over {other}": gained[one] - gained[other] for one, other in pairs}
        columns[name] = {**of.columns(SNS), **gained, **more, "over cs": of.gains(SNS, CS)}
    return PageResults(
        in_pairs(columns), [sns.table("assumed", "changed", columns, data["measures"])], seeds=options.seeds
    )
