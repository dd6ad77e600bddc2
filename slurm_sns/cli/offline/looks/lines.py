"""Reads looks.jsonl line by line: a line that is cut off or no look costs that line, and is counted by its reason.

Lines of version 1 are read as those of today. They lack the beginning of their run, which is told by the count of its
looks, and partitions, CPUs and reasons, which stay empty.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import from_json

from slurm_sns.cli.json_types import ObserveJson
from slurm_sns.cli.looks_file import VERSION
from slurm_sns.errors import BadInput

#: Why a line is not read.
CUT_OFF, NO_LOOK, TOO_LONG = "the line is cut off", "the line is no look of sns observe", "the line is too long"
NEWER, OUT_OF_RANGE = "the look is of a newer version of slurm_sns", "the look has a number out of range"
#: Many times as long as a look at a slurmctld with a million jobs.
LONGEST_LINE = 1 << 28
#: Times are before the year 5138, which every C library can print; periods are shorter, and counts are counts of jobs.
LATEST_S, MOST = 1e11, 1e9


class LookLines:
    """The looks of a file, in its order. `unread` counts the lines that are none, once they have been passed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unread: Counter[str] = Counter()
        self._last_looks, self._began_s = 0, 0.0

    def __iter__(self) -> Iterator[ObserveJson]:
        """Read the file.

        Raises:
            BadInput: it cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                for line in self._lines(file):
                    look = self._look(line)
                    if isinstance(look, str):
                        self.unread[look] += 1
                    else:
                        yield look
        except OSError as problem:
            raise BadInput(f"{self.path}: cannot be read ({problem.strerror})") from None

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                self.unread[TOO_LONG] += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
            elif line.strip():
                yield line

    def _look(self, line: bytes) -> ObserveJson | str:
        """The look, or why the line is none."""
        try:
            found = from_json(line, allow_inf_nan=False)
        except ValueError:
            return NO_LOOK if line.endswith(b"}\n") else CUT_OFF
        if not isinstance(found, dict) or type(found.get("version")) is not int:
            return NO_LOOK
        if found["version"] > VERSION:
            return NEWER
        try:
            if found["version"] < 2:
                self._fill(found)
            (look,) = _adapter().validate_python((found,))
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError):  # pydantic's errors are ValueErrors
            return NO_LOOK
        return look if _is_in_range(look) else OUT_OF_RANGE

    def _fill(self, found: dict[str, Any]) -> None:
        """What a line of version 1 does not have."""
        looks = int(found["summary"]["looks"])
        if looks <= self._last_looks or self._last_looks == 0:
            self._began_s = found["at_s"]
        self._last_looks = looks
        found |= {"began_s": self._began_s, "not_managed": {}}
        for each in (*found["advices"], *found["outcomes"]):
            each |= {"partition": "", "cpus": 0}


@cache
def _adapter() -> TypeAdapter[tuple[ObserveJson]]:
    # pydantic takes no configuration for a TypedDict alone; inside a tuple the TypedDict gets that of the tuple.
    return TypeAdapter(tuple[ObserveJson], config=ConfigDict(strict=True, extra="ignore", allow_inf_nan=False))


def _is_in_range(look: ObserveJson) -> bool:
    """Whether each number can be one of a look, so that sums and dates of them can be printed."""
    periods = [look["at_s"], look["began_s"], look["read_s"], look["plan_s"]]
    periods += [each["seconds"] or 0.0 for each in look["outcomes"]]
    periods += [each["since_s"] for each in look["overtaken"]]
    counts = [look["pending"], look["managed"], *look["left_out"].values(), *look["not_managed"].values()]
    counts += [number for each in look["advices"] for number in (each["tasks"], each["cpus"])]
    counts += [each["cpus"] for each in look["outcomes"]]
    return all(0 <= each < LATEST_S for each in periods) and all(0 <= each < MOST for each in counts)
