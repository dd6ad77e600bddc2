"""The kernel's rules as a model in memory: what may be made, written, moved and removed, and what it says if not.

Every command that the kernel refuses raises a `Refusal`: the errno that the caller gets, while `status` then reads the
kernel's message. Removing a group leaves `status` as it was, and so does a write without final newline.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EEXIST, EINVAL, ENODEV, ENOENT, ENOSPC, EOVERFLOW, EPERM, ERANGE
from re import compile as pattern

from resctrl_emulator import cpu_lists, schemata
from resctrl_emulator.assignments import Assignments, Caller
from resctrl_emulator.groups import Group
from resctrl_emulator.machines import BandwidthType, CacheType, MachineType
from resctrl_emulator.monitoring import Counters, Rmids
from resctrl_emulator.refusal import Refusal
from resctrl_emulator.schemata import Resource
from resctrl_emulator.worlds import EmulatedTasks, World

#: What AMD's processors count at first: reads and writes of all kinds, and those to the own memory.
EVENTS = {"mbm_total_bytes": 0x7F, "mbm_local_bytes": 0x15}
MOST_EVENTS = 0x7F
_HEX = pattern(r"(?:0[xX])?[0-9a-fA-F]+\Z")
ROOT_ONLY = Caller()


def _no_time() -> float:
    return 0.0


class Tree:
    """The state of a mounted resctrl file system."""

    def __init__(self, machine: MachineType, world: World | None = None, now_s: Callable[[], float] = _no_time) -> None:
        """A fresh mount on this machine; without a world there is one emulated task, number 1."""
        self.machine = machine
        self.resources = schemata.resources_of(machine)
        self.closids = min((resource.closids for resource in self.resources), default=0)
        self.root = Group("", 0, rmid=0 if machine.monitoring else None, cpus=set(range(machine.cpus)))
        self.groups: dict[str, Group] = {}
        self.counters = Counters(machine.monitoring) if machine.monitoring else None
        self.events = {name: dict.fromkeys(self._monitored, value) for name, value in EVENTS.items()}
        self.threshold_bytes = machine.monitoring.threshold_bytes if machine.monitoring else 0
        self.tasks = Assignments(world or EmulatedTasks(), self.root, machine.kernel)
        self._rmids = Rmids(machine.monitoring, now_s) if machine.monitoring else None
        self._message = ""
        for resource in self.resources:
            resource.values[0] = dict.fromkeys(resource.domains, resource.default)
        if self.counters:
            self.counters.start(0)
        self.tasks.refresh()

    @property
    def _monitored(self) -> tuple[int, ...]:
        return self.machine.monitoring.domains if self.machine.monitoring else ()

    @property
    def status(self) -> str:
        """What info/last_cmd_status reads."""
        return f"{self._message or 'ok'}\n"

    @property
    def control_groups(self) -> tuple[Group, ...]:
        """All groups with a CLOSID, the root group first."""
        return (self.root, *self.groups.values())

    @contextmanager
    def _command(self) -> Iterator[None]:
        self._message = ""
        try:
            yield
        except Refusal as refusal:
            self._message = refusal.message or ""
            raise

    def refuse(self, number: int, message: str) -> None:
        """Refuse a command that the rules would allow, as a test has asked.

        Raises:
            Refusal: always.
        """
        with self._command():
            raise Refusal(number, message)

    # Groups

    def make_group(self, name: str, owner: tuple[int, int] = (0, 0)) -> Group:
        """A directory is made in the root: a control group, which may use all that is shareable or unused.

        Raises:
            Refusal: ENOSPC without a CLOSID, an RMID or room in a cache; EBUSY when the free RMIDs are in limbo.
        """
        if "\n" in name:
            raise Refusal(EINVAL)
        if not self.resources:
            return self.make_monitor(self.root, name, owner, is_inside=False)
        if name in self.groups:
            raise Refusal(EEXIST)
        with self._command():
            taken = {group.closid for group in self.control_groups}
            closid = next((at for at in range(self.closids) if at not in taken), None)
            if closid is None:
                raise Refusal(ENOSPC, "Out of CLOSIDs")
            group = Group(name, closid, self._rmids.take() if self._rmids else None, owner=owner)
            try:
                first = {resource.name: self._first_values(resource) for resource in self.resources}
            except Refusal:
                self._give_back(group)
                raise
            for resource in self.resources:
                resource.values[closid] = first[resource.name]
            self.groups[name] = group
            self._count(group)
        return group

    def make_monitor(
        self, parent: Group, name: str, owner: tuple[int, int] = (0, 0), *, is_inside: bool = True
    ) -> Group:
        """A directory is made in mon_groups (`is_inside`) or elsewhere in a group, where it may not be.

        Raises:
            Refusal: EPERM elsewhere, ENOSPC without an RMID.
        """
        if "\n" in name:
            raise Refusal(EINVAL)
        if self._rmids is None:
            raise Refusal(EPERM)
        if name in parent.monitors:
            raise Refusal(EEXIST)
        with self._command():
            if not is_inside or name == "mon_groups":
                raise Refusal(EPERM, "")
            group = Group(name, parent.closid, self._rmids.take(), parent, owner=owner)
            parent.monitors[name] = group
            self._count(group)
        return group

    def refuse_in_info(self) -> None:
        """A directory is made in info.

        Raises:
            Refusal: always.
        """
        raise Refusal(EPERM if self._rmids is None else ENODEV)

    def remove(self, group: Group) -> None:
        """A group's directory is removed: tasks and CPUs go back to the parent or the root group."""
        if group.parent is not None:
            self.tasks.move_all(group, group.parent)
            del group.parent.monitors[group.name]
            self._give_back(group)
            return
        self.tasks.move_all(group, self.root)
        self.root.cpus |= group.cpus
        del self.groups[group.name]
        for each in (group, *group.monitors.values()):
            self._give_back(each)

    def rename_monitor(self, group: Group, parent: Group, name: str, *, is_inside: bool) -> None:
        """A monitoring group gets another name or control group; `is_inside`: the new place is in mon_groups.

        Raises:
            Refusal: EPERM for any other group or place, and for a group with CPUs.
        """
        with self._command():
            if group.parent is None:
                raise Refusal(EPERM, "Source must be a MON group")
            if not is_inside or name == "mon_groups":
                raise Refusal(EPERM, "Destination must be a mon_groups subdirectory")
            if group.cpus and group.parent is not parent:
                raise Refusal(EPERM, "Cannot move a MON group that monitors CPUs")
            if name in parent.monitors:
                raise Refusal(EEXIST, "")
            del group.parent.monitors[group.name]
            group.name, group.parent, group.closid = name, parent, parent.closid
            parent.monitors[name] = group

    def _count(self, group: Group) -> None:
        if self.counters and group.rmid is not None:
            self.counters.start(group.rmid)

    def _give_back(self, group: Group) -> None:
        group.is_removed = True
        if self._rmids and group.rmid is not None:
            self._rmids.give_back(group.rmid)

    def _first_values(self, resource: Resource) -> dict[int, int]:
        kind = resource.kind
        if isinstance(kind, BandwidthType):
            return dict.fromkeys(resource.domains, resource.default)
        return {domain: self._first_mask(resource, kind, domain) for domain in resource.domains}

    def _first_mask(self, resource: Resource, cache: CacheType, domain: int) -> int:
        """The lowest run of ways that no exclusive group has: the kernel's default, also where holes are allowed."""
        used = usable = cache.shareable
        for group in self.control_groups:
            mask = 0
            for peer in resource.peers:
                mask |= peer.values[group.closid][domain]
            used |= mask
            usable |= 0 if group.is_exclusive else mask
        usable |= cache.mask & ~used
        run = usable & ~(usable + schemata.lowest_bit(usable))
        if run.bit_count() < cache.least_bits:
            raise Refusal(ENOSPC, f"No space on {resource.name}:{domain}")
        return run

    # Files of a group

    def write_schemata(self, group: Group, data: bytes) -> None:
        """Parse all lines, then apply them.

        Raises:
            Refusal: EINVAL; nothing has changed then, except MB with mba_MBps.
        """
        text = _line_of(data)
        with self._command():
            others = tuple(other for other in self.control_groups if other is not group)
            lines = schemata.Lines(self.resources, group, others, self.machine.is_in_mib)
            staged = lines.parse(text)
            for resource in self.resources:
                resource.values[group.closid].update(staged.get(resource.name, {}))

    def schemata_text(self, group: Group) -> str:
        """What the file schemata reads."""
        return schemata.lines_text(self.machine, self.resources, group.closid)

    def size_text(self, group: Group) -> str:
        """What the file size reads."""
        return schemata.size_text(self.machine, self.resources, group.closid)

    def write_mode(self, group: Group, data: bytes) -> None:
        """Make the group exclusive or shareable.

        Raises:
            Refusal: EINVAL when its ways are used by others, or for an unknown mode.
        """
        mode = _line_of(data)
        with self._command():
            if mode == "exclusive" and not group.is_exclusive:
                self._check_exclusive(group)
                group.is_exclusive = True
            elif mode == "shareable":
                group.is_exclusive = False
            elif mode != "exclusive":
                raise Refusal(EINVAL, "Unknown or unsupported mode")

    def _check_exclusive(self, group: Group) -> None:
        caches = [(each, each.kind) for each in self.resources if isinstance(each.kind, CacheType)]
        others = [other for other in self.control_groups if other is not group]
        for resource, cache in caches:
            for domain, mask in resource.values[group.closid].items():
                used = cache.shareable
                for other in others:
                    for peer in resource.peers:
                        used |= peer.values[other.closid][domain]
                if mask & used:
                    raise Refusal(EINVAL, "Schemata overlaps")
        if not caches:
            raise Refusal(EINVAL, "Cannot be exclusive without CAT/CDP")

    def write_cpus(self, group: Group, data: bytes, *, is_list: bool) -> None:
        """Give the group these CPUs, and take them from the others.

        Raises:
            Refusal: EINVAL; ERANGE (a list) or EOVERFLOW (a mask) for a CPU that the machine has not got.
        """
        with self._command():
            try:
                cpus = (cpu_lists.read_list if is_list else cpu_lists.read_mask)(_text(data))
            except ValueError:
                raise Refusal(EINVAL, "Bad CPU list/mask") from None
            if not cpus <= set(range(self.machine.cpus)):
                raise Refusal(ERANGE if is_list else EOVERFLOW, "Bad CPU list/mask")
            if group.parent is None:
                self._set_cpus(group, cpus)
            else:
                _set_monitored_cpus(group, group.parent, cpus)

    def _set_cpus(self, group: Group, cpus: frozenset[int]) -> None:
        dropped = group.cpus - cpus
        if dropped and group is self.root:
            raise Refusal(EINVAL, "Can't drop CPUs from default group")
        self.root.cpus |= dropped
        for other in self.control_groups:
            if other is not group:
                other.cpus -= cpus - group.cpus
                for monitor in other.monitors.values():
                    monitor.cpus &= other.cpus
        group.cpus = set(cpus)
        for monitor in group.monitors.values():
            monitor.cpus.clear()

    def write_tasks(self, group: Group, data: bytes, caller: Caller = ROOT_ONLY) -> None:
        """Move tasks into the group.

        Raises:
            Refusal: ESRCH, EPERM, EINVAL; the tasks before that one have been moved.
        """
        with self._command():
            self.tasks.write(group, _text(data), caller)

    # Monitoring

    def counter_text(self, group: Group, domain: int, feature: str) -> str:
        """What a file in mon_data reads."""
        if self.counters is None:
            raise Refusal(ENOENT)
        return self.counters.text(group.rmids, domain, feature)

    def write_threshold(self, data: bytes) -> None:
        """Set max_threshold_occupancy.

        Raises:
            Refusal: EINVAL for what is no number.
        """
        text = _text(data).strip()
        if not text.isdigit():
            raise Refusal(EINVAL)
        self.threshold_bytes = int(text)

    def write_events(self, feature: str, data: bytes) -> None:
        """Choose the events that are counted (AMD): all counters of the domain begin anew.

        Raises:
            Refusal: EINVAL.
        """
        text = _line_of(data)
        with self._command():
            for part in filter(None, text.split(";")):
                number, _, value = part.strip().partition("=")
                if not number.isdigit():
                    raise Refusal(EINVAL, "Missing '=' or non-numeric domain id")
                if not _HEX.match(value):
                    raise Refusal(EINVAL, "Non-numeric event configuration value")
                if int(value, 16) > MOST_EVENTS:
                    raise Refusal(EINVAL, f"Invalid event configuration: max valid mask is 0x{MOST_EVENTS:02x}")
                if int(number) not in self.events[feature]:
                    raise Refusal(EINVAL, "")
                if self.counters and self.events[feature][int(number)] != int(value, 16):
                    self.events[feature][int(number)] = int(value, 16)
                    self.counters.reset(int(number))


def _set_monitored_cpus(group: Group, parent: Group, cpus: frozenset[int]) -> None:
    if not cpus <= parent.cpus:
        raise Refusal(EINVAL, "Can only add CPUs to mongroup that belong to parent")
    for other in parent.monitors.values():
        if other is not group:
            other.cpus -= cpus
    group.cpus = set(cpus)


def _text(data: bytes) -> str:
    """A write as the kernel sees it: a string that ends at the first NUL."""
    return data.partition(b"\0")[0].decode("latin-1")


def _line_of(data: bytes) -> str:
    """The text before the final newline, without which nothing is read."""
    if not data.endswith(b"\n"):
        raise Refusal(EINVAL)
    return _text(data[:-1])
