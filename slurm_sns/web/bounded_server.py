"""The HTTP server of the page: uvicorn, where a slow or silent client costs bounded memory for a bounded time.

uvicorn waits forever for a client that sends half a request, and for one that does not take its answer. Here both are
cut off, and so are more connections than are served at once.
"""

import asyncio
import logging
import socket
from ipaddress import ip_address
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from slurm_sns.errors import SnsError


class Limits(NamedTuple):
    """What a connection may take. A browser has up to six, a proxy one for each request that is under way."""

    #: So long it may take from the last answer, or from the start, until a request has arrived.
    request_s: float = 10.0
    #: So long it may take until what was sent is taken: 300 kB at 15 kB/s.
    taken_s: float = 20.0
    #: A connection without a request is closed after so long; the page asks each 5 s.
    idle_s: float = 8.0
    #: So many requests are answered at once; further ones are told to come again.
    most_requests: int = 200
    #: So many connections there are at most; further ones are closed at once.
    most_connections: int = 256
    #: The longest line and headers of a request.
    request_bytes: int = 16_384


class BoundedConnection(H11Protocol):
    """A connection that is cut off when its client is too slow in sending or in taking."""

    def __init__(self, limits: Limits, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._limits = limits
        self._waits_for_request: asyncio.TimerHandle | None = None
        self._waits_for_client: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in H11Protocol
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        # pause_writing is called as soon as the kernel does not take something at once, resume_writing when it has all.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self._limits.most_connections:
            transport.abort()
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        _cancel(self._waits_for_request)
        _cancel(self._waits_for_client)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client does not take what was sent as fast as it is sent."""
        super().pause_writing()
        self._waits_for_client = self.loop.call_later(self._limits.taken_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has taken all."""
        super().resume_writing()
        _cancel(self._waits_for_client)

    def _watch(self) -> None:
        """While nothing is being answered, the time for a request runs; parts of one do not prolong it."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            _cancel(self._waits_for_request)
            self._waits_for_request = None
        elif self._waits_for_request is None:
            self._waits_for_request = self.loop.call_later(self._limits.request_s, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens at this address, an IPv4 or IPv6 one of this machine.

    Raises:
        SnsError: the address cannot be used.
    """
    try:
        family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=128)
    except ValueError:
        raise SnsError(f"{address} is no address to listen at; valid: one of this machine, as 127.0.0.1") from None
    except OSError as problem:
        raise SnsError(f"{address} port {port} cannot be listened at: {problem.strerror or problem}") from None


def server(app: ASGIApp, limits: Limits = Limits()) -> uvicorn.Server:  # noqa: B008 -- a value that cannot be changed
    """The server; `run(sockets=[...])` serves until SIGTERM or SIGINT."""
    # What it would say of requests that are none, each one's sender could fill a disk with.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)

    def connection(**of_uvicorn: Any) -> BoundedConnection:
        return BoundedConnection(limits, **of_uvicorn)

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=connection,  # type: ignore[arg-type]  # what uvicorn calls with the arguments of a protocol class
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address is that of the connection, whatever X-Forwarded-For says
            limit_concurrency=limits.most_requests,
            timeout_keep_alive=limits.idle_s,  # type: ignore[arg-type]  # it goes to loop.call_later
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=limits.request_bytes,
        )
    )
