"""Files that a command leaves behind: all of them are written whole, or none is."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from slurm_sns.errors import BadInput, SnsError


def require_directory(directory: Path) -> None:
    """Accept a directory that exists or can be made; to be checked before hours of simulation, not after.

    Raises:
        BadInput: something else is there, or it cannot be written.
    """
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise BadInput(f"{directory}: {existing} is not a directory; valid: a directory that exists or can be made")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise BadInput(f"{directory}: cannot write in {existing}; valid: a directory that you may write in")


def write_files(directory: Path, texts: Mapping[str, Iterable[str]]) -> None:
    """Write these files, each from its lines; each appears whole, and none before all are on the disk.

    Raises:
        SnsError: a file cannot be written.
    """
    written: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, lines in texts.items():
            temporary = directory / f".{name}.{os.getpid()}.tmp"
            written.append((temporary, directory / name))
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
        for temporary, final in written:
            temporary.replace(final)
    except OSError as problem:
        raise SnsError(f"{directory}: cannot write the results ({problem.strerror})") from None
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
