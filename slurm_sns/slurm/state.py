"""The State port on Slurm: one look at jobs, nodes, reservations and partitions, in this order."""

import pwd
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from heapq import nlargest
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.observation import (
    EMPTY_QUEUE,
    DatabaseQueue,
    JobState,
    Names,
    Observation,
    ObservedJob,
    ObservedNode,
    PreemptionRules,
)
from slurm_sns.slurm import translate
from slurm_sns.slurm.accounting import AccountingDatabase, AccountingValues
from slurm_sns.slurm.api import answers, configuration_path, has_library, library, pyslurm, readable
from slurm_sns.slurm.seen_jobs import SeenJobs
from slurm_sns.slurm.site import (
    backfill,
    fills_sockets,
    has_boost,
    has_extra,
    has_priorities,
    requeue_s,
    year_and_month,
)
from slurm_sns.topology import topology

_Seen = TypeVar("_Seen")


class SlurmState:
    """Observes the cluster through what `api.library` gives.

    `accounting` adds what slurmctld does not show: QOS, shares and limits. In the partitions `sharing` jobs share cores
    by the rules of ours: what Slurm shows of that in a job is not its owner's wish. What sends orders gets the jobs
    `seen`.
    """

    def __init__(self, accounting: AccountingDatabase, sharing: Names = frozenset()) -> None:
        self._accounting, self._sharing = accounting, sharing
        self.seen = SeenJobs(library)
        self._known = nothing_known()
        self._placed: list[int] = []

    def observe(self) -> Observation:
        """Look at jobs before nodes: a job that starts in between is then counted twice, never missed."""
        numbers = self._accounting.numbers()
        api = library()
        with readable():
            # At every observation, for slurmctld may have restarted with another configuration. It takes a millisecond.
            configured = api.slurmctld.Config.load()
            jobs = self.seen.look(self._placed)
            nodes = api.Nodes.load()
            reservations = api.Reservations.load()
            partitions = api.Partitions.load()
        read = Records(configured, jobs.values(), nodes.values(), reservations.values(), partitions.values(), user_name)
        seen = observation(read, numbers, configuration_path().parent, self._known, sharing=self._sharing)
        self._placed = _last_placed(seen.jobs)
        return replace(seen, database_queue=_database_queue(configured.max_dbd_msgs), shown_in_s=self.seen.shown_in_s)


class Records(NamedTuple):
    """What slurmctld shows, with pyslurm's attributes; `user_name` turns a user id into a name."""

    configured: Any
    jobs: Iterable[Any]
    nodes: Iterable[Any]
    reservations: Iterable[Any]
    partitions: Iterable[Any]
    user_name: Callable[[int], str]


