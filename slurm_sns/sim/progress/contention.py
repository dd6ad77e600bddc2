"""How fast jobs run beside each other on one node: the contention model.

A job has speed 1 in its profile's run: alone on such nodes, with all ways. Beside neighbours it has a share of that:

    speed = kept(w) * t(u_alone) / t(u)

1. Ways. With partitions a job owns the ways of its partition. Ways that no job owns are given to the jobs there in
   equal shares; the remainder goes to the oldest jobs, one way each (Spread-n-Share, section 4.4). Without partitions a
   job's share of the ways equals its share of the traffic; since traffic depends on ways, too, the model takes the
   point where both agree (a rule as old as Suh, Devadas and Rudolph's, 2004; off by 0.9 of 40 MB on the measured
   co-runs of spread-n-share-spec). kept(w) is the job's IPC with w ways divided by its best IPC (the IPC-LLC curve).
2. Bandwidth. With w ways a job that is alone moves what its BW-LLC curve says. The law below turns this into the share
   of the job's time in memory, and gives u, the share of the node's bandwidth that all its jobs use together. t(u) is
   how long the job's work takes at u; t(u_alone) is the same when it is alone. So a job without neighbours has the
   speed of its profile.
3. A job on several nodes runs at the speed of its slowest node.

A job without profile slows no job down and is not slowed down. Nothing else is shared: no network, no clock frequency.

How memory slows down when many cores use it is one law through the points that STREAM measured. An access takes
stretch(u) times as long as on an idle memory when a share u of the node's bandwidth is in use:

    stretch(u) = (1 - u^p)^(-1/p)

A core that does nothing but access memory moves 18.80 GB/s on an idle memory, so c such cores settle where
18.80 * c / stretch(u) = peak * u. With the one free parameter p = 2.94, fitted to two cores, that gives 18.8, 37.2,
103.2 and 117.8 GB/s for 1, 2, 8 and 28 cores; STREAM measured 18.80, 37.17, "levels off near 8" and 118.26.

A program spends the share m of its time in memory: what its processes would move on an idle memory, divided by what
their cores could. Its work takes (1 - m) + m * stretch(u) times as long as on an idle memory. Jobs on one node share
one u: the only value at which they move peak * u together. So a node never gives more than its peak.

Source: Spread-n-Share (SC'19), figure 3 and section 2 for the points; the law is ours, of the kind that queueing gives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from slurm_sns.policies.profile import Run
from slurm_sns.policies.spread_n_share.parameters import PAPER_BANDWIDTH_GBPS

#: Ways and traffic agree when a round changes no job's ways by more; each round makes half of the change.
AGREED_WAYS = 1e-6
MOST_ROUNDS = 100
#: How many results are remembered: many nodes run the same combination of jobs.
RESULTS_KEPT = 1 << 16
#: What one core moves on an idle memory, in GB/s (figure 3).
ONE_CORE_GBPS = 18.80
#: Fitted to figure 3's second point: two cores, 37.17 of 37.60 GB/s.
SHARPNESS = 2.94
#: The law has no value at 1: a program that was measured at the peak or above counts as using this share of it.
FULLEST = 0.999
#: How often the interval in which u lies is halved: enough for the last digits of a float.
HALVINGS = 50


class Traffic(NamedTuple):
    """What a job asks of one node's memory.

    `idle_gbps`: the bandwidth that it would use on an idle memory. `memory_share`: m, the share of its time that it
    would spend in memory there.
    """

    idle_gbps: float
    memory_share: float

    def time_at(self, utilisation: float) -> float:
        """How long its work takes, relative to an idle memory."""
        return 1 + self.memory_share * (stretch(utilisation) - 1)

    def gbps_at(self, utilisation: float) -> float:
        """The bandwidth that it uses."""
        return self.idle_gbps / self.time_at(utilisation)


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job on one node: its profile's run, its cores there, and the ways that it owns."""

    run: Run
    cores: int
    ways: int = 0


@dataclass(frozen=True, slots=True)
class SharedNode:
    """A node's cache ways and bandwidth, which its jobs share; with 0 ways its cache slows no job down.

    `gives_spare`: ways that no job owns are given to the jobs on the node.
    """

    ways: int
    bandwidth_gbps: float
    is_partitioned: bool = True
    gives_spare: bool = True

    @classmethod
    def of(cls, ways: int, bandwidth_gbps: float, *, is_partitioned: bool, gives_spare: bool = True) -> "SharedNode":
        """A node with the capacities of a node list; a bandwidth of 0 means that of the paper's nodes."""
        return cls(ways, bandwidth_gbps or PAPER_BANDWIDTH_GBPS, is_partitioned, gives_spare)


@lru_cache(RESULTS_KEPT)
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
    """The ways of each job, oldest first: its own, and with `gives_spare` its share of those that no job owns."""
    if not node.gives_spare:
        return tuple(float(job.ways) for job in jobs)
    each, remainder = divmod(node.ways - sum(job.ways for job in jobs), len(jobs))
    return tuple(float(job.ways + each + (at < remainder)) for at, job in enumerate(jobs))


def unpartitioned(jobs: Sequence[Occupant], node: SharedNode) -> tuple[float, ...]:
    """The ways that each job holds in an unpartitioned cache: in proportion to its traffic with that many ways."""
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


# --- the law of bandwidth


def stretch(utilisation: float) -> float:
    """How long an access takes, relative to an idle memory, when this share (below 1) of the bandwidth is in use."""
    return float((1 - utilisation**SHARPNESS) ** (-1 / SHARPNESS))


def traffic_of(measured_gbps: float, cores: int, peak_gbps: float) -> Traffic:
    """The traffic of a program that moved `measured_gbps` alone on so many cores of a node with this peak."""
    slower = stretch(min(measured_gbps / peak_gbps, FULLEST)) - 1
    at_most = ONE_CORE_GBPS * cores
    # measured = idle / (1 + (idle / at_most) * slower), solved for idle; the limit are cores that only access memory.
    rest = 1 - measured_gbps * slower / at_most
    idle_gbps = min(measured_gbps / rest, at_most) if rest > 0 else at_most
    return Traffic(idle_gbps, idle_gbps / at_most)


def settled(jobs: Iterable[Traffic], peak_gbps: float) -> float:
    """The share of a node's bandwidth that these jobs take together, from 0 to below 1."""
    jobs = [job for job in jobs if job.idle_gbps > 0]
    if not jobs:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if sum(job.gbps_at(middle) for job in jobs) > peak_gbps * middle:
            low = middle
        else:
            high = middle
    return low
