"""The page's server with real sockets: clients that are slow, silent or many cost little, for a bounded time."""

import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from asking import Scheduler
from made_up import overview

from slurm_sns.config.settings import WebSection
from slurm_sns.errors import SnsError
from slurm_sns.web.bounded_server import Limits, listening, server

#: Short times: a test waits for each.
LIMITS = Limits(request_s=0.4, taken_s=0.4, idle_s=0.3, most_connections=12, request_bytes=4096)
#: Much longer than each, for a busy machine.
PATIENCE_S = 15.0
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    whole = overview(jobs=1000)
    for row in whole["jobs"]:
        row |= {"user": "bob", "reason": "n" * 20_000}
    settings = WebSection(user_header="X-Remote-User", trusted_addresses=("127.0.0.1",), admins=("bob",))
    app = Scheduler(whole).application(settings)
    level = logging.getLogger("uvicorn").level
    with listening("127.0.0.1", 0) as listener:
        serving = server(app, LIMITS)
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        serving.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    logging.getLogger("uvicorn").setLevel(level)


def connected(port: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel takes little for a client that reads none
    client.settimeout(PATIENCE_S)
    client.connect(("127.0.0.1", port))
    return client


def is_cut_off(client: socket.socket) -> bool:
    """Whether the other side closes the connection, within PATIENCE_S."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def first_line(port: int, path: bytes = b"/api/overview") -> bytes:
    with connected(port) as client:
        client.sendall(GET % path)
        return client.recv(1 << 16).partition(b"\r\n")[0]


def test_a_client_that_takes_no_answer_is_cut_off_and_others_are_served(port: int) -> None:
    big = b"GET /api/jobs?limit=1000 HTTP/1.1\r\nHost: localhost\r\nX-Remote-User: bob\r\n\r\n"
    with connected(port) as client:
        client.sendall(big)
        time.sleep(LIMITS.taken_s / 2)
        assert first_line(port) == b"HTTP/1.1 200 OK"
        time.sleep(4 * LIMITS.taken_s)
        got = 0
        try:
            while part := client.recv(1 << 16):
                got += len(part)
        except ConnectionResetError:
            pass
        # Twenty megabytes were asked for; the kernel had some of them.
        assert got < 15_000_000


def test_a_client_that_reads_slowly_but_reads_gets_all(port: int) -> None:
    with connected(port) as client:
        client.sendall(GET.replace(b"1.1\r\n", b"1.1\r\nConnection: close\r\n") % b"/static/page.js")
        got = b""
        while part := client.recv(4096):
            got += part
            time.sleep(0.005)
    assert got.endswith(b"look();\n")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", GET[:-2] % b"/"])
def test_a_client_that_sends_no_whole_request_is_cut_off(port: int, sent: bytes) -> None:
    with connected(port) as client:
        client.sendall(sent)
        assert is_cut_off(client)


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(port: int) -> None:
    with connected(port) as client:
        began_s = time.monotonic()
        try:
            for byte in (GET % b"/")[:-1] * 3:
                client.send(bytes([byte]))
                time.sleep(0.05)
        except (BrokenPipeError, ConnectionResetError):
            return
        pytest.fail(f"still connected after {time.monotonic() - began_s:.1f} s")


def test_a_client_that_is_silent_after_an_answer_is_cut_off(port: int) -> None:
    with connected(port) as client:
        client.sendall(GET % b"/static/page.css")
        assert is_cut_off(client)


def test_a_body_is_not_read(port: int) -> None:
    with connected(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 1000)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
        assert is_cut_off(client)


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01 nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n"]
)
def test_what_is_no_request_is_told_so_and_not_logged(port: int, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with connected(port) as client:
        client.sendall(sent)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 400")
        assert is_cut_off(client)
    assert not caplog.records


def test_more_connections_than_are_served_at_once_are_closed(port: int) -> None:
    clients = [connected(port) for _ in range(LIMITS.most_connections + 8)]
    assert all(map(is_cut_off, clients))
    for each in clients:
        each.close()
    assert first_line(port) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(("address", "said"), [("nowhere", "is no address"), ("192.0.2.1", "cannot be listened at")])
def test_an_address_that_cannot_be_used_is_told(address: str, said: str) -> None:
    with pytest.raises(SnsError, match=said):
        listening(address, 0)
