"""The loop: observe, plan, send, once every interval, until told to stop. The policy's plan is checked here.

Its promises (docs/develop/modes-and-failure.md): Slurm is never worse off. What we change in a job stands in the
job, by the same RPC (taking a placement with counts back needs two), so the next look shows what a crash has left.
Every refusal by Slurm is handled. A heartbeat is written during a long cycle while Slurm answers, and at the end of
each cycle. While slurmctld does not answer, nothing is placed; after `heartbeat_timeout_s` submissions pass through,
the watchdog frees the gated jobs, and a gate that nobody renews opens by itself. A clean stop first makes the heartbeat
stale and then frees the jobs that are still gated, so that no job is gated after that. A scheduler that hands over to
the next one leaves everything as it is; the heartbeat grows stale by itself if no scheduler follows.
"""

import gc
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil

from slurm_sns.errors import SnsError, Unreachable
from slurm_sns.log import Outage
from slurm_sns.model import Action, Plan, Reason, Release, Requeue, Start
from slurm_sns.policies.base import Policy
from slurm_sns.policies.specification import Specification
from slurm_sns.scheduler.agent_link import AgentLink
from slurm_sns.scheduler.answers.view import DecisionRecord, View
from slurm_sns.scheduler.cycle_pauses import CyclePauses
from slurm_sns.scheduler.dispatch.dispatcher import Dispatcher, Sign
from slurm_sns.scheduler.dispatch.never_starting import NeverStarting
from slurm_sns.scheduler.dispatch.to_slurm import free_marked
from slurm_sns.scheduler.gate.leases import ByLimits, no_estimates
from slurm_sns.scheduler.history import StoredTries
from slurm_sns.scheduler.learning.learner import Learner, explored
from slurm_sns.scheduler.measured_runs import MeasurementRecord
from slurm_sns.scheduler.observation import Observation
from slurm_sns.scheduler.pace import apart_s
from slurm_sns.scheduler.ports import NO_RESTARTS, Ports
from slurm_sns.scheduler.restarts.restarter import NO_RESTARTS_YET, Restarter
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.sharing.sharer import NOTHING_SHARED, Sharer
from slurm_sns.scheduler.snapshot.ahead import WHY_AHEAD, ahead_of_time, to_take_back
from slurm_sns.scheduler.snapshot.situation import Carried, Explorations, Situation, read_situation
from slurm_sns.scheduler.snapshot.spreading import NEVER_SPREAD, SpreadRules
from slurm_sns.wire.values import NodeState


def _saying_what_explores(plan: Plan, explorations: Explorations) -> Plan:
    """The plan, in which the reason of each start that explores says so."""
    if not explorations.offered:
        return plan
    actions: list[Action] = []
    for action in plan.actions:
        found = explored(action, explorations) if isinstance(action, Start) else None
        if found is not None and isinstance(action, Start):
            reason = f"{action.reason}; {found}" if action.reason else str(found)
            actions.append(replace(action, reason=reason))
        else:
            actions.append(action)
    return replace(plan, actions=tuple(actions))


