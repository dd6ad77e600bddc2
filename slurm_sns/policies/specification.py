"""The specification of a policy: its name, parameters and abilities, and how it is made, in one place.

The checks of sns.yaml, the options of `sns simulate`, their help texts and man page, and the registry read it. A
policy's parameters are plain frozen dataclasses; each field that a user may set carries a `Setting`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

from slurm_sns.errors import BadInput
from slurm_sns.policies.base import HistoryFormat, Policy

_KEY = "setting"
_Parameters = TypeVar("_Parameters")


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter: what it is for, and which values are valid.

    `section` is its section of sns.yaml, empty if sns.yaml does not have it. A number must be `least` or more, or
    greater than `above`, and `most` at most; in a tuple this holds for each entry. `site_most` is the largest value in
    sns.yaml if a simulation may use larger ones. `choices` gives the valid texts, `site_choices` those of sns.yaml if a
    simulation may use others. If `option` is set, `sns simulate` has an option with the name of the parameter; for a
    parameter that is True or False it is a switch.
    """

    help: str
    section: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    site_most: float | None = None
    choices: Callable[[], tuple[str, ...]] | None = None
    site_choices: Callable[[], tuple[str, ...]] | None = None
    option: bool = False

    def require(self, name: str, value: Any) -> None:
        """Accept a number that is within the limits, and a text that is one of the choices.

        Raises:
            BadInput: it is not; the message says what is valid.
        """
        if isinstance(value, str) and self.choices is not None and value not in self.choices():
            raise BadInput(f"{name} is '{value[:40]}'; valid: {', '.join(self.choices())}")
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


#: The limit of every policy that goes through an ordered queue. Deep enough that looking at every waiting job makes no
#: difference on pools of thousands of machines (reproduction netbatch-depth), and a limit on the time of a cycle.
DEFAULT_QUEUE_DEPTH = 20_000
QUEUE_DEPTH = Setting("Jobs that a cycle looks at.", "matching", least=1, site_most=1_000_000, option=True)


def parameter(default: Any, setting: Setting) -> Any:
    """A dataclass field with this default that carries the setting."""
    return field(default=default, metadata={_KEY: setting})


def settings_of(parameters: type) -> Mapping[str, Setting]:
    """The settings among the fields of a dataclass of parameters, by name."""
    return {each.name: each.metadata[_KEY] for each in fields(parameters) if _KEY in each.metadata}


def default_of(parameters: type, name: str) -> Any:
    """The default of one parameter."""
    default = next(each.default for each in fields(parameters) if each.name == name)
    return None if default is MISSING else default


def require_within_limits(parameters: Any) -> None:
    """Accept parameters whose numbers are within their limits, and whose texts are among their choices.

    Raises:
        BadInput: one of them is not; the message says what is valid.
    """
    for name, setting in settings_of(type(parameters)).items():
        setting.require(name, getattr(parameters, name))


def filled(parameters: type[_Parameters], *sources: Any) -> _Parameters:
    """Parameters of this type, with values taken from the sources' attributes of the same names.

    The first source that has an attribute decides; what no source has keeps its default.
    """
    values = {
        each.name: getattr(source, each.name)
        for each in fields(parameters)  # type: ignore[arg-type]  # a dataclass, which no type variable can say
        for source in reversed(sources)
        if hasattr(source, each.name)
    }
    return parameters(**values)


#: Time is in whole seconds: a cycle in each second in which a job was submitted or ended.
AT_EVERY_EVENT_S = 1


class GeometryChoice(Enum):
    """Whose geometry a policy chooses; any other job keeps its own. Those that choose can replay traces of programs."""

    #: Nobody's.
    OWN = "own"
    #: That of jobs which leave it open: their fewest nodes, or what the policy gives them by which it places.
    COMPACT = "compact"
    #: The same, and any scale that fits, though it knows nothing of their programs.
    ANY_SCALE = "any scale"
    #: That of jobs whose programs have profiles, so learning profiles is of use to it.
    BY_PROFILE = "by profile"


@dataclass(frozen=True, slots=True)
class Specification:
    """A policy.

    `help` is one line. `parameters` are the dataclasses of its parameters; `factory`, a "module:function", is called
    with one of each and makes the policy. It is imported only when the policy is made, so a specification alone loads
    no policy. A policy without a factory makes no plans: a replay of its own simulates it.

    `geometry` says whose geometry it chooses. `plans_by_run_times`: it reads the jobs' expected run times, so the
    owners' estimates are of use to it. `is_simulated_only`: only `sns simulate` has it; sns.yaml refuses it and has no
    settings of it. `is_fluid`: it gives jobs fractions of the CPU. `history` is how its history is stored, None for a
    policy without history. Of a policy with a parameter `portfolio` the user may choose the heuristics: its factory
    takes them as `portfolio`, too.

    In a simulation `simulated` are the default parameters, as in the paper's experiments, and `interval_s` is the time
    between two cycles: by default there is one in each second with an event. `runner`, a "module:function", replays a
    trace (module sim.runners): by default cycle by cycle, by the policy's plans.
    """

    name: str
    help: str
    parameters: tuple[type, ...]
    factory: str = ""
    geometry: GeometryChoice = GeometryChoice.OWN
    plans_by_run_times: bool = False
    is_simulated_only: bool = False
    is_fluid: bool = False
    history: HistoryFormat | None = None
    simulated: tuple[object, ...] = ()
    runner: str = "slurm_sns.sim.runners.plans:by_plans"
    interval_s: int = AT_EVERY_EVENT_S

    @property
    def has_portfolio(self) -> bool:
        """Whether the user may choose its heuristics."""
        return any("portfolio" in settings_of(each) for each in self.parameters)

    def checked(self, *parameters: Any) -> list[Any]:
        """One of each of its parameters: those that are given, and the defaults of the others.

        Raises:
            BadInput: a parameter is not valid.
        """
        given = {type(each): each for each in parameters}
        chosen = [given.get(each) or each() for each in self.parameters]
        for each in chosen:
            require_within_limits(each)
        return chosen

    def policy(self, *parameters: Any, portfolio: tuple[str, ...] | None = None) -> Policy:
        """The policy with these parameters, and the defaults for those that are not given.

        `portfolio` names the heuristics of a policy that has a portfolio; None leaves them to the parameters.

        Raises:
            BadInput: a parameter is not valid, or the policy makes no plans.
        """
        chosen = self.checked(*parameters)
        if not self.factory:
            raise BadInput(f"policy '{self.name}' makes no plans; valid: a replay of a whole trace, as in sns simulate")
        make: Callable[..., Policy] = named(self.factory)
        return make(*chosen, portfolio=portfolio) if self.has_portfolio else make(*chosen)


def named(place: str) -> Any:
    """What stands at this place, a "module:function"."""
    module, name = place.split(":")
    return getattr(import_module(module), name)


def _short(number: float) -> str:
    """A limit as people write it: 64, 1e6."""
    return f"{number:g}".replace("e+0", "e")
