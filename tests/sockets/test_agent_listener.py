"""The listener: where agents reach it, and what no stranger can do, over real sockets."""

import asyncio
import json
import os
import socket
import struct

import pytest
from channel_world import OLD, PACE, World, state_of, wait_for

from slurm_sns.errors import SnsError
from slurm_sns.sockets import agent_hub, agent_listener
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.agent_listener import AgentListener
from slurm_sns.sockets.authenticated import Pace
from slurm_sns.wire.handshake import AgentSide
from slurm_sns.wire.keys import Keys


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", None])
def test_ipv4_ipv6_and_both_are_served(world: World, host: str | None) -> None:
    if host != "127.0.0.1" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        hub = world.start_hub(host)
    except SnsError as problem:
        assert host == "::1"
        pytest.skip(str(problem))
    for address in {"127.0.0.1", "::1"} & {host or "127.0.0.1", host or "::1"}:
        try:
            socket.create_connection((address, hub.port), timeout=60).close()
        except OSError:
            continue  # the machine has no such address
        node = f"c{len(address)}"
        channel = world.start(node, address)
        channel.tell(state_of(node))
        wait_for(lambda node=node: node in hub.states())
    assert hub.states()


def test_a_port_that_is_taken_is_said_in_one_line(world: World) -> None:
    hub = world.start_hub()
    with pytest.raises(SnsError, match=rf"agents cannot be heard on 127.0.0.1, port {hub.port}: .*in use"):
        AgentHub("127.0.0.1", hub.port, lambda: world.hub_keys, print).__enter__()


def test_a_scheduler_without_the_key_is_not_believed(world: World) -> None:
    world.hub_keys = Keys.parse(OLD.replace("6f", "70"))
    hub = world.start_hub()
    channel = world.start("c1")
    channel.tell(state_of("c1"))
    wait_for(lambda: world.lines)
    assert "the proof with the key old is wrong; valid: the same key file on both sides" in world.lines[0]
    assert not channel.is_connected
    assert hub.states() == {}


def test_an_agent_without_the_key_is_not_believed(world: World) -> None:
    hub = world.start_hub()
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as stranger:
        side = AgentSide("c1", Keys.parse(OLD), os.urandom(32))
        for message in (side.hello(), json.dumps({"v": 1, "kind": "proof", "proof": "00" * 32}).encode()):
            stranger.sendall(struct.pack(">I", len(message)) + message)
        answer = stranger.makefile("rb").read()
    assert b"the proof with the key old is wrong" in answer
    wait_for(lambda: world.hub_lines)
    assert world.hub_lines[0].startswith("a connection from 127.0.0.1: c1: the proof with the key old is wrong; valid:")
    assert hub.states() == {}


