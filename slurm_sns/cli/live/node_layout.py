"""The layout of a node for some jobs, and what would be written to bring it into force: nothing is written.

The code is the one that writes (node/apply.py), on `DryRun`, which keeps each change to itself.
"""

import errno
import fcntl
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from slurm_sns.cli.live.node_types import LayoutGroup, LayoutJson, TreeChange
from slurm_sns.errors import BadInput
from slurm_sns.node.apply import apply, shapes, standing
from slurm_sns.node.group_writes import BandwidthNeeds, Draw, job_of, masks
from slurm_sns.node.resctrl.groups import PREFIX, Files, Groups
from slurm_sns.node.resctrl.machine import Machine, discover
from slurm_sns.node.resctrl.schemata import Schemata, lines, parse
from slurm_sns.node.ways.layout import DomainLayouts, Need, domain_layouts

#: More jobs than any machine has CLOSIDs or threads.
MOST_JOBS = 4096
FORM = "JOB:WAYS, JOB:WAYS:GBPS or JOB:WAYS:GBPS:CORES, separated by commas, such as 4711:4,4712:8:40.5:14+0"
_JOB = re.compile(
    r"(?P<job>[1-9][0-9]{0,9}):(?P<ways>[0-9]{1,2})(?::(?P<gbps>[0-9]{1,6}(?:\.[0-9]{1,6})?)"
    r"(?::(?P<cores>[0-9]{1,5}(?:\+[0-9]{1,5})*))?)?"
)


class AskedJob(NamedTuple):
    """A job: the ways and the GB/s that it is to own, and its cores in each cache domain; none given: all alike."""

    job_id: int
    ways: int
    gbps: float
    cores: tuple[int, ...]


def asked_jobs(text: str) -> list[AskedJob]:
    """The jobs of `--jobs`, in their order, which is that of their arrival.

    Raises:
        BadInput: the text has another form, or names a job twice.
    """
    words = text.split(",", MOST_JOBS) if text else []
    if len(words) > MOST_JOBS:
        raise BadInput(f"--jobs names more than {MOST_JOBS} jobs; valid: at most as many")
    jobs: dict[int, AskedJob] = {}
    for word in words:
        found = _JOB.fullmatch(word)
        if found is None:
            shown = word if len(word) <= 60 else f"{word[:57]}..."
            raise BadInput(f"--jobs has {shown!r}; valid: {FORM}")
        job_id = int(found["job"])
        if job_id in jobs:
            raise BadInput(f"--jobs names job {job_id} twice; valid: each once")
        cores = tuple(map(int, (found["cores"] or "").split("+"))) if found["cores"] else ()
        jobs[job_id] = AskedJob(job_id, int(found["ways"]), float(found["gbps"] or 0), cores)
    return list(jobs.values())


def planned(root: Path, jobs: Sequence[AskedJob], shared_ways: int, bandwidth_gbps: float | None) -> LayoutJson:
    """The layout of these jobs, which are all jobs on the node with ways or bandwidth of their own, as plain values.

    Raises:
        BadInput: the cores of a job do not fit the machine, or a needed `bandwidth_gbps` is not given.
        SnsError: the tree cannot be read.
    """
    machine = discover(root)
    files = DryRun(machine)
    groups = Groups(root, files)
    cores = {job.job_id: _cores(job, _domains(machine)) for job in jobs}
    needs = [
        Need(job.job_id, job.ways, place, tuple(domain for domain, count in cores[job.job_id].items() if count))
        for place, job in enumerate(jobs)
    ]
    bandwidth = BandwidthNeeds(
        {job.job_id: Draw(job.gbps, cores[job.job_id]) for job in jobs}, _peak(machine, jobs, bandwidth_gbps)
    )
    with groups.lock():
        before = standing(machine, groups, {job.job_id: job.ways for job in jobs})
        layouts = domain_layouts(before, needs, shared_ways, shapes(machine, groups))
        applied = apply(groups, machine, layouts.layouts, bandwidth)
        domains = _by_domain(machine, groups, files.names(groups), layouts)
    return {
        "root": str(root),
        "is_changing": files.is_changing,
        "shared_ways": shared_ways,
        "mask": _digits(machine.last_level[0].mask if machine.last_level else None),
        "domains": domains,
        "without": {str(job_id): why for job_id, why in {**layouts.without, **applied.without}.items()},
        "moved": sorted({job_id for each in layouts.layouts.values() for job_id in each.moved}),
        "changes": files.changes,
    }


