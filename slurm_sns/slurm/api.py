"""How Slurm is reached: pyslurm, and Slurm's own commands for the few things that pyslurm cannot do; errors as ours.

Where pyslurm is not installed, the module libslurm with our own C library takes its place: there is no pyslurm package
for some releases of Slurm.

Importing pyslurm on a machine without a Slurm configuration ends the process (seen). So it is imported only when it is
first used, with its own initialisation turned off, and `slurm_init` is called afterwards.
"""

import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from slurm_sns.errors import BadInput, Refused, SnsError, Unreachable
from slurm_sns.slurm import libslurm

#: Where Slurm's commands and libraries look for their configuration when SLURM_CONF is not set.
DEFAULT_CONFIGURATION = Path("/etc/slurm/slurm.conf")

#: slurm/slurm_errno.h: general communication (1000), controller communication (1800), sockets (5000), authentication
#: (6000; also 1007 of general communication, when munge does not run), and answers of a backup controller in standby.
_COMMUNICATION = (range(1000, 1100), range(1800, 1900), range(5000, 5100), range(6000, 6100))
_AUTHENTICATION = frozenset({1007, *range(6000, 6100)})
_STANDBY = frozenset({2027, 2131})
#: Connection errors of the operating system: pyslurm passes them on when slurmctld ends during a request (seen).
_CONNECTION = frozenset(
    {errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.ENOTCONN, errno.ETIMEDOUT}
    | {errno.EHOSTUNREACH, errno.ENETUNREACH}
)

#: A command of Slurm that has not answered after this time is killed.
COMMAND_TIMEOUT_S = 30

#: What Slurm's commands print when no daemon answers. `Unexpected message received` comes from scontrol update (seen),
#: `No response` and `PersistInit` from sacctmgr when slurmdbd hangs; authentication fails without munge.
_UNREACHABLE_TEXTS = (
    *("Unable to contact", "timed out", "Connection refused", "Problem talking", "Unexpected message received"),
    *("No response", "PersistInit", "authentication error", "Connection reset", "Broken pipe"),
)

#: slurm_api_version() >> 16 of Slurm 24.11, 25.05, 25.11 and 26.05.
_KNOWN_LOG_VERSIONS = range(42, 46)
_QUIET, _FATAL = 0, 1  # log_level_t


def configuration_path() -> Path:
    """This machine's slurm.conf."""
    return Path(os.environ.get("SLURM_CONF", DEFAULT_CONFIGURATION))


@cache
def pyslurm() -> ModuleType:
    """The pyslurm module, or `slurm_sns.slurm.libslurm` where pyslurm is not installed; initialised.

    Raises:
        SnsError: neither is installed, or what is does not match the installed Slurm.
        BadInput: this machine has no Slurm configuration.
    """
    configuration = configuration_path()
    if not configuration.is_file():
        raise BadInput(f"{configuration}: no Slurm configuration here; run this on the controller or set SLURM_CONF")
    os.environ["PYSLURM_DISABLE_AUTO_INIT"] = "1"
    try:
        module = import_module("pyslurm")
    except ModuleNotFoundError:
        module = libslurm
    except ImportError as problem:
        raise SnsError(f"pyslurm cannot be loaded ({problem}); it must be built against the installed Slurm") from None
    try:
        module.slurm_init()
    except ImportError as problem:
        raise SnsError(f"neither pyslurm nor a library of slurm_sns' own is installed ({problem})") from None
    quiet(module)
    return module


def library() -> ModuleType:
    """What reads jobs and nodes: our own library where it is installed beside pyslurm, otherwise what `pyslurm` gives.

    Its records are bytes, so one that has not changed costs a cycle next to nothing (`state.Translated`). It also
    shows more than pyslurm: all texts by which jobs ask for GPUs, and which GPUs of a node are in use.

    Raises:
        SnsError, BadInput: as `pyslurm`.
    """
    binding = pyslurm()
    return libslurm if has_library() else binding


