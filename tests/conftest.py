"""Compiled functions are kept for all runs of the tests together, and signals are as a terminal gives them.

No property is judged by how long an example takes: other work on the machine would decide.
"""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from slurm_sns.cli.compiled_code import VARIABLE, keep_by_state

# Processes that a test starts inherit it.
os.environ.setdefault(VARIABLE, str(Path(tempfile.gettempdir()) / f"slurm-sns-compiled-{os.getuid()}"))
keep_by_state()
settings.register_profile("on any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("on any machine")


class ByFile(LoadScopeScheduling):
    """On several processes, the tests of a file run in one; so do all that use containers, whose names are the same."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "containers" if path.startswith("tests/cluster/") else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """How pytest-xdist is told of it."""
    return ByFile(config, log)


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, though who started the tests may ignore it (a background job, nohup)."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Ended by --maxfail, exit as one who was stopped: `make test` then ends the run beside it."""
    if session.shouldfail:
        session.exitstatus = pytest.ExitCode.INTERRUPTED
