"""How fast jobs run beside each other on one node: the contention model.

The speed of a job is that of its profile's run, alone on such nodes with all ways, times what neighbours leave of it:

    speed = kept(w) * t(u_alone) / t(u)

1. Ways. With partitions a job has the ways it was promised, and unowned ways are given to the jobs there in equal
   shares, the remainder one each, oldest first (Spread-n-Share, section 4.4). Without partitions the cache belongs to
   who fills it: a job has the share of the ways that it has of the traffic, the point where both agree (a rule as old
   as Suh, Devadas and Rudolph's, 2004; off by 0.9 of 40 MB on the measured co-runs of sns-spec). kept(w) is its IPC
   with w ways over its best (the IPC-LLC curve).
2. Bandwidth. With w ways a job moves what its BW-LLC curve says when it is alone; `saturation` turns this into the
   share of its time in memory, and gives u, the use of the node's memory by all of them. t(u) is how long its work
   takes then, t(u_alone) how long when it is alone: so a job without neighbours has the speed of its profile.
3. A job on several nodes runs at the speed of its slowest.

A job without profile slows nobody down and is not slowed down. Nothing else is shared: no network, no clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from slurm_sns.policies.profile import Run
from slurm_sns.policies.sns.parameters import PAPER_BANDWIDTH_GBPS
from slurm_sns.sim.progress.bandwidth_saturation import Traffic, settled, traffic_of

#: Ways and traffic agree when a round moves no job's ways by more; each round goes half of the way.
AGREED_WAYS = 1e-6
MOST_ROUNDS = 100
#: Nodes with the same jobs on them are looked up; a simulation has few kinds.
KINDS_KEPT = 1 << 16


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job on one node: its profile's run, its cores there, and the ways it was promised."""

    run: Run
    cores: int
    ways: int = 0


@dataclass(frozen=True, slots=True)
class SharedNode:
    """What a node shares out; with 0 ways its cache slows nobody down.

    `gives_spare`: unowned ways are given to the jobs that are there.
    """

    ways: int
    bandwidth_gbps: float
    is_partitioned: bool = True
    gives_spare: bool = True

    @classmethod
    def of(cls, ways: int, bandwidth_gbps: float, *, is_partitioned: bool, gives_spare: bool = True) -> "SharedNode":
        """A node as a list of nodes gives it: no bandwidth means the paper's."""
        return cls(ways, bandwidth_gbps or PAPER_BANDWIDTH_GBPS, is_partitioned, gives_spare)


@lru_cache(KINDS_KEPT)
def speeds(jobs: tuple[Occupant, ...], node: SharedNode) -> tuple[float, ...]:
    """The speed of each job on the node, oldest first: 1 is that of its profile's run, alone with all ways."""
    ways = held_ways(jobs, node)
    traffics = _traffics(jobs, ways, node)
    together = settled(traffics, node.bandwidth_gbps)
    return tuple(
        job.run.kept_at(given) * traffic.time_at(settled((traffic,), node.bandwidth_gbps)) / traffic.time_at(together)
        for job, given, traffic in zip(jobs, ways, traffics, strict=True)
    )


def bandwidth_used(jobs: tuple[Occupant, ...], node: SharedNode) -> float:
    """GB/s that these jobs move together on the node."""
    traffics = _traffics(jobs, held_ways(jobs, node), node) if jobs else ()
    return node.bandwidth_gbps * settled(traffics, node.bandwidth_gbps)


def held_ways(jobs: tuple[Occupant, ...], node: SharedNode) -> tuple[float, ...]:
    """The ways that each job has, oldest first."""
    if not node.ways:
        return tuple(float(job.run.ways[-1]) for job in jobs)
    return partitioned(jobs, node) if node.is_partitioned else unpartitioned(jobs, node)


def partitioned(jobs: Sequence[Occupant], node: SharedNode) -> tuple[float, ...]:
    """The ways of each job, oldest first: its own, and with `gives_spare` its share of those that nobody owns."""
    if not node.gives_spare:
        return tuple(float(job.ways) for job in jobs)
    each, remainder = divmod(node.ways - sum(job.ways for job in jobs), len(jobs))
    return tuple(float(job.ways + each + (at < remainder)) for at, job in enumerate(jobs))


def unpartitioned(jobs: Sequence[Occupant], node: SharedNode) -> tuple[float, ...]:
    """The ways that each job holds of a cache that it shares: in proportion to its traffic with that many ways."""
    ways = [node.ways / len(jobs)] * len(jobs)
    for _ in range(MOST_ROUNDS):
        traffics = _traffics(jobs, ways, node)
        together = settled(traffics, node.bandwidth_gbps)
        moved = [traffic.gbps_at(together) for traffic in traffics]
        if not sum(moved):
            break
        next_ways = [(held + node.ways * gbps / sum(moved)) / 2 for held, gbps in zip(ways, moved, strict=True)]
        change = max(abs(new - old) for new, old in zip(next_ways, ways, strict=True))
        ways = next_ways
        if change < AGREED_WAYS:
            break
    return tuple(ways)


def _traffics(jobs: Sequence[Occupant], ways: Sequence[float], node: SharedNode) -> tuple[Traffic, ...]:
    return tuple(
        traffic_of(job.run.bandwidth_at(given), job.cores, node.bandwidth_gbps)
        for job, given in zip(jobs, ways, strict=True)
    )
