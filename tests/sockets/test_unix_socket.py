"""The control socket: who is calling is what the kernel says, and no caller can hold the others up."""

import json
import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.json_text import JsonText
from slurm_sns.sockets import unix_socket
from slurm_sns.sockets.unix_socket import LONGEST_REQUEST_BYTES, MOST_OF_A_USER, ControlSocket, Places, ask

AGAIN = "are under way; try again in a moment"


def echo(request: dict, user_id: int):
    return {"request": request, "user_id": user_id}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.sock"


@pytest.fixture
def served(path: Path):
    with ControlSocket(path, echo):
        yield path


def send(path: Path, data: bytes, *, end: bool = True) -> bytes:
    """What comes back on these raw bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(path))
        with suppress(BrokenPipeError):  # the answer may be there before the request, as for `ask`
            connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            return stream.readline()


def test_the_caller_is_whom_the_kernel_says_whatever_the_request_says(served: Path) -> None:
    reply = ask(served, {"command": "queue", "user_id": 0})
    assert reply == {"request": {"command": "queue", "user_id": 0}, "user_id": os.getuid()}


def test_everybody_may_ask(served: Path) -> None:
    assert served.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("error", [SnsError("the store is away"), BadInput("job 7: no job of yours")])
def test_an_error_comes_back_as_what_it_was(path: Path, error: SnsError) -> None:
    def failing(_request, _user):
        raise error

    with ControlSocket(path, failing), pytest.raises(SnsError) as problem:
        ask(path, {"command": "status"})
    assert (type(problem.value), str(problem.value)) == (type(error), str(error))


@pytest.mark.parametrize(
    "garbage",
    [b"garbage\n", b"\xff\xfe\n", b"[1]\n", b"null\n", b"1\n", b"\n", b"[" * 2000 + b"\n", b'{"command": "status"}'],
    ids=["words", "bytes", "list", "null", "number", "empty", "deep", "no newline"],
)
def test_what_is_no_request_is_answered_with_an_error(served: Path, garbage: bytes) -> None:
    reply = json.loads(send(served, garbage))
    assert reply["bad_input"] is True
    assert reply["error"].startswith("a request is one ")
    assert ask(served, {})["request"] == {}, "and the next caller is served"


def test_a_request_may_be_so_long_and_no_longer(served: Path) -> None:
    padding = LONGEST_REQUEST_BYTES - len(b'{"a":""}\n')
    assert "answer" in json.loads(send(served, b'{"a":"%s"}\n' % (b"x" * padding)))
    assert "error" in json.loads(send(served, b'{"a":"%s"}\n' % (b"x" * (padding + 1))))
    assert "error" in json.loads(send(served, b"x" * (LONGEST_REQUEST_BYTES + 1), end=False))


def test_a_request_in_pieces_is_put_together(served: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(served))
        for piece in (b'{"comm', b'and": "st', b'atus"}\n'):
            connection.sendall(piece)
            time.sleep(0.01)
        assert b'"status"' in connection.recv(1000)


def test_a_caller_who_sends_byte_by_byte_loses_his_place_in_time(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(unix_socket, "CALLER_TIMEOUT_S", 0.3)
    with ControlSocket(path, echo), socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(path))
        deadline_s = time.monotonic() + 60
        sent = 0
        with suppress(OSError):
            while time.monotonic() < deadline_s:
                sent += slow.send(b" ")
                time.sleep(0.05)
        assert sent < LONGEST_REQUEST_BYTES / 4, "he is not heard to the end"
        assert time.monotonic() < deadline_s, "the connection was closed"


class Slow:
    """Answers that wait until they may go on."""

    def __init__(self) -> None:
        self.go_on, self.begun = threading.Event(), threading.Semaphore(0)

    def __call__(self, _request: dict, _user: int) -> str:
        self.begun.release()
        assert self.go_on.wait(60)
        return "done"


def callers(path: Path, count: int, until: ExitStack) -> list[socket.socket]:
    """So many who have asked and wait for their answers; whoever comes after them is looked at after them."""
    waiting = [until.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(count)]
    for each in waiting:
        each.settimeout(60)
        each.connect(str(path))
        each.sendall(b"{}\n")
    return waiting


def test_a_user_with_too_many_requests_is_turned_away_until_he_gets_an_answer(path: Path, monkeypatch) -> None:
    slow = Slow()
    with ControlSocket(path, slow), ExitStack() as end:
        waiting = callers(path, MOST_OF_A_USER, end)
        try:
            turned_away = json.loads(send(path, b"", end=False))
            assert turned_away == {"error": f"{MOST_OF_A_USER} requests of yours {AGAIN}", "busy": True}
            monkeypatch.setattr(unix_socket, "PATIENCE_S", 0.3)
            with pytest.raises(Unreachable, match=f"is busy: {MOST_OF_A_USER} requests of yours"):
                ask(path, {})
            assert slow.begun.acquire(timeout=60)
            assert not slow.begun.acquire(blocking=False), "one after the other"
        finally:
            slow.go_on.set()
        assert [json.loads(each.recv(1000)) for each in waiting] == [{"answer": "done"}] * MOST_OF_A_USER
        monkeypatch.undo()
        assert ask(path, {}) == "done", "the places come back, and who asks has the patience to wait for one"


def test_the_trusted_are_served_however_many_ask(path: Path) -> None:
    slow = Slow()
    with ControlSocket(path, slow, trusted=frozenset({os.getuid()})), ExitStack() as end:
        waiting = callers(path, MOST_OF_A_USER + 1, end)
        for _ in waiting:
            assert slow.begun.acquire(timeout=60), "all at once"
        slow.go_on.set()
        assert [json.loads(each.recv(1000)) for each in waiting] == [{"answer": "done"}] * (MOST_OF_A_USER + 1)


def test_who_says_nothing_loses_his_place_in_time(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(unix_socket, "CALLER_TIMEOUT_S", 0.3)
    with ControlSocket(path, echo), ExitStack() as silent:
        for _ in range(MOST_OF_A_USER):
            silent.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        assert ask(path, {})["request"] == {}


def test_a_full_queue_before_the_scheduler_is_waited_for(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(unix_socket, "PATIENCE_S", 0.3)
    with socket.socket(socket.AF_UNIX) as stuck, ExitStack() as waiting:
        stuck.bind(str(path))
        stuck.listen(0)
        with suppress(BlockingIOError):  # until the kernel takes no more
            while True:
                caller = waiting.enter_context(socket.socket(socket.AF_UNIX))
                caller.setblocking(False)
                caller.connect(str(path))
        with pytest.raises(Unreachable, match="is busy: the kernel's queue of connections to it is full"):
            ask(path, {})


class TestPlaces:
    def test_one_user_leaves_places_to_the_others(self) -> None:
        places = Places(most=3, most_of_a_user=2, trusted=frozenset({0}))
        assert [bool(places.take(user)) for user in (7, 7, 7, 8)] == [False, False, True, False]

    def test_many_users_leave_places_to_the_trusted(self) -> None:
        places = Places(most=3, most_of_a_user=2, trusted=frozenset({0}))
        assert [bool(places.take(user)) for user in (7, 8, 9, 10, 0, 0, 0)] == [False] * 3 + [True] + [False] * 3

    def test_what_is_given_back_is_free_for_anybody(self) -> None:
        places = Places(most=1, most_of_a_user=1, trusted=frozenset())
        for user in (7, 8, 7):
            assert places.take(user) == ""
            assert places.take(user).startswith("1 request")
            places.give_back(user)


def test_a_socket_that_a_killed_scheduler_left_behind_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with ControlSocket(path, echo):
        assert ask(path, {})["user_id"] == os.getuid()
    assert not path.exists()


def test_without_a_scheduler_nobody_answers(path: Path) -> None:
    with pytest.raises(Unreachable, match=f"no scheduler answers at {path}: No such file or directory"):
        ask(path, {})
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(Unreachable, match="Connection refused"):
        ask(path, {})


def test_a_defect_in_an_answer_shows_and_ends_nothing(path: Path, capsys) -> None:
    def defect(request, _user):
        return 1 / request["by"]

    with ControlSocket(path, defect):
        with pytest.raises(Unreachable):
            ask(path, {"by": 0})
        assert ask(path, {"by": 1}) == 1
        deadline_s = time.monotonic() + 60
        while "ZeroDivisionError" not in (said := capsys.readouterr().err) and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert "ZeroDivisionError" in said


def test_a_long_answer_arrives_whole(path: Path) -> None:
    rows = [{"job_id": number, "name": "x" * 100} for number in range(50_000)]
    with ControlSocket(path, lambda *_: rows):
        assert ask(path, {}) == rows


def test_an_answer_that_is_json_already_arrives_as_what_it_says(path: Path) -> None:
    told = {"names": ["c1", 'a "quoted" name\n'], "free": None}
    with ControlSocket(path, lambda *_: JsonText(json.dumps(told))):
        assert ask(path, {}) == told


def test_an_answer_that_is_cut_off_is_none(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def cut_off() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b'{"answer": {"jobs": [')

        answering = threading.Thread(target=cut_off)
        answering.start()
        with pytest.raises(Unreachable, match="closed the connection within its answer"):
            ask(path, {})
        answering.join()
