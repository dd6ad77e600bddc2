"""Compiled functions are kept for all runs of the tests together, and signals are as a terminal gives them."""

import os
import signal
import tempfile
from pathlib import Path

from slurm_sns.cli.compiled_code import VARIABLE, keep_by_state

# Processes that a test starts inherit it.
os.environ.setdefault(VARIABLE, str(Path(tempfile.gettempdir()) / f"slurm-sns-compiled-{os.getuid()}"))
keep_by_state()


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, though who started the tests may ignore it (a background job, nohup)."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
