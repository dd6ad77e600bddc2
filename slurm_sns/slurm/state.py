"""The State port on pyslurm: one bulk look at jobs, then nodes, then reservations."""

import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.observed import Observation
from slurm_sns.slurm import translate
from slurm_sns.slurm.accounting import Accounting, Numbers
from slurm_sns.slurm.api import answers, pyslurm


class SlurmState:
    """Sees the cluster through pyslurm.

    `accounting` and the partitions say who may start, and in which order: who only releases jobs gives None.
    """

    def __init__(self, accounting: Accounting | None = None) -> None:
        self._accounting = accounting

    def observe(self) -> Observation:
        """Jobs first: a job that starts before the nodes are read is then counted twice, never missed."""
        numbers = self._accounting.numbers() if self._accounting else Numbers()
        api = pyslurm()
        with _readable():
            jobs = api.Jobs.load()
            nodes = api.Nodes.load()
            reservations = api.Reservations.load()
            partitions = api.Partitions.load() if self._accounting else {}
        return Observation(
            jobs=tuple(translate.job(record, _user_name) for record in jobs.values()),
            nodes=tuple(translate.node(record) for record in nodes.values()),
            reservations=tuple(translate.reservation(record) for record in reservations.values()),
            partitions=tuple(translate.partition(record) for record in partitions.values()),
            qos_priorities=numbers.qos_priorities,
            qos_freedoms=numbers.qos_freedoms,
            shares=numbers.shares,
        )


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
