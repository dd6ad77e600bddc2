"""CE and CS: compact jobs, alone on their nodes or on nodes shared with others, without any profile.

CE, compact and exclusive, is today's practice: each job runs alone on its fewest nodes. It gets the first idle nodes of
the machine list. When too few are idle it waits, and the next job is looked at.

CS, compact and shared, takes the smallest scale that fits now. It chooses nodes as Spread-n-Share does, by occupied
cores alone.

Source: Spread-n-Share (SC'19), sections 1 and 3.2, figure 8.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from slurm_sns.model import Alternative
from slurm_sns.policies.base import Choice, JobRequest, NodeType, Request
from slurm_sns.policies.baselines.parameters import CompactParameters
from slurm_sns.policies.placement.heuristic_names import IDLEST
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.request import compact, fewest_nodes, holding, require_scales, spread
from slurm_sns.policies.placement.rules import Rules


def compact_exclusive(parameters: CompactParameters | None = None) -> Portfolio:
    """The policy CE. Of the parameters it uses the queue depth only.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or CompactParameters()
    return Portfolio(Rules(("first-fit",), parameters.queue_depth, reservations=0), exclusive_alternatives)


def exclusive_alternatives(asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """The only alternative: scale 1, or the job's own geometry if it is fixed, on empty nodes.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    alternative = asked.own if asked.request is None else compact(asked.request, nodes)
    return Choice((replace(alternative, exclusive=True),))


def compact_shared(parameters: CompactParameters | None = None) -> Portfolio:
    """The policy CS.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or CompactParameters()
    require_scales(parameters.scales)
    rules = Rules((IDLEST,), parameters.queue_depth, reservations=0, keeper=IDLEST, weighs=True)
    return Portfolio(rules, partial(shared_alternatives, parameters))


def shared_alternatives(parameters: CompactParameters, asked: JobRequest, nodes: Sequence[NodeType]) -> Choice:
    """One alternative per scale if the job's geometry may be chosen, otherwise its own geometry.

    CS does not plan by profiles, but it respects the largest scale that the program's profile states.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    if asked.request is None:
        return Choice((asked.own,))
    return Choice(shared_scales(asked.request, nodes, parameters, asked.program.max_scale if asked.program else None))


def shared_scales(
    request: Request, nodes: Sequence[NodeType], parameters: CompactParameters, max_scale: int | None = None
) -> tuple[Alternative, ...]:
    """The alternatives by increasing scale; scale 1 is always among them.

    `max_scale` is the largest scale that the job's framework allows. The owner's hint is a limit, too.

    Raises:
        Infeasible: the nodes could not hold the job even when they are all empty.
    """
    fewest = fewest_nodes(request, nodes)
    alternatives: dict[int, Alternative] = {}
    for scale in sorted(parameters.scales):
        wanted = scale * fewest
        if scale > 1:
            if any(limit is not None and scale > limit for limit in (max_scale, request.max_scale)):
                continue
            if wanted > request.tasks or (parameters.even_scales_only and request.tasks % wanted):
                continue
        layout = spread(request, fewest, scale)
        if layout.nodes in alternatives or holding(layout.demand, nodes) < layout.nodes:
            continue
        alternatives[layout.nodes] = layout
    return tuple(alternatives.values())
