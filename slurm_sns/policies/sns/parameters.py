"""The parameters of Spread-n-Share, with the paper's or its prototype's values where they have any."""

from dataclasses import dataclass

from slurm_sns.errors import BadInput
from slurm_sns.policies.matching.heuristics import PAPER_BETA

#: A half-empty node clocks higher: run times measured on one are multiplied by this (the prototype's values).
FREQUENCY_FACTORS = ((1, 1.0), (2, 1.02), (4, 1.05), (8, 1.15))

#: A node's bandwidth where its configuration gives none: STREAM on all 28 cores of the paper's nodes (figure 3).
PAPER_BANDWIDTH_GBPS = 118.26
WIDEST_SCALE = 64


@dataclass(frozen=True, slots=True)
class SnsParameters:
    """How a job's alternatives are made from its program's profile, and how a pass places them.

    `alpha`: the share of its best performance that a job keeps unless its owner says otherwise. `beta`: the weight of
    occupied ways in the choice of the idlest nodes. `scales`: the scale factors that may be used. `shared_ways`: ways
    of each node that are kept for jobs without profile and the system. `even_scales_only`: only scales whose nodes
    divide the processes. `one_profile_for_all_sizes`: a program's profile of the nearest process count serves a job of
    any size. `unspreadable_is_compact`: a program that cannot leave its node counts as compact, not as neutral.
    `queue_depth`: how many jobs a pass looks at.
    """

    alpha: float = 0.9
    beta: float = PAPER_BETA
    scales: tuple[int, ...] = (1, 2, 4, 8)
    shared_ways: int = 2
    even_scales_only: bool = False
    one_profile_for_all_sizes: bool = False
    unspreadable_is_compact: bool = False
    frequency_factors: tuple[tuple[int, float], ...] = FREQUENCY_FACTORS
    queue_depth: int = 1000

    def frequency_factor(self, scale: int) -> float:
        """The factor of the widest listed scale that is not above this one."""
        return max((each for each in self.frequency_factors if each[0] <= scale), default=(1, 1.0))[1]


#: As in the paper's experiments.
REPRODUCTION = SnsParameters(shared_ways=0, even_scales_only=True)


def require_valid(parameters: SnsParameters) -> None:
    """Accept parameters that can be used.

    Raises:
        BadInput: one of them cannot; the message says what is valid.
    """
    if not 0 < parameters.alpha <= 1:
        raise BadInput(f"alpha is {parameters.alpha}; valid: above 0, at most 1")
    if not 0 <= parameters.beta <= 1e6:
        raise BadInput(f"beta is {parameters.beta}; valid: from 0 to 1e6")
    scales = parameters.scales
    if 1 not in scales or len(set(scales)) < len(scales) or not all(1 <= scale <= WIDEST_SCALE for scale in scales):
        shown = ",".join(map(str, scales))
        raise BadInput(f"scales are {shown}; valid: 1 and others up to {WIDEST_SCALE}, each once, as in 1,2,4,8")
    if parameters.shared_ways < 0:
        raise BadInput(f"shared_ways is {parameters.shared_ways}; valid: 0 or more")
    if parameters.queue_depth < 1:
        raise BadInput(f"queue_depth is {parameters.queue_depth}; valid: 1 or more")
