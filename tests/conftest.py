"""A cache of compiled functions for each state of the compiled code, and signals as a terminal gives them.

What numba keeps knows only its own file's changes.
"""

import hashlib
import os
import signal
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


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, though who started the tests may ignore it (a background job, nohup)."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
