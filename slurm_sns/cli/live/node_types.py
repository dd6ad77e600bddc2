"""The types of what `sns node` prints with --json. Masks are hexadecimal digits; domains are named by cache ids."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

GroupKind = Literal["root", "shared", "job", "stray", "other"]


class CacheReport(TypedDict):
    """A cache that resctrl can partition."""

    name: str
    """Its name in schemata, such as `L3`."""
    ways: int
    """Its ways in each domain."""
    mask: str
    """The mask of all ways."""
    least_ways: int
    """The fewest ways that a group must have."""
    shareable: str
    """The mask of the ways that devices use, too."""
    is_sparse: bool
    """Whether a group's ways need not be adjacent."""
    domains: list[int]
    """The cache ids."""
    closids: int
    """How many groups it can hold apart."""


class BandwidthReport(TypedDict):
    """How memory bandwidth can be limited."""

    unit: Literal["percent", "eighth_gbps", "mib"]
    """What a value means: percent of the unthrottled bandwidth, eighths of GB/s, or MiB/s."""
    least: int
    """The least value."""
    step: int
    """The step between values."""
    most: int
    """The largest value."""
    domains: list[int]
    """The cache ids."""
    closids: int
    """How many groups it can hold apart."""


class MonitoringReport(TypedDict):
    """What resctrl counts of each group."""

    features: list[str]
    """The events, as the kernel names them."""
    rmids: int
    """How many groups can be counted at a time."""
    domains: list[int]
    """The cache ids."""


class CounterReport(TypedDict):
    """Of each counter outside of resctrl why it cannot be used; empty if it can."""

    instructions: str
    """Instructions and cycles of each thread."""
    memory_controllers: str
    """The memory controllers' traffic."""


class GroupReport(TypedDict):
    """A resctrl group."""

    name: str
    """Its name; empty for the root group."""
    kind: GroupKind
    """What runs in it: everything else, jobs without ways, a job, nothing any more, or another program's."""
    tasks: int
    """How many threads it has."""
    masks: dict[str, str]
    """The last-level-cache ways that it may use, by domain."""
    schemata: dict[str, dict[str, str | int]]
    """The lines of its schemata: by resource, then by domain."""
    occupied_bytes: int | None
    """What it occupies of the L3 caches; null where nobody counts it."""


class NodeReportJson(TypedDict):
    """`sns node show --json`."""

    format: int
    """The version of this format: 1."""
    node: str
    """The node's name."""
    root: str
    """Where resctrl is mounted."""
    missing: list[str]
    """What is missing for resctrl, in words; empty if nothing is."""
    mount_options: list[str]
    """The mount options that change what resctrl shows."""
    caches: list[CacheReport]
    """The caches, the last level first."""
    bandwidth: BandwidthReport | None
    """The limits of memory bandwidth; null where there are none."""
    monitoring: MonitoringReport | None
    """What is counted; null where nothing is."""
    closids: int
    """How many groups there can be."""
    closids_for_jobs: int
    """How many of them are left for jobs with ways."""
    counters: CounterReport
    """The counters outside of resctrl."""
    groups: list[GroupReport]
    """The groups that are there."""


class LayoutGroup(TypedDict):
    """What a group would have in one cache domain."""

    guaranteed: str | None
    """The mask of the ways that are its own; null for none."""
    granted: str | None
    """The mask of the ways that it may use now."""
    bandwidth: int | None
    """Its bandwidth value, in the machine's unit."""


class TreeChange(TypedDict):
    """A change of the resctrl tree that would be made."""

    do: Literal["make", "remove", "write", "move"]
    """Make or remove a group, write its schemata, or move threads to it."""
    group: str
    """The group."""
    schemata: NotRequired[str]
    """The lines to write."""
    threads: NotRequired[int]
    """How many threads are moved."""


class LayoutJson(TypedDict):
    """`sns node layout --json`."""

    root: str
    """Where resctrl is mounted."""
    is_changing: bool
    """Whether another program may be changing the tree now."""
    shared_ways: int
    """The ways kept for jobs without profile and the system."""
    mask: str | None
    """The mask of all ways; null without cache control."""
    domains: dict[str, dict[str, LayoutGroup]]
    """The groups by cache domain, then by name."""
    without: dict[str, str]
    """Why a job has no ways of its own, by job."""
    moved: list[int]
    """The jobs whose own ways change."""
    changes: list[TreeChange]
    """What would be written, in this order."""
