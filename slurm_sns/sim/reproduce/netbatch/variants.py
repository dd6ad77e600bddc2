"""What decides on the claims of the Max-Jobs paper: one thing that it does not print changed at a time, at full size.

The claims are those of modules load and wins at the highest load; mid load and the original load are not varied. The
buckets have neither times nor loads, and module machines varies what matters to figure 11. Each claim is called by its
verdicts under all variants. It *holds everywhere*, or where the seeds suffice to tell; it *fails everywhere*, or where
they suffice; it *hangs on* the variants under which its verdict is another one; or nothing can be told.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.sim.pages.judge import FAILS, HOLDS, IDENTICAL, UNDECIDED, Claim, worst
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.pages.running import Options
from slurm_sns.sim.reproduce.netbatch import wins
from slurm_sns.sim.reproduce.netbatch.depth import DAYS, QUICK_DAYS, QUICK_SCALE
from slurm_sns.sim.reproduce.netbatch.load import HEURISTICS, Results, finished
from slurm_sns.sim.reproduce.netbatch.load_claims import claims_of
from slurm_sns.sim.reproduce.netbatch.readings import PERCENT, TOLD
from slurm_sns.sim.reproduce.page import Page
from slurm_sns.sim.reproduce.rows import ROWS, run_with_rows
from slurm_sns.sim.reproduce.runs import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Sweep
from slurm_sns.sim.workloads.netbatch_pools import POOLS, VARIANT_BETAS, WAITS_S
from slurm_sns.sim.workloads.netbatch_variants import BURSTS, VARIANTS

POLICIES = (*HEURISTICS, MAX_JOBS, FIRST_FIT)
#: What each variant changes, for the page.
CHANGES = {
    "double memory": "twice the memory on every machine",
    "least memory": "every machine has the pool's smallest memory per core",
    "equal machines": "one size of machine, with the pool's mean memory per core",
    "no bursts": "neither bursts of cores or of memory nor phases of little memory",
    "daily cycle": "the rate of arrivals rises and falls by half within a day",
    "even run times": "log-normal run times with sigma 0.7 instead of 1.4",
    "uneven run times": "the same with sigma 2.0",
    "single arrivals": "jobs arrive one by one, not in batches of 8",
    "large batches": "batches of 32 jobs",
}
#: What the page does not vary.
NOT_VARIED = (
    "What is not varied: the mid load and the original load, which [full](../netbatch-full/README.md) has for the "
    "pools as generated alone, and figure 7. Figure 11 is varied on [another page](../netbatch-machines/README.md)."
)
EVERYWHERE, NOWHERE, HANGS = "holds everywhere", "fails everywhere", "hangs on it"
#: The seeds do not suffice to tell for some variants; for the others the verdict is the same.
HOLDS_TOLD, FAILS_TOLD = "holds where it can be told", "fails where it can be told"


def sweeps_of(options: Options) -> list[Sweep]:
    """Every pool at full size under every variant, at the betas of equal queueing.

    Quick: a tenth of the size, a quarter of a day. Generators with more or longer bursts are left out: module generator
    shows them at the original load.
    """
    scale, days = (QUICK_SCALE, QUICK_DAYS) if options.quick else (1.0, DAYS)
    base = Sweep(
        options.folder,
        options.seeds,
        scale=scale,
        days=days,
        betas=(HIGHEST_LOAD,),
        policies=POLICIES,
        calibrated=True,
    )
    return [replace(base, variant=variant) for variant in VARIANTS if variant not in BURSTS]


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    sweeps = sweeps_of(options)
    run_with_rows(options, sweeps)
    return page_of(finished(sweeps))


def page_of(of_variants: Sequence[Results]) -> Page:
    """The page, from the finished runs. Pools with fewer than two complete seeds of a variant are left out."""
    claims = [
        replace(each, where=results.sweep.variant)
        for results in of_variants
        for each in (*claims_of(results), *wins.claims_of(wins.shares_of(results)))
    ]
    rows = [
        (results.sweep.variant, name, policy, float(results.of(name, policy).mean()), results.load(name, HIGHEST_LOAD))
        for results in of_variants
        for name in results.sweep.pools
        for policy in results.sweep.policies
    ]
    names = [results.sweep.variant for results in of_variants]
    return Page(
        title="NetBatch variants: what decides whether a claim holds",
        made=[
            "`sns reproduce netbatch-variants`, at equal queueing. "
            + (f"As generated: {of_variants[0].made()}" if of_variants else "No run is finished."),
            "The column *source* names the variant. "
            + "; ".join(f"*{name}*: {CHANGES[name]}" for name in names if name in CHANGES)
            + ". The mean of the run times is chosen so that the load of the scarcer of cores and memory stays the "
            "same before run times are cut at a day. At the betas of the others the cut leaves *uneven run times* a "
            "load of 82 to 94 %.",
            _told_betas([each for each in of_variants if each.sweep.variant in VARIANT_BETAS]),
            NOT_VARIED,
            (
                "Complete seeds: "
                + ", ".join(f"{results.sweep.variant} {results.seeds}" for results in of_variants)
                + f". `--resume` goes on from the rows beside this page ([{ROWS}]({ROWS}))."
            ),
            f"{TOLD} {PERCENT}",
        ],
        result=[
            "What each claim hangs on:",
            called(claims),
            (
                "How long jobs wait under Max-Jobs (mean), and the load in percent of the capacity of cores or memory, "
                "whichever is scarcer:"
            ),
            queueing(of_variants),
        ],
        claims=claims,
        groups=[claim.where for claim in claims],
        numbers=[
            DataTable("waits", ("variant", "pool", "policy", "mean_wait_s", "load_percent"), rows),
            called(claims),
        ],
        seeds=min((results.seeds for results in of_variants), default=0),
    )


def _told_betas(of_variants: Sequence[Results]) -> str:
    """How the betas of the variants were chosen that have their own."""
    told = "; ".join(f"*{results.sweep.variant}* {results.told_betas().replace(';', ',')}" for results in of_variants)
    return (
        f"All variants have the betas of the pools as generated, but for {len(VARIANT_BETAS)} "
        f"({', '.join(VARIANT_BETAS)}): at these betas they queue far less or far longer. They have betas of their "
        "own, found on one seed that no page uses: the first beta tried at which the mean wait under Max-Jobs was "
        f"between 700 and 1,400 s, where {WAITS_S[HIGHEST_LOAD]:,.0f} s are aimed at{f' ({told})' if told else ''}."
    )


def queueing(of_variants: Sequence[Results]) -> DataTable:
    """Max-Jobs' mean wait and the load of each variant and pool; empty where a pool has too few seeds."""
    rows = [
        (
            results.sweep.variant,
            *(
                f"{results.of(name, MAX_JOBS).mean():,.0f} s, {results.load(name, HIGHEST_LOAD):.0f} %"
                if name in results.sweep.pools
                else ""
                for name in POOLS
            ),
        )
        for results in of_variants
    ]
    return DataTable("queueing", ("variant", *(f"pool {name}" for name in POOLS)), rows)


