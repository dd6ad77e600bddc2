"""The settings of sns.yaml: their names, types, limits and defaults.

conf/sns.yaml says what each is for; a test checks that the two agree. The policies' own settings come from their
specifications. A setting without a default must be given.
"""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model

from slurm_sns.config import grammar
from slurm_sns.config.paths import PathsSection, Section
from slurm_sns.config.policy_names import PolicyName
from slurm_sns.policies.registry import live_policies, specification
from slurm_sns.policies.specification import Setting, default_of, settings_of

_Parameters = TypeVar("_Parameters")


def section_of_policies(section: str, base: type[BaseModel]) -> Any:
    """`base` with the settings that the policies have in this section of sns.yaml.

    Several policies may have a setting in common; the policy with the most settings in the section gives their order.
    """
    settings: dict[str, Any] = {}
    for parameters in sorted(_parameters(), key=lambda each: -len(_in_section(each, section))):
        kinds = get_type_hints(parameters)
        for name, setting in _in_section(parameters, section).items():
            settings.setdefault(name, (_kind(kinds[name], setting), default_of(parameters, name)))
    return create_model(base.__name__, __base__=base, **settings)


def with_policies_own_sections(base: type[BaseModel], *shared: str) -> Any:
    """`base` with a section for each policy that has one of its own, besides those in `shared`."""
    names = dict.fromkeys(each.section for kind in _parameters() for each in settings_of(kind).values() if each.section)
    sections: dict[str, Any] = {name: section_of_policies(name, base) for name in names if name not in shared}
    fields: dict[str, Any] = {name: (kind, kind()) for name, kind in sections.items()}
    return create_model(base.__name__, __base__=base, **fields)


def parameters_from(parameters: type[_Parameters], settings: Any) -> _Parameters:
    """A policy's parameters with the values of sns.yaml; a parameter without a setting keeps its default."""
    values = {
        name: getattr(getattr(settings, setting.section), name)
        for name, setting in settings_of(parameters).items()
        if setting.section
    }
    return parameters(**values)


def _parameters() -> list[type]:
    """The parameters of all policies that a cluster may have, each once."""
    return list(dict.fromkeys(each for name in live_policies() for each in specification(name).parameters))


def _in_section(parameters: type, section: str) -> dict[str, Setting]:
    return {name: setting for name, setting in settings_of(parameters).items() if setting.section == section}


def _kind(kind: Any, setting: Setting) -> Any:
    """The type of a setting, with its limits, as pydantic checks it."""
    if get_origin(kind) is tuple:
        return Annotated[tuple[_kind(get_args(kind)[0], setting), ...], Field(min_length=1)]  # type: ignore[misc]
    if type(None) in get_args(kind):
        (other,) = (each for each in get_args(kind) if each is not type(None))
        return _kind(other, setting) | None
    if kind is str and setting.choices is not None:
        return grammar.one_of((setting.site_choices or setting.choices)())
    most = setting.most if setting.site_most is None else setting.site_most
    if kind is int:
        return Annotated[int, Field(ge=setting.least, le=most)]
    if kind is float:
        return Annotated[float, Field(ge=setting.least, gt=setting.above, le=most, allow_inf_nan=False)]
    return kind


ShortSeconds = Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)]


class NodeEntry(Section):
    """Nodes that are alike. `cores` are Slurm cores, `memory_mb` is RealMemory in MiB."""

    names: grammar.NodeList
    partitions: Annotated[tuple[grammar.Name, ...], Field(min_length=1)]
    cores: Annotated[int, Field(ge=1, le=65_535)]
    threads_per_core: Annotated[int, Field(ge=1, le=64)] = 1
    memory_mb: Annotated[int, Field(ge=1, le=1_000_000_000)]
    llc_ways: Annotated[int, Field(ge=0, le=64)] = 0
    bandwidth_gbps: Annotated[int, Field(ge=0, le=100_000)] = 0
    closids: Annotated[int, Field(ge=0, le=4096)] = 0
    gpus: grammar.GpuList = ""

    @property
    def node_names(self) -> tuple[str, ...]:
        """The single nodes' names, in order."""
        return grammar.node_names(self.names)

    @property
    def gres(self) -> Mapping[str, int]:
        """The generic resources that such a node has, by Slurm's name for them."""
        amounts = {"llc": self.llc_ways, "membw": self.bandwidth_gbps}
        return {name: amount for name, amount in amounts.items() if amount}


