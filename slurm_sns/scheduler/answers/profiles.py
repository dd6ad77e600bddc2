"""Answers about the programs' profiles: a summary of all, one in full, and what is learnt of them.

`sns profile` summarises a file or the store with the same functions, so it prints the same as the running scheduler.
Every user may see an imported profile. The names of learnt programs come from users' jobs: a program without an
imported profile is shown to admins, and to those users from whose runs it was learnt.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from slurm_sns.errors import BadInput
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.classify import Classification, classify
from slurm_sns.policies.spread_n_share.evidence import Estimate, KnownEvidence, Scales
from slurm_sns.policies.spread_n_share.learning import Key
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.profile_reading import data_of
from slurm_sns.scheduler.answers.answer_types import (
    EstimateValues,
    LearntValues,
    MeasuredScale,
    ProgramClassValues,
    ProgramSummary,
)
from slurm_sns.scheduler.learning.learner import serves
from slurm_sns.scheduler.learning.values import NOTHING_LEARNT, LearningState, Learnt
from slurm_sns.submit.hints import is_program

NO_PROGRAMS: Mapping[str, Program] = {}
#: The site's frequency factors (SpreadingParameters).
Factors = tuple[float, ...]


class KnownPrograms:
    """All that is known of programs: the profiles that jobs run by, those that were imported, and what is learnt."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        imported: Mapping[str, Program] = NO_PROGRAMS,
        learning: LearningState = NOTHING_LEARNT,
    ) -> None:
        self.programs, self._imported, self._learning = programs, imported, learning
        self._exploring = {run.key: run for run in learning.runs.values() if run.explores_now}
        self._counts: dict[str, set[int]] = {}
        for name, processes in (*learning.learnt, *self._exploring):
            self._counts.setdefault(name, set()).add(processes)

    def names(self, user_id: int | None) -> list[str]:
        """The names of the programs that this user may see, sorted; None: of all programs."""
        if not self._counts:
            return list(self.programs)
        return sorted({*(self.programs if user_id is None else self._imported), *self._learnt_by(user_id)})

    def learnt_of(self, name: str, user_id: int | None) -> dict[int, LearntValues]:
        """What is learnt of this program, by number of processes; this user may see the program."""
        return {processes: self._data((name, processes), user_id) for processes in sorted(self._counts.get(name, ()))}

    def _learnt_by(self, user_id: int | None) -> Iterator[str]:
        """The programs that are learnt, or explored for the first time, from runs of this user (None: of anybody)."""
        for (name, _), learnt in self._learning.learnt.items():
            if user_id is None or user_id in learnt.users:
                yield name
        for (name, _), run in self._exploring.items():
            if user_id in (None, run.user_id):
                yield name

    def _data(self, key: Key, user_id: int | None) -> LearntValues:
        """What is learnt of one (program, processes).

        Of the exploring run of now, other users than its owner (`user_id`; None: an admin) get no job id.
        """
        learnt, exploring = self._learning.learnt.get(key) or Learnt(KnownEvidence(*key)), self._exploring.get(key)
        known = learnt.known
        return {
            "serves": self._source(key, known),
            "is_explored": known.is_explored,
            "strange_runs": known.strange,
            "given_up": {scale: each.runs for scale, each in sorted(learnt.failures.items())},
            "exploring": None
            if exploring is None or exploring.step is None
            else {
                "job_id": exploring.run.job_id if user_id in (None, exploring.user_id) else None,
                "scale": exploring.step.scale,
                "samples": exploring.step.samples,
            },
            "measured": _scales_data(known.current),
            "re_measurement": None if known.renewal is None else _scales_data(known.renewal),
        }

    def _source(self, key: Key, known: KnownEvidence) -> Literal["measured", "imported"] | None:
        """Which profile jobs run by: `measured`, `imported` or None."""
        imported = self._imported.get(key[0])
        if serves(known, imported) and known.profile() is not None:
            return "measured"
        return "imported" if imported is not None and imported.at(key[1]) else None


def _scales_data(scales: Scales) -> list[MeasuredScale]:
    return [
        {
            "scale": scale,
            "time_s": _estimate_data(each.time_s),
            "points": [
                {
                    "ways": ways,
                    "ipc": _estimate_data(each.ipc[ways]),
                    "bandwidth_gbps": _estimate_data(each.bandwidth_gbps[ways]),
                }
                for ways in sorted(each.ipc.keys() & each.bandwidth_gbps.keys())
            ],
        }
        for scale, each in sorted(scales.items())
    ]


def _estimate_data(estimate: Estimate) -> EstimateValues | None:
    """Count, mean and standard deviation; None if nothing was measured."""
    if not estimate.count:
        return None
    return {"count": estimate.count, "mean": estimate.mean, "spread": estimate.spread}


#: The answer about a program without a profile.
NO_PROFILE = "has no profile; sns profile list shows the programs that have one"


def class_of(program: Program, processes: int, factors: Factors) -> Classification:
    """The program's class at this number of processes, for which it must be profiled, by these frequency factors."""
    parameters = SpreadingParameters(frequency_factors=factors)
    return classify(program.at(processes), parameters, max_scale=program.max_scale)


def summary(program: Program, factors: Factors) -> ProgramSummary:
    """The program's class at each profiled number of processes, as JSON values."""
    classes: list[ProgramClassValues] = []
    for processes in program.process_counts:
        found = class_of(program, processes, factors)
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

    def __init__(self, factors: Factors) -> None:
        self._factors = factors
        self._made: tuple[Mapping[str, Program], dict[str, ProgramSummary]] = ({}, {})

    def of(self, known: KnownPrograms, user_id: int | None = None) -> list[ProgramSummary]:
        """The summaries of the programs that this user may see (None: all), with what is learnt of them.

        Several threads may call this at once; at worst each makes them.
        """
        programs, summaries = self._made
        if programs is not known.programs:
            summaries = {name: summary(program, self._factors) for name, program in known.programs.items()}
            self._made = (known.programs, summaries)
        return [_with_learnt(summaries.get(name), known, name, user_id) for name in known.names(user_id)]


def _with_learnt(made: ProgramSummary | None, known: KnownPrograms, name: str, user_id: int | None) -> ProgramSummary:
    """The program's summary; where something is learnt of it, with that."""
    found: ProgramSummary = made or {"program": name, "source": "", "max_scale": None, "classes": []}
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


def profile(known: KnownPrograms, asked: object, user_id: int | None = None) -> dict[str, Any]:
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
