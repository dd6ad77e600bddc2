"""The scheduler's Unix socket: one JSON line in, one JSON line out.

Anybody on the machine may connect; who is calling is what the kernel says (SO_PEERCRED), never what the request says.
Requests are bounded in size and time, and so is the number of callers at once, so that no user can hold the others up.
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
from pathlib import Path
from typing import Any

from slurm_sns.errors import BadInput, SnsError, Unreachable

LONGEST_REQUEST_BYTES = 4096
#: An answer about a queue of 100,000 jobs is about 20 MB.
LONGEST_ANSWER_BYTES = 256 * 2**20
CALLER_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
MOST_CALLERS = 32
STOP_LOOKED_FOR_S = 0.1

Answer = Callable[[dict[str, Any], int], Any]


class ControlSocket:
    """Serves `answer(request, user_id)` on a socket file, in threads of its own, between `with` and its end."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self._path = path
        self._server = _Server(path, answer)

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

    def __init__(self, path: Path, answer: Answer) -> None:
        self.answer = answer
        self._places = threading.BoundedSemaphore(MOST_CALLERS)
        path.unlink(missing_ok=True)  # a socket that a killed scheduler left behind
        super().__init__(str(path), _Handler)
        path.chmod(0o666)  # everybody may ask; who sees what is decided by the caller's user id

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take the caller if there is room, else close the connection at once."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away or was too slow is no event; anything else is a defect, and shows."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        try:
            line = _read_line(self.request)
            reply = {"answer": self.server.answer(_parse(line), _user_id(self.request))}
        except SnsError as problem:
            reply = {"error": str(problem), "bad_input": isinstance(problem, BadInput)}
        self.request.settimeout(CALLER_TIMEOUT_S)
        self.request.sendall(json.dumps(reply).encode() + b"\n")


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
    """The running scheduler's answer.

    Raises:
        Unreachable: no scheduler answers there.
        SnsError: the scheduler answered with an error (BadInput when the request was at fault).
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(os.fspath(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline(LONGEST_ANSWER_BYTES)
    except OSError as problem:
        raise Unreachable(f"no scheduler answers at {path}: {problem.strerror or problem}") from None
    if not line:
        raise Unreachable(f"the scheduler at {path} closed the connection; too many callers at once, try again")
    reply = json.loads(line)
    if "error" in reply:
        raise (BadInput if reply.get("bad_input") else SnsError)(reply["error"])
    return reply["answer"]
