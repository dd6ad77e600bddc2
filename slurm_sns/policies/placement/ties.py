"""Which of equally good schedules wins: the members of a portfolio take turns, and the first of the best ones wins.

Turns go by the list (`list`), with the policy's own scorer first (`own`), by how often a member was among the best of
the last passes that matched a job (`record`), or by chance (`random`, a control for studies). By `list` and `own` the
turns never change. By the others a plan depends on the passes before it.

These functions are plain Python; the kernel compiles the same ones.
"""

from typing import NamedTuple

import numpy as np

from slurm_sns.policies.placement.heuristic_names import LIST, OWN, RANDOM, RECORD
from slurm_sns.policies.placement.kernel_arrays import Integers

#: How the kernel tells the rules apart: turns that never change, or one of the others.
FIXED, BY_RECORD, BY_CHANCE = range(3)
KINDS = {LIST: FIXED, OWN: FIXED, RECORD: BY_RECORD, RANDOM: BY_CHANCE}
#: How many passes a record goes back.
WINDOW = 1_000
#: The places of `TieRecord.state`: passes written down, and the last random number.
WRITTEN, LAST_NUMBER = range(2)


class TieRecord(NamedTuple):
    """Which members were among the best of the last passes."""

    best: Integers  #: (WINDOW) a bit for each member
    times: Integers  #: (members) in how many of these passes
    state: Integers  #: (2)


def tie_record(members: int) -> TieRecord:
    """The record before the first pass."""
    return TieRecord(np.zeros(WINDOW, np.int64), np.zeros(members, np.int64), np.array([0, 1], np.int64))


def take_turns(ties: int, fixed: Integers, record: TieRecord, turn: Integers) -> None:
    """Put the members into `turn` in the order of their turns; `fixed` is the order that never changes."""
    for at in range(len(turn)):
        turn[at] = fixed[at]
    for at in range(1, len(turn)):
        if ties == BY_RECORD:
            member, to = turn[at], at
            while to > 0 and record.times[turn[to - 1]] < record.times[member]:
                turn[to] = turn[to - 1]
                to -= 1
            turn[to] = member
        elif ties == BY_CHANCE:
            # a linear congruential generator, modulo 2^32 (Numerical Recipes, section 7.1)
            record.state[LAST_NUMBER] = (1664525 * record.state[LAST_NUMBER] + 1013904223) % (1 << 32)
            other = (record.state[LAST_NUMBER] >> 16) % (at + 1)
            turn[at], turn[other] = turn[other], turn[at]


def remember(record: TieRecord, best: int) -> None:
    """Write down that these members, a bit for each, were the best of a pass."""
    place = record.state[WRITTEN] % WINDOW
    for member in range(len(record.times)):
        record.times[member] += ((best >> member) & 1) - ((record.best[place] >> member) & 1)
    record.best[place] = best
    record.state[WRITTEN] += 1
