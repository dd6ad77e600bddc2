"""The State port on pyslurm: one bulk look at jobs, then nodes, then reservations."""

import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.observed import Observation
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import answers, pyslurm
from slurm_sns.slurm.commands import run

#: Partition tiers, QOS priorities and shares change when an admin changes them: asking once a minute is enough.
SITE_SECONDS = 60.0
#: slurmdbd may hang; a cycle must not wait for it as long as the heartbeat lasts.
SLURMDBD_TIMEOUT_S = 3.0

_SHOW_QOS = ("sacctmgr", "-nP", "show", "qos", "format=name,priority")


class SlurmState:
    """Sees the cluster through pyslurm.

    `with_site` also asks for the numbers that order the queue: who only releases jobs needs none, and must not wait for
    slurmdbd. `with_shares` asks slurmdbd for the associations' shares too.
    """

    def __init__(self, *, with_site: bool = True, with_shares: bool = False) -> None:
        self._with_site = with_site
        self._with_shares = with_shares
        self._site: tuple[float, Observation] | None = None

    def observe(self) -> Observation:
        """Jobs first: a job that starts before the nodes are read is then counted twice, never missed."""
        api = pyslurm()
        with _readable():
            jobs = api.Jobs.load()
            nodes = api.Nodes.load()
            reservations = api.Reservations.load()
        site = self._site_numbers() if self._with_site else Observation((), ())
        return Observation(
            jobs=tuple(translate.job(record, _user_name) for record in jobs.values()),
            nodes=tuple(translate.node(record) for record in nodes.values()),
            reservations=tuple(translate.reservation(record) for record in reservations.values()),
            tiers=site.tiers,
            qos_priorities=site.qos_priorities,
            shares=site.shares,
        )

    def _site_numbers(self) -> Observation:
        """Tiers, QOS priorities, shares; an absent slurmdbd leaves the last ones known in force."""
        now_s = time.monotonic()
        if self._site is None or now_s - self._site[0] > SITE_SECONDS:
            previous = self._site[1] if self._site else Observation((), ())
            self._site = (now_s, self._ask_site(previous))
        return self._site[1]

    def _ask_site(self, previous: Observation) -> Observation:
        api = pyslurm()
        with _readable():
            partitions = api.Partitions.load()
        tiers = tuple(sorted((name, part.priority_tier or 0) for name, part in partitions.items()))
        try:
            with _readable():
                qos = translate.qos_priorities(run(*_SHOW_QOS, timeout_s=SLURMDBD_TIMEOUT_S))
                shares = _account_shares() if self._with_shares else ()
        except Unreachable:
            qos, shares = previous.qos_priorities, previous.shares
        return Observation((), (), tiers=tiers, qos_priorities=qos, shares=shares)


def _account_shares() -> tuple[tuple[str, float], ...]:
    """The shares of the accounts' own associations (those without a user)."""
    records = pyslurm().db.Associations.load()
    return tuple(sorted((a.account, float(a.shares or 1)) for a in records.values() if a.account and not a.user))


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
