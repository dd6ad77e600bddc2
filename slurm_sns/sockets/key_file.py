"""The key file, read again when it changes. A new file that cannot be used leaves the old keys in use.

Whoever can read the file can sign grants, so it must be closed to all but its owner: root, or the user of this process
whom the caller names.
"""

import os
import stat
import threading
from pathlib import Path

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.log import Log
from slurm_sns.wire.keys import Keys

#: Far more than `keys.MOST_KEYS` keys with their comments.
LONGEST_BYTES = 64 * 1024

_Signature = tuple[int, ...]


class KeyFile:
    """The keys in the file at `path`; calling it gives them. Any thread may call it.

    The file must belong to root or to the user with the id `owner`, and have the mode 0600 or 0400.
    """

    def __init__(self, path: Path, owner: int, log: Log) -> None:
        self._path, self._owner, self._log = path, owner, log
        self._lock = threading.Lock()
        self._keys: Keys | None = None
        self._seen: _Signature | None = None
        self._problem = ""

    def __call__(self) -> Keys:
        """The keys as the file has them now; as it had them last if it cannot be used now, which is logged once.

        Raises:
            SnsError: there have been no keys yet, and the file cannot be used.
        """
        with self._lock:
            try:
                return self._look()
            except SnsError as problem:
                if self._keys is None:
                    raise
                self._say(f"{problem}; the keys that were read before stay in use")
                return self._keys

    def _look(self) -> Keys:
        """Read the file if it is another than the one that was last read without a problem."""
        try:
            signature = _signature(self._path.stat())
        except OSError as problem:
            raise Unreachable(f"the key file {self._path}: {problem.strerror}; sns key new makes one") from None
        if self._keys is None or signature != self._seen:
            self._keys, self._seen = read_keys(self._path, self._owner)
        if self._problem:
            self._problem = ""
            self._log(f"the key file {self._path} can be used again")
        return self._keys

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._log(problem)


def read_keys(path: Path, owner: int) -> tuple[Keys, _Signature]:
    """The keys in a key file, and what changes when the file does.

    Raises:
        Unreachable: it cannot be read.
        BadInput: others may read it, or its text is not valid.
    """
    text, found = read_text(path, owner)
    try:
        return Keys.parse(text), _signature(found)
    except BadInput as problem:
        raise BadInput(f"the key file {path}: {problem}") from None


def read_text(path: Path, owner: int) -> tuple[str, os.stat_result]:
    """The text of a key file, which may be no valid one, and what the kernel says of the file.

    Raises:
        Unreachable: it cannot be read.
        BadInput: others may read it, or it is too long.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not stop us
        with os.fdopen(handle, "rb") as stream:
            found = os.fstat(handle)
            _require_private(path, found, owner)
            data = stream.read(LONGEST_BYTES + 1)
    except OSError as problem:
        raise Unreachable(f"the key file {path}: {problem.strerror}; sns key new makes one") from None
    if len(data) > LONGEST_BYTES:
        raise BadInput(f"the key file {path}: more than {LONGEST_BYTES} bytes; valid: one key a line")
    return data.decode(errors="replace"), found


def write(path: Path, text: str, owner: int, *, replaces: bool) -> None:
    """Make a key file of mode 0600 that belongs to `owner`, at one moment; `replaces`: instead of the one there.

    Raises:
        BadInput: there is a file of that name, and it is not to be replaced.
        SnsError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w") as stream:
                os.fchmod(handle, 0o600)  # whatever the umask
                if os.geteuid() == 0:
                    os.fchown(handle, owner, -1)
                stream.write(text)
                stream.flush()
                os.fsync(handle)
            (os.replace if replaces else os.link)(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError:
        raise BadInput(f"the key file {path} exists; --add appends a key to it") from None
    except OSError as problem:
        raise SnsError(f"the key file {path} cannot be written: {problem.strerror}") from None


def _require_private(path: Path, found: os.stat_result, owner: int) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode) or mode & 0o077 or found.st_uid not in (0, owner):
        raise BadInput(
            f"the key file {path} has mode {mode:04o} and owner {found.st_uid}; "
            f"valid: a file of mode 0600 that belongs to user id {owner}"
        )


def _signature(found: os.stat_result) -> _Signature:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