class MatchingSection(section_of_policies("matching", Section)):  # type: ignore[misc]  # made from the specifications
    """How a cycle matches jobs to nodes, and in which order it takes them."""

    age_limit_s: Annotated[int, Field(ge=1, le=31_536_000)] = 21_600
    withhold_limit_s: Annotated[int, Field(ge=1, le=31_536_000)] | None = 1800
    shares: grammar.Shares = Field(default_factory=dict)
    queue_order: Literal["slurm", "fair-now"] | None = None


class SpreadNShareSection(section_of_policies("spread_n_share", Section)):  # type: ignore[misc]  # made from the specifications
    """How jobs with a program's profile are spread and share nodes: the policies sns and combined."""

    program: grammar.ProgramTemplate = "{name}"
    unmanaged_gbps_per_core: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 1.0


class SubmitSection(Section):
    """What the submit filter does beside gating jobs."""

    tells_users: bool = False


class SchedulerSection(Section):
    """How often the scheduler works, how long gates stand, and what is done when Slurm does not start a placed job."""

    interval_s: ShortSeconds = 1.0
    heartbeat_timeout_s: Annotated[int, Field(ge=2, le=10_800)] = 30
    gate_lease_s: Annotated[int, Field(ge=120, le=43_200)] = 7200
    place_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    backoff_s: Annotated[int, Field(ge=1, le=86_400)] = 5
    backoff_max_s: Annotated[int, Field(ge=1, le=86_400)] = 300
    node_weights: bool = True
    never_across: tuple[grammar.Name, ...] = ()
    estimates: bool = True


class SlurmSection(Section):
    """The site's own Slurm settings that the rendered files must keep."""

    user: grammar.User = "slurm"
    memory_per_cpu_mb: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    job_submit_plugins: tuple[grammar.Word, ...] = ()
    gres_types: tuple[grammar.Word, ...] = ()
    accounting_tres: tuple[grammar.Tres, ...] | None = ()
    scheduler_parameters: tuple[grammar.Option, ...] = ()
    priority_flags: tuple[grammar.Word, ...] = ()
    spank_plugin: grammar.PluginFile = "sns.so"


class AgentsSection(Section):
    """The agents on the nodes: how they reach the scheduler, and what they do."""

    controller: grammar.HostName | None = None
    port: Annotated[int, Field(ge=1, le=65_535)] = 6830
    key_file: grammar.AbsolutePath = Path("/etc/slurm/sns.key")
    run_dir: grammar.AbsolutePath = Path("/run/sns-agent")
    state_dir: grammar.AbsolutePath = Path("/var/lib/sns-agent")
    resctrl: grammar.AbsolutePath = Path("/sys/fs/resctrl")
    confine_system: bool = True
    sample_s: Annotated[float, Field(ge=0.05, le=600, allow_inf_nan=False)] = 5.0
    sample_ways: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(min_length=1)] = (2, 4, 8)
    monitor_s: Annotated[float, Field(ge=0.1, le=600, allow_inf_nan=False)] = 10.0
    vanished_after_s: ShortSeconds = 60.0

    @property
    def socket(self) -> Path:
        """The Unix socket on which a node's agent is told by prolog and epilog; root alone may open it."""
        return self.run_dir / "agent.sock"


class LearningSection(Section):
    """How the scheduler learns the profiles of programs from what the agents measure."""

    explore: bool = False
    most_nodes: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.25
    min_cores_per_node: Annotated[int, Field(ge=1, le=65_535)] = 2
    saturation: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.05
    drift: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 0.1
    drift_runs: Annotated[int, Field(ge=1, le=1000)] = 3


