"""The policy `max-jobs`: every heuristic of a portfolio is tried, the schedule with the most jobs is dispatched.

Source: Max-Jobs paper (JSSPP 2013), section 4, figure 12.
"""

from dataclasses import replace

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.kernel_matching import Rules
from slurm_sns.policies.placement.portfolio import Portfolio


def max_jobs(parameters: MatchingParameters | None = None, *, portfolio: tuple[str, ...] | None = None) -> Portfolio:
    """Max-Jobs, and with a portfolio of one name that heuristic alone; `portfolio` replaces that of the parameters.

    Raises:
        BadInput: a parameter cannot be used.
    """
    rules = rules_of(parameters or MatchingParameters())
    return Portfolio(rules if portfolio is None else replace(rules, portfolio=portfolio))


def rules_of(parameters: MatchingParameters) -> Rules:
    """The parameters as a portfolio takes them."""
    return Rules(parameters.portfolio, parameters.queue_depth, parameters.reservations, parameters.default_heuristic)
