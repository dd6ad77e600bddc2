"""The request of `sns simulate`: its options and a configuration become a policy, before any trace is read.

The options that set policies' parameters are generated from the policies' specifications.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import (
    AT_EVERY_EVENT_S,
    GeometryChoice,
    Setting,
    Specification,
    default_of,
    settings_of,
)
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters

if TYPE_CHECKING:
    from slurm_sns.sim.request import SimulationRequest

_Parameters = TypeVar("_Parameters")

#: `--policy HEURISTIC` means this policy with a portfolio of that one heuristic.
MAX_JOBS = "max-jobs"
#: FCFS and EASY have the parameters of spreading, but try a job's alternatives best first.
ALTERNATIVES_ORDER = "alternatives_order"


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

        for name in ("profiles", "progress"):
            if getattr(self, name) is not None and not _spreads(policy):
                raise _wrong_policy(f"--{name}", called, _spreads)
        if self.user_estimates and not policy.plans_by_run_times:
            raise _wrong_policy("--user-estimates", called, lambda each: each.plans_by_run_times)
        if self.progress not in (None, *MODELS):
            raise BadInput(f"--progress is '{self.progress}'; valid: {', '.join(MODELS)}")
        if self.learn is None:
            return
        if policy.geometry is not GeometryChoice.BY_PROFILE:
            raise _wrong_policy("--learn", called, lambda each: each.geometry is GeometryChoice.BY_PROFILE)
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
    from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION, require_valid
    from slurm_sns.sim.request import AUTHORS, SimulationRequest, SpreadingRequest

    if name not in HEURISTICS and name not in REGISTRY:
        raise BadInput(f"--policy is '{name}'; valid: {', '.join([*HEURISTICS, *REGISTRY])}")
    chosen = specification(MAX_JOBS if name in HEURISTICS else name)
    require_taken(chosen, name, settings, but="portfolio" if name in HEURISTICS else "")
    spreading.require_taken(chosen, name)
    _require_times(chosen, name, interval_s, penalty_s)
    configured = None
    if config is not None:
        from slurm_sns.config.configuration import load

        configured = load(config)

    def parameters(kind: type[_Parameters], simulated: tuple[Any, ...]) -> _Parameters:
        base = {type(each): each for each in simulated}.get(kind) or kind()
        given: _Parameters = with_settings(base if configured is None else configured.parameters(kind), settings)
        return given

    given: list[Any] = [parameters(kind, chosen.simulated) for kind in chosen.parameters]
    if name in HEURISTICS:
        given = [replace(each, portfolio=(name,), default_heuristic=None) for each in given]
    whole = given[0].portfolio if "portfolio" in settings else None
    of_spreading = None
    if _spreads(chosen):
        of_spreading = SpreadingRequest(
            parameters(SpreadingParameters, (REPRODUCTION,)),
            spreading.profiles,
            spreading.progress or AUTHORS,
            spreading.learn,
            spreading.seed,
            spreading.user_estimates,
        )
        require_valid(of_spreading.parameters)
    # A simulation cannot read Slurm's associations: all projects then have equal shares.
    shares = configured.matching.shares if configured else {}
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
        {} if isinstance(shares, str) else shares,
        of_spreading,
        penalty_s or 0,
        frozenset(settings),
    )


def _require_times(policy: Specification, called: str, interval_s: int | None, penalty_s: int | None) -> None:
    """Refuse an interval, which some replays do not have, and a penalty, which only fluid policies pay."""
    from slurm_sns.policies.rescheduling.parameters import RESCHEDULING

    if interval_s is not None and (policy.is_fluid or policy == RESCHEDULING):
        raise BadInput(f"--interval does not go with {called}, which decides whenever a job is submitted or ends")
    if not policy.is_fluid and penalty_s is not None:
        raise _wrong_policy("--penalty", called, lambda each: each.is_fluid)


def _wrong_policy(option: str, called: str, takes: Callable[[Specification], bool]) -> BadInput:
    """The error for an option that goes with other policies only."""
    names = ", ".join(each.name for each in map(specification, REGISTRY) if takes(each))
    return BadInput(f"{option} goes with --policy {names}, not with {called}")


def _spreads(policy: Specification) -> bool:
    return policy.geometry is not GeometryChoice.OWN


def with_policy_options(after: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each policy parameter that has one; in the help they follow the option `after`.

    The command receives the options that the user gave as one argument `settings`: parameter name -> value.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = _options()

        @wraps(command)
        def run(**given: Any) -> None:
            settings = {name: given.pop(name) for name in options}
            command(**given, settings={name: value for name, value in settings.items() if value is not None})

        own = [each for each in inspect.signature(command).parameters.values() if each.name != "settings"]
        at = 1 + next(place for place, each in enumerate(own) if each.name == after)
        run.__signature__ = inspect.Signature([*own[:at], *options.values(), *own[at:]])  # type: ignore[attr-defined]
        kinds = get_type_hints(command, include_extras=True)
        kinds |= {each.name: each.annotation for each in options.values()}
        run.__annotations__ = {name: kind for name, kind in kinds.items() if name != "settings"}
        return run

    return decorate


def default_intervals() -> str:
    """The default of --interval, with the policies that have another one; a heuristic has that of max-jobs."""
    others = (each for each in map(specification, REGISTRY) if each.interval_s != AT_EVERY_EVENT_S)
    told = [f"{each.name}{' and heuristics' if each.name == 'max-jobs' else ''}: {each.interval_s}" for each in others]
    return "; ".join(["at every submit and finish", *told])


def require_taken(policy: Specification, called: str, settings: Mapping[str, Any], *, but: str = "") -> None:
    """Check that the policy uses every given option; the options of spreading go with every policy that spreads.

    `called` is the policy's name on the command line; `but` is a parameter that this name excludes.

    Raises:
        BadInput: an option goes with other policies only; the message lists them.
    """
    for name in settings:
        if name == but or not _takes(policy, name):
            raise _wrong_policy(_option_name(name), called, partial(_takes, name=name))


def with_settings(parameters: Any, settings: Mapping[str, Any]) -> Any:
    """The parameters, a frozen dataclass, with the values that were given on the command line.

    Raises:
        BadInput: a list cannot be read; the message says what is valid.
    """
    kinds = get_type_hints(type(parameters))
    known = settings_of(type(parameters))
    return replace(
        parameters,
        **{name: _value(name, value, kinds[name]) for name, value in settings.items() if name in known},
    )


def _options() -> dict[str, inspect.Parameter]:
    """The options by parameter name; a parameter that several policies share becomes one option."""
    found: dict[str, inspect.Parameter] = {}
    for each in map(specification, REGISTRY):
        for parameters in each.parameters:
            kinds = get_type_hints(parameters)
            for name, setting in settings_of(parameters).items():
                if setting.option and name not in found:
                    found[name] = _option(name, setting, kinds[name], default_of(parameters, name))
    return found


def _option(name: str, setting: Setting, kind: Any, default: Any) -> inspect.Parameter:
    takes = [each.name for each in map(specification, REGISTRY) if _has(each, name)]
    of = "" if len(takes) == len(REGISTRY) else f" ({', '.join(takes)})"
    is_list = _list_in(kind) is not None
    least = int(setting.least) if kind is int and setting.least is not None else None
    option = typer.Option(
        _option_name(name), min=least, help=f"{setting.help.rstrip('.')}{of}.", show_default=_shown(default)
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[(str if is_list else kind) | None, option],
    )


def _shown(default: Any) -> str | bool:
    """The default as the help shows it. A switch, which is off by default, shows none, and no limit none either."""
    match default:
        case bool() | None:
            return False
        case tuple():
            return ",".join(map(str, default))
        case str():
            return default
        case number:
            return f"{number:g}"


def _value(name: str, value: Any, kind: Any) -> Any:
    """The given value; for a list parameter the text with commas is split."""
    whole_list = _list_in(kind)
    if whole_list is None:
        return value
    parts = tuple(part.strip() for part in value.split(","))
    if get_args(whole_list)[0] is not int:
        return parts
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        shown = value[:40]
        raise BadInput(f"{_option_name(name)} is '{shown}'; valid: whole numbers separated by commas, as in 1,2,4,8")
    return tuple(map(int, parts))


def _list_in(kind: Any) -> Any:
    """The type of a list, also of one that may be None; None for another type."""
    return next((each for each in (kind, *get_args(kind)) if get_origin(each) is tuple), None)


def _takes(policy: Specification, name: str) -> bool:
    """Whether an option goes with the policy: it is the policy's own, or one of spreading and the policy spreads."""
    if name == ALTERNATIVES_ORDER:
        return _has(policy, name)
    return _has(policy, name) or (_spreads(policy) and name in settings_of(SpreadingParameters))


def _has(policy: Specification, name: str) -> bool:
    """Whether the policy has a parameter of this name, and uses it."""
    is_used = name != ALTERNATIVES_ORDER or policy.geometry is GeometryChoice.BY_PROFILE
    return is_used and any(name in settings_of(kind) for kind in policy.parameters)


def _option_name(name: str) -> str:
    """The option of a parameter: its name without the unit of seconds."""
    return f"--{name.removesuffix('_s').replace('_', '-')}"
