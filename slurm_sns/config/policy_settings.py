"""The policies' own settings in sns.yaml: their types, limits and defaults, from the policies' specifications."""

from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model

from slurm_sns.config.grammar import one_of
from slurm_sns.policies.registry import live_policies, specification
from slurm_sns.policies.specification import Setting, default_of, settings_of

_Parameters = TypeVar("_Parameters")


def section_of_policies(section: str, base: type[BaseModel]) -> Any:
    """`base` with the settings that the policies have in this section of sns.yaml.

    Several policies may have a setting in common; the policy with the most settings in the section gives their order.
    """
    settings: dict[str, Any] = {}
    for parameters in sorted(_parameters(), key=lambda each: -len(_in_section(each, section))):
        kinds = get_type_hints(parameters)
        for name, setting in _in_section(parameters, section).items():
            settings.setdefault(name, (_kind(kinds[name], setting), default_of(parameters, name)))
    return create_model(base.__name__, __base__=base, **settings)


def with_policies_own_sections(base: type[BaseModel], *shared: str) -> Any:
    """`base` with a section for each policy that has one of its own, besides those in `shared`."""
    names = dict.fromkeys(each.section for kind in _parameters() for each in settings_of(kind).values() if each.section)
    sections: dict[str, Any] = {name: section_of_policies(name, base) for name in names if name not in shared}
    fields: dict[str, Any] = {name: (kind, kind()) for name, kind in sections.items()}
    return create_model(base.__name__, __base__=base, **fields)


def parameters_from(parameters: type[_Parameters], settings: Any) -> _Parameters:
    """A policy's parameters with the values of sns.yaml; a parameter without a setting keeps its default."""
    values = {
        name: getattr(getattr(settings, setting.section), name)
        for name, setting in settings_of(parameters).items()
        if setting.section
    }
    return parameters(**values)


def _parameters() -> list[type]:
    """The parameters of all policies that a cluster may have, each once."""
    return list(dict.fromkeys(each for name in live_policies() for each in specification(name).parameters))


def _in_section(parameters: type, section: str) -> dict[str, Setting]:
    return {name: setting for name, setting in settings_of(parameters).items() if setting.section == section}


def _kind(kind: Any, setting: Setting) -> Any:
    """The type of a setting, with its limits, as pydantic checks it."""
    if get_origin(kind) is tuple:
        return Annotated[tuple[_kind(get_args(kind)[0], setting), ...], Field(min_length=1)]  # type: ignore[misc]
    if type(None) in get_args(kind):
        (other,) = (each for each in get_args(kind) if each is not type(None))
        return _kind(other, setting) | None
    if kind is str and setting.choices is not None:
        return one_of(setting.choices())
    most = setting.most if setting.site_most is None else setting.site_most
    if kind is int:
        return Annotated[int, Field(ge=setting.least, le=most)]
    if kind is float:
        return Annotated[float, Field(ge=setting.least, gt=setting.above, le=most, allow_inf_nan=False)]
    return kind
