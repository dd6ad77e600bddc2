"""A cache of compiled functions for each state of the compiled code: what is kept knows only its own file's changes."""

import hashlib
import os
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).parents[1] / "slurm_sns"


def _state_of_the_code() -> str:
    digest = hashlib.sha256()
    for path in sorted([*_PACKAGE.glob("policies/placement/*.py"), *_PACKAGE.glob("sim/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# Processes that a test starts inherit it.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"slurm-sns-compiled-{os.getuid()}-{_state_of_the_code()}")
)
