"""What fails around the agents, and what owners try with grants; and how all of it is repaired."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from slurm_sns.errors import Refused
from slurm_sns.wire import grants
from slurm_sns.wire.grants import with_grant
from slurm_sns.wire.values import Change, Grant, RunId
from world.agent_channel import OTHER_KEYS
from world.agents import Agents, Node
from world.history import Event
from world.people import People
from world.schedule import Step


class AgentFaults:
    """Puts the steps of a schedule that are about agents into effect."""

    def __init__(self, agents: Agents, people: People) -> None:
        self._agents, self._people, self._is_repaired = agents, people, False
        self.actions: dict[str, Callable[..., None]] = {
            "agent-kill": lambda _, node, state: self._node(node).kill(state),
            "agent-restart": lambda _, node: self._node(node).restart(),
            "agent-freeze": lambda _, node, seconds: self._node(node).freeze(seconds),
            "agent-reboot": self.reboot,
            "agent-disk": self.disk,
            "agent-refuse": self.refuse,
            "agent-mount": self.mount,
            "agent-cut": lambda _, node: self._cut(node),
            "agent-away": self.away,
            "agent-slow": self.slow,
            "agent-lost": self.lost,
            "agent-forge": self.forge,
            "agent-change": self.change,
        }

    def do(self, step: Step, event: Event | None) -> None:
        """Do what the step says; if it follows an event, to its job."""
        if not self._is_repaired:
            data = {name: value for name, value in step.data.items() if name not in ("trap", "after")}
            self.actions[step.what](0 if event is None else event.job, **data)

    def _node(self, name: str) -> Node:
        return self._agents.nodes[name]

    def _say(self, node: str, **data: Any) -> None:
        self._agents.world.history.add("agent-fault", by=node, **data)

    def reboot(self, _: int, node: str, seconds: float) -> None:
        """The node boots; Slurm sees that it is down, and then up again."""
        there, world = self._node(node), self._agents.world
        if not there.is_wanted:
            return
        self._people.node(node, "down")
        there.reboot(seconds)
        world.at(world.true_s + seconds + 0.2, lambda: self._people.node(node, "up"))

    def disk(self, _: int, node: str, *, full: bool) -> None:
        """The disk of the agent's state and spool is full."""
        self._say(node, disk="full" if full else "up")
        self._node(node).disk.is_full = full

    def refuse(self, _: int, node: str, times: int, number: int) -> None:
        """The kernel refuses changes of the tree."""
        self._say(node, refuses=times, number=number)
        files = self._node(node).files
        files.refuses, files.refuses_with = times, number

    def mount(self, _: int, node: str, *, on: bool) -> None:
        """Somebody unmounts resctrl, and mounts it again: the tree is another one then."""
        files = self._node(node).files
        if files.is_mounted != on:
            self._say(node, mounted=on)
            files.is_mounted = on
            if on:
                files.mount_anew()

    def _cut(self, node: str) -> None:
        channel = self._node(node).channel
        if channel is not None:
            channel.drop()

    def away(self, _: int, node: str, *, on: bool) -> None:
        """The controller cannot be reached from a node, or from all (empty)."""
        names = [node] if node else list(self._agents.nodes)
        for name in names:
            if on:
                self._agents.network.away.add(name)
                self._cut(name)
            else:
                self._agents.network.away.discard(name)

    def slow(self, _: int, node: str, *, on: bool) -> None:
        """Frames to and from a node come late."""
        (self._agents.network.slow.add if on else self._agents.network.slow.discard)(node)

    def lost(self, _: int, node: str, kind: str, times: int) -> None:
        """The next prologs do not reach the agent, or the next epilogs are never called."""
        self._node(node).lost[kind] += times

    def forge(self, job: int, how: str) -> None:
        """The owner of a job writes a grant into its Extra that is not its own."""
        slurm = self._agents.controller.slurm
        if job not in slurm.jobs or not self._people.reaches_slurmctld():
            return
        token = self._token(job, how)
        if token is None:
            return
        text = with_grant(slurm.jobs[job].extra, token)
        with suppress(Refused):
            slurm.scontrol(("update", f"JobId={job}", f"Extra={text}"), slurm.jobs[job].user)

    def _token(self, job: int, how: str) -> str | None:
        known = self._agents.tokens
        record = self._agents.controller.slurm.jobs[job]
        nodes = record.allocated or record.required or tuple(self._agents.nodes)[:1]
        if how == "signed":
            return grants.token(Grant(RunId(job, record.restarts), nodes, 18), OTHER_KEYS)
        wanted = {
            "copied": [token for run, token in known if run.job_id != job],
            "old": [token for run, token in known if run.job_id == job and run.restarts < record.restarts],
            "changed": [token for run, token in known if run.job_id == job],
        }[how]
        if not wanted:
            return None
        if how != "changed":
            return wanted[-1]
        parts = wanted[-1].split(":")
        parts[4] = "18.0"
        return ":".join(parts)

    def change(self, job: int, ways: int) -> None:
        """The scheduler decides that a running job has other ways, at most those that Slurm counts for it."""
        agents = self._agents
        record, hub = agents.controller.slurm.jobs.get(job), agents.network.hub
        if job not in agents.runs or record is None or not record.ways or hub is None or not hub.is_alive:
            return
        restarts, nodes = agents.runs[job]
        agents.revision += 1
        change = Change(RunId(job, restarts), agents.revision, min(ways, record.ways))
        told = tuple((node, change.run, change.revision, change.ways, 0) for node in nodes)
        agents.world.history.add("changing", job, "world", changes=told)
        hub.change({node: [change] for node in nodes})

    def repair(self) -> None:
        """Repair everything: from now on nothing fails."""
        self._is_repaired = True
        network = self._agents.network
        network.away.clear()
        network.slow.clear()
        for name, node in self._agents.nodes.items():
            node.traps.clear()
            node.lost = dict.fromkeys(node.lost, 0)
            node.files.refuses = 0
            node.disk.is_full = False
            if not node.files.is_mounted:
                node.files.is_mounted = True
                node.files.mount_anew()
            node.thaw()
            if not node.is_wanted:
                node.boot()
            self._say(name, repaired=True)
