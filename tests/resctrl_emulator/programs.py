"""Emulated programs: how fast they run, and what they count, by the ways and the bandwidth that the tree leaves them.

The law is that of the simulator (`slurm_sns.sim.progress.contention`), in each domain of the last-level cache:

    speed = kept(w) * t(u_alone) / t(u)

1. Ways. A program has those that its group's mask allows. Ways that several programs may use are divided by traffic,
   as the simulator divides an unpartitioned cache.
2. Bandwidth. A value of MB caps what the programs of a group move together: each gets a part by its traffic, and takes
   as much longer as it has to. The neighbours see the capped traffic.
3. A program on several domains runs at the speed of its slowest one.

A profile's curves are per node: a program's part of the bandwidth in a domain is the part of its cores there.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from resctrl_emulator.groups import Group
from resctrl_emulator.machines import BandwidthKind, BandwidthType
from resctrl_emulator.rules import Tree
from resctrl_emulator.schemata import cap_gbps
from slurm_sns.policies.profile import Run
from slurm_sns.sim.progress.contention import AGREED_WAYS, MOST_ROUNDS, Traffic, settled, traffic_of

#: So many programs whose tasks have ended are still shown, with what they have counted.
MOST_ENDED = 64
#: The lines of schemata that the ways of a program follow: its data. Its code is small.
DATA_LINES = ("L3", "L3DATA")


@dataclass(eq=False)
class Program:
    """A program that runs: `cores` by last-level cache; its first living task says in which group it is.

    `work_s` is the time that it takes alone with all ways; with infinity it runs until it is stopped.
    """

    name: str
    run: Run
    tasks: tuple[int, ...]
    cores: Mapping[int, int]
    work_s: float = inf
    done_s: float = 0.0
    instructions: float = 0.0
    cycles: float = 0.0

    def share(self, domain: int) -> float:
        """The part of its cores at this last-level cache."""
        return self.cores.get(domain, 0) / sum(self.cores.values())

    @property
    def left_s(self) -> float:
        """The rest of its work."""
        return max(0.0, self.work_s - self.done_s)


class Rate(NamedTuple):
    """How fast a program runs now: speed 1 is alone with all ways; ways and GB/s by domain."""

    speed: float
    ipc: float
    ways: Mapping[int, float]
    gbps: Mapping[int, float]


class _Throttled(NamedTuple):
    """Traffic that MB caps: the program's work takes as much longer as the cap asks."""

    traffic: Traffic
    cap_gbps: float

    @property
    def idle_gbps(self) -> float:
        return min(self.traffic.idle_gbps, self.cap_gbps)

    def time_at(self, utilisation: float) -> float:
        """How long its work takes, relative to an idle memory."""
        least = self.traffic.idle_gbps / self.cap_gbps if self.cap_gbps else inf
        return max(self.traffic.time_at(utilisation), least)

    def gbps_at(self, utilisation: float) -> float:
        """The bandwidth that it uses."""
        return self.traffic.idle_gbps / self.time_at(utilisation)


class _Here(NamedTuple):
    """A program in one domain."""

    speed: float
    ways: float
    gbps: float


