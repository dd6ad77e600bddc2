"""The agents of the world: one on each node, the real `Agent` class, whose thread is replaced by steps of the world's.

A step takes no time. slurmd calls prolog and epilog, which may be lost, late, or find no agent. An agent is killed at
any access to its ports, started again two seconds later, and finds the state that the last one wrote, or what became of
that. A node that is rebooted has lost its tree and its jobs.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from slurm_sns.node.agent.agent import Agent
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.spool import Spool
from slurm_sns.node.agent.state_file import NAME, StateFile
from slurm_sns.node.agent.tree import NodeLimits, NodeTree
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import LearningRules
from slurm_sns.scheduler.settings import Settings
from slurm_sns.wire import grants
from slurm_sns.wire.values import Grant, RunId
from world.agent_channel import KEYS, AgentsOf, Channel, Hub, Network
from world.agent_hardware import DISK, ROOT, CountersOf, Disk, DiskPath, Processes, SpoolFilesOf, TreeFiles, TreeRoot
from world.agent_learning import LearningStoreOf, StoredLearning
from world.history import Event
from world.ports import OUR_DEFECT, Caller, Controller, HistoryOf, Trap

SHARED_WAYS = SpreadingParameters().shared_ways
#: systemd starts an agent again after so long; slurmd calls the prolog after so long at most, then the tasks begin.
RESTART_S, PROLOG_S, TASKS_S, EPILOG_S = 2.0, 0.15, 0.05, 0.4
#: Some prologs and epilogs take so much longer.
SELDOM, LONG_S = 12, 3.0
#: The agent's settings: short, so that schedules can be.
MONITOR_S, VANISHED_AFTER_S, SAMPLE_S, SAMPLE_WAYS = 3.0, 6.0, 0.5, (2, 8)
#: No step follows another one sooner.
LEAST_S = 0.02


def _program(name: str, ipc: tuple[float, ...], bandwidth_gbps: tuple[float, ...]) -> Program:
    """A program with a profile for each number of processes that jobs here have."""
    known = Provenances(Provenance.ASSUMED, Provenance.ASSUMED, Provenance.ASSUMED)
    runs = tuple(Run(number, 1, 10.0, (2, 4, 8, 18), ipc, bandwidth_gbps, known) for number in range(1, 25))
    return Program(name, runs, max_scale=1)


#: Programs that need 8, 4 and 2 ways for nine tenths of their speed.
PROFILED = {
    each.name: each
    for each in (
        _program("cached", (0.4, 0.6, 0.95, 1.0), (30.0, 20.0, 8.0, 6.0)),
        _program("mixed", (0.7, 0.95, 0.98, 1.0), (20.0, 18.0, 16.0, 16.0)),
        _program("streaming", (0.98, 0.99, 1.0, 1.0), (40.0, 40.0, 40.0, 40.0)),
    )
}


class Killed(BaseException):  # no Exception: the agent's outermost loop survives those
    """The agent is killed at this access."""


class Node:
    """One node: its hardware, its agent. A call is an access of the agent's to anything outside."""

    is_running = False  # it is no daemon of the controller's, and is repaired by `Agents`

    def __init__(self, agents: "Agents", name: str, closids: int) -> None:
        self.agents, self.name, self.world = agents, name, agents.world
        self.traps: list[Trap] = []
        self.concerns = 0
        self.booted_s, self.boots = 0.0, 1
        self.processes = Processes(self)
        self.files = TreeFiles(self, closids, self.processes)
        self.disk = Disk(self)
        self.agent: Agent | None = None
        self.channel: Channel | None = None
        self.is_wanted, self.is_stepping, self.is_doomed = True, False, False
        self.frozen_until_s = 0.0
        self.lost = {"prolog": 0, "epilog": 0}
        self._planned, self._due_s = 0, 0.0

    # --- what the hardware needs

    def steady(self) -> float:
        return self.world.true_s - self.booted_s

    def now(self) -> float:
        return self.world.wall_s()

    def note(self, kind: str, job: int = 0, **data: Any) -> None:
        self.world.history.add(kind, job, self.name, **data)

    def call(self, kind: str, effect: Callable[[], Any]) -> Any:
        """An access of the agent's; a trap may go off before it or after it.

        Raises:
            Killed: the agent has been killed.
        """
        if not self.traps or not self.is_stepping:
            return effect()
        for trap in self.traps:
            if not trap.kinds or kind in trap.kinds:
                trap.left -= 1
        sprung = [trap for trap in self.traps if trap.left <= 0]
        self.traps = [trap for trap in self.traps if trap.left > 0]
        self._spring(sprung, "before")
        result = effect()
        self._spring(sprung, "after")
        return result

    def _spring(self, sprung: Sequence[Trap], when: str) -> None:
        for trap in sprung:
            if (trap.when == "before") == (when == "before"):
                self.world.act(trap.action)
        if self.is_doomed:
            raise Killed

    # --- the agent's life

    def start(self) -> None:
        """systemctl start."""
        if self.agent is not None or not self.is_wanted:
            return
        self.is_doomed = False
        self.note("agent", what="start", boot=self.boots)
        root = TreeRoot(ROOT)
        root.files = self.files
        agent = Agent(
            AgentSettings(
                self.name,
                "0",
                sample_s=SAMPLE_S,
                sample_ways=SAMPLE_WAYS,
                monitor_s=MONITOR_S,
                vanished_after_s=VANISHED_AFTER_S,
                confine_system=False,
            ),
            AgentPorts(
                clock=self,
                boot=f"boot {self.boots}",
                tree=NodeTree(
                    root,
                    lambda _: NodeLimits(SHARED_WAYS),
                    missing=lambda: () if self.files.is_mounted else ("resctrl is not mounted",),
                    log=self.log,
                    files=self.files,
                ),
                tasks=self.processes,
                slurmstepds=self.processes.slurmstepds,
                cores=lambda cpus, _level: {0: len(cpus)} if cpus else {},
                counters=lambda: CountersOf(self, self.files, self.processes),  # type: ignore[arg-type, return-value]
                cgroups=None,
                state=StateFile(DiskPath(self.disk, DISK), self.log),  # type: ignore[arg-type]
                spool=Spool(DiskPath(self.disk, f"{DISK}/spool"), self.log, SpoolFilesOf()),  # type: ignore[arg-type]
                verify=self._verify,
                log=self.log,
            ),
        )
        self.agent = agent
        self.channel = Channel(self.agents.network, self.name, self.hear, self.log)
        agent.connect(self.channel)
        self._do(agent.start)
        self.step()

    def _verify(self, token: str, run: RunId, nodes: Sequence[str]) -> Grant:
        return grants.verified(token, KEYS, run, self.name, nodes)

    def log(self, line: str) -> None:
        controller = self.agents.controller
        is_defect = "a defect of the agent" in line
        if is_defect:
            controller.defects.append(f"agent of {self.name} at {self.world.true_s:.3f} s: {OUR_DEFECT}{line}")
        if controller.keeps_log or is_defect:
            self.note("log", line=line)

    def hear(self, message: Any) -> None:
        """The channel gives a message."""
        if self.agent is not None:
            self.agent.inbox.receive(message)
            self.wake()

    def ask(self, kind: str, job: int, restarts: int, nodes: str, extra: str) -> None:
        """Prolog or epilog."""
        is_lost = self.lost[kind] > 0 or self.agent is None
        self.lost[kind] = max(0, self.lost[kind] - 1)
        self.note(kind, job, restarts=restarts, extra=extra, lost=is_lost)
        if is_lost or self.agent is None:
            return
        texts = {"job": str(job), "restarts": str(restarts), "nodes": nodes, "extra": extra}
        self.concerns = job
        self.agent.inbox.take({"v": 1, "event": kind, **texts})
        self.wake()

    def wake(self) -> None:
        """Something waits in the agent's queue."""
        if self.is_stepping or self.frozen_until_s > self.world.true_s:
            self._plan(0.0)
        else:
            self.step()

    def step(self) -> None:
        """The agent deals with what waits, and does what is due."""
        if self.agent is None or self.is_stepping:
            return
        if self.frozen_until_s > self.world.true_s:
            self._plan(self.frozen_until_s - self.world.true_s)
            return
        self._do(self.agent.step)
        if self.agent is not None:
            self.agents.look_at(self)
            self._plan(self.agent.due_in_s())

    def _do(self, action: Callable[[], object]) -> None:
        self.is_stepping = True
        try:
            action()
        except Killed:
            self._died()
        finally:
            self.is_stepping = False
        if self.is_doomed and self.agent is not None:
            self._died()

    def _plan(self, in_s: float) -> None:
        self._planned += 1
        number = self._planned
        self.world.at(self.world.true_s + max(LEAST_S, in_s), lambda: number == self._planned and self.step())

    def kill(self, state: str = "kept") -> None:
        """SIGKILL; what is on its disk may be damaged with it."""
        if self.agent is None:
            return
        self.is_doomed = True
        if state == "lost":
            self.disk.files.pop(f"{DISK}/{NAME}", None)
        elif state == "damaged" and f"{DISK}/{NAME}" in self.disk.files:
            self.disk.files[f"{DISK}/{NAME}"] = self.disk.files[f"{DISK}/{NAME}"][:40]
        if not self.is_stepping:
            self._died()

    def _died(self) -> None:
        self.is_doomed = False
        self.agent, channel, self.channel = None, self.channel, None
        self._planned += 1
        self.note("agent", what="crash")
        if channel is not None:
            channel.end()
        self.world.at(self.world.true_s + RESTART_S, self.start)

    def restart(self) -> None:
        """systemctl restart."""
        if self.agent is None or self.is_stepping or self.frozen_until_s > self.world.true_s:
            return
        self._do(self.agent.stop)
        if self.agent is not None:
            self.agent, channel, self.channel = None, self.channel, None
            self._planned += 1
            self.note("agent", what="stop")
            if channel is not None:
                channel.end()
            self.world.at(self.world.true_s + 0.5, self.start)

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        if self.agent is not None:
            self.frozen_until_s = self.world.true_s + seconds
            self.note("agent", what="freeze", seconds=seconds)
            self._plan(seconds)

    def thaw(self) -> None:
        """SIGCONT."""
        if self.frozen_until_s > self.world.true_s:
            self.frozen_until_s = 0.0
            self.note("agent", what="thaw")
            self._plan(0.0)

    def reboot(self, away_s: float) -> None:
        """The node boots: its agent, its jobs and its tree are gone. The disk stays."""
        self.note("agent", what="reboot")
        self.is_wanted = False
        self.kill()
        for job in list(self.processes.cores):
            self.processes.end(job)
        self.booted_s, self.boots = self.world.true_s, self.boots + 1
        self.frozen_until_s = 0.0
        self.files.mount_anew()
        self.world.at(self.world.true_s + away_s, self.boot)

    def boot(self) -> None:
        """The node is there again."""
        self.is_wanted = True
        self.start()


