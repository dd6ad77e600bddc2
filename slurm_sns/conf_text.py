"""Slurm's configuration files as text: their lines, and those of the files that they include.

`sns check` needs the text, because it shows a line to be changed exactly as the file has it. What slurmctld runs with
is read in `site`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_sns.errors import BadInput

_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_OPTIONS = re.compile(r'([A-Za-z]\w*)\s*=\s*("[^"]*"|[^\s"]+)')
_OPTION = re.compile(r"\s*([A-Za-z]\w*)\s*=\s*(.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of `file`, unchanged; lines that a backslash at the end continues are one line."""

    file: Path
    text: str

    @property
    def content(self) -> str:
        """The line without its comment and its continuations."""
        return re.sub(r"\\\n", "", self.text).partition("#")[0].strip()

    @property
    def option(self) -> tuple[str, str] | None:
        """The name, in lower case, and the value of `Name=value`; None for any other line."""
        found = _OPTION.fullmatch(self.content)
        return (found[1].lower(), found[2].strip().strip('"')) if found else None

    def included(self, base: Path) -> tuple[Path, ...]:
        """The files that this line includes. Relative names are below the directory `base`; `*`, `?` and `[` work."""
        found = _INCLUDE.fullmatch(self.content)
        if not found:
            return ()
        path = base / found[1]
        return tuple(sorted(path.parent.glob(path.name))) if set("*?[") & set(path.name) else (path,)


def options(content: str) -> dict[str, str]:
    """All options of a line such as `NodeName=n[1-4] CPUs=8 State=UP`: names in lower case, values without quotes.

    Raises:
        BadInput: a word of it is no option.
    """
    rest = _OPTIONS.sub("", content).strip()
    if rest:
        raise BadInput(f"{rest[:80]!r} is not of the form Name=value")
    return {found[1].lower(): found[2].strip('"') for found in _OPTIONS.finditer(content)}


def last_options(lines: Iterable[Line]) -> dict[str, str]:
    """The options of lines `Name=value`: by the name in lower case the last value, which is the one that counts."""
    return dict(line.option for line in lines if line.option)


def read(path: Path) -> tuple[Line, ...]:
    """The lines of the file and of all files that it includes, in Slurm's order; none of a file that cannot be read."""
    return tuple(_read(path, path.parent, set()))


def _read(path: Path, base: Path, seen: set[Path]) -> Iterator[Line]:
    if path in seen:
        return
    seen.add(path)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for found in re.finditer(r"(?:[^\n]*\\\n)*[^\n]+", text):
        line = Line(path, found[0])
        yield line
        for included in line.included(base):
            yield from _read(included, base, seen)
