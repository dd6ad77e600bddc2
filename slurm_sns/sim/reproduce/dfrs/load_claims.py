"""What the DFRS paper says of figure 1, as claims on average degradation factors.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section V.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from operator import eq
from typing import NamedTuple

from slurm_sns.sim.pages.judge import Claim
from slurm_sns.sim.reproduce.dfrs.runs import (
    ASAP_PER,
    BATCH,
    DYNMCB8,
    EASY,
    EXTRA_NODES_EASY,
    FCFS,
    GREEDY,
    GREEDY_PMTN,
    GREEDY_PMTN_MIGR,
    PAPER_NAMES,
    PER,
    STRETCH_PER,
)
from slurm_sns.sim.reproduce.dfrs.statistics import NEAR, Statistic, Table, average, difference, gap, jackknife, ratio

PERIODIC = (PER, ASAP_PER, STRETCH_PER)
PREEMPTING = (GREEDY_PMTN, GREEDY_PMTN_MIGR)

#: The load at which figure 1 (b) changes; "nontrivial loads" are those above it here.
TURNING_LOAD = 0.3
#: How we read the paper's words, as factors between averages. "Closely", "slightly": below these.
CLOSELY, SLIGHTLY = 2.0, 1.5
#: "A large further improvement": above this. "Does not have better performance": above this.
LARGE, NOT_BETTER = 2.0, 0.95


class LoadStatement(NamedTuple):
    """A statement of the paper on averages over traces, and the quantity that should lie between the bounds."""

    text: str
    measure: str
    statistic: Statistic
    low: float = -inf
    high: float = inf


def _less(text: str, better: str, worse: str) -> LoadStatement:
    return LoadStatement(text, f"{worse} - {better}", difference(worse, better), low=0)


def _factor(text: str, one: str, other: str, low: float, high: float = inf) -> LoadStatement:
    return LoadStatement(text, f"{one} / {other}", ratio(one, other), low, high)


def _near(text: str, one: str, other: str, printed: float) -> LoadStatement:
    return _factor(text, one, other, printed / NEAR, printed * NEAR)


def _best(text: str, *best: str, of: Sequence[str] = tuple(PAPER_NAMES)) -> LoadStatement:
    others = [name for name in of if name not in best]
    return LoadStatement(text, f"best of the others - worst of {' and '.join(best)}", gap(others, best), low=0)


#: DYNMCB8's average without a penalty. 1 would be the best algorithm of each instance.
DYNMCB8_AVERAGE = 1.16
_FCFS_WORST = "FCFS is the worst algorithm, followed closely by EASY"
_GREEDY_THEN = "EASY is followed by GREEDY"
_EASY_28 = "EASY is nearly 28 times GREEDY-PMTN"
_ASAP_BEST = "DYNMCB8-ASAP-PER is the best of the three periodic algorithms"
_STILL = "DYNMCB8 is still better than GREEDY and batch scheduling"
WITHOUT_PENALTY = (
    LoadStatement(
        f"the average of DYNMCB8 is {DYNMCB8_AVERAGE}",
        DYNMCB8,
        average(DYNMCB8),
        1 + (DYNMCB8_AVERAGE - 1) / NEAR,
        1 + (DYNMCB8_AVERAGE - 1) * NEAR,
    ),
    _best("DYNMCB8 is the best algorithm", DYNMCB8),
    _factor(_FCFS_WORST, FCFS, EASY, 1, CLOSELY),
    _factor(_FCFS_WORST, FCFS, EXTRA_NODES_EASY, 1, CLOSELY),
    _less(_GREEDY_THEN, GREEDY, EASY),
    _less(_GREEDY_THEN, GREEDY, EXTRA_NODES_EASY),
    _best(
        "all other DFRS algorithms are better than GREEDY",
        DYNMCB8,
        *PREEMPTING,
        *PERIODIC,
        of=(GREEDY,),
    )._replace(measure=f"{GREEDY} - worst of the others"),
    _near(_EASY_28, EASY, GREEDY_PMTN, 28),
    _near(_EASY_28, EXTRA_NODES_EASY, GREEDY_PMTN, 28),
    _factor("GREEDY-PMTN is slightly better than GREEDY-PMTN-MIGR", GREEDY_PMTN_MIGR, GREEDY_PMTN, 1, SLIGHTLY),
    _near("GREEDY-PMTN is 4.5 times DYNMCB8-PER", GREEDY_PMTN, PER, 4.5),
    _best(_ASAP_BEST, ASAP_PER, of=PERIODIC),
    _factor("DYNMCB8-STRETCH-PER is not better than DYNMCB8-PER", STRETCH_PER, PER, NOT_BETTER),
)
WITH_PENALTY = (
    _less("DYNMCB8 is no longer the best algorithm", ASAP_PER, DYNMCB8),
    *(_less(_STILL, DYNMCB8, each) for each in (GREEDY, *BATCH)),
    _best("DYNMCB8-ASAP-PER is the best algorithm", ASAP_PER),
    _factor("it is better than DYNMCB8-PER by a slight margin", PER, ASAP_PER, 1, SLIGHTLY),
    _factor("DYNMCB8-PER is better than DYNMCB8-STRETCH-PER by a smaller margin", STRETCH_PER, PER, 1, SLIGHTLY),
)


def _claim(where: str, stated: LoadStatement, table: Table) -> Claim:
    return Claim(where, stated.text, stated.measure, jackknife(stated.statistic, table), stated.low, stated.high)


def without_penalty(table: Table, loads: Sequence[float]) -> list[Claim]:
    """The claims on figure 1 (a)."""
    claims = [_claim("fig. 1a", stated, table) for stated in WITHOUT_PENALTY]
    nontrivial = _at(table, loads, lambda load: load > TURNING_LOAD)
    for each in PERIODIC:
        text = f"at nontrivial loads {PAPER_NAMES[each]} is a large further improvement over GREEDY-PMTN"
        claims.append(_claim("fig. 1a", _factor(text, GREEDY_PMTN, each, LARGE), nontrivial))
    lead = LoadStatement(
        f"{_ASAP_BEST}, particularly at low load",
        f"{PER} / {ASAP_PER} at load {loads[0]:g} - at {loads[-1]:g}",
        lambda of: ratio(PER, ASAP_PER)(_first(of)) - ratio(PER, ASAP_PER)(_last(of)),
        low=0,
    )
    return [*claims, _claim("fig. 1a", lead, table)]


def with_penalty(table: Table, loads: Sequence[float]) -> list[Claim]:
    """The claims on figure 1 (b)."""
    claims = [_claim("fig. 1b", stated, table) for stated in WITH_PENALTY]
    for load in loads:
        here = _at(table, loads, partial(eq, load))
        if load > TURNING_LOAD:
            stated = _best(f"at load {load:g} the periodic algorithms are the best", *PERIODIC)
            claims.append(_claim("fig. 1b", stated._replace(measure="best of the others - worst of the three"), here))
        elif load < TURNING_LOAD:
            stated = _best(f"at load {load:g} GREEDY-PMTN and GREEDY-PMTN-MIGR are the best", *PREEMPTING)
            claims.append(_claim("fig. 1b", stated._replace(measure="best of the others - worst of the two"), here))
    return claims


def _at(table: Table, loads: Sequence[float], wanted: Callable[[float], bool]) -> Table:
    """The columns of these loads."""
    columns = [wanted(load) for load in loads]
    return {name: values[:, columns] for name, values in table.items()}


def _first(table: Table) -> Table:
    return {name: values[:, :1] for name, values in table.items()}


def _last(table: Table) -> Table:
    return {name: values[:, -1:] for name, values in table.items()}
