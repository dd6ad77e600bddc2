"""The Unix sockets of the scheduler and of a node's agent: one JSON line in, one JSON line out.

Anybody on the machine may connect to the scheduler's, root alone to an agent's. The kernel says who the caller is
(SO_PEERCRED); the request never does. Requests are limited in size and time, and callers at once in number, in total
and of each user, so that no user can hold up others. A caller who finds no place gets an answer that says so; `ask`
then asks again.
"""

import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from slurm_sns.errors import BadInput, SnsError, Unreachable
from slurm_sns.json_text import encoded

LONGEST_REQUEST_BYTES = 4096
#: An answer about a queue of 100,000 jobs is about 20 MB.
LONGEST_ANSWER_BYTES = 256 * 2**20
CALLER_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
#: Each caller takes a thread of the scheduler's process while being served.
MOST_CALLERS = 64
#: Enough for one person with several terminals; sixteen users with that many requests take all places.
MOST_OF_A_USER = 4
#: A place becomes free this long after the answer, so a user with all four places asks at most 80 times a second.
REST_S = 0.05
#: Turning a caller away takes time, too. With this pause it happens at most 1,000 times a second.
TURNED_AWAY_S = 0.001
#: How often the serving thread checks whether it shall stop.
STOP_POLL_S = 0.1
#: For how long `ask` tries to get a place, or to get into the kernel's queue of connections.
PATIENCE_S = 10.0
ASKED_AGAIN_S = 0.1

NOBODY: frozenset[int] = frozenset()

Answer = Callable[[dict[str, Any], int], Any]


class Access(NamedTuple):
    """Who may ask: the mode of the socket's file, the user ids (None: all), and the longest request in bytes."""

    mode: int = 0o666
    users: frozenset[int] | None = None
    longest_request_bytes: int = LONGEST_REQUEST_BYTES


#: Everybody may ask; who sees what is decided by the caller's user id.
EVERYBODY = Access()


class Places:
    """At most `most` callers are served at once in total, and `most_of_a_user` of one user.

    A user keeps a place until shortly after the answer, and requests of one user are answered one after the other. So a
    user who asks all the time takes a bounded share of the scheduler's time. Trusted users (root and SlurmUser) always
    get a place: an admin is never locked out.
    """

    def __init__(self, most: int, most_of_a_user: int, trusted: frozenset[int]) -> None:
        self._most, self._most_of_a_user, self._trusted = most, most_of_a_user, trusted
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def is_trusted(self, user_id: int) -> bool:
        """Whether this user is served without a limit."""
        return user_id in self._trusted

    def take(self, user_id: int) -> str:
        """Take a place for this user. The result is empty if there was one, otherwise the reason."""
        if self.is_trusted(user_id):
            return ""
        with self._lock:
            if self._taken[user_id] >= self._most_of_a_user:
                return f"{self._most_of_a_user} requests of yours are under way; try again in a moment"
            if self._taken.total() >= self._most:
                return f"{self._most} requests are under way; try again in a moment"
            self._taken[user_id] += 1
        return ""

    def turn(self, user_id: int) -> AbstractContextManager[object]:
        """A context in which no other request of this user is answered."""
        if self.is_trusted(user_id):
            return nullcontext()
        with self._lock:
            return self._turns[user_id]

    def give_back(self, user_id: int) -> None:
        """Give back a place that `take` has taken."""
        if self.is_trusted(user_id):
            return
        with self._lock:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]


