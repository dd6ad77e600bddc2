"""The writes to the schemata of our groups that bring layouts and bandwidth into force, in their order. Pure.

Only what differs is written. In each domain the order is that of transition.py; a group's masks of several domains, its
code and data masks (CDP) and its bandwidth go into one write where the orders allow that.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from slurm_sns.node.bandwidth_needs import BandwidthNeeds
from slurm_sns.node.resctrl.machine import Machine
from slurm_sns.node.resctrl.schemata import Schemata
from slurm_sns.node.transition import Part, Step, transition
from slurm_sns.node.ways.layout import Layout, Shape
from slurm_sns.node.ways.masks import union

#: The group of all jobs without ways of their own, of pass-through jobs and of the system.
SHARED = "shared"
_JOB = "job"


class Write(NamedTuple):
    """One write to the schemata of one group. `overlaps`: as in transition.Step."""

    name: str
    schemata: Schemata
    overlaps: bool = False


def group_of(job_id: int) -> str:
    """The name of a job's group, without the prefix."""
    return f"{_JOB}{job_id}"


def job_of(name: str) -> int | None:
    """The job of a group; None for the shared group and for a name that is not ours."""
    number = name.removeprefix(_JOB)
    return int(number) if name.startswith(_JOB) and number.isdecimal() else None


def masks(machine: Machine, shown: Schemata) -> dict[int, int]:
    """The ways of a group in the last-level cache by domain, for code or data."""
    domains = sorted({domain for cache in machine.last_level for domain in shown.get(cache.name, {})})
    return {
        domain: union(shown.get(cache.name, {}).get(domain, 0) for cache in machine.last_level) for domain in domains
    }


def group_writes(
    machine: Machine,
    layouts: Mapping[int, tuple[Layout, Shape]],
    bandwidth: BandwidthNeeds | None,
    now: Mapping[str, Schemata],
    new: Set[str],
) -> list[Write]:
    """The writes for the groups of `now`, which shows what is in force; nobody runs in those of `new` yet."""
    sequences = {domain: _sequence(machine, domain, planned, now, new) for domain, planned in layouts.items()}
    writes = [
        Write(name, {cache.name: by_domain for cache in machine.last_level}, overlaps)
        for name, by_domain, overlaps in _merged(sequences)
    ]
    last = {write.name: write for write in writes}
    for name, shown in now.items():
        limits = _limits(machine, bandwidth, name, shown)
        if limits and name in last:
            last[name].schemata["MB"] = limits
        elif limits:
            writes.append(Write(name, {"MB": limits}))
    return writes


def _sequence(
    machine: Machine, domain: int, planned: tuple[Layout, Shape], now: Mapping[str, Schemata], new: Set[str]
) -> list[Step]:
    """The steps in one domain."""
    layout, shape = planned
    held = {name: 0 if name in new else masks(machine, shown).get(domain, 0) for name, shown in now.items()}
    parts = {name: _part(layout, name, mask) for name, mask in held.items()}
    # A job without ways here has what the shared group has: it owns none, or no core of it is here. Once it has that,
    # it is written together with the shared group.
    beside = [name for name in held if not _owns(layout, name)]
    together = [name for name in beside if name != SHARED and held[name] == held.get(SHARED)]
    steps = [
        step._replace(name=name)
        for step in transition({name: part for name, part in parts.items() if name not in together}, shape)
        for name in ([*together, SHARED] if step.name == SHARED else [step.name])
    ]
    # Somebody may have given code and data different masks: the last word is ours.
    settled = {step.name for step in steps}
    uneven = [name for name in parts if name not in settled and _is_uneven(machine, now[name], domain)]
    return steps + [Step(name, parts[name].then) for name in uneven]


def _part(layout: Layout, name: str, mask: int) -> Part:
    """What a group with this mask is to have, and the ways that it keeps on the way there."""
    job_id = job_of(name)
    if job_id is not None and job_id in layout.guaranteed:
        return Part(mask, layout.granted[job_id], layout.guaranteed[job_id].bit_count())
    return Part(mask, layout.shared, layout.shared.bit_count())


def _owns(layout: Layout, name: str) -> bool:
    return job_of(name) in layout.guaranteed


def _is_uneven(machine: Machine, shown: Schemata, domain: int) -> bool:
    return len({shown.get(cache.name, {}).get(domain) for cache in machine.last_level}) > 1


def _merged(sequences: Mapping[int, Sequence[Step]]) -> Iterator[tuple[str, dict[int, int], bool]]:
    """The steps of several domains as few writes: group, masks by domain, overlaps. Each domain keeps its order."""
    left = {domain: list(reversed(steps)) for domain, steps in sequences.items() if steps}
    while left:
        [(name, _)] = Counter(steps[-1].name for steps in left.values()).most_common(1)
        taken = {domain: steps.pop() for domain, steps in left.items() if steps[-1].name == name}
        yield name, {domain: step.mask for domain, step in taken.items()}, any(step.overlaps for step in taken.values())
        left = {domain: steps for domain, steps in left.items() if steps}


def _limits(machine: Machine, needs: BandwidthNeeds | None, name: str, shown: Schemata) -> dict[int, int]:
    """The bandwidth values of a group that differ from those in force."""
    if machine.bandwidth is None or needs is None:
        return {}
    wanted = needs.values(machine.bandwidth, job_of(name))
    in_force = shown.get("MB", {})
    return {domain: value for domain, value in wanted.items() if in_force.get(domain) != value}
