"""The channel between scheduler and agents, over real sockets: what arrives, and what no stranger can do."""

import asyncio
import hmac
import json
import math
import os
import socket
import struct
import time
from contextlib import closing

import pytest
from channel_world import NEW, OLD, PACE, World, report_of, state_of, wait_for

from slurm_sns.errors import SnsError
from slurm_sns.sockets import agent_channel, agent_hub, authenticated
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.authenticated import Pace
from slurm_sns.wire.handshake import AgentSide, Session
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.messages import LONGEST_BYTES, VERSION, Beat, Welcome, decode, encode
from slurm_sns.wire.values import Acknowledged, ActiveRuns, ArrayTask, Change, RunId

RUN, OTHER = RunId(7), RunId(8, 1)


def active(*runs: RunId) -> ActiveRuns:
    return ActiveRuns(frozenset(runs))


class RawAgent:
    """An agent's end by hand: the bytes of the protocol, so that a test can send others."""

    def __init__(self, port: int, node: str = "c1", keys: str = OLD, version: int = VERSION) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)  # the kernel reads little on its behalf
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        side = AgentSide(node, Keys.parse(keys), os.urandom(32), version)
        self.put(side.hello())
        proof, self.session = side.answer(self.get())
        self.put(proof)
        self.sent = self.got = 0

    def put(self, message: bytes) -> None:
        self.socket.sendall(struct.pack(">I", len(message)) + message)

    def get(self) -> bytes:
        (length,) = struct.unpack(">I", self.exactly(4))
        return self.exactly(length)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def frame(self, message: bytes, sequence: int) -> bytes:
        head = struct.pack(">IQ", len(message), sequence)
        return head + hmac.digest(self.session.sends, head + message, "sha256") + message

    def say(self, message: bytes) -> None:
        self.socket.sendall(self.frame(message, self.sent))
        self.sent += 1

    def hear(self) -> dict:
        head = self.exactly(12)
        length, sequence = struct.unpack(">IQ", head)
        mac, message = self.exactly(32), self.exactly(length)
        assert mac == hmac.digest(self.session.receives, head + message, "sha256")
        assert sequence == self.got
        self.got += 1
        return json.loads(message)

    def hear_kind(self, kind: str) -> dict:
        while (said := self.hear())["kind"] != kind:
            pass
        return said

    def is_disconnected(self) -> bool:
        try:
            while True:
                self.hear()
        except (EOFError, ConnectionError):
            return True


@pytest.fixture
def raw(world: World):
    """Connects an agent by hand to the hub of the test."""
    made = []

    def connect(**more) -> RawAgent:
        made.append(RawAgent(world.port, **more))
        return made[-1]

    yield connect
    for each in made:
        each.socket.close()


# What is said arrives.


def test_a_state_arrives_and_is_gone_with_its_agent(world: World) -> None:
    hub = world.start_hub()
    channel = world.start("c1")
    channel.tell(state_of("c1"))
    wait_for(lambda: hub.states() == {"c1": state_of("c1")})
    assert channel.is_connected
    channel.tell(state_of("c1", trouble="disk full"))
    wait_for(lambda: hub.states()["c1"].trouble == "disk full")
    channel.close()
    wait_for(lambda: hub.states() == {})


def test_a_report_is_there_until_it_is_acknowledged_and_then_forgotten_by_both(world: World) -> None:
    hub, channel = world.start_hub(), world.start("c1")
    for job_id in (1, 2, 3):
        assert channel.report(report_of("c1", job_id))
    wait_for(lambda: hub.reports() == tuple(report_of("c1", job_id) for job_id in (1, 2, 3)))
    hub.acknowledge([(1, 0, "c1"), (3, 0, "c1")])
    wait_for(lambda: len(channel._reports) == 1)
    assert hub.reports() == (report_of("c1", 2),)
    assert world.received["c1"] == [Acknowledged(((1, 0, "c1"), (3, 0, "c1")))]


