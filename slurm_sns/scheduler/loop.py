"""The loop: observe, plan, send, once every interval, until told to stop.

Its promises (CONTRIBUTING.md, "Modes and failure"): Slurm is never worse off. Each placement is recorded before it is
sent, so a crash between the two leaves a held job that is planned again, never a job started twice. Every refusal by
Slurm is handled. A heartbeat is written during a long cycle while Slurm answers, and at the end of each cycle. While
slurmctld or the store does not answer, nothing is placed; after `heartbeat_timeout_s` submissions pass through and the
watchdog releases the held jobs. A clean stop first makes the heartbeat stale and then releases the jobs that are still
held, so that no job is submitted held after the release. A scheduler that hands over to the next one leaves everything
as it is; the heartbeat grows stale by itself if no scheduler follows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.model import Action, ActiveJob, Plan, Release, Start
from slurm_sns.policies.base import Policy
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.cycle_input import Situation, read_situation
from slurm_sns.scheduler.gc_pause import uncollected
from slurm_sns.scheduler.observe.follow_up import failed, verified
from slurm_sns.scheduler.observe.nice import boosted
from slurm_sns.scheduler.observe.observed import Observation
from slurm_sns.scheduler.observe.records import JobRecord, Stage
from slurm_sns.scheduler.orders import NotSent, PlacementOrder, Replaced
from slurm_sns.scheduler.outage_log import Outage
from slurm_sns.scheduler.policy_history import NO_MEMORY, Remembering
from slurm_sns.scheduler.ports import Clock, Decisions, Executor, Heartbeat, History, KillSwitch, Log, Profiles, State
from slurm_sns.scheduler.release import release_held
from slurm_sns.scheduler.sending import PolicyChange, Sending, described
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG
from slurm_sns.scheduler.snapshot.geometry import whole_memory_mb
from slurm_sns.scheduler.snapshot.spreading import NO_SPREADING, Spreading
from slurm_sns.scheduler.snapshot.withholding import NOTHING_WITHHELD
from slurm_sns.submit import mark

#: While slurmctld or the store does not answer, it is asked again at least this often.
LONGEST_RETRY_S = 10.0
#: The least time between two cycles when a policy asks for an earlier one.
LEAST_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class View:
    """What the last cycle saw and did, for status, queue, explain and profile. Immutable: other threads read it.

    `at_s` is when the cycle ended, `took_s` how long it took; `cycles` and `placed` count since the scheduler began.
    `disabled` is True while the kill switch is on. `programs` are the profiles that the cycle planned with.
    """

    at_s: float
    took_s: float
    mode: str
    disabled: bool
    cycles: int
    placed: int
    situation: Situation
    plan: Plan
    programs: Mapping[str, Program] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside the loop that it uses."""

    state: State
    executor: Executor
    history: History
    decisions: Decisions
    profiles: Profiles
    heartbeat: Heartbeat
    kill_switch: KillSwitch
    clock: Clock
    log: Log


