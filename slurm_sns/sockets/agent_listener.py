"""Where agents connect: a listening socket, and its strangers until they have proved who they are.

Whoever is not authenticated yet is a stranger. A stranger can use little memory and time. At most `MOST_OF_A_HOST` of
one host are served at once, others from there are closed, which costs next to nothing; a port below 1024, which root
alone has, is not counted so: no user of a node can lock out its agent. At most `MOST_STRANGERS` are served in all: one
more costs the host with the most of them its oldest one.
"""

import asyncio
import ipaddress
import resource
import socket
from collections import Counter
from collections.abc import Awaitable, Callable

from slurm_sns.errors import SnsError
from slurm_sns.log import Log
from slurm_sns.sockets.authenticated import BUFFER_BYTES, Connection, keep_alive, meet
from slurm_sns.wire.keys import Keys

#: Each takes at most twice `KERNEL_BUFFER_BYTES` in the kernel and as much in this process: 64 MiB of it for all.
MOST_STRANGERS = 1024
#: Of one host. It has one agent.
MOST_OF_A_HOST = 256
#: The ports below it are root's (ip_unprivileged_port_start of Linux).
FIRST_PORT_OF_USERS = 1024
#: What the kernel keeps of a connection in each direction (it doubles the number for its own needs).
KERNEL_BUFFER_BYTES = 32 * 1024
#: Connections that the kernel keeps for us until they are accepted: as many agents may come at one moment.
WAITING_CONNECTIONS = 4096
#: So many connections may be closed at once before others are served again.
CLOSED_AT_ONCE = 64
#: The pause after a failure that may last, such as no files left for a connection.
AFTER_FAILURE_S = 1.0
#: Files that this process may open: an agent takes one (Slurm has at most 65,536 nodes).
MOST_FILES = 65_536 + 4096


class AgentListener:
    """Accepts connections, and gives those of agents to `serve`, which returns or raises `Broken` when one has ended.

    `keys` gives the keys of now, one of which an agent must have. Why others were closed is told to `log_strangers`.
    """

    def __init__(
        self,
        keys: Callable[[], Keys],
        serve: Callable[[Connection], Awaitable[None]],
        handshake_s: float,
        *,
        log: Log,
        log_strangers: Log,
    ) -> None:
        self._keys, self._serve, self._handshake_s = keys, serve, handshake_s
        self._log, self._log_strangers = log, log_strangers
        self._strangers: dict[asyncio.StreamWriter, str] = {}  # their hosts, in the order of arrival
        self._strangers_of: Counter[str] = Counter()  # how many a host has
        self._tasks: set[asyncio.Task[None]] = set()  # one for each connection

    def open(self, host: str | None, port: int) -> int:
        """Listen at `port` of `host` (None: all addresses, IPv4 and IPv6); 0: any free one. The result is the port.

        Raises:
            SnsError: the port cannot be used.
        """
        _allow_files()
        self._socket = _listening(host, port)
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    async def accept(self) -> None:
        """Accept connections; each is served by a task of its own."""
        closed = 0
        while True:
            try:
                accepted, peer = await asyncio.get_running_loop().sock_accept(self._socket)
            except OSError as problem:
                self._log(f"no agent can connect: {problem.strerror}; tried again")
                await asyncio.sleep(AFTER_FAILURE_S)
                continue
            host = _host(str(peer[0]))
            if peer[1] >= FIRST_PORT_OF_USERS and self._strangers_of[host] >= MOST_OF_A_HOST:
                accepted.close()
                closed += 1
                self._log_strangers(f"{MOST_OF_A_HOST} connections of {host} are not authenticated; others are closed")
            else:
                await self._take_in(accepted, host)
                closed = CLOSED_AT_ONCE
            if closed >= CLOSED_AT_ONCE:
                closed = 0
                await asyncio.sleep(0)

    async def _take_in(self, accepted: socket.socket, host: str) -> None:
        """Let `_met` serve this connection, as a stranger's."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=BUFFER_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted)
        except OSError:  # it has ended already
            accepted.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        self._strangers[writer] = host
        self._strangers_of[host] += 1
        if len(self._strangers) > MOST_STRANGERS:
            self._turn_away_one()
        task = loop.create_task(self._met(reader, writer, host))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._disconnect(ended, writer))

    def _disconnect(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Disconnect whom this task served, even if it was cancelled before its first step."""
        self._tasks.discard(task)
        self._no_stranger(writer)
        if task.cancelled():  # the hub stops: nothing waits for a peer that does not read
            writer.transport.abort()
        else:
            writer.close()

    def _turn_away_one(self) -> None:
        """Disconnect the oldest stranger of the host that has the most."""
        host = max(self._strangers_of, key=self._strangers_of.__getitem__)
        oldest = next(writer for writer, each in self._strangers.items() if each == host)
        self._no_stranger(oldest)
        oldest.transport.abort()
        self._log_strangers(f"{MOST_STRANGERS} connections are not authenticated; the oldest of {host} is closed")

    def _no_stranger(self, writer: asyncio.StreamWriter) -> None:
        """Note that this connection is authenticated, or at its end."""
        if (host := self._strangers.pop(writer, None)) is not None:
            self._strangers_of[host] -= 1
            if not self._strangers_of[host]:
                del self._strangers_of[host]

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        """One connection from its beginning to its end."""
        try:
            keep_alive(writer)
            async with asyncio.timeout(self._handshake_s):
                connection = await meet(reader, writer, self._keys())
            self._no_stranger(writer)
            await self._serve(connection)
        except SnsError as problem:
            if str(problem):
                self._log_strangers(f"a connection from {host}: {problem}")
        except TimeoutError:
            self._log_strangers(f"a connection from {host}: not authenticated after {self._handshake_s:g} s")
        except Exception as problem:  # noqa: BLE001 - a defect met by one connection costs that connection only
            self._log(f"a connection from {host}: defect: {type(problem).__name__}: {problem}")


def _listening(host: str | None, port: int) -> socket.socket:
    where = f"{host or 'all addresses'}, port {port}"
    try:
        if host is None and socket.has_dualstack_ipv6():
            family, address, both = socket.AF_INET6, "::", True
        else:
            family, *_, found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]  # noqa: S104 # asked
            address, both = str(found[0]), False
        listener = socket.create_server(
            (address, port), family=family, dualstack_ipv6=both, backlog=WAITING_CONNECTIONS
        )
    except (OSError, UnicodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise SnsError(f"agents cannot be heard on {where}: {why}; valid: a free port (agents.port)") from None
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # accepted connections have them, too
        listener.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER_BYTES)
    listener.setblocking(False)
    return listener


def _host(peer: str) -> str:
    """Where a connection comes from. Of IPv6 the network of 64 bits: one host may have all of its addresses."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))


def _allow_files() -> None:
    """Let this process open a file for each agent: the soft limit of a daemon is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
