"""The writes to the schemata of our groups that bring layouts and bandwidth into force, in their order. Pure.

Only what differs is written. A group's masks of several domains, its code and data masks (CDP) and its bandwidth go
into one write where the orders of the domains allow that. In each cache domain the order keeps every guarantee. Between
any two writes
- no group has fewer ways than its guarantee (or than it had before, if that was less), and
- no write gives a group a way that another group still has.

So a process may be killed anywhere.

A group whose new ways are free is written first; one that only gives ways back is always such a group. While contiguous
masks keep their order along the cache, there is always a next one: a group that waits for its right neighbour waits for
it to move right, and that one can only wait for its own right neighbour. Where groups wait for each other in a circle:
1. Each gives back what it is to lose and can spare. With that, sparse masks need no more, as long as no job moves.
2. Those contiguous masks that fit into the free ways jump over the others, one at a time. A mask that does not fit into
   all free ways together can never pass another such mask.
3. Then a group takes ways that another one still has (`Step.overlaps`), until the next writes, a fraction of a
   millisecond later.

Being moved for a moment costs a job next to nothing: its lines in the old ways still answer.

The bandwidth of a job is limited to what it needs, rounded up to the machine's step, so that the others get what they
need; a job without a need and the shared group are not limited. Assumptions:
- All cores of a job draw alike: a domain carries the part of its demand that its cores there are of all its cores.
- Intel's percentage throttles each core, it does not divide the domain's bandwidth (resctrl.rst, "Memory bandwidth
  Allocation and monitoring"). 100 % is taken to be the domain's peak; few cores draw less than that.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from slurm_sns.node.resctrl.machine import Bandwidth, Machine
from slurm_sns.node.resctrl.schemata import Schemata
from slurm_sns.node.ways.layout import Layout, Shape
from slurm_sns.node.ways.masks import is_usable, spans, union, window


class Part(NamedTuple):
    """One group's ways: the mask in force, 0 for a group without tasks yet; the mask to reach; ways it always keeps."""

    now: int
    then: int
    ways: int


class Step(NamedTuple):
    """One write: the group and its mask. `overlaps` says that another group still has some of these ways."""

    name: str
    mask: int
    overlaps: bool = False


def transition(parts: Mapping[str, Part], shape: Shape) -> list[Step]:
    """The writes in their order; one for each group that changes, more where groups wait for each other in a circle.

    Masks in force may overlap (after a crash between making a group and its first write, or when others wrote them).
    Where new masks overlap, the layout means it (ways/layout.py, `shared_ways` 0): that is not an overlap here.
    """
    return list(_Transition(parts, shape).run())


