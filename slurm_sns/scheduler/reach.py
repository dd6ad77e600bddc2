"""Which nodes a live job may use now, and the ways to run it there: by partition, less what Slurm keeps for others."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.scheduler import arrays
from slurm_sns.scheduler.account_limits import AccountLimits
from slurm_sns.scheduler.geometry import alike, names_no_memory
from slurm_sns.scheduler.known_ways import Ways
from slurm_sns.scheduler.limits import Limits
from slurm_sns.scheduler.observed import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.spreading import Spreader, Spreading
from slurm_sns.scheduler.turns import Claim

#: Why a job waits all of whose nodes are claimed. A user is told no more of other users' jobs.
KEPT = "its nodes are kept for jobs of Slurm's own that were submitted before it"


class Reach:
    """What each job may ever use and may use now.

    Jobs with the same partitions and reservations share one set, so that ten thousand jobs cost a few sets.
    """

    def __init__(
        self, observation: Observation, now_s: float, spreading: Spreading, claims: Sequence[Claim] = ()
    ) -> None:
        self._nodes = observation.nodes
        self._reservations = observation.reservations
        self._claims = claims
        self._limits = Limits(observation)
        self._account_limits = AccountLimits(observation.tres_limits)
        self.now_s = now_s
        self._spreader = Spreader(spreading)
        self._one_memory: dict[tuple[str, ...], bool] = {}
        self._ever: dict[tuple[str, ...], tuple[ObservedNode, ...]] = {}
        self._allowed: dict[tuple[tuple[str, ...], frozenset[str]], frozenset[str]] = {}
        self._kept: dict[tuple[int, float], frozenset[str]] = {}
        self._alike: dict[tuple[tuple[str, ...], frozenset[str]], frozenset[str]] = {}

    def of(self, job: ObservedJob) -> tuple[Ways, frozenset[str]]:
        """How the job may run, and the nodes that it may use now.

        Slurm runs a job in one of its partitions: only a job of one node may take any node of several.

        Raises:
            Infeasible: it can never run there, or not on nodes of our choice, or not without a change that is limited.
            Closed: Slurm would not start it now, in none of its partitions.
        """
        ways, partitions = self._in(job, job.partitions)
        closed = self._limits.closed(job)
        if closed:
            ways, partitions = self._in_the_others(job, closed)
        ways = self._limits.permitted(job, ways, partitions)
        allowed = self._allowed_now(job, partitions)
        if any(way.exclusive and way.nodes > 1 for way in ways.alternatives):
            allowed = self._alike_in(partitions, allowed)
        return ways, allowed

    def _alike_in(self, partitions: tuple[str, ...], allowed: frozenset[str]) -> frozenset[str]:
        key = (partitions, allowed)
        if key not in self._alike:
            self._alike[key] = alike([node for node in self._ever_in(partitions) if node.name in allowed])
        return self._alike[key]

    def _in(self, job: ObservedJob, partitions: tuple[str, ...]) -> tuple[Ways, tuple[str, ...]]:
        """The ways to run the job in these partitions, or in one of them."""
        ways = self._ways(job, partitions)
        if len(partitions) > 1 and any(way.nodes > 1 for way in ways.alternatives):
            return self._in_one_partition(job, partitions)
        return ways, partitions

    def _in_the_others(self, job: ObservedJob, closed: dict[str, str]) -> tuple[Ways, tuple[str, ...]]:
        """The same in those of its partitions that are not closed to it."""
        others = tuple(name for name in job.partitions if name not in closed)
        why = "; ".join(closed.values())
        if not others:
            raise Closed(why)
        try:
            return self._in(replace(job, partitions=others), others)
        except Infeasible as elsewhere:
            raise Closed(f"{why}; {elsewhere}") from None

    def room(self, ways: Ways, allowed: frozenset[str]) -> int:
        """How many jobs like this one these nodes could hold if they were empty."""
        usable = (node for node in self._nodes if node.name in allowed and not node.unavailable)
        return arrays.room(ways.alternatives, usable)

    def _in_one_partition(self, job: ObservedJob, partitions: tuple[str, ...]) -> tuple[Ways, tuple[str, ...]]:
        """The first of these partitions that could ever hold the job."""
        for name in partitions[:-1]:
            try:
                return self._ways(job, (name,)), (name,)
            except Infeasible:
                continue
        last = partitions[-1:]
        return self._ways(job, last), last

    def _ways(self, job: ObservedJob, partitions: tuple[str, ...]) -> Ways:
        if names_no_memory(job) and not self._are_of_one_memory(partitions):
            raise Infeasible("it gets all the memory of its nodes, which differ in it: which ones is Slurm's choice")
        return self._account_limits.permitted(job, self._spreader.ways(job, self._ever_in(partitions)))

    def _are_of_one_memory(self, partitions: tuple[str, ...]) -> bool:
        if partitions not in self._one_memory:
            self._one_memory[partitions] = len({node.capacity.memory_mb for node in self._ever_in(partitions)}) <= 1
        return self._one_memory[partitions]

    def _ever_in(self, partitions: tuple[str, ...]) -> tuple[ObservedNode, ...]:
        if partitions not in self._ever:
            wanted = set(partitions)
            self._ever[partitions] = tuple(node for node in self._nodes if wanted & node.partitions)
        return self._ever[partitions]

    def _allowed_now(self, job: ObservedJob, partitions: tuple[str, ...]) -> frozenset[str]:
        end_s = float("inf") if job.walltime_s is None else self.now_s + job.walltime_s
        reserved = frozenset[str]().union(
            *(each.nodes for each in self._reservations if each.start_s < end_s and each.end_s > self.now_s)
        )
        kept = self._kept_from(job, end_s)
        key = (partitions, reserved | kept)
        if key not in self._allowed:
            self._allowed[key] = frozenset(node.name for node in self._ever_in(partitions)) - reserved - kept
        if kept and not self._allowed[key]:
            raise Closed(KEPT)
        return self._allowed[key]

    def _kept_from(self, job: ObservedJob, end_s: float) -> frozenset[str]:
        """The nodes that are kept from this job for those of Slurm's own that were submitted before it."""
        before = bisect_right(self._claims, job.submit_s, key=lambda claim: claim.submit_s)
        key = (before, end_s)
        if key not in self._kept:
            claims = (each for each in self._claims[:before] if each.start_s < end_s and each.end_s > self.now_s)
            self._kept[key] = frozenset[str]().union(*(claim.nodes for claim in claims))
        return self._kept[key]
