"""What a node can do with its caches and its memory bandwidth, and what each resctrl group has: plain values for JSON.

`sns check` reads this on the controller (slurm/check/node_reports.py), so a change of meaning needs another `FORMAT`.
Masks are hexadecimal digits, domains are texts of their cache ids.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from slurm_sns.cli.live.node_types import (
    BandwidthReport,
    CacheReport,
    CounterReport,
    GroupKind,
    GroupReport,
    MonitoringReport,
    NodeReportJson,
)
from slurm_sns.closids import closids_for_jobs
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.log import printable
from slurm_sns.node.counters.monitoring_files import MonitoringFiles
from slurm_sns.node.counters.node_counters import DEVICES, open_controllers, why_no_instructions
from slurm_sns.node.counters.perf_event import KernelPerf
from slurm_sns.node.group_writes import SHARED, job_of, masks
from slurm_sns.node.resctrl.groups import PREFIX, Groups
from slurm_sns.node.resctrl.machine import Cache, Machine, discover
from slurm_sns.node.resctrl.schemata import CACHES, Schemata, parse

FORMAT = 1
#: The kind of the groups of other programs.
OTHER: GroupKind = "other"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def report(
    node: str, root: Path, missing: list[str], perf: KernelPerf | None = None, devices: Path = DEVICES
) -> NodeReportJson:
    """The report of the node of this name, whose resctrl is at `root`. With something missing, it has no groups.

    Raises:
        BadInput: no node can have this name.
        SnsError: the tree shows nonsense or cannot be read.
    """
    if not _NAME.fullmatch(node):
        raise BadInput(f"node {node!r}: this is no name of a node; valid: --node with letters, digits and . _ -")
    perf = perf or KernelPerf()
    machine = Machine((), None, None, 0) if missing else discover(root)
    last_level_first = sorted(machine.caches, key=lambda cache: cache not in machine.last_level)
    groups = [] if missing else list(_groups(root, machine))
    others = 0 if missing else len(Groups(root).foreign())
    return {
        "format": FORMAT,
        "node": node,
        "root": str(root),
        "missing": missing,
        "mount_options": _mount_options(machine),
        "caches": [_cache(cache) for cache in last_level_first],
        "bandwidth": _bandwidth(machine),
        "monitoring": _monitoring(machine),
        "closids": machine.closids,
        "closids_for_jobs": closids_for_jobs(machine.closids, others),
        "counters": _counters(perf, devices),
        "groups": groups,
    }


def _mount_options(machine: Machine) -> list[str]:
    """The options that change what the tree shows. The tree tells them, also where no mount table does."""
    names = {cache.name for cache in machine.caches}
    found = {
        "cdp": "L3CODE" in names,
        "cdpl2": "L2CODE" in names,
        "mba_MBps": machine.bandwidth is not None and machine.bandwidth.kind == "mib",
    }
    return [option for option, is_on in found.items() if is_on]


def _cache(cache: Cache) -> CacheReport:
    return {
        "name": cache.name,
        "ways": cache.mask.bit_count(),
        "mask": f"{cache.mask:x}",
        "least_ways": cache.least_bits,
        "shareable": f"{cache.shareable:x}",
        "is_sparse": cache.is_sparse,
        "domains": list(cache.domains),
        "closids": cache.closids,
    }


def _bandwidth(machine: Machine) -> BandwidthReport | None:
    found = machine.bandwidth
    if found is None:
        return None
    return {
        "unit": found.kind,
        "least": found.least,
        "step": found.step,
        "most": found.most,
        "domains": list(found.domains),
        "closids": found.closids,
    }


def _monitoring(machine: Machine) -> MonitoringReport | None:
    found = machine.monitoring
    if found is None:
        return None
    return {"features": list(found.features), "rmids": found.rmids, "domains": list(found.domains)}


def _counters(perf: KernelPerf, devices: Path) -> CounterReport:
    """Of each counter outside of resctrl why it cannot be used, empty if it can."""
    controllers, why = open_controllers(perf, devices)
    if controllers is not None:
        controllers.close()
    return {"instructions": why_no_instructions(perf), "memory_controllers": why}


def _groups(root: Path, machine: Machine) -> Iterator[GroupReport]:
    """The root group, ours, those of others. A group that vanishes while we look is left out."""
    groups = Groups(root)
    kinds: dict[str, GroupKind] = {
        f"{PREFIX}{name}": "shared" if name == SHARED else "stray" if job_of(name) is None else "job"
        for name in groups.names()
    }
    yield _group(root, "", machine, "root")
    for name, kind in (kinds | dict.fromkeys(groups.foreign(), OTHER)).items():
        with suppress(SnsError):
            yield _group(root, name, machine, kind)


def _group(root: Path, name: str, machine: Machine, kind: GroupKind) -> GroupReport:
    directory = root / name
    shown = _shown(directory)
    return {
        "name": printable(name),
        "kind": kind,
        "tasks": len(_text(directory / "tasks").split()),
        "masks": {str(domain): f"{mask:x}" for domain, mask in masks(machine, shown).items()},
        "schemata": {
            resource: {str(domain): f"{value:x}" if resource in CACHES else value for domain, value in values.items()}
            for resource, values in shown.items()
        },
        "occupied_bytes": _occupied_bytes(directory),
    }


def _shown(directory: Path) -> Schemata:
    """The schemata of a group; none where the kernel shows no values (a pseudo-locked group that is not set up yet)."""
    text = _text(directory / "schemata")
    with suppress(SnsError):
        return parse(text)
    return {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as problem:
        raise SnsError(f"{path} cannot be read: {problem}") from None


def _occupied_bytes(directory: Path) -> int | None:
    """Bytes of the group in the L3 caches; None where nobody counts them."""
    files = MonitoringFiles(directory, None, lambda _: None)
    try:
        occupied = [traffic.occupied for traffic in files.read().values()]
    finally:
        files.close()
    known = [each for each in occupied if each is not None]
    return sum(known) if known and len(known) == len(occupied) else None