class _Transition:
    """The masks in force after each step."""

    def __init__(self, parts: Mapping[str, Part], shape: Shape) -> None:
        self._shape, self._mask = shape, shape.mask
        self._now = {name: part.now for name, part in parts.items()}
        self._then = {name: part.then for name, part in parts.items()}
        # A group that has less than its guarantee now cannot keep more than it has.
        self._keeps = {name: min(part.ways, part.now.bit_count()) for name, part in parts.items()}

    def run(self) -> Iterator[Step]:
        yield from self._allowed()
        for detour in (self._given_back, self._reordered):
            if self._waiting():
                yield from detour()
                yield from self._allowed()
        while self._waiting():
            yield self._forced()
            yield from self._allowed()

    def _waiting(self) -> list[str]:
        return [name for name, mask in self._now.items() if mask != self._then[name]]

    def _allowed(self) -> Iterator[Step]:
        """Groups whose new ways are free, until there is none; those that only give ways back come first.

        None of them takes ways that another one of them is to get, so all are written before the next look.
        """
        while free := [name for name in self._waiting() if not self._taken(name, self._then[name])]:
            for name in sorted(free, key=lambda name: self._then[name] & ~self._now[name] != 0):
                yield self._write(name, self._then[name])

    def _given_back(self) -> Iterator[Step]:
        """Each waiting group gives back the ways that it is to lose, if what is left is enough and a valid mask."""
        for name in self._waiting():
            left = self._now[name] & self._then[name]
            is_valid = is_usable(left, self._shape.least_bits, is_sparse=self._shape.is_sparse)
            if is_valid and left.bit_count() >= self._keeps[name] and left != self._now[name]:
                yield self._write(name, left)

    def _reordered(self) -> Iterator[Step]:
        """Bring contiguous masks into their new order along the cache, if that is possible without an overlap."""
        order = sorted((name for name, mask in self._now.items() if mask), key=lambda name: _lowest(self._now[name]))
        goal = sorted(order, key=lambda name: _lowest(self._then[name]))
        free = self._mask.bit_count() - sum(self._keeps[name] for name in order)
        fixed = {name for name in order if self._keeps[name] > free}
        in_one_piece = all(len(spans(mask)) == 1 for name in order for mask in (self._now[name], self._then[name]))
        if not in_one_piece or [name for name in order if name in fixed] != [name for name in goal if name in fixed]:
            return
        while order != goal:
            place = next(index for index, name in enumerate(goal) if order[index] != name)
            if goal[place] in fixed:  # then the one in its place is not, and jumps over it
                jumper, place = order[place], order.index(goal[place])
            else:
                jumper = goal[place]
            yield from self._jump(order, jumper, place)
            order.remove(jumper)
            order.insert(place, jumper)

    def _jump(self, order: Sequence[str], jumper: str, place: int) -> Iterator[Step]:
        """Put the jumper, which comes from either side, between the groups before and after the place.

        Where the gap there is too small, all are pushed apart, each side with the jumper if it comes from there.
        """
        rest = [name for name in order if name != jumper]
        before, after, ways = rest[:place], rest[place:], self._keeps[jumper]
        start, end = self._gap(before, after)
        if end - start < ways:
            comes_from_before = order.index(jumper) < place
            yield from self._pushed_down(order[: place + 1] if comes_from_before else before)
            yield from self._pushed_up(after if comes_from_before else order[place:])
            start, end = self._gap(before, after)
        yield self._write(jumper, window(end - ways if order.index(jumper) < place else start, ways))

    def _gap(self, before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
        """From where to where there is nobody but perhaps the jumper."""
        start = max((self._now[name].bit_length() for name in before), default=_lowest(self._mask))
        return start, min((_lowest(self._now[name]) for name in after), default=self._mask.bit_length())

    def _pushed_down(self, names: Sequence[str]) -> Iterator[Step]:
        start = _lowest(self._mask)
        for name in names:
            if self._now[name] != (run := window(start, self._keeps[name])):
                yield self._write(name, run)
            start += self._keeps[name]

    def _pushed_up(self, names: Sequence[str]) -> Iterator[Step]:
        start = self._mask.bit_length()
        for name in reversed(names):
            start -= self._keeps[name]
            if self._now[name] != (run := window(start, self._keeps[name])):
                yield self._write(name, run)

    def _forced(self) -> Step:
        """The write with the smallest overlap; a group without tasks, which is in nobody's way, comes last."""
        occupied = [name for name in self._waiting() if self._now[name]] or self._waiting()
        name = min(occupied, key=lambda name: self._taken(name, self._then[name]).bit_count())
        return self._write(name, self._then[name])

    def _write(self, name: str, mask: int) -> Step:
        step = Step(name, mask, overlaps=self._taken(name, mask) != 0)
        self._now[name] = mask
        return step

    def _taken(self, name: str, mask: int) -> int:
        """The ways that the group does not have yet and that others still have, unless both may have them."""
        then = self._then[name]
        held = union(held & ~(self._then[other] & then) for other, held in self._now.items() if other != name)
        return mask & ~self._now[name] & held


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


#: The group of all jobs without ways of their own, of pass-through jobs and of the system.
SHARED = "shared"
_JOB = "job"


class Write(NamedTuple):
    """One write to the schemata of one group. `overlaps`: as in `Step`."""

    name: str
    schemata: Schemata
    overlaps: bool = False


class Draw(NamedTuple):
    """The memory bandwidth that a job needs on this node, in GB/s, and how many of its cores each domain has."""

    gbps: float
    cores: Mapping[int, int]


class BandwidthNeeds(NamedTuple):
    """What each job needs, and the memory bandwidth of one cache domain in GB/s."""

    jobs: Mapping[int, Draw]
    peak_gbps: float

    def values(self, bandwidth: Bandwidth, job_id: int | None) -> dict[int, int]:
        """The values of the MB line of a job's group, or of the shared group (None), by domain."""
        unlimited = dict.fromkeys(bandwidth.domains, bandwidth.most)
        if job_id is None or job_id not in self.jobs:
            return unlimited
        gbps, cores = self.jobs[job_id]
        here = {domain: cores[domain] for domain in bandwidth.domains if cores.get(domain)}
        parts = {domain: gbps * count / sum(cores.values()) for domain, count in here.items()}
        return unlimited | {domain: bandwidth.value(part, self.peak_gbps) for domain, part in parts.items()}


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
    beside = [name for name in held if job_of(name) not in layout.guaranteed]
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
