"""Max-Jobs with lookahead in the event engine: what `sim/replay/lookahead_replay` must do, job for job.

Each member matches the cycle on a copy of what is free, and then, by the same code on what is left there, jobs that
stand for the next arrivals.
"""

from collections.abc import Sequence
from dataclasses import replace

from oracles.portfolio import PlainPortfolio
from slurm_sns.model import Job, Seconds
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Match, Schedule, Withheld
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.sim.engine.event_loop import CycleRecord
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.replay.lookahead_replay import ArrivalSource, Lookahead, MatchComparison
from slurm_sns.sim.trace import Trace


class LookaheadPortfolio:
    """A portfolio that is given the jobs that stand for the next arrivals before each cycle, in `arrivals`."""

    def __init__(self, rules: Rules, counting: MatchComparison) -> None:
        """Start without arrivals."""
        self.arrivals: Sequence[Job] = ()
        self._counting = counting
        self._members = {member: PlainPortfolio(replace(rules, portfolio=(member,))) for member in rules.portfolio}

    asks_for_ends = False

    def schedule(
        self,
        node_arrays: NodeArrays,
        free: Amounts,
        queue: WaitingQueue,
        coming: Releases = NOTHING_COMES_FREE,  # noqa: ARG002  the protocol's
    ) -> Schedule:
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
        entries: list[Match | Withheld] = [*schedule.matches, *schedule.withheld]
        for each in entries:
            left[:, each.nodes] -= node_arrays.taken(each.alternative, each.nodes)
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
