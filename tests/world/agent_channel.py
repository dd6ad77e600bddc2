"""The channel between scheduler and agents without a network: the real ends, `AgentHub` and `AgentChannel`, whose
threads and sockets are replaced by events of the world.

A frame takes its time, keeps its order in its direction, and is lost with its connection. Handshakes always succeed.
The scheduler's end lives in the process of a scheduler: it ends with it, and stands still while that is frozen.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

from slurm_sns.sockets.agent_channel import AgentChannel
from slurm_sns.sockets.agent_hub import AgentHub, _Agent
from slurm_sns.sockets.authenticated import Pace
from slurm_sns.wire import messages
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import Welcome
from slurm_sns.wire.values import Acknowledged, ActiveRuns, Change, NodeState, ReportKey, RunId, RunReport
from world.kernel import World
from world.ports import Caller

KEYS = Keys.parse(f"first {'ab' * 32}\n")
#: Signed with a key that nobody has.
OTHER_KEYS = Keys.parse(f"first {'cd' * 32}\n")
PACE = Pace(beat_s=8.0, silent_s=24.0, resend_s=6.0)
#: A frame takes so long; in a slow network so much more at most. An agent tries again after so long.
FRAME_S, SLOW_S, RETRY_S = 0.002, 6.0, (0.3, 1.5)
#: While the scheduler is frozen, what is sent to it is looked at again after so long.
FROZEN_S = 0.5


class Network:
    """What connects the nodes with the controller; `hub` is the one that listens now."""

    def __init__(self, world: World, random: Random) -> None:
        self.world, self.random = world, random
        self.hub: Hub | None = None
        self.away: set[str] = set()
        self.slow: set[str] = set()

    def takes_s(self, node: str) -> float:
        return FRAME_S + (self.random.random() * SLOW_S if node in self.slow else 0.0)


class Hub(AgentHub):
    """The scheduler's end, in one process of a scheduler."""

    def __init__(self, network: Network, daemon: Caller) -> None:
        super().__init__(None, 0, lambda: KEYS, daemon.log, pace=PACE)
        self._log = self._log_strangers = daemon.log  # type: ignore[assignment] # without the limit per minute of this machine
        self.network, self._daemon, self._process = network, daemon, daemon.process
        self.connections: list[Connection] = []

    def _soon(self, action: Callable[..., None], *arguments: object) -> None:
        action(*arguments)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        process = self._process
        return process is not None and not process.is_over and not process.is_doomed

    @property
    def is_frozen(self) -> bool:
        process = self._process
        return process is not None and process.frozen_until_s > self.network.world.true_s

    def admit(self, connection: "Connection") -> None:
        agent = _Agent(connection, self.network.world.true_s)  # type: ignore[arg-type] # ours
        connection.agent = agent
        self.connections.append(connection)
        self._admit(agent)

    def take(self, connection: "Connection", data: bytes) -> None:
        message = messages.decode(data)
        if isinstance(message, RunReport):
            self.network.world.history.add("received", message.run.job_id, connection.node, run=message.run)
        self._take(connection.agent, data)

    def forget(self, connection: "Connection") -> None:
        self.connections.remove(connection)
        self._forget(connection.agent)

    def shut(self) -> None:
        """Its process has ended."""
        for connection in list(self.connections):
            connection.cut()
        if self.network.hub is self:
            self.network.hub = None


