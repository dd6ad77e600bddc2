"""Max-Jobs: run every heuristic of a portfolio on the same queue and nodes, keep the schedule with the most jobs.

Ties go to the heuristic that comes first in the portfolio. A portfolio of one name is that heuristic alone.

Source: Max-Jobs paper (JSSPP 2013), section 4, figure 12.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from slurm_sns.errors import BadInput
from slurm_sns.model import Job, Plan, Report, Snapshot
from slurm_sns.policies.matching.by_kernel import Kernel, Rules
from slurm_sns.policies.matching.heuristics import HEURISTICS, require_known
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.matching.reasons import reasons_to_wait, starts
from slurm_sns.policies.placement.cycle import Cycle, EndedCycle, Heuristic, Limits, Match, Opening
from slurm_sns.policies.placement.pool import Amounts, Pool, amounts
from slurm_sns.policies.placement.queue import WaitingQueue


@dataclass(frozen=True)
class Schedule:
    """The winner's matches in queue order, and how many jobs each member matched, in portfolio order."""

    chosen: str
    matches: tuple[Match, ...]
    matched: dict[str, int]
    cycle: EndedCycle = field(repr=False)


class MaxJobs:
    """The policy `max-jobs`, and with a portfolio of one name that heuristic: by the compiled kernel."""

    def __init__(self, parameters: MatchingParameters | None = None) -> None:
        """Check the parameters.

        Raises:
            BadInput: a portfolio that is empty or repeats, an unknown heuristic, queue_depth < 1, reservations < 0.
        """
        self.parameters = parameters or MatchingParameters()
        _check(self.parameters)
        self._limits = Limits(self.parameters.queue_depth, self.parameters.reservations)
        self._kernel = Kernel(self._rules())

    def _rules(self) -> Rules:
        """What the kernel is to do for this policy."""
        return Rules(self.parameters)

    def plan(self, snapshot: Snapshot) -> Plan:
        """The starts of the best schedule, and for every other job why it waits."""
        pool = Pool.of(snapshot.nodes)
        free = amounts([node.free for node in snapshot.nodes])
        schedule = self.schedule(pool, free, WaitingQueue.of(snapshot.waiting, snapshot.projects))
        return Plan(
            starts(schedule.matches, pool, schedule.chosen, schedule.matched),
            reasons_to_wait(schedule.cycle, schedule.matches, snapshot.waiting, self.parameters.queue_depth),
            report=Report(schedule.chosen, schedule.matched, tuple(each.job.id for each in schedule.cycle.withheld)),
        )

    def prepared(self, pool: Pool, free: Amounts) -> tuple[Pool, Amounts]:
        """The nodes as this policy's cycles see them: all of them here; a policy may keep something back."""
        return pool, free

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The best member's matches, without words. `free` and `queue` are not changed."""
        ran = self._kernel.run(pool, free, queue) if len(queue) else None
        if ran is None:
            return self.schedule_plainly(pool, free, queue)
        portfolio = self.parameters.portfolio
        matched = dict(zip(portfolio, ran.matched.tolist(), strict=True))
        return Schedule(portfolio[ran.best], ran.cycle.matches, matched, ran.cycle)

    def schedule_plainly(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The same by the plain twin."""
        opening = Opening.of(pool, free)
        best: tuple[str, tuple[Match, ...], Cycle] | None = None
        matched: dict[str, int] = {}
        for member in self.parameters.portfolio:
            cycle = self.cycle(member, opening, queue)
            matches = cycle.matches()
            matched[member] = len(matches)
            if best is None or len(matches) > len(best[1]):
                best = (member, matches, cycle)
            if not matches:
                # Until the first match all members' cycles are the same: where one matches nothing, nobody does.
                matched = dict.fromkeys(self.parameters.portfolio, 0)
                break
        assert best is not None  # noqa: S101  the portfolio is not empty
        return Schedule(best[0], best[1], matched, best[2])

    def cycle(self, member: str, opening: Opening, queue: WaitingQueue) -> Cycle:
        """The cycle of one member, not yet run."""
        return Cycle(opening, queue, self._chooser(member), self._limits)

    def _chooser(self, member: str) -> Callable[[Job], Heuristic]:
        """The heuristic for a job: its own, else the pool's, else the member's."""
        by_default = HEURISTICS[self.parameters.default_heuristic or member]

        def choose(job: Job) -> Heuristic:
            # A name that is not known here was refused at submit; one that slipped through must not stop the cycle.
            return HEURISTICS.get(job.heuristic, by_default) if job.heuristic else by_default

        return choose


def _check(parameters: MatchingParameters) -> None:
    if not parameters.portfolio:
        raise BadInput(f"portfolio is empty; valid: one or more of {', '.join(HEURISTICS)}")
    for name in parameters.portfolio:
        require_known(name, "portfolio")
    if len(set(parameters.portfolio)) < len(parameters.portfolio):
        raise BadInput(
            f"portfolio names a heuristic twice: {', '.join(parameters.portfolio)}; valid: each at most once"
        )
    if parameters.default_heuristic is not None:
        require_known(parameters.default_heuristic, "default_heuristic")
    if parameters.queue_depth < 1:
        raise BadInput(f"queue_depth is {parameters.queue_depth}; valid: 1 or more")
    if parameters.reservations < 0:
        raise BadInput(f"reservations is {parameters.reservations}; valid: 0 or more")


class PlainMaxJobs(MaxJobs):
    """The same by the plain twin alone."""

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The best member's matches."""
        return self.schedule_plainly(pool, free, queue)
