"""The file of a SQLite database: nobody else's to read, for it tells who ran what."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(database: str | None) -> None:
    """The file of SQLite is its owner's alone, from before anything is in it; SQLite's other files follow it.

    Made by root (`sns profile import`), it belongs to whom its directory belongs to. Whatever is wrong with the file
    shows when it is opened.
    """
    if not database or database == ":memory:" or database.startswith("file:"):
        return
    path = Path(database)
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            found, folder = os.fstat(descriptor), path.parent.stat()
            if found.st_mode & 0o077:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~0o077)
            if os.geteuid() == 0 and found.st_uid != folder.st_uid:
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        finally:
            os.close(descriptor)
