"""The heuristics that the compiled kernel knows, as numbers; one that is not listed here runs in the plain twin."""

from dataclasses import dataclass

import numpy as np

from slurm_sns.policies.matching.heuristics import CONFIGURED_FIRST, HEURISTICS, MIXED
from slurm_sns.policies.placement.arrays import Heuristics


@dataclass(frozen=True, slots=True)
class Key:
    """Mix-Fit's angle, or a sum of free and of configured cores and memory with these weights."""

    angle: bool = False
    free: tuple[int, int] = (0, 0)
    configured: tuple[int, int] = (0, 0)


KEYS = {
    "first-fit": Key(),
    "best-fit-cores": Key(free=(1, 0)),
    "best-fit-memory": Key(free=(0, 1)),
    "worse-fit-cores": Key(free=(-1, 0)),
    "worse-fit-memory": Key(free=(0, -1)),
    "mix-fit": Key(angle=True),
    "memory-first-best": Key(free=(0, 1), configured=(0, CONFIGURED_FIRST)),
    "memory-first-worse": Key(free=(0, -1), configured=(0, CONFIGURED_FIRST)),
}

#: The number of each heuristic in the kernel's table.
ROWS = {name: row for row, name in enumerate(KEYS)}

#: The number of one that only the twin has.
PLAIN_ONLY = -2
ROWS_OF_ALL = {name: ROWS.get(name, PLAIN_ONLY) for name in HEURISTICS}


def kernel_table(resources: int) -> Heuristics:
    """The heuristics as the kernel reads them, for amounts of that many resources."""
    rest = (0,) * (resources - len(MIXED))
    return Heuristics(
        angle=np.array([key.angle for key in KEYS.values()]),
        free=np.array([key.free + rest for key in KEYS.values()], dtype=np.int64),
        configured=np.array([key.configured + rest for key in KEYS.values()], dtype=np.int64),
    )
