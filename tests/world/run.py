"""Runs schedules: one, with its result; many, in several processes.

The quiet time after the repairs ends when nothing is left to happen: all jobs have ended, or are held by their owners
or by an administrator; at the latest after `QUIET_S`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from gc import collect, freeze, set_threshold
from itertools import islice
from multiprocessing import get_context
from random import Random
from typing import Any

from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.settings import Settings
from world.agent_faults import AgentFaults
from world.agent_hardware import stand_ins as agents_stand_ins
from world.agents import Agents
from world.daemons import Daemon, Filter, SchedulerDaemon, WatchdogDaemon, settings, short_leases, times
from world.faults import Faults
from world.history import Event, History, Times, new_event
from world.kernel import Broken, World
from world.people import People
from world.ports import Controller, stand_ins
from world.schedule import QUIET_S, SAVED_EVERY_S, Schedule, Step, drawn, kills
from world.slurm import Slurm
from world.slurm_jobs import WAITING, ModelJob

#: In the quiet time daemons sleep so long between two cycles, once the repairs have been seen.
QUIET_INTERVAL_S, QUIET_AFTER_S = 4.0, 4.0
#: How often it is looked whether anything is left to happen, and how long the world goes on after that.
LOOK_S, AFTER_S = 1.0, 4.5
#: The repairs are followed by this time at least. Without a healthy scheduler that is longer than the heartbeat's
#: timeout and the watchdog's five seconds together.
LEAST_QUIET_S = {True: 8.0, False: 20.0}
#: Seeds that one process runs before it reports.
CHUNK = 50
#: Garbage is collected after so many schedules, or values: each world is a large cycle of references.
COLLECTED_EVERY, GARBAGE = 25, 200_000


@dataclass
class Result:
    """What a schedule has led to.

    Attributes:
        history: all events.
        slurm: the model of slurmctld at the end.
        schedule: what was run.
        store: the tries in the store at the end, by job id.
        settings: those of the scheduler (in the mode enforce).
        times: how long things may take (daemons.times).
        is_double: unrelated faults come together, so only safety is promised.
        alive: a healthy scheduler in the mode enforce ran in the quiet time.
        quiet_from_s: the steady second from which all was repaired.
        end_s: the steady second of the end.
        defects: the lines in which our daemons logged defects of their own.
        agents: the agents on the nodes, where the schedule has any.
    """

    history: History
    slurm: Slurm
    schedule: Schedule
    store: Mapping[int, Try]
    settings: Settings
    times: Mapping[str, float]
    is_double: bool
    alive: bool
    quiet_from_s: float
    end_s: float
    defects: list[str] = field(default_factory=list)
    agents: Agents | None = None


def run(schedule: Schedule, *, keeps_log: bool = False) -> Result:
    """Run one schedule."""
    return _Run(schedule, keeps_log=keeps_log).result()


def violations(result: Result) -> list[str]:
    """The promises that do not hold, as sentences; a defect that a daemon has logged is one, too."""
    from world.promises import check

    return [*check(result), *(f"a daemon met a defect of its own: {line}" for line in result.defects)]


def digest(history: History) -> str:
    """A name for the whole history."""
    return hashlib.sha256(repr([tuple(event) for event in history.events]).encode()).hexdigest()


class _World(World):
    """The world with the source of randomness that the model uses, and a history that others can listen to."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(f"slurm {seed}")
        self.heard = _Heard(self)
        self.history = self.heard


@dataclass
class _Listener:
    """Waits for an event of one kind about a job that `concerns`."""

    kind: str
    concerns: Callable[[int], bool]
    action: Callable[[Event], object]


class _Heard(History):
    """A history that tells each listener once."""

    def __init__(self, times: Times) -> None:
        super().__init__(times)
        self.listeners: list[_Listener] = []
        #: Told of every event.
        self.follower: Callable[[Event], object] | None = None

    def add(self, kind: str, job: int = 0, by: str = "world", **data: Any) -> None:
        times = self._times
        self.events.append(new_event(Event, (times.true_s, times.wall_s(), kind, job, by, data)))
        if self.follower is not None:
            self.follower(self.events[-1])
        if self.listeners:
            told = [each for each in self.listeners if each.kind == kind and each.concerns(job)]
            if told:
                self.listeners = [each for each in self.listeners if each not in told]
                for each in told:
                    each.action(self.events[-1])