class ReschedulingSection(Section):
    """Restarts of suspended jobs, and moves of queued ones between partitions that are alike."""

    restart: Literal["off", "propose", "on"] = "off"
    opt_in: Literal["restartable", "requeue"] = "restartable"
    window_s: Annotated[int, Field(ge=60, le=604_800)] = 6000
    averages: Literal["suspended", "all"] = "suspended"
    least_suspended_s: Annotated[int, Field(ge=0, le=86_400)] = 120
    gain_s: Annotated[int, Field(ge=0, le=604_800)] = 300
    max_moves: Annotated[int, Field(ge=1, le=1000)] = 2
    lost_core_hours_per_user_day: Annotated[int, Field(ge=0, le=10_000_000)] = 500
    pools: tuple[Annotated[tuple[grammar.Name, ...], Field(min_length=2)], ...] = ()
    queued_check_s: Annotated[int, Field(ge=0, le=604_800)] = 0


#: The signals that scancel knows by name and a process can handle.
_SIGNALS = ("HUP", "INT", "QUIT", "ABRT", "ALRM", "TERM", "USR1", "USR2", "URG", "CONT", "TSTP", "TTIN", "TTOU", "XCPU")


class SharingSection(Section):
    """Partitions whose jobs share cores: how many to a core, by which means, and what may be done to them."""

    partitions: tuple[grammar.Name, ...] = ()
    most_to_a_core: Annotated[int, Field(ge=1, le=16)] = 2
    cpu: Literal["weights", "caps"] = "weights"
    pause: Literal["none", "restartable"] = "none"
    protect_s: Annotated[int, Field(ge=0, le=604_800)] = 600
    max_restarts: Annotated[int, Field(ge=1, le=1000)] = 5
    signal: grammar.one_of((*_SIGNALS, "none")) = "none"  # type: ignore[valid-type]  # made from the names
    grace_s: Annotated[int, Field(ge=0, le=3600)] = 60
    most_lost: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    most_extension: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 4.0


class WebSection(Section):
    """The page of `sns web`: where it listens, and whom a reverse proxy may name as the viewer."""

    address: grammar.HostName = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65_535)] = 6831
    hosts: tuple[grammar.HostName, ...] = ()
    user_header: grammar.HeaderName | None = None
    trusted_addresses: tuple[grammar.Network, ...] = ()
    admins: tuple[grammar.Name, ...] = ()

    @property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The addresses of connections on which the header counts."""
        return tuple(map(ip_network, self.trusted_addresses))


class StoreSection(Section):
    """Where decisions and history are kept, and for how long."""

    url: Annotated[grammar.DatabaseUrl | None, Field(repr=False)] = None
    keep_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    keep_snapshots: Annotated[int, Field(ge=0, le=1_000_000)] = 500


class SnsYaml(with_policies_own_sections(Section, "matching", "spread_n_share")):  # type: ignore[misc]  # as above
    """All of sns.yaml, each setting valid by itself; `Config` also checks the settings against each other."""

    mode: Literal["observe", "advise", "enforce"] = "observe"
    policy: PolicyName = "max-jobs"
    partitions: Annotated[tuple[grammar.Name, ...], Field(min_length=1)]
    default_partition: grammar.Name | None = None
    nodes: Annotated[tuple[NodeEntry, ...], Field(min_length=1)]
    matching: MatchingSection = MatchingSection()
    spread_n_share: SpreadNShareSection = SpreadNShareSection()
    submit: SubmitSection = SubmitSection()
    scheduler: SchedulerSection = SchedulerSection()
    slurm: SlurmSection = SlurmSection()
    paths: PathsSection = PathsSection()
    agents: AgentsSection = AgentsSection()
    learning: LearningSection = LearningSection()
    rescheduling: ReschedulingSection = ReschedulingSection()
    sharing: SharingSection = SharingSection()
    web: WebSection = WebSection()
    store: StoreSection = StoreSection()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
