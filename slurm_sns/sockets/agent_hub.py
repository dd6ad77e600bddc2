"""The scheduler's end of the channel: one connection for each agent, served by a thread of its own.

The scheduler's loop calls the methods of `AgentHub`, which only note what is to be said and give what was heard: none
waits for the network. What is noted is kept for an agent that is away: it gets the present state of things when it
connects.

Whoever is not authenticated yet is a stranger. A stranger can use little memory and time. At most `MOST_OF_A_HOST` of
one host are served at once, others from there are closed, which costs next to nothing; a port below 1024, which root
alone has, is not counted so: no user of a node can lock out its agent. At most `MOST_STRANGERS` are served in all: one
more costs the host with the most of them its oldest one.
"""

import asyncio
import ipaddress
import resource
import socket
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self

from slurm_sns import __version__
from slurm_sns.errors import SnsError
from slurm_sns.log import Log
from slurm_sns.sockets.authenticated import BUFFER_BYTES, Broken, Connection, Pace, keep_alive, meet
from slurm_sns.sockets.limited_log import LimitedLog
from slurm_sns.sockets.loop_thread import LoopThread
from slurm_sns.wire import messages
from slurm_sns.wire.fields import MOST_KEYS
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import BadMessage, Beat, Message, UnknownKind, Welcome
from slurm_sns.wire.values import Acknowledged, ActiveRuns, Change, NodeState, ReportKey, RunId, RunReport

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
#: Reports that wait for the scheduler. Agents keep the others and send them again.
MOST_REPORTS = 10_000
#: The keys of so many stored reports are remembered: one that comes again is acknowledged and not given again.
MOST_ACKNOWLEDGED = 100_000
#: Lines of the log about single agents in a minute.
LINES_A_MINUTE = 20


class _Agent:
    """An agent that is connected."""

    def __init__(self, connection: Connection, now_s: float) -> None:
        self.connection = connection
        self.node = connection.session.node
        self.heard_s = self.told_s = now_s
        self.last_state: bytes | None = None  # as it came