def test_an_agent_learns_the_active_runs_of_its_node_and_each_change_of_them(world: World) -> None:
    hub = world.start_hub()
    channels = [world.start(node) for node in ("c1", "c2")]
    wait_for(lambda: all(channel.is_connected for channel in channels))
    task = ActiveRuns(frozenset({RUN}), frozenset({ArrayTask(RUN.job_id, 3, 5)}))
    shown = ({"c1": active(RUN)}, {"c1": active(RUN)}, {"c1": task}, {"c1": active(RUN, OTHER), "c2": active()}, {})
    for number, each in enumerate(shown, 1):
        hub.show_active(each)
        hub.change({"c1": [Change(RunId(99), number)]})  # comes after it
        wait_for(lambda number=number: Change(RunId(99), number) in world.received["c1"])
    told = {node: [each for each in world.received[node] if isinstance(each, ActiveRuns)] for node in ("c1", "c2")}
    assert told["c1"] == [active(RUN), task, active(RUN, OTHER), active()]
    assert told["c2"] == [ActiveRuns()]


def test_an_agent_that_comes_later_gets_what_is_active_and_the_last_change_of_each_run(world: World) -> None:
    hub = world.start_hub()
    hub.show_active({"c1": active(RUN, OTHER)})
    hub.change({"c1": [Change(RUN, 1, ways=2), Change(RUN, 3, ways=4), Change(RUN, 2, ways=8), Change(OTHER, 1)]})
    world.start("c1")
    wait_for(lambda: len(world.received["c1"]) == 3)
    assert world.received["c1"] == [active(RUN, OTHER), Change(RUN, 3, ways=4), Change(OTHER, 1)]


def test_an_agent_hears_nothing_of_active_runs_before_the_scheduler_has_seen_them(world: World) -> None:
    hub = world.start_hub()
    channel = world.start("c1")
    wait_for(lambda: channel.is_connected)
    hub.change({"c1": [Change(RUN, 1)]})
    wait_for(lambda: world.received["c1"])
    assert world.received["c1"] == [Change(RUN, 1)]


def test_a_change_is_sent_once_and_dropped_with_its_run(world: World) -> None:
    hub, channel = world.start_hub(), world.start("c1")
    wait_for(lambda: channel.is_connected)
    for _ in range(3):
        hub.change({"c1": [Change(RUN, 5, ways=4)]})
    hub.change({"c1": [Change(RUN, 4, ways=2), Change(OTHER, 1)]})
    wait_for(lambda: len(world.received["c1"]) == 2)
    assert world.received["c1"] == [Change(RUN, 5, ways=4), Change(OTHER, 1)]
    hub.show_active({"c1": active(OTHER)})
    hub.show_active({"c1": active(OTHER, RUN)})
    world.start("c1")  # a second connection replaces the first
    wait_for(lambda: world.received["c1"][-2:] == [active(OTHER, RUN), Change(OTHER, 1)])


def test_a_change_to_many_nodes_reaches_each_of_them(world: World) -> None:
    hub = world.start_hub()
    nodes = [f"c{number}" for number in range(20)]
    channels = [world.start(node) for node in nodes]
    wait_for(lambda: all(channel.is_connected for channel in channels))
    hub.change({node: [Change(RUN, 1, ways=4)] for node in nodes})
    wait_for(lambda: all(world.received[node] == [Change(RUN, 1, ways=4)] for node in nodes))


def test_any_word_of_the_scheduler_ends_its_silence_also_a_beat(world: World) -> None:
    def heard_s() -> float:
        return time.monotonic() - channel.silent_s

    away = AgentHub("127.0.0.1", 0, lambda: world.hub_keys, world.hub_lines.append, pace=world.pace)
    with away:
        world.port = away.port
    channel = world.start("c1")
    assert channel.silent_s == math.inf
    hub = world.start_hub()
    wait_for(lambda: channel.is_connected)
    assert channel.silent_s < 60
    welcomed_s = heard_s()
    wait_for(lambda: heard_s() > welcomed_s + world.pace.beat_s)
    assert world.received["c1"] == []
    hub.close()
    wait_for(lambda: not channel.is_connected)
    assert 0 < channel.silent_s < 60, "it goes on from the last word"