@cache
def has_library() -> bool:
    """Whether our own library is installed; it is initialised then."""
    try:
        libslurm.slurm_init()
    except ImportError:
        return False
    return True


@contextmanager
def answers() -> Iterator[None]:
    """Turn an RPC error inside the block into `Unreachable` (slurmctld does not answer) or `Refused` (it says no)."""
    try:
        yield
    except (pyslurm().RPCError, libslurm.RPCError) as error:
        text = str(error) or f"Slurm error {error.errno}"
        if error.errno in _AUTHENTICATION:
            raise Unreachable(f"slurmctld does not answer: {text}; does munge run here and there?") from None
        if is_unreachable(error.errno):
            raise Unreachable(f"slurmctld does not answer: {text}") from None
        raise Refused(text) from None


@contextmanager
def readable() -> Iterator[None]:
    """Turn a refused read into `Unreachable`: without the answer there is nothing to plan on."""
    try:
        with answers():
            yield
    except Refused as refusal:
        raise Unreachable(str(refusal)) from None


def is_unreachable(number: int) -> bool:
    """Whether Slurm's error number means that slurmctld could not be reached (trying again may help)."""
    return number in _STANDBY | _CONNECTION or any(number in numbers for numbers in _COMMUNICATION)


def run(
    command: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command of Slurm, with these environment variables beside ours, and return what it prints.

    No shell is involved. Text that a user wrote is only ever a part of one argument, after a name of ours and `=`. What
    is no UTF-8 in the answer is replaced; line ends stay as they are, because users' texts may have carriage returns.

    Raises:
        Unreachable: Slurm does not answer.
        Refused: the command failed otherwise; the text is what it printed.
    """
    try:
        done = subprocess.run(  # noqa: S603 -- a list, no shell
            [command, *arguments],
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, **(variables or {})},
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command} did not answer within {timeout_s:g} s") from None
    except OSError as problem:
        raise Refused(f"{command} cannot be run: {problem.strerror}") from None
    if done.returncode != 0:
        # Slurm's commands name themselves in some messages and not in others.
        told = (done.stderr or done.stdout).decode(errors="replace")
        text = f"{command}: " + " ".join(told.split()).removeprefix(f"{command}: ")
        raise (Unreachable(text) if any(known in text for known in _UNREACHABLE_TEXTS) else Refused(text))
    return done.stdout.decode(errors="replace")


class _LogOptions(ctypes.Structure):
    """log_options_t of Slurm's src/common/log.h."""

    _fields_ = (
        ("stderr_level", ctypes.c_int),
        ("syslog_level", ctypes.c_int),
        ("logfile_level", ctypes.c_int),
        ("prefix_level", ctypes.c_bool),
        ("buffered", ctypes.c_bool),
        ("raw", ctypes.c_bool),
        ("logfile_format", ctypes.c_int),
    )


def quiet(pyslurm: ModuleType) -> bool:
    """Have the library that pyslurm is linked to write fatal errors only; False if that was not possible.

    While munge does not run, the library writes three lines for every request; the error that it returns tells us the
    same. The function that sets its log level is not in Slurm's public headers, so we call it only in the versions of
    Slurm whose source we have read. In any other version the lines appear, and nothing else is different. Errors that
    end the process (fatal) are always written.
    """
    try:
        library = ctypes.CDLL(pyslurm.api.__file__)  # symbols are searched in the libraries it is linked to as well
        version, alter = library.slurm_api_version, library.slurm_log_alter
    except (OSError, AttributeError):
        return False
    version.restype = ctypes.c_long
    if version() >> 16 not in _KNOWN_LOG_VERSIONS:
        return False
    alter.argtypes = (_LogOptions, ctypes.c_int, ctypes.c_char_p)
    options = _LogOptions(_FATAL, _QUIET, _QUIET, prefix_level=True, buffered=False, raw=False, logfile_format=0)
    return bool(alter(options, 0, None) == 0)
