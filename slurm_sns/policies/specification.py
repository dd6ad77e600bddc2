"""What there is to say of a policy in one place: its name, parameters, needs and how it is made.

sns.yaml's checks, the options of `sns simulate`, their help texts and man page, and the registry read it. A policy's
parameters are plain frozen dataclasses; each field that somebody may set carries a `Setting`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from typing import Any, TypeVar

from slurm_sns.errors import BadInput
from slurm_sns.policies.base import HistoryFormat, Policy

_KEY = "setting"
_Parameters = TypeVar("_Parameters")


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter: what it is for, and which values are valid.

    `section` is where sns.yaml has it, empty where it does not. A number is at least `least` or `above` a bound, and
    at most `most`; of a tuple that holds for each entry. `site_most` is what sns.yaml allows at most where a simulation
    may have more. `choices` gives the valid texts. `option`: `sns simulate` has an option for it, named like the
    parameter.
    """

    help: str
    section: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    site_most: float | None = None
    choices: Callable[[], tuple[str, ...]] | None = None
    option: bool = False

    def require(self, name: str, value: Any) -> None:
        """Accept a number that is within the limits.

        Raises:
            BadInput: it is not; the message says what is valid.
        """
        if not isinstance(value, int | float) or isinstance(value, bool):
            return
        is_low = (self.least is not None and value < self.least) or (self.above is not None and value <= self.above)
        is_high = self.most is not None and value > self.most
        if is_low or is_high or not math.isfinite(value):
            raise BadInput(f"{name} is {value}; valid: {self._words()}")

    def _words(self) -> str:
        if self.above is not None:
            return (
                f"above {self.above:g}" if self.most is None else f"above {self.above:g}, at most {_short(self.most)}"
            )
        return f"{self.least:g} or more" if self.most is None else f"from {self.least:g} to {_short(self.most)}"


#: The limit of every policy that goes through an ordered queue.
QUEUE_DEPTH = Setting("Jobs that a cycle looks at.", "matching", least=1, site_most=1_000_000, option=True)


def parameter(default: Any, setting: Setting) -> Any:
    """A dataclass field with this default that is such a setting."""
    return field(default=default, metadata={_KEY: setting})


def settings_of(parameters: type) -> Mapping[str, Setting]:
    """The settings among the fields of a dataclass of parameters, by name."""
    return {each.name: each.metadata[_KEY] for each in fields(parameters) if _KEY in each.metadata}


def default_of(parameters: type, name: str) -> Any:
    """The default of one parameter."""
    default = next(each.default for each in fields(parameters) if each.name == name)
    return None if default is MISSING else default


def require_within_limits(parameters: Any) -> None:
    """Accept parameters whose numbers are within their limits.

    Raises:
        BadInput: one of them is not; the message says what is valid.
    """
    for name, setting in settings_of(type(parameters)).items():
        setting.require(name, getattr(parameters, name))


def filled(parameters: type[_Parameters], *sources: Any) -> _Parameters:
    """Parameters of this kind with the sources' values of the same names, the first source's where several have one."""
    values = {
        each.name: getattr(source, each.name)
        for each in fields(parameters)  # type: ignore[arg-type]  # a dataclass, which no type variable can say
        for source in reversed(sources)
        if hasattr(source, each.name)
    }
    return parameters(**values)


@dataclass(frozen=True, slots=True)
class Specification:
    """A policy.

    `help` is one line. `parameters` are the dataclasses of its parameters; `factory`, a "module:function", is given one
    of each and makes the policy. It is imported when the policy is made: to name a policy costs nothing.

    `spreads`: it chooses the geometry of jobs that leave it open, so it takes traces of programs; `spreads_unprofiled`:
    also of jobs whose program is not known. `plans_by_profiles`: it reads profiles, so there is something for it to
    learn. `has_portfolio`: its heuristics may be chosen. `runs_at_events`: in a simulation it is asked at every event
    unless an interval is given. `history` is how what it remembers is stored, None for a policy that remembers nothing.
    `simulated` are parameters as in the paper's experiments, with which a simulation begins.
    """

    name: str
    help: str
    parameters: tuple[type, ...]
    factory: str
    spreads: bool = False
    spreads_unprofiled: bool = False
    plans_by_profiles: bool = False
    has_portfolio: bool = False
    runs_at_events: bool = False
    history: HistoryFormat | None = None
    simulated: tuple[Any, ...] = ()

    def policy(self, *parameters: Any, portfolio: tuple[str, ...] | None = None) -> Policy:
        """The policy with these parameters, the defaults for those that are not given.

        `portfolio` are the heuristics of a policy that has a portfolio where they are named one by one.

        Raises:
            BadInput: a parameter cannot be used.
        """
        given = {type(each): each for each in parameters}
        chosen = [given.get(each) or each() for each in self.parameters]
        for each in chosen:
            require_within_limits(each)
        module, name = self.factory.split(":")
        make: Callable[..., Policy] = getattr(import_module(module), name)
        return make(*chosen, portfolio=portfolio) if self.has_portfolio else make(*chosen)


def _short(number: float) -> str:
    """A limit as people write it: 64, 1e6."""
    return f"{number:g}".replace("e+0", "e")
