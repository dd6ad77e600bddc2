"""Which partitions share cores, and what may be done to the jobs in them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharingRules:
    """The settings of sns.yaml, `sharing`; conf/sns.yaml says what each is for.

    `partitions` are those that share, at least one. `caps`: CPU time is limited to the yield, not only weighted.
    `pauses`: restartable jobs may be paused. `signal` is a name without SIG, empty for none. `most_lost` is a fraction
    of the partitions' core time in a day. `most_extension` is a multiple of the owner's time limit; 1: none is raised.
    """

    partitions: frozenset[str]
    most_to_a_core: int
    caps: bool
    pauses: bool
    protect_s: int
    max_restarts: int
    signal: str
    grace_s: int
    most_lost: float
    most_extension: float
