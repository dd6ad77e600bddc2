"""Max-Jobs with lookahead: each member's schedule is also judged by what is left for the jobs that come next.

The paper suspects that "packing jobs very densely leads to reduced performance in a successive scheduling round" and
hopes for "looking further into the queue". Here each member matches the cycle on a copy of what is free, and then, by
the same code on what is left there, jobs that stand for the next arrivals. Nothing of that second matching is
dispatched; it only helps to choose among the members.

Which jobs stand for the next arrivals is a choice (`ArrivalSource`): those that were submitted last, which a live
scheduler knows, or the true next ones, which only a simulation knows and which bound what a forecast could gain. How
they count is another (`MatchComparison`). The twin in this module is plain; module `replay.lookahead_replay` is
compiled and does the same job for job. Source: Max-Jobs paper (JSSPP 2013), end of section 5, and sections 6 and 7.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from slurm_sns.errors import BadInput
from slurm_sns.model import Job, Seconds
from slurm_sns.policies.placement.cycle import Match, Withheld
from slurm_sns.policies.placement.fair_order import WaitingQueue
from slurm_sns.policies.placement.kernel_matching import Rules
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays, taken
from slurm_sns.policies.placement.portfolio import PlainPortfolio, Schedule
from slurm_sns.sim.engine.event_loop import CycleRecord
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.traces.trace import Trace


class ArrivalSource(IntEnum):
    """Which jobs stand for the next arrivals: those submitted in the last `window_s`, or in the next."""

    RECENT = 0
    KNOWN = 1


class MatchComparison(IntEnum):
    """How a member's matches M and those of the next arrivals N are compared: by M, then by N; or by M + N."""

    TIES = 0
    SUM = 1


@dataclass(frozen=True)
class Lookahead:
    """How far we look, and what counts; `window_s` is in seconds, at least 1."""

    arrivals: ArrivalSource
    counting: MatchComparison
    window_s: int

    def __post_init__(self) -> None:
        """Check the window.

        Raises:
            BadInput: it is not positive.
        """
        if self.window_s < 1:
            raise BadInput(f"the window of a lookahead is {self.window_s} s; valid: 1 or more")


class LookaheadPortfolio:
    """A portfolio that is given the jobs that stand for the next arrivals before each cycle, in `arrivals`."""

    def __init__(self, rules: Rules, counting: MatchComparison) -> None:
        """Start without arrivals."""
        self.arrivals: Sequence[Job] = ()
        self._counting = counting
        self._members = {member: PlainPortfolio(replace(rules, portfolio=(member,))) for member in rules.portfolio}

    def schedule(self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The best member's schedule; neither `free` nor `queue` is changed."""
        schedules = {
            member: portfolio.schedule(node_arrays, free, queue) for member, portfolio in self._members.items()
        }
        matched = {member: len(schedule.matches) for member, schedule in schedules.items()}
        if not any(matched.values()):
            return replace(next(iter(schedules.values())), matched=matched)

        def value(member: str) -> tuple[int, int]:
            ahead = self._matched_ahead(member, node_arrays, free, schedules[member])
            if self._counting is MatchComparison.SUM:
                return matched[member] + ahead, 0
            return matched[member], ahead

        values = {member: value(member) for member in self._members}
        chosen = max(values, key=lambda member: values[member])  # the first of equal ones
        return replace(schedules[chosen], matched=matched)

    def _matched_ahead(self, member: str, node_arrays: NodeArrays, free: Amounts, schedule: Schedule) -> int:
        """How many of the next arrivals the member would match on what its schedule leaves."""
        left = free.copy()
        entries: list[Match | Withheld] = [*schedule.matches, *schedule.cycle.withheld]
        for each in entries:
            left[:, each.nodes] -= taken(node_arrays.capacity, each.alternative, each.nodes)
        ahead = WaitingQueue.of((replace(job, withholds=False) for job in self.arrivals), {})
        return len(self._members[member].schedule(node_arrays, left, ahead).matches)


class LookaheadSimulation(Simulation):
    """A cluster on which a trace of one project is replayed by matching with lookahead."""

    def __init__(
        self, node_arrays: NodeArrays, trace: Trace, rules: Rules, lookahead: Lookahead, *, interval_s: int
    ) -> None:
        """Start without jobs."""
        self._portfolio = LookaheadPortfolio(rules, lookahead.counting)
        self._lookahead = lookahead
        super().__init__(node_arrays, trace, self._portfolio, queue_depth=rules.queue_depth, interval_s=interval_s)

    def cycle(self, now_s: Seconds) -> CycleRecord:
        """Start what the chosen member matches."""
        window_s = self._lookahead.window_s
        recent = self._lookahead.arrivals is ArrivalSource.RECENT
        begin_s, end_s = (now_s - window_s, now_s) if recent else (now_s, now_s + window_s)
        jobs = [each.job for each in self.trace.jobs]
        self._portfolio.arrivals = [job for job in jobs if begin_s < job.submit_s <= end_s]
        return super().cycle(now_s)
