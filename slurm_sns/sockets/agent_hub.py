"""The scheduler's end of the channel: one connection for each agent, served by a thread of its own.

The scheduler's loop calls the methods of `AgentHub`, which only note what is to be said and give what was heard: none
waits for the network. What is noted is kept for an agent that is away: it gets the present state of things when it
connects.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self

from slurm_sns import __version__
from slurm_sns.errors import SnsError
from slurm_sns.log import LimitedLog, Log
from slurm_sns.sockets.agent_listener import AFTER_FAILURE_S, AgentListener
from slurm_sns.sockets.authenticated import Broken, Connection, Pace
from slurm_sns.sockets.loop_thread import LoopThread
from slurm_sns.wire import messages
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import BadMessage, Beat, Message, UnknownKind, Welcome
from slurm_sns.wire.values import MOST_KEYS, Acknowledged, ActiveRuns, Change, NodeState, ReportKey, RunId, RunReport

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
        # The event loop's own.
        self._listener = AgentListener(
            keys, self._serve, self._pace.handshake_s, log=self._log, log_strangers=self._log_strangers
        )
        self._agents: dict[str, _Agent] = {}
        # What both threads use, under the lock.
        self._lock = threading.Lock()
        self._states: dict[str, NodeState] = {}
        self._reports: OrderedDict[ReportKey, RunReport] = OrderedDict()
        self._acknowledged: OrderedDict[ReportKey, None] = OrderedDict()
        self._active: Mapping[str, ActiveRuns] | None = None  # not shown yet
        self._changes: dict[str, dict[RunId, Change]] = {}

    def __enter__(self) -> Self:
        self.port = self._listener.open(self._host, self.port)
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
        tasks = [loop.create_task(self._lasting(each)) for each in (self._listener.accept, self._watch)]
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
            self._note(agent, messages.decode(data), data)
        except UnknownKind:
            pass  # of a later version
        except BadMessage as problem:
            self._refuse(agent, str(problem))

    def _refuse(self, agent: _Agent, why: str) -> None:
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
            agent.connection.send(messages.encode(message))
            agent.told_s = time.monotonic()
        except BadMessage as problem:
            self._log(f"agent of {agent.node}: {problem}; not sent")
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
            keys = None
            try:
                keys = self._keys()
            except SnsError as problem:
                self._log(str(problem))
            for agent in list(self._agents.values()):
                if was_stopped:  # this process was: what the agents said meanwhile is not read yet
                    agent.heard_s = now_s
                self._look_after(agent, keys, now_s)

    def _look_after(self, agent: _Agent, keys: Keys | None, now_s: float) -> None:
        if keys is not None and agent.connection.session.key not in keys.keys:
            agent.connection.close()
        elif now_s - agent.heard_s > self._pace.silent_s:
            self._log(f"agent of {agent.node}: silent for {now_s - agent.heard_s:.0f} s; disconnected")
            agent.connection.abort()
        elif now_s - agent.told_s > self._pace.beat_s:
            self._say(agent, Beat())
