"""Why claims of the Max-Jobs paper do not hold on generated pools: one assumption of the generator changed at a time.

If a claim holds under a variant but not as generated, the claim depends on that assumption. If no variant changes the
verdict, none of these assumptions is the reason.
"""

from collections.abc import Sequence

from slurm_sns.sim.reproduce.claims import HOLDS, Claim
from slurm_sns.sim.reproduce.netbatch.load import Results, claims_of
from slurm_sns.sim.reproduce.options import Options
from slurm_sns.sim.reproduce.page import DataTable, Page
from slurm_sns.sim.reproduce.runs import HIGHEST_LOAD, POLICIES, Sweep
from slurm_sns.sim.workloads.netbatch_variants import AS_GENERATED, VARIANTS

#: The pools for which some claims do not hold. Few seeds suffice to show large differences.
POOLS = ("A", "C", "D")
SEEDS, QUICK_SEEDS = 4, 2

#: What each variant changes, for the page.
CHANGES = {
    "double memory": "twice the memory on every machine",
    "least memory": "every machine has the pool's smallest memory per core",
    "equal machines": "one size of machine, with the pool's mean memory per core",
    "no bursts": "neither bursts of cores or of memory nor phases of little memory",
}


def sweep_of(options: Options, variant: str) -> Sweep:
    """The pools at 1/20 of their size, a month at the highest load; quick: two days at 1/50."""
    seeds, size = (QUICK_SEEDS, (0.02, 2.0)) if options.quick else (min(options.seeds, SEEDS), (0.05, 30.0))
    return Sweep(
        options.folder, seeds, scale=size[0], days=size[1], betas=(HIGHEST_LOAD,), pools=POOLS, variant=variant
    )


def reproduce(options: Options) -> Page:
    """Run what is missing and return the page."""
    sweeps = [sweep_of(options, variant) for variant in VARIANTS]
    for sweep in sweeps:
        options.run(sweep)
    return page_of([Results(sweep) for sweep in sweeps])


def page_of(of_variants: Sequence[Results]) -> Page:
    """The page, from the finished runs."""
    claims = [
        Claim(results.sweep.variant, each.text, each.measure, each.found, each.low, each.high)
        for results in of_variants
        for each in claims_of(results)
    ]
    rows = [
        (results.sweep.variant, name, policy, float(results.of(name, policy).mean()), results.load(name, HIGHEST_LOAD))
        for results in of_variants
        for name in POOLS
        for policy in POLICIES
    ]
    header = ("variant", "pool", "policy", "mean_wait_s", "load_percent")
    first, names = of_variants[0], [results.sweep.variant for results in of_variants]
    return Page(
        title="NetBatch variants: what decides whether a claim holds",
        made=[
            f"`sns reproduce netbatch-variants`. {first.made()}",
            "The column *source* names the variant. "
            + "; ".join(f"*{name}*: {CHANGES[name]}" for name in names if name in CHANGES)
            + ". Run times are adapted so that the load of the scarcer of cores and memory stays the same.",
        ],
        claims=claims,
        numbers=[DataTable("waits", header, rows)],
        shown=DataTable("holding", ("claim", "holds"), [(text, _holding(claims, text)) for text in _texts(claims)]),
        remarks=["Under which variants each claim holds:"],
        seeds=first.seeds,
    )


def _texts(claims: Sequence[Claim]) -> list[str]:
    return list(dict.fromkeys(claim.text for claim in claims if claim.where == AS_GENERATED))


def _holding(claims: Sequence[Claim], text: str) -> str:
    """The variants under which a claim holds."""
    return ", ".join(claim.where for claim in claims if claim.text == text and claim.verdict == HOLDS) or "none"