# The scheduler away and back, reports neither lost nor doubled.


def test_what_was_said_while_the_scheduler_was_away_arrives_once_it_is_back(world: World) -> None:
    first = world.start_hub()
    channel = world.start("c1")
    wait_for(lambda: channel.is_connected)
    first.close()
    wait_for(lambda: not channel.is_connected)
    channel.tell(state_of("c1"))
    for job_id in range(1, 201):  # more than are under way at a time
        assert channel.report(report_of("c1", job_id))
    second = world.start_hub()
    seen = []
    while len(seen) < 200:
        wait_for(second.reports)
        keys = [report.key for report in second.reports()]
        seen += [key for key in keys if key not in seen]
        second.acknowledge(keys)
    wait_for(lambda: len(channel._reports) == 0)
    assert seen == [(job_id, 0, "c1") for job_id in range(1, 201)]  # in their order, each once
    assert second.reports() == ()
    assert second.states() == {"c1": state_of("c1")}
    assert [line for line in world.lines if "over after" in line]


def test_a_report_that_comes_again_after_it_was_stored_is_acknowledged_and_not_given_again(world: World, raw) -> None:
    hub = world.start_hub()
    agent = raw()
    agent.say(encode(report_of("c1", 7)))
    wait_for(hub.reports)
    hub.acknowledge([(7, 0, "c1")])
    agent.socket.close()  # before it has read that
    again = raw()
    again.say(encode(report_of("c1", 7)))
    assert again.hear_kind("acknowledged")["keys"] == [[7, 0, "c1"]]
    assert hub.reports() == ()


def test_reports_beyond_the_limit_stay_with_the_agent_and_come_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_hub, "MOST_REPORTS", 2)
    world.pace = Pace(30, 0.05, 30, 0.02, resend_s=0.1, first_retry_s=0.02, last_retry_s=0.1)
    hub, channel = world.start_hub(), world.start("c1")
    for job_id in range(1, 6):
        channel.report(report_of("c1", job_id))
    seen = []
    while len(seen) < 5:
        wait_for(hub.reports)
        keys = [report.key for report in hub.reports()]
        assert len(keys) <= 2
        seen += keys
        hub.acknowledge(keys)
    assert sorted(seen) == [(job_id, 0, "c1") for job_id in range(1, 6)]
    wait_for(lambda: len(channel._reports) == 0)


def test_an_agent_s_channel_takes_no_more_reports_than_it_may_keep(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_channel, "MOST_REPORTS", 2)
    world.port = 1  # nobody is there
    channel = world.start("c1")
    assert [channel.report(report_of("c1", job_id)) for job_id in (1, 2, 3, 2)] == [True, True, False, True]
    assert len(channel._reports) == 2


def test_an_agent_whose_scheduler_is_away_says_so_once(world: World) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        world.port = unused.getsockname()[1]
        channel = world.start("c1")
        wait_for(lambda: world.lines)
        hub_is_away = list(world.lines)
    world.start_hub()
    wait_for(lambda: channel.is_connected)
    assert len(hub_is_away) == 1
    assert "the scheduler at 127.0.0.1, port" in hub_is_away[0]


def test_the_second_connection_of_a_node_replaces_the_first(world: World, raw) -> None:
    hub = world.start_hub()
    first = raw()
    first.say(encode(state_of("c1")))
    wait_for(hub.states)
    second = raw()
    second.say(encode(state_of("c1", trouble="anew")))
    assert first.is_disconnected()
    wait_for(lambda: hub.states() == {"c1": state_of("c1", trouble="anew")})
    assert world.hub_lines == ["agent of c1: a second connection replaces the first"]


