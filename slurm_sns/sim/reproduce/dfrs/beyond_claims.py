"""What we expect beyond the DFRS paper, as claims.

The ranges were chosen before the first run of a variant, for these reasons:

* *Survives*: the paper has two orders of magnitude between EASY and DYNMCB8-ASAP-PER. Whatever a site adds, one should
  be left: at least 10.
* Caps once a minute: a new cap is late by half a minute on average, and jobs that start have theirs at once. A node is
  shared in proportion meanwhile. The largest stretches come from waits for memory of up to a period of ten minutes. So
  at most a quarter is lost.
* Needs 10 % wrong: a job has at least nine tenths of its speed, so at most 11 % are lost; a quarter leaves room for
  packings that differ.
* Both: the product of these.
* Two generations, and unlike memory: all jobs have the same base yield. One task on a node of half the size halves it.
  Memory: the tasks that need most have half as many places. So at most a factor of 2 is lost.
* EASY with estimates: studies find it a little better or worse than with true run times, within a factor of 2.
* Gang scheduling neither pauses for memory nor balances: it is near GREEDY, which the paper has within a factor of 3 of
  EASY, and so less than 10 times better.
"""

from collections.abc import Sequence
from typing import Any

from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.reproduce.dfrs.beyond_runs import (
    ALL,
    BOTH,
    ERRORS,
    ESTIMATING_EASY,
    GANG_SCHEDULING,
    MINUTE,
    PAPER,
    TWO,
    UNLIKE,
    baseline,
    label,
)
from slurm_sns.sim.reproduce.dfrs.runs import ASAP_PER, EASY, PAPER_NAMES
from slurm_sns.sim.reproduce.dfrs.statistics import Table, jackknife, ratio

#: The advantage that should survive.
SURVIVES = 10
#: By how much a variant may raise the average degradation factor.
MOST_LOST = {MINUTE: 1.25, ERRORS: 1.25, BOTH: 1.5, TWO: 2.0, UNLIKE: 2.0}
#: EASY with estimates over EASY.
ESTIMATES_RANGE = (0.5, 2.0)


def claims(workload: str, factors: Table) -> list[Claim]:
    """The claims on the average degradation factors of one workload."""

    def claim(text: str, one: str, other: str, bounds: Sequence[Any]) -> Claim:
        found = jackknife(ratio(one, other), factors)
        return Claim("ours", f"{workload}: {text}", f"{one} / {other}", found, *bounds)

    best = PAPER_NAMES[ASAP_PER]
    above, below = (SURVIVES, float("inf")), (0.0, float(SURVIVES))
    names = (PAPER, *MOST_LOST, ALL)
    found = [
        claim(
            f"{name}: {best} stays {SURVIVES} times better than EASY",
            label(baseline(name), EASY),
            label(name, ASAP_PER),
            above,
        )
        for name in names
    ]
    found += [
        claim(
            f"{name} cost {best} little",
            label(name, ASAP_PER),
            label(baseline(name), ASAP_PER),
            (0.0, most),
        )
        for name, most in MOST_LOST.items()
    ]
    easy, estimating = label(PAPER, EASY), label(PAPER, ESTIMATING_EASY)
    gang, dfrs = label(PAPER, GANG_SCHEDULING), label(PAPER, ASAP_PER)
    found += [
        claim("users' estimates change EASY by less than a factor of 2", estimating, easy, ESTIMATES_RANGE),
        claim(f"{best} is {SURVIVES} times better than EASY with users' estimates", estimating, dfrs, above),
        claim(
            f"{ALL}: {best} is {SURVIVES} times better than EASY with users' estimates",
            label(baseline(ALL), ESTIMATING_EASY),
            label(ALL, ASAP_PER),
            above,
        ),
        claim(f"gang scheduling is less than {SURVIVES} times better than EASY", easy, gang, below),
        claim(f"{best} is {SURVIVES} times better than gang scheduling", gang, dfrs, above),
    ]
    return found
