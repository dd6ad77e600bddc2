"""`sns web`: whose process it is, and where it listens, is checked before anything is served."""

import os
import pwd
import socket
from pathlib import Path

import pytest

ME = pwd.getpwuid(os.geteuid()).pw_name
SMALLEST = "partitions: [main]\nnodes: [{names: c1, partitions: [main], cores: 4, memory_mb: 1000}]\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sns.yaml"
    path.write_text(SMALLEST + f"slurm: {{user: {ME}}}\n")
    return path


def test_only_slurm_user_serves_it(sns, config: Path) -> None:
    config.write_text(SMALLEST + "slurm: {user: nobody}\n")
    code, _, errors = sns("web", "--config", config)
    assert code == 2
    assert "this runs as nobody, not as user id" in errors


def test_a_port_that_is_taken_is_told(sns, config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, errors = sns("web", "--config", config, "--port", port)
    assert code == 1
    assert errors.startswith(f"sns: error: 127.0.0.1 port {port} cannot be listened at: ")


@pytest.mark.parametrize(
    ("web", "said"),
    [
        ("{user_header: X-Remote-User}", "X-Remote-User without trusted_addresses; valid: both, or null"),
        ("{admins: [ada]}", "without user_header nobody is named; valid: both, or []"),
        ("{trusted_addresses: [10.0.0.0/8]}", "without user_header nobody is named; valid: both, or []"),
        ("{user_header: X-R, trusted_addresses: [proxy]}", "an address or a network, such as 192.0.2.7"),
        ("{user_header: 'X: y', trusted_addresses: ['::1']}", "a header's name such as X-Remote-User"),
    ],
)
def test_half_of_what_names_a_viewer_is_refused(sns, config: Path, web: str, said: str) -> None:
    config.write_text(config.read_text() + f"web: {web}\n")
    code, _, errors = sns("web", "--config", config)
    assert code == 2
    assert said in errors
