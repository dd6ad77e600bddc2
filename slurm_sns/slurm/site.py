"""The running Slurm's configuration: what `sns check` and `sns draft` read, and options in the form of pyslurm."""

import ctypes
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from slurm_sns.scheduler.observation import (
    BACKFILL,
    NO_PREEMPTION,
    Backfill,
    JobState,
    ObservedNode,
    ObservedPartition,
    PreemptionRules,
)
from slurm_sns.slurm import libslurm, translate
from slurm_sns.slurm.api import answers, configuration_path, library, pyslurm, run
from slurm_sns.topology import FLAT, Topology, topology

#: The word of SelectTypeParameters with which a job's cores lie on one socket after the other.
BLOCK_WISE = "CR_CORE_DEFAULT_DIST_BLOCK"
#: What PrioritySiteFactorPlugin is without one.
_NO_PLUGIN = (None, "", "site_factor/none")


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition and its settings for sharing nodes, in Slurm's words (`EXCLUSIVE`, `FORCE:4`).

    A limit of CPUs that is None allows all CPUs of a node or socket. `memory_per_cpu_mb` is its own DefMemPerCPU, None
    if it has none; `has_memory_by_node`: it has a DefMemPerNode of its own.
    """

    observed: ObservedPartition
    oversubscribe: str = "NO"
    is_user_exclusive: bool = False
    cpus_per_node: int | None = None
    cpus_per_socket: int | None = None
    memory_per_cpu_mb: int | None = None
    has_memory_by_node: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """The running Slurm. `options` are slurm.conf's, as lists of words; memory in MiB, None where unset.

    `version` is slurmctld's; `binding` says what was asked, pyslurm or our own library; `library` is the number of the
    libslurm that it has loaded (45 for libslurm.so.45), `built_for` the release that it was compiled against (empty:
    unknown). `partitions` says of each whether it is
    the default one. `keeps_accounts` is True with accounting in slurmdbd. `federation` is the name of the cluster's
    federation, empty for none; `priority_weights` is the sum of all PriorityWeight options. `priority_type` and
    `site_factor_plugin` are PriorityType and PrioritySiteFactorPlugin, empty if unset. `admin_comments` are the
    AdminComment texts of the jobs that wait or run. `min_job_age_s` is MinJobAge, and `requeues_jobs` is
    JobRequeue. `shows_gpus`: what jobs ask of GPUs can be read.
    """

    version: str
    library: int
    built_for: str
    binding: str
    user: str
    options: Mapping[str, tuple[str, ...]]
    memory_per_cpu_mb: int | None
    partitions: Mapping[str, bool]
    nodes: tuple[ObservedNode, ...]
    plugin_dirs: tuple[Path, ...]
    plugstack: Path | None
    keeps_accounts: bool
    rules: tuple[SitePartition, ...] = ()
    preemption: PreemptionRules = NO_PREEMPTION
    priority_type: str = ""
    site_factor_plugin: str = ""
    priority_weights: int = 0
    federation: str = ""
    admin_comments: tuple[str, ...] = ()
    topology: Topology = FLAT
    shows_gpus: bool = True
    min_job_age_s: int = 300
    requeues_jobs: bool = True

    @property
    def has_priorities(self) -> bool:
        """Whether slurmctld computes priorities of jobs."""
        return self.priority_type == "priority/multifactor" and self.priority_weights > 0

    @property
    def has_boost(self) -> bool:
        """Whether a SiteFactor of ours counts."""
        return has_boost(self.priority_type, self.site_factor_plugin, self.options.get("SchedulerParameters"))

    def memory_of(self, partitions: Collection[str]) -> int | None:
        """What a job in these partitions that does not say --mem gets by CPU, in MiB, at least.

        A partition's own DefMemPerCPU goes before that of the cluster. None: in one of them it is not given by CPU.
        """
        own = {each.observed.name: each for each in self.rules}
        found = [_memory(own.get(name), self.memory_per_cpu_mb) for name in partitions] or [self.memory_per_cpu_mb]
        known = [memory for memory in found if memory is not None]
        return min(known) if len(known) == len(found) else None

    @property
    def default_partition(self) -> str | None:
        """The partition of jobs that name none."""
        return next((name for name, is_default in self.partitions.items() if is_default), None)


def read_site() -> Site:
    """Ask slurmctld.

    Raises:
        Unreachable: it does not answer.
        Refused: scontrol cannot be run.
    """
    api = pyslurm()
    with answers():
        running = api.slurmctld.Config.load()
        partitions = api.Partitions.load()
        nodes = api.Nodes.load()
        jobs = [translate.job(record) for record in api.Jobs.load().values()]
    return Site(
        version=running.version,
        library=_library(),
        built_for=_built_for(Path(api.__file__ or "").with_name("built_for_slurm"))
        if api is not libslurm
        else _release(libslurm.built_for()),
        binding=libslurm.PATH.name if api is libslurm else f"pyslurm {api.__version__}",
        user=running.slurm_user_name,
        options={
            "JobSubmitPlugins": words(running.job_submit_plugins),
            "GresTypes": words(running.gres_types),
            "AccountingStorageTRES": words(running.accounting_storage_tres),
            "PriorityFlags": words(running.priority_flags),
            "SchedulerParameters": words(running.scheduler_parameters),
            "SlurmctldParameters": words(running.slurmctld_parameters),
            "SelectTypeParameters": words(running.select_type_parameters),
        },
        memory_per_cpu_mb=_number(running.default_memory_per_cpu),
        partitions={name: bool(partition.is_default) for name, partition in partitions.items()},
        nodes=tuple(translate.node(record) for record in nodes.values()),
        plugin_dirs=tuple(Path(each) for each in running.plugin_dirs or ()),
        plugstack=Path(running.plugin_stack_config) if running.plugin_stack_config else None,
        keeps_accounts=(running.accounting_storage_type or "").endswith("/slurmdbd"),
        rules=tuple(filter(None, map(partition_rules, partitions.values()))),
        preemption=PreemptionRules(running.preempt_type or "", running.preempt_mode or ""),
        priority_type=running.priority_type or "",
        site_factor_plugin=running.priority_site_factor_plugin or "",
        priority_weights=sum_of_weights(running),
        federation=federation_of(run("scontrol", "show", "federation")),
        topology=topology(configuration_path().parent, running.topology_plugin or ""),
        shows_gpus=library() is libslurm,
        min_job_age_s=_number(running.min_job_age) or 0,
        requeues_jobs=bool(running.job_requeue),
        admin_comments=tuple(
            job.admin_comment for job in jobs if job.admin_comment and job.state is not JobState.ENDED
        ),
    )


def _memory(own: SitePartition | None, of_cluster: int | None) -> int | None:
    """The default of a partition, in MiB by CPU."""
    if own is None or not (own.memory_per_cpu_mb or own.has_memory_by_node):
        return of_cluster
    return own.memory_per_cpu_mb


def federation_of(shown: str) -> str:
    """The name in the answer of `scontrol show federation`; empty if the cluster is in no federation."""
    name, _, value = shown.partition("\n")[0].partition(":")
    return value.strip() if name == "Federation" else ""


def partition_rules(record: Any) -> SitePartition | None:
    """One pyslurm.Partition; None: it cannot be read."""
    seen = translate.partition(record)
    if seen is None:
        return None
    return SitePartition(
        seen,
        record.oversubscribe or "",
        bool(record.is_user_exclusive),
        _number(record.max_cpus_per_node),
        _number(record.max_cpus_per_socket),
        _number(record.default_memory_per_cpu),
        _number(record.default_memory_per_node) is not None,
    )


def _number(shown: Any) -> int | None:
    """A number of pyslurm's; None for its words."""
    return shown if isinstance(shown, int) else None


