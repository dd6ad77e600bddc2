"""What rescheduling remembers between two plans: where each job has waited, run and been suspended, and the samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from oracles.rescheduling.estimates import RestartDecision
from slurm_sns.model import Seconds


@dataclass(frozen=True, slots=True)
class Visit:
    """How long a job waited and was suspended in a pool, from joining its queue to completing or moving away."""

    pool: str
    waited_s: Seconds = 0
    suspended_s: Seconds = 0


@dataclass(frozen=True, slots=True)
class Account:
    """A job's life so far. Its state is not in it: the snapshot shows that.

    `visit` is the present one and `earlier` are those before. `joined` orders the jobs of a queue, `place` is the job's
    place in submit order. `since_s` is when the present state began: waiting, running or suspended. The present attempt
    began at `attempt_s` and had run `ran_s` at `since_s`, what it has taken over from earlier attempts included.
    `suspensions` counts all that lasted, and the present one. `check_s` is when the job is decided on if it still
    waits, None for never; `check` orders those of one moment.
    """

    visit: Visit
    joined: int
    since_s: Seconds
    place: int = 0
    earlier: tuple[Visit, ...] = ()
    attempt_s: Seconds = 0
    ran_s: Seconds = 0
    suspensions: int = 0
    expected_run_s: Seconds | None = None
    allowed: frozenset[str] | None = None
    priority: int = 0
    is_running: bool = False
    program: str = ""
    check_s: Seconds | None = None
    check: int = 0

    @property
    def moves(self) -> int:
        """How often the job has changed its pool."""
        return len(self.earlier)

    def in_pool(self) -> Visit:
        """All visits to the present pool as one."""
        same = [each for each in (*self.earlier, self.visit) if each.pool == self.visit.pool]
        return Visit(self.visit.pool, sum(each.waited_s for each in same), sum(each.suspended_s for each in same))


@dataclass(frozen=True, slots=True)
class Sample:
    """A job that completed in a pool: what it waited and was suspended there, and whether it ever was, anywhere."""

    ended_s: Seconds
    pool: str
    priority: int
    waited_s: Seconds
    suspended_s: Seconds
    was_suspended: bool


@dataclass(frozen=True, slots=True)
class ReschedulingHistory:
    """`accounts` of all jobs in the system, the `samples` of the window in order of their ends, oldest first.

    `runs` are the ends and run times of each program's recent runs. `last_pool` is the pool that the virtual pool took
    last. `joined` is the last number that was given out to order queues and checks. `decisions` are those of the last
    plan, in their order.
    """

    accounts: Mapping[int, Account] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    runs: Mapping[str, tuple[tuple[Seconds, Seconds], ...]] = field(default_factory=dict)
    last_pool: str = ""
    joined: int = 0
    decisions: tuple[RestartDecision, ...] = ()
