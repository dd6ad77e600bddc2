"""Answers about the programs' profiles, which every user may see: a summary of all, or one in full.

`sns profile` summarises a file or the store with the same functions, so it prints the same as the running scheduler.
"""

from collections.abc import Mapping
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.policies.profile import Program
from slurm_sns.policies.sns.classify import Classification, classify
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.policies.sns.profile_reading import data_of
from slurm_sns.scheduler.answers.learning import Known
from slurm_sns.submit.hints import is_program

#: The answer about a program without a profile.
NO_PROFILE = "has no profile; sns profile list shows the programs that have one"


def class_of(program: Program, processes: int) -> Classification:
    """The program's class at this number of processes, for which it must be profiled."""
    return classify(program.at(processes), SnsParameters(), max_scale=program.max_scale)


def summary(program: Program) -> dict[str, Any]:
    """The program's class at each profiled number of processes, as JSON values."""
    classes = []
    for processes in program.process_counts:
        found = class_of(program, processes)
        classes.append(
            {
                "processes": processes,
                "class": str(found.kind),
                "ideal_scale": found.ideal_scale,
                "bottleneck": found.bottleneck or None,
            }
        )
    return {"program": program.name, "source": program.source, "max_scale": program.max_scale, "classes": classes}


class Summaries:
    """The summaries of all programs, made only once for each set of programs that is loaded."""

    def __init__(self) -> None:
        self._made: tuple[Mapping[str, Program], dict[str, dict[str, Any]]] = ({}, {})

    def of(self, known: Known, user_id: int | None = None) -> list[dict[str, Any]]:
        """The summaries of the programs that this user may see (None: all), with what is learnt of them.

        Several threads may call this at once; at worst each makes them.
        """
        programs, summaries = self._made
        if programs is not known.programs:
            summaries = {name: summary(program) for name, program in known.programs.items()}
            self._made = (known.programs, summaries)
        return [_with_learnt(summaries.get(name), known, name, user_id) for name in known.names(user_id)]


def _with_learnt(made: dict[str, Any] | None, known: Known, name: str, user_id: int | None) -> dict[str, Any]:
    """The program's summary; where something is learnt of it, with that."""
    found = made or {"program": name, "source": "", "max_scale": None, "classes": []}
    learnt = known.learnt_of(name, user_id)
    return {**found, "learnt": learnt} if learnt else found


def require_name(name: object) -> str:
    """The name, if it is valid as a program's name.

    Raises:
        BadInput: it is not.
    """
    if not isinstance(name, str) or not is_program(name):
        raise BadInput(f"program {ascii(name)[:80]}; valid: 1 to 64 letters, digits and . _ + -")
    return name


def profile(known: Known, asked: object, user_id: int | None = None) -> dict[str, Any]:
    """The profile of the program of that name, as the content of a profile file; where something is learnt, with that.

    A program that is only being explored has no profile: `programs` is empty then.

    Raises:
        BadInput: the name is not valid, or this user (None: an admin) may see no program of that name.
    """
    name = require_name(asked)
    if name not in known.names(user_id):
        raise BadInput(f"program '{name}' {NO_PROFILE}")
    content = data_of([known.programs[name]] if name in known.programs else [])
    learnt = known.learnt_of(name, user_id)
    return {**content, "learnt": learnt} if learnt else content
