"""pyslurm, imported at its first use, and its errors as ours.

Importing pyslurm on a machine without a Slurm configuration ends the process (seen). So it is imported only when it is
first used, with its own initialisation turned off, and `slurm_init` is called afterwards.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from slurm_sns.errors import BadInput, Refused, SnsError, Unreachable
from slurm_sns.slurm.slurm_log import quiet

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


def configuration_path() -> Path:
    """This machine's slurm.conf."""
    return Path(os.environ.get("SLURM_CONF", DEFAULT_CONFIGURATION))


@cache
def pyslurm() -> ModuleType:
    """The pyslurm module, initialised.

    Raises:
        SnsError: pyslurm is not installed or does not match the installed Slurm.
        BadInput: this machine has no Slurm configuration.
    """
    configuration = configuration_path()
    if not configuration.is_file():
        raise BadInput(f"{configuration}: no Slurm configuration here; run this on the controller or set SLURM_CONF")
    os.environ["PYSLURM_DISABLE_AUTO_INIT"] = "1"
    try:
        module = import_module("pyslurm")
    except ImportError as problem:
        raise SnsError(f"pyslurm cannot be loaded ({problem}); it must be built against the installed Slurm") from None
    module.slurm_init()
    quiet(module)
    return module


@contextmanager
def answers() -> Iterator[None]:
    """Turn an RPC error inside the block into `Unreachable` (slurmctld does not answer) or `Refused` (it says no)."""
    try:
        yield
    except pyslurm().RPCError as error:
        text = str(error) or f"Slurm error {error.errno}"
        if error.errno in _AUTHENTICATION:
            raise Unreachable(f"slurmctld does not answer: {text}; does munge run here and there?") from None
        if is_unreachable(error.errno):
            raise Unreachable(f"slurmctld does not answer: {text}") from None
        raise Refused(text) from None


def is_unreachable(number: int) -> bool:
    """Whether Slurm's error number means that slurmctld could not be reached (trying again may help)."""
    return number in _STANDBY | _CONNECTION or any(number in numbers for numbers in _COMMUNICATION)
