"""The metrics over HTTP. Whoever connects can cost this process a bounded number of threads, for a bounded time."""

import socket
import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from slurm_sns.errors import SnsError
from slurm_sns.exporter.exposition import SchedulerCollector, registry

#: A connection that sends or takes nothing for so long is closed.
SILENT_S = 5.0
#: So many connections are served at once; Prometheus has one. More are closed at once.
MOST_CONNECTIONS = 16


class _Handler(WSGIRequestHandler):
    timeout = int(SILENT_S)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the standard library
        """Nothing: one line for each scrape would be all that the journal has."""


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Serves each connection in a thread."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(*args)

    def server_bind(self) -> None:
        """Bind without looking up a name of the address, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve it if there is a place, otherwise close it."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve it, then give the place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that went away or was too slow."""


class _Ipv6Server(MetricsServer):
    address_family = socket.AF_INET6


def server(address: str, port: int, collector: SchedulerCollector) -> MetricsServer:
    """A server that listens at this address, an IPv4 or IPv6 one of this machine.

    Raises:
        SnsError: the address cannot be used.
    """
    kind = _Ipv6Server if ":" in address else MetricsServer
    try:
        return make_server(address, port, make_wsgi_app(registry(collector)), kind, _Handler)
    except OSError as problem:
        raise SnsError(f"{address} port {port} cannot be listened at: {problem.strerror or problem}") from None
