"""The request of `sns simulate`: its options and a configuration become a policy, before any trace is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from slurm_sns.cli.offline.policy_options import require_taken, with_settings
from slurm_sns.cli.offline.spreading_options import SpreadingOptions
from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import GeometryChoice, Specification

if TYPE_CHECKING:
    from slurm_sns.config import Config
    from slurm_sns.policies.base import Policy
    from slurm_sns.policies.baselines.parameters import BatchParameters
    from slurm_sns.policies.dfrs.policy import Dfrs
    from slurm_sns.policies.placement.kernel_matching import Rules
    from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters
    from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters

_Parameters = TypeVar("_Parameters")

#: `--policy HEURISTIC` means this policy with a portfolio of that one heuristic.
MAX_JOBS = "max-jobs"


class SpreadingSettings(NamedTuple):
    """The additional settings of a policy that spreads."""

    options: SpreadingOptions
    parameters: "SpreadingParameters"


@dataclass(frozen=True)
class Requested:
    """How to replay a trace.

    `policy` None: it makes no plans, and a replay of its own simulates it.
    `age_limit_s` None: no job becomes over-aged; `spreading` None: no job is spread. `penalty_s` is what a resume or a
    move costs. `batch` are the parameters of fcfs and easy, None for other policies; `rescheduling` are those of the
    policy that serves pools.
    """

    name: str
    policy: "Policy | None"
    interval_s: int
    age_limit_s: int | None
    shares: Mapping[str, float]
    spreading: SpreadingSettings | None
    penalty_s: int = 0
    batch: "BatchParameters | None" = None
    rescheduling: "ReschedulingParameters | None" = None

    @property
    def fluid(self) -> "Dfrs | None":
        """The policy, if it gives jobs fractions of the CPU."""
        from slurm_sns.policies.dfrs.policy import Dfrs

        return self.policy if isinstance(self.policy, Dfrs) else None

    @property
    def counts(self) -> str:
        """What the progress of a replay counts."""
        if self.rescheduling is not None:
            return "jobs ended"
        return "jobs submitted" if self.fluid is not None else "jobs started"

    @property
    def rules(self) -> "Rules | None":
        """How the policy matches; None for a policy that does not match."""
        return getattr(self.policy, "rules", None)

    @property
    def makes_alternatives(self) -> str:
        """The policy that makes the jobs' alternatives: the policy itself, or the one as which fcfs and easy place."""
        if self.batch is None:
            return self.name
        return self.batch.placement if self.batch.placement in REGISTRY else MAX_JOBS


def requested(
    name: str,
    settings: Mapping[str, Any],
    spreading: SpreadingOptions,
    config: Path | None,
    *,
    interval_s: int | None,
    age_limit_s: int | None,
    penalty_s: int | None = None,
) -> Requested:
    """Turn the given options into a request. `settings` are the given options that set policies' parameters.

    Raises:
        BadInput: an option is not valid; the message names it and what is valid.
    """
    from slurm_sns.policies.baselines.parameters import BatchParameters
    from slurm_sns.policies.placement.heuristics import HEURISTICS
    from slurm_sns.policies.rescheduling.parameters import ReschedulingParameters
    from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters, require_valid

    if name not in HEURISTICS and name not in REGISTRY:
        raise BadInput(f"--policy is '{name}'; valid: {', '.join([*HEURISTICS, *REGISTRY])}")
    chosen = specification(MAX_JOBS if name in HEURISTICS else name)
    require_taken(chosen, name, settings, but="portfolio" if name in HEURISTICS else "")
    spreading.require_taken(chosen, name)
    _require_times(chosen, name, interval_s, penalty_s)
    configured = _configured(config)

    def parameters(kind: type[_Parameters], simulated: tuple[Any, ...]) -> _Parameters:
        base = next((each for each in simulated if isinstance(each, kind)), None) or kind()
        given: _Parameters = with_settings(base if configured is None else configured.parameters(kind), settings)
        return given

    given: list[Any] = [parameters(kind, chosen.simulated) for kind in chosen.parameters]
    if name in HEURISTICS:
        given = [replace(each, portfolio=(name,), default_heuristic=None) for each in given]
    whole = given[0].portfolio if "portfolio" in settings else None
    of_spreading = None
    if chosen.geometry is not GeometryChoice.OWN:
        of_spreading = SpreadingSettings(spreading, parameters(SpreadingParameters, (REPRODUCTION,)))
        require_valid(of_spreading.parameters)
    given = chosen.checked(*given)
    policy = chosen.policy(*given, portfolio=whole) if chosen.factory else None
    for option, value in (("age-limit", age_limit_s), ("progress", spreading.progress)):
        if value is not None and not hasattr(policy, "rules"):
            raise BadInput(f"--{option} goes with policies that match, not with {name}")
    return Requested(
        name,
        policy,
        interval_s or chosen.interval_s,
        age_limit_s or (configured.matching.age_limit_s if configured else None),
        _shares(configured),
        of_spreading,
        penalty_s or 0,
        next((each for each in given if isinstance(each, BatchParameters)), None),
        next((each for each in given if isinstance(each, ReschedulingParameters)), None),
    )


def _require_times(policy: Specification, called: str, interval_s: int | None, penalty_s: int | None) -> None:
    """Check the interval, which some replays do not have, and the penalty, which only fluid policies pay.

    Raises:
        BadInput: an option goes with other policies only; the message names what is valid.
    """
    from slurm_sns.policies.rescheduling.parameters import RESCHEDULING

    if interval_s is not None and (policy.is_fluid or policy == RESCHEDULING):
        raise BadInput(f"--interval does not go with {called}, which decides whenever a job is submitted or ends")
    if not policy.is_fluid and penalty_s is not None:
        fluid = ", ".join(each.name for each in map(specification, REGISTRY) if each.is_fluid)
        raise BadInput(f"--penalty goes with --policy {fluid}, not with {called}")


def _configured(config: Path | None) -> "Config | None":
    if config is None:
        return None
    from slurm_sns.config import load

    return load(config)


def _shares(configured: "Config | None") -> Mapping[str, float]:
    """The projects' shares. A simulation cannot read Slurm's associations: all projects then have equal shares."""
    shares = configured.matching.shares if configured else {}
    return {} if isinstance(shares, str) else shares
