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
        self._made: tuple[Mapping[str, Program], list[dict[str, Any]]] = ({}, [])

    def of(self, programs: Mapping[str, Program]) -> list[dict[str, Any]]:
        """The summaries of these programs. Several threads may call this at once; at worst each makes them."""
        known, summaries = self._made
        if known is not programs:
            summaries = [summary(program) for program in programs.values()]
            self._made = (programs, summaries)
        return summaries


def require_name(name: object) -> str:
    """The name, if it is valid as a program's name.

    Raises:
        BadInput: it is not.
    """
    if not isinstance(name, str) or not is_program(name):
        raise BadInput(f"program {ascii(name)[:80]}; valid: 1 to 64 letters, digits and . _ + -")
    return name


def profile(programs: Mapping[str, Program], asked: object) -> dict[str, Any]:
    """The profile of the program of that name, as the content of a profile file.

    Raises:
        BadInput: the name is not valid, or no program of that name has a profile.
    """
    name = require_name(asked)
    if name not in programs:
        raise BadInput(f"program '{name}' {NO_PROFILE}")
    return data_of([programs[name]])