def sum_of_weights(running: Any) -> int:
    """The sum of all PriorityWeight options."""
    names = ("age", "assoc", "fair_share", "job_size", "partition", "qos")
    weights = [getattr(running, f"priority_weight_{name}") for name in names]
    weights += (running.priority_weight_tres or {}).values()
    return ceil(sum(float(weight) for weight in weights if weight))


def library_of(version: str) -> int:
    """The number of a release's libslurm: 41 in 24.05, one more in each release (API_CURRENT in Slurm's META)."""
    year, month, *_ = version.split(".")
    return 41 + 2 * (int(year) - 24) + (month == "11")


def _library() -> int:
    """The number of the libslurm in this process, 0 if none is loaded.

    pyslurm may be built against another release than its own version says.
    """
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        loaded = sorted({line.split()[-1] for line in maps if "/libslurm" in line})
    return int(ctypes.CDLL(loaded[0]).slurm_api_version()) >> 16 if loaded else 0


def _built_for(note: Path) -> str:
    """The release that plugins/pyslurm/build.sh noted beside pyslurm; empty if there is no such note.

    The note is SLURM_VERSION_NUMBER of the headers, with a byte for each part. It is needed because pyslurm may load a
    libslurm whose file name has no number (libslurmfull.so): the linker reports no error for a newer release of that.
    """
    try:
        number = int(note.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return ""
    return _release(number)


def _release(number: int) -> str:
    """SLURM_VERSION_NUMBER, 0x1a0505, as a release, 26.05.5."""
    return f"{number >> 16}.{number >> 8 & 0xFF:02}.{number & 0xFF}"


def words(value: Any) -> tuple[str, ...]:
    """An option of slurm.conf as pyslurm returns it: a list unchanged, a mapping as `name=value`.

    A value that is True is left out.
    """
    if isinstance(value, Mapping):
        return tuple(name if content is True else f"{name}={content}" for name, content in value.items())
    return tuple(value or ())


def backfill(scheduler_parameters: Any) -> Backfill:
    """How Slurm's backfill plans: bf_window is in minutes, bf_interval in seconds. Invalid values and 0 are ignored."""
    numbers = {}
    for word in words(scheduler_parameters):
        name, _, number = word.partition("=")
        if number.isdecimal() and int(number):
            numbers[name] = float(number)
    return Backfill(
        60 * numbers["bf_window"] if "bf_window" in numbers else BACKFILL.window_s,
        numbers.get("bf_interval", BACKFILL.interval_s),
    )


def has_priorities(running: Any) -> bool:
    """Whether slurmctld computes priorities of jobs: priority/multifactor with any weight."""
    return running.priority_type == "priority/multifactor" and sum_of_weights(running) > 0


#: Slurm's own values of KillWait and requeue_delay (cred_expire), in seconds.
KILL_WAIT_S, REQUEUE_DELAY_S = 30.0, 120.0


#: The first release with the option requeue_delay; seen: 24.11 accepts the word and lets a requeued job wait 120 s.
HAS_REQUEUE_DELAY = (25, 11)


def year_and_month(version: str) -> tuple[int, ...]:
    """The release of a version, `26.05.5`, as numbers that can be compared."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def requeue_s(kill_wait: Any, scheduler_parameters: Any, version: str) -> float:
    """How long a requeue takes at most until the job may start again: KillWait, then requeue_delay."""
    delays = [
        number
        for name, _, number in (word.partition("=") for word in words(scheduler_parameters))
        if name == "requeue_delay" and year_and_month(version) >= HAS_REQUEUE_DELAY
    ]
    delay_s = float(delays[-1]) if delays and delays[-1].isdecimal() else REQUEUE_DELAY_S
    return delay_s + (float(kill_wait) if isinstance(kill_wait, int) else KILL_WAIT_S)


def has_boost(priority_type: str | None, site_factor_plugin: str | None, scheduler_parameters: Any) -> bool:
    """Whether a SiteFactor of ours counts: jobs have factors, and no plugin of the site sets this one.

    Where users may say `scontrol top`, there is none: Slurm would move the priority of a user's placed job, with our
    boost in it, to another of the user's jobs, as a nice value that stays (seen).
    """
    has_factors = priority_type == "priority/multifactor" and site_factor_plugin in _NO_PLUGIN
    return has_factors and all(word.lower() != "enable_user_top" for word in words(scheduler_parameters))


def fills_sockets(select_type_parameters: Any) -> bool:
    """Whether a job's cores lie on one socket after the other, not on all in turn."""
    return BLOCK_WISE in words(select_type_parameters)


def has_extra(scheduler_parameters: Any) -> bool:
    """Whether Slurm leaves the text of Extra alone: with extra_constraints it refuses what does not parse as such."""
    return all(word.lower() != "extra_constraints" for word in words(scheduler_parameters))
