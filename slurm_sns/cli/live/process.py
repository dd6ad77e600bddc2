"""A daemon as a process: its signals, its log, its user, its directories, its lock."""

import faulthandler
import logging
import os
import pwd
import select
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from slurm_sns.config.configuration import Config
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.log import printable

log = logging.getLogger("sns")


class StopSignal:
    """Set by SIGTERM, SIGINT or SIGUSR1. It is also the clock, so that a sleeping daemon wakes up and stops at once.

    systemd sends SIGUSR1 for a restart (the unit's RestartKillSignal): another process then takes over.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._is_said = False
        self._woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)  # wakes `sleep` even if another thread gets the signal
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._stop)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        # Nothing else here: the signal may have interrupted code that holds a lock, such as that of the log.
        self._last = number

    def is_set(self) -> bool:
        """Whether one of the signals has arrived."""
        if self._last is not None and not self._is_said:
            self._is_said = True
            log.info("%s: stopping", signal.Signals(self._last).name)
        return self._last is not None

    def hands_over(self) -> bool:
        """Whether another process takes over the waiting jobs."""
        return self._last == signal.SIGUSR1

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def steady(self) -> float:
        """Monotonic seconds, which no change of the system time affects."""
        return time.monotonic()

    def fileno(self) -> int:
        """A descriptor that is ready to be read once one of the signals has arrived; nobody ever reads it."""
        return self._woken

    def sleep(self, seconds: float) -> None:
        """Wait this long, or until one of the signals arrives."""
        select.select([self], [], [], max(0.0, seconds))


def until(stop: StopSignal, lives: Callable[[], None]) -> Callable[[], bool]:
    """For a main loop to ask in each round: whether to stop. The question is its sign of life."""

    def is_stopping() -> bool:
        lives()
        return stop.is_set()

    return is_stopping


def start_logging(level: str) -> None:
    """Log one line for each event on standard error; and what each thread does if the process is aborted.

    systemd's watchdog aborts a process that hangs.
    """
    with suppress(OSError, RuntimeError):  # a standard error that is no file, or none
        faulthandler.enable()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(level.upper())


class _OneLine(logging.Formatter):
    """Replaces control characters, so that texts of users can start no new line and send a terminal no commands."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def require_slurm_user(config: Config) -> None:
    """Check that this process runs as SlurmUser, who must own all files that it creates.

    Raises:
        BadInput: the configured user does not exist, or is not the user of this process.
    """
    wanted = user_id(config.slurm.user)
    if wanted is None:
        raise BadInput(f"slurm.user {config.slurm.user!r}: no such user; valid: the SlurmUser of slurm.conf")
    if os.geteuid() != wanted:
        raise BadInput(f"this runs as {config.slurm.user}, not as user id {os.geteuid()}: sudo -u {config.slurm.user}")


def admins(config: Config) -> frozenset[int]:
    """The user ids of the admins: root and SlurmUser."""
    return frozenset({0, user_id(config.slurm.user) or 0})


def user_id(name: str) -> int | None:
    """The id of this machine's user of that name; None: there is none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def user_id_of_exactly(name: str) -> int | None:
    """The same, but None for another spelling of the name that jobs show, as directories of other systems may allow."""
    found = user_id(name)
    return found if found is not None and pwd.getpwuid(found).pw_name == name else None


def require_commands() -> None:
    """Check that Slurm's commands are in PATH: without them a placement could not be taken back.

    Raises:
        BadInput: one is missing.
    """
    for command in ("scontrol", "sacctmgr"):
        if shutil.which(command) is None:
            raise BadInput(
                f"{command} is not in PATH ({os.environ.get('PATH', '')}); add the directory of Slurm's commands"
            )


def make_directories(config: Config, *, of_agent: bool = False) -> None:
    """Make the run and state directories if systemd has not done so. New files are readable for their owner only.

    An agent, which runs as root, has others than the controller.

    Raises:
        SnsError: they cannot be made or written, or other users may write there.
    """
    if of_agent:
        run, state, owner = config.agents.run_dir, config.agents.state_dir, "root"
    else:
        run, state, owner = config.paths.run_dir, config.paths.state_dir, config.slurm.user
    for path, mode in ((run, 0o755), (state, 0o700)):
        try:
            if not path.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(mode)  # independent of the umask: everybody may reach the socket, nobody else the database
        except OSError as problem:
            raise SnsError(f"{path} cannot be made: {problem.strerror}") from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise SnsError(f"{path} cannot be written by user id {os.geteuid()}; it must belong to {owner}")
        found = path.stat()
        # There other users could replace the socket, the database or compiled code.
        if found.st_mode & 0o022 or found.st_uid not in (0, os.geteuid()):
            raise SnsError(
                f"{path} has mode {stat.S_IMODE(found.st_mode):04o} and owner {found.st_uid}; "
                f"valid: it belongs to {owner}, and nobody else may write there (chmod go-w)"
            )
    os.umask(0o077)


def only_one(path: Path) -> Callable[[], None]:
    """Lock the file at `path` while this process lives, write its process id there, and return the unlock function.

    Raises:
        SnsError: another process holds the lock.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise SnsError(f"{path} cannot be opened: {problem.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SnsError(f"another one runs already: {path} is locked") from None
    os.truncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())  # for `sns check`
    return lambda: os.close(handle)