class ControlSocket(socketserver.ThreadingUnixStreamServer):
    """Serves `answer(request, user_id)` on a socket file, in threads of its own, while its context lasts.

    The user ids in `trusted` are served without limits.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, path: Path, answer: Answer, trusted: frozenset[int] = NOBODY, access: Access = EVERYBODY
    ) -> None:
        self._path, self.answer, self.access = path, answer, access
        self.places = Places(MOST_CALLERS, MOST_OF_A_USER, trusted)
        path.unlink(missing_ok=True)  # a socket that a killed daemon left behind
        super().__init__(str(path), _Handler)
        path.chmod(access.mode)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(STOP_POLL_S,), name="control", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._path.unlink(missing_ok=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the caller if there is a place, otherwise answer that there is none."""
        user_id = _user_id(request)
        if self.access.users is not None and user_id not in self.access.users:
            self._turn_away(request, {"error": f"user id {user_id} may not ask here", "bad_input": True})
            return
        problem = self.places.take(user_id)
        if not problem:
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread could be started, so nothing else gives the place back
                self.places.give_back(_user_id(request))
                raise
            return
        self._turn_away(request, {"error": problem, "busy": True})

    def _turn_away(self, request: Any, reply: dict[str, Any]) -> None:
        request.setblocking(False)  # a new connection has room for one line
        request.sendall(_line(reply))
        self.shutdown_request(request)
        time.sleep(TURNED_AWAY_S)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the caller, and give the place back some time later."""
        user_id, began_s = _user_id(request), time.monotonic()
        try:
            super().process_request_thread(request, client_address)
            if not self.places.is_trusted(user_id):
                # Keep the place for as long again as the answer took: expensive requests slow down their caller only.
                time.sleep(min(CALLER_TIMEOUT_S, max(REST_S, time.monotonic() - began_s)))
        finally:
            self.places.give_back(user_id)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that went away or was too slow. Anything else is a defect and is printed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(socketserver.BaseRequestHandler):
    server: ControlSocket
    request: socket.socket

    def handle(self) -> None:
        try:
            longest = self.server.access.longest_request_bytes
            request, user_id = _parse(_read_line(self.request, longest), longest), _user_id(self.request)
            with self.server.places.turn(user_id):
                reply = {"answer": self.server.answer(request, user_id)}
        except SnsError as problem:
            reply = {"error": str(problem), "bad_input": isinstance(problem, BadInput)}
        self.request.settimeout(CALLER_TIMEOUT_S)
        self.request.sendall(_line(reply))


def _line(value: Mapping[str, Any]) -> bytes:
    if "answer" in value:
        return f'{{"answer": {encoded(value["answer"])}}}\n'.encode()
    return json.dumps(value).encode() + b"\n"


def _read_line(connection: socket.socket, longest: int) -> bytes:
    """What the caller sends, up to a newline or one byte too many, within `CALLER_TIMEOUT_S` in total."""
    deadline_s = time.monotonic() + CALLER_TIMEOUT_S
    line = b""
    while not line.endswith(b"\n") and len(line) <= longest:
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        part = connection.recv(longest + 1 - len(line))
        if not part:
            break
        line += part
    return line


def _parse(line: bytes, longest: int) -> dict[str, Any]:
    if len(line) > longest or not line.endswith(b"\n"):
        raise BadInput(f"a request is one line of at most {longest} bytes")
    request = None
    with suppress(ValueError, RecursionError):
        request = json.loads(line)
    if not isinstance(request, dict):
        raise BadInput("a request is one JSON object")
    return request


def _user_id(connection: socket.socket) -> int:
    """The caller's user id, from the kernel: struct ucred is pid, uid, gid."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def ask(path: Path, request: dict[str, Any], asked: str = "scheduler", *, within_s: float = ANSWER_TIMEOUT_S) -> Any:
    """The answer of the running scheduler, or of whom else is asked. While it is too busy, ask again for `PATIENCE_S`.

    `within_s` limits both: the wait for an answer, and for a place.

    Raises:
        Unreachable: nobody answers there, or it is too busy.
        SnsError: it answered with an error (BadInput when the request was at fault).
    """
    deadline_s = time.monotonic() + min(PATIENCE_S, within_s)
    while "busy" in (reply := _ask_once(path, request, asked, within_s)) and time.monotonic() < deadline_s:
        time.sleep(ASKED_AGAIN_S)
    if "busy" in reply:
        raise Unreachable(f"the {asked} at {path} is busy: {reply['error']}")
    if "error" in reply:
        raise (BadInput if reply.get("bad_input") else SnsError)(reply["error"])
    return reply["answer"]


def _ask_once(path: Path, request: dict[str, Any], asked: str, within_s: float) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(within_s)
            connection.connect(os.fspath(path))
            with suppress(BrokenPipeError):  # a caller who is turned away gets that answer before the request is read
                connection.sendall(_line(request))
            with connection.makefile("rb") as stream:
                line = stream.readline(LONGEST_ANSWER_BYTES)
    except BlockingIOError:
        return {"error": "the kernel's queue of connections to it is full", "busy": True}
    except OSError as problem:
        raise Unreachable(f"no {asked} answers at {path}: {problem.strerror or problem}") from None
    if not line:
        raise Unreachable(f"the {asked} at {path} closed the connection without an answer")
    try:
        reply: dict[str, Any] = json.loads(line)
    except ValueError:
        raise Unreachable(f"the {asked} at {path} closed the connection within its answer") from None
    return reply
