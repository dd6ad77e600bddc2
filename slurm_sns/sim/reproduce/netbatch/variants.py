"""What decides on the claims of the Max-Jobs paper: one thing that it does not print changed at a time, at full size.

The claims are those of modules load and wins; the buckets have neither times nor loads, and module machines varies what
matters to them. Each claim is called by its verdicts under all variants. It *holds everywhere*; it *fails everywhere*;
it *hangs on* the variants under which its verdict is another one; or the seeds do not suffice to tell.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.sim.reproduce.claims import FAILS, HOLDS, UNDECIDED, Claim
from slurm_sns.sim.reproduce.netbatch import wins
from slurm_sns.sim.reproduce.netbatch.depth import DAYS, QUICK_DAYS, QUICK_SCALE
from slurm_sns.sim.reproduce.netbatch.full import finished
from slurm_sns.sim.reproduce.netbatch.load import HEURISTICS, Results
from slurm_sns.sim.reproduce.netbatch.load_claims import claims_of
from slurm_sns.sim.reproduce.netbatch.readings import TOLD
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page
from slurm_sns.sim.reproduce.rows import ROWS, run_with_rows
from slurm_sns.sim.reproduce.runs import FIRST_FIT, HIGHEST_LOAD, MAX_JOBS, Sweep
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
EVERYWHERE, NOWHERE, HANGS = "holds everywhere", "fails everywhere", "hangs on it"


def sweeps_of(options: Options) -> list[Sweep]:
    """Every pool at full size under every variant, at the betas of equal queueing.

    Quick: a tenth of the size, a quarter of a day. Generators with more or longer bursts do not meet the paper's words
    on the original load and are left out.
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
        Claim(results.sweep.variant, each.text, each.measure, each.found, each.low, each.high)
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
            f"`sns reproduce netbatch-variants`. {of_variants[0].made() if of_variants else 'No run is finished.'}",
            "The column *source* names the variant. "
            + "; ".join(f"*{name}*: {CHANGES[name]}" for name in names if name in CHANGES)
            + ". Run times are adapted so that the load of the scarcer of cores and memory stays the same.",
            (
                "Complete seeds: "
                + ", ".join(f"{results.sweep.variant} {results.seeds}" for results in of_variants)
                + f". `--resume` goes on from the rows beside this page ([{ROWS}]({ROWS}))."
            ),
            TOLD,
        ],
        claims=claims,
        groups=[claim.where for claim in claims],
        numbers=[
            DataTable("waits", ("variant", "pool", "policy", "mean_wait_s", "load_percent"), rows),
            called(claims),
        ],
        shown=called(claims),
        remarks=["What each claim hangs on:"],
        seeds=min((results.seeds for results in of_variants), default=0),
    )


def called(claims: Sequence[Claim]) -> DataTable:
    """What becomes of each claim, as `call` says."""
    texts = dict.fromkeys(claim.text for claim in claims)
    return DataTable("called", ("claim", "called"), [(text, call(claims, text)) for text in texts])


def call(claims: Sequence[Claim], text: str) -> str:
    """What becomes of a claim under all variants; a variant's verdict is the worst of the claim's rows there.

    Only a verdict counts as a difference: where one cannot tell, the claim is not called by that variant.
    """
    verdicts: dict[str, list[str]] = {}
    for claim in claims:
        if claim.text == text:
            verdicts.setdefault(claim.where, []).append(claim.verdict)
    worst = {where: _worst(each) for where, each in verdicts.items()}
    unknown = [where for where, verdict in worst.items() if verdict == UNDECIDED]
    holding = [where for where, verdict in worst.items() if verdict == HOLDS]
    failing = [where for where, verdict in worst.items() if verdict == FAILS]
    open_ones = f"; {UNDECIDED}: {', '.join(unknown)}" if unknown else ""
    if holding and failing:
        return f"{HANGS}: holds with {', '.join(holding)}; fails with {', '.join(failing)}{open_ones}"
    if unknown:
        decided = (
            f"holds with {', '.join(holding)}" if holding else f"fails with {', '.join(failing)}" if failing else ""
        )
        return f"{UNDECIDED}: {', '.join(unknown)}{'; ' + decided if decided else ''}"
    return EVERYWHERE if holding else NOWHERE


def _worst(verdicts: Sequence[str]) -> str:
    return FAILS if FAILS in verdicts else UNDECIDED if UNDECIDED in verdicts else HOLDS
