"""What the page beyond the DFRS paper says in words, with the numbers of its own run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_sns.sim.reproduce.dfrs import beyond_limits
from slurm_sns.sim.reproduce.dfrs.beyond_claims import SURVIVES
from slurm_sns.sim.reproduce.dfrs.beyond_runs import (
    ALL,
    DFRS,
    ERROR,
    ERRORS,
    FEWER,
    GANG_SCHEDULING,
    LARGE,
    LITTLE,
    LITTLE_EQUAL,
    LITTLE_UNLIKE,
    MINUTE,
    MOST_OVERESTIMATED,
    PAPER,
    TEN_MINUTES,
    TOO_HIGH,
    TOO_LOW,
    TWO,
    UNLIKE,
    label,
)
from slurm_sns.sim.reproduce.dfrs.runs import ASAP_PER, EASY, GREEDY_PMTN, HPC2N, LOG, PAPER_NAMES, SCALED, Found, Unit
from slurm_sns.sim.reproduce.dfrs.statistics import INTERVALS, Table, ratio

#: Seen by looking at the jobs of these two instances one by one.
STARVED = (
    "GREEDY-PMTN makes room for newcomers, never for jobs that it has paused. Two bad instances on nodes of unlike "
    "memory are seed 1 at load 0.9 and week 163 of HPC2N. In each of them one short job (25 s and 783 s) has the "
    "largest stretch by far: it starts at once, is paused once for a newcomer, and then finds no memory for a day and "
    "a half. DYNMCB8-ASAP-PER packs all jobs anew every ten minutes."
)


def made(units: Mapping[str, Sequence[Unit]], found: Sequence[Found], loads: Sequence[float]) -> list[str]:
    """How the results were made; `found` are those of all instances."""
    jobs, left_out = (sum(each[key] for each in found) for key in ("jobs", "left_out"))
    weeks = len(units.get(HPC2N, ()))
    log = f"{weeks} weeks of HPC2N" if weeks else f"no week of HPC2N, since the log {LOG} is missing here (SNS_SHARED)"
    return [
        (
            f"`sns reproduce dfrs-beyond`: {len(units[SCALED])} synthetic traces, each scaled to the loads "
            f"{', '.join(f'{load:g}' for load in loads)}, and {log}, with a rescheduling penalty of 5 minutes. Three "
            "algorithms of DFRS are run in the paper's model and in variants of it. The claims are ours, not the "
            "paper's; their ranges were chosen before the first run of a variant. An algorithm's degradation factor is "
            "its largest bounded stretch over the smallest one that EASY or one of the three has on the same jobs in "
            "the paper's model."
        ),
        (
            "*Caps once a minute*: a new CPU cap of a running job counts from the next full minute on; until then a "
            "node whose caps exceed it is shared in proportion to them. *Needs 10 % wrong*: each job's CPU need was "
            f"measured {100 * ERROR:g} % too low or too high, by chance, but never above a node. *Two generations*: "
            "half of the nodes have half of the CPU and memory, the others one and a half times as much. *Unlike "
            "memory*: three quarters of the nodes have 0.6 times the memory, the others 2.2 times. These nodes have as "
            "much CPU and memory together as the equal ones. A task that needs more memory than a node has cannot run "
            f"there: {left_out} of {jobs} jobs do not fit and are left out. So these variants are compared with *jobs "
            "that fit everywhere*: EASY and DFRS with the same jobs on equal nodes, since EASY counts whole nodes."
        ),
        (
            "*EASY* knows the run times. *EASY with estimates* knows the owners' time limits on HPC2N, some of which "
            "are shorter than the run time. The synthetic traces have no estimates: run times are multiplied by a "
            f"number from 1 to {MOST_OVERESTIMATED} (the f-model of Mu'alem and Feitelson, 2001). *Gang scheduling* is "
            "that of Slurm: jobs on a node take turns, and what finds no memory waits; slices and switches cost "
            f"nothing here. {INTERVALS}"
        ),
    ]


def remarks(factors: Mapping[str, Table], weeks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the results mean; factors by workload. Causes are results of runs with one thing changed."""
    return [
        *(f"*{workload}.* {_survives(table)} {_causes(table)}" for workload, table in factors.items()),
        STARVED,
        *([_limits(weeks)] if weeks else []),
        (
            "Each variant: average degradation factor / mean of the largest stretches / mean stretch (how many times "
            "better than EASY by the average factor). Those in italics only test a cause:"
        ),
    ]


