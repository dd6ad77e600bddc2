"""Compiled code is kept by the state of our code: an upgrade never meets what an older version left."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_sns.cli import compiled_code
from slurm_sns.cli.compiled_code import VARIABLE, keep_by_state, keep_out_of_the_users_cache, state_of_the_code


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one compiled module."""
    package = tmp_path / "package"
    (package / "sim" / "replay").mkdir(parents=True)
    (package / "sim" / "replay" / "loop.py").write_text("one = 1\n")
    monkeypatch.setattr(compiled_code, "PACKAGE", package)
    return package


def test_another_state_of_the_code_is_kept_elsewhere_and_the_same_in_the_same_place(package, monkeypatch):
    monkeypatch.setenv(VARIABLE, "/var/lib/sns/numba")
    keep_by_state()
    before = os.environ[VARIABLE]
    keep_by_state()  # a process that was started by one of ours
    assert os.environ[VARIABLE] == before == f"/var/lib/sns/numba/{state_of_the_code(package)}"

    (package / "sim" / "replay" / "loop.py").write_text("one = 2\n")
    monkeypatch.setenv(VARIABLE, "/var/lib/sns/numba")
    keep_by_state()
    assert os.environ[VARIABLE] != before


def test_without_the_variable_it_goes_with_the_code(package, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    keep_by_state()
    assert os.environ[VARIABLE] == f"{package}/__pycache__/{state_of_the_code(package)}"


def test_where_the_code_is_not_ours_to_write_it_is_the_users_cache(package, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    for cache, home in (("", tmp_path / "home"), (str(tmp_path / "cache"), tmp_path)):
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        keep_by_state()
        kept = cache or str(home / ".cache")
        assert os.environ[VARIABLE] == f"{kept}/slurm_sns/{state_of_the_code(package)}"


def test_a_user_without_a_name_and_a_home_can_run_commands(package, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    for name in (VARIABLE, "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    keep_by_state()
    assert os.environ[VARIABLE] == f"/nonexistent/.cache/slurm_sns/{state_of_the_code(package)}"


def test_every_command_keeps_it_so(tmp_path):
    show = "import os, sys; sys.argv[1:] = ['--version']\ntry:\n    from slurm_sns.cli import main; main()\nfinally:\n"
    done = subprocess.run(
        [sys.executable, "-c", show + "    print(os.environ['NUMBA_CACHE_DIR'])"],
        env={**os.environ, VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/{state_of_the_code(compiled_code.PACKAGE)}"


def test_a_user_who_observes_has_it_in_a_directory_of_theirs_unless_they_named_another(package, monkeypatch, tmp_path):
    state = state_of_the_code(package)
    for named, kept in (("", tmp_path / "seen"), ("/scratch/numba", Path("/scratch/numba"))):
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        monkeypatch.setenv(VARIABLE, named)
        keep_by_state()
        keep_out_of_the_users_cache(tmp_path / "seen")
        assert os.environ[VARIABLE] == str(kept / state)