def called(claims: Sequence[Claim]) -> DataTable:
    """What becomes of each claim, as `call` says."""
    texts = dict.fromkeys(claim.text for claim in claims)
    return DataTable("called", ("claim", "called"), [(text, call(claims, text)) for text in texts])


def call(claims: Sequence[Claim], text: str) -> str:
    """What becomes of a claim under all variants; a variant's verdict is the worst of the claim's rows there.

    Only a verdict counts as a difference: where one cannot tell, or where policies gave identical results, the claim is
    not called by that variant.
    """
    verdicts: dict[str, list[str]] = {}
    for claim in claims:
        if claim.text == text:
            verdicts.setdefault(claim.where, []).append(claim.verdict)
    by_verdict: dict[str, list[str]] = {}
    for where, each in verdicts.items():
        by_verdict.setdefault(worst(each), []).append(where)
    unknown, holding, failing, identical = (by_verdict.get(each, []) for each in (UNDECIDED, HOLDS, FAILS, IDENTICAL))
    if identical and not (unknown or holding or failing):
        return IDENTICAL
    open_ones = f"; {UNDECIDED}: {', '.join(unknown)}" if unknown else ""
    if holding and failing:
        return f"{HANGS}: holds with {', '.join(holding)}; fails with {', '.join(failing)}{open_ones}"
    if unknown and (holding or failing):
        return f"{HOLDS_TOLD if holding else FAILS_TOLD}: with {', '.join(holding or failing)}{open_ones}"
    if unknown:
        return f"{UNDECIDED}: {', '.join(unknown)}"
    but_for = f"; identical with {', '.join(identical)}" if identical else ""
    return f"{EVERYWHERE if holding else NOWHERE}{but_for}"
