"""`sns` as a user runs it, in this process, on a configuration whose directories are the test's."""

import getpass
import json
import os
import sys
from pathlib import Path

import pytest
from json_output import read_of

# `shown`, `fake_slurm`: pytest's importlib mode puts no test folder on the path
sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "scheduler")]

from slurm_sns.cli import main
from slurm_sns.sockets.unix_socket import ControlSocket

SETTINGS = {
    "mode": "enforce",
    "partitions": ["main"],
    "nodes": [{"names": "c1", "partitions": ["main"], "cores": 4, "memory_mb": 4000}],
}


@pytest.fixture
def write_config(tmp_path: Path):
    """Writes sns.yaml (JSON is YAML) for a Slurm of this user, or of another."""
    (tmp_path / "state").mkdir(mode=0o755)

    def write(**more) -> Path:
        paths = {"state_dir": str(tmp_path / "state"), "run_dir": str(tmp_path), "slurm_dir": str(tmp_path / "slurm")}
        path = tmp_path / "sns.yaml"
        path.write_text(json.dumps({**SETTINGS, "slurm": {"user": getpass.getuser()}, "paths": paths, **more}))
        return path

    return write


@pytest.fixture
def config(write_config) -> Path:
    return write_config()


@pytest.fixture(autouse=True)
def same_umask():
    """The daemons' commands set theirs, in this process."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def sns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The exit status, what was printed, what was complained about."""
    monkeypatch.setenv("COLUMNS", "200")

    def sns(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["sns", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        # Not what a scheduler of the test has made up.
        if "--json" in words and output and not {"status", "queue", "explain"} & set(words):
            read_of(words, output)
        return ended.value.code, output, errors

    return sns


@pytest.fixture
def scheduler(tmp_path: Path):
    """A socket on which a scheduler would answer; `replies` by command."""
    replies: dict[str, object] = {}

    def answer(request, _user):
        reply = replies[request["command"]]
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply

    with ControlSocket(tmp_path / "scheduler.sock", answer):
        yield replies
