"""A node's end of the channel: one connection to the scheduler, kept up by a thread of its own.

While the scheduler is away, the newest state and all reports wait here; both are sent when it is back. A report is sent
again until it is acknowledged, so it may arrive twice: its key says that it is the same.
"""

import asyncio
import math
import random
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from slurm_sns.errors import SnsError
from slurm_sns.log import Log, Outage
from slurm_sns.sockets.authenticated import BUFFER_BYTES, Broken, Connection, Pace, introduce, keep_alive
from slurm_sns.sockets.loop_thread import LoopThread
from slurm_sns.wire import messages
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import BadMessage, Beat, UnknownKind, Welcome
from slurm_sns.wire.values import Acknowledged, ActiveRuns, Change, NodeState, ReportKey, RunReport

#: Reports that wait here; beyond that `report` refuses, and the agent keeps them.
MOST_REPORTS = 4096
#: Reports that are sent before the first of them is acknowledged.
MOST_UNDER_WAY = 64
#: Where the kernel's NFS takes its own from (min_resvport, max_resvport of sunrpc).
PORTS_OF_ROOT = range(665, 1024)

Received = ActiveRuns | Change | Acknowledged


class AgentChannel(LoopThread):
    """Connects the agent of `node` to the scheduler at `controller` and `port` while its context lasts.

    `receive` is called for everything that the scheduler says, by the channel's thread: it must not wait. `keys` gives
    the keys of now. Any thread may call the methods.
    """

    def __init__(
        self,
        controller: str,
        port: int,
        node: str,
        keys: Callable[[], Keys],
        *,
        receive: Callable[[Received], None],
        log: Log,
        pace: Pace | None = None,
        version: int = messages.VERSION,
    ) -> None:
        super().__init__("channel")
        self._controller, self._port, self._node, self._keys = controller, port, node, keys
        self._receive, self._pace, self._version = receive, pace or Pace(), version
        self._outage = Outage(log, "; tried again")
        self._log = log
        self._wake = asyncio.Event()  # something is to be sent
        self._stopping = asyncio.Event()
        self._is_connected = False
        self._heard_s = -math.inf  # when something was heard last
        self._lock = threading.Lock()
        self._state: NodeState | None = None
        self._is_told = False
        self._reports: OrderedDict[ReportKey, RunReport] = OrderedDict()
        self._sent_s: dict[ReportKey, float] = {}  # reports under way on this connection

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler has welcomed this agent and the connection stands."""
        return self._is_connected

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of the scheduler; infinite if nothing ever was."""
        return time.monotonic() - self._heard_s

    def tell(self, state: NodeState) -> None:
        """Send this state, and again every `Pace.beat_s` until there is a newer one."""
        with self._lock:
            self._state, self._is_told = state, False
        self._soon(self._wake.set)

    def report(self, report: RunReport) -> bool:
        """Send this report until it is acknowledged; it replaces one with its key. False: too many wait already."""
        with self._lock:
            if report.key not in self._reports and len(self._reports) >= MOST_REPORTS:
                return False
            self._reports[report.key] = report
            self._sent_s.pop(report.key, None)
        self._soon(self._wake.set)
        return True

    # What runs in the channel's thread.

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._keep_connected())
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())

    def _stop(self) -> None:
        self._stopping.set()

    async def _keep_connected(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        failures = 0
        while not stopping.done():
            began_s = time.monotonic()
            trying = asyncio.create_task(self._connect_once())
            await asyncio.wait({stopping, trying}, return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                trying.cancel()
                await asyncio.wait({trying})
                break
            stood_s = time.monotonic() - began_s
            failures = 0 if stood_s > self._pace.last_retry_s else failures + 1
            await asyncio.wait({stopping}, timeout=self._pause_s(failures))

    def _pause_s(self, failures: int) -> float:
        """The back-off: it doubles, and its upper half is random, so that not all agents come back at one moment."""
        pace = self._pace
        longest_s = min(pace.last_retry_s, pace.first_retry_s * 2.0 ** min(failures, 30))
        return longest_s * random.uniform(0.5, 1)  # noqa: S311 # no secret

    async def _connect_once(self) -> None:
        """One connection from its beginning to its end; whatever ends it is said."""
        where = f"the scheduler at {self._controller}, port {self._port}"
        try:
            await self._talk_once()
        except SnsError as problem:
            self._outage.met(f"{where}: {problem}" if str(problem) else f"{where} closed the connection", time.time())
        except TimeoutError:
            self._outage.met(f"{where} does not answer", time.time())
        except OSError as problem:
            self._outage.met(f"{where}: {problem.strerror or problem}", time.time())
        except asyncio.CancelledError:
            raise
        except Exception as problem:  # noqa: BLE001 - the outermost loop of this thread
            self._outage.met_defect(problem, time.time())
        finally:
            self._is_connected = False

    async def _talk_once(self) -> None:
        keys = self._keys()
        async with asyncio.timeout(self._pace.handshake_s):
            reader, writer = await self._open()
        try:
            keep_alive(writer)
            async with asyncio.timeout(self._pace.handshake_s):
                connection = await introduce(reader, writer, self._node, keys, self._version)
                # The first message shows that the scheduler has accepted us.
                if not isinstance(messages.decode(await connection.receive()), Welcome):
                    raise Broken("its first message is no welcome")
            self._sent_s.clear()
            self._is_told = False
            self._is_connected = True
            self._outage.over(time.time())
            await self._talk(connection)
        finally:
            writer.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first of the scheduler's addresses that answers."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._controller, self._port, type=socket.SOCK_STREAM)
        problem = OSError("it has no address")
        for family, kind, protocol, _, address in found:
            own = socket.socket(family, kind, protocol)
            try:
                own.setblocking(False)
                _take_port_of_root(own)
                async with asyncio.timeout(self._pace.handshake_s / len(found)):
                    await loop.sock_connect(own, address)
                return await asyncio.open_connection(sock=own, limit=BUFFER_BYTES)
            except OSError as met:  # a timeout is one
                own.close()
                problem = met
            except BaseException:  # we stop
                own.close()
                raise
        raise problem

    async def _talk(self, connection: Connection) -> None:
        self._heard_s = time.monotonic()
        self._wake.set()
        working = (self._listen(connection), self._send(connection), self._watch(connection))
        tasks = [asyncio.create_task(each) for each in working]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, connection: Connection) -> None:
        while True:
            data = await connection.receive()
            self._heard_s = time.monotonic()
            try:
                message = messages.decode(data)
            except UnknownKind:
                continue
            except BadMessage as problem:
                self._log(f"from the scheduler: {problem}; ignored")
                continue
            if isinstance(message, Acknowledged):
                self._forget(message)
            if isinstance(message, ActiveRuns | Change | Acknowledged):
                self._receive(message)

    def _forget(self, acknowledged: Acknowledged) -> None:
        with self._lock:
            for key in acknowledged.keys:
                self._reports.pop(key, None)
                self._sent_s.pop(key, None)
        self._wake.set()  # there is room for others

    async def _send(self, connection: Connection) -> None:
        """Send what is due whenever something is; the state, or a beat, every `beat_s` at least."""
        said_s = time.monotonic()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, said_s + self._pace.beat_s - time.monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            now_s = time.monotonic()
            due = self._due(now_s, repeats=now_s - said_s >= self._pace.beat_s)
            for message in due:
                self._put(connection, message)
            if any(isinstance(message, NodeState | Beat) for message in due):
                said_s = now_s
            await connection.drain()

    def _due(self, now_s: float, *, repeats: bool) -> list[NodeState | RunReport | Beat]:
        """What is to be sent now: the state if it is new or is to be repeated, and reports in their order."""
        with self._lock:
            due: list[NodeState | RunReport | Beat] = []
            if self._state is not None and (repeats or not self._is_told):
                due.append(self._state)
                self._is_told = True
            elif repeats:
                due.append(Beat())
            under_way = sum(now_s - sent_s < self._pace.resend_s for sent_s in self._sent_s.values())
            for key, report in self._reports.items():
                if under_way >= MOST_UNDER_WAY:
                    break
                if now_s - self._sent_s.get(key, -self._pace.resend_s) >= self._pace.resend_s:
                    self._sent_s[key] = now_s
                    under_way += 1
                    due.append(report)
            return due

    def _put(self, connection: Connection, message: NodeState | RunReport | Beat) -> None:
        try:
            connection.send(messages.encode(message, self._version))
        except BadMessage as problem:  # a defect of ours: it will not get better
            self._log(f"{problem}; not sent")

    async def _watch(self, connection: Connection) -> None:
        """End a connection on which nothing is heard, or whose key is gone."""
        pace, watched_s = self._pace, time.monotonic()
        while True:
            await asyncio.sleep(pace.check_s)
            now_s = time.monotonic()
            if now_s - watched_s > pace.check_s + pace.beat_s:  # this process was stopped: what came is not read yet
                self._heard_s = now_s
            watched_s = now_s
            if now_s - self._heard_s > pace.silent_s:
                raise Broken(f"silent for {now_s - self._heard_s:.0f} s")
            if connection.session.key not in self._keys().keys:
                raise Broken(f"the key {connection.session.key.name} is no longer in use")


def _take_port_of_root(own: socket.socket) -> None:
    """Connect from a port below 1024 if this process may: so no user's connections on this node can keep ours out."""
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for port in random.sample(PORTS_OF_ROOT, 8):
        with suppress(OSError):  # it is in use, or this process is not root's
            own.bind(("", port))
            return
