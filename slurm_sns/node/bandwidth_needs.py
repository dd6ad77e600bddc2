"""The memory bandwidth to guarantee to the jobs of a node, and the limits that follow for each cache domain. Pure.

A job is limited to what it needs, rounded up to the machine's step, so that the others get what they need; a job
without a need is not limited.

Assumptions:
- All cores of a job draw alike: a domain carries the part of the job's demand that its cores there are of all its
  cores. The shared group draws alike in all domains.
- Intel's percentage throttles each core, it does not divide the domain's bandwidth (resctrl.rst, "Memory bandwidth
  Allocation and monitoring"). So 100 % is what the job's cores of the domain draw unthrottled: the sum of the cores or
  the domain's peak, whichever is less. A percentage of the smaller one is the larger percentage: the need is met
  whichever of the two the hardware means.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slurm_sns.node.resctrl.machine import Bandwidth


class Peak(NamedTuple):
    """The memory bandwidth of one cache domain, and what a single core draws at most (STREAM), both in GB/s."""

    domain_gbps: float
    core_gbps: float = math.inf


class Draw(NamedTuple):
    """The memory bandwidth that a job needs on this node, in GB/s, and how many of its cores each domain has."""

    gbps: float
    cores: Mapping[int, int]


@dataclass(frozen=True)
class BandwidthNeeds:
    """What each job needs. `shared_gbps` limits all threads outside of the jobs' groups together, on the whole node."""

    jobs: Mapping[int, Draw]
    peak: Peak
    shared_gbps: float = math.inf

    def values(self, bandwidth: Bandwidth, job_id: int | None) -> dict[int, int]:
        """The values of the MB line of a job's group, or of the shared group (None), by domain."""
        if job_id is None:
            part = bandwidth.value(self.shared_gbps / len(bandwidth.domains), self.peak.domain_gbps)
            return dict.fromkeys(bandwidth.domains, part)
        draw = self.jobs.get(job_id, Draw(0, {}))
        return {domain: self._value(bandwidth, draw, domain) for domain in bandwidth.domains}

    def _value(self, bandwidth: Bandwidth, draw: Draw, domain: int) -> int:
        cores = draw.cores.get(domain, 0)
        if not cores:
            return bandwidth.most
        unthrottled_gbps = min(self.peak.domain_gbps, cores * self.peak.core_gbps)
        return bandwidth.value(draw.gbps * cores / sum(draw.cores.values()), unthrottled_gbps)
