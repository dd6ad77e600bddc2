"""What an agent must know after a restart: jobs.json in its state directory.

The file is replaced as a whole (rename). It is for the next agent on this node, of this version or a neighbouring one:
fields that are not known are ignored, missing ones have their defaults. A file that cannot be used is one line in the
log, and an agent that knows of no runs: it then finds those that are there by their slurmstepds and groups.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

from slurm_sns.node.agent.run_meters import PointSum, Sums
from slurm_sns.node.agent.runs_here import RunHere, RunsHere
from slurm_sns.wire.values import Grant, RunId

#: Another meaning of a field needs another number.
VERSION = 1
NAME = "jobs.json"
#: So many numbers of a sum are those of all intervals. The others are apart: an earlier version does not know them.
_IN_ALL = 5


@dataclass(frozen=True)
class Remembered:
    """The runs, what was measured of each job, in which boot, and when it was written (seconds since that boot).

    `heard_s` is when the controller was heard last, by the same clock; 0: never.
    """

    runs: RunsHere = field(default_factory=RunsHere)
    sums: Mapping[int, Sums] = field(default_factory=dict)
    boot: str = ""
    at_s: float = 0.0
    heard_s: float = 0.0


class StateFile:
    """jobs.json in `directory`."""

    def __init__(self, directory: Path, log: Callable[[str], None]) -> None:
        self._path, self._log = directory / NAME, log
        #: Why the state cannot be written; empty if it can.
        self.trouble = ""

    def load(self) -> Remembered:
        """What was saved last; nothing if that cannot be read, which is logged."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Remembered()
        except (OSError, UnicodeDecodeError) as problem:
            self._log(f"{self._path} cannot be read: {problem}; the agent begins without it")
            return Remembered()
        try:
            return _remembered(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            self._log(f"{self._path} is no state of an agent ({problem!r}); the agent begins without it")
            return Remembered()

    def save(self, state: Remembered) -> None:
        """Replace the file. Where it cannot be written the old one stays, and `trouble` says why."""
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(_written(state)), encoding="utf-8")
            os.replace(temporary, self._path)  # noqa: PTH105 -- the system call that replaces
        except OSError as problem:
            with suppress(OSError):
                temporary.unlink()
            trouble = f"{self._path} cannot be written: {problem.strerror}"
            if not self.trouble:
                self._log(trouble)
            self.trouble = trouble
        else:
            self.trouble = ""


def _written(state: Remembered) -> dict[str, Any]:
    return {
        "version": VERSION,
        "boot": state.boot,
        "at_s": state.at_s,
        "heard_s": state.heard_s,
        "next_number": state.runs.next_number,
        "runs": [asdict(each) | {"claim": _claim_written(each.claim)} for each in state.runs.runs],
        "sums": _sums_written(state.sums, slice(0, _IN_ALL)),
        "sums_alone": _sums_written(state.sums, slice(_IN_ALL, None)),
    }


def _sums_written(by_job: Mapping[int, Sums], part: slice) -> dict[int, dict[int, tuple[float, ...]]]:
    return {job_id: {ways: astuple(each)[part] for ways, each in sums.items()} for job_id, sums in by_job.items()}


def _remembered(value: dict[str, Any]) -> Remembered:
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']!r}; valid: {VERSION}")
    runs = tuple(_run(each) for each in value["runs"])
    if len({each.run.job_id for each in runs}) < len(runs):
        raise ValueError("two runs of one job")
    alone = value.get("sums_alone", {})
    sums = {
        int(job_id): {
            int(ways): PointSum(*map(float, [*each, *alone.get(job_id, {}).get(ways, ())]))
            for ways, each in by_ways.items()
        }
        for job_id, by_ways in value.get("sums", {}).items()
    }
    next_number = max([int(value["next_number"]), *(each.number + 1 for each in runs)])
    at_s, heard_s = float(value["at_s"]), float(value.get("heard_s", 0.0))
    return Remembered(RunsHere(runs, (), next_number), sums, str(value["boot"]), at_s, heard_s)


def _claim_written(claim: Grant | None) -> list[Any] | None:
    """What of a claim is still to be settled; its nodes have been looked at."""
    if claim is None:
        return None
    has = (claim.ways, claim.bandwidth_gbps, claim.cpu_share, claim.has_nodes_alone, claim.samples)
    return [*claim.run, *has]


def _claim(value: list[Any] | None) -> Grant | None:
    if value is None:
        return None
    job_id, restarts, ways, bandwidth_gbps, cpu_share, has_nodes_alone, samples = value
    run = RunId(int(job_id), int(restarts))
    return Grant(run, (), int(ways), int(bandwidth_gbps), float(cpu_share), bool(has_nodes_alone), bool(samples))


def _run(value: dict[str, Any]) -> RunHere:
    given = {name: found for name, found in value.items() if name in _NAMES}
    run = RunHere(RunId(*map(int, value["run"])), claim=_claim(value.get("claim")), **given)
    for name in given:
        default = getattr(_EXAMPLE, name)
        found = getattr(run, name)
        if not isinstance(found, (int, float) if isinstance(default, float) else type(default)):
            raise TypeError(f"{name} is {found!r}")
    return run


#: The fields of a run that are written as they are.
_NAMES = frozenset(each.name for each in fields(RunHere)) - {"run", "claim"}
#: A run whose fields show the types.
_EXAMPLE = RunHere(RunId(1), 1, 0.0)
