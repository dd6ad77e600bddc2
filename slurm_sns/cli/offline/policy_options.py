"""The options of `sns simulate` that set policies' parameters, generated from the policies' specifications."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

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
        takes = [each for each in map(specification, REGISTRY) if _takes(each, name)]
        if policy not in takes or name == but:
            names = ", ".join(each.name for each in takes)
            raise BadInput(f"{_option_name(name)} goes with --policy {names}, not with {called}")


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
    is_list = get_origin(kind) is tuple
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
    """The default as the help shows it. A switch, which is off by default, shows none."""
    match default:
        case bool():
            return False
        case tuple():
            return ",".join(map(str, default))
        case str():
            return default
        case number:
            return f"{number:g}"


def _value(name: str, value: Any, kind: Any) -> Any:
    """The given value; for a list parameter the text with commas is split."""
    if get_origin(kind) is not tuple:
        return value
    parts = tuple(part.strip() for part in value.split(","))
    if get_args(kind)[0] is not int:
        return parts
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        shown = value[:40]
        raise BadInput(f"{_option_name(name)} is '{shown}'; valid: whole numbers separated by commas, as in 1,2,4,8")
    return tuple(map(int, parts))


def _takes(policy: Specification, name: str) -> bool:
    """Whether an option goes with the policy: it is the policy's own, or one of spreading and the policy spreads."""
    return _has(policy, name) or (
        policy.geometry is not GeometryChoice.OWN and name in settings_of(SpreadingParameters)
    )


def _has(policy: Specification, name: str) -> bool:
    """Whether the policy has a parameter of this name."""
    return any(name in settings_of(kind) for kind in policy.parameters)


def _option_name(name: str) -> str:
    """The option of a parameter: its name without the unit of seconds."""
    return f"--{name.removesuffix('_s').replace('_', '-')}"
