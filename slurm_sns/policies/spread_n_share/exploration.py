"""The next exploring run of a program: its scale, and whether ways are changed while it runs.

Exploration starts at scale 1 on empty nodes and goes on with 2, 4 and 8. Each scale gets one undisturbed run for its
run time and one run with changing ways for its curves, so at most two runs. Exploration stops before a scale with fewer
than `min_cores_per_node` cores on a node, and after a scale that is more than `saturation` slower than the best so far.
The slower scale counts as tried and needs no curves.

Only one exploring run of a (program, processes, scale) runs at a time. While no nodes are idle for its exploring run, a
job runs at its best profiled scale; if no scale is profiled, it waits.

Source: Spread-n-Share (SC'19), sections 4.2 and 5.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from slurm_sns.closids import are_counted, with_closid
from slurm_sns.model import Alternative
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.placement.request import fewest_nodes, holding, spread
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters


class ExplorationStep(NamedTuple):
    """An exploring run at this scale: with `samples` its ways are changed while it runs, otherwise it is timed."""

    scale: int
    samples: bool


@dataclass(frozen=True, slots=True)
class Exploration:
    """How far exploration goes. `saturation`: the share by which a scale may be slower than the best so far.

    `most_nodes` is how many nodes an exploring run may have, None for any number.
    """

    spreading: SpreadingParameters
    min_cores_per_node: int = 2
    saturation: float = 0.05
    most_nodes: int | None = None

    def next_step(self, known: KnownEvidence, request: Request, types: tuple[NodeType, ...]) -> ExplorationStep | None:
        """The next exploring run; None when everything has been tried.

        Raises:
            Infeasible: the nodes could not hold the job even when they are all empty.
        """
        fewest = fewest_nodes(request, types)
        best_s = inf
        for scale in sorted(self.spreading.scales):
            if scale == 1 and not self._may_have(spread(request, fewest, 1).nodes):
                return None
            if scale > 1 and not self._is_within_limits(scale, fewest, request, types):
                return None
            evidence = known.gathering.get(scale)
            if evidence is None or not evidence.is_timed:
                return ExplorationStep(scale, samples=False)
            time_s = evidence.time_s.mean * self.spreading.frequency_factor(scale)
            if time_s > (1 + self.saturation) * best_s:
                return None
            if not evidence.is_sampled:
                return ExplorationStep(scale, samples=True)
            best_s = min(best_s, time_s)
        return None

    def _is_within_limits(self, scale: int, fewest: int, request: Request, types: tuple[NodeType, ...]) -> bool:
        """Whether the job can be spread to this scale on these nodes with enough cores on each."""
        wanted = scale * fewest
        if wanted > request.tasks or (request.max_scale is not None and scale > request.max_scale):
            return False
        if self.spreading.even_scales_only and request.tasks % wanted:
            return False
        layout = spread(request, fewest, scale)
        narrower = (spread(request, fewest, less).nodes for less in self.spreading.scales if less < scale)
        is_new, is_possible = layout.nodes not in narrower, holding(layout.demand, types) >= layout.nodes
        is_wide_enough = layout.demand.cores >= self.min_cores_per_node
        return is_new and is_possible and is_wide_enough and self._may_have(layout.nodes)

    def _may_have(self, nodes: int) -> bool:
        """Whether an exploring run may have so many nodes."""
        return self.most_nodes is None or nodes <= self.most_nodes


def exploring(
    step: ExplorationStep, others: Iterable[Alternative], request: Request, types: tuple[NodeType, ...]
) -> tuple[Alternative, ...]:
    """The alternatives of an exploring job: empty nodes at the step's scale, then its other alternatives."""
    layout = spread(request, fewest_nodes(request, types), step.scale)
    fitting = [each.capacity for each in types if layout.demand.within(each.capacity)]
    everything = layout.demand._replace(
        ways=min((each.ways for each in fitting), default=0),
        bandwidth_gbps=min((each.bandwidth_gbps for each in fitting), default=0),
    )
    everything = with_closid(everything, is_counted=are_counted(each.capacity for each in types))
    return replace(layout, demand=everything, exclusive=True), *others