class Translated(Generic[_Seen]):
    """Translates records, each only when it changes. That needs records with their bytes (libslurm.RawRecord)."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Seen] = {}
        self._how: object = None

    def of(self, records: Iterable[Any], as_ours: Callable[[Any], _Seen], how: object = None) -> tuple[_Seen, ...]:
        """What each record is. `how` is whatever else this depends on."""
        before, self._known, found = self._known if how == self._how else {}, {}, []
        self._how = how
        for record in records:
            raw = getattr(record, "raw", None)
            seen = before.get(raw) if raw is not None else None
            if seen is None:
                seen = as_ours(record)
            if raw is not None:
                self._known[raw] = seen
            found.append(seen)
        return tuple(found)


class Known(NamedTuple):
    """What was translated at the last look."""

    jobs: Translated[ObservedJob]
    nodes: Translated[ObservedNode]


def nothing_known() -> Known:
    """Before the first look."""
    return Known(Translated(), Translated())


def observation(
    read: Records,
    numbers: AccountingValues,
    directory: Path,
    known: Known | None = None,
    *,
    sharing: Names = frozenset(),
) -> Observation:
    """The observation of these records; `directory` is that of slurm.conf, beside which the topology is told.

    `known` is what the observation before has translated. `sharing` is as for `SlurmState`.
    """
    configured, known = read.configured, known or nothing_known()
    partitions = tuple(filter(None, (translate.partition(record) for record in read.partitions)))
    forced = frozenset(each.name for each in partitions if each.forces_sharing and each.name in sharing)
    estimates = shows_estimates(configured.version)
    as_job = partial(translate.job, user_name=read.user_name, shows_estimates=estimates, forced=forced)
    return Observation(
        jobs=known.jobs.of(read.jobs, as_job, (estimates, forced)),
        nodes=known.nodes.of(read.nodes, translate.node),
        reservations=tuple(translate.reservation(record) for record in read.reservations),
        partitions=partitions,
        qos_priorities=numbers.qos_priorities,
        qos_freedoms=numbers.qos_freedoms,
        shares=numbers.shares,
        tres_limits=numbers.tres_limits,
        backfill=backfill(configured.scheduler_parameters),
        preemption=PreemptionRules(
            type=configured.preempt_type or "", mode=configured.preempt_mode or "", of_qos=numbers.qos_preempts
        ),
        has_priorities=has_priorities(configured),
        has_boost=has_boost(
            configured.priority_type, configured.priority_site_factor_plugin, configured.scheduler_parameters
        ),
        has_extra=has_extra(configured.scheduler_parameters),
        names_tasks=has_library(),
        fills_sockets=fills_sockets(configured.select_type_parameters),
        requeue_s=requeue_s(configured.kill_wait_time, configured.scheduler_parameters, configured.version),
        topology=topology(directory, configured.topology_plugin or ""),
        mail_program=configured.mail_program or "",
    )


#: So many of the jobs that wait where they were placed are watched: far more than Slurm leaves unstarted as a rule.
MOST_WATCHED = 512


def _last_placed(jobs: Iterable[ObservedJob]) -> list[int]:
    """The jobs that wait where they were placed, those placed last: Slurm may say by now why one does not start."""
    waiting = (
        (job.record.placed_s or 0, job.id)
        for job in jobs
        if job.record is not None and job.record.is_placed and job.state is JobState.PENDING
    )
    return [job_id for _, job_id in nlargest(MOST_WATCHED, waiting)]


class JobsAlone:
    """Observes the jobs, which is all that freeing them needs, and where limits are moved the reservations."""

    def __init__(self, *, with_reservations: bool = False) -> None:
        self._with_reservations = with_reservations

    def observe(self) -> Observation:
        """Read all jobs."""
        api = library()
        with readable():
            jobs = api.Jobs.load()
            reservations = api.Reservations.load() if self._with_reservations else {}
        return Observation(
            tuple(translate.job(record) for record in jobs.values()),
            (),
            tuple(translate.reservation(record) for record in reservations.values()),
        )


def _database_queue(most: Any) -> DatabaseQueue:
    """The messages that slurmctld keeps for slurmdbd: none where it does not say (one RPC, about a millisecond)."""
    try:
        with answers():
            length = pyslurm().slurmctld.diag().dbd_agent_queue_size
    except SnsError:
        return EMPTY_QUEUE
    return DatabaseQueue(length or 0, most or EMPTY_QUEUE.most)


#: The first release that shows as many nodes as tasks for a job with -n alone (JOB_IMPLICIT_MAX_NODES in job_mgr.c).
SHOWS_NO_ESTIMATES = (26, 5)


def shows_estimates(version: str) -> bool:
    """Whether this Slurm (`24.11.5`) shows its own estimate of a job's nodes as if its owner had asked for them."""
    return year_and_month(version) < SHOWS_NO_ESTIMATES


#: As many users as a slurmctld has jobs, at most: with fewer, each look would ask for every name again.
MOST_USERS = 1 << 20


@lru_cache(maxsize=MOST_USERS)
def user_name(user_id: int) -> str:
    """The user's name on this machine; the id as a text where it has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)
