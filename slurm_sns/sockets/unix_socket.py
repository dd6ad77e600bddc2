"""The scheduler's Unix socket: one JSON line in, one JSON line out.

Anybody on the machine may connect; who is calling is what the kernel says (SO_PEERCRED), never what the request says.
Requests are bounded in size and time, and so is the number of callers at once, in all and of each user, so that no user
can hold the others up. Who finds no place is told so and asks again (`ask` does).
"""

import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.sockets.caller_limits import Places

LONGEST_REQUEST_BYTES = 4096
#: An answer about a queue of 100,000 jobs is about 20 MB.
LONGEST_ANSWER_BYTES = 256 * 2**20
CALLER_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
#: Each is a thread of the scheduler's process while it is served.
MOST_CALLERS = 64
#: A person in front of some terminals; sixteen such users at once are all the places.
MOST_OF_A_USER = 4
#: A user's place is free again so long after his answer: with all his places he asks 80 times a second at the most.
REST_S = 0.05
#: Who is turned away costs the time to say so; with this pause nobody is turned away more than 1,000 times a second.
TURNED_AWAY_S = 0.001
STOP_LOOKED_FOR_S = 0.1
#: So long `ask` tries to get a place, or a place in the kernel's queue before it.
PATIENCE_S = 10.0
ASKED_AGAIN_S = 0.1

NOBODY: frozenset[int] = frozenset()

Answer = Callable[[dict[str, Any], int], Any]


class ControlSocket:
    """Serves `answer(request, user_id)` on a socket file, in threads of its own, between `with` and its end.

    The user ids in `trusted` are served whatever the others do.
    """

    def __init__(self, path: Path, answer: Answer, trusted: frozenset[int] = NOBODY) -> None:
        self._path = path
        self._server = _Server(path, answer, Places(MOST_CALLERS, MOST_OF_A_USER, trusted))

    def __enter__(self) -> "ControlSocket":
        threading.Thread(
            target=self._server.serve_forever, args=(STOP_LOOKED_FOR_S,), name="control", daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, answer: Answer, places: Places) -> None:
        self.answer = answer
        self.places = places
        path.unlink(missing_ok=True)  # a socket that a killed scheduler left behind
        super().__init__(str(path), _Handler)
        path.chmod(0o666)  # everybody may ask; who sees what is decided by the caller's user id

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take the caller if there is a place for him, else tell him that there is none."""
        problem = self.places.take(_user_id(request))
        if not problem:
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread to be had: nobody else would give the place back
                self.places.give_back(_user_id(request))
                raise
            return
        request.setblocking(False)  # a new connection has room for one line
        request.sendall(_line({"error": problem, "busy": True}))
        self.shutdown_request(request)
        time.sleep(TURNED_AWAY_S)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        user_id, began_s = _user_id(request), time.monotonic()
        try:
            super().process_request_thread(request, client_address)
            if not self.places.is_trusted(user_id):
                # As long as it took: an expensive question costs its caller, not the others.
                time.sleep(min(CALLER_TIMEOUT_S, max(REST_S, time.monotonic() - began_s)))
        finally:
            self.places.give_back(user_id)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away or was too slow is no event; anything else is a defect, and shows."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        try:
            request, user_id = _parse(_read_line(self.request)), _user_id(self.request)
            with self.server.places.turn(user_id):
                reply = {"answer": self.server.answer(request, user_id)}
        except SnsError as problem:
            reply = {"error": str(problem), "bad_input": isinstance(problem, BadInput)}
        self.request.settimeout(CALLER_TIMEOUT_S)
        self.request.sendall(_line(reply))


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _read_line(connection: socket.socket) -> bytes:
    """What the caller sends, up to a newline or one byte too much; all of it within the caller's time."""
    deadline_s = time.monotonic() + CALLER_TIMEOUT_S
    line = b""
    while not line.endswith(b"\n") and len(line) <= LONGEST_REQUEST_BYTES:
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        part = connection.recv(LONGEST_REQUEST_BYTES + 1 - len(line))
        if not part:
            break
        line += part
    return line


def _parse(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_REQUEST_BYTES or not line.endswith(b"\n"):
        raise BadInput(f"a request is one line of at most {LONGEST_REQUEST_BYTES} bytes")
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise BadInput("a request is one JSON object") from None
    if not isinstance(request, dict):
        raise BadInput("a request is one JSON object")
    return request


def _user_id(connection: socket.socket) -> int:
    """The caller's user id, from the kernel: struct ucred is pid, uid, gid."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def ask(path: Path, request: dict[str, Any]) -> Any:
    """The running scheduler's answer; while it is too busy, asked again for `PATIENCE_S`.

    Raises:
        Unreachable: no scheduler answers there, or it is too busy.
        SnsError: the scheduler answered with an error (BadInput when the request was at fault).
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while "busy" in (reply := _ask_once(path, request)) and time.monotonic() < deadline_s:
        time.sleep(ASKED_AGAIN_S)
    if "busy" in reply:
        raise Unreachable(f"the scheduler at {path} is busy: {reply['error']}")
    if "error" in reply:
        raise (BadInput if reply.get("bad_input") else SnsError)(reply["error"])
    return reply["answer"]


def _ask_once(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(os.fspath(path))
            with suppress(BrokenPipeError):  # who is turned away is told so before he has asked
                connection.sendall(_line(request))
            with connection.makefile("rb") as stream:
                line = stream.readline(LONGEST_ANSWER_BYTES)
    except BlockingIOError:
        return {"error": "others call it all the time", "busy": True}  # the kernel's queue before it is full
    except OSError as problem:
        raise Unreachable(f"no scheduler answers at {path}: {problem.strerror or problem}") from None
    if not line:
        raise Unreachable(f"the scheduler at {path} closed the connection without an answer")
    reply: dict[str, Any] = json.loads(line)
    return reply
