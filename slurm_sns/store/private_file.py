"""Makes the file of a SQLite database readable for its owner only, because it tells who ran what."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(database: str | None) -> None:
    """Take all permissions of others off the SQLite file, or create it without them before SQLite writes into it.

    SQLite gives the files that it creates beside it the same permissions. If root runs this (`sns release`), the file
    gets the owner of its directory. Errors are ignored here: they show when the database is opened.
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
