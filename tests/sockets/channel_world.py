"""A hub and agents' channels on 127.0.0.1 that wait as short as a test may."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

from slurm_sns.errors import SnsError
from slurm_sns.sockets.agent_channel import AgentChannel
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.authenticated import Pace
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.values import NodeFacts, NodeState, RunId, RunReport

OLD, NEW = key_line("old", b"o" * 32), key_line("new", b"n" * 32)

#: Short where a test waits for it, long where a busy machine must not reach it.
PACE = Pace(handshake_s=30, beat_s=0.1, silent_s=30, check_s=0.02, resend_s=60, first_retry_s=0.02, last_retry_s=0.1)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until it holds; the test fails if that takes a minute."""
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, "waited for a minute"
        time.sleep(0.005)


def state_of(node: str, **more: object) -> NodeState:
    return NodeState(5.0, NodeFacts(node, ways=11), **more)


def report_of(node: str, job_id: int) -> RunReport:
    return RunReport(RunId(job_id), node, ended_s=9.0, ran_s=4.5)


class World:
    """A scheduler's hub, agents' channels, the keys of both sides, and what all of them logged and received."""

    def __init__(self) -> None:
        self.hub_keys, self.agent_keys = Keys.parse(OLD), Keys.parse(OLD)
        self.hub_lines: list[str] = []
        self.lines: list[str] = []
        self.received: dict[str, list] = {}
        self.port = 0
        self.pace = PACE
        self.ends = ExitStack()

    def start_hub(self, host: str | None = "127.0.0.1", **more) -> AgentHub:
        hub = AgentHub(host, self.port, lambda: self.hub_keys, self.hub_lines.append, **{"pace": self.pace} | more)
        self.ends.enter_context(hub)
        self.port = hub.port
        return hub

    def start(self, node: str, controller: str = "127.0.0.1", **more) -> AgentChannel:
        received = self.received.setdefault(node, [])
        given = {"receive": received.append, "log": self.lines.append, "pace": self.pace} | more
        channel = AgentChannel(controller, self.port, node, lambda: self.agent_keys, **given)
        return self.ends.enter_context(channel)

    @asynccontextmanager
    async def scheduler_that(
        self, serves: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """In the hub's place, one that serves each connection so. At the end the agents stop first: none comes back."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await serves(reader, writer)
            except SnsError:
                pass  # the agent has stopped
            finally:
                writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield
            await asyncio.to_thread(self.ends.close)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
