"""The policies of Spread-n-Share's family as the simulator runs them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from slurm_sns.policies.baselines.ce import CompactExclusive
from slurm_sns.policies.baselines.cs import CompactShared
from slurm_sns.policies.combined.combined import Combined, CombinedParameters
from slurm_sns.policies.matching.heuristics import FOR_PROFILED_JOBS
from slurm_sns.policies.matching.max_jobs import MaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.policies.sns.spread_n_share import SpreadNShare

CE, CS, SNS, COMBINED = "ce", "cs", "sns", "combined"
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
