"""The policy `max-jobs`: every heuristic of a portfolio is tried, and the schedule with the most jobs is dispatched.

Source: Max-Jobs paper (JSSPP 2013), section 4, figure 12.
"""

from dataclasses import replace

from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, UNTIL_START, WITH_GPUS, MatchingParameters
from slurm_sns.policies.placement.heuristic_names import MIX_FIT
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.rules import Rules


def max_jobs(parameters: MatchingParameters | None = None, *, portfolio: tuple[str, ...] | None = None) -> Portfolio:
    """The policy `max-jobs`; with a portfolio of one name it is that heuristic alone.

    `portfolio` replaces the portfolio of the parameters.

    Raises:
        BadInput: a parameter is not valid.
    """
    parameters = parameters or MatchingParameters()
    return Portfolio(rules_of(parameters if portfolio is None else replace(parameters, portfolio=portfolio)))


def rules_of(parameters: MatchingParameters) -> Rules:
    """The parameters as the rules of a portfolio."""
    return Rules(
        PAPER_PORTFOLIO if parameters.portfolio is None else parameters.portfolio,
        parameters.queue_depth,
        parameters.reservations,
        parameters.default_heuristic,
        with_gpus=WITH_GPUS if parameters.portfolio is None else (),
        ties=parameters.ties,
        own_scorer=MIX_FIT,
        withhold_up_to_s=parameters.withhold_up_to_s,
        until_start=parameters.withhold == UNTIL_START,
    )
