"""The policies of Spread-n-Share's family as the simulator runs them, and how their jobs advance.

`prototype_alternatives` are those that Spread-n-Share's prototype tries for a job, a variant of the policy `sns`:
scales 1, 2 and 4, where each node gets equally many processes. They are tried by run time times frequency factor,
shortest first, for programs of every class: a compact program is spread, too, when its first scale finds no nodes.
Alpha does not limit the scales; it only gives T-IPC = alpha * F-IPC, and with it ways and bandwidth.

Source: SSscheduler.py and SSdatabase.py of Uberun, the prototype (github.com/thu-pacman/Uberun).
"""

import math
from collections.abc import Sequence

from slurm_sns.model import Alternative
from slurm_sns.policies.base import Choice, JobRequest, NodeType
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.request import fewest_nodes, spread
from slurm_sns.policies.profile import Run
from slurm_sns.policies.registry import specification
from slurm_sns.policies.specification import GeometryChoice, filled
from slurm_sns.policies.spread_n_share.classify import corrected_time_s
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import predicted_slowdown
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contended import Contended
from slurm_sns.sim.progress.phased import Phased, Phases
from slurm_sns.sim.progress.progress import Fixed, Progress
from slurm_sns.sim.request import AUTHORS

CE, CS, SNS, COMBINED = "ce", "cs", "sns", "combined"
PROTOTYPE_SCALES = (1, 2, 4)


def policy_of(
    name: str,
    parameters: SpreadingParameters,
    matching: MatchingParameters | None = None,
    portfolio: tuple[str, ...] | None = None,
) -> Portfolio:
    """The policy of that name with those of the parameters that it takes; `portfolio` names all members.

    Raises:
        BadInput: a parameter cannot be used, or the name is unknown.
    """
    chosen = specification(name)
    sources = (parameters,) if matching is None else (matching, parameters)
    policy = chosen.policy(*(filled(kind, *sources) for kind in chosen.parameters), portfolio=portfolio)
    assert isinstance(policy, Portfolio)  # noqa: S101  all of the family are
    return policy


def progress_of(
    model: str, policy: str, node_arrays: NodeArrays, authors: AuthorsModel, phases: Phases | None = None
) -> Progress:
    """The progress model for these nodes; no job has ways of its own if the policy chooses any scale.

    With `phases` the programs under contention have phases.
    """
    if model == AUTHORS:
        return Fixed(authors)
    is_partitioned = specification(policy).geometry is not GeometryChoice.ANY_SCALE
    if phases is not None:
        return Phased(node_arrays, authors, phases, is_partitioned=is_partitioned)
    return Contended(node_arrays, authors, is_partitioned=is_partitioned)


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
