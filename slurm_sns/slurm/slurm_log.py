"""Slurm's library without its own lines on standard error.

While munge does not run, every request makes it write three of them; what we need stands in the error that it returns.
Its switch is not in Slurm's public headers, so it is used with the versions of Slurm only in which it was looked at: in
any other the lines stay, and nothing else is different. What ends the process (fatal) is always written.
"""

import ctypes
from types import ModuleType

#: slurm_api_version() >> 16 of Slurm 24.11, 25.05, 25.11 and 26.05.
_VERSIONS = range(42, 46)
_QUIET, _FATAL = 0, 1  # log_level_t


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
    """Have the library that pyslurm is linked to write nothing but what is fatal; whether it does."""
    try:
        library = ctypes.CDLL(pyslurm.api.__file__)  # a symbol is looked for in what it is linked to as well
        version, alter = library.slurm_api_version, library.slurm_log_alter
    except (OSError, AttributeError):
        return False
    version.restype = ctypes.c_long
    if version() >> 16 not in _VERSIONS:
        return False
    alter.argtypes = (_LogOptions, ctypes.c_int, ctypes.c_char_p)
    options = _LogOptions(_FATAL, _QUIET, _QUIET, prefix_level=True, buffered=False, raw=False, logfile_format=0)
    return bool(alter(options, 0, None) == 0)
