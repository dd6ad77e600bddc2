"""The one sequence of 20 jobs whose means under CE are recorded, beside sequences of ours.

Which jobs it had, and in which order, is not known. What its jobs take under CE is, so that sequences with its mean run
time can be drawn; its mean wait is then set beside theirs.
"""

from collections.abc import Iterator
from itertools import count, islice

import numpy as np

from slurm_sns.sim.reproduce.claims import Claim, Interval
from slurm_sns.sim.reproduce.sns_runs import Runs, place, shipped_programs
from slurm_sns.sim.sns_policies import AUTHORS, CE
from slurm_sns.sim.workloads.sequences import Member, jobs_of, population, sequence

#: Means over the recorded sequence under CE.
RECORDED_RUN_S, RECORDED_WAIT_S = 422, 320
#: So near to the recorded wait is the same.
NEAR = 0.05
#: Sequences that are drawn, and how near their mean run time is to the recorded one.
SEQUENCES, SAME_RUN = 200, 0.01


def recorded_claim(sequences: int = SEQUENCES) -> Claim:
    """The recorded mean wait among those of sequences with the recorded mean run time.

    The interval holds 95 % of the sequences, not their mean: the recorded one is one of them.
    """
    waits_s = np.array([_mean_wait_s(drawn) for drawn in islice(_alike(), sequences)])
    low, high = (1 - NEAR) * RECORDED_WAIT_S, (1 + NEAR) * RECORDED_WAIT_S
    met = np.count_nonzero((low <= waits_s) & (waits_s <= high))
    return Claim(
        where="prototype",
        text=f"a sequence whose runs take {RECORDED_RUN_S} s under CE waits {RECORDED_WAIT_S} s (means)",
        measure=f"s, 95 % of {sequences} sequences with such runs; {met} wait as long within {100 * NEAR:g} %",
        found=Interval(float(waits_s.mean()), *map(float, np.quantile(waits_s, [0.025, 0.975]))),
        low=low,
        high=high,
    )


def _alike() -> Iterator[tuple[Member, ...]]:
    members = population(shipped_programs())
    for seed in count(1):
        drawn = sequence(members, seed)
        if abs(np.mean([member.run_s for member in drawn]) / RECORDED_RUN_S - 1) <= SAME_RUN:
            yield drawn


def _mean_wait_s(drawn: tuple[Member, ...]) -> float:
    return float(Runs.of(place(CE, AUTHORS, jobs_of(drawn))).wait_s.mean())
