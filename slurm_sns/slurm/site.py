"""What `sns check` reads of the running Slurm: plain values of its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slurm_sns.scheduler.observed import ObservedNode
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import answers, pyslurm


@dataclass(frozen=True, slots=True)
class Site:
    """The running Slurm. `options` are slurm.conf's, as lists of words; memory in MiB, None where unset."""

    version: str
    user: str
    options: Mapping[str, tuple[str, ...]]
    memory_per_cpu_mb: int | None
    partitions: Mapping[str, bool]
    nodes: tuple[ObservedNode, ...]

    @property
    def default_partition(self) -> str | None:
        """The partition of jobs that name none."""
        return next((name for name, is_default in self.partitions.items() if is_default), None)


def read_site() -> Site:
    """Ask slurmctld.

    Raises:
        Unreachable: it does not answer.
    """
    api = pyslurm()
    with answers():
        running = api.slurmctld.Config.load()
        partitions = api.Partitions.load()
        nodes = api.Nodes.load()
    return Site(
        version=running.version,
        user=running.slurm_user_name,
        options={
            "JobSubmitPlugins": _words(running.job_submit_plugins),
            "GresTypes": _words(running.gres_types),
            "AccountingStorageTRES": _words(running.accounting_storage_tres),
            "PriorityFlags": _words(running.priority_flags),
            "SchedulerParameters": _words(running.scheduler_parameters),
        },
        memory_per_cpu_mb=running.default_memory_per_cpu,
        partitions={name: bool(partition.is_default) for name, partition in partitions.items()},
        nodes=tuple(translate.node(record) for record in nodes.values()),
    )


def _words(value: Any) -> tuple[str, ...]:
    """A list as it is; a mapping of options as `name=value`, or `name` alone where the value is True."""
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())