class _Run:
    """One run of one schedule."""

    def __init__(self, schedule: Schedule, *, keeps_log: bool) -> None:
        self.schedule = schedule
        self.world = _World(schedule.seed)
        site = schedule.site()
        self.slurm = self.world.slurm = Slurm(site, self.world)
        self.controller = Controller(
            self.world, self.slurm, site, Random(f"latency {schedule.seed}"), many=schedule.many, keeps_log=keeps_log
        )
        self.controller.has_library = schedule.seed % 2 == 0
        self.controller.quiet_interval_s = self._quiet_interval_s
        self.controller.queued_check_s = schedule.queued_check_s
        self.controller.restarts = schedule.restarts
        managed = frozenset(schedule.managed)
        self.daemons: dict[str, Daemon] = {
            name: SchedulerDaemon(self.controller, name, managed, schedule.policy)
            for name in ("scheduler", "scheduler-2")
        }
        self.daemons["watchdog"] = WatchdogDaemon(self.controller, "watchdog", managed)
        self.people = People(self.controller, Filter(self.controller, managed))
        self.faults = Faults(self.controller, self.daemons)
        self.agents = self.agent_faults = None
        if schedule.agents is not None:
            self.agents = self.controller.agents = Agents(self.controller, schedule.agents, schedule.seed)
            self.agent_faults = AgentFaults(self.agents, self.people)
            self.daemons |= self.agents.nodes
            self.world.heard.follower = self.agents.heard
        self.settled_s: float | None = None

    def result(self) -> Result:
        """Run it to its end."""
        schedule, world = self.schedule, self.world
        for step in schedule.steps:
            world.at(step.at_s, self._beginning(step))
        world.at(schedule.quiet_from_s, self._begin_quiet_time)
        world.at(schedule.quiet_from_s + LEAST_QUIET_S[schedule.ending == "healthy"], self._look)
        if kills(schedule):
            world.at(Random(f"save {schedule.seed}").random() * SAVED_EVERY_S, self._save)
        self.daemons["scheduler"].start()
        self.daemons["watchdog"].start()
        if self.agents is not None:
            self.agents.begin()
        with short_leases(), stand_ins(self.controller), agents_stand_ins(self.agents):
            world.run(schedule.quiet_from_s + QUIET_S)
            end_s = world.true_s
            if self.agents is not None:
                self.agents.close()
        return Result(
            history=world.history,
            slurm=self.slurm,
            schedule=schedule,
            store=self.controller.store.tries,
            settings=settings("enforce", frozenset(schedule.managed), schedule.queued_check_s),
            times=times(),
            is_double=schedule.is_double,
            alive=schedule.ending == "healthy",
            quiet_from_s=schedule.quiet_from_s,
            end_s=end_s,
            defects=self.controller.defects,
            agents=self.agents,
        )

    def _beginning(self, step: Step) -> Callable[[], None]:
        """The step's action, or what arms its trap, or what lets it wait for an event."""
        if "trap" in step.data:
            return lambda: self.faults.arm(step.data["trap"], lambda job_id: self._do_at_call(step, job_id))
        if "after" in step.data:
            return lambda: self._listen(step)
        return lambda: self._do(step)

    def _do(self, step: Step, event: Event | None = None) -> None:
        if step.what in self.people.actions:
            self.people.do(step, event)
        elif step.what.startswith("agent-"):
            assert self.agent_faults is not None
            self.agent_faults.do(step, event)
        else:
            self.faults.do(step)

    def _do_at_call(self, step: Step, job_id: int) -> None:
        """What a trap lets happen: to the job of the step, or to the one that the call is about."""
        is_met = step.data["trap"].get("meets") and job_id
        times = self.world.true_s, self.world.wall_s()
        self._do(step, Event(*times, "call", job_id, "world", {}) if is_met else None)

    def _listen(self, step: Step) -> None:
        """Let a step follow an event of a job, or of a task of the array, so much later."""
        after, world = step.data["after"], self.world

        def concerns(job_id: int) -> bool:
            if after["job"] is None:
                return job_id != 0
            wanted, job = self.people.ids.get(after["job"]), self.slurm.jobs.get(job_id)
            return wanted is not None and job is not None and wanted in (job_id, job.array_id)

        def follow(event: Event) -> None:
            world.at(world.true_s + after["in_s"], lambda: self._do(step, event))

        world.heard.listeners.append(_Listener(after["event"], concerns, follow))

    def _save(self) -> None:
        if self.controller.slurmctld != "down":
            self.slurm.save()
        if self.world.true_s < self.schedule.quiet_from_s:
            self.world.at(self.world.true_s + SAVED_EVERY_S, self._save)

    def _begin_quiet_time(self) -> None:
        self.people.is_quiet = True
        self.world.heard.listeners.clear()
        self.faults.repair(self.schedule)
        if self.agent_faults is not None:
            self.agent_faults.repair()

    def _quiet_interval_s(self) -> float:
        return QUIET_INTERVAL_S if self.world.true_s > self.schedule.quiet_from_s + QUIET_AFTER_S else 0.0

    def _look(self) -> None:
        """End the run some time after nothing is left to happen."""
        world = self.world
        if self.settled_s is None and are_all_settled(self.slurm):
            self.settled_s = world.true_s
        if self.settled_s is not None and world.true_s >= self.settled_s + AFTER_S:
            world.end()
        else:
            world.at(world.true_s + LOOK_S, self._look)