@pytest.mark.parametrize(
    "data",
    [b"", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\2{}", b"\0\0\4\1" + b"a" * 1025, b"\0\0", os.urandom(64), b"\0\0\0\0"],
    ids=["nothing", "http", "json", "too long", "cut", "random", "empty"],  # the same in every process of pytest-xdist
)
def test_what_a_stranger_sends_costs_its_connection_only(world: World, data: bytes) -> None:
    hub = world.start_hub()
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as stranger:
        stranger.sendall(data)
        stranger.shutdown(socket.SHUT_WR)
        assert len(stranger.makefile("rb").read()) < 400
    channel = world.start("c1")
    channel.tell(state_of("c1"))
    wait_for(hub.states)
    assert len(world.hub_lines) <= 1
    assert all(line.isprintable() for line in world.hub_lines)


@pytest.mark.long
def test_a_silent_stranger_is_disconnected_and_an_agent_that_waits_is_not(world: World) -> None:
    world.pace = Pace(0.5, 0.1, 30, 0.02, 60, 0.02, 0.1)
    hub = world.start_hub()
    world.start("c1", pace=PACE).tell(state_of("c1"))
    wait_for(hub.states)
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as silent:
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as slow:
        slow.sendall(b"\0\0\0\xff{")
        assert slow.recv(1) == b""
    wait_for(lambda: len(world.hub_lines) == 2)
    assert set(world.hub_lines) == {"a connection from 127.0.0.1: not authenticated after 0.5 s"}
    assert hub.states()


def test_strangers_that_take_all_places_lose_the_oldest_and_an_agent_gets_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_listener, "MOST_STRANGERS", 5)
    hub = world.start_hub()
    strangers = [socket.create_connection(("127.0.0.1", hub.port), timeout=60) for _ in range(9)]
    try:
        channel = world.start("c1")
        channel.tell(state_of("c1"))
        wait_for(hub.states)
        for oldest in strangers[:4]:
            with pytest.raises(ConnectionError):
                raise ConnectionResetError if oldest.recv(1) == b"" else AssertionError
        strangers[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            strangers[-1].recv(1)  # the newest one is still there
    finally:
        for each in strangers:
            each.close()


def test_a_host_has_so_many_strangers_and_its_agent_gets_in_by_a_port_of_root(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_listener, "MOST_OF_A_HOST", 3)
    hub = world.start_hub()
    strangers = [socket.create_connection(("127.0.0.1", hub.port), timeout=60) for _ in range(6)]
    try:
        for turned_away in strangers[3:]:
            assert turned_away.recv(1) == b""
        for served in strangers[:3]:
            served.setblocking(False)
            with pytest.raises(BlockingIOError):
                served.recv(1)
        wait_for(lambda: len(world.hub_lines) == 3)
        assert set(world.hub_lines) == {"3 connections of 127.0.0.1 are not authenticated; others are closed"}
        if os.geteuid() == 0:
            world.start("c1").tell(state_of("c1"))
            wait_for(hub.states)
    finally:
        for each in strangers:
            each.close()
    world.start("c2").tell(state_of("c2"))
    wait_for(lambda: "c2" in hub.states())


def test_the_host_with_the_most_strangers_pays_and_not_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_listener, "MOST_STRANGERS", 3)
    lines: list[str] = []
    listener = AgentListener(
        lambda: Keys.parse(OLD), lambda _: asyncio.sleep(0), 30, log=lines.append, log_strangers=lines.append
    )

    class Writer:
        aborted = False

        @property
        def transport(self) -> "Writer":
            return self

        def abort(self) -> None:
            self.aborted = True

    writers = [Writer() for _ in range(4)]
    for writer, host in zip(writers, ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"], strict=True):
        listener._strangers[writer] = host  # type: ignore[index]
        listener._strangers_of[host] += 1
    listener._turn_away_one()
    assert [each.aborted for each in writers] == [False, True, False, False]
    assert lines == ["3 connections are not authenticated; the oldest of 10.0.0.2 is closed"]


def test_a_flood_of_strangers_does_not_flood_the_log(world: World) -> None:
    hub = world.start_hub()
    for _ in range(3 * agent_hub.LINES_A_MINUTE):
        with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as stranger:
            stranger.sendall(b"\xff\xff\xff\xff")
            stranger.makefile("rb").read()
    assert len(world.hub_lines) <= agent_hub.LINES_A_MINUTE


def test_a_connection_that_comes_as_the_hub_stops_is_closed(world: World) -> None:
    """Its task may be cancelled before its first step."""
    accepted = []

    async def come_and_stop() -> None:
        listener = AgentListener(lambda: world.hub_keys, never, 30, log=print, log_strangers=print)
        port = listener.open("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
            taken, _ = await asyncio.get_running_loop().sock_accept(listener._socket)
            await listener._take_in(taken, "127.0.0.1")
            accepted.append(taken)
            (task,) = listener._tasks
            task.cancel()
            await asyncio.wait({task})
            await asyncio.sleep(0)
            assert stranger.recv(1) == b""
        listener.close()
        assert not listener._tasks
        assert not listener._strangers

    async def never(connection: object) -> None:
        raise AssertionError(connection)

    asyncio.run(come_and_stop())
    assert accepted[0].fileno() == -1
