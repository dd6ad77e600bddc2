"""Slurm's library is told to be quiet where we know how, and left alone elsewhere."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from slurm_sns.slurm.api import quiet

PYSLURM = SimpleNamespace(api=SimpleNamespace(__file__="api.so"))


def library(mocker, version: int) -> MagicMock:
    linked = MagicMock()
    linked.slurm_api_version.return_value = version << 16
    linked.slurm_log_alter.return_value = 0
    mocker.patch("ctypes.CDLL", return_value=linked)
    return linked.slurm_log_alter


def test_only_what_is_fatal_is_written(mocker) -> None:
    alter = library(mocker, 45)
    assert quiet(PYSLURM)
    options, _, logfile = alter.call_args.args
    assert (options.stderr_level, options.syslog_level, options.logfile_level, logfile) == (1, 0, 0, None)


@pytest.mark.parametrize("version", [41, 46])
def test_a_version_that_nobody_has_looked_at_is_left_alone(mocker, version: int) -> None:
    alter = library(mocker, version)
    assert not quiet(PYSLURM)
    assert not alter.called


def test_without_the_library_nothing_happens() -> None:
    assert not quiet(PYSLURM), "there is no such file"
    assert not quiet(SimpleNamespace(api=SimpleNamespace(__file__=None))), "a library, but not Slurm's"
