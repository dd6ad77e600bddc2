"""Prolog's and epilog's hook: whatever happens, the exit code is 0, nothing is printed to the job, and it ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.node import hook
from slurm_sns.node.agent.inbox import job_event
from slurm_sns.package_files import package_text

HOOK = Path(hook.__file__)
#: Far more than the 5 s that it waits; a busy machine is slow.
ENDS_WITHIN_S = 60


def run(*arguments: str, environment: dict[bytes, bytes] | None = None, **options: object) -> subprocess.Popen[bytes]:
    """The hook as Slurm would run it: with this environment and no other."""
    command = [sys.executable, "-I", "-S", str(HOOK), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment or {}, **pipes, **options)


def ended(process: subprocess.Popen[bytes]) -> str:
    """Its standard error, once it has ended with 0 and printed nothing."""
    output, error = process.communicate(timeout=ENDS_WITHIN_S)
    assert (process.returncode, output) == (0, b"")
    assert error.count(b"\n") <= 1
    return error.decode()


@contextlib.contextmanager
def agent(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something that answers the first caller at the socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(ENDS_WITHIN_S)


def test_it_sends_what_slurm_says_of_the_job(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            heard.append(stream.readline())
        connection.sendall(b'{"answer": {}}\n')

    environment = {
        b"SLURM_JOB_ID": b"41",
        b"SLURM_JOB_UID": b"1000",
        b"SLURM_JOB_RESTART_COUNT": b"2",
        b"SLURM_JOB_NODELIST": b"c[1-4]",
        b"SLURM_JOB_EXTRA": b"sns:grant=1:x",
        b"OTHER": b"secret",
    }
    with agent(tmp_path / "socket", answer):
        assert ended(run("prolog", str(tmp_path / "socket"), environment=environment)) == ""
    said = json.loads(heard[0])
    assert said == {
        "v": 1,
        "event": "prolog",
        "job": "41",
        "uid": "1000",
        "restarts": "2",
        "nodes": "c[1-4]",
        "extra": "sns:grant=1:x",
    }
    assert job_event(said).run == (41, 2)


TROUBLE: dict[str, Callable[[socket.socket], None]] = {
    "refuses": lambda connection: connection.sendall(b'{"error": "job 41: no\x1b[31m"}\n'),
    "closes": lambda _: None,
    "answers nonsense": lambda connection: connection.sendall(b"\xff\x00\n"),
    "answers a list": lambda connection: connection.sendall(b"[1]\n"),
    "hangs": lambda _: time.sleep(hook.PATIENCE_S + 1),
    "drips": lambda connection: [connection.sendall(b" ") or time.sleep(0.5) for _ in range(12)] and None,
}


@pytest.mark.long
@pytest.mark.parametrize("how", TROUBLE)
def test_an_agent_that(how: str, tmp_path: Path) -> None:
    def answer(connection: socket.socket) -> None:
        try:
            TROUBLE[how](connection)
        except OSError:
            assert how == "drips", "the hook has gone"

    with agent(tmp_path / "socket", answer):
        error = ended(run("epilog", str(tmp_path / "socket"), environment={b"SLURM_JOB_ID": b"41"}))
    assert error.startswith("sns: ")
    assert "\x1b" not in error


@pytest.mark.parametrize(
    "arguments", [(), ("prolog",), ("start", "x"), ("prolog", "/nowhere/socket"), ("prolog", "x" * 500)]
)
def test_without_an_agent(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert ended(run(*arguments, cwd=tmp_path)).startswith("sns: ")


def test_a_directory_in_the_place_of_the_socket(tmp_path: Path) -> None:
    assert "no agent answers" in ended(run("prolog", str(tmp_path)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_0(number: int, tmp_path: Path) -> None:
    accepted = threading.Event()

    def answer(connection: socket.socket) -> None:
        accepted.set()
        connection.recv(1 << 16)
        connection.recv(1)

    with agent(tmp_path / "socket", answer):
        process = run("prolog", str(tmp_path / "socket"))
        assert accepted.wait(ENDS_WITHIN_S)
        process.send_signal(number)
        assert "signal" in ended(process)


def test_a_signal_while_it_says_what_is_wrong_adds_no_second_line(tmp_path: Path) -> None:
    alone = tmp_path / "hook.py"
    slow_write = "write = os.write\nos.write = lambda *said: (write(*said), os.kill(os.getpid(), signal.SIGALRM))\n"
    last = 'if __name__ == "__main__":'
    alone.write_text(package_text("node/hook.py").replace(last, slow_write + last))
    hooked = subprocess.Popen(
        [sys.executable, "-I", "-S", str(alone), "prolog", "/nowhere"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert "no agent answers" in ended(hooked)


def test_it_ends_where_nobody_reads_what_it_says() -> None:
    unread, full = os.pipe()
    os.set_blocking(full, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(full, b"x" * 4096)
    os.set_blocking(full, True)
    hooked = subprocess.Popen([sys.executable, "-I", "-S", str(HOOK), "prolog", "/nowhere"], stderr=full)
    assert hooked.wait(ENDS_WITHIN_S) == 0
    os.close(unread)
    os.close(full)


@pytest.mark.parametrize("closed", [1, 2])
def test_closed_outputs_are_no_trouble(closed: int, tmp_path: Path) -> None:
    command = f"exec {sys.executable} -I -S {HOOK} prolog {tmp_path}/nothing {closed}>&-"
    assert subprocess.run(["bash", "-c", command], check=False, stderr=subprocess.DEVNULL).returncode == 0


NAMES = st.sampled_from([variable.encode() for variable in hook.VARIABLES.values()])
PIECES = st.binary(max_size=20) | st.sampled_from([b"\0", b"\n", b"\xff", b"9", b'"', b"\x01", "\N{SNOWMAN}".encode()])


@given(st.text())
def test_any_text_is_written_as_json(text: str) -> None:
    written = hook.text_in_json(text)
    assert json.loads(written) == text
    assert written.isascii()


@given(st.dictionaries(NAMES, st.tuples(PIECES, st.sampled_from([0, 1, 300, 4_000, 90_000]))))
def test_whatever_the_environment_holds_it_is_one_line_of_json_of_a_limited_size(environment) -> None:
    line = hook.request("prolog", {name: piece * times for name, (piece, times) in environment.items()})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= hook.LONGEST_BYTES
    assert json.loads(line)["event"] == "prolog"


def test_a_list_of_4096_nodes_is_sent() -> None:
    nodes = ",".join(f"node{number}" for number in range(4096)).encode()[:38_000]
    assert json.loads(hook.request("prolog", {b"SLURM_JOB_NODELIST": nodes}))["nodes"] == nodes.decode()


def test_it_imports_nothing_of_the_package_and_runs_without_it(tmp_path: Path) -> None:
    alone = tmp_path / "hook.py"
    alone.write_text(package_text("node/hook.py"))
    script = f"import runpy, sys; runpy.run_path({str(alone)!r}); print([m for m in sys.modules if 'slurm_sns' in m])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout == "[]\n"