#: While slurmctld does not answer, it is asked again at least this often.
LONGEST_RETRY_S = 10.0
#: The least time between two cycles when a policy asks for an earlier one.
LEAST_INTERVAL_S = 0.1
#: Looks have the pace of the call that shows the jobs, during a part of which slurmctld holds its locks (0.05 s with
#: 10,000 jobs). But a pause is at most this part of heartbeat_timeout_s.
MOST_OF_TIMEOUT = 0.25
#: How long before slurmctld's next look at updated jobs a cycle is to end: the next one may take a little longer.
SPARE_S = 0.1


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python's cyclic garbage collector find nothing inside the block; a collection that is due runs afterwards.

    A cycle makes hundreds of thousands of values without reference cycles. The collector would walk all of them again
    and again as their number grows, take a fifth of the cycle's time, and find nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Scheduler:
    """The scheduler of one cluster. It calls `publish` with a `View` after every cycle.

    Where there are agents, `sign` makes the token of a placement's grant; without it no job has a grant. `learner`
    learns the profiles of programs; None where nothing is learnt. `asked` gets the ids of the jobs that owners give to
    Slurm. The policy's history is kept over a restart if `specification` has a form for it. `by_limits` estimates a
    job's start (gate.leases). `restarter` restarts suspended jobs; None where that is off. `sharer` cares for jobs that
    share cores; None where none do.
    """

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        settings: Settings,
        spreading: SpreadRules = NEVER_SPREAD,
        publish: Callable[[View], None] = lambda _: None,
        *,
        specification: Specification | None = None,
        sign: Sign | None = None,
        learner: Learner | None = None,
        asked: set[int] | None = None,
        by_limits: ByLimits = no_estimates,
        restarter: Restarter | None = None,
        sharer: Sharer | None = None,
    ) -> None:
        self._ports, self._settings, self._publish = ports, settings, publish
        self._asked = set[int]() if asked is None else asked
        self._tries = StoredTries(ports.history, ports.clock, ports.log, specification)
        self._policy = policy
        self._restarter, self._sharer = restarter, sharer
        self._carried = Carried(history=self._tries.recalled)
        record = None if ports.measurements is None else MeasurementRecord(ports.measurements, ports.log)
        self._agent_link = AgentLink(ports.agents, learner, spreading, record)
        self._dispatcher = Dispatcher(ports, settings, self._tries, self._agent_link, sign, by_limits=by_limits)
        self._decision_record = DecisionRecord(ports.decisions, ports.log, sends=settings.mode == "enforce")
        self._never_starting = NeverStarting(ports)
        self._outage = Outage(ports.log, f"; trying again, at least every {LONGEST_RETRY_S:g} s")
        self._problems_logged: set[str] = set()
        self._cycles = 0

    @property
    def trouble(self) -> str:
        """What keeps the loop from planning or from writing the decision record now; empty when nothing does."""
        return "; ".join(filter(None, self.troubles.values()))

    @property
    def troubles(self) -> dict[str, str]:
        """The same by what does not work: `cycle` is slurmctld, or whatever a cycle failed by."""
        return {
            "cycle": self._outage.now,
            "store": "; ".join(filter(None, (self._tries.trouble, self._decision_record.trouble))),
            "learning": self._agent_link.trouble,
            "restarts": "" if self._restarter is None else self._restarter.trouble,
            "sharing": "" if self._sharer is None else self._sharer.trouble,
        }

    def run(
        self, interval_s: float, is_stopping: Callable[[], bool], hands_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Run cycles until `is_stopping`. After a cycle that fails, wait twice as long before each further try.

        The longest wait is `LONGEST_RETRY_S`. The run ends with a clean stop, unless this scheduler `hands_over` to the
        next one.
        """
        retry_s, pauses = interval_s, CyclePauses(self._ports.clock, self._ports.submissions)
        while not is_stopping():
            started_s = self._ports.clock.now()
            pause_s = least_s = retry_s
            retry_s = min(LONGEST_RETRY_S, 2 * retry_s)
            pauses.end()
            try:
                view = self.cycle()
                self._outage.over(self._ports.clock.now())
                retry_s = interval_s
                # A clock that was stepped back in the meantime must not put us to sleep for longer.
                took_s = max(0.0, self._ports.clock.now() - started_s)
                looks_s = self._looks_apart_s(view.situation)
                pause_s = until_next_s(view.plan, started_s, took_s, max(interval_s, looks_s))
                least_s = max(took_s, looks_s)
            except SnsError as problem:
                self._outage.met(str(problem), self._ports.clock.now())
            except Exception as problem:  # noqa: BLE001 - the outermost loop: a defect must not end it
                self._outage.met_defect(problem, self._ports.clock.now())
            pauses.begin(pause_s, least_s)
        if not hands_over():
            self.stop()

    def _looks_apart_s(self, situation: Situation) -> float:
        """How far apart two looks are at least, because slurmctld takes time to show its jobs."""
        most_s = min(LONGEST_RETRY_S, MOST_OF_TIMEOUT * self._settings.heartbeat_timeout_s)
        return apart_s(situation.observation.shown_in_s, most_s)

    def repeat(self, cycles: int, interval_s: float) -> None:
        """Run this number of cycles, one every interval. Gated jobs stay gated afterwards."""
        for left in reversed(range(cycles)):
            self.cycle()
            if left:
                self._ports.clock.sleep(interval_s)

    @uncollected()
    def cycle(self) -> View:
        """Run one cycle: observe, plan, send.

        Raises:
            SnsError: slurmctld does not answer, or profiles cannot be read. Nothing is lost: the next cycle starts from
                what Slurm shows by then.
        """
        ports, started_s = self._ports, self._ports.clock.now()
        self._dispatcher.orders.begin(started_s)
        disabled = ports.kill_switch.is_on()
        imported = ports.profiles.load()
        self._agent_link.spread_by(imported)
        observation = ports.state.observe()
        observed_s = ports.clock.now()  # afterwards: what lies ahead is the owner's (gate.job_status)
        states = self._agent_link.hear(observation, imported, observed_s)
        situation = self._read_situation(observation, states, observed_s)
        if self._restarter is not None:
            situation = self._restarter.begin(situation)
        if self._sharer is not None:
            situation = self._sharer.begin(situation)
        self._log_new_problems(situation)
        plan, notes, restarts = Plan(), dict[int, str](), NO_RESTARTS
        lost: Unreachable | None = None
        if disabled:
            self._free(observation, "disabled")
        else:
            self._dispatcher.renew_lapsed(situation)
            if self._settings.mode == "enforce":
                notes = self._never_starting.tell(situation)
            notes |= self._dispatcher.follow_up(situation)
            plan = self._plan(situation, observed_s)
            self._tries.remember(plan.history)
            wanted = plan
            if self._settings.mode == "enforce":
                plan, lost = self._dispatcher.commit(situation, plan, notes)
                if self._restarter is not None and lost is None:
                    restarts, lost = self._restarter.act(situation, plan, self._agent_link.spreading)
                if self._sharer is not None and lost is None:
                    paused, lost = self._sharer.pause(situation, wanted, self._dispatcher.orders.answers)
                    restarts = {**restarts, **paused}
                lost = lost or self._place_ahead(situation, plan, notes, started_s)
        if self._sharer is not None and lost is None:
            lost = self._sharer.keep(situation, self._dispatcher.orders.answers, disabled=disabled)
        self._tries.store()
        self._decision_record.add(started_s, situation, plan, notes, restarts)
        if lost is not None:
            raise lost
        self._dispatcher.unboost(situation)
        if not disabled:
            self._dispatcher.renew_others(situation)
        self._cycles += 1
        now_s = ports.clock.now()
        ports.heartbeat.beat(now_s)
        took_s = max(0.0, now_s - started_s)  # the clock may have been stepped back
        view = View(
            now_s,
            took_s,
            self._settings.mode,
            disabled,
            self._cycles,
            self._dispatcher.placed,
            self._dispatcher.renewed_per_minute,
            situation,
            plan,
            self._agent_link.spreading.programs,
            imported,
            self._agent_link.learning,
            states,
            NO_RESTARTS_YET if self._restarter is None else self._restarter.view,
            self._dispatcher.taken_back,
            NOTHING_SHARED if self._sharer is None else self._sharer.view,
        )
        self._publish(view)
        return view

    def _read_situation(
        self, observation: Observation, states: Mapping[str, NodeState] | None, now_s: float
    ) -> Situation:
        """What this cycle works on, which becomes what is known: the tries, and what the next cycle needs."""
        asked = frozenset(self._asked)
        situation = read_situation(
            observation,
            self._tries.now,
            self._settings,
            now_s,
            self._agent_link.spreading,
            carried=self._carried,
            states=states,
            offer=self._agent_link.offer(observation, states, now_s),
            asked=asked,
            refused=self._dispatcher.refused(observation.jobs),
        )
        # An order may be put off or refused, so a job stays among them as long as there is one for it. Others only add.
        self._asked -= asked.difference(order.job_id for order, _ in situation.follow_ups)
        self._tries.now = dict(situation.surveyed.tries)
        self._carried = situation.carried(self._carried)
        return situation

    def _plan(self, situation: Situation, now_s: float) -> Plan:
        """The policy's plan, as far as it may be carried out; the next cycle gets what it needs of it.

        Where no capacity is withheld for a waiting job, its reason to wait says so, and why.
        """
        plan = self._sendable(self._policy.plan(situation.snapshot), situation)
        plan = _saying_what_explores(plan, situation.explorations)
        users = situation.users({*plan.report.withheld_for, *(start.job_id for start in plan.starts)})
        withholding = self._carried.withholding.after(plan, users, now_s, self._settings.withhold_limit_s)
        self._carried = replace(self._carried, withholding=withholding, history=plan.history)
        more = {
            job_id: Reason.of(plan.waiting[job_id]).with_more(f"; no capacity is withheld for it: {why}")
            for job_id, why in situation.not_withheld.items()
            if job_id in plan.waiting
        }
        return replace(plan, waiting={**plan.waiting, **more}) if more else plan

    def _place_ahead(
        self, situation: Situation, plan: Plan, notes: dict[int, str], began_s: float
    ) -> Unreachable | None:
        """Place jobs that wait for others alone, or take such placements back; return the error that ended this early.

        They have a line of their own in the decision record: they are planned on other nodes than the others.
        """
        try:
            notes |= self._dispatcher.take_back(situation, *to_take_back(situation, plan))
        except Unreachable as problem:
            return problem
        if self._restarter is not None or self._sharer is not None:  # suspended jobs may want the nodes
            return None
        ahead = ahead_of_time(situation, plan, self._settings, self._agent_link.spreading)
        if ahead is None:
            return None
        wanted = self._sendable(self._policy.plan(ahead.snapshot), ahead)
        starts = [
            replace(start, reason=f"{WHY_AHEAD}; {start.reason}") for start in wanted.starts if start.cpu_share == 1
        ]
        done, lost = self._dispatcher.commit(ahead, replace(wanted, actions=tuple(starts)), {})
        self._decision_record.add(began_s, ahead, done, {})
        return lost

    def _sendable(self, plan: Plan, situation: Situation) -> Plan:
        """The plan with nothing but what may be sent; each other action is logged as an error.

        That is starts and releases of jobs that wait, and pauses where jobs share cores.
        """
        waiting = {job.id for job in situation.snapshot.waiting}
        able = {job.id for job in situation.snapshot.active if job.may_restart} if self._sharer is not None else set()
        wrong = [
            each
            for each in plan.actions
            if not (each.job_id in able if isinstance(each, Requeue) else _may_be_sent(each, waiting))
        ]
        for action in wrong:
            why = "which does not wait" if isinstance(action, Start | Release) else "which is for simulations only"
            name = type(action).__name__
            self._ports.log(f"error: the plan has a {name} of job {action.job_id}, {why}; not sent")
        return replace(plan, actions=tuple(each for each in plan.actions if each not in wrong)) if wrong else plan

    def stop(self) -> None:
        """Clean stop: make submissions pass through from now on, and free the jobs that wait for us.

        If the heartbeat cannot be made stale, as on a full disk, the jobs are freed all the same.
        """
        ports = self._ports

        def let_go() -> None:
            for _ in range(2):  # what was changed while the first were freed is looked at again
                observation = ports.state.observe()
                self._free(observation, "clean stop", shows_life=False)
            if self._sharer is not None:
                self._sharer.stop(observation, ports.clock.now())

        for step in (ports.heartbeat.stop, let_go):
            try:
                step()
            except SnsError as problem:
                ports.log(f"{problem}; the watchdog will free what is gated, or its gate opens by itself")

    def _free(self, observation: Observation, reason: str, *, shows_life: bool = True) -> None:
        """Free every marked job that waits. After a clean stop the heartbeat must stay stale."""
        ports = self._ports
        known = (observation.jobs, ports.clock.now())
        for _ in free_marked(*known, executor=ports.executor, log=ports.log, reason=reason):
            if shows_life:
                self._dispatcher.orders.show_sign_of_life()

    def _log_new_problems(self, situation: Situation) -> None:
        """Log each unreadable record, and each job that runs differently from its plan, unless the last cycle did."""
        found = {f"{name}: {why}" for name, why in situation.observation.unreadable.items()}
        found |= {f"error: job {job_id} {how}" for job_id, how in situation.differences.items()}
        for line in sorted(found - self._problems_logged):
            self._ports.log(line)
        self._problems_logged = found


def _may_be_sent(action: Action, waiting: Collection[int]) -> bool:
    return isinstance(action, Start | Release) and action.job_id in waiting


def until_next_s(plan: Plan, began_s: float, took_s: float, interval_s: float) -> float:
    """How long after the end of a cycle the next one begins: after the interval, or when the plan asks for it before.

    An interval of a second or more is rounded up to whole seconds, and the next cycle is shifted, by half a second at
    most: if it is as long as this one, it ends `SPARE_S` before a whole second. Only then slurmctld looks whether jobs
    were updated (26.05, `_slurmctld_background`), and a job that is placed just before starts at once.
    """
    next_s = began_s + interval_s
    if interval_s >= 1:
        ahead_s = took_s + SPARE_S
        next_s = round(began_s + ceil(interval_s) + ahead_s) - ahead_s
    if plan.wake_s is not None:
        next_s = min(next_s, max(began_s + LEAST_INTERVAL_S, float(plan.wake_s)))
    return max(0.0, next_s - began_s - took_s)
