"""How memory slows down when many cores use it: one law through the points that STREAM measured.

An access takes stretch(u) times as long as on an idle memory when a share u of the node's bandwidth is in use:

    stretch(u) = (1 - u^p)^(-1/p)

A core that does nothing but access memory moves 18.80 GB/s on an idle memory, so c such cores settle where
18.80 * c / stretch(u) = peak * u. With the one free parameter p = 2.94, fitted to two cores, that gives 18.8, 37.2,
103.2 and 117.8 GB/s for 1, 2, 8 and 28 cores; STREAM measured 18.80, 37.17, "levels off near 8" and 118.26.

A program spends the share m of its time in memory: what its processes would move on an idle memory, divided by what
their cores could. Its work takes (1 - m) + m * stretch(u) times as long as on an idle memory. Jobs on one node share
one u: the only value at which they move peak * u together. So a node never gives more than its peak.

Source: Spread-n-Share (SC'19), figure 3 and section 2 for the points; the law is ours, of the kind that queueing gives.
"""

from collections.abc import Iterable
from typing import NamedTuple

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
