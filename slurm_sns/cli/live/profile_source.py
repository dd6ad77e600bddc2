"""Where `sns profile` finds profiles: in a file, in the store, or by asking the running scheduler.

Only SlurmUser may read the store, and can do so whether a scheduler runs or not. Everybody else asks the scheduler,
which answers with the profiles that it plans with. The output is the same either way.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slurm_sns.cli.installations import CONTROLLER, needs
from slurm_sns.errors import BadInput, Unreachable

if TYPE_CHECKING:
    from slurm_sns.config.configuration import Config
    from slurm_sns.policies.profile import Program
    from slurm_sns.scheduler.answers.answer_types import LearntValues, ProgramSummary
    from slurm_sns.scheduler.answers.profiles import KnownPrograms
    from slurm_sns.store.profiles import StoredProfiles


class Described(NamedTuple):
    """A program's profile, None while it is only being explored, and what is learnt of it by number of processes."""

    program: "Program | None"
    learnt: "dict[int, LearntValues]"


class Loaded:
    """Programs that this process has read. `missing` is the end of the error message for an unknown name."""

    def __init__(self, known: "KnownPrograms", missing: str, factors: tuple[float, ...]) -> None:
        self._known, self._missing, self._factors = known, missing, factors

    def summaries(self) -> "list[ProgramSummary]":
        """Every program with its classes, as scheduler.answers.profiles gives them."""
        from slurm_sns.scheduler.answers.profiles import Summaries

        return Summaries(self._factors).of(self._known)

    def described(self, name: str) -> Described:
        """What is known of the program of that name.

        Raises:
            BadInput: nothing is known of it.
        """
        if name not in self._known.names(None):
            raise BadInput(f"program '{name[:64]}' {self._missing}")
        return Described(self._known.programs.get(name), self._known.learnt_of(name, None))


class SchedulerPrograms:
    """The programs of the running scheduler. `hint` is added to the error message if no scheduler answers."""

    def __init__(self, config: Path, hint: str = "") -> None:
        self._config, self._hint = config, hint

    def summaries(self) -> "list[ProgramSummary]":
        """Every program with its classes."""
        found: list[ProgramSummary] = self._ask({})
        return found

    def described(self, name: str) -> Described:
        """What is known of the program of that name."""
        from slurm_sns.policies.spread_n_share.profile_reading import programs_of
        from slurm_sns.scheduler.answers.profiles import require_name

        require_name(name)
        answer = dict(self._ask({"program": name}))
        learnt = {int(processes): each for processes, each in answer.pop("learnt", {}).items()}
        return Described(programs_of(answer)[0] if answer["programs"] else None, learnt)

    def _ask(self, about: dict[str, str]) -> Any:
        from slurm_sns.cli.live.asking import asker

        try:
            return asker(self._config, {"command": "profile", **about})()
        except Unreachable as problem:
            raise Unreachable(f"{problem}{self._hint}") from None


ProgramSource = Loaded | SchedulerPrograms


def source(file: Path | None, config: Path) -> ProgramSource:
    """The file if one is given, otherwise what the caller may read: the store, or the scheduler's answers."""
    from slurm_sns.cli.live.scheduler_socket import is_for_admins

    if file is not None:
        from slurm_sns.config.profiles_yaml import read_profiles
        from slurm_sns.scheduler.answers.profiles import KnownPrograms

        programs = {program.name: program for program in read_profiles(file)}
        missing = f"has no profile; there are: {', '.join(programs) or 'none'}"
        return Loaded(KnownPrograms(programs, programs), missing, factors(file, config))
    if is_for_admins(config):
        return SchedulerPrograms(config)
    from slurm_sns.cli.live import process
    from slurm_sns.config.configuration import load

    configuration = load(config)
    user = configuration.slurm.user
    if process.user_id(user) != os.geteuid():
        is_root = os.geteuid() == 0  # only root can become SlurmUser, so nobody else gets this hint
        return SchedulerPrograms(config, f"; {user} reads the store without it: sudo -u {user}" if is_root else "")
    needs("the store", CONTROLLER)
    from slurm_sns.scheduler.answers.profiles import NO_PROFILE, KnownPrograms
    from slurm_sns.scheduler.learning.learner import ServedProfiles
    from slurm_sns.store.database import open_store
    from slurm_sns.store.learning import StoredEvidence

    imported = store(configuration).load()
    learning, _ = StoredEvidence(open_store(configuration.database_url)).load()
    known = KnownPrograms(ServedProfiles().of(imported, learning.learnt), imported, learning)
    return Loaded(known, NO_PROFILE, factors(file, config))


def factors(file: Path | None, config: Path) -> tuple[float, ...]:
    """The frequency factors of this configuration; where there is none, a file of profiles is shown without any."""
    from slurm_sns.config.configuration import load

    if file is not None and not config.exists():
        return (1.0,)
    found: tuple[float, ...] = load(config).spread_n_share.frequency_factors
    return found


def program_of(source: ProgramSource, name: str) -> "Program":
    """The profile of the program of that name.

    Raises:
        BadInput: there is none.
    """
    found = source.described(name).program
    if found is None:
        raise BadInput(f"program '{name}' has no profile yet: it is being explored; sns profile show {name}")
    return found


def store(configuration: "Config") -> "StoredProfiles":
    """The profiles in the store.

    Raises:
        BadInput: the caller is not SlurmUser.
    """
    needs("the store", CONTROLLER)
    from slurm_sns.cli.live import process
    from slurm_sns.store.database import open_store
    from slurm_sns.store.profiles import StoredProfiles

    process.require_slurm_user(configuration)
    process.make_directories(configuration)
    return StoredProfiles(open_store(configuration.database_url))
