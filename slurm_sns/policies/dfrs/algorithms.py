"""The paper's algorithms: which of the ideas each of them combines.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Algorithm(NamedTuple):
    """What an algorithm does at an instant; the compiled kernel reads it, too.

    `starts_newcomers`: jobs are placed greedily as soon as they are submitted. `backs_off`: a job that finds no place
    is tried again after an exponential back-off; `retries_at_events`: it is tried again at every instant.
    `preempts`: running jobs are paused to make room for a newcomer, and resumed later; `migrates`: a job that was
    paused may be resumed on other nodes at the same instant. `packs_at_events`, `packs_periodically`: all jobs are
    packed anew by MCB8 at each instant, or at the multiples of the period. `minimises_stretch`: the packing is for the
    smallest estimated stretch, not for the largest yield. `slices_time`: jobs have no yields of their own; those on a
    node take turns, and lose the fraction `switch_loss` of their slices whenever there is more than one.

    `retries_at_events` with `preempts`: a job that has never been paused may pause others at every instant, not at its
    submission only; who has just begun is not paused. `least_loss`: jobs are paused in the order of what they would
    lose, not of their priorities. `by_weight`: nothing sets yields; a node's CPU is shared in proportion to the needs
    of the tasks on it.
    """

    starts_newcomers: bool = False
    backs_off: bool = False
    retries_at_events: bool = False
    preempts: bool = False
    migrates: bool = False
    packs_at_events: bool = False
    packs_periodically: bool = False
    minimises_stretch: bool = False
    slices_time: bool = False
    switch_loss: float = 0.0
    least_loss: bool = False
    by_weight: bool = False


#: GREEDY's back-off (section III-A): a job is tried again 2 s after its first failed attempt, then 4 s, ... 4,096 s.
MOST_DOUBLINGS = 12

GREEDY = Algorithm(starts_newcomers=True, backs_off=True)
GREEDY_RETRY_AT_EVENTS = Algorithm(starts_newcomers=True, retries_at_events=True)
GREEDY_PMTN = Algorithm(starts_newcomers=True, preempts=True)
GREEDY_PMTN_MIGR = Algorithm(starts_newcomers=True, preempts=True, migrates=True)
DYNMCB8 = Algorithm(packs_at_events=True)
DYNMCB8_PER = Algorithm(packs_periodically=True)
DYNMCB8_ASAP_PER = Algorithm(starts_newcomers=True, packs_periodically=True)
DYNMCB8_STRETCH_PER = Algorithm(packs_periodically=True, minimises_stretch=True)
#: What a site may have today, not an algorithm of the paper: Slurm's gang scheduling, with nodes chosen by GREEDY.
GANG = Algorithm(starts_newcomers=True, retries_at_events=True, slices_time=True)
#: What Slurm can do of GREEDY-PMTN: the cgroups' weights share the CPU, and only jobs that can restart are paused.
#: SHARES takes them by the paper's priority, SHARES_LEAST_LOSS those first whose pause loses the least work.
SHARES = Algorithm(starts_newcomers=True, retries_at_events=True, preempts=True, by_weight=True)
SHARES_LEAST_LOSS = SHARES._replace(least_loss=True)

#: By the name of the policy.
ALGORITHMS: Mapping[str, Algorithm] = {
    "dfrs-greedy": GREEDY,
    "dfrs-greedy-pmtn": GREEDY_PMTN,
    "dfrs-greedy-pmtn-migr": GREEDY_PMTN_MIGR,
    "dfrs-dynmcb8": DYNMCB8,
    "dfrs-dynmcb8-per": DYNMCB8_PER,
    "dfrs-dynmcb8-asap-per": DYNMCB8_ASAP_PER,
    "dfrs-dynmcb8-stretch-per": DYNMCB8_STRETCH_PER,
}
