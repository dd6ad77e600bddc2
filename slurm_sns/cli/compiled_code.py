"""Where numba keeps what it has compiled: a directory of its own, a few MB, for each state of our code.

What numba keeps is known by the one file that holds the function, and unpickled before that file is looked at: after an
upgrade in place it could stand for code that is gone, or name classes that are gone and end the process.
"""

import hashlib
import os
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
#: Of the package: what compiled functions are in.
COMPILED = ("policies/placement/*.py", "sim/*.py")
PACKAGE = Path(__file__).parents[1]


def keep_by_state() -> None:
    """Have numba keep it below NUMBA_CACHE_DIR, or where our code is, or in the user's cache; before numba is imported.

    Where our code is, it goes with it: what root runs leaves nothing behind in his home.
    """
    kept = Path(os.environ.get(VARIABLE) or _beside_the_code() or _user_cache())
    state = state_of_the_code(PACKAGE)
    if kept.name != state:  # processes that we start inherit it
        os.environ[VARIABLE] = str(kept / state)


def state_of_the_code(package: Path) -> str:
    """A name for what the compiled modules say now."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED for path in package.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _beside_the_code() -> Path | None:
    return PACKAGE / "__pycache__" if os.access(PACKAGE, os.W_OK) else None


def _user_cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "slurm_sns"
