"""The scales that Spread-n-Share's prototype tries for a job, and in which order: a variant of the policy `sns`.

Scales 1, 2 and 4, where each node gets equally many processes. They are tried by run time times frequency factor,
shortest first, for programs of every class: a compact program is spread, too, when its first scale finds no nodes.
Alpha does not limit the scales; it only gives T-IPC = alpha * F-IPC, and with it ways and bandwidth.

Source: SSscheduler.py and SSdatabase.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

import math
from collections.abc import Sequence

from slurm_sns.model import Alternative
from slurm_sns.policies.base import Choice, JobRequest, NodeType
from slurm_sns.policies.placement.request import fewest_nodes, spread
from slurm_sns.policies.profile import Run
from slurm_sns.policies.spread_n_share.classify import corrected_time_s
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import predicted_slowdown

PROTOTYPE_SCALES = (1, 2, 4)


def prototype_alternatives(parameters: SpreadingParameters, asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """The alternatives of a profiled job whose geometry may be chosen; any other job keeps its own geometry.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    request, program = asked.request, asked.program
    if request is None or program is None:
        return Choice((asked.own,))
    runs = program.at(request.processes, nearest=parameters.one_profile_for_all_sizes)
    fewest = fewest_nodes(request, nodes)
    tried = [
        scale
        for scale in PROTOTYPE_SCALES
        if scale in runs
        and scale <= (program.max_scale or scale)
        and not request.tasks % (scale * fewest)
        and scale * fewest <= sum(each.number for each in nodes)
    ]
    tried.sort(key=lambda scale: corrected_time_s(runs[scale], parameters))
    most_ways = max(each.capacity.ways for each in nodes)
    if not tried:
        return Choice((asked.own,))

    def alternative(scale: int) -> Alternative:
        ways = ways_of(runs[scale], parameters.alpha, most_ways)
        layout = spread(request, fewest, scale)
        demand = layout.demand._replace(ways=ways, bandwidth_gbps=math.ceil(runs[scale].bandwidth_at(ways)))
        slowdown = predicted_slowdown(runs, scale, ways, parameters)
        return Alternative(layout.nodes, demand, layout.tasks_per_node, scale, slowdown)

    return Choice(tuple(map(alternative, tried)))


def ways_of(run: Run, alpha: float, most_ways: int) -> int:
    """The fewest ways that reach T-IPC, all ways if none do."""
    return run.fewest_ways(alpha, most_ways) or most_ways
