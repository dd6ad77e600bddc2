"""Keeps Slurm's library from writing log lines to standard error.

While munge does not run, the library writes three lines for every request; the error that it returns tells us the
same. The function that sets its log level is not in Slurm's public headers, so we call it only in the versions of Slurm
whose source we have read. In any other version the lines appear, and nothing else is different. Errors that end the
process (fatal) are always written.
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
    """Have the library that pyslurm is linked to write fatal errors only; False if that was not possible."""
    try:
        library = ctypes.CDLL(pyslurm.api.__file__)  # symbols are searched in the libraries it is linked to as well
        version, alter = library.slurm_api_version, library.slurm_log_alter
    except (OSError, AttributeError):
        return False
    version.restype = ctypes.c_long
    if version() >> 16 not in _VERSIONS:
        return False
    alter.argtypes = (_LogOptions, ctypes.c_int, ctypes.c_char_p)
    options = _LogOptions(_FATAL, _QUIET, _QUIET, prefix_level=True, buffered=False, raw=False, logfile_format=0)
    return bool(alter(options, 0, None) == 0)