# Neighbouring versions.


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_an_agent_of_a_neighbouring_version_is_served(world: World, raw, version: int) -> None:
    hub = world.start_hub()
    agent = raw(version=version)
    state = {"v": version, "kind": "state", "at_s": 5, "facts": {"node": "c1", "ways": 11}}
    if version > VERSION:
        agent.say(json.dumps({"v": version, "kind": "weather"}).encode())
        state |= {"later": [1]}
    agent.say(json.dumps(state).encode())
    wait_for(lambda: hub.states() == {"c1": state_of("c1")})
    hub.show_active({"c1": active(RUN)})
    assert agent.hear_kind("active")["runs"] == [[7, 0]]
    assert not any("ignored" in line for line in world.hub_lines)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_scheduler_of_a_neighbouring_version_is_understood(world: World, version: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = await authenticated.meet(reader, writer, world.hub_keys, version)
        connection.send(encode(Welcome("other"), version))
        connection.send(json.dumps({"v": version, "kind": "weather"}).encode())
        connection.send(json.dumps({"v": version, "kind": "change", "run": [7, 0], "revision": 1, "x": 1}).encode())
        said.append(decode(await connection.receive()))

    async def run() -> None:
        async with world.scheduler_that(serve):
            channel = await asyncio.to_thread(world.start, "c1")
            channel.tell(state_of("c1"))
            await asyncio.to_thread(wait_for, lambda: said)
            assert not any("ignored" in line for line in world.lines)

    said: list = []
    asyncio.run(run())
    assert world.received["c1"][0] == Change(RUN, 1)
    assert said[0] == state_of("c1")


@pytest.mark.parametrize("version", [VERSION - 2, VERSION + 2])
def test_a_version_further_away_is_refused_in_one_line_on_both_sides(world: World, version: int) -> None:
    world.start_hub()
    world.start("c1", version=version)
    wait_for(lambda: world.lines and world.hub_lines)
    assert f"version {version} of the channel; valid: 0 to 2" in world.hub_lines[0]
    assert f"it refuses: 'version {version} of the channel; valid: 0 to 2'" in world.lines[0]


# Bad messages and bad frames.


def test_a_bad_message_costs_that_message_only(world: World, raw) -> None:
    hub = world.start_hub()
    agent = raw()
    for bad in (b"", b"[]", b"\xff", b'{"v":1,"kind":"state"}', encode(state_of("c2")), encode(report_of("c2", 7))):
        agent.say(bad)
    agent.say(encode(state_of("c1")))
    wait_for(lambda: hub.states() == {"c1": state_of("c1")})
    assert sum("ignored" in line for line in world.hub_lines) == 6
    assert hub.reports() == ()
    assert "agent of c1: a report of another node, c2; ignored" in world.hub_lines


FORGED = encode(state_of("c1", trouble="forged"))


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("forged", "a frame that does not verify"),
        ("of the other direction", "a frame that does not verify"),
        ("changed", "a frame that does not verify"),
        ("repeated", "frame 0 where 1 is due"),
        ("left out", "frame 2 where 1 is due"),
        ("cut", "a message that is cut"),
        ("oversized", f"a frame of {LONGEST_BYTES + 1} bytes; valid: at most {LONGEST_BYTES}"),
    ],
)
def test_a_frame_that_is_not_the_one_due_ends_the_connection_with_one_line(
    world: World, raw, what: str, problem: str
) -> None:
    hub = world.start_hub()
    agent = raw()
    agent.say(encode(state_of("c1")))
    wait_for(hub.states)
    first, second = agent.frame(encode(state_of("c1")), 0), agent.frame(FORGED, 1)
    foreign = struct.pack(">IQ", len(FORGED), 1)
    sent = {
        "forged": second[:12] + bytes(32) + FORGED,
        "of the other direction": foreign + hmac.digest(agent.session.receives, foreign + FORGED, "sha256") + FORGED,
        "changed": second[:-1] + b" ",
        "repeated": first,
        "left out": agent.frame(FORGED, 2),
        "cut": second[:-1],
        "oversized": struct.pack(">IQ", LONGEST_BYTES + 1, 1) + bytes(32),
    }[what]
    agent.socket.sendall(sent)
    agent.socket.shutdown(socket.SHUT_WR)
    assert agent.is_disconnected()
    wait_for(lambda: world.hub_lines)
    assert world.hub_lines == [f"agent of c1: {problem}; disconnected"]
    assert hub.states() == {}