class DryRun(Files):
    """The tree as it would be after the changes so far, which are kept in `changes` and not made."""

    def __init__(self, machine: Machine) -> None:
        self.changes: list[TreeChange] = []
        #: Another program holds the lock: what was read may be half of a change.
        self.is_changing = False
        self._schemata: dict[Path, Schemata] = {}
        self._made: set[Path] = set()
        self._removed: set[Path] = set()
        #: What the kernel gives a new group: everything.
        self._all: Schemata = {cache.name: dict.fromkeys(cache.domains, cache.mask) for cache in machine.caches}
        if machine.bandwidth is not None:
            self._all["MB"] = dict.fromkeys(machine.bandwidth.domains, machine.bandwidth.most)

    def read(self, path: Path) -> str:
        """The file as it would be."""
        group = path.parent
        if group in self._removed:
            raise FileNotFoundError(errno.ENOENT, "the group is removed", str(path))
        if path.name == "schemata" and group in self._schemata:
            return lines(self._schemata[group])
        return "" if group in self._made else super().read(path)

    def write(self, path: Path, text: str) -> None:
        """Keep the write; threads that go to the same group are counted."""
        group = path.parent
        if path.name == "tasks":
            self._move(group.name)
            return
        shown = parse(self.read(path))
        self._schemata[group] = {name: {**held, **parse(text).get(name, {})} for name, held in shown.items()}
        self.changes.append({"do": "write", "group": group.name, "schemata": text})

    def make_directory(self, path: Path) -> None:
        """Keep that a group is made."""
        if path in self._made or path.is_dir():
            raise FileExistsError(errno.EEXIST, "the group exists", str(path))
        self._made.add(path)
        self._schemata[path] = {name: dict(values) for name, values in self._all.items()}
        self.changes.append({"do": "make", "group": path.name})

    def remove_directory(self, path: Path) -> None:
        """Keep that a group is removed."""
        self._removed.add(path)
        self.changes.append({"do": "remove", "group": path.name})

    def lock(self, descriptor: int) -> None:
        """Lock out no other reader, and wait for nobody: nothing is changed."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.is_changing = True

    def names(self, groups: Groups) -> list[str]:
        """Our groups as they would be: the shared one first, then the jobs' by number."""
        made = {path.name.removeprefix(PREFIX) for path in self._made}
        removed = {path.name.removeprefix(PREFIX) for path in self._removed}
        return sorted({*groups.names(), *made} - removed, key=lambda name: job_of(name) or 0)

    def _move(self, group: str) -> None:
        last = self.changes[-1] if self.changes else None
        if last is not None and last["do"] == "move" and last["group"] == group:
            last["threads"] += 1
        else:
            self.changes.append({"do": "move", "group": group, "threads": 1})


def _domains(machine: Machine) -> list[int]:
    found = {domain for cache in machine.last_level for domain in cache.domains}
    return sorted(found.union(machine.bandwidth.domains if machine.bandwidth else ()))


def _cores(job: AskedJob, domains: Sequence[int]) -> dict[int, int]:
    """The job's cores by cache domain."""
    if not job.cores:
        return dict.fromkeys(domains, 1)
    if len(job.cores) != len(domains) or not any(job.cores):
        listed = ", ".join(map(str, domains))
        raise BadInput(
            f"--jobs: job {job.job_id} has cores {'+'.join(map(str, job.cores))}; valid: its cores in each of the "
            f"{len(domains)} cache domains ({listed}), such as {'+'.join(['8'] * len(domains))}, not all 0"
        )
    return dict(zip(domains, job.cores, strict=True))


def _peak(machine: Machine, jobs: Sequence[AskedJob], bandwidth_gbps: float | None) -> float:
    """What each cache domain's memory moves at most."""
    if machine.bandwidth is None:
        return math.inf
    if bandwidth_gbps is not None:
        return bandwidth_gbps / len(machine.bandwidth.domains)
    asking = next((job for job in jobs if job.gbps > 0), None)
    if asking is not None and machine.bandwidth.kind == "percent":
        raise BadInput(
            f"--jobs: job {asking.job_id} asks for {asking.gbps:g} GB/s, and this machine limits by percent; "
            "valid: with --bandwidth-gbps, the memory bandwidth of the whole node"
        )
    return math.inf


def _by_domain(
    machine: Machine, groups: Groups, names: Sequence[str], layouts: DomainLayouts
) -> dict[str, dict[str, LayoutGroup]]:
    """What each group would have, by cache domain: the ways that it owns, those that it may use, its MB value."""
    shown = {name: groups.read(name) for name in names}
    found: dict[str, dict[str, LayoutGroup]] = {}
    for domain in _domains(machine):
        owned = layouts.layouts[domain].guaranteed if domain in layouts.layouts else {}
        found[str(domain)] = {
            name: {
                "guaranteed": _digits(owned.get(job_of(name) or 0)),
                "granted": _digits(masks(machine, schemata).get(domain)),
                "bandwidth": schemata.get("MB", {}).get(domain),
            }
            for name, schemata in shown.items()
        }
    return found


def _digits(mask: int | None) -> str | None:
    return None if mask is None else f"{mask:x}"