class AgentHub(LoopThread):
    """Listens on `port` of `host` (None: all addresses, IPv4 and IPv6) while its context lasts; the port `Agents`.

    `keys` gives the keys of now; a connection whose key it no longer gives is closed. Port 0: any free one.

    Raises (entering the context):
        SnsError: the port cannot be used.
    """

    def __init__(
        self, host: str | None, port: int, keys: Callable[[], Keys], log: Log, *, pace: Pace | None = None
    ) -> None:
        super().__init__("agents")
        self._host, self._keys, self._pace = host, keys, pace or Pace()
        self.port = port
        self._log = LimitedLog(log, LINES_A_MINUTE, time.monotonic)
        self._log_strangers = LimitedLog(log, LINES_A_MINUTE, time.monotonic)
        #: How many messages were ignored because their kind is unknown, and how many were not valid.
        self.unknown_kinds = self.bad_messages = 0
        # The event loop's own.
        self._agents: dict[str, _Agent] = {}
        self._strangers: dict[asyncio.StreamWriter, str] = {}  # their hosts, in the order of arrival
        self._strangers_of: Counter[str] = Counter()  # how many a host has
        self._tasks: set[asyncio.Task[None]] = set()  # one for each connection
        # What both threads use, under the lock.
        self._lock = threading.Lock()
        self._states: dict[str, NodeState] = {}
        self._reports: OrderedDict[ReportKey, RunReport] = OrderedDict()
        self._acknowledged: OrderedDict[ReportKey, None] = OrderedDict()
        self._active: Mapping[str, ActiveRuns] | None = None  # not shown yet
        self._changes: dict[str, dict[RunId, Change]] = {}

    def __enter__(self) -> Self:
        _allow_files()
        self._listener = _listener(self._host, self.port)
        self.port = self._listener.getsockname()[1]
        return super().__enter__()

    # What the scheduler calls.

    def states(self) -> Mapping[str, NodeState]:
        """What each connected agent said last of its node, by node."""
        with self._lock:
            return dict(self._states)

    def reports(self) -> tuple[RunReport, ...]:
        """The reports that were received and not acknowledged, oldest first, at most `MOST_REPORTS`."""
        with self._lock:
            return tuple(self._reports.values())

    def acknowledge(self, keys: Iterable[ReportKey]) -> None:
        """Let the agents forget these reports; `reports` no longer gives them."""
        by_node: dict[str, list[ReportKey]] = {}
        with self._lock:
            for key in keys:
                self._reports.pop(key, None)
                self._acknowledged[key] = None
                by_node.setdefault(key[2], []).append(key)
            while len(self._acknowledged) > MOST_ACKNOWLEDGED:
                self._acknowledged.popitem(last=False)
        if by_node:
            self._soon(self._send_acknowledged, by_node)

    def show_active(self, runs_by_node: Mapping[str, ActiveRuns]) -> None:
        """Tell each agent the active runs of its node, if they changed; a node that is not named has none."""
        with self._lock:
            before, self._active = self._active, dict(runs_by_node)
            if before is None:
                changed = None
            else:
                nothing = ActiveRuns()
                names = sorted(before.keys() | runs_by_node.keys())
                changed = [node for node in names if before.get(node, nothing) != runs_by_node.get(node, nothing)]
            self._drop_changes(runs_by_node)
        if changed is None or changed:
            self._soon(self._send_active, changed)

    def change(self, changes: Mapping[str, Sequence[Change]]) -> None:
        """Send these changes, each to the agent of its node: now, and again when it connects anew.

        One that was sent already, or is older than one that was, is not sent. They are dropped when `show_active` does
        not have their run.
        """
        new: dict[str, list[Change]] = {}
        with self._lock:
            for node, wanted in changes.items():
                known = self._changes.setdefault(node, {})
                for each in wanted:
                    before = known.get(each.run)
                    if before is None or each.revision > before.revision:
                        known[each.run] = each
                        new.setdefault(node, []).append(each)
        if new:
            self._soon(self._send_changes, new)

    def _drop_changes(self, active: Mapping[str, ActiveRuns]) -> None:
        for node, known in list(self._changes.items()):
            runs = active.get(node, ActiveRuns()).runs
            for run in [run for run in known if run not in runs]:
                del known[run]
            if not known:
                del self._changes[node]

    # What runs in the hub's thread.

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = [loop.create_task(self._lasting(each)) for each in (self._accept, self._watch)]
        try:
            loop.run_forever()
        finally:
            self._listener.close()
            tasks += asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _stop(self) -> None:
        asyncio.get_running_loop().stop()

    async def _lasting(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do work that lasts as long as the hub, whatever defect it meets."""
        while True:
            try:
                await work()
            except Exception as problem:  # noqa: BLE001 - an outermost loop of this thread
                self._log(f"agents: defect: {type(problem).__name__}: {problem}")
                await asyncio.sleep(AFTER_FAILURE_S)

    async def _accept(self) -> None:
        """Accept connections; each is served by a task of its own."""
        closed = 0
        while True:
            try:
                accepted, peer = await asyncio.get_running_loop().sock_accept(self._listener)
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
        task.add_done_callback(self._tasks.discard)

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
            async with asyncio.timeout(self._pace.handshake_s):
                connection = await meet(reader, writer, self._keys())
            self._no_stranger(writer)
            await self._serve(connection)
        except SnsError as problem:
            if str(problem):
                self._log_strangers(f"a connection from {host}: {problem}")
        except TimeoutError:
            self._log_strangers(f"a connection from {host}: not authenticated after {self._pace.handshake_s:g} s")
        except asyncio.CancelledError:
            pass  # the hub stops
        except Exception as problem:  # noqa: BLE001 - a defect met by one connection costs that connection only
            self._log(f"a connection from {host}: defect: {type(problem).__name__}: {problem}")
        finally:
            self._no_stranger(writer)
            writer.close()

    async def _serve(self, connection: Connection) -> None:
        agent = _Agent(connection, time.monotonic())
        self._admit(agent)
        try:
            while True:
                message = await connection.receive()
                agent.heard_s = time.monotonic()
                self._take(agent, message)
        except Broken as problem:
            if str(problem):
                self._log(f"agent of {agent.node}: {problem}; disconnected")
        finally:
            self._forget(agent)

    def _admit(self, agent: _Agent) -> None:
        """Welcome an agent and tell it the present state of things. An older connection of its node is closed."""
        if (before := self._agents.pop(agent.node, None)) is not None:
            self._log(f"agent of {agent.node}: a second connection replaces the first")
            before.connection.abort()
        self._agents[agent.node] = agent
        with self._lock:
            self._states.pop(agent.node, None)
            changes = list(self._changes.get(agent.node, {}).values())
        self._say(agent, Welcome(__version__))
        self._send_active([agent.node])
        for change in changes:
            self._say(agent, change)

    def _forget(self, agent: _Agent) -> None:
        if self._agents.get(agent.node) is agent:
            del self._agents[agent.node]
            with self._lock:
                self._states.pop(agent.node, None)

    def _take(self, agent: _Agent, data: bytes) -> None:
        if data == agent.last_state:
            return  # most messages are a state repeated; reading it again would be most of this thread's work
        try:
            message = messages.decode(data)
        except UnknownKind:
            self.unknown_kinds += 1
        except BadMessage as problem:
            self._refuse(agent, str(problem))
        else:
            self._note(agent, message, data)

    def _refuse(self, agent: _Agent, why: str) -> None:
        self.bad_messages += 1
        self._log(f"agent of {agent.node}: {why}; ignored")

    def _note(self, agent: _Agent, message: Message, data: bytes) -> None:
        if isinstance(message, NodeState):
            if message.facts.node != agent.node:
                self._refuse(agent, f"the state of another node, {message.facts.node}")
            elif self._agents.get(agent.node) is agent:
                agent.last_state = data
                with self._lock:
                    self._states[agent.node] = message
        elif isinstance(message, RunReport):
            if message.node != agent.node:
                self._refuse(agent, f"a report of another node, {message.node}")
            else:
                self._note_report(agent, message)

    def _note_report(self, agent: _Agent, report: RunReport) -> None:
        with self._lock:
            is_stored = report.key in self._acknowledged
            if not is_stored and (report.key in self._reports or len(self._reports) < MOST_REPORTS):
                self._reports[report.key] = report
        if is_stored:
            self._say(agent, Acknowledged((report.key,)))

    # Sending.

    def _send_acknowledged(self, by_node: Mapping[str, Sequence[ReportKey]]) -> None:
        for node, keys in by_node.items():
            if (agent := self._agents.get(node)) is not None:
                for first in range(0, len(keys), MOST_KEYS):
                    self._say(agent, Acknowledged(tuple(keys[first : first + MOST_KEYS])))

    def _send_active(self, nodes: Iterable[str] | None) -> None:
        """Tell these agents, or all, what runs on their nodes; nothing before the scheduler has said it once."""
        with self._lock:
            active = self._active
        if active is None:
            return
        for node in list(self._agents) if nodes is None else nodes:
            if (agent := self._agents.get(node)) is not None:
                self._say(agent, active.get(node, ActiveRuns()))

    def _send_changes(self, changes: Mapping[str, Sequence[Change]]) -> None:
        for node, wanted in changes.items():
            if (agent := self._agents.get(node)) is not None:
                for each in wanted:
                    self._say(agent, each)

    def _say(self, agent: _Agent, message: Message) -> None:
        try:
            self._send(agent, messages.encode(message))
        except BadMessage as problem:
            self._log(f"agent of {agent.node}: {problem}; not sent")

    def _send(self, agent: _Agent, data: bytes) -> None:
        try:
            agent.connection.send(data)
            agent.told_s = time.monotonic()
        except Broken as problem:
            if str(problem):
                self._log(f"agent of {agent.node}: {problem}")
            agent.connection.abort()

    async def _watch(self) -> None:
        """Close connections that are silent or whose key is gone; say a word where nothing was said for a while."""
        watched_s = time.monotonic()
        while True:
            await asyncio.sleep(self._pace.check_s)
            now_s = time.monotonic()
            was_stopped = now_s - watched_s > self._pace.check_s + self._pace.beat_s
            watched_s = now_s
            self._log.tick()
            self._log_strangers.tick()
            keys = self._usable_keys()
            for agent in list(self._agents.values()):
                if was_stopped:  # this process was: what the agents said meanwhile is not read yet
                    agent.heard_s = now_s
                self._look_after(agent, keys, now_s)

    def _usable_keys(self) -> Keys | None:
        try:
            return self._keys()
        except SnsError as problem:
            self._log(str(problem))
            return None

    def _look_after(self, agent: _Agent, keys: Keys | None, now_s: float) -> None:
        if keys is not None and agent.connection.session.key not in keys.keys:
            agent.connection.close()
        elif now_s - agent.heard_s > self._pace.silent_s:
            self._log(f"agent of {agent.node}: silent for {now_s - agent.heard_s:.0f} s; disconnected")
            agent.connection.abort()
        elif now_s - agent.told_s > self._pace.beat_s:
            self._say(agent, Beat())


def _listener(host: str | None, port: int) -> socket.socket:
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
