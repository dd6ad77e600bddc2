"""What `sns check` reads of the running Slurm: plain values of its configuration."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_sns.scheduler.observed import ObservedNode
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import answers, pyslurm


@dataclass(frozen=True, slots=True)
class Site:
    """The running Slurm. `options` are slurm.conf's, as lists of words; memory in MiB, None where unset.

    `version` is slurmctld's, `library_version` that of the libslurm which pyslurm has loaded.
    """

    version: str
    library_version: str
    pyslurm_version: str
    user: str
    options: Mapping[str, tuple[str, ...]]
    memory_per_cpu_mb: int | None
    partitions: Mapping[str, bool]
    nodes: tuple[ObservedNode, ...]
    plugin_dirs: tuple[Path, ...]
    plugstack: Path | None

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
        library_version=library_version(),
        pyslurm_version=api.__version__,
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
        plugin_dirs=tuple(Path(each) for each in running.plugin_dirs or ()),
        plugstack=Path(running.plugin_stack_config) if running.plugin_stack_config else None,
    )


def library_version() -> str:
    """The release of the libslurm that this process has loaded, such as 26.05.5; empty where there is none.

    pyslurm's own number does not say it: its release may be another one than that of the Slurm it was built against.
    """
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        loaded = {line.split()[-1] for line in maps if "/libslurm" in line}
    for path in sorted(loaded):
        ask = ctypes.CDLL(path).slurm_api_version
        ask.restype = ctypes.c_long
        number = ask()  # SLURM_VERSION_NUM of slurm/slurm_version.h: a byte for each part
        return f"{number >> 16 & 0xFF}.{number >> 8 & 0xFF:02}.{number & 0xFF}"
    return ""


def _words(value: Any) -> tuple[str, ...]:
    """A list as it is; a mapping of options as `name=value`, or `name` alone where the value is True."""
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())
