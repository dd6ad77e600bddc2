"""The agent of a node: one thread that decides, and that alone touches resctrl.

Prolog, epilog and the controller put what they have to say into a queue; a caller waits for its answer. Between two of
them the agent does what is due:

| what | when |
|---|---|
| another number of ways for a sampled run | at each turn of the wall clock |
| a look at the node: new threads, readings of counters, vanished jobs, changed trees, CPU time | every `monitor_s` |
| a look at runs whose first tasks have not been seen yet | every second |
| everything anew, as after a start | every minute |
| what was refused (the tree, the disk) | after growing pauses |
| limits of CPU time no lower than what the runs asked for | when nothing was heard of the controller for 60 s |

Each step is safe to repeat, and what is in force is taken from the tree: the agent may be killed anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.node.agent.controller_link import ControllerLink
from slurm_sns.node.agent.in_force import InForce, next_turn_s, why_shared
from slurm_sns.node.agent.inbox import Asked, Inbox, Message, job_event
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings, Channel
from slurm_sns.node.agent.presence import Presence
from slurm_sns.node.agent.run_meters import points
from slurm_sns.node.agent.shown_types import AgentJson, JobOnNode
from slurm_sns.node.agent.state_file import Remembered
from slurm_sns.wire.values import ActiveRuns, Change, JobThere, NodeFacts, NodeState

#: How often tasks are looked for whose run has just begun, and for how long; a prolog elsewhere may take that long.
YOUNG_LOOK_S, YOUNG_S = 1.0, 120.0
#: How often everything is looked at anew, whatever was known.
ANEW_S = 60.0
#: Pauses before what was refused is tried again: doubled each time.
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 30.0
#: So long limits of CPU time that the controller has told hold without a word of it: two beats (Pace.beat_s of 25 s),
#: and less than the silence that ends a connection. Who sets them must be there to raise them when neighbours end.
LEASE_S = 60.0
#: A process that waits for a signal must look at its flag now and then.
LONGEST_WAIT_S = 1.0


@dataclass
class _Due:
    """When each of the agent's duties is due next; steady seconds, 0: at once."""

    look_s: float = 0.0
    young_s: float = 0.0
    anew_s: float = 0.0
    retry_s: float = 0.0
    retries: int = 0
    after_defect_s: float = 0.0