class Agents:
    """All nodes, the network, what is stored of learning; prologs and epilogs as slurmd calls them."""

    programs = PROFILED

    def __init__(self, controller: Controller, wanted: Mapping[str, Any], seed: int) -> None:
        self.controller, self.world, self.wanted = controller, controller.world, wanted
        self.random = Random(f"agents {seed}")
        self.network = Network(self.world, self.random)
        self.store = StoredLearning(self.world)
        self.nodes = {name: Node(self, name, wanted["closids"]) for name in controller.slurm.nodes}
        self.machine = next(iter(self.nodes.values())).files.machine
        #: The tokens that the scheduler has signed, and where each job runs: its restart count and its nodes.
        self.tokens: list[tuple[RunId, str]] = []
        self.runs: dict[int, tuple[int, tuple[str, ...]]] = {}
        #: When the prolog of a job on a node is over: the epilog comes later.
        self._prologs: dict[tuple[int, str], float] = {}
        self.revision = 1
        self._kinds: dict[str, Callable[[Event], None]] = {
            "start": self._started,
            "end": self._ended,
            "suspend": self._suspended,
            "resume": self._resumed,
            "daemon": self._daemon,
        }

    def begin(self) -> None:
        """Start the agents."""
        for node in self.nodes.values():
            self.world.at(0.2 + self.random.random(), node.start)

    def rules(self) -> LearningRules:
        """The rules of learning."""
        exploration = Exploration(SpreadingParameters(), min_cores_per_node=1)
        return LearningRules(
            exploration, DriftParameters(0.1, 3), explore=self.wanted["explores"], most_nodes=self.wanted["most_nodes"]
        )

    # --- the scheduler's parts

    def port(self, caller: Caller) -> AgentsOf:
        """The port Agents of a scheduler that starts now, which agents can reach from now on."""
        hub = Hub(self.network, caller)
        if self.network.hub is None or not self.network.hub.is_alive:
            self.network.hub = hub
        return AgentsOf(caller, hub)

    def learner(self, caller: Caller, history: HistoryOf, agents: AgentsOf, settings: Settings) -> Learner:
        """The scheduler's learner."""
        store = LearningStoreOf(caller, history, self.store)
        return Learner(store, agents, self.rules(), settings, caller.log)

    def sign(self, grant: Grant) -> str:
        """The token of a grant."""
        self.world.history.add(
            "granted",
            grant.run.job_id,
            run=grant.run,
            nodes=grant.nodes,
            ways=grant.ways,
            gbps=grant.bandwidth_gbps,
            samples=grant.samples,
            alone=grant.has_nodes_alone,
        )
        token = grants.token(grant, KEYS)
        self.tokens.append((grant.run, token))
        return token

    # --- slurmd

    def heard(self, event: Event) -> None:
        """Follow the history."""
        follow = self._kinds.get(event.kind)
        if follow is not None:
            follow(event)

    def _daemon(self, event: Event) -> None:
        if event.data["what"] in ("crash", "stop", "handover", "failed"):
            hub = self.network.hub
            if hub is not None and hub._daemon.name == event.data["name"]:
                self.world.at(self.world.true_s, hub.shut)

    def _pause_s(self, most_s: float) -> float:
        draw = self.random.random()
        return LONG_S * self.random.random() if draw * SELDOM < 1 else most_s * draw

    def _started(self, event: Event) -> None:
        nodes, restarts = event.data["nodes"], event.data["restarts"]
        extra = self.controller.slurm.jobs[event.job].extra
        names = ",".join(nodes)
        self.runs[event.job] = (restarts, nodes)
        for name, cores in zip(nodes, event.data["cores"], strict=True):
            node, prolog_s = self.nodes[name], self.world.true_s + self._pause_s(PROLOG_S)
            boots = node.boots
            self._prologs[event.job, name] = prolog_s

            def prolog(node: Node = node, boots: int = boots) -> None:
                if node.boots == boots:
                    node.ask("prolog", event.job, restarts, names, extra)

            def tasks(node: Node = node, cores: int = cores, boots: int = boots) -> None:
                job = self.controller.slurm.jobs.get(event.job)
                runs = job is not None and job.state in ("RUNNING", "SUSPENDED") and job.restarts == restarts
                if runs and node.boots == boots:
                    node.processes.begin(event.job, cores)
                    node.files.join(event.job)

            self.world.at(prolog_s, prolog)
            self.world.at(prolog_s + TASKS_S, tasks)

    def _ended(self, event: Event) -> None:
        if event.job not in self.runs:
            return  # it never ran, or has ended already
        restarts, nodes = self.runs.pop(event.job)
        for name in nodes:
            node = self.nodes[name]
            node.processes.end(event.job)
            node.processes.suspended.discard(event.job)
            boots, names = node.boots, ",".join(nodes)
            epilog_s = max(self.world.true_s, self._prologs[event.job, name]) + 0.05 + self._pause_s(EPILOG_S)

            def epilog(node: Node = node, boots: int = boots, names: str = names) -> None:
                if node.boots == boots and node.is_wanted:
                    node.ask("epilog", event.job, restarts, names, "")

            self.world.at(epilog_s, epilog)

    def _suspended(self, event: Event) -> None:
        for name in self.controller.slurm.jobs[event.job].allocated:
            self.nodes[name].processes.suspended.add(event.job)

    def _resumed(self, event: Event) -> None:
        for name in self.controller.slurm.jobs[event.job].allocated:
            self.nodes[name].processes.suspended.discard(event.job)

    # --- for the checker

    def look_at(self, node: Node) -> None:
        """Note what is on a node after a step of its agent, if that has changed."""
        assert node.agent is not None
        here = node.agent._presence.here
        seen = (
            tuple((each.run, each.ways, each.is_found) for each in here.runs),
            tuple(sorted((name, mask) for name, mask in node.files.masks().items() if name != "sns_shared")),
            not node.agent._is_refused,
            node.files.is_mounted,
            here.sampled.run.job_id if here.sampled is not None else 0,
        )
        if seen != getattr(node, "_seen", None):
            node._seen = seen  # type: ignore[attr-defined]
            node.note("here", runs=seen[0], groups=dict(seen[1]), arranged=seen[2], mounted=seen[3], sampled=seen[4])

    def close(self) -> None:
        """After the end of the run: the controller is away, and what is left on the nodes is looked at some time later.

        The world's clock goes on alone: nobody else acts any more.
        """
        self.world.history.add("closing")
        self.network.hub = None
        for node in self.nodes.values():
            node.traps.clear()
            node.thaw()
            if node.channel is not None:
                node.channel.drop()
        for _ in range(3):
            self.world.true_s += max(VANISHED_AFTER_S, MONITOR_S) + 0.1
            for node in self.nodes.values():
                node.step()
        self.world.history.add("closed")
