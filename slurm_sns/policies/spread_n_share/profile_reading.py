"""Convert plain data (what a YAML reader gives) to profiles and back, with strict checks.

Each error is a `ProfileError` that names the program, the field and what is valid. The data has the form of a file:

    programs:
      mg: {source: ..., max_scale: 8, runs: [{processes: 16, scale: 1, time_s: 97.86, ways: [2, 20], ipc: [0.8, 1.0],
           bandwidth_gbps: [112, 112], provenance: {time_s: measured, ipc: assumed, bandwidth_gbps: printed}}]}
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

from slurm_sns.errors import BadInput
from slurm_sns.policies.placement.request import WIDEST_SCALE
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run

Where = tuple[str | int, ...]

PROGRAM_NAME = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")  # the grammar of --sns-program
MOST_PROGRAMS = 10_000
MOST_RUNS = 1000  # of one program
MOST_WAYS = 64  # resctrl's masks are 64 bits at the most
MOST_PROCESSES = 10_000_000
LONGEST_TIME_S = 1_000_000_000
LARGEST_IPC = 1000
LARGEST_BANDWIDTH_GBPS = 100_000
LONGEST_SOURCE = 500

PROGRAM_FIELDS = ("source", "max_scale", "runs")
RUN_FIELDS = tuple(field.name for field in fields(Run))
PROVENANCE_FIELDS = tuple(field.name for field in fields(Provenances))


class ProfileError(BadInput):
    """A profile that cannot be used; `where` is the path to the error in the data, to find the line in the file."""

    def __init__(self, where: Where, text: str) -> None:
        super().__init__(text)
        self.where = where


def programs_of(data: object, most_ways: int | None = None) -> tuple[Program, ...]:
    """The programs of a file's content, sorted by name.

    `most_ways` is the most ways that any node has, None if unknown.

    Raises:
        ProfileError: the first thing wrong.
    """
    if not isinstance(data, Mapping) or "programs" not in data:
        raise ProfileError((), "programs is missing; valid: programs, and under it one entry per program")
    for key in data:
        if key != "programs":
            raise ProfileError((key,), f"{_shown(key)} is unknown; valid: programs")
    programs = data["programs"]
    if not isinstance(programs, Mapping) or not 1 <= len(programs) <= MOST_PROGRAMS:
        raise ProfileError(
            ("programs",), f"programs: valid: 1 to {MOST_PROGRAMS} programs, each a name and its profile"
        )
    return tuple(_program(name, content, most_ways) for name, content in sorted(programs.items()))


def data_of(programs: Iterable[Program]) -> dict[str, Any]:
    """The programs as the content of a file."""
    return {"programs": {program.name: _program_data(program) for program in programs}}


def _program_data(program: Program) -> dict[str, Any]:
    limit = {} if program.max_scale is None else {"max_scale": program.max_scale}
    return {"source": program.source, **limit, "runs": [run_data(run) for run in program.runs]}


def run_data(run: Run) -> dict[str, Any]:
    """A run as the content of a file."""
    content: dict[str, Any] = {name: getattr(run, name) for name in RUN_FIELDS}
    for name in ("ways", "ipc", "bandwidth_gbps"):
        content[name] = list(content[name])
    content["provenance"] = {name: str(getattr(run.provenance, name)) for name in PROVENANCE_FIELDS}
    return content


class _Place:
    """A place in one program's profile: it reads the fields there, and its errors name them."""

    def __init__(self, program: str, path: Where = ()) -> None:
        self.program = program
        self.path = path

    def at(self, *parts: str | int) -> "_Place":
        return _Place(self.program, (*self.path, *parts))

    def error(self, problem: str, valid: str) -> ProfileError:
        dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")
        subject = f"program '{self.program}'" + (f": {dotted}" if dotted else "")
        return ProfileError(("programs", self.program, *self.path), f"{subject}: {problem}; valid: {valid}")

    def mapping(self, value: object, valid: tuple[str, ...], required: Iterable[str]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.error(f"{_shown(value)} is no mapping", ", ".join(valid))
        for key in value:
            if key not in valid:
                near = difflib.get_close_matches(str(key), valid, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise self.error(f"{_shown(key)} is unknown{hint}", ", ".join(valid))
        for key in required:
            if key not in value:
                raise self.error(f"{key} is missing", ", ".join(valid))
        return value

    def whole(self, value: object, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(f"{_shown(value)}", f"a whole number from {least} to {most}")
        return value

    def number(self, value: object, most: float, *, above_zero: bool) -> float:
        words = f"a number {'above 0' if above_zero else 'from 0'}, at most {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(_shown(value), words)
        if not 0 <= value <= most or (above_zero and value == 0):
            raise self.error(_shown(value), words)
        return float(value)

    def items(self, value: object, read: Callable[["_Place", object], Any], valid: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise self.error(f"{_shown(value)} is no list", valid)
        return tuple(read(self.at(index), item) for index, item in enumerate(value))


def _program(name: str, content: object, most_ways: int | None) -> Program:
    if not isinstance(name, str) or not PROGRAM_NAME.match(name):
        raise ProfileError(
            ("programs", name), f"program {_shown(name)}: its name; valid: 1 to 64 letters, digits and . _ + -"
        )
    place = _Place(name)
    values = place.mapping(content, PROGRAM_FIELDS, ("runs",))
    source = values.get("source", "")
    if not isinstance(source, str) or len(source) > LONGEST_SOURCE:
        raise place.at("source").error(_shown(source), f"a text of at most {LONGEST_SOURCE} characters")
    max_scale = values.get("max_scale")
    if max_scale is not None:
        max_scale = place.at("max_scale").whole(max_scale, 1, WIDEST_SCALE)
    runs = values["runs"]
    at_runs = place.at("runs")
    if not isinstance(runs, list | tuple) or not 1 <= len(runs) <= MOST_RUNS:
        raise at_runs.error("no list of runs", f"1 to {MOST_RUNS} runs, one per (processes, scale)")
    read = [_run(at_runs.at(index), run, max_scale, most_ways) for index, run in enumerate(runs)]
    _require_pairs(at_runs, read)
    return Program(name, tuple(sorted(read, key=lambda run: (run.processes, run.scale))), source, max_scale)


def _run(place: _Place, content: object, max_scale: int | None, most_ways: int | None) -> Run:
    values = place.mapping(content, RUN_FIELDS, RUN_FIELDS)
    scale = place.at("scale").whole(values["scale"], 1, WIDEST_SCALE)
    if max_scale is not None and scale > max_scale:
        raise place.at("scale").error(f"{scale}", f"at most the program's max_scale, {max_scale}")
    ways = _ways(place.at("ways"), values["ways"], most_ways)
    ipc = place.at("ipc").items(
        values["ipc"], lambda at, value: at.number(value, LARGEST_IPC, above_zero=True), "a list of numbers"
    )
    bandwidth = place.at("bandwidth_gbps").items(
        values["bandwidth_gbps"],
        lambda at, value: at.number(value, LARGEST_BANDWIDTH_GBPS, above_zero=False),
        "a list of numbers",
    )
    for name, curve in (("ipc", ipc), ("bandwidth_gbps", bandwidth)):
        if len(curve) != len(ways):
            raise place.at(name).error(f"it has {len(curve)} numbers", f"{len(ways)}, as many as ways")
    return Run(
        processes=place.at("processes").whole(values["processes"], 1, MOST_PROCESSES),
        scale=scale,
        time_s=place.at("time_s").number(values["time_s"], LONGEST_TIME_S, above_zero=True),
        ways=ways,
        ipc=ipc,
        bandwidth_gbps=bandwidth,
        provenance=_provenance(place.at("provenance"), values["provenance"]),
    )


def _ways(place: _Place, value: object, most_ways: int | None) -> tuple[int, ...]:
    ways = place.items(value, lambda at, item: at.whole(item, 1, MOST_WAYS), "a list of whole numbers")
    if len(ways) < 2:
        raise place.error(f"it has {len(ways)} points", "at least 2")
    for index, (less, more) in enumerate(pairwise(ways), start=1):
        if more <= less:
            raise place.at(index).error(f"{more} after {less}", "ways that increase strictly, as in [2, 4, 8, 20]")
    if most_ways is not None and ways[-1] > most_ways:
        raise place.at(len(ways) - 1).error(f"{ways[-1]}", f"at most {most_ways}, the most ways that any node has")
    return ways


def _provenance(place: _Place, content: object) -> Provenances:
    values = place.mapping(content, PROVENANCE_FIELDS, PROVENANCE_FIELDS)
    read = {}
    for name in PROVENANCE_FIELDS:
        if values[name] not in tuple(Provenance):
            raise place.at(name).error(_shown(values[name]), "printed, measured or assumed")
        read[name] = Provenance(values[name])
    return Provenances(**read)


def _require_pairs(place: _Place, runs: Iterable[Run]) -> None:
    """Require each (processes, scale) once, and scale 1, the reference of the others, for each process count."""
    seen: set[tuple[int, int]] = set()
    for index, run in enumerate(runs):
        pair = (run.processes, run.scale)
        if pair in seen:
            problem = f"a second run of {run.processes} processes at scale {run.scale}"
            raise place.at(index).error(problem, "one run per (processes, scale)")
        seen.add(pair)
    for processes in sorted({processes for processes, _ in seen}):
        if (processes, 1) not in seen:
            raise place.error(
                f"{processes} processes have no run at scale 1", "a run at scale 1 for each process count"
            )


def _shown(value: object, longest: int = 40) -> str:
    text = repr(value)
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= longest else text[: longest - 3] + "..."
