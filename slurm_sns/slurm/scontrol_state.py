"""The State port on `scontrol show`: the cluster as any user of a login node may read it, without pyslurm.

Five commands for each observation, in this order: configuration, jobs, nodes, reservations, partitions. Nothing else of
scontrol is ever called. QOS and limits come from `sacctmgr show`, as with pyslurm, where accounts are kept.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from re import fullmatch

from slurm_sns.errors import Unreachable
from slurm_sns.log import Log
from slurm_sns.scheduler.observation import NO_LIMITS, JobState, Observation, ObservedJob
from slurm_sns.slurm import scontrol_text
from slurm_sns.slurm.accounting import AccountingDatabase, AccountingValues
from slurm_sns.slurm.api import configuration_path, run
from slurm_sns.slurm.scontrol_text import ConfigText, JobText, TextAnswer
from slurm_sns.slurm.site import Site, partition_rules, sum_of_weights
from slurm_sns.slurm.state import Records, observation
from slurm_sns.submit.submission import Submission, unplaced

#: A command that has not answered after this time is killed.
TIMEOUT_S = 60.0
#: Times as Unix seconds, whatever the user has set.
_VARIABLES = {"SLURM_TIME_FORMAT": "%s"}
#: Where Slurm keeps its configuration on a machine that gets it from slurmctld ("configless").
CONFIGLESS = "/run/slurm/conf/slurm.conf"

#: The values of a cluster that keeps no accounts.
NO_ACCOUNTS = AccountingValues(tres_limits=NO_LIMITS, qos_preempts=())


def ask_slurm(command: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
    """Run a command of Slurm that reads.

    Raises:
        Unreachable, Refused: as `api.run`.
    """
    return run(command, *arguments, timeout_s=timeout_s, variables=_VARIABLES)


class ScontrolState:
    """Observes the cluster through scontrol. `with_shares`: also asks for the shares of accounts.

    After an observation `read_s` is how long Slurm took to answer, `left_out` counts the lines that could not be read,
    by reason, and `hidden` has the words of PrivateData: what users see of themselves only.
    """

    def __init__(self, log: Log, *, with_shares: bool = True, ask: Callable[..., str] = ask_slurm) -> None:
        self._ask = ask
        self._accounting = AccountingDatabase(log, with_shares=with_shares, ask=ask)
        self.read_s = 0.0
        self.left_out: Counter[str] = Counter()
        self.hidden: tuple[str, ...] = ()
        self._site: tuple[ConfigText, TextAnswer] | None = None

    def observe(self) -> Observation:
        """Read jobs before nodes: a job that starts in between is then counted twice, never missed.

        Raises:
            Unreachable: slurmctld does not answer, or shows no nodes.
            Refused: scontrol fails in another way.
        """
        self.read_s = 0.0
        configured = scontrol_text.configuration(self._show("config"))
        jobs = scontrol_text.jobs(self._show("-a", "-o", "job"))
        nodes = scontrol_text.nodes(self._show("-a", "-d", "-o", "node"))
        reservations = scontrol_text.reservations(self._show("-a", "-o", "reservation"))
        partitions = scontrol_text.partitions(self._show("-a", "-o", "partition"))
        self.left_out = sum((each.left_out for each in (jobs, nodes, reservations, partitions)), Counter[str]())
        self.hidden = tuple(word for word in configured.private_data if word != "none")
        self._site = (configured, partitions)
        if not nodes.records:
            raise Unreachable(
                "scontrol shows no nodes" + (": PrivateData hides them" if "nodes" in self.hidden else "")
            )
        numbers = self._accounting.numbers() if _keeps_accounts(configured) else NO_ACCOUNTS
        names = {record.user_id: record.user for record in jobs.records}
        seen = observation(
            Records(
                configured,
                jobs.records,
                nodes.records,
                reservations.records,
                partitions.records,
                lambda user_id: names.get(user_id, str(user_id)),
            ),
            numbers,
            _directory(),
        )
        judged = (_judged(job, record) for job, record in zip(seen.jobs, jobs.records, strict=True))
        return replace(seen, jobs=tuple(judged))

    def _show(self, *options_and_what: str) -> str:
        """What `scontrol show` answers."""
        *options, what = options_and_what
        began_s = time.monotonic()
        shown = self._ask("scontrol", *options, "show", what)
        self.read_s += time.monotonic() - began_s
        return shown

    def site(self, seen: Observation) -> Site:
        """The site as `sns draft` takes it, as far as scontrol shows it; after an observation, which is given."""
        if self._site is None:
            raise Unreachable("nothing has been observed yet")
        configured, partitions = self._site
        user = configured.slurm_user_name
        return Site(
            version=configured.version,
            library=0,
            built_for="",
            binding="",
            user=user if fullmatch("[a-z_][a-z0-9_-]{0,31}", user) else "slurm",
            options={},
            memory_per_cpu_mb=configured.default_memory_per_cpu,
            partitions={record.name: record.is_default for record in partitions.records},
            nodes=seen.nodes,
            plugin_dirs=(),
            plugstack=None,
            keeps_accounts=_keeps_accounts(configured),
            rules=tuple(filter(None, map(partition_rules, partitions.records))),
            preemption=replace(seen.preemption, of_qos=()),
            priority_type=configured.priority_type or "",
            site_factor_plugin=configured.priority_site_factor_plugin or "",
            priority_weights=sum_of_weights(configured),
            topology=seen.topology,
        )


def _judged(job: ObservedJob, record: JobText) -> ObservedJob:
    """The job, which asks for what the submit filter would leave to Slurm: here no filter has seen it.

    `asks_for` has the rest of it already.
    """
    if job.state is not JobState.PENDING or job.record is not None or job.unreadable:
        return job
    asked = Submission(
        min_nodes=job.nodes_min,
        max_nodes=job.nodes_max,
        ntasks_per_tres=record.tasks_per_tres,
        ntasks_per_board=record.tasks_per_board,
        ntasks_per_socket=record.tasks_per_socket,
        ntasks_per_core=record.tasks_per_core,
        core_spec=record.core_spec,
        thread_spec=record.thread_spec,
        network=record.network,
        spread=record.is_spread,
        reboot=record.reboot,
        batch_features=record.batch_features,
    )
    why = "sns:off" if job.comment == "sns:off" else unplaced(asked)
    return job if why is None else replace(job, asks_for=(*job.asks_for, why))


def _keeps_accounts(configured: ConfigText) -> bool:
    return (configured.accounting_storage_type or "").endswith("/slurmdbd")


def _directory() -> Path:
    """Where slurm.conf is on this machine."""
    path = configuration_path()
    return path.parent if path.is_file() else Path(CONFIGLESS).parent