class Scheduler:
    """The scheduler of one cluster. It calls `publish` with a `View` after every cycle."""

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        settings: Settings,
        spreading: Spreading = NO_SPREADING,
        publish: Callable[[View], None] = lambda _: None,
        *,
        remembering: Remembering = NO_MEMORY,
    ) -> None:
        self._ports = ports
        self._policy = policy
        self._settings = settings
        self._spreading = spreading
        self._publish = publish
        self._stored: Mapping[int, JobRecord] = dict(ports.history.load())
        self._records = {job_id: verified(record) for job_id, record in self._stored.items()}
        if self._stored:
            ports.log(f"going on with {len(self._stored)} jobs on record from the last run")
        self._last_starts: Mapping[int, tuple[str, ...]] = {}
        self._backlog = NO_BACKLOG
        self._active: tuple[ActiveJob, ...] = ()
        self._withholding = NOTHING_WITHHELD
        self._problems_logged: set[str] = set()
        self._sending = Sending(ports.executor, ports.heartbeat, ports.clock, ports.log)
        self._remembering = remembering
        self._history = remembering.recall()
        self._stored_memory = self._memory = None if self._history is None else remembering.remember(self._history)
        self._outage = Outage(ports.log, f"; trying again, at least every {LONGEST_RETRY_S:g} s")
        self._record_outage = Outage(ports.log)
        self._cycles = 0
        self._placed = 0

    @property
    def trouble(self) -> str:
        """What keeps the loop from planning or from writing the decision record now; empty when nothing does."""
        return "; ".join(filter(None, (self._outage.now, self._record_outage.now)))

    def run(
        self, interval_s: float, is_stopping: Callable[[], bool], hands_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Run cycles until `is_stopping`. After a cycle that fails, wait twice as long before each further try.

        The longest wait is `LONGEST_RETRY_S`. The run ends with a clean stop, unless this scheduler `hands_over` to the
        next one.
        """
        retry_s = interval_s
        while not is_stopping():
            started_s = self._ports.clock.now()
            try:
                plan = self.cycle().plan
                self._outage.over(self._ports.clock.now())
                retry_s = interval_s
                due_s = until_next_s(plan, started_s, interval_s)
                # A clock that was stepped back in the meantime must not put us to sleep for longer.
                pause_s = min(due_s, due_s - (self._ports.clock.now() - started_s))
            except SnsError as problem:
                self._outage.met(str(problem), self._ports.clock.now())
                pause_s, retry_s = retry_s, min(LONGEST_RETRY_S, 2 * retry_s)
            except Exception as problem:  # noqa: BLE001 - the outermost loop: a defect must not end it
                self._outage.met_defect(problem, self._ports.clock.now())
                pause_s, retry_s = retry_s, min(LONGEST_RETRY_S, 2 * retry_s)
            self._ports.clock.sleep(max(0.0, pause_s))
        if not hands_over():
            self.stop()

    def repeat(self, cycles: int, interval_s: float) -> None:
        """Run this number of cycles, one every interval. Held jobs stay held afterwards."""
        for left in reversed(range(cycles)):
            self.cycle()
            if left:
                self._ports.clock.sleep(interval_s)

    @uncollected()
    def cycle(self) -> View:
        """Run one cycle: observe, plan, send.

        Raises:
            SnsError: slurmctld or the store does not answer. Nothing is lost: the next cycle starts from what Slurm
                shows by then.
        """
        ports, started_s = self._ports, self._ports.clock.now()
        self._sending.begin(started_s)
        disabled = ports.kill_switch.is_on()
        programs = ports.profiles.load()
        if programs is not self._spreading.programs:
            self._spreading = replace(self._spreading, programs=programs)
        observation = ports.state.observe()
        situation = read_situation(
            observation,
            self._records,
            self._settings,
            started_s,
            self._spreading,
            backlog_before=self._backlog,
            withholding=self._withholding,
            history=self._history,
            active_before=self._active,
        )
        self._records = dict(situation.records)
        self._backlog, self._active = situation.backlog, situation.snapshot.active
        self._store()
        self._log_new_problems(situation)
        plan, notes = Plan(), dict[int, str]()
        lost: Unreachable | None = None
        if disabled:  # without corrections first: they would hold jobs that the release, by what we saw, takes for free
            self._release(observation, "disabled")
        else:
            notes = self._correct(situation)
            plan = self._plan(situation, started_s)
            self._memory = self._remembering.remember(plan.history)
            if self._settings.mode == "enforce":
                plan, lost = self._commit(situation, plan, notes)
            else:
                self._store()
        self._note_cycle(started_s, situation, plan, notes)
        if lost is not None:
            raise lost
        self._sending.restore_nice(observation.jobs, self._records)
        if not disabled:
            self._sending.split(situation)
        self._cycles += 1
        now_s = ports.clock.now()
        ports.heartbeat.beat(now_s)
        took_s = max(0.0, now_s - started_s)  # the clock may have been stepped back
        view = View(now_s, took_s, self._settings.mode, disabled, self._cycles, self._placed, situation, plan, programs)
        self._publish(view)
        return view

    def _correct(self, situation: Situation) -> dict[int, str]:
        """Send the corrections; return what was done, by job id.

        A job that is given to Slurm is Slurm's from this moment on: its owner may hold it before the next cycle.
        """
        notes: dict[int, str] = {}
        for change in self._sending.correct(situation):
            notes[change.job_id] = described(change)
            record = self._records.get(change.job_id)
            is_given = isinstance(change, Release) or not change.hold
            if is_given and record is not None and record.stage is not Stage.OWNER_HELD:
                self._records[change.job_id] = replace(record, stage=Stage.RELEASED)
        return notes

    def _only_waiting(self, plan: Plan, situation: Situation) -> Plan:
        """The plan without starts and releases of jobs that do not wait in the snapshot; each is logged as an error."""
        waiting = {job.id for job in situation.snapshot.waiting}
        wrong = [each for each in plan.actions if isinstance(each, Start | Release) and each.job_id not in waiting]
        for action in wrong:
            name = type(action).__name__
            self._ports.log(f"error: the plan has a {name} of job {action.job_id}, which does not wait; not sent")
        return replace(plan, actions=tuple(each for each in plan.actions if each not in wrong)) if wrong else plan

    def _plan(self, situation: Situation, now_s: float) -> Plan:
        """The policy's plan. Where no capacity is withheld for a waiting job, its reason to wait says so, and why."""
        plan = self._only_waiting(self._policy.plan(situation.snapshot), situation)
        self._history = plan.history
        users = {job_id: job.user_id for job_id, job in situation.jobs.items()}
        self._withholding = self._withholding.after(plan, users, now_s, self._settings.withhold_limit_s)
        more = {
            job_id: f"{plan.waiting[job_id]}; no capacity is withheld for it: {why}"
            for job_id, why in situation.not_withheld.items()
            if job_id in plan.waiting
        }
        return replace(plan, waiting={**plan.waiting, **more}) if more else plan

    def stop(self) -> None:
        """Clean stop: make submissions pass through from now on, and release the jobs that we hold."""
        try:
            self._ports.heartbeat.stop()
            observation = self._ports.state.observe()
            self._release(observation, "clean stop")
            self._sending.restore_nice(observation.jobs, self._records, shows_life=False)
        except SnsError as problem:
            self._ports.log(f"{problem}; the watchdog will release what is held")

    def _release(self, observation: Observation, reason: str) -> None:
        """Release every job that we hold to Slurm."""
        ports = self._ports
        known = (observation.jobs, self._records, self._settings, ports.clock.now())
        release_held(*known, executor=ports.executor, log=ports.log, reason=reason)

    def _log_new_problems(self, situation: Situation) -> None:
        """Log each unreadable record, and each job that runs differently from its plan, unless the last cycle did."""
        found = {f"{name}: {why}" for name, why in situation.unreadable.items()}
        found |= {f"error: job {job_id} {how}" for job_id, how in situation.differences.items()}
        for line in sorted(found - self._problems_logged):
            self._ports.log(line)
        self._problems_logged = found

    def _commit(self, situation: Situation, plan: Plan, notes: dict[int, str]) -> tuple[Plan, Unreachable | None]:
        """Carry the plan's actions out: pin and release every started job, one RPC each; add notes on all others.

        The actions are sent in the plan's order, except that all placements are sent together, in the place of the
        first one: the suspensions before it make room for them.

        Returns:
            The plan as it was carried out, and the error that ended the sending early (None: all was sent). Jobs whose
            placement was not sent are still held.
        """
        if not plan.actions:
            self._store()
            return replace(plan, waiting={**plan.waiting, **notes}) if notes else plan, None
        now_s = self._ports.clock.now()
        self._records |= {start.job_id: _placement_record(start, situation, now_s) for start in plan.starts}
        self._store()
        first = next((at for at, action in enumerate(plan.actions) if isinstance(action, Start)), len(plan.actions))
        placed: list[Start] = []
        others, lost = self._carry_out(situation, plan.actions[:first])
        if lost is None:
            lost = self._place(situation, plan, placed, notes)
        self._placed += len(placed)
        if lost is None:
            self._store()
            later, lost = self._carry_out(situation, plan.actions[first:])
            others += later
        notes |= {action.job_id: described(action) for action in others}
        return replace(plan, actions=(*placed, *others), waiting={**plan.waiting, **notes}), lost

    def _place(
        self, situation: Situation, plan: Plan, placed: list[Start], notes: dict[int, str]
    ) -> Unreachable | None:
        """Send the placements and add those that Slurm accepted to `placed`; return the error that ended this early."""
        try:
            for start, refusal in self._sending.place([self._placement(start, situation) for start in plan.starts]):
                if refusal is None:
                    self._records[start.job_id] = replace(self._records[start.job_id], placed_s=self._ports.clock.now())
                    self._log_placement(start, placed[-1] if placed else None)
                    placed.append(start)
                else:
                    notes[start.job_id] = self._note_refusal(refusal, start)
        except Unreachable as problem:
            return problem
        return None

    def _carry_out(
        self, situation: Situation, actions: Sequence[Action]
    ) -> tuple[tuple[PolicyChange, ...], Unreachable | None]:
        """Send the actions that start no job; return those that were done, and the error that ended this early."""
        done: list[PolicyChange] = []
        try:
            done.extend(self._sending.carry_out(actions, situation, self._settings))  # keeps what came before
        except Unreachable as problem:
            return tuple(done), problem
        return tuple(done), None

    def _placement(self, start: Start, situation: Situation) -> PlacementOrder:
        """The order that places the job of this start."""
        job, record = situation.jobs[start.job_id], self._records[start.job_id]
        own_nice, memory_mb = record.nice, record.given_memory_mb or None
        tasks = None if start.alternative.tasks_per_node is None else job.tasks
        nice = boosted(own_nice, situation.priority_type)
        extra = mark.with_nice(job.hints, own_nice)
        return PlacementOrder(start, nice, memory_mb, tasks, extra, Replaced.of(job))

    def _note_refusal(self, refusal: Refused, start: Start) -> str:
        """Log and record that Slurm refused the placement; return the reason why the job waits now."""
        why = f"Slurm refused the placement on {','.join(start.nodes)}: {refusal}"
        self._ports.log(f"job {start.job_id}: {why}")
        record = self._records[start.job_id]
        if isinstance(refusal, NotSent):  # then nodes that the job has by now are its owner's
            record = replace(record, nodes=())
        self._records[start.job_id] = failed(record, why, self._settings, self._ports.clock.now())
        return why

    def _log_placement(self, start: Start, previous: Start | None) -> None:
        """Log one line for a placed job, with the reason unless it equals that of the line before."""
        why = "" if previous is not None and previous.reason == start.reason else f": {start.reason}"
        self._ports.log(f"job {start.job_id}: placed on {','.join(start.nodes)}{why}")

    def _store(self) -> None:
        """Save our records and the policy's memory; write only what changed since they were last saved."""
        known = self._stored.get
        # Most records are the very same object as in the last cycle, which takes no comparison of their fields.
        changed = [
            record
            for job_id, record in self._records.items()
            if (stored := known(job_id)) is not record and stored != record
        ]
        gone = [job_id for job_id in self._stored if job_id not in self._records]
        memory = None if self._memory == self._stored_memory else self._memory
        if memory is not None:
            self._ports.history.save(changed, gone, memory)
            self._stored_memory = memory
        elif changed or gone:
            self._ports.history.save(changed, gone)
        self._stored = dict(self._records)

    def _note_cycle(self, at_s: float, situation: Situation, plan: Plan, notes: Mapping[int, str]) -> None:
        """Add the cycle to the decision record. That record only explains, so the scheduler goes on when this fails."""
        if self._settings.mode != "enforce":
            plan = self._new_starts(plan)
        if not plan.starts and not notes:
            return
        owners = {job_id: job.user_id for job_id, job in situation.jobs.items()}
        try:
            self._ports.decisions.record(
                at_s,
                situation.snapshot,
                plan,
                notes,
                owners=owners,
                explanations=situation.explanations,
                tasks={job_id: job.task for job_id, job in situation.jobs.items() if job.task is not None},
                repeated=situation.repeated,
            )
            self._record_outage.over(at_s)
        except SnsError as problem:
            self._record_outage.met(str(problem), at_s)

    def _new_starts(self, plan: Plan) -> Plan:
        """The plan with only the starts that the last plan did not have: unsent starts come again every cycle."""
        starts = {start.job_id: start.nodes for start in plan.starts}
        new = tuple(start for start in plan.starts if self._last_starts.get(start.job_id) != start.nodes)
        self._last_starts = starts
        return replace(plan, actions=new)


def until_next_s(plan: Plan, began_s: float, interval_s: float) -> float:
    """How long after a cycle began the next one begins: when the plan asks for it, at most `interval_s` later."""
    if plan.wake_s is None:
        return interval_s
    return min(interval_s, max(LEAST_INTERVAL_S, float(plan.wake_s) - began_s))


def _placement_record(start: Start, situation: Situation, now_s: float) -> JobRecord:
    """The record of a job that is about to be placed.

    If it gets whole nodes, it gets their memory, and its own memory request is kept, too.
    """
    job = situation.jobs[start.job_id]
    tasks = 0 if start.alternative.tasks_per_node is None else job.tasks
    known = situation.records[start.job_id]
    record = replace(known, stage=Stage.PLACED, nodes=start.nodes, placed_s=now_s, tasks=tasks, difference="")
    if not start.alternative.exclusive:
        return record
    return replace(
        record,
        memory_per_cpu_mb=job.memory_per_cpu_mb,
        memory_per_node_mb=job.memory_per_node_mb or 0,
        given_memory_mb=whole_memory_mb([situation.nodes[name] for name in start.nodes]),
    )