def _survives(table: Table) -> str:
    """What is left of the advantage."""

    def better(variant: str, plain: str) -> str:
        return f"{ratio(label(plain, EASY), label(variant, ASAP_PER))(table):.0f}"

    return (
        f"{PAPER_NAMES[ASAP_PER]} is {better(PAPER, PAPER)} times better than EASY in the paper's model, "
        f"{better(MINUTE, PAPER)} times with caps once a minute, {better(TWO, FEWER)} on two generations of nodes, and "
        f"{better(ALL, FEWER)} with all of it; we asked for {SURVIVES}."
    )


def _causes(table: Table) -> str:
    """Why, as far as runs with one thing changed show it."""

    def mean(variant: str, name: str) -> str:
        return f"{float(table[label(variant, name)].mean()):.2f}"

    def pair(one: str, other: str, name: str) -> str:
        return f"{mean(one, name)} against {mean(other, name)}"

    def spread(variant: str) -> str:
        values = table[label(variant, GREEDY_PMTN)]
        return f"{float(np.median(values)):.2f} in the median and {float(values.max()):.1f} at most"

    asap, pmtn = PAPER_NAMES[ASAP_PER], PAPER_NAMES[GREEDY_PMTN]
    return (
        f"Gang scheduling ({mean(PAPER, GANG_SCHEDULING)}) suffers from waits for memory: with memory needs of at most "
        f"10 % of a node its factor is {mean(LITTLE, GANG_SCHEDULING)}, that of {asap} {mean(LITTLE, ASAP_PER)}. How "
        f"often caps are set matters little to {asap}: every ten minutes against at once gives "
        f"{pair(TEN_MINUTES, PAPER, ASAP_PER)}. CPU needs that are all too low or all too high give "
        f"{mean(TOO_LOW, ASAP_PER)} and {mean(TOO_HIGH, ASAP_PER)}. {pmtn} on nodes of unlike memory has "
        f"{pair(UNLIKE, FEWER, GREEDY_PMTN)} on equal nodes. There a paused job waits for memory that the small nodes "
        f"do not have: with memory needs of at most 30 % of a node it has "
        f"{pair(LITTLE_UNLIKE, LITTLE_EQUAL, GREEDY_PMTN)}. With the small nodes first against the large ones first, "
        f"two generations of nodes give {pmtn} {pair(TWO, LARGE, GREEDY_PMTN)}, {asap} {pair(TWO, LARGE, ASAP_PER)}. "
        f"The averages of {pmtn} depend on few instances: its factor on nodes of unlike memory is {spread(UNLIKE)}, "
        f"with needs 10 % wrong {spread(ERRORS)}."
    )


def _limits(weeks: Sequence[Mapping[str, Any]]) -> str:
    """What time limits that count wall time do."""
    table = beyond_limits.tabulate(weeks)
    longer = sum(week["longer"] for week in weeks)
    jobs = longer + sum(len(week["run_s"]) for week in weeks)

    def each(measure: str) -> str:
        return ", ".join(f"{PAPER_NAMES[name]} {beyond_limits.share(name, measure)(table):.1f} %" for name in DFRS)

    def quantiles(over: str) -> str:
        values = beyond_limits.ratios(weeks, ASAP_PER, over)
        return "{:.2f} in the median and {:.2f} in the 95 % quantile".format(*np.percentile(values, (50, 95)))

    return (
        f"*Time limits on HPC2N.* {longer:,} of {jobs:,} jobs run longer than their limits even at full speed, and are "
        f"not counted. Of the others, limits that count wall time kill: {each(beyond_limits.KILLED_SHARE)}. Where no "
        f"limit kills, these end after their limits: {each(beyond_limits.LATE_JOBS)}; without rescheduling penalties "
        f"it would be {each(beyond_limits.LATE_WITHOUT)}, by the yields alone. If limits are extended by what yields "
        "and penalties cost, the extensions are "
        f"{each(beyond_limits.LOST_SHARE)} of all node time that the limits promise, and jobs hold nodes after the "
        f"promised time for {each(beyond_limits.LATE_SHARE)} of it. A backfilling scheduler that knew all run times "
        f"at full speed would find the wall times of {PAPER_NAMES[ASAP_PER]} larger by a factor of "
        f"{quantiles('run_s')}. Over the limits the wall times are {quantiles('limit_s')}; the limits themselves are "
        f"{np.median(beyond_limits.limit_ratios(weeks)):.2f} times the run times in the median. So at a site that uses "
        "DFRS, time limits must not count wall time."
    )
