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

    `version` is slurmctld's; `library` is the number of the libslurm that pyslurm has loaded (45 for libslurm.so.45),
    `built_for` the release that it was compiled against (empty: unknown). `keeps_accounts`: slurmdbd does.
    """

    version: str
    library: int
    built_for: str
    pyslurm_version: str
    user: str
    options: Mapping[str, tuple[str, ...]]
    memory_per_cpu_mb: int | None
    partitions: Mapping[str, bool]
    nodes: tuple[ObservedNode, ...]
    plugin_dirs: tuple[Path, ...]
    plugstack: Path | None
    keeps_accounts: bool

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
        library=_library(),
        built_for=_built_for(Path(api.__file__ or "").with_name("built_for_slurm")),
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
        keeps_accounts=(running.accounting_storage_type or "").endswith("/slurmdbd"),
    )


def library_of(version: str) -> int:
    """The number of a release's libslurm: 41 in 24.05, one more each half year (API_CURRENT in Slurm's META)."""
    year, month, *_ = version.split(".")
    return 41 + 2 * (int(year) - 24) + (month == "11")


def _library() -> int:
    """The libslurm in this process: pyslurm may be built against another release than the one it is named after."""
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        loaded = sorted({line.split()[-1] for line in maps if "/libslurm" in line})
    return int(ctypes.CDLL(loaded[0]).slurm_api_version()) >> 16 if loaded else 0


def _built_for(note: Path) -> str:
    """What plugins/pyslurm/build.sh noted beside pyslurm: SLURM_VERSION_NUMBER of the headers, a byte for each part.

    pyslurm may load a libslurm whose name has no number (libslurmfull.so), so a newer one is no error to the linker.
    """
    try:
        number = int(note.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return ""
    return f"{number >> 16}.{number >> 8 & 0xFF:02}.{number & 0xFF}"


def _words(value: Any) -> tuple[str, ...]:
    """A list as it is; a mapping of options as `name=value`, or `name` alone where the value is True."""
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())
