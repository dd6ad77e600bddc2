"""What a cycle carries to the next one; the clock of withheld capacity is a part of it.

Withheld capacity has no end: it stands idle until the job finds its place, however long that takes. So capacity is
withheld for the jobs of one user for at most `matching.withhold_limit_s`, and then not at all for four times as long.
The limit is by user rather than by job, so that submitting the same job again gains nothing. When a job for which
capacity was withheld is placed, the time of its user ends, and the next withholding starts a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_sns.model import ActiveJob, Plan
from slurm_sns.scheduler.snapshot.backlog_claims import NO_BACKLOG, Backlog

#: A pause is so many times as long as the time before it: capacity is withheld in vain for at most a fifth of the time.
PAUSE_FACTOR = 4


@dataclass(frozen=True, slots=True)
class WithholdingClock:
    """Since when capacity has been withheld for each user's jobs (Unix seconds), and for which jobs it is now."""

    since_s: Mapping[int, float] = field(default_factory=dict)
    jobs: frozenset[int] = frozenset()

    def pause_s(self, user_id: int, now_s: float, limit_s: float | None) -> float:
        """How long from now no capacity is withheld for the user's jobs, in seconds; 0 when it may be."""
        since_s = self.since_s.get(user_id)
        if limit_s is None or since_s is None or now_s - since_s < limit_s:
            return 0.0
        return max(0.0, since_s + (1 + PAUSE_FACTOR) * limit_s - now_s)

    def after(self, plan: Plan, user_of: Mapping[int, int], now_s: float, limit_s: float | None) -> "WithholdingClock":
        """The state after this plan. A moment in the future was noted before the clock was set back: it is dropped."""
        if limit_s is None:
            return NOTHING_WITHHELD
        served = {user_of[start.job_id] for start in plan.starts if start.job_id in self.jobs}
        lasts_s = (1 + PAUSE_FACTOR) * limit_s
        since_s = {
            user_id: at_s
            for user_id, at_s in self.since_s.items()
            if user_id not in served and 0 <= now_s - at_s < lasts_s
        }
        for job_id in plan.report.withheld_for:
            since_s.setdefault(user_of[job_id], now_s)
        return WithholdingClock(since_s, frozenset(plan.report.withheld_for))


NOTHING_WITHHELD = WithholdingClock()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a cycle carries to the next one.

    Attributes:
        backlog: the node claims of the jobs in Slurm's own queue.
        active: the jobs that had nodes; of unchanged ones the values are reused.
        withholding: since when capacity is withheld for each user's jobs.
        history: what the policy wants to remember.
    """

    backlog: Backlog = NO_BACKLOG
    active: tuple[ActiveJob, ...] = ()
    withholding: WithholdingClock = NOTHING_WITHHELD
    history: object | None = None


NOTHING_CARRIED = Carried()
