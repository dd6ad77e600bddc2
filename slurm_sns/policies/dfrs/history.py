"""What DFRS remembers from one plan to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_sns.model import Seconds, Share


@dataclass(frozen=True)
class Attempts:
    """How often a waiting job found no place, and when it is tried again; None if no time is set."""

    failures: int = 0
    next_s: Seconds | None = None


@dataclass(frozen=True)
class DfrsHistory:
    """The jobs that wait, by their attempts, the next periodic run, and the yields that the last one gave (STRETCH).

    `next_run_s` is None while there are no jobs.
    """

    waiting: Mapping[int, Attempts] = field(default_factory=dict)
    next_run_s: Seconds | None = None
    floors: Mapping[int, Share] = field(default_factory=dict)
