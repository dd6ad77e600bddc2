"""Where numba caches compiled code: a directory of a few MB for each state of our code.

numba's cache knows only the one file that holds the function, and unpickles an entry before it checks that file. So
after an upgrade in place, a shared cache could contain outdated code of other files, or name classes that no longer
exist, which ends the process.
"""

import hashlib
import os
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
#: The files of the package with compiled functions.
COMPILED = (
    "policies/placement/*.py",
    "policies/dfrs/*.py",
    "policies/rescheduling/*.py",
    "policies/baselines/expected_times.py",
    "sim/replay/*.py",
    "sim/results/*_kernel.py",
    "sim/run.py",
)
PACKAGE = Path(__file__).parents[1]


def keep_by_state() -> None:
    """Set numba's cache directory; to be called before numba is imported.

    It is below NUMBA_CACHE_DIR if that is set, else beside our code if that is writable, else in the user's cache. A
    cache beside our code is removed with it, so commands that root runs leave nothing in root's home directory.
    """
    beside_the_code = PACKAGE / "__pycache__" if os.access(PACKAGE, os.W_OK) else None
    kept = Path(os.environ.get(VARIABLE) or beside_the_code or _user_cache())
    state = state_of_the_code(PACKAGE)
    if kept.name != state:  # processes that we start inherit it
        os.environ[VARIABLE] = str(kept / state)


def keep_out_of_the_users_cache(directory: Path) -> None:
    """Put into this directory what would otherwise be cached in the user's; to be called before numba is imported."""
    kept = Path(os.environ[VARIABLE])
    if kept.parent == _user_cache():
        os.environ[VARIABLE] = str(directory.absolute() / kept.name)


def state_of_the_code(package: Path) -> str:
    """A name for the present contents of the compiled modules."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED for path in package.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _user_cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else _home() / ".cache") / "slurm_sns"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user whom nobody knows, as systemd's DynamicUser makes one for the exporter
        return Path("/nonexistent")
