"""The State port on pyslurm: one bulk look at jobs, then nodes, then reservations."""

import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.observe.observed import Observation, PreemptionRules
from slurm_sns.slurm import translate
from slurm_sns.slurm.accounting import Accounting
from slurm_sns.slurm.api import answers, pyslurm
from slurm_sns.slurm.option_lists import backfill


class SlurmState:
    """Sees the cluster through pyslurm.

    `accounting` and the partitions say who may start, and in which order.
    """

    def __init__(self, accounting: Accounting) -> None:
        self._accounting = accounting

    def observe(self) -> Observation:
        """Jobs first: a job that starts before the nodes are read is then counted twice, never missed."""
        numbers = self._accounting.numbers()
        api = pyslurm()
        with _readable():
            # At every look: slurmctld may have started anew with another configuration. It takes a millisecond.
            configured = api.slurmctld.Config.load()
            jobs = api.Jobs.load()
            nodes = api.Nodes.load()
            reservations = api.Reservations.load()
            partitions = api.Partitions.load()
        estimates = shows_estimates(configured.version)
        return Observation(
            jobs=tuple(translate.job(record, _user_name, shows_estimates=estimates) for record in jobs.values()),
            nodes=tuple(translate.node(record) for record in nodes.values()),
            reservations=tuple(translate.reservation(record) for record in reservations.values()),
            partitions=tuple(filter(None, (translate.partition(record) for record in partitions.values()))),
            qos_priorities=numbers.qos_priorities,
            qos_freedoms=numbers.qos_freedoms,
            shares=numbers.shares,
            tres_limits=numbers.tres_limits,
            backfill=backfill(configured.scheduler_parameters),
            preemption=PreemptionRules(
                type=configured.preempt_type or "", mode=configured.preempt_mode or "", of_qos=numbers.qos_preempts
            ),
            priority_type=configured.priority_type or "",
        )


class HeldJobs:
    """What those see who only release jobs: of every job, what that takes, and nothing else of the cluster."""

    def observe(self) -> Observation:
        """All jobs, read no further than needed."""
        with _readable():
            jobs = pyslurm().Jobs.load()
        return Observation(tuple(translate.held_job(record) for record in jobs.values()), ())


#: The first release that shows, for a job of -n alone, as many nodes as tasks (JOB_IMPLICIT_MAX_NODES in job_mgr.c).
SHOWS_NO_ESTIMATES = (26, 5)


def shows_estimates(version: str) -> bool:
    """Whether this Slurm (`24.11.5`) shows its own estimate of a job's nodes as if its owner had asked for them."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return numbers < SHOWS_NO_ESTIMATES


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
