"""What the DFRS paper prints in table I and says of it, as claims on degradation factors.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section V.
"""

from collections.abc import Callable, Mapping

from slurm_sns.sim.pages.judge import Claim, Interval, exactly
from slurm_sns.sim.reproduce.dfrs.printed import TABLE_1
from slurm_sns.sim.reproduce.dfrs.runs import (
    ASAP_PER,
    BATCH,
    EASY,
    EXTRA_NODES_EASY,
    FCFS,
    HPC2N,
    PAPER_NAMES,
    SCALED,
    UNSCALED,
    VARIANTS,
    WEEKS,
)
from slurm_sns.sim.reproduce.dfrs.statistics import (
    Statistic,
    Table,
    average,
    deviation,
    difference,
    jackknife,
    largest,
    near,
    neighbours,
    ratio,
)

#: "Two orders of magnitude": the logarithm of the ratio is rounded to 2.
TWO_ORDERS = 10**1.5
FIGURES: Mapping[str, Callable[[str], Statistic]] = {"average": average, "deviation": deviation, "largest": largest}
WORKLOADS = {SCALED: "scaled", UNSCALED: "unscaled", HPC2N: "HPC2N"}


def found_in(workload: str, statistic: Statistic, table: Table) -> Interval:
    """The statistic with its interval.

    All weeks of HPC2N are the paper's own workload: what is computed from them is not random.
    """
    is_random = workload != HPC2N or len(table[ASAP_PER]) < WEEKS
    return jackknife(statistic, table) if is_random else exactly(statistic(table))


def order_claims(workload: str, table: Table) -> list[Claim]:
    """The claims on the order of algorithms, those with EASY also for its variant."""
    name, printed = WORKLOADS[workload], {each: row.average for each, row in TABLE_1[workload].items()}
    claims = []
    for pair in neighbours(printed):
        text = " is better than ".join(f"{PAPER_NAMES[each]} ({printed[each]:.2f})" for each in pair)
        as_variant = tuple(EXTRA_NODES_EASY if each == EASY else each for each in pair)
        for better, worse in dict.fromkeys((pair, as_variant)):
            found = found_in(workload, difference(worse, better), table)
            claims.append(Claim("table I", f"{name}: {text}", f"average of {worse} - {better}", found, low=0))
    for batch in BATCH:
        found = found_in(workload, ratio(batch, ASAP_PER), table)
        text = f"{name}: batch scheduling is two orders of magnitude behind"
        claims.append(Claim("sec. V", text, f"average of {batch} / {ASAP_PER}", found, low=TWO_ORDERS))
    return [*claims, *_worst(workload, table)]


def _worst(workload: str, table: Table) -> list[Claim]:
    """The claims on the largest factors."""
    others = [each for each in PAPER_NAMES if each != ASAP_PER]
    fractional = [each for each in PAPER_NAMES if each not in BATCH]

    def lead(of: Table) -> float:
        return min(float(of[each].max()) for each in others) - float(of[ASAP_PER].max())

    def progress(of: Table) -> float:
        return min(float(of[each].max()) for each in (FCFS, EASY)) - max(float(of[each].max()) for each in fractional)

    return [
        Claim(
            "sec. V",
            f"{WORKLOADS[workload]}: by the largest factor DYNMCB8-ASAP-PER is the clear winner",
            "smallest of the others - its own",
            found_in(workload, lead, table),
            low=0,
        ),
        Claim(
            "sec. V",
            f"{WORKLOADS[workload]}: by the largest factor all DFRS algorithms are better than FCFS and EASY",
            "smaller of these two - worst of the others",
            found_in(workload, progress, table),
            low=0,
        ),
    ]


def figure_claims(workload: str, table: Table) -> list[Claim]:
    """The claims on the printed figures; of the variants only on the averages."""
    rows = [
        *((name, name, figure) for name in PAPER_NAMES for figure in FIGURES),
        *((name, paper, "average") for name, paper in VARIANTS.items()),
    ]
    claims = []
    for name, paper, figure in rows:
        printed = getattr(TABLE_1[workload][paper], figure)
        text = f"{WORKLOADS[workload]}: {figure} of {PAPER_NAMES[paper]} {printed:.2f}"
        found = found_in(workload, FIGURES[figure](name), table)
        claims.append(near("table I", text, f"{figure} of {name}", printed, found))
    return claims
