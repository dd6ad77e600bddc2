"""Where `sns profile` finds profiles: in a file, in the store, or by asking the running scheduler.

Only SlurmUser may read the store, and can do so whether a scheduler runs or not. Everybody else asks the scheduler,
which answers with the profiles that it plans with. The output is the same either way.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from slurm_sns.errors import BadInput, Unreachable

if TYPE_CHECKING:
    from slurm_sns.config import Config
    from slurm_sns.policies.profile import Program
    from slurm_sns.store.profiles import StoredProfiles


class ProgramSource(Protocol):
    """Gives profiles."""

    def summaries(self) -> list[dict[str, Any]]:
        """Every program with its classes, as scheduler.profile_answers gives them."""
        ...

    def program(self, name: str) -> "Program":
        """The program of that name.

        Raises:
            BadInput: there is no such program.
        """
        ...


class Loaded:
    """Programs that this process has read. `missing` is the end of the error message for an unknown name."""

    def __init__(self, programs: Mapping[str, "Program"], missing: str) -> None:
        self._programs, self._missing = programs, missing

    def summaries(self) -> list[dict[str, Any]]:
        """Every program with its classes."""
        from slurm_sns.scheduler.profile_answers import summary

        return [summary(program) for program in self._programs.values()]

    def program(self, name: str) -> "Program":
        """The program of that name."""
        if name not in self._programs:
            raise BadInput(f"program '{name[:64]}' {self._missing}")
        return self._programs[name]


class SchedulerPrograms:
    """The programs of the running scheduler. `hint` is added to the error message if no scheduler answers."""

    def __init__(self, config: Path, hint: str = "") -> None:
        self._config, self._hint = config, hint

    def summaries(self) -> list[dict[str, Any]]:
        """Every program with its classes."""
        found: list[dict[str, Any]] = self._ask({})
        return found

    def program(self, name: str) -> "Program":
        """The program of that name."""
        from slurm_sns.policies.sns.profile_reading import programs_of
        from slurm_sns.scheduler.profile_answers import require_name

        require_name(name)
        return programs_of(self._ask({"program": name}))[0]

    def _ask(self, about: dict[str, str]) -> Any:
        from slurm_sns.cli.live.asking import asker

        try:
            return asker(self._config, {"command": "profile", **about})()
        except Unreachable as problem:
            raise Unreachable(f"{problem}{self._hint}") from None


def source(file: Path | None, config: Path) -> ProgramSource:
    """The file if one is given, otherwise what the caller may read: the store, or the scheduler's answers."""
    from slurm_sns.cli.live.asking import is_for_admins

    if file is not None:
        from slurm_sns.config.profiles_yaml import read_profiles

        programs = {program.name: program for program in read_profiles(file)}
        return Loaded(programs, f"has no profile; there are: {', '.join(programs) or 'none'}")
    if is_for_admins(config):
        return SchedulerPrograms(config)
    from slurm_sns.config import load

    configuration = load(config)
    user = configuration.slurm.user
    if not _runs_as(user):
        is_root = os.geteuid() == 0  # only root can become SlurmUser, so nobody else gets this hint
        return SchedulerPrograms(config, f"; {user} reads the store without it: sudo -u {user}" if is_root else "")
    from slurm_sns.scheduler.profile_answers import NO_PROFILE

    return Loaded(store(configuration).load(), NO_PROFILE)


def store(configuration: "Config") -> "StoredProfiles":
    """The profiles in the store.

    Raises:
        BadInput: the caller is not SlurmUser.
    """
    from slurm_sns.cli.live import process
    from slurm_sns.store.profiles import StoredProfiles
    from slurm_sns.store.schema import open_store

    process.require_slurm_user(configuration)
    process.make_directories(configuration)
    return StoredProfiles(open_store(configuration.database_url))


def _runs_as(user: str) -> bool:
    try:
        return os.geteuid() == pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
