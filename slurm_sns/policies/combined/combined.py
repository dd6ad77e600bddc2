"""Max-Jobs over alternatives: several ways to run a job, and heuristics that know cache and bandwidth.

Inside one member's schedule jobs are taken in queue order and their alternatives in theirs; the first that finds its
nodes is taken. The schedule with the most jobs wins; among equals the one with the smaller sum of predicted slowdowns,
then the one whose member comes first. The members beyond the matching paper's take part only in a cycle where some
queued job has a profile: without profiles this is Max-Jobs, and with `idlest` alone and no reservations it is
Spread-n-Share.

Source: this project's own combination of the two papers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.combined.keeping import KeepingCycle
from slurm_sns.policies.matching.by_kernel import Rules
from slurm_sns.policies.matching.heuristics import FOR_PROFILED_JOBS, PAPER_BETA, Idlest
from slurm_sns.policies.matching.max_jobs import MaxJobs, Schedule
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.cycle import Cycle, Heuristic, Match, Opening
from slurm_sns.policies.placement.pool import WAYS, Amounts, Pool
from slurm_sns.policies.placement.queue import WaitingQueue
from slurm_sns.policies.placement.tabulate import slowdown_units
from slurm_sns.policies.sns.parameters import SnsParameters, require_valid

IDLEST = "idlest"


@dataclass(frozen=True, slots=True)
class CombinedParameters:
    """The matching paper's parameters with a longer portfolio, and Spread-n-Share's."""

    matching: MatchingParameters = field(
        default_factory=lambda: MatchingParameters(portfolio=(*PAPER_PORTFOLIO, *FOR_PROFILED_JOBS))
    )
    sns: SnsParameters = field(default_factory=SnsParameters)


class Combined(MaxJobs):
    """The policy `combined`."""

    def __init__(self, parameters: CombinedParameters | MatchingParameters | None = None) -> None:
        """Matching's parameters alone leave Spread-n-Share's at their defaults.

        Raises:
            BadInput: a parameter cannot be used.
        """
        if isinstance(parameters, MatchingParameters):
            parameters = CombinedParameters(parameters)
        parameters = parameters or CombinedParameters()
        require_valid(parameters.sns)
        self.sns = parameters.sns
        super().__init__(parameters.matching)
        self._idlest = Idlest(parameters.sns.beta)
        papers_own = tuple(name for name in parameters.matching.portfolio if name not in FOR_PROFILED_JOBS)
        self._without_profiles = MaxJobs(replace(parameters.matching, portfolio=papers_own)) if papers_own else None
        self._pools: tuple[Pool, Pool] | None = None

    def _rules(self) -> Rules:
        return Rules(self.parameters, self.sns.beta, keeper=IDLEST, weighs=True)

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The best member's matches, without words. `free` and `queue` are not changed."""
        pool, free = self.prepared(pool, free)
        if self._without_profiles is not None and not some_profiled(queue):
            return self._without_profiles.schedule(pool, free, queue)
        return super().schedule(pool, free, queue)

    def schedule_plainly(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The same by the plain twin, whatever the queue holds and on these very nodes."""
        opening = Opening.of(pool, free)
        matched: dict[str, int] = {}
        schedules: dict[str, tuple[tuple[Match, ...], Cycle]] = {}
        for member in self.parameters.portfolio:
            cycle = self.cycle(member, opening, queue)
            schedules[member] = (cycle.matches(), cycle)
            matched[member] = len(schedules[member][0])
            if not matched[member] and not queue.over_aged:
                # Until the first match all members' cycles are the same: where one matches nothing, nobody does.
                matched = dict.fromkeys(self.parameters.portfolio, 0)
                break
        chosen = min(schedules, key=lambda member: (-matched[member], _slowdowns(schedules[member][0])))
        return Schedule(chosen, schedules[chosen][0], matched, schedules[chosen][1])

    def cycle(self, member: str, opening: Opening, queue: WaitingQueue) -> Cycle:
        """The cycle of one member, not yet run."""
        kind = KeepingCycle if member == IDLEST else Cycle
        return kind(opening, queue, self._chooser(member), self._limits)

    def _chooser(self, member: str) -> Callable[[Job], Heuristic]:
        choose = super()._chooser(member)
        if self.sns.beta == PAPER_BETA:
            return choose

        def choose_with_beta(job: Job) -> Heuristic:
            heuristic = choose(job)
            return self._idlest if isinstance(heuristic, Idlest) else heuristic

        return choose_with_beta

    def prepared(self, pool: Pool, free: Amounts) -> tuple[Pool, Amounts]:
        """The nodes without the ways that are kept for jobs without profile."""
        if not self.sns.shared_ways:
            return pool, free
        shared = np.minimum(pool.capacity[WAYS], self.sns.shared_ways)
        pools = self._pools  # read once: another thread may explain a job of another snapshot meanwhile
        if pools is None or pools[0] is not pool:
            capacity = pool.capacity.copy()
            capacity[WAYS] -= shared
            pools = self._pools = (pool, Pool(pool.names, capacity))
        left = free.copy()
        left[WAYS] -= shared
        return pools[1], left


def some_profiled(queue: WaitingQueue) -> bool:
    """Whether some queued job has a profile: several ways to run, or a demand in ways or bandwidth."""
    seen: set[int] = set()  # jobs of one shape share their alternatives
    for jobs in (queue.over_aged, *queue.by_project.values()):
        for job in jobs:
            if id(job.alternatives) not in seen:
                if _has_profile(job.alternatives):
                    return True
                seen.add(id(job.alternatives))
    return False


def _has_profile(alternatives: tuple[Alternative, ...]) -> bool:
    return len(alternatives) > 1 or any(way.demand.ways or way.demand.bandwidth_gbps for way in alternatives)


def _slowdowns(matches: Iterable[Match]) -> int:
    return sum(slowdown_units(match.alternative) for match in matches)


class PlainCombined(Combined):
    """The same by the plain twin alone."""

    def schedule(self, pool: Pool, free: Amounts, queue: WaitingQueue) -> Schedule:
        """The best member's matches."""
        pool, free = self.prepared(pool, free)
        plainly = self if self._without_profiles is None or some_profiled(queue) else self._without_profiles
        return plainly.schedule_plainly(pool, free, queue)
