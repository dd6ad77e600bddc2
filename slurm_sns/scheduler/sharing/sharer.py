"""Partitions whose jobs share cores: what each cycle does for the jobs in them, besides placing them.

It keeps their virtual time, moves their time limits, tells the agents what each job needs, and pauses jobs that the
plan wants away: a signal where the site has one, then a requeue. Limits and parts of the CPU are kept right while the
kill switch is on, too: what is placed goes on to share. A defect is logged once, and costs no cycle.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from slurm_sns.durations import duration
from slurm_sns.errors import Unreachable
from slurm_sns.log import Outage
from slurm_sns.model import ActiveJob, Job, Plan
from slurm_sns.scheduler.gate.orders import GateOrder, move_limit, own_limit_s
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.ports import Ports, RestartNote
from slurm_sns.scheduler.sharing.book import Book, Pause
from slurm_sns.scheduler.sharing.cpu_parts import CpuParts
from slurm_sns.scheduler.sharing.last_limits import until_reserved_s
from slurm_sns.scheduler.sharing.pauses import Pauses, Send
from slurm_sns.scheduler.snapshot.shared_cores import shares_cores, sharing_jobs
from slurm_sns.scheduler.snapshot.situation import Situation
from slurm_sns.sharing.limits import LimitedJob, new_limit_s
from slurm_sns.sharing.progress import SharingJob, yields
from slurm_sns.sharing.rules import SharingRules

#: The most time limits that one cycle moves.
MOST_MOVED = 100


@dataclass(frozen=True, slots=True)
class SharingView:
    """What is told of jobs that share cores: by job id, how it goes on; and what the pauses of the last day lost.

    `is_on`: there is a partition that shares. `yields` are by job id. The pauses of a day may lose `most_lost_core_s`;
    there were so many `paused` since the scheduler began.
    """

    jobs: Mapping[int, str] = field(default_factory=dict)
    pauses: tuple[Pause, ...] = ()
    is_on: bool = False
    yields: Mapping[int, float] = field(default_factory=dict)
    most_lost_core_s: float = 0.0
    paused: int = 0

    @property
    def least_yield(self) -> float:
        """The smallest yield; 1 if no job shares."""
        return min(self.yields.values(), default=1.0)

    @property
    def lost_core_s(self) -> float:
        """What the pauses of the last day have lost at most, core-seconds."""
        return sum(each.lost_core_s for each in self.pauses)


NOTHING_SHARED = SharingView()


class Sharer:
    """Cares for the jobs of partitions that share.

    Raises:
        SnsError: the store does not answer at the start.
    """

    def __init__(self, rules: SharingRules, ports: Ports) -> None:
        self._rules, self._log = rules, ports.log
        self._book = Book(ports.history, ports.log)
        self._pauses = Pauses(rules, self._book, ports.log)
        self._parts = CpuParts(ports.agents)
        self._outage = Outage(ports.log, "; cores are shared as they were meanwhile")
        self._moved_s: dict[int, float] = {}
        self._sharing: Mapping[int, SharingJob] = {}
        self._yields: Mapping[int, float] = {}
        #: Whether this cycle's snapshot says who may be paused.
        self._knows_whom = False
        self.view = NOTHING_SHARED

    @property
    def trouble(self) -> str:
        """What keeps it from its work now; empty when nothing does."""
        return "; ".join(filter(None, (self._book.trouble, self._outage.now)))

    def begin(self, situation: Situation) -> Situation:
        """Note what the jobs have made of their runs; the situation in which the snapshot says so."""
        now_s = float(situation.snapshot.now_s)
        self._knows_whom = False
        try:
            observation = situation.observation
            before = self._yields
            self._pauses.begin(observation.jobs, now_s)
            self._sharing = {job.id: job for job in sharing_jobs(observation, self._rules)}
            cores = {node.name: node.capacity.cores for node in observation.nodes}
            self._yields = yields(cores, self._sharing.values())
            # The time since the last look has passed with the yields of then.
            self._book.go_on(observation.jobs, self._sharing, {**self._yields, **before}, now_s)
            self.view = SharingView(
                self._words(observation),
                self._book.pauses,
                is_on=True,
                yields=self._yields,
                most_lost_core_s=self._pauses.most_lost_core_s(observation),
                paused=self._pauses.number,
            )
            situation = self._told(situation)
            self._knows_whom = True
        except Exception as problem:  # noqa: BLE001 - a defect here must not keep jobs from being placed
            self._outage.met_defect(problem, now_s)
        return situation

    def keep(self, situation: Situation, send: Send, *, disabled: bool) -> Unreachable | None:
        """Tell the agents, and move time limits; `disabled`: caps are lifted. The error that ended this early."""
        observation, now_s = situation.observation, float(situation.snapshot.now_s)

        def work() -> None:
            self._tell(observation, now_s, is_lifted=disabled)
            self._move_limits(observation, now_s, send)

        return self._carefully(situation, work)

    def pause(self, situation: Situation, plan: Plan, send: Send) -> tuple[dict[int, RestartNote], Unreachable | None]:
        """Pause the jobs that the plan wants away: what was paused, by job id, and the error that ended this early.

        In a cycle that does not know who may be paused nobody is.
        """
        notes: dict[int, RestartNote] = {}

        def work() -> None:
            notes.update(self._pauses.carry_out(situation, plan, send))

        return notes, self._carefully(situation, work) if self._knows_whom else None

    def stop(self, observation: Observation, now_s: float) -> None:
        """Before a clean stop: store the rest, and lift the caps. Limits are the watchdog's then (last_limits)."""
        self._book.store_rest(now_s)
        self._tell(observation, now_s, is_lifted=True)

    def _carefully(self, situation: Situation, work: Callable[[], object]) -> Unreachable | None:
        now_s = float(situation.snapshot.now_s)
        try:
            work()
        except Unreachable as lost:
            return lost
        except Exception as problem:  # noqa: BLE001 - as in `begin`
            self._outage.met_defect(problem, now_s)
            return None
        self._outage.over(now_s)
        return None

    def _told(self, situation: Situation) -> Situation:
        """The situation whose snapshot has yields, virtual times, and who may be paused."""
        seen = {job.id: job for job in situation.observed}
        snapshot = situation.snapshot
        active = tuple(
            self._active(job, seen[job.id], situation) if job.id in self._sharing else self._left_alone(job)
            for job in snapshot.active
            if not self._has_left(seen.get(job.id))
        )
        waiting = tuple(
            self._paused(job, seen[job.id]) if self._has_run(seen.get(job.id)) else job for job in snapshot.waiting
        )
        return replace(situation, snapshot=replace(snapshot, active=active, waiting=waiting))

    def _left_alone(self, active: ActiveJob) -> ActiveJob:
        """A job of these partitions that does not run, such as one that Slurm is about to start: nobody pauses it."""
        return replace(active, may_restart=False) if active.pool in self._rules.partitions else active

    def _has_left(self, job: ObservedJob | None) -> bool:
        """Whether it is completing on nodes that share: what it has is no longer in the way of a plan."""
        return job is not None and job.is_completing and not self._rules.partitions.isdisjoint(job.partitions)

    def _has_run(self, job: ObservedJob | None) -> bool:
        if job is None or self._rules.partitions.isdisjoint(job.partitions):
            return False
        return self._book.of(job).all_s > 0

    def _paused(self, waiting: Job, job: ObservedJob) -> Job:
        return replace(waiting, submit_s=self._book.submit_s(job), virtual_s=self._book.of(job).all_s)

    def _active(self, active: ActiveJob, job: ObservedJob, situation: Situation) -> ActiveJob:
        hints = job.hints
        told = replace(
            active,
            submit_s=self._book.submit_s(job),
            cpu_share=self._yields[job.id],
            virtual_s=self._book.of(job).all_s,
            checkpoint_s=None if hints is None else hints.checkpoint_s,
        )
        may_pause = self._pauses.may(told, job, situation.observation, float(situation.snapshot.now_s))
        return replace(told, may_restart=may_pause)

    # --- parts of the CPU, and time limits

    def _move_limits(self, observation: Observation, now_s: float, send: Send) -> None:
        orders = list(self._limit_orders(observation, now_s))
        for answer in send(orders[:MOST_MOVED]):
            if isinstance(answer.order, GateOrder) and answer.order.limit_s is not None:
                job_id, limit_s = answer.order.job_id, answer.order.limit_s
                self._moved_s[job_id] = now_s
                told = f"is {duration(limit_s)} now, as it shares cores"
                self._log(
                    f"job {job_id}: its time limit {told if answer.refused is None else f'stays: {answer.refused}'}"
                )

    def _tell(self, observation: Observation, now_s: float, *, is_lifted: bool) -> None:
        threads = {node.name: node.threads_per_core for node in observation.nodes if shares_cores(node, self._rules)}
        caps = self._yields if self._rules.caps and not is_lifted else {}
        self._parts.tell(observation.jobs, self._sharing, caps, threads, now_s)

    def _limit_orders(self, observation: Observation, now_s: float) -> Iterator[GateOrder]:
        running = {job.id for job in observation.jobs if job.state is JobState.RUNNING and job.id in self._sharing}
        self._moved_s = {job_id: at_s for job_id, at_s in self._moved_s.items() if job_id in running}
        for job in sorted(observation.jobs, key=lambda each: each.end_s):
            own_s = own_limit_s(job) if job.id in running and not job.is_completing else None
            if own_s is None or not job.walltime_s:
                continue
            limited = LimitedJob(
                own_s, job.walltime_s, self._moved_s.get(job.id), until_reserved_s(job, observation.reservations)
            )
            progress, part = self._book.of(job), self._yields[job.id]
            wanted_s = new_limit_s(limited, progress, part, now_s, self._rules.most_extension)
            order = None if wanted_s is None else move_limit(job, wanted_s)
            if order is not None:
                yield order

    # --- what is told

    def _words(self, observation: Observation) -> dict[int, str]:
        on_node: dict[str, int] = {}
        for sharing in self._sharing.values():
            for name in sharing.nodes:
                on_node[name] = on_node.get(name, 0) + 1
        return {
            job.id: _word(job, self._sharing[job.id], on_node, self._yields[job.id], self._book.of(job).virtual_s)
            for job in observation.jobs
            if job.id in self._sharing
        }


def _word(job: ObservedJob, sharing: SharingJob, on_node: Mapping[str, int], part: float, virtual_s: float) -> str:
    """How the job goes on: `shares f1 with 3 others: 0.6 of its cores; 41 min of 60 min used`."""
    name = max(sharing.nodes, key=lambda each: on_node[each])
    others = on_node[name] - 1
    beside = f"shares {name} with {others} {'other' if others == 1 else 'others'}" if others else f"alone on {name}"
    own_s = own_limit_s(job)
    used = "" if not own_s else f"; {duration(virtual_s)} of {duration(own_s)} used"
    return f"{beside}: {part:.2g} of its cores{used}"
