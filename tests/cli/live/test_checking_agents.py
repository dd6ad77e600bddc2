"""`sns check` on a controller with agents on its nodes: the key, the name, the port."""

import getpass
import os
import socket
from pathlib import Path

import pytest

from slurm_sns.cli.live import installation
from slurm_sns.config import configuration
from slurm_sns.slurm.check import Finding
from slurm_sns.wire.keys import SECRET_BYTES, key_line


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "sns.key"
    path.write_text(key_line("k1", bytes(range(SECRET_BYTES))) + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def found(write_config, key: Path, monkeypatch: pytest.MonkeyPatch):
    """The findings: of the key, of the name, and where a scheduler runs of the port."""

    def found(runs: bool = False, user: str = getpass.getuser(), **agents) -> list[Finding]:
        monkeypatch.setattr(installation, "runs", lambda _name, _directory: runs)
        agents = {"controller": "127.0.0.1", "key_file": str(key), **agents}
        return list(installation.agents(configuration.load(write_config(agents=agents, slurm={"user": user}))))

    return found


def test_what_is_right_is_not_mended(found) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        findings = found(runs=True, port=listening.getsockname()[1])
    assert [each.ok for each in findings] == [True, True, True]


def test_a_missing_key_is_made(found, key: Path) -> None:
    key.unlink()
    assert (found()[0].found, found()[0].run) == ("missing", "sns key new")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_may_read_is_wrong(found, key: Path, mode: int) -> None:
    key.chmod(mode)
    wrong = found()[0]
    assert not wrong.ok
    assert f"mode {mode:04o}" in wrong.found
    assert wrong.run == f"chown {getpass.getuser()}: {key} && chmod 0600 {key}"


@pytest.mark.parametrize("text", ["", "k1 abc\n", "not a key at all\n"])
def test_a_file_without_keys_is_wrong_and_what_is_in_it_is_not_shown(found, key: Path, text: str) -> None:
    key.write_text(text)
    wrong = found()[0]
    assert not wrong.ok
    assert "abc" not in wrong.found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_root_alone_cannot_be_read_by_the_scheduler(found) -> None:
    wrong = found(user="nobody")[0]
    assert (wrong.ok, wrong.found, wrong.wanted) == (False, "of user id 0", "of nobody")


def test_a_user_that_does_not_exist_is_no_traceback(found) -> None:
    assert found(user="no_such_user")[0].found == "no user no_such_user"


def test_the_nodes_must_find_this_machine_by_the_name(found) -> None:
    # TEST-NET-1 (RFC 5737): no machine has it. The top-level domain `invalid` (RFC 6761): nobody is called so.
    assert not found(controller="192.0.2.1")[1].ok
    assert found(controller="192.0.2.1")[1].found == "192.0.2.1"
    assert not found(controller="controller.invalid")[1].ok


def test_a_port_on_which_nobody_listens_is_wrong_while_the_scheduler_runs(found) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert len(found(port=port)) == 2, "without a scheduler that is what is wrong"
        wrong = found(runs=True, port=port)[2]
        assert (wrong.ok, str(port) in wrong.what) == (False, True)
