"""The channel between scheduler and agents with many agents: how soon a change reaches all, and what that costs.

    python tests/benchmarks/agent_channel.py [--agents 1000] [--changes 20] [--idle 15] [--restarts 3]

Prints JSON. A real hub in this process; in another one so many simulated agents, which speak the real protocol (the
handshake and the frames of wire/) and repeat their state as a real agent does. Both are on one
machine and share its cores: the seconds until the last agent has a change contain the work of all the agents.

`change_s`: from `AgentHub.change` to the moment at which an agent has read and verified the change, by the machine's
one monotonic clock; of all agents and changes together, and of the last agent of each change. `hub_cpu_s`: processor
seconds of the hub's process. `idle`: nothing changes; scaled to a minute. `reconnected_s`: from the moment at which a
hub that was closed for a second listens again until all agents have told it their state. `flood`: another process
opens connections as fast as it can, without an end; how long a new agent takes then until its state is there.
`token_us`, `verified_us`: a grant of a job of one node and of 4,096.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import resource
import secrets
import socket
import statistics
import sys
import time
from multiprocessing.connection import Connection as Pipe
from typing import Any

from slurm_sns.sockets.agent_channel import AgentChannel
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.authenticated import BUFFER_BYTES, Broken, Pace, introduce
from slurm_sns.wire import grants
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.messages import Change, decode, encode
from slurm_sns.wire.values import Grant, JobThere, NodeFacts, NodeState, RunId

RUN = RunId(4711)
JOBS_ON_A_NODE = 16
FLOODED_AGENTS = 5
PATIENCE_S = 20.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--idle", type=float, default=15.0)
    parser.add_argument("--restarts", type=int, default=3)
    given = parser.parse_args()
    text = key_line("bench", secrets.token_bytes(32))
    result = {"agents": given.agents, "cores": multiprocessing.cpu_count()}
    result |= of_grants(Keys.parse(text))
    result |= of_channel(text, given.agents, given.changes, given.idle, given.restarts)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def of_grants(keys: Keys) -> dict[str, Any]:
    """Microseconds for signing and verifying one grant."""
    found: dict[str, Any] = {"token_us": {}, "verified_us": {}}
    for count in (1, 4096):
        grant = Grant(RUN, tuple(f"c{number}" for number in range(count)), ways=4, bandwidth_gbps=60)
        text = grants.token(grant, keys)
        found["token_us"][count] = microseconds(lambda grant=grant: grants.token(grant, keys))
        found["verified_us"][count] = microseconds(
            lambda grant=grant, text=text: grants.verified(text, keys, RUN, "c0", grant.nodes)
        )
    return found


def microseconds(call: Any, repeat: int = 200) -> float:
    """The median of so many calls."""
    taken = []
    for _ in range(repeat):
        began_s = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began_s)
    return round(statistics.median(taken) * 1e6, 1)


def of_channel(text: str, agents: int, changes: int, idle_s: float, restarts: int) -> dict[str, Any]:
    """Everything that needs the agents."""
    keys = Keys.parse(text)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    hub = AgentHub("127.0.0.1", 0, lambda: keys, log)
    hub.__enter__()
    process = context.Process(target=simulated, args=(theirs, text, agents, hub.port), daemon=True)
    began_s = time.monotonic()
    process.start()
    connected = until_connected(hub, agents, began_s)
    result: dict[str, Any] = {"first_connected_s": connected}
    result |= of_changes(hub, ours, agents, changes)
    before_s = cpu_s()
    time.sleep(idle_s)
    result["idle"] = {"seconds": idle_s, "hub_cpu_s_of_a_minute": round((cpu_s() - before_s) * 60 / idle_s, 3)}
    result["flood"] = of_flood(hub, keys, context)
    result["reconnected_s"] = []
    for _ in range(restarts):
        port = hub.port
        hub.close()
        time.sleep(1.0)
        hub = AgentHub("127.0.0.1", port, lambda: keys, log)
        began_s, before_s = time.monotonic(), cpu_s()
        hub.__enter__()
        taken = until_connected(hub, agents, began_s)
        result["reconnected_s"].append({"all": taken, "hub_cpu_s": round(cpu_s() - before_s, 3)})
    ours.send(None)
    process.join(10)
    hub.close()
    result["hub_peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return result


def of_flood(hub: AgentHub, keys: Keys, context: Any) -> dict[str, Any]:
    """A new agent while connections pour in; `PATIENCE_S`: it does not get in."""
    process = context.Process(target=flood, args=(hub.port,), daemon=True)
    process.start()
    time.sleep(3.0)
    began_s, before_s, taken = time.monotonic(), cpu_s(), []
    for number in range(FLOODED_AGENTS):
        with AgentChannel("127.0.0.1", hub.port, f"new{number}", lambda: keys, receive=str, log=log) as channel:
            asked_s = time.monotonic()
            channel.tell(NodeState(time.time(), NodeFacts(f"new{number}")))
            while f"new{number}" not in hub.states() and time.monotonic() - asked_s < PATIENCE_S:
                time.sleep(0.005)
            taken.append(time.monotonic() - asked_s)
    cores = (cpu_s() - before_s) / (time.monotonic() - began_s)
    process.terminate()
    process.join()
    return {"median_s": round(statistics.median(taken), 3), "worst_s": round(max(taken), 3), "cores": round(cores, 2)}


def flood(port: int) -> None:
    """Open connections, say nothing, close the oldest when there are 900."""
    opened: list[socket.socket] = []
    while True:
        each = socket.socket()
        each.settimeout(5)
        with contextlib.suppress(OSError):
            each.connect(("127.0.0.1", port))
        opened.append(each)
        if len(opened) > 900:
            opened.pop(0).close()


def log(line: str) -> None:
    """What the hub says."""
    sys.stderr.write(line + "\n")


def until_connected(hub: AgentHub, agents: int, began_s: float) -> float:
    """Seconds until all agents have told their state."""
    while len(hub.states()) < agents:
        time.sleep(0.01)
    return round(time.monotonic() - began_s, 3)


def of_changes(hub: AgentHub, pipe: Pipe, agents: int, changes: int) -> dict[str, Any]:
    """A change to all agents, again and again."""
    single, last, before_s = [], [], cpu_s()
    for revision in range(1, changes + 1):
        began_s = time.monotonic()
        hub.change({f"n{number}": [Change(RUN, revision, ways=4)] for number in range(agents)})
        arrived = pipe.recv()  # when all have it
        single += [at_s - began_s for at_s in arrived]
        last.append(max(arrived) - began_s)
    used_s = cpu_s() - before_s
    single.sort()
    return {
        "change_s": {
            "median": round(statistics.median(single), 4),
            "p99": round(single[int(len(single) * 0.99)], 4),
            "last_median": round(statistics.median(last), 4),
            "last_worst": round(max(last), 4),
        },
        "hub_cpu_s_of_a_change_to_all": round(used_s / changes, 4),
    }


def cpu_s() -> float:
    """Processor seconds of this process."""
    return time.process_time()


def simulated(pipe: Pipe, text: str, agents: int, port: int) -> None:
    """The other process: all agents in one event loop."""
    asyncio.run(_simulated(pipe, Keys.parse(text), agents, port))


async def _simulated(pipe: Pipe, keys: Keys, agents: int, port: int) -> None:
    arrived: dict[int, list[float]] = {}

    def note(change: Change) -> None:
        moments = arrived.setdefault(change.revision, [])
        moments.append(time.monotonic())
        if len(moments) == agents:
            pipe.send(arrived.pop(change.revision))

    tasks = [asyncio.create_task(_agent(f"n{number}", keys, port, note)) for number in range(agents)]
    await asyncio.to_thread(pipe.recv)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _agent(node: str, keys: Keys, port: int, note: Any) -> None:
    """One agent: connects, tells its state, repeats it, reads; comes back as the real one does."""
    pace, failures, seen, began_s = Pace(), 0, 0, 0.0
    number = int(node[1:])
    address = f"127.1.{number // 250}.{number % 250 + 1}"  # a host of its own, as the hub sees it
    jobs = tuple(JobThere(RunId(number), ways=2, bandwidth_gbps=10) for number in range(1, JOBS_ON_A_NODE + 1))
    state = encode(NodeState(time.time(), NodeFacts(node, ways=20, jobs_with_ways=14), jobs))
    while True:
        try:
            began_s = time.monotonic()
            async with asyncio.timeout(pace.handshake_s):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, limit=BUFFER_BYTES, local_addr=(address, 0)
                )
                connection = await introduce(reader, writer, node, keys)
            connection.send(state)
            repeating = asyncio.create_task(_repeat(connection, state, pace))
            try:
                while True:
                    message = decode(await connection.receive())
                    if isinstance(message, Change) and message.revision > seen:
                        seen = message.revision
                        note(message)
            finally:
                repeating.cancel()
                writer.close()
        except (OSError, TimeoutError, Broken):
            stood_s = time.monotonic() - began_s
            failures = 0 if stood_s > pace.last_retry_s else min(failures + 1, 30)
        longest_s = min(pace.last_retry_s, pace.first_retry_s * 2.0**failures)
        await asyncio.sleep(longest_s * random.uniform(0.5, 1))


async def _repeat(connection: Any, state: bytes, pace: Pace) -> None:
    await asyncio.sleep(random.uniform(0, pace.beat_s))
    while True:
        connection.send(state)
        await asyncio.sleep(pace.beat_s)


if __name__ == "__main__":
    main()
