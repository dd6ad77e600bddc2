"""The policies of Spread-n-Share's family as the simulator runs them, and how their jobs advance."""

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.registry import specification
from slurm_sns.policies.specification import GeometryChoice, filled
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contended import Contended
from slurm_sns.sim.progress.phased import Phased, Phases
from slurm_sns.sim.progress.progress import Fixed, Progress
from slurm_sns.sim.request import AUTHORS

CE, CS, SNS, COMBINED = "ce", "cs", "sns", "combined"


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
