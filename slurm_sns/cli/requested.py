"""What `sns simulate` was asked for: its options and a configuration become parameters, before anything is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurm_sns.cli.spreading import COMBINED, SPREADING, SpreadingOptions
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.policies.matching.parameters import MatchingParameters
    from slurm_sns.policies.placement.portfolio import Portfolio
    from slurm_sns.policies.sns.parameters import SnsParameters

MAX_JOBS = "max-jobs"

#: The paper's cycle (JSSPP 2013, section 5), in seconds.
PAPER_INTERVAL_S = 30
#: Time is in whole seconds: a cycle in each second in which something was submitted or finished.
AT_EVERY_EVENT_S = 1


class Given(NamedTuple):
    """Options that may be left out: None then."""

    interval_s: int | None
    queue_depth: int | None
    reservations: int | None
    portfolio: str | None
    age_limit_s: int | None
    spreading: SpreadingOptions


class Spreading(NamedTuple):
    """What a policy of Spread-n-Share's family needs beside the rest."""

    options: SpreadingOptions
    parameters: "SnsParameters"
    scheduler: "Portfolio"


@dataclass(frozen=True)
class Requested:
    """How a trace is to be replayed. `age_limit_s` None: nobody is ever over-aged; `spreading` None: matching."""

    policy: str
    parameters: "MatchingParameters"
    interval_s: int
    age_limit_s: int | None
    shares: Mapping[str, float]
    spreading: Spreading | None


def requested(policy: str, given: Given, config: Path | None) -> Requested:
    """What was asked for.

    Raises:
        BadInput: naming the option and what is valid.
    """
    from slurm_sns.policies.matching.max_jobs import max_jobs

    configured, shares, age_limit_s = _configured(config)
    parameters = _limited(_chosen(configured, policy, given.portfolio), policy, given)
    given.spreading.require_learnable(policy)
    spreading = None
    if policy in SPREADING:
        from slurm_sns.policies.matching.parameters import MatchingParameters
        from slurm_sns.policies.specification import filled
        from slurm_sns.sim.sns_policies import policy_of

        spread_parameters = given.spreading.parameters(parameters.queue_depth, config)
        named = None if given.portfolio is None else parameters.portfolio
        scheduler = policy_of(policy, spread_parameters, parameters, named)
        parameters = filled(MatchingParameters, scheduler.rules)
        spreading = Spreading(given.spreading, spread_parameters, scheduler)
    else:
        given.spreading.require_none(policy)
        max_jobs(parameters)  # refuses what is not valid
    interval_s = given.interval_s or (AT_EVERY_EVENT_S if spreading else PAPER_INTERVAL_S)
    return Requested(policy, parameters, interval_s, given.age_limit_s or age_limit_s, shares, spreading)


def _configured(config: Path | None) -> tuple["MatchingParameters", Mapping[str, float], int | None]:
    """The parameters, the projects' shares and the age limit of a configuration, or the papers': no limit."""
    from slurm_sns.policies.matching.parameters import MatchingParameters

    if config is None:
        return MatchingParameters(), {}, None
    from slurm_sns.config import load

    configuration = load(config)
    shares = configuration.matching.shares
    # "slurm" are the shares of Slurm's associations, which a simulation cannot ask: all projects alike.
    by_name = {} if isinstance(shares, str) else shares
    return configuration.parameters(MatchingParameters), by_name, configuration.matching.age_limit_s


def _chosen(parameters: "MatchingParameters", policy: str, portfolio: str | None) -> "MatchingParameters":
    """The parameters of max-jobs, or of max-jobs with one heuristic alone."""
    from slurm_sns.policies.placement.heuristics import HEURISTICS

    if policy in {MAX_JOBS, COMBINED}:
        return parameters if portfolio is None else replace(parameters, portfolio=_names(portfolio))
    if policy not in HEURISTICS and policy not in SPREADING:
        raise BadInput(f"--policy is '{policy}'; valid: {', '.join([*HEURISTICS, MAX_JOBS, *SPREADING])}")
    if portfolio is not None:
        raise BadInput(f"--portfolio goes with --policy {MAX_JOBS} and {COMBINED}, not with {policy}")
    if policy in SPREADING:
        return parameters
    return replace(parameters, portfolio=(policy,), default_heuristic=None)


def _limited(parameters: "MatchingParameters", policy: str, given: Given) -> "MatchingParameters":
    """The parameters with the limits of a cycle that were given."""
    if given.queue_depth is not None:
        parameters = replace(parameters, queue_depth=given.queue_depth)
    if given.reservations is None:
        return parameters
    if policy in SPREADING and policy != COMBINED:
        raise BadInput(f"--reservations goes with matching and --policy {COMBINED}; {policy} withholds nothing")
    return replace(parameters, reservations=given.reservations)


def _names(portfolio: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in portfolio.split(","))
