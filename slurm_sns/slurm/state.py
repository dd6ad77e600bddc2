"""The State port on pyslurm: one bulk look at jobs, then nodes, then reservations."""

import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.observed import Observation
from slurm_sns.slurm import translate
from slurm_sns.slurm.accounting import Accounting, Numbers
from slurm_sns.slurm.api import answers, pyslurm

#: Partition tiers change when an admin changes them: asking once a minute is enough.
TIERS_SECONDS = 60.0


class SlurmState:
    """Sees the cluster through pyslurm.

    `accounting` and the partitions' tiers order the queue: who only releases jobs needs neither, and gives None.
    """

    def __init__(self, accounting: Accounting | None = None) -> None:
        self._accounting = accounting
        self._tiers: tuple[float, tuple[tuple[str, int], ...]] | None = None

    def observe(self) -> Observation:
        """Jobs first: a job that starts before the nodes are read is then counted twice, never missed."""
        tiers = self._partition_tiers() if self._accounting else ()
        numbers = self._accounting.numbers() if self._accounting else Numbers()
        api = pyslurm()
        with _readable():
            jobs = api.Jobs.load()
            nodes = api.Nodes.load()
            reservations = api.Reservations.load()
        return Observation(
            jobs=tuple(translate.job(record, _user_name) for record in jobs.values()),
            nodes=tuple(translate.node(record) for record in nodes.values()),
            reservations=tuple(translate.reservation(record) for record in reservations.values()),
            tiers=tiers,
            qos_priorities=numbers.qos_priorities,
            shares=numbers.shares,
        )

    def _partition_tiers(self) -> tuple[tuple[str, int], ...]:
        now_s = time.monotonic()
        if self._tiers is None or now_s - self._tiers[0] > TIERS_SECONDS:
            with _readable():
                partitions = pyslurm().Partitions.load()
            self._tiers = now_s, tuple(sorted((name, part.priority_tier or 0) for name, part in partitions.items()))
        return self._tiers[1]


@contextmanager
def _readable() -> Iterator[None]:
    """A read that Slurm refuses is as good as no answer: there is nothing to plan on."""
    try:
        with answers():
            yield
    except Refused as refusal:
        raise Unreachable(str(refusal)) from None


@lru_cache(maxsize=4096)
def _user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)
