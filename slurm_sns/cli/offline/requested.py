"""The request of `sns simulate`: its options and a configuration become a policy, before any trace is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_sns.cli.offline.policy_options import require_taken, with_settings
from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import GeometryChoice, Specification

if TYPE_CHECKING:
    from slurm_sns.config import Config
    from slurm_sns.sim.request import SimulationRequest

_Parameters = TypeVar("_Parameters")

#: `--policy HEURISTIC` means this policy with a portfolio of that one heuristic.
MAX_JOBS = "max-jobs"


@dataclass(frozen=True, slots=True)
class SpreadingOptions:
    """The values that were given on the command line; None for an option that was not given."""

    profiles: Path | None
    progress: str | None
    learn: float | None
    seed: int
    user_estimates: bool = False

    def require_taken(self, policy: Specification, called: str) -> None:
        """Check that the policy uses the given options; `called` is the policy's name on the command line.

        Raises:
            BadInput: an option goes with other policies only, or its value is not valid; the message says what is.
        """
        from slurm_sns.sim.request import MODELS

        spreading = _names(lambda each: each.geometry is not GeometryChoice.OWN)
        for name in ("profiles", "progress"):
            if getattr(self, name) is not None and policy.geometry is GeometryChoice.OWN:
                raise BadInput(f"--{name} goes with --policy {spreading}, not with {called}")
        if self.user_estimates and not policy.plans_by_run_times:
            planning = _names(lambda each: each.plans_by_run_times)
            raise BadInput(f"--user-estimates goes with --policy {planning}, not with {called}")
        if self.progress not in (None, *MODELS):
            raise BadInput(f"--progress is '{self.progress}'; valid: {', '.join(MODELS)}")
        if self.learn is None:
            return
        if policy.geometry is not GeometryChoice.BY_PROFILE:
            learning = _names(lambda each: each.geometry is GeometryChoice.BY_PROFILE)
            raise BadInput(f"--learn goes with --policy {learning}, not with {called}")
        if self.profiles is None:
            raise BadInput("--learn needs --profiles: how the programs truly run")
        if not 0 <= self.learn <= 1:
            raise BadInput(f"--learn is {self.learn}; valid: 0 to 1")


def requested(
    name: str,
    settings: Mapping[str, Any],
    spreading: SpreadingOptions,
    config: Path | None,
    *,
    interval_s: int | None,
    age_limit_s: int | None,
    penalty_s: int | None = None,
) -> "SimulationRequest":
    """Turn the given options into a request. `settings` are the given options that set policies' parameters.

    Raises:
        BadInput: an option is not valid; the message names it and what is valid.
    """
    from slurm_sns.policies.placement.heuristics import HEURISTICS
    from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, SpreadingParameters, require_valid
    from slurm_sns.sim.request import AUTHORS, SimulationRequest, SpreadingRequest

    if name not in HEURISTICS and name not in REGISTRY:
        raise BadInput(f"--policy is '{name}'; valid: {', '.join([*HEURISTICS, *REGISTRY])}")
    chosen = specification(MAX_JOBS if name in HEURISTICS else name)
    require_taken(chosen, name, settings, but="portfolio" if name in HEURISTICS else "")
    spreading.require_taken(chosen, name)
    _require_times(chosen, name, interval_s, penalty_s)
    configured = _configured(config)

    def parameters(kind: type[_Parameters], simulated: tuple[Any, ...]) -> _Parameters:
        base = {type(each): each for each in simulated}.get(kind) or kind()
        given: _Parameters = with_settings(base if configured is None else configured.parameters(kind), settings)
        return given

    given: list[Any] = [parameters(kind, chosen.simulated) for kind in chosen.parameters]
    if name in HEURISTICS:
        given = [replace(each, portfolio=(name,), default_heuristic=None) for each in given]
    whole = given[0].portfolio if "portfolio" in settings else None
    of_spreading = None
    if chosen.geometry is not GeometryChoice.OWN:
        of_spreading = SpreadingRequest(
            parameters(SpreadingParameters, (REPRODUCTION,)),
            spreading.profiles,
            spreading.progress or AUTHORS,
            spreading.learn,
            spreading.seed,
            spreading.user_estimates,
        )
        require_valid(of_spreading.parameters)
    given = chosen.checked(*given)
    policy = chosen.policy(*given, portfolio=whole) if chosen.factory else None
    for option, value in (("age-limit", age_limit_s), ("progress", spreading.progress)):
        if value is not None and not hasattr(policy, "rules"):
            raise BadInput(f"--{option} goes with policies that match, not with {name}")
    return SimulationRequest(
        name,
        policy,
        tuple(given),
        chosen.runner,
        interval_s or chosen.interval_s,
        age_limit_s or (configured.matching.age_limit_s if configured else None),
        _shares(configured),
        of_spreading,
        penalty_s or 0,
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


def _names(is_one: Callable[[Specification], bool]) -> str:
    return ", ".join(each.name for each in map(specification, REGISTRY) if is_one(each))
