"""Promises about the agents on the nodes. Written from docs/admins/nodes.md and the specification.

The check follows the history on its own: which runs Slurm has on each node, what the scheduler has granted, what each
agent was told, which groups its node has, and what was stored of learning. Nothing is taken from the agents' or the
scheduler's own account but what they say they know, which is judged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf
from typing import Any

from slurm_sns.task_ids import task_id
from world.history import Event

#: The settings of the agents (agents.py): after so long without a process a job has vanished; how often they look.
VANISHED_AFTER_S, LOOK_S = 6.0, 3.0
#: A step follows another one this much later at most; what was refused is tried again after at most so long.
STEP_S, RETRY_S = 1.0, 35.0
#: A report that is stored is acknowledged after so long: it is sent again every 6 s, and looked at in every cycle.
ACKNOWLEDGED_S = 20.0
#: In how many seconds the agents are told that a run has ended: a job completes first, then a cycle sees it.
TOLD_S = 10.0
#: Two runs explore each scale with a measurement, 8 in all; after two in a row without one the scale is given up.
PER_SCALE, IN_ALL, MOST_FAILURES = 2, 8, 2
#: The ways that jobs can have together, and the name of a job's group.
WAYS_FOR_JOBS = 18
PREFIX = "sns_job"

Run = tuple[int, int]
#: How many more times and curves there are, by scale.
Growth = dict[int, tuple[int, int]]


@dataclass
class There:
    """One node, as its events tell."""

    groups: dict[int, int] = field(default_factory=dict)
    runs: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    is_up: bool = False
    named: frozenset[Run] = frozenset()
    up_s: float = inf
    refused_s: float = -inf
    #: Since when an agent could have removed what is left of a job.
    left_s: dict[int, float] = field(default_factory=dict)
    told: dict[Run, tuple[int, int]] = field(default_factory=dict)
    unsure: set[Run] = field(default_factory=set)
    spooled: dict[Run, float] = field(default_factory=dict)
    reported: set[Run] = field(default_factory=set)
    acknowledged: set[Run] = field(default_factory=set)
    must_report: dict[Run, float] = field(default_factory=dict)


@dataclass
class Learnt:
    """What is stored of learning."""

    keys: dict[Run, tuple[Any, int, tuple[str, ...], Any]] = field(default_factory=dict)
    present: set[Run] = field(default_factory=set)
    reports: set[tuple[Run, str]] = field(default_factory=set)
    counts: dict[Any, Any] = field(default_factory=dict)
    measured: Counter[tuple[Any, int]] = field(default_factory=Counter)
    failed: Counter[tuple[Any, int]] = field(default_factory=Counter)
    generation: int = 0


def agents_at_the_end(result: Any) -> Iterator[str]:
    """The promises about agents that the result breaks."""
    tale = _Tale(result)
    for event in result.history.events:
        tale.clock(event)
        take = getattr(tale, "on_" + event.kind.replace("-", "_"), None)
        if take is not None:
            take(event)
    tale.end()
    yield from dict.fromkeys(tale.found)


class _Tale:
    """Follows one history; what is broken is in `found`."""

    def __init__(self, result: Any) -> None:
        self.result, self.found = result, list[str]()
        self.nodes = {name: There() for name in result.slurm.nodes}
        self.running: dict[int, tuple[int, tuple[str, ...]]] = {}
        self.granted: dict[tuple[Run, str], set[int]] = {}
        #: Our ids of array tasks, by job id: a grant may name a task that has no job id yet.
        self.task_ids: dict[int, int] = {}
        self.learnt = Learnt()
        self.purged: set[int] = set()
        self.requeued: set[Run] = set()
        #: The restart count with which each job started last.
        self.restarts: dict[int, int] = {}
        self.started: set[Run] = set()
        self.cycles: list[float] = []
        self.had_two = False
        self.at_s = 0.0
        self.ended_s: dict[Run, float] = {}
        managed = {node for name in result.schedule.managed for node in result.schedule.partitions[name][0]}
        self.most_nodes = max(1, int(result.schedule.agents["most_nodes"] * len(managed)))

    def say(self, promise: str, text: str) -> None:
        self.found.append(f"{promise}: {text}")

    # --- what is left on nodes

    def clock(self, event: Event) -> None:
        """Time has passed: what is left of jobs that have ended?"""
        self.at_s = event.at_s
        for name, there in self.nodes.items():
            for job, since_s in list(there.left_s.items()):
                limit_s = VANISHED_AFTER_S + LOOK_S + STEP_S
                if since_s - there.refused_s < 2 * RETRY_S:
                    limit_s += RETRY_S
                if event.at_s - since_s > limit_s:
                    what = "its group is" if job in there.groups else "its run is known"
                    self.say("left on the node", f"job {job} has ended, and since {since_s:.3f} s {what} on {name}")
                    there.left_s[job] = inf

    def look(self, name: str, *, anew: bool = False) -> None:
        """See what is left of which jobs on the node; `anew`: the agent could do nothing until now."""
        there = self.nodes[name]
        left = {job for job in there.groups.keys() | there.runs.keys() if not self.is_there(job, name)}
        named = {job for job, _ in there.named}
        there.left_s = {
            job: inf
            if job in named or not there.is_up
            else self.at_s
            if anew or there.left_s.get(job, inf) == inf
            else there.left_s[job]
            for job in left
        }

    def is_there(self, job: int, name: str) -> bool:
        """Whether Slurm has the job running on the node."""
        return job in self.running and name in self.running[job][1]

    def on_start(self, event: Event) -> None:
        self.running[event.job] = (event.data["restarts"], event.data["nodes"])
        self.started.add((event.job, event.data["restarts"]))
        self.restarts[event.job] = event.data["restarts"]
        array_id, task = event.data["now"].array if "now" in event.data else (None, None)
        if array_id is not None and task is not None:
            self.task_ids[event.job] = task_id(array_id, task)
        self.check_explorers(event)
        for name in event.data["nodes"]:
            self.look(name)

    def on_requeue(self, event: Event) -> None:
        """The run is forgotten, also one that has ended just before (docs/develop/life-of-a-job.md)."""
        if event.job in self.restarts:
            self.requeued.add((event.job, self.restarts[event.job]))

    def on_end(self, event: Event) -> None:
        restarts, nodes = self.running.pop(event.job, (0, ()))
        self.ended_s[event.job, restarts] = event.at_s
        for name in nodes:
            self.look(name)

    def on_purge(self, event: Event) -> None:
        self.purged.add(event.job)

    def on_agent(self, event: Event) -> None:
        there, what = self.nodes[event.by], event.data["what"]
        if what in ("crash", "stop", "reboot"):
            there.is_up = False
            there.unsure |= there.told.keys() | {(job, run[0]) for job, run in there.runs.items()}
            there.runs, there.must_report = {}, {}
        elif what in ("start", "thaw"):
            there.is_up = True
        elif what == "freeze":
            there.is_up = False
        if what == "reboot":
            there.groups = {}
        self.look(event.by, anew=True)

    def on_channel(self, event: Event) -> None:
        there = self.nodes[event.by]
        there.named = frozenset()
        there.up_s = event.at_s if event.data["up"] else inf
        self.look(event.by, anew=True)

    def on_active(self, event: Event) -> None:
        there, before = self.nodes[event.by], self.nodes[event.by].named
        there.named = frozenset(event.data["runs"])
        self.look(event.by, anew=before != there.named)

    def on_agent_fault(self, event: Event) -> None:
        there = self.nodes[event.by]
        if "mounted" in event.data or "repaired" in event.data:
            there.groups = {} if "mounted" in event.data else there.groups
        if "refuses" in event.data or "mounted" in event.data:
            there.refused_s = event.at_s
        self.look(event.by, anew=True)

    def on_agent_refused(self, event: Event) -> None:
        self.nodes[event.by].refused_s = event.at_s

    def on_closing(self, _: Event) -> None:
        """The run is over: a scheduler that works has told the agents of the end of every job."""
        if not self.result.alive or self.had_two or not self.cycles:
            return
        for name, there in self.nodes.items():
            for job, restarts in sorted(there.named):
                ended_s = self.ended_s.get((job, restarts), inf)
                if ended_s + TOLD_S < self.cycles[-1]:
                    self.say("named for ever", f"{name} is told that run {job}.{restarts} is active; it has ended")

    def on_group(self, event: Event) -> None:
        there = self.nodes[event.by]
        if event.data["what"] == "removed":
            there.groups.pop(event.job, None)
        else:
            there.groups[event.job] = event.data["mask"]
        self.look(event.by)

    # --- ways

    def on_granted(self, event: Event) -> None:
        for node in event.data["nodes"]:
            ways = {event.data["ways"]}
            self.granted.setdefault((tuple(event.data["run"]), node), set()).update(ways)

    def on_changing(self, event: Event) -> None:
        for node, run, _, ways, _ in event.data["changes"]:
            self.granted.setdefault((tuple(run), node), set()).add(ways)

    def on_changed(self, event: Event) -> None:
        there, run = self.nodes[event.by], tuple(event.data["run"])
        before = there.told.get(run, (0, 0))
        if event.data["revision"] > before[0]:
            there.told[run] = (event.data["revision"], event.data["ways"])

    def on_here(self, event: Event) -> None:
        """What an agent knows after a step, and the groups of its node."""
        there, name, data = self.nodes[event.by], event.by, event.data
        known = {run[0]: (run[1], ways, is_found) for run, ways, is_found in data["runs"]}
        for job, (restarts, _, is_found) in there.runs.items():
            # The restart count of a run that was found may be learnt later, or only be in its report.
            is_told = is_found and any(of == job and count >= restarts for of, count in there.spooled)
            if not is_told and (job not in known or (known[job][0] != restarts and not is_found)):
                there.must_report[job, restarts] = event.at_s
        there.runs = known
        there.groups = {int(group.removeprefix(PREFIX)): mask for group, mask in data["groups"].items()}
        for job, (restarts, ways, is_found) in known.items():
            self.check_ways((job, restarts), ways, name, is_found=is_found)
        is_due = data["arranged"] or event.at_s - there.refused_s > RETRY_S
        if is_due and data["mounted"]:
            self.check_groups(event, known)
        self.look(name)

    def check_ways(self, run: Run, ways: int, name: str, *, is_found: bool) -> None:
        """A run has the ways of a grant or of a change of the scheduler's for it, of the newest that the agent has."""
        there = self.nodes[name]
        ids = {run[0], self.task_ids.get(run[0], run[0])}
        of_job = {other: of for (other, node), of in self.granted.items() if other[0] in ids and node == name}
        allowed = {each for other, of in of_job.items() if is_found or other[1] == run[1] for each in of}
        if is_found:
            if ways and not any(allowed):
                self.say("ways without a grant", f"{name} gives job {run[0]} {ways} ways that nobody has granted")
            return
        if ways and ways not in allowed:
            self.say(
                "ways without a grant",
                f"{name} gives run {run[0]}.{run[1]} {ways} ways at {self.at_s:.3f} s; granted: {sorted(allowed)}",
            )
        if run in there.told and run not in there.unsure and ways != there.told[run][1]:
            revision, wanted = there.told[run]
            told = f"{name} gives run {run[0]}.{run[1]} {ways} ways at {self.at_s:.3f} s"
            self.say("older change", f"{told}; revision {revision} says {wanted}")

    def check_groups(self, event: Event, known: dict[int, tuple[int, int, bool]]) -> None:
        """All is in force: no two jobs have the same way, and a group's job has ways."""
        there, name = self.nodes[event.by], event.by
        for (one, first), (other, second) in combinations(there.groups.items(), 2):
            if first & second:
                self.say(
                    "ways shared",
                    f"jobs {one} and {other} both have {(first & second):#x} on {name} at {event.at_s:.3f} s",
                )
        self.check_guarantees(event, known)
        for job in there.groups:
            has = known.get(job)
            if has is None:
                self.say(
                    "group of nobody", f"{name} keeps a group of job {job}, which is not there, {event.at_s:.3f} s"
                )
            elif not has[1] and event.data["sampled"] != job:
                self.say("group without ways", f"{name} has a group of job {job} without ways at {event.at_s:.3f} s")

    def check_guarantees(self, event: Event, known: dict[int, tuple[int, int, bool]]) -> None:
        """Where all that was promised fits, each run has at least its own ways, unless it is sampled."""
        there = self.nodes[event.by]
        wanted = {job: min(ways, WAYS_FOR_JOBS) for job, (_, ways, _) in known.items() if ways}
        fits = sum(wanted.values()) <= WAYS_FOR_JOBS and len(wanted) <= self.result.schedule.agents["closids"] - 2
        is_new = event.at_s - there.refused_s < LOOK_S + STEP_S  # the tree; the agent has not looked at it yet
        for job, ways in wanted.items() if fits and not is_new and not event.data["sampled"] else ():
            has = there.groups.get(job, 0).bit_count()
            if has < ways:
                self.say("guarantee broken", f"job {job} has {has} of {ways} ways on {event.by} at {event.at_s:.3f} s")

    # --- reports

    def on_spooled(self, event: Event) -> None:
        there, run = self.nodes[event.by], tuple(event.data["run"])
        there.spooled[run] = event.at_s
        there.reported.add(run)

    def on_unspooled(self, event: Event) -> None:
        there, run = self.nodes[event.by], tuple(event.data["run"])
        there.spooled.pop(run, None)
        if run not in there.acknowledged:
            self.say("report lost", f"{event.by} forgets the report of {run} that nobody has acknowledged")

    def on_acknowledged(self, event: Event) -> None:
        self.nodes[event.by].acknowledged.update((job, restarts) for job, restarts, _ in event.data["keys"])

    def on_received(self, event: Event) -> None:
        self.nodes[event.by].reported.add(tuple(event.data["run"]))

    def on_acknowledging(self, event: Event) -> None:
        """The scheduler says that a report is stored, or that it is of no use."""
        for job, restarts, node in event.data["keys"]:
            run, learnt = (job, restarts), self.learnt
            wanted = run in learnt.present and node in learnt.keys[run][2]
            if wanted and (run, node) not in learnt.reports and not self.had_two:
                self.say(
                    "acknowledged too early",
                    f"the report of run {job}.{restarts} from {node} at {event.at_s:.3f} s is not stored",
                )

    # --- learning

    def on_daemon(self, event: Event) -> None:
        self.had_two |= event.data["name"] == "scheduler-2"

    def on_store(self, event: Event) -> None:
        if event.data["state"] == "gone":  # an administrator has moved the database away
            self.learnt = Learnt(generation=self.learnt.generation + 1)

    def on_cycle(self, event: Event) -> None:
        if event.data["ok"]:
            self.cycles.append(event.at_s)

    def on_learnt(self, event: Event) -> None:
        """Something was stored."""
        learnt, data = self.learnt, event.data
        if data["generation"] != learnt.generation:
            self.learnt = learnt = Learnt(generation=data["generation"])
        for run, key, scale, nodes, step, _ in data["runs"]:
            learnt.keys[tuple(run)] = (key, scale, nodes, step)
            learnt.present.add(tuple(run))
        for run, node in data["reports"]:
            if (tuple(run), node) in learnt.reports and not self.had_two:
                self.say("stored twice", f"the report of {tuple(run)} from {node} at {event.at_s:.3f} s")
            learnt.reports.add((tuple(run), node))
        gone = [tuple(run) for run in data["gone"]]
        for run in gone:
            if run not in learnt.present and not self.had_two:
                self.say("learnt twice", f"run {run} was learnt from already, at {event.at_s:.3f} s again")
        grown = {key: _growth(learnt.counts.get(key), now) for key, now in data["counts"].items()}
        for key, by_scale in grown.items():
            timed, sampled = (sum(each[at] for each in by_scale.values()) for at in (0, 1))
            number = sum(learnt.keys[run][0] == key for run in gone if run in learnt.keys)
            if max(timed, sampled) > number and not self.had_two:
                self.say("counted twice", f"{key} has {timed} more times and {sampled} curves from {number} runs")
        for run in gone:
            self.explored(run, gone, grown)
            learnt.present.discard(run)
        learnt.reports = {each for each in learnt.reports if each[0] in learnt.present}
        for key, now in data["counts"].items():
            was = learnt.counts.get(key)
            if now["renewal"] is not None and (was is None or was["renewal"] is None):  # it is measured again
                for scale in (1, 2, 4, 8):
                    learnt.measured.pop((key, scale), None)
                    learnt.failed.pop((key, scale), None)
        learnt.counts |= data["counts"]

    def explored(self, run: Run, gone: Sequence[Run], grown: dict[Any, Growth]) -> None:
        """An exploring run is over.

        A time that was learnt may be that of another run at the same scale which was learnt from with it.
        """
        learnt = self.learnt
        key, scale, _, step = learnt.keys.get(run, (None, 0, (), None))
        if step is None or self.had_two or run not in self.started:
            return
        timed, sampled = grown.get(key, {}).get(scale, (0, 0))
        others = sum(learnt.keys[other][:2] == (key, scale) for other in gone if other != run and other in learnt.keys)
        if sampled > 0 or timed > others:
            learnt.measured[key, scale] += 1
            learnt.failed.pop((key, scale), None)
            if learnt.measured[key, scale] > PER_SCALE:
                self.say("explored too often", f"{key} at scale {scale}: {learnt.measured[key, scale]} runs")
            if sum(count for (other, _), count in learnt.measured.items() if other == key) > IN_ALL:
                self.say("explored too often", f"{key}: more than {IN_ALL} runs")
        elif timed > 0 and not step[1]:
            learnt.failed.pop((key, scale), None)  # whose time it is cannot be told; it may be a measurement
        elif run not in self.requeued and run[0] not in self.purged and run[0] not in self.running:
            learnt.failed[key, scale] += 1
            if learnt.failed[key, scale] > MOST_FAILURES:
                self.say("explored too often", f"{key} at scale {scale} failed {learnt.failed[key, scale]} times")

    def check_explorers(self, event: Event) -> None:
        """At most so many nodes serve exploring runs: those that run where they were to be measured.

        A job that Slurm starts elsewhere, because its placement was never sent, explores nothing.
        """
        if self.had_two:
            return
        holding = {
            job: nodes
            for job, (restarts, nodes) in self.running.items()
            if (job, restarts) in self.learnt.present
            and self.learnt.keys[job, restarts][3] is not None
            and set(nodes) == set(self.learnt.keys[job, restarts][2])
        }
        number = sum(map(len, holding.values()))
        if event.job in holding and number > self.most_nodes:
            self.say(
                "too many nodes explore",
                f"{number} at {event.at_s:.3f} s, at most {self.most_nodes}: {sorted(holding)}",
            )

    # --- the end

    def end(self) -> None:
        """What the end of the history shows."""
        for name, there in self.nodes.items():
            node = self.result.agents.nodes[name]
            for run in sorted(there.spooled.keys() - node.disk.spooled()):
                self.say("report lost", f"the report of {run} was in the spool of {name}, and is not any more")
            for run, at_s in sorted(there.must_report.items()):
                if run not in there.reported:
                    self.say("report lost", f"{name} has made no report of run {run}, which ended by {at_s:.3f} s")
            if node.agent is not None:
                self.check_memory(name, node)
        self.check_acknowledged()

    def check_acknowledged(self) -> None:
        """A scheduler that works acknowledges every report."""
        result = self.result
        if not result.alive or self.had_two or not self.cycles:
            return
        for name, there in self.nodes.items():
            since = {run: max(at_s, self.up_since.get(name, inf)) for run, at_s in there.spooled.items()}
            for run, since_s in since.items():
                if since_s + ACKNOWLEDGED_S < self.cycles[-1]:
                    self.say("never acknowledged", f"the report of {run} on {name}, there since {since_s:.3f} s")

    @property
    def up_since(self) -> dict[str, float]:
        """Since when each agent was connected when the run ended."""
        since: dict[str, float] = {}
        for event in self.result.history.events:
            if event.kind == "channel" and event.at_s < self.result.end_s:
                since[event.by] = event.at_s if event.data["up"] else inf
        return {name: max(at_s, self.result.quiet_from_s) for name, at_s in since.items()}

    def check_memory(self, name: str, node: Any) -> None:
        """An agent whose jobs are all gone remembers none of them."""
        agent = node.agent
        if agent._presence.here.runs:
            return  # told above
        kept: Iterable[tuple[str, Any]] = (
            ("tasks", agent._in_force.tasks),
            ("cores", agent._in_force.cores),
            ("times", agent._presence.last_seen.seen_s),
            ("sums", agent._in_force.measuring.sums()),
            ("monitoring groups", agent._ports.tree._unmonitored),
        )
        for what, there in kept:
            if there:
                self.say("memory kept", f"the agent of {name} still has {what} of {sorted(there)}")
        sent = agent._controller.sent
        if len(sent) > len(agent._ports.spool.reports()):
            self.say("memory kept", f"the agent of {name} remembers {len(sent)} sent reports")


def _growth(was: Any, now: Any) -> Growth:
    """How many more times and curves there are at each scale among what is gathered."""
    before = (was["renewal"] if was["renewal"] is not None else was["current"]) if was is not None else {}
    after = now["renewal"] if now["renewal"] is not None else now["current"]
    return {
        scale: (max(0, timed - before.get(scale, (0, 0))[0]), max(0, sampled - before.get(scale, (0, 0))[1]))
        for scale, (timed, sampled) in after.items()
    }
