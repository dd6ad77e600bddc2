"""The parameters of the policies with which the papers compare their own."""

from dataclasses import dataclass

from slurm_sns.policies.placement.scale_factors import EVEN_SCALES_ONLY, SCALES
from slurm_sns.policies.specification import QUEUE_DEPTH, Specification, parameter


@dataclass(frozen=True, slots=True)
class CompactParameters:
    """How compact policies place jobs.

    `scales` are the scale factors that CS may use, with `even_scales_only` those only whose nodes divide the tasks
    evenly; CE ignores both. `queue_depth` is how many jobs a cycle looks at.
    """

    scales: tuple[int, ...] = parameter((1, 2, 4, 8), SCALES)
    even_scales_only: bool = parameter(False, EVEN_SCALES_ONLY)
    queue_depth: int = parameter(1000, QUEUE_DEPTH)


CE = Specification(
    "ce",
    "Compact and exclusive: each job on its fewest nodes, alone there.",
    (CompactParameters,),
    "slurm_sns.policies.baselines.ce:compact_exclusive",
    spreads=True,
    runs_at_events=True,
    simulated=(CompactParameters(even_scales_only=True),),
)


CS = Specification(
    "cs",
    "Compact and shared: the smallest scale that fits now, on shared nodes, without profiles.",
    (CompactParameters,),
    "slurm_sns.policies.baselines.cs:compact_shared",
    spreads=True,
    spreads_unprofiled=True,
    runs_at_events=True,
    simulated=(CompactParameters(even_scales_only=True),),
)