class Programs:
    """The programs of one machine."""

    def __init__(self, tree: Tree) -> None:
        """None yet."""
        self._tree = tree
        self._machine = tree.machine
        self._programs: list[Program] = []

    def start(self, program: Program) -> Program:
        """The program begins to run, beside the others. Of those whose tasks have ended, the last ones are kept."""
        ended = [each for each in self._programs if all(self._tree.tasks.group_of(task) is None for task in each.tasks)]
        forgotten = ended[:-MOST_ENDED]
        self._programs = [each for each in self._programs if each not in forgotten]
        self._programs.append(program)
        return program

    def stop(self, task_id: int) -> None:
        """The program of this task ends."""
        self._programs = [program for program in self._programs if task_id not in program.tasks]

    def of(self, task_id: int) -> Program | None:
        """The program of this task."""
        return next((program for program in self._programs if task_id in program.tasks), None)

    def all(self) -> tuple[Program, ...]:
        """All programs, also those that have done their work."""
        return tuple(self._programs)

    def rates(self) -> dict[Program, Rate]:
        """How fast each program runs now; those that have ended are not in it."""
        self._see_tasks()
        return self._rates(self._running())

    def advance(self, seconds: float) -> None:
        """Let so much time pass: nothing changes in the tree meanwhile, but programs may end."""
        self._see_tasks()
        rest_s = seconds
        while rest_s > 0:
            running = self._running()
            rates = self._rates(running)
            ends_s = [program.left_s / rate.speed for program, rate in rates.items() if rate.speed]
            step_s = min([rest_s, *ends_s])
            for program, rate in rates.items():
                self._count(program, running[program], rate, step_s)
                if rate.speed and program.left_s / rate.speed <= step_s:
                    program.done_s = program.work_s
                else:
                    program.done_s += rate.speed * step_s
            rest_s -= step_s
            if not rates:
                break
        self._show_occupancy()

    def _show_occupancy(self) -> None:
        """A program fills the ways that it has, at once."""
        if self._tree.counters is None:
            return
        occupancy: defaultdict[tuple[int, int], float] = defaultdict(float)
        running = self._running()
        for program, rate in self._rates(running).items():
            for domain, ways in rate.ways.items():
                occupancy[running[program].rmid or 0, domain] += ways * self._machine.llc_way_bytes
        self._tree.counters.set_occupancy(dict(occupancy))

    def _count(self, program: Program, group: Group, rate: Rate, seconds: float) -> None:
        cycles = sum(program.cores.values()) * self._machine.frequency_ghz * 1e9 * seconds
        program.cycles += cycles
        program.instructions += cycles * rate.ipc
        if self._tree.counters is not None:
            for domain, gbps in rate.gbps.items():
                self._tree.counters.add(group.rmid or 0, domain, gbps * 1e9 * seconds)

    def _see_tasks(self) -> None:
        """Once for each access: to look at all tasks is most of what it costs."""
        if self._programs:
            self._tree.tasks.refresh()

    def _running(self) -> dict[Program, Group]:
        running = {}
        for program in self._programs:
            groups = (self._tree.tasks.group_of(task_id) for task_id in program.tasks)
            group = next((group for group in groups if group is not None), None)
            if group is not None and program.left_s > 0:
                running[program] = group
        return running

    def _rates(self, running: Mapping[Program, Group]) -> dict[Program, Rate]:
        places: dict[Program, dict[int, _Here]] = {program: {} for program in running}
        for domain in self._machine.llc_domains:
            here = {program: group for program, group in running.items() if program.cores.get(domain)}
            for program, place in zip(here, self._domain(domain, here), strict=True):
                places[program][domain] = place
        rates = {}
        for program, by_domain in places.items():
            speed = min(place.speed for place in by_domain.values())
            rates[program] = Rate(
                speed,
                program.run.full_ipc * speed,
                {domain: place.ways for domain, place in by_domain.items()},
                {
                    domain: place.gbps * speed / place.speed if place.speed else 0.0
                    for domain, place in by_domain.items()
                },
            )
        return rates

    def _domain(self, domain: int, running: Mapping[Program, Group]) -> list[_Here]:
        """Each program's speed, ways and GB/s in this domain, as if it ran nowhere else."""
        peak_gbps = self._machine.peak_gbps
        programs = list(running)
        closids = [group.closid for group in running.values()]

        def throttled(ways: Sequence[float]) -> list[_Throttled]:
            traffics = [
                traffic_of(program.run.bandwidth_at(held) * program.share(domain), program.cores[domain], peak_gbps)
                for program, held in zip(programs, ways, strict=True)
            ]
            return self._throttled(domain, closids, traffics)

        def moved(ways: Sequence[float]) -> list[float]:
            together = throttled(ways)
            utilisation = settled(together, peak_gbps)
            return [each.gbps_at(utilisation) for each in together]

        ways = divided([self._mask(closid, domain) for closid in closids], moved)
        together = throttled(ways)
        utilisation = settled(together, peak_gbps)
        places = []
        for program, held, each in zip(programs, ways, together, strict=True):
            alone = each.traffic.time_at(settled((each.traffic,), peak_gbps))
            speed = program.run.kept_at(held) * alone / each.time_at(utilisation)
            places.append(_Here(speed, held, each.gbps_at(utilisation)))
        return places

    def _throttled(self, domain: int, closids: Sequence[int], traffics: Sequence[Traffic]) -> list[_Throttled]:
        asked: defaultdict[int, float] = defaultdict(float)
        for closid, traffic in zip(closids, traffics, strict=True):
            asked[closid] += traffic.idle_gbps
        return [
            _Throttled(
                traffic,
                self._cap_gbps(closid, domain) * traffic.idle_gbps / asked[closid] if asked[closid] else inf,
            )
            for closid, traffic in zip(closids, traffics, strict=True)
        ]

    def _cap_gbps(self, closid: int, domain: int) -> float:
        for resource in self._tree.resources:
            if isinstance(resource.kind, BandwidthType):
                value = resource.values[closid][domain]
                if value >= resource.default:
                    return inf
                kind = BandwidthKind.MIB if self._machine.is_in_mib else resource.kind.kind
                return cap_gbps(kind, value, self._machine.peak_gbps)
        return inf

    def _mask(self, closid: int, domain: int) -> int:
        for resource in self._tree.resources:
            if resource.name in DATA_LINES:
                return resource.values[closid][domain]
        return (1 << self._machine.llc_ways) - 1


def divided(masks: Sequence[int], moved: Callable[[Sequence[float]], Sequence[float]]) -> list[float]:
    """The ways that each program holds: its own, and of those it may share a part by its traffic.

    `moved`: the GB/s of each program with so many ways. Programs with one and the same mask hold what
    `contention.unpartitioned` gives them.
    """
    regions: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for bit in range(max((mask.bit_length() for mask in masks), default=0)):
        users = tuple(at for at, mask in enumerate(masks) if mask >> bit & 1)
        if users:
            regions[users] += 1
    ways = _held(regions, [1.0] * len(masks))
    if all(len(users) == 1 for users in regions):
        return ways
    for _ in range(MOST_ROUNDS):
        gbps = moved(ways)
        if not sum(gbps):
            break
        next_ways = [(new + old) / 2 for new, old in zip(_held(regions, gbps), ways, strict=True)]
        change = max(abs(new - old) for new, old in zip(next_ways, ways, strict=True))
        ways = next_ways
        if change < AGREED_WAYS:
            break
    return ways


def _held(regions: Mapping[tuple[int, ...], int], weights: Sequence[float]) -> list[float]:
    """Each program's ways when the users of a region have parts of it by these weights."""
    ways = [0.0] * len(weights)
    for users, count in regions.items():
        total = sum(weights[at] for at in users)
        for at in users:
            ways[at] += count * (weights[at] / total if total else 1 / len(users))
    return ways