class Connection:
    """One connection; the hub uses `session`, `send`, `close` and `abort`."""

    def __init__(self, channel: "Channel", hub: Hub) -> None:
        self.node = channel.node
        self.session = SimpleNamespace(node=channel.node, key=KEYS.signing)
        self.channel, self.hub, self._network = channel, hub, hub.network
        self.agent: Any = None
        self.is_open = True
        self._there_s = self._back_s = 0.0

    def send(self, data: bytes) -> None:
        """The hub sends a frame."""
        world = self._network.world
        self._there_s = max(self._there_s, world.true_s + self._network.takes_s(self.node))
        world.at(self._there_s, lambda: self.is_open and self.channel.hear(data))

    def send_back(self, data: bytes) -> None:
        """The agent sends a frame."""
        world = self._network.world
        self._back_s = max(self._back_s, world.true_s + self._network.takes_s(self.node))
        world.at(self._back_s, lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        if not self.is_open:
            return
        if self.hub.is_frozen:
            self._network.world.at(self._network.world.true_s + FROZEN_S, lambda: self._arrive(data))
        elif self.hub.is_alive:
            self.hub.take(self, data)

    def cut(self) -> None:
        """The connection ends; what is on its way is lost."""
        if self.is_open:
            self.is_open = False
            self.hub.forget(self)
            self.channel.lost()

    close = abort = cut


class Channel(AgentChannel):
    """The agent's end, in one process of an agent. `hears` is called for each message of the scheduler's."""

    def __init__(self, network: Network, node: str, hears: Callable[[Any], None], log: Callable[[str], None]) -> None:
        super().__init__("controller", 0, node, lambda: KEYS, receive=hears, log=log, pace=PACE)
        self.node, self._network = node, network
        self._connection: Connection | None = None
        self._is_closed = False
        self._said_s, self._heard_at_s = 0.0, -inf
        self._try_again()

    @property
    def silent_s(self) -> float:
        return self._network.world.true_s - self._heard_at_s

    def end(self) -> None:
        """Its process has ended."""
        self._is_closed = True
        self.drop()

    def drop(self) -> None:
        """The connection is cut, if there is one."""
        if self._connection is not None:
            self._connection.cut()

    def lost(self) -> None:
        """The connection has ended."""
        self._connection, self._is_connected = None, False
        self._network.world.history.add("channel", by=self.node, up=False)
        self._try_again()

    def _try_again(self) -> None:
        if not self._is_closed:
            least_s, most_s = RETRY_S
            pause_s = least_s + self._network.random.random() * (most_s - least_s)
            self._network.world.at(self._network.world.true_s + pause_s, self._connect)

    def _connect(self) -> None:
        hub = self._network.hub
        if self._is_closed or self._connection is not None:
            return
        if hub is None or not hub.is_alive or hub.is_frozen or self.node in self._network.away:
            self._try_again()
            return
        self._connection = Connection(self, hub)
        hub.admit(self._connection)

    def hear(self, data: bytes) -> None:
        """A frame has arrived."""
        message = messages.decode(data)
        world = self._network.world
        self._heard_at_s = world.true_s
        if isinstance(message, Welcome):
            self._sent_s.clear()
            self._is_told, self._is_connected, self._said_s = False, True, world.true_s
            world.history.add("channel", by=self.node, up=True)
            self._pump()
            self._beat(self._connection)
            return
        if isinstance(message, Acknowledged):
            world.history.add("acknowledged", by=self.node, keys=message.keys)
            self._forget(message)
        elif isinstance(message, ActiveRuns):
            world.history.add("active", by=self.node, runs=tuple(sorted(message.runs)))
        elif isinstance(message, Change):
            data_of = {"run": message.run, "revision": message.revision, "ways": message.ways}
            world.history.add("changed", message.run.job_id, self.node, **data_of)
        if isinstance(message, ActiveRuns | Change | Acknowledged):
            self._receive(message)
        self._pump()

    def _soon(self, *_: object) -> None:
        self._pump()

    def _pump(self, *, repeats: bool = False) -> None:
        """Send what is due, as `AgentChannel._send` does."""
        if self._connection is None or not self._is_connected:
            return
        for message in self._due(self._network.world.true_s, repeats=repeats):
            self._connection.send_back(messages.encode(message))

    def _beat(self, connection: Connection | None) -> None:
        if connection is not None and connection is self._connection:
            world = self._network.world
            world.at(world.true_s + PACE.beat_s, lambda: (self._pump(repeats=True), self._beat(connection)))


class AgentsOf:
    """The port `Agents` of a scheduler; each call may be its last one."""

    def __init__(self, caller: Caller, hub: Hub) -> None:
        self._caller, self._hub = caller, hub

    def states(self) -> Mapping[str, NodeState]:
        return self._hub.states()

    def reports(self) -> tuple[RunReport, ...]:
        found: tuple[RunReport, ...] = self._caller.call("reports", self._hub.reports)
        return found

    def acknowledge(self, keys: Iterable[ReportKey]) -> None:
        wanted = list(keys)
        if wanted:
            self._caller.call("acknowledge", lambda: self._acknowledge(wanted))

    def _acknowledge(self, keys: Sequence[ReportKey]) -> None:
        self._caller.controller.world.history.add("acknowledging", by=self._caller.name, keys=tuple(keys))
        self._hub.acknowledge(keys)

    def show_active(self, runs_by_node: Mapping[str, frozenset[RunId]]) -> None:
        self._caller.call("show-active", lambda: self._hub.show_active(runs_by_node))

    def change(self, changes: Mapping[str, Sequence[Change]]) -> None:
        self._caller.call("change", lambda: self._change(changes))

    def _change(self, changes: Mapping[str, Sequence[Change]]) -> None:
        noted = [
            (node, each.run, each.revision, each.ways, each.bandwidth_gbps)
            for node, of in changes.items()
            for each in of
        ]
        self._caller.controller.world.history.add("changing", by=self._caller.name, changes=tuple(noted))
        self._hub.change(changes)