class Agent:
    """The agent; `run` is its thread, and `inbox` is what other threads may use."""

    def __init__(self, settings: AgentSettings, ports: AgentPorts) -> None:
        self._settings, self._ports = settings, ports
        self.inbox = Inbox(ports.clock, ports.log)
        self._controller = ControllerLink(settings.node, ports)
        self._in_force: InForce  # this and the next from `start` on
        self._presence: Presence
        self._due = _Due()
        self._is_arranged = False
        #: Runs have begun, ended or changed since what they are to have was brought into force.
        self._has_changed = False
        #: When the controller was heard last (steady seconds), and whether its limits of CPU time are in force.
        self._heard_s = 0.0
        self._caps = False
        self._facts = NodeFacts(settings.node)

    # The agent's thread.

    def connect(self, channel: Channel) -> None:
        """Use this channel to the controller from now on; before `start`."""
        self._controller.connect(channel)

    def start(self) -> None:
        """Take up what an earlier agent has left: its runs, its measurements, the tree."""
        ports, now_s = self._ports, self._ports.clock.steady()
        ports.tree.look()
        self._in_force = InForce(self._settings, ports)
        self._presence = Presence(self._settings, ports, self._in_force, self._controller)
        left = ports.state.load()
        self._heard_s = left.heard_s if left.boot == ports.boot else 0.0
        self._presence.restore(left, now_s)
        self._look()
        self._save()

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Work until stopped. What is in force stays, but no limit of CPU time below what a run asked for."""
        while not is_stopped():
            self.step(LONGEST_WAIT_S)
        self.stop()

    def stop(self) -> None:
        """Save what is known, and stop counting."""
        self._in_force.measuring.end_intervals()
        self._save()
        self._in_force.share(self._presence.here, caps=False, anew=False)
        self._in_force.measuring.close()

    def step(self, longest_s: float = 0.0) -> None:
        """Wait for an event for at most `longest_s`, deal with all that wait, and do what is due.

        Events that come together, as when many jobs begin at once, are brought into force together.
        """
        waits_s = min(longest_s, self.due_in_s())
        answers: list[tuple[Asked, Callable[[], Any]]] = []
        for event in self.inbox.waiting(waits_s):
            answers += self._deal_with(event)
        self._tick()
        for asked, answer in answers:
            asked.answer.set_result(answer())

    def due_in_s(self) -> float:
        """In how many seconds something is due; 0 if it is now."""
        now_s = self._ports.clock.steady()
        due = [self._due.look_s - now_s]
        if self._young():
            due.append(self._due.young_s - now_s)
        if self._is_refused or self._ports.spool.has_unwritten:
            due.append(self._due.retry_s - now_s)
        if self._in_force.sampled_ways:
            due.append(next_turn_s(self._ports.clock.now(), self._settings.sample_s))
        return max(0.0, min(due), self._due.after_defect_s - now_s)

    @property
    def _is_refused(self) -> bool:
        """Whether the last layout is not in force, or the kernel had no room for the group of a job."""
        return not self._is_arranged or bool(self._ports.tree.refused)

    # What it says of the node.

    def state(self) -> NodeState:
        """What the controller is told of this node: what it can do, what does not work, and what each run has."""
        ports, tree, here = self._ports, self._ports.tree, self._presence.here
        jobs = []
        for run in here.runs:
            job_id = run.run.job_id
            ways, cpu_time = tree.has_ways(job_id), self._in_force.cpu_time(run.run)
            tasks = self._in_force.tasks.get(job_id)
            jobs.append(
                JobThere(
                    run.run,
                    ways,
                    run.bandwidth_gbps if tree.limits_bandwidth(job_id) else 0,
                    why_shared(run, ways, tree.why_without(job_id)),
                    is_sampled=run is here.sampled and self._in_force.sampled_ways > 0,
                    is_found=run.is_found,
                    awaits_task=run.claim is not None,
                    cores=tree.core_counts(self._in_force.cores.get(job_id, {})),
                    cpus=cpu_time.cpus,
                    cpu_share=cpu_time.share,
                    is_confined=tasks is not None and tasks.is_confined,
                )
            )
        troubles = (tree.trouble, ports.spool.trouble, ports.state.trouble)
        return NodeState(ports.clock.now(), self._facts, tuple(jobs), "; ".join(filter(None, troubles)))

    @property
    def status(self) -> str:
        """One line for `systemctl status`, such as `partition; 3 jobs`."""
        mode = (
            "observe" if self._settings.observes else "unpartitioned" if self._facts.why_unpartitioned else "partition"
        )
        away = "" if self._controller.is_connected else "not connected"
        return "; ".join(filter(None, (mode, f"{len(self._presence.here.runs)} jobs", away, self._ports.tree.trouble)))

    def shown(self) -> AgentJson:
        """What `sns agent --show` shows, for JSON."""
        state, now_s = self.state(), self._ports.clock.steady()
        tasks, sums = self._in_force.tasks, self._in_force.measuring.sums()
        jobs: list[JobOnNode] = []
        for there, run in zip(state.jobs, self._presence.here.runs, strict=True):
            job_id = run.run.job_id
            jobs.append(
                {
                    "job": job_id,
                    "restarts": run.run.restarts,
                    "here_s": round(now_s - run.began_s, 1),
                    "ways": there.ways,
                    "bandwidth_gbps": there.bandwidth_gbps,
                    "granted_ways": run.ways,
                    "is_sampled": there.is_sampled,
                    "cpus": there.cpus,
                    "cpu_share": there.cpu_share,
                    "threads": len(tasks[job_id].threads) if job_id in tasks else 0,
                    "why_shared": there.why_shared,
                    "points": [
                        {"ways": each.ways, "seconds": each.seconds, "ipc": each.ipc, "gbps": each.bandwidth_gbps}
                        for each in points(sums.get(job_id, {}))
                    ],
                }
            )
        return {
            "node": state.facts.node,
            "mode": state.facts.mode,
            "ways": state.facts.ways,
            "why_unpartitioned": state.facts.why_unpartitioned,
            "trouble": state.trouble,
            "is_connected": self._controller.is_connected,
            "reports": len(self._ports.spool.reports()),
            "jobs": jobs,
        }

    def _facts_now(self) -> NodeFacts:
        """What the node can do."""
        settings, tree, counters = self._settings, self._ports.tree, self._in_force.measuring.counters
        partition = tree.partition
        caches = () if partition is None else partition.machine.last_level
        return NodeFacts(
            settings.node,
            settings.software,
            "observe" if settings.observes else "partition",
            min((cache.mask.bit_count() for cache in caches), default=0),
            0 if partition is None else partition.closids_for_jobs(),
            limits_bandwidth=partition is not None and partition.limits_bandwidth,
            measures_ipc=counters.measures_ipc,
            measures_bandwidth=counters.measures_bandwidth,
            why_unpartitioned=tree.why_not,
            cores=tree.core_counts(tree.known_cores(None, self._ports.cores)),
        )

    # Events.

    def _deal_with(self, event: Asked | Message) -> list[tuple[Asked, Callable[[], Any]]]:
        """Note what the event says, which `_tick` brings into force; return what is to be answered after that."""
        self._controller.note_change()
        if isinstance(event, Asked):
            try:
                return [(event, self._answered(event))]
            except SnsError as problem:
                event.answer.set_exception(problem)
            except Exception as problem:  # noqa: BLE001 -- the outermost loop: a defect must not end the agent
                self._ports.log(f"a defect of the agent: {problem!r}")
                event.answer.set_exception(SnsError(f"a defect of the agent: {problem!r}"))
        elif isinstance(event, ActiveRuns):
            self._has_changed |= self._presence.name(event)
        elif isinstance(event, Change):
            self._has_changed |= self._presence.change(event)
        else:
            self._controller.forget(event.keys)
        return []

    def _answered(self, asked: Asked) -> Callable[[], Any]:
        if asked.request.get("event") == "show":
            return self.shown
        event = job_event(asked.request)
        if event.kind == "epilog":
            self._has_changed |= self._presence.end(event.run, asked.at_s)
        elif self._presence.begin(event):
            self._due.young_s = 0.0
            self._has_changed = True
        here = self._presence.here.of(event.run.job_id)
        told = {"job": event.run.job_id, "why": "" if here is None else here.why_no_grant}
        return lambda: told

    # What is due.

    def _tick(self) -> None:
        now_s = self._ports.clock.steady()
        if now_s < self._due.after_defect_s:
            return
        try:
            self._do_what_is_due()
            self._controller.tell(self.state)
        except Exception as problem:  # noqa: BLE001 -- the outermost loop: a defect must not end the agent
            self._ports.log(f"a defect of the agent: {problem!r}; it goes on in {LAST_RETRY_S:g} s")
            self._due.after_defect_s = now_s + LAST_RETRY_S

    def _do_what_is_due(self) -> None:
        if self._has_changed:
            self._has_changed = False
            self._arrange()
            self._save()  # before `_share`: the next agent must know which cgroups are its to set
            self._share()
        now_s = self._ports.clock.steady()
        if now_s >= self._due.look_s:
            self._look()
        elif self._young() and now_s >= self._due.young_s:
            self._join(self._young())
            self._share()
            self._due.young_s = now_s + YOUNG_LOOK_S
        if self._caps != self._is_leased():
            self._share()
        has_turned = self._in_force.turn(self._presence.here) != self._in_force.sampled_ways
        if has_turned or (self._is_refused and now_s >= self._due.retry_s):
            self._arrange()
        if self._ports.spool.has_unwritten and now_s >= self._due.retry_s:
            self._ports.spool.write()
            self._postpone(is_refused=self._ports.spool.has_unwritten)

    def _look(self) -> None:
        """A look at the whole node."""
        now_s, tree = self._ports.clock.steady(), self._ports.tree
        self._controller.note_change()
        self._due.look_s = now_s + min(self._settings.monitor_s, self._settings.vanished_after_s / 3)
        is_other = tree.look()
        if is_other or not tree.is_in_order():
            self._in_force.measuring.begin_with(self._ports.counters())
            self._is_arranged = False
        has_changed = self._presence.look(now_s)
        self._is_arranged = self._is_arranged and not has_changed
        if not self._is_arranged or now_s >= self._due.anew_s:
            self._due.anew_s = now_s + ANEW_S
            self._arrange()
            if self._settings.confine_system:
                tree.confine_system()
        self._join([each.run.job_id for each in self._presence.here.runs])
        self._facts = self._facts_now()
        self._save()
        self._share(anew=True)

    def _young(self) -> list[int]:
        """The jobs whose first tasks have not been seen yet."""
        now_s, is_counted = self._ports.clock.steady(), self._in_force.measuring.is_open
        young = [each.run.job_id for each in self._presence.here.runs if now_s - each.began_s < YOUNG_S]
        return [job_id for job_id in young if not is_counted(job_id)]

    def _join(self, jobs: Sequence[int]) -> None:
        """Put the threads of these jobs where they belong, and count them."""
        if not jobs:
            return
        before = dict(self._in_force.cores)
        found = self._in_force.find(jobs)
        if self._in_force.cores != before:
            self._arrange()
        self._in_force.join(found, self._presence.here)

    def _is_leased(self) -> bool:
        """Whether the controller was heard lately enough for the limits of CPU time that it has told."""
        now_s = self._ports.clock.steady()
        self._heard_s = max(self._heard_s, now_s - self._controller.silent_s)
        return now_s - self._heard_s < LEASE_S

    def _share(self, *, anew: bool = False) -> None:
        """Let the runs have their CPU time."""
        self._controller.note_change()
        self._caps = self._is_leased()
        self._in_force.share(self._presence.here, caps=self._caps, anew=anew)

    def _arrange(self) -> None:
        """Bring into force what the runs are to have now."""
        self._controller.note_change()
        self._is_arranged = self._in_force.bring_about(self._presence.here)
        if self._in_force.sampled_ways and self._is_arranged:
            self._presence.note_sampled()
        self._postpone(is_refused=self._is_refused)
        if self._is_arranged:
            self._in_force.count(self._presence.here)

    def _postpone(self, *, is_refused: bool) -> None:
        """Set when what was refused is tried again."""
        self._due.retries = self._due.retries + 1 if is_refused else 0
        pause_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self._due.retries, 10))
        self._due.retry_s = self._ports.clock.steady() + pause_s

    def _save(self) -> None:
        sums = self._in_force.measuring.sums()
        now_s = self._ports.clock.steady()
        self._ports.state.save(Remembered(self._presence.here, sums, self._ports.boot, now_s, self._heard_s))
