"""The parameters of Spread-n-Share, with the paper's or its prototype's values where they have any."""

from dataclasses import dataclass

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.heuristic_names import PAPER, PAPER_BETA, alternative_orders
from slurm_sns.policies.placement.request import EVEN_SCALES_ONLY, SCALES, require_scales
from slurm_sns.policies.specification import (
    DEFAULT_QUEUE_DEPTH,
    QUEUE_DEPTH,
    GeometryChoice,
    Setting,
    Specification,
    parameter,
    require_within_limits,
    settings_of,
)

#: The prototype's values at scales 1, 2, 4 and 8, for one model of processor: a half-empty node clocks higher.
PAPER_FREQUENCY_FACTORS = (1.0, 1.02, 1.05, 1.15)

#: A node's bandwidth where its configuration gives none: STREAM on all 28 cores of the paper's nodes (figure 3).
PAPER_BANDWIDTH_GBPS = 118.26


@dataclass(frozen=True, slots=True)
class SpreadingParameters:
    """How a job's alternatives are made from its program's profile, and how a cycle places them.

    `alpha`: the share of its best performance that a job keeps unless its owner says otherwise. `beta`: the weight of
    occupied ways in the choice of the idlest nodes. `scales`: the scale factors that may be used. `shared_ways`: ways
    of each node that are kept for jobs without profile and the system. `even_scales_only`: only scales whose nodes
    divide the processes. `one_profile_for_all_sizes`: a program's profile of the nearest process count serves a job of
    any size. `unspreadable_is_compact`: a program whose max_scale is 1 counts as compact, not as neutral.
    `frequency_factors`: what run times are multiplied by at scales 1, 2, 4, 8 and so on, for profiles that were
    measured with all other cores idle, whose nodes then clocked higher than shared ones do. Each holds up to the next
    one's scale, the last one for all beyond.
    `neutral_by_run_time`: a neutral program's scales are tried by run time, not by scale. `queue_depth`: how many jobs
    a cycle looks at. `alternatives_order`: a job's alternatives are tried best predicted first (`paper`), or only if
    the whole queue starts so, and else by slowdown times dominant share, least first (`adaptive`).
    """

    alpha: float = parameter(
        0.9,
        Setting("The share of its best performance that a job keeps.", "spread_n_share", above=0, most=1, option=True),
    )
    beta: float = parameter(
        PAPER_BETA,
        Setting(
            "What occupied cache ways weigh in the choice of nodes.", "spread_n_share", least=0, most=1e6, option=True
        ),
    )
    scales: tuple[int, ...] = parameter((1, 2, 4, 8), SCALES)
    shared_ways: int = parameter(
        2,
        Setting(
            "Ways of each node that are kept for jobs without profile and the system.",
            "spread_n_share",
            least=0,
            site_most=64,
        ),
    )
    even_scales_only: bool = parameter(False, EVEN_SCALES_ONLY)
    one_profile_for_all_sizes: bool = False
    unspreadable_is_compact: bool = False
    neutral_by_run_time: bool = False
    frequency_factors: tuple[float, ...] = parameter(
        (1.0,),
        Setting(
            "What run times are multiplied by at scales 1, 2, 4, 8 and so on.", "spread_n_share", least=0.1, most=10
        ),
    )
    queue_depth: int = parameter(DEFAULT_QUEUE_DEPTH, QUEUE_DEPTH)
    alternatives_order: str = parameter(
        PAPER,
        Setting(
            "The order in which a job's alternatives are tried.",
            "spread_n_share",
            choices=alternative_orders,
            option=True,
        ),
    )

    def frequency_factor(self, scale: int) -> float:
        """The factor at this scale."""
        return self.frequency_factors[min(scale.bit_length(), len(self.frequency_factors)) - 1]


def factors_in_words(parameters: SpreadingParameters) -> str:
    """The frequency factors as `sns explain` says them; empty where all are 1."""
    factors = ((1 << place, factor) for place, factor in enumerate(parameters.frequency_factors))
    return ", ".join(f"{factor:g} at scale {scale}" for scale, factor in factors if factor != 1)


#: As in the paper's experiments.
REPRODUCTION = SpreadingParameters(shared_ways=0, even_scales_only=True, frequency_factors=PAPER_FREQUENCY_FACTORS)


def require_valid(parameters: SpreadingParameters) -> None:
    """Accept parameters that can be used.

    Raises:
        BadInput: one of them cannot; the message says what is valid.
    """
    require_within_limits(parameters)
    require_scales(parameters.scales)
    if not parameters.frequency_factors:
        raise BadInput("frequency_factors is empty; valid: one factor or more")
    for factor in parameters.frequency_factors:
        settings_of(SpreadingParameters)["frequency_factors"].require("frequency_factors", factor)


SPREAD_N_SHARE = Specification(
    "sns",
    "Spread-n-Share: spread programs that starve on few nodes, share nodes between those that fit together.",
    (SpreadingParameters,),
    "slurm_sns.policies.spread_n_share.node_choice:spread_n_share",
    geometry=GeometryChoice.BY_PROFILE,
    simulated=(REPRODUCTION,),
    runner="slurm_sns.sim.runners.spreading:programs",
)
