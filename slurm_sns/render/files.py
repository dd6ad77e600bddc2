"""Compares rendered texts with the files of a directory, and replaces those that differ, each atomically.

Only files with `MARK` in their first line are replaced, so a wrong directory cannot cost a site its own slurm.conf. In
a script, whose first line names its interpreter, it is the second line. Scripts are made executable.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.render.texts import MARK

SCRIPT = "#!"


def differing(directory: Path, texts: Mapping[str, str]) -> list[str]:
    """The names of the files that are missing in the directory or differ, sorted.

    Raises:
        BadInput: the path is no directory, or a file of that name is not ours.
        SnsError: a file cannot be read.
    """
    if directory.exists() and not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; valid: a directory, made when it is missing")
    return sorted(name for name, text in texts.items() if not _is_there(directory / name, text))


def write(directory: Path, texts: Mapping[str, str]) -> list[str]:
    """Write the texts that differ into the directory, and return the names of these files.

    Raises:
        BadInput: as for `differing`; nothing has been written then.
        SnsError: the directory cannot be made or a file cannot be written.
    """
    changed = differing(directory, texts)
    try:
        directory.mkdir(exist_ok=True)
        for name in changed:
            _replace(directory / name, texts[name])
    except OSError as problem:
        raise SnsError(f"{problem.filename or directory} cannot be written: {problem.strerror}") from None
    return changed


def _is_there(path: Path, text: str) -> bool:
    """Whether the file has this text, and can be executed if it is a script."""
    return _content(path) == text and path.stat().st_mode & _mode(text) == _mode(text)


def _mode(text: str) -> int:
    return 0o755 if text.startswith(SCRIPT) else 0o644


def _content(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise BadInput(f"{path} is a directory; remove it, or name another directory") from None
    except OSError as problem:
        raise SnsError(f"{path} cannot be read: {problem.strerror}") from None
    if not any(MARK in line for line in text.split("\n", 2)[: 2 if text.startswith(SCRIPT) else 1]):
        raise BadInput(
            f"{path} was not written by sns render and stays; name another directory, such as /etc/slurm/sns"
        )
    return text


def _replace(path: Path, text: str) -> None:
    """Write a temporary file and rename it: readers see the old text or the new one, even after a crash."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fchmod(file.fileno(), _mode(text))
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
