"""The tree as directories and files: what a path names, what it reads, and what may be done to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from errno import EEXIST, EPERM
from functools import partial
from pathlib import Path

from resctrl_emulator import cpu_lists
from resctrl_emulator.assignments import Caller
from resctrl_emulator.groups import Group
from resctrl_emulator.machines import SPARSE_MASKS_SINCE, BandwidthType, CacheType, MonitoringType
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.rules import EVENTS, Tree
from resctrl_emulator.schemata import Resource

READABLE, WRITABLE, DIRECTORY = 0o444, 0o644, 0o755


@dataclass
class File:
    """A file. Without `write` it can only be read. `group`: with it the file goes; None for files of info."""

    read: Callable[[], str]
    write: Callable[[bytes, Caller], None] | None = None
    group: Group | None = None
    mode: int = field(init=False)

    def __post_init__(self) -> None:
        self.mode = READABLE if self.write is None else WRITABLE


@dataclass
class Directory:
    """A directory: its entries, and what the kernel does when one is made in it, or when it is removed."""

    entries: Callable[[], Mapping[str, "Node"]]
    make: Callable[[str, tuple[int, int]], object]
    group: Group | None = None
    remove: Callable[[], None] | None = None
    is_for_monitors: bool = False
    mode: int = DIRECTORY


Node = File | Directory


def find(tree: Tree, path: str) -> Node | None:
    """What a path from the root names, None for nothing."""
    node: Node = root(tree)
    for part in path.strip("/").split("/") if path.strip("/") else ():
        entry = node.entries().get(part) if isinstance(node, Directory) else None
        if entry is None:
            return None
        node = entry
    return node


def root(tree: Tree) -> Directory:
    """The root of the mount."""

    def entries() -> dict[str, Node]:
        found = _control_entries(tree, tree.root)
        found["info"] = Directory(partial(_info, tree), partial(_refuse, tree))
        return found | {
            group.name: Directory(
                partial(_control_entries, tree, group),
                partial(_make_monitor, tree, group),
                group,
                partial(tree.remove, group),
            )
            for group in tree.groups.values()
        }

    def make(name: str, owner: tuple[int, int]) -> Group:
        if name in entries():
            raise Refusal(EEXIST)
        return tree.make_group(name, owner)

    return Directory(entries, make, tree.root)


def rename(tree: Tree, old: str, new: str) -> None:
    """Rename a monitoring group, or move it to another control group.

    Raises:
        Refusal: EPERM for anything else.
    """
    folder, _, name = new.strip("/").rpartition("/")
    source, target = find(tree, old), find(tree, folder)
    if not isinstance(source, Directory) or not isinstance(target, Directory):
        raise Refusal(EPERM)
    if source.group is None or target.group is None or source.remove is None:
        raise Refusal(EPERM)
    tree.rename_monitor(source.group, target.group, name, is_inside=target.is_for_monitors)


def write_copy(tree: Tree, directory: Path) -> None:
    """The tree as plain files, as a captured tree is: without any rule. For benchmarks, and where FUSE is missing."""
    for path, node in walk(root(tree)):
        if isinstance(node, Directory):
            (directory / path).mkdir(parents=True, exist_ok=True)
        else:
            (directory / path).write_text(node.read(), encoding="latin-1")


def walk(directory: Directory, path: str = "") -> Iterator[tuple[str, Node]]:
    """The directory and everything in it, a directory before its entries."""
    yield path, directory
    for name, node in directory.entries().items():
        if isinstance(node, Directory):
            yield from walk(node, f"{path}{name}/")
        else:
            yield f"{path}{name}", node


def _control_entries(tree: Tree, group: Group) -> dict[str, Node]:
    entries = _common_entries(tree, group)
    if tree.resources:
        entries["schemata"] = File(
            partial(tree.schemata_text, group), lambda data, _: tree.write_schemata(group, data), group
        )
        entries["mode"] = File(
            lambda: "exclusive\n" if group.is_exclusive else "shareable\n",
            lambda data, _: tree.write_mode(group, data),
            group,
        )
        entries["size"] = File(partial(tree.size_text, group), None, group)
    if tree.counters:
        entries["mon_groups"] = Directory(
            partial(_monitors, tree, group),
            lambda name, owner: tree.make_monitor(group, name, owner),
            group,
            is_for_monitors=True,
        )
    return entries


def _monitors(tree: Tree, group: Group) -> dict[str, Node]:
    return {
        monitor.name: Directory(
            partial(_common_entries, tree, monitor),
            partial(_make_monitor, tree, monitor),
            monitor,
            partial(tree.remove, monitor),
        )
        for monitor in group.monitors.values()
    }


def _make_monitor(tree: Tree, group: Group, name: str, owner: tuple[int, int]) -> Group:
    return tree.make_monitor(group, name, owner, is_inside=False)


def _common_entries(tree: Tree, group: Group) -> dict[str, Node]:
    """What control and monitoring groups have."""
    entries: dict[str, Node] = {
        "cpus": File(
            lambda: f"{cpu_lists.mask_text(group.cpus, tree.machine.cpus)}\n",
            lambda data, _: tree.write_cpus(group, data, is_list=False),
            group,
        ),
        "cpus_list": File(
            lambda: f"{cpu_lists.list_text(group.cpus)}\n",
            lambda data, _: tree.write_cpus(group, data, is_list=True),
            group,
        ),
        "tasks": File(
            lambda: "".join(f"{task_id}\n" for task_id in tree.tasks.of(group)),
            partial(tree.write_tasks, group),
            group,
        ),
    }
    if tree.counters:
        entries["mon_data"] = Directory(
            partial(_counted, tree, group, tree.counters.kind), partial(_make_monitor, tree, group), group
        )
    return entries


def _counted(tree: Tree, group: Group, kind: MonitoringType) -> dict[str, Node]:
    def files(domain: int) -> dict[str, Node]:
        return {
            feature: File(partial(tree.counter_text, group, domain, feature), None, group) for feature in kind.features
        }

    return {
        f"mon_L3_{domain:02}": Directory(partial(files, domain), partial(_make_monitor, tree, group), group)
        for domain in kind.domains
    }


def _refuse(tree: Tree, _name: str, _owner: tuple[int, int]) -> None:
    tree.refuse_in_info()


def _info(tree: Tree) -> dict[str, Node]:
    entries: dict[str, Node] = {"last_cmd_status": File(lambda: tree.status)}
    for resource in tree.resources:
        entries[resource.name] = Directory(partial(_resource_info, tree, resource), partial(_refuse, tree))
    if tree.machine.monitoring is not None:
        entries["L3_MON"] = Directory(partial(_monitoring_info, tree, tree.machine.monitoring), partial(_refuse, tree))
    return entries


def _resource_info(tree: Tree, resource: Resource) -> dict[str, Node]:
    kind = resource.kind
    if isinstance(kind, BandwidthType):
        texts = {"min_bandwidth": str(kind.least), "bandwidth_gran": str(kind.step)}
        texts["delay_linear"] = f"{kind.is_linear:d}"
        if kind.throttle_mode:
            texts["thread_throttle_mode"] = kind.throttle_mode
    else:
        texts = {"cbm_mask": f"{kind.mask:x}", "min_cbm_bits": str(kind.least_bits)}
        texts["shareable_bits"] = f"{kind.shareable:x}"
        if tree.machine.kernel >= SPARSE_MASKS_SINCE:
            texts["sparse_masks"] = f"{kind.is_sparse:d}"
    texts["num_closids"] = str(resource.closids)
    entries: dict[str, Node] = {name: File(partial(str, f"{text}\n")) for name, text in texts.items()}
    if isinstance(kind, CacheType):
        entries["bit_usage"] = File(partial(_bit_usage, tree, resource, kind))
    return entries


def _bit_usage(tree: Tree, resource: Resource, cache: CacheType) -> str:
    """Highest bit first. X: groups and devices. H: devices. S: groups. E: one exclusive group. 0: nobody."""
    domains = []
    for domain in resource.domains:
        shared = exclusive = 0
        for group in tree.control_groups:
            mask = resource.values[group.closid][domain]
            shared |= 0 if group.is_exclusive else mask
            exclusive |= mask if group.is_exclusive else 0
        letters = ""
        for bit in reversed(range(cache.bits)):
            by_device, by_group, by_one = (mask >> bit & 1 for mask in (cache.shareable, shared, exclusive))
            letters += ("X" if by_group else "H") if by_device else "S" if by_group else "E" if by_one else "0"
        domains.append(f"{domain}={letters}")
    return f"{';'.join(domains)}\n"


def _monitoring_info(tree: Tree, kind: MonitoringType) -> dict[str, Node]:
    features = []
    entries: dict[str, Node] = {
        "num_rmids": File(lambda: f"{kind.rmids}\n"),
        "max_threshold_occupancy": File(
            lambda: f"{tree.threshold_bytes}\n", lambda data, _: tree.write_threshold(data)
        ),
    }
    for feature in kind.features:
        features.append(feature)
        if kind.is_configurable and feature in EVENTS:
            features.append(f"{feature}_config")
            entries[f"{feature}_config"] = File(
                partial(_events_text, tree, feature), partial(_write_events, tree, feature)
            )
    entries["mon_features"] = File(lambda: "".join(f"{feature}\n" for feature in features))
    return entries


def _events_text(tree: Tree, feature: str) -> str:
    return ";".join(f"{domain}=0x{value:02x}" for domain, value in tree.events[feature].items()) + "\n"


def _write_events(tree: Tree, feature: str, data: bytes, _caller: Caller) -> None:
    tree.write_events(feature, data)
