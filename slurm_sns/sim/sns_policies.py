"""The policies of Spread-n-Share's family as the simulator runs them, and how their jobs advance."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from slurm_sns.policies.baselines.ce import CompactExclusive
from slurm_sns.policies.baselines.cs import CompactShared
from slurm_sns.policies.combined.combined import Combined, CombinedParameters
from slurm_sns.policies.matching.heuristics import FOR_PROFILED_JOBS
from slurm_sns.policies.matching.max_jobs import MaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.pool import Pool
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.policies.sns.spread_n_share import SpreadNShare
from slurm_sns.sim.contended import Contended
from slurm_sns.sim.progress import Fixed, Progress
from slurm_sns.sim.sns_model import AuthorsModel

CE, CS, SNS, COMBINED = "ce", "cs", "sns", "combined"
#: The models of progress: the paper's own, and with neighbours.
AUTHORS, CONTENTION = "authors", "contention"
MODELS = (AUTHORS, CONTENTION)
_KINDS: Mapping[str, Callable[[SnsParameters], MaxJobs]] = {CE: CompactExclusive, CS: CompactShared, SNS: SpreadNShare}


def scheduler_of(
    policy: str,
    parameters: SnsParameters,
    matching: MatchingParameters | None = None,
    portfolio: tuple[str, ...] | None = None,
) -> MaxJobs:
    """The policy; in combined, the members for profiled jobs follow matching's unless a portfolio was named."""
    if policy != COMBINED:
        return _KINDS[policy](parameters)
    matching = matching or MatchingParameters(queue_depth=parameters.queue_depth)
    members = portfolio or tuple(dict.fromkeys((*matching.portfolio, *FOR_PROFILED_JOBS)))
    return Combined(CombinedParameters(replace(matching, portfolio=members), parameters))


def progress_of(model: str, policy: str, pool: Pool, authors: AuthorsModel) -> Progress:
    """How jobs advance on these nodes; under CS nobody has ways of his own."""
    if model == AUTHORS:
        return Fixed(authors)
    return Contended(pool, authors, is_partitioned=policy != CS)
