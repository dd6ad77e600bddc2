"""Max-Jobs with several alternatives for each job, and with heuristics that look at cache ways and bandwidth.

The schedule with the most jobs wins; among equals the one with the smaller sum of predicted slowdowns, then the one
whose member comes first. The members that the matching paper does not have take part only in a cycle where some queued
job has a profile: without profiles this is Max-Jobs, and with `idlest` alone and no reservations it is Spread-n-Share.

Source: this project's own combination of the two papers.
"""

from dataclasses import replace
from functools import partial

from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristic_names import FOR_PROFILED_JOBS, IDLEST
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters, require_valid
from slurm_sns.policies.spread_n_share.scales import alternatives


def combined(
    matching: MatchingParameters | None = None,
    spreading: SpreadingParameters | None = None,
    *,
    portfolio: tuple[str, ...] | None = None,
) -> Portfolio:
    """The policy `combined`.

    Its members are those of `matching`, then those for profiled jobs. `portfolio` replaces all of them.

    Raises:
        BadInput: a parameter is not valid.
    """
    matching, spreading = matching or MatchingParameters(), spreading or SpreadingParameters()
    require_valid(spreading)
    rules = rules_of(matching if portfolio is None else replace(matching, portfolio=portfolio))
    rules = replace(
        rules,
        portfolio=portfolio or tuple(dict.fromkeys((*rules.portfolio, *FOR_PROFILED_JOBS))),
        own_scorer=IDLEST,
        order=spreading.alternatives_order,
        beta=spreading.beta,
        keeper=IDLEST,
        weighs=True,
        for_profiled=FOR_PROFILED_JOBS,
        shared_ways=spreading.shared_ways,
    )
    return Portfolio(rules, partial(alternatives, spreading))