@pytest.mark.parametrize("what", ["forged", "repeated", "no welcome"])
def test_an_agent_believes_no_forged_or_repeated_frame_of_a_scheduler(world: World, what: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = await authenticated.meet(reader, writer, world.hub_keys)
        if what != "no welcome":
            connection.send(encode(Welcome()))
        if what == "repeated":
            connection._sends._next = 0
        if what == "forged":
            forged = Session("c1", connection.session.key, sends=bytes(32), receives=bytes(32))
            connection = authenticated.Connection(reader, writer, forged)
            connection._sends._next = 1
        connection.send(encode(Change(RUN, 1)))
        await reader.read()  # until the agent hangs up
        hung_up.append(True)

    async def run() -> None:
        async with world.scheduler_that(serve):
            await asyncio.to_thread(world.start, "c1")
            await asyncio.to_thread(wait_for, lambda: hung_up)

    hung_up: list = []
    asyncio.run(run())
    assert world.received["c1"] == []
    why = {"forged": "does not verify", "repeated": "frame 0 where 1 is due", "no welcome": "is no welcome"}[what]
    assert any(why in line for line in world.lines)


# Silence, and peers that do not read.


@pytest.mark.long
def test_a_silent_agent_counts_as_gone_and_one_that_only_beats_does_not(world: World, raw) -> None:
    world.pace = Pace(30, beat_s=0.1, silent_s=1.0, check_s=0.02, resend_s=60, first_retry_s=0.02, last_retry_s=0.1)
    hub = world.start_hub()
    silent, beating = raw(node="c1"), raw(node="c2")
    for node, agent in (("c1", silent), ("c2", beating)):
        agent.say(encode(state_of(node)))
    wait_for(lambda: len(hub.states()) == 2)

    def beat() -> bool:
        beating.say(encode(Beat()))
        return set(hub.states()) == {"c2"}

    wait_for(beat)
    assert any(line.startswith("agent of c1: silent for") for line in world.hub_lines)


def test_an_agent_leaves_a_scheduler_that_is_silent(world: World) -> None:
    world.pace = Pace(30, beat_s=0.1, silent_s=0.5, check_s=0.02, resend_s=60, first_retry_s=0.02, last_retry_s=0.1)
    world.start_hub(pace=PACE.__class__(30, beat_s=1000, silent_s=1000, check_s=1000))
    world.start("c1")
    wait_for(lambda: any("silent for" in line for line in world.lines))


def test_both_sides_say_something_when_there_is_nothing_to_say(world: World, raw) -> None:
    world.start_hub()
    agent = raw()
    assert [agent.hear()["kind"] for _ in range(3)] == ["welcome", "beat", "beat"]


def test_an_agent_that_does_not_read_is_disconnected_before_it_takes_much_memory(
    world: World, raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticated, "MOST_UNREAD_BYTES", 100_000)
    hub = world.start_hub()
    agent = raw()
    agent.say(encode(state_of("c1")))
    wait_for(hub.states)
    runs = active(*(RunId(number, 2**31) for number in range(1, 4000)))
    shown = iter(range(1000))

    def is_gone() -> bool:
        hub.show_active({"c1": runs if next(shown) % 2 else active()})
        return not hub.states()

    wait_for(is_gone)
    assert "agent of c1: it has left 100000 bytes unread" in world.hub_lines


# Rotation of the keys.


def test_a_rotation_under_load_loses_nothing_and_ends_with_the_new_key(world: World) -> None:
    hub = world.start_hub()
    nodes = [f"c{number}" for number in range(5)]
    channels = {node: world.start(node) for node in nodes}
    steps = [
        ("hub_keys", OLD + NEW),
        ("agent_keys", OLD + NEW),
        ("hub_keys", NEW + OLD),
        ("agent_keys", NEW + OLD),
        ("hub_keys", NEW),
        ("agent_keys", NEW),
    ]
    expected, seen = set(), []
    for number, (side, text) in enumerate(steps, 1):
        setattr(world, side, Keys.parse(text))
        for node in nodes:
            for job_id in range(100 * number, 100 * number + 10):
                assert channels[node].report(report_of(node, job_id))
                expected.add((job_id, 0, node))
        wait_for(lambda: all(channel.is_connected for channel in channels.values()))
        hub.change({node: [Change(RUN, number)] for node in nodes})

        def is_all_there() -> bool:
            keys = [report.key for report in hub.reports()]
            seen.extend(keys)
            hub.acknowledge(keys)
            return set(seen) == expected

        wait_for(is_all_there)
    wait_for(lambda: all(world.received[node][-1:] and _last_change(world.received[node]) == 6 for node in nodes))
    wait_for(lambda: all(len(channel._reports) == 0 for channel in channels.values()))
    assert len(seen) == len(set(seen)) == len(expected)
    wait_for(lambda: {agent.connection.session.key.name for agent in list(hub._agents.values())} == {"new"})


def _last_change(received: list) -> int:
    return max((each.revision for each in received if isinstance(each, Change)), default=0)


def test_a_connection_whose_key_is_removed_is_made_again_with_another(world: World) -> None:
    world.hub_keys = world.agent_keys = Keys.parse(OLD + NEW)
    hub, channel = world.start_hub(), world.start("c1")
    channel.tell(state_of("c1"))
    wait_for(hub.states)
    world.hub_keys = Keys.parse(NEW)
    wait_for(lambda: [each.connection.session.key.name for each in list(hub._agents.values())] == ["new"])
    wait_for(hub.states)


def test_an_agent_whose_keys_are_all_removed_is_cut_off_and_says_why(world: World) -> None:
    hub, channel = world.start_hub(), world.start("c1")
    channel.tell(state_of("c1"))
    wait_for(hub.states)
    world.hub_keys = Keys.parse(NEW)
    wait_for(lambda: any("none of the agent's keys is one of ours" in line for line in world.lines))
    assert hub.states() == {}


def test_keys_that_cannot_be_read_do_not_end_a_connection_at_the_scheduler(world: World) -> None:
    def failing() -> Keys:
        if world.hub_keys is None:
            raise SnsError("the key file is away")
        return world.hub_keys

    hub = AgentHub("127.0.0.1", 0, failing, world.hub_lines.append, pace=PACE)
    world.ends.enter_context(hub)
    world.port = hub.port
    world.start("c1").tell(state_of("c1"))
    wait_for(hub.states)
    world.hub_keys = None
    wait_for(lambda: "the key file is away" in world.hub_lines)
    assert hub.states() == {"c1": state_of("c1")}


# Defects.


def test_a_defect_in_who_receives_costs_the_connection_and_not_the_thread(world: World) -> None:
    hub, received = world.start_hub(), []

    def receive(message: object) -> None:
        received.append(message)
        if len(received) == 1:
            raise ZeroDivisionError("once")

    hub.show_active({"c1": active(RUN)})
    world.start("c1", receive=receive)
    wait_for(lambda: len(received) == 2)
    assert any("defect: ZeroDivisionError: once" in line for line in world.lines)


def test_a_value_that_cannot_be_sent_costs_that_value_only(world: World) -> None:
    hub, channel = world.start_hub(), world.start("c1")
    channel.report(report_of("c1", 1))
    channel.tell(state_of("c1", trouble="x"))
    wait_for(hub.states)
    hub.change({"c1": [Change(RUN, 1, cpu_share=float("nan"))], "c2": [Change(RUN, 1)]})
    hub.change({"c1": [Change(OTHER, 1)]})
    wait_for(lambda: world.received["c1"] == [Change(OTHER, 1)])
    assert any("a number that is not finite; not sent" in line for line in world.hub_lines)