def are_all_settled(slurm: Slurm) -> bool:
    """Whether every job has ended, or waits because people want it to, or because it can never run."""
    return all(_is_settled(job, slurm) for job in slurm.jobs.values())


def _is_settled(job: ModelJob, slurm: Slurm, behind: frozenset[int] = frozenset()) -> bool:
    """Whether the job is settled. `behind` are the jobs that wait for it."""
    if job.state != WAITING:
        return job.state not in ("RUNNING", "SUSPENDED", "COMPLETING")
    is_placed = bool(job.required) and "n=" in job.admin_comment
    if job.is_held:
        return not is_placed  # a scheduler still takes the placement back
    if job.dependency is None or job.dependency_state == "failed":
        return job.dependency is not None
    if job.id in behind:
        return True  # jobs that wait for each other: slurmctld has lost a job, and has given its id again
    others = [other for other in slurm.jobs.values() if job.dependency[1][0] in (other.id, other.array_id)]
    return any(
        other.state == WAITING and other.id != job.id and _is_settled(other, slurm, behind | {job.id})
        for other in others
    )


# --- many

Draw = Callable[[int], Schedule]


@dataclass
class Found:
    """What one seed violates; `broken` if the simulation itself failed there."""

    seed: int
    violations: list[str]
    broken: str = ""


def tried(seed: int, draw: Draw = drawn) -> Found | None:
    """Run the schedule of this seed; None if all promises hold."""
    try:
        broken_promises = violations(run(draw(seed)))
    except Broken as problem:
        return Found(seed, [], str(problem))
    return Found(seed, broken_promises) if broken_promises else None


def begin_process() -> None:
    """Prepare a process: compile what is compiled at its first use, and let garbage be collected seldom.

    It has the directory of compiled code from its parent, which must have called `keep_by_state`.
    """
    set_threshold(GARBAGE)
    for seed in range(3):
        run(drawn(seed))
    collect()
    freeze()


def _chunk(seeds: Sequence[int], draw: Draw) -> tuple[int, list[Found]]:
    found = []
    for at, seed in enumerate(seeds):
        problem = tried(seed, draw)
        if problem is not None:
            found.append(problem)
        if at % COLLECTED_EVERY == COLLECTED_EVERY - 1:
            collect()
    collect()
    return len(seeds), found


def many(
    seeds: Iterable[int],
    processes: int,
    done: Callable[[int, Sequence[Found]], object] = lambda _number, _found: None,
    most_found: int = 5,
    draw: Draw = drawn,
) -> list[Found]:
    """Run the schedules that these seeds draw in so many processes; stop after so many that violate a promise.

    `done` is told how many more schedules have been run, and which of them violated a promise.
    """
    chunks = _chunks(iter(seeds))
    found: list[Found] = []
    with ProcessPoolExecutor(processes, get_context("spawn"), begin_process) as pool:
        pending: set[Future[tuple[int, list[Found]]]] = set()
        try:
            while len(found) < most_found:
                while len(pending) < 2 * processes and (chunk := next(chunks, None)):
                    pending.add(pool.submit(_chunk, chunk, draw))
                if not pending:
                    break
                ready, pending = wait(pending, return_when=FIRST_COMPLETED)
                for each in ready:
                    number, more = each.result()
                    done(number, more)
                    found += more
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return sorted(found, key=lambda each: each.seed)


def _chunks(seeds: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(islice(seeds, CHUNK)):
        yield chunk
