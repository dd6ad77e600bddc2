"""Carries out what a cycle has decided: lapsed gates, the orders of the state table, the plan, then other changes.

Nothing here must be known later: what is on a job stands in its record. A refused or unanswered order is decided anew
by what the next observation shows. Only its failed placements are remembered (tries), the nodes of placements that
Slurm has not accepted (Slurm may have put them on the job before it refused the rest), and the jobs that Slurm did not
let into more partitions: while this scheduler runs, that is not tried again.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from slurm_sns.errors import Infeasible, Outdated, Refused, SnsError, Unreachable
from slurm_sns.log import Log
from slurm_sns.model import Plan, Reason, Release, Start, WaitKind
from slurm_sns.scheduler.agent_link import AgentLink
from slurm_sns.scheduler.gate.failed_placements import failed, not_started
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.gate.leases import ByLimits, next_gate_s, no_estimates, renewals
from slurm_sns.scheduler.gate.orders import (
    Answer,
    GateOrder,
    Order,
    OrderKind,
    Placement,
    free,
    place,
    reached,
    regate,
    renew,
    round_robin,
    widen,
)
from slurm_sns.scheduler.history import StoredTries
from slurm_sns.scheduler.observation import UNREADABLE, ObservedJob
from slurm_sns.scheduler.pace import CostPace
from slurm_sns.scheduler.ports import NONE_TAKEN_BACK, Ports
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.geometry import takes_all_memory, whole_memory_mb
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.task_ids import record_of, task_id, task_of
from slurm_sns.wire.values import Grant, RunId

#: The most follow-ups in one cycle, users taking turns; the next cycle goes on.
MOST_FOLLOW_UPS = 200
#: The most boosts that a cycle takes off running jobs, after its placements. Each takes an RPC of 2 ms (seen).
MOST_UNBOOSTED = 100
#: With so many gated jobs those gates that have not lapsed need not be moved in each cycle where that takes long, but
#: are after this time at most, well before `leases.MOST_INTERVAL_S` has gone by.
MANY_GATED, RENEWS_S = 10_000, 5.0
#: Where so many were moved at once, others may be due: then the next cycle goes on.
FLOOD = 256

#: What is sent in batches.
_Sent = TypeVar("_Sent")

#: Makes the token of a grant, with the newest key. It raises SnsError where there is no key.
Sign = Callable[[Grant], str]


class GrantSigner:
    """Signs the grants of placements. A placement whose grant cannot be signed is sent without one."""

    def __init__(self, sign: Sign | None, log: Log) -> None:
        """`sign` is None where there are no agents: then nothing is granted."""
        self._sign, self._log = sign, log
        self._problem = ""

    def of(self, start: Start, job: ObservedJob, *, samples: bool = False) -> str | None:
        """The token of this placement's grant; None where there are no agents, or it cannot be signed.

        `samples`: the run's ways are to be changed, so that its curves are measured.
        """
        if self._sign is None:
            return None
        try:
            token = self._sign(grant(start, job, samples=samples))
        except SnsError as problem:
            self._say(f"placements are sent without grants: {problem}")
            return None
        self._say("")
        return token

    def _say(self, problem: str) -> None:
        """Log what keeps grants from being signed when that begins, and when it is over."""
        if problem != self._problem:
            self._log(problem or "placements are sent with grants again")
        self._problem = problem


def grant(start: Start, job: ObservedJob, *, samples: bool = False) -> Grant:
    """What the placement gives the next run of this job.

    `start.job_id` is our id of an array's task if the task is placed straight from the array's record, which is `job`.
    """
    alternative = start.alternative
    return Grant(
        RunId(start.job_id, job.restarts),
        start.nodes,
        alternative.demand.ways,
        alternative.demand.bandwidth_gbps,
        float(start.cpu_share),
        has_nodes_alone=alternative.exclusive,
        samples=samples,
    )


#: How often the heartbeat is written while a cycle sends changes of many jobs.
SIGN_OF_LIFE_S = 1.0
#: Placements are sent for so long in a cycle, in batches of so many, and so are renewals. Then the queue is looked at
#: anew: one cycle that filled ten thousand empty nodes took four minutes, and first leases lapsed meanwhile.
MOST_SENDING_S, BATCH = 10.0, 512
PUT_OFF = Reason("it is planned anew in the next cycle: Slurm was sent other placements for all of this one")
OUTDATED = Reason("it is planned anew in the next cycle: somebody has changed it while this one was planned")


class OrderQueue:
    """Sends a scheduler's orders. If slurmctld does not answer, its methods raise Unreachable and send no more.

    So they do when this process stood still for longer than the heartbeat's timeout: the watchdog has freed jobs since.
    """

    def __init__(self, ports: Ports, timeout_s: float) -> None:
        self._executor, self._heartbeat = ports.executor, ports.heartbeat
        self._clock, self._log = ports.clock, ports.log
        self._timeout_s = timeout_s
        self._lively_s = self._lively_steady_s = 0.0
        #: The jobs, and the arrays of tasks, for which orders of the gate were sent in this cycle.
        self.changed: set[int] = set()

    def begin(self, now_s: float) -> None:
        """Note that a cycle begins; the heartbeat is next due `SIGN_OF_LIFE_S` later."""
        self._lively_s, self._lively_steady_s = now_s, self._clock.steady()
        self.changed = set()

    def send(self, orders: Iterable[GateOrder]) -> Iterator[tuple[GateOrder, Refused | None]]:
        """Send these orders; yield each when Slurm answers, with the refusal (None: Slurm has made the change).

        An order to a job that has changed since it was looked at is not sent, and not yielded.
        """
        for answer in self._answers(orders):
            if isinstance(answer.order, GateOrder) and not isinstance(answer.refused, Outdated):
                self.changed.add(record_of(answer.order.job_id))
                yield answer.order, answer.refused
            self.show_sign_of_life()

    def answers(self, orders: Iterable[Order]) -> Iterator[Answer]:
        """Send any orders; yield each answer when Slurm gives it."""
        for answer in self._answers(orders):
            yield answer
            self.show_sign_of_life()

    def follow_up(
        self, changes: Sequence[tuple[GateOrder, str]], told: Collection[int] = ()
    ) -> Iterator[tuple[GateOrder, str]]:
        """Send these orders, each with the reason for it; log all, and yield those that Slurm has carried out.

        A refused one is not tried again here: the job has started, ended or been changed in the meantime, and the next
        observation shows what is to be done. Of the jobs `told` the log has a line of its own (never_starting).
        """
        whys = {order.job_id: why for order, why in changes}
        logged: set[str] = set()
        for order, refusal in self.send(order for order, _ in changes):
            why = whys[order.job_id]
            line = f"job {order.job_id}: {why or order.kind}"
            if refusal is not None:
                self._log(f"{line}; Slurm refused the change: {refusal}")
                continue
            if why and line not in logged and order.job_id not in told:
                self._log(line)
            logged.add(line)
            yield order, why

    def _answers(self, orders: Iterable[Order]) -> Iterator[Answer]:
        answers = iter(reached(self._executor.execute(orders)))
        self._check_pace(self._still_s())
        for answer in answers:
            still_s = self._still_s()  # before the caller shows a sign of life
            yield answer
            self._check_pace(max(still_s, self._still_s()))

    def _still_s(self) -> float:
        """How long ago the last sign of life was; by the steady clock, so that nothing is lost when the time is set."""
        return self._clock.steady() - self._lively_steady_s

    def _check_pace(self, still_s: float) -> None:
        if still_s > self._timeout_s:
            raise Unreachable(f"this process stood still for {still_s:.0f} s")

    def show_sign_of_life(self) -> None:
        """Write the heartbeat during a long cycle; also after the clock was stepped forward or back."""
        now_s = self._clock.now()
        if abs(now_s - self._lively_s) >= SIGN_OF_LIFE_S:
            self._heartbeat.beat(now_s)
            self._lively_s, self._lively_steady_s = now_s, self._clock.steady()


class Dispatcher:
    """Sends follow-ups, plans and renewals; `placed` counts the placements that Slurm has accepted.

    `taken_back` counts those that were undone because Slurm did not start them in time. All methods but `commit` raise
    Unreachable if slurmctld does not answer.
    """

    def __init__(
        self,
        ports: Ports,
        settings: Settings,
        tries: StoredTries,
        agent_link: AgentLink,
        sign: Sign | None,
        *,
        by_limits: ByLimits = no_estimates,
    ) -> None:
        self._settings, self._tries, self._agent_link = settings, tries, agent_link
        self._by_limits = by_limits
        self._clock, self._log = ports.clock, ports.log
        self._grants = GrantSigner(sign, ports.log)
        self.orders = OrderQueue(ports, settings.heartbeat_timeout_s)
        self._pace = CostPace(ports.clock.steady, RENEWS_S)
        self.placed = 0
        self.taken_back = NONE_TAKEN_BACK
        #: When gates were renewed during the last minute.
        self._renewals_s: deque[float] = deque()
        #: When gates were last renewed, and lapsed ones: a new scheduler makes up for the time in which none ran.
        self._renewed_s = self._lapsed_s = float("-inf")
        #: The nodes of placements that Slurm has refused or not answered, by job id.
        self._refused: dict[int, tuple[str, ...]] = {}
        #: The jobs that Slurm did not let into more partitions.
        self._not_widened: set[int] = set()

    def refused(self, jobs: Iterable[ObservedJob]) -> frozenset[int]:
        """Those of all jobs that have the nodes of a placement that Slurm did not accept, and no record of it.

        A task may have been in its array's record when it was to be placed.
        """
        found: dict[int, int] = {}
        for job in jobs if self._refused else ():
            key = self._refused_key(job)
            is_there = set(self._refused.get(key, ())) == set(job.pinned_to)
            if key in self._refused and is_there and job.record is not None and not job.record.is_placed:
                found[key] = job.id
        self._refused = {key: self._refused[key] for key in found}
        return frozenset(found.values())

    def _refused_key(self, job: ObservedJob) -> int:
        return job.id if job.task is None or job.id in self._refused else task_id(*job.task)

    @property
    def renewed_per_minute(self) -> int:
        """How many gates were renewed during the last minute."""
        since_s = self._clock.now() - 60
        while self._renewals_s and not since_s <= self._renewals_s[0] <= since_s + 60:
            self._renewals_s.popleft()
        return len(self._renewals_s)

    def renew_lapsed(self, situation: Situation) -> None:
        """Gate the jobs again whose gates have lapsed, before anything else: Slurm may start them at any moment.

        One that is to be freed is not among them.
        """
        followed = {order.job_id for order, _ in situation.follow_ups}
        lapsed = [job for job in _with(Status.LAPSED, situation) if job.id not in followed]
        # What Slurm would start next comes first.
        lapsed.sort(key=lambda job: (-job.priority, job.submit_s, job.id))
        self._renew(self._renewals(situation, lapsed, self._lapsed_s))
        self._lapsed_s = self._clock.now()

    def renew_others(self, situation: Situation) -> None:
        """Move the gates that are due, of the jobs that this cycle has not changed: a placed task may be the record.

        Where `MANY_GATED` wait, and it takes long, it is done more seldom, and for more jobs at once. With 120,000 jobs
        the first update in a second takes slurmctld 0.2 s: job_submit/lua makes a table of all jobs, unless spared.
        """
        if situation.surveyed.gated >= MANY_GATED and not self._pace.is_due():
            return
        with self._pace.timed():
            gated = [job for job in _with(Status.GATED, situation) if job.id not in self.orders.changed]
            orders = self._renewals(situation, gated, self._renewed_s)
            self._renew(orders)
            self._renewed_s = self._clock.now()
        if len(orders) >= FLOOD:
            self._pace.hurry()

    def _renewals(self, situation: Situation, jobs: Sequence[ObservedJob], last_s: float) -> list[GateOrder]:
        """The orders that move the gates that are due, the most urgent first; before, that was done at `last_s`."""
        now_s = self._clock.now()
        interval_s = max(0.0, now_s - last_s)  # the clock may have been stepped back
        known = ((job, situation.statuses[job.id]) for job in jobs)
        due = renewals(
            known,
            now_s,
            situation.surveyed.lease,
            interval_s,
            situation.observation.database_queue,
            by_limits=self._by_limits,
        )
        return [order for job, gate_s in due if (order := renew(job, gate_s, now_s)) is not None]

    def _renew(self, orders: Sequence[GateOrder]) -> None:
        for batch in self._in_time(orders):
            for order, refusal in self.orders.send(batch):
                if refusal is None:
                    self._renewals_s.append(self._clock.now())
                else:
                    self._log(f"job {order.job_id}: Slurm refused to move its gate: {refusal}")

    def follow_up(self, situation: Situation) -> dict[int, str]:
        """Send the orders of the state table, users taking turns; return what was done, by job id."""
        notes: dict[int, str] = {}
        wanted = [each for each in situation.follow_ups if each[0].kind is not OrderKind.UNBOOST]
        if not wanted:
            return notes
        jobs = {job.id: job for job in situation.observed}
        in_turn = round_robin(wanted, lambda each: jobs[each[0].job_id].user_id, MOST_FOLLOW_UPS)
        for order, why in self.orders.follow_up(in_turn, situation.never):
            notes[order.job_id] = why
            job, tries = jobs[order.job_id], self._tries.now
            if order.nodes is not None:
                self._refused.pop(self._refused_key(job), None)  # the same nodes are its owner's from now on
            if situation.statuses[job.id] is Status.OVERDUE and order.kind is OrderKind.REGATE:
                tried = tries[job.id] = not_started(job, tries.get(job.id), self._settings, self._clock.now())
                self.taken_back = self.taken_back.with_one(is_limited=bool(tried.limited_by))
            elif order.kind is OrderKind.FREE:
                tries.pop(job.id, None)
        return notes

    def take_back(self, situation: Situation, jobs: Iterable[ObservedJob], why: str) -> dict[int, str]:
        """Gate placed jobs again, which nobody has failed to start; return what was done, by job id."""
        now_s, lease = self._clock.now(), situation.surveyed.lease
        gates = ((job, next_gate_s(job, now_s, lease)) for job in jobs)
        orders = ((job, None if gate_s is None else regate(job, gate_s, now_s)) for job, gate_s in gates)
        sent = [(order, why) for _, order in orders if order is not None]
        return {order.job_id: why for order, why in self.orders.follow_up(sent)}

    def unboost(self, situation: Situation) -> None:
        """Take the boost off jobs that have started."""
        if not situation.observation.has_boost:
            return
        started = [each for each in situation.follow_ups if each[0].kind is OrderKind.UNBOOST]
        for _ in self.orders.follow_up([(order, "") for order, _ in started[:MOST_UNBOOSTED]]):
            pass

    def commit(self, situation: Situation, plan: Plan, notes: dict[int, str]) -> tuple[Plan, Unreachable | None]:
        """Carry the plan's actions out: an RPC places and opens each started job; add notes on all others.

        The releases come last: Slurm may start a job at once that is given to it. Then jobs that the plan does not
        start get the other partitions in which they may run from now on.

        Returns:
            The plan as it was carried out, and the error that ended the sending early (None: all was sent). Jobs whose
            placement was not sent are still gated.
        """
        placed: list[Start] = []
        releases = [action for action in plan.actions if isinstance(action, Release)]
        lost = self._place(plan.starts, situation, placed, notes) or self._free(releases, situation, notes)
        self.placed += len(placed)
        lost = lost or self._widen(situation, notes)
        return replace(plan, actions=tuple(placed), waiting={**plan.waiting, **notes}), lost

    def _place(
        self, starts: Sequence[Start], situation: Situation, placed: list[Start], notes: dict[int, str]
    ) -> Unreachable | None:
        """Send the placements and add those that Slurm accepted to `placed`; return the error that ended this early."""
        now_s = self._clock.now()
        sampled = self._agent_link.place(starts, situation, now_s)
        orders: dict[int, tuple[GateOrder, Start]] = {}
        for start in starts:
            job = situation.job(start.job_id)
            assert job is not None  # noqa: S101  planning lets no other through
            try:
                placement = self._placement(start, job, situation, samples=job.id in sampled)
                order = place(job, placement, now_s, has_boost=situation.observation.has_boost)
                orders[job.id] = order, start
            except Infeasible as never:
                notes[job.id] = self._note_failure(str(never), job, situation)
        left = dict(orders)
        try:
            for batch in self._in_time(list(orders)):
                self._send_placements({job_id: left.pop(job_id) for job_id in batch}, situation, placed, notes)
        except Unreachable as problem:
            return problem
        notes |= {start.job_id: PUT_OFF for _, start in left.values()}
        return None

    def _in_time(self, sent: Sequence[_Sent]) -> Iterator[Sequence[_Sent]]:
        """Batches of what is to be sent, for as long as a cycle may send."""
        until_s = self._clock.steady() + MOST_SENDING_S
        for at in range(0, len(sent), BATCH):
            if self._clock.steady() >= until_s:
                return
            yield sent[at : at + BATCH]

    def _send_placements(
        self,
        orders: Mapping[int, tuple[GateOrder, Start]],
        situation: Situation,
        placed: list[Start],
        notes: dict[int, str],
    ) -> None:
        """Send these placements and add those that Slurm accepted to `placed`, notes on the others to `notes`."""
        self._refused |= {job_id: start.nodes for job_id, (_, start) in orders.items()}
        unsent = {job_id: start for job_id, (_, start) in orders.items()}
        for order, refusal in self.orders.send([order for order, _ in orders.values()]):
            start = unsent.pop(order.job_id)
            job = situation.job(start.job_id)
            assert job is not None  # noqa: S101  planning lets no other through
            if refusal is None:
                del self._refused[order.job_id]
                self._log_placement(start, job, placed[-1] if placed else None)
                placed.append(start)
            else:
                why = f"Slurm refused the placement on {','.join(start.nodes)}: {refusal}"
                notes[start.job_id] = self._note_failure(why, job, situation)
        for job_id, start in unsent.items():
            del self._refused[job_id]
            notes[start.job_id] = OUTDATED

    def _widen(self, situation: Situation, notes: dict[int, str]) -> Unreachable | None:
        """Give jobs more partitions, users taking turns; return the error that ended this early.

        A job that this cycle has changed already has another record by now.
        """
        if self._not_widened:
            self._not_widened &= situation.jobs.keys()
        left_out = self.orders.changed | self._not_widened
        jobs = [situation.jobs[job_id] for job_id in situation.widenings if job_id not in left_out]
        in_turn = round_robin(jobs, lambda job: job.user_id, MOST_FOLLOW_UPS)
        orders = (widen(job, situation.widenings[job.id].others) for job in in_turn)
        try:
            for order, refusal in self.orders.send([order for order in orders if order is not None]):
                line = f"may start in {_listed(order.partitions or ())} from now on"
                if refusal is None:
                    line += f": {situation.widenings[order.job_id].why}"
                    notes[order.job_id] = line
                else:
                    self._not_widened.add(order.job_id)
                    line = f"could not be given the partitions {_listed(order.partitions or ())}: {refusal}"
                self._log(f"job {order.job_id}: {line}")
        except Unreachable as problem:
            return problem
        return None

    def _placement(self, start: Start, job: ObservedJob, situation: Situation, *, samples: bool) -> Placement:
        """Where the job is to run, and what it gets. A job that has its nodes alone gets all their memory.

        Raises:
            Infeasible: the plan gives it less than the whole CPU, and it gets no grant that says so.
        """
        alternative = start.alternative
        may_grant = situation.observation.has_extra and job.extra != UNREADABLE
        grant = self._grants.of(start, job, samples=samples) if may_grant else None
        if start.cpu_share != 1 and grant is None:
            raise Infeasible("shares of CPU need an agent on the nodes")
        nodes = [situation.nodes[name] for name in start.nodes]
        return Placement(
            start.nodes,
            alternative.tasks_per_node,
            whole_memory_mb(nodes) if takes_all_memory(job, alternative) else None,
            alternative.demand.ways,
            alternative.demand.bandwidth_gbps,
            grant,
        )

    def _free(self, releases: Sequence[Release], situation: Situation, notes: dict[int, str]) -> Unreachable | None:
        """Give the jobs to Slurm that the policy will never place; return the error that ended this early."""
        known = ((release, situation.job(release.job_id)) for release in releases)
        orders = ((free(job, each.reason, self._clock.now()), each.reason) for each, job in known if job is not None)
        sent = [(order, f"left to Slurm: {why}") for order, why in orders if order is not None]
        try:
            for order, why in self.orders.follow_up(sent):
                notes[order.job_id] = why
        except Unreachable as problem:
            return problem
        return None

    def _note_failure(self, why: str, job: ObservedJob, situation: Situation) -> str:
        """Log and remember that a placement failed at once; return the reason why the job waits now."""
        self._log(f"job {job.label}: {why}")
        array = task_of(job.id)
        known = job if array is None else situation.jobs[array[0]]  # a task's try is that of its array's record
        before = situation.surveyed.tries.get(known.id)  # so that several tasks of an array count once in a cycle
        self._tries.now[known.id] = failed(known, before, why, self._settings, self._clock.now())
        return Reason(why, WaitKind.RETRY)

    def _log_placement(self, start: Start, job: ObservedJob, previous: Start | None) -> None:
        """Log one line for a placed job, with the reason unless it equals that of the line before."""
        why = "" if previous is not None and previous.reason == start.reason else f": {start.reason}"
        self._log(f"job {job.label}: placed on {','.join(start.nodes)}{why}")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _with(status: Status, situation: Situation) -> Iterator[ObservedJob]:
    """The jobs of ours with this status, found without a look at the others."""
    jobs = situation.jobs
    return (jobs[job_id] for job_id, each in situation.statuses.items() if each is status and job_id in jobs)
