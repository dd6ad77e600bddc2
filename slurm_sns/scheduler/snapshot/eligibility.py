"""Which nodes a live job may use now, and its alternatives there.

That depends on its partitions, on the nodes that it asks for (--constraint) or excludes (-x), on reservations and on
node claims. Each set of nodes costs a cycle work on every node, and owners choose what they ask for and exclude. So the
wishes of one owner's jobs, by their texts, are limited: a job with another one is Slurm's.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from math import inf
from operator import attrgetter
from typing import NamedTuple

from slurm_sns import constraints
from slurm_sns.errors import BadInput, Closed, ClosedForGood, Infeasible, NeverStarts
from slurm_sns.model import Alternative, Reason, Resources, WaitKind
from slurm_sns.policies.base import Choice
from slurm_sns.policies.placement.request import holding
from slurm_sns.scheduler.gate import arrays
from slurm_sns.scheduler.observation import Observation, ObservedJob
from slurm_sns.scheduler.snapshot.backlog_claims import NodeClaim
from slurm_sns.scheduler.snapshot.geometry import alike, names_no_memory, needs_alike
from slurm_sns.scheduler.snapshot.limits import AccountLimits, PartitionLimits
from slurm_sns.scheduler.snapshot.node_sets import NodeKinds, NodeSets
from slurm_sns.scheduler.snapshot.spreading import Spreader, SpreadRules
from slurm_sns.submit.hints import asks_for_spreading

#: Why a job waits when all of its nodes are claimed. Users are told no more about other users' jobs.
KEPT = Reason("its nodes are kept for jobs of Slurm's own that were submitted before it", WaitKind.KEPT)

#: So many different wishes may the waiting jobs of one user have.
MOST_WISHES = 64


#: More claims than this are told apart in so many steps only, by the times of their submission and of their start. Half
#: of the steps end where most time lies between two, the others part them evenly. A user could have hundreds planned by
#: Slurm, and jobs submitted between each two: each pair would be a set of nodes.
MOST_STEPS = 16

#: So many kinds of jobs have an object each: as many as a slurmctld has jobs.
MOST_KINDS = 1 << 17

_looked_at = attrgetter(
    *("user_id", "user", "qos", "partitions", "constraint", "excluded", "is_alone", "hints", "gpus", "has_open_nodes"),
    *("tasks", "cpus", "cpus_per_task", "min_cpus_per_node", "nodes_min", "nodes_max", "tasks_per_node"),
    *("memory_per_cpu_mb", "memory_per_node_mb", "walltime_s", "time_min_s"),
)


def kind_of(job: ObservedJob) -> object:
    """One object for all jobs that are alike to `Eligibility.of`, whenever they were submitted.

    The same observation then gives them the same nodes and alternatives, if as many node claims are ahead of them.
    """
    record, hints = job.record, job.hints
    name = job.name if hints is not None and asks_for_spreading(hints) else ""
    return _one_kind((*_looked_at(job), name, record is None or record.is_slurms))


@lru_cache(maxsize=MOST_KINDS)
def _one_kind(_: tuple[Hashable, ...]) -> object:
    return object()


class _Wish(NamedTuple):
    """What a job asks of each of its nodes, whatever else it asks for."""

    constraint: str
    excluded: tuple[str, ...]
    whole_memory_per_cpu_mb: int | None
    """Of a job with whole nodes (--exclusive): Slurm gives it this memory for each of their CPUs."""

    def nodes(self, sets: NodeSets) -> int:
        """The nodes that it leaves.

        Raises:
            BadInput: the constraint is none that we read.
        """
        constraint, bits = constraints.read(self.constraint), 0
        for (features, cpus, memory_mb), nodes in sets.alike_to_wishes.items():
            if (self.whole_memory_per_cpu_mb or 0) * cpus <= memory_mb and constraints.admits(constraint, features):
                bits |= nodes
        return bits & ~sets.of_names(self.excluded)


class Eligibility:
    """The nodes that each job may ever use, and those that it may use now.

    Jobs that may use the same nodes share one set, whatever their partitions and time limits: the number of sets grows
    with the reservations and claims, for each of the wishes, and not with the jobs.
    """

    def __init__(
        self, observation: Observation, now_s: float, spreading: SpreadRules, claims: Sequence[NodeClaim] = ()
    ) -> None:
        self._all_nodes = observation.nodes
        self._sets = NodeSets(observation.nodes)
        reserved = [each for each in observation.reservations if each.end_s > now_s]
        self._reservations = sorted((each.start_s, self._sets.of_names(each.nodes)) for each in reserved)
        claimed = [each for each in claims if each.end_s > now_s]
        self._claims = [(each.submit_s, each.start_s, self._sets.of_names(each.nodes)) for each in claimed]
        self._claim_starts_s = sorted(start_s for _, start_s, _ in self._claims)
        self._submit_steps = _steps([submit_s for submit_s, _, _ in self._claims])
        self._start_steps = _steps(self._claim_starts_s)
        self._topology = observation.topology
        self._parts = self._sets.parts(observation.topology)
        self._limits = PartitionLimits(observation)
        self._account_limits = AccountLimits(observation.tres_limits)
        self.now_s = now_s
        self._spreader = Spreader(spreading)
        self._wishes: defaultdict[int, dict[_Wish, int]] = defaultdict(dict)
        self._known_wishes: dict[tuple[int, str, int, int | None], int] = {}
        self._kept: dict[tuple[int, int], int] = {}
        self._alike: dict[tuple[tuple[Alternative, ...], int, frozenset[str] | None], frozenset[str]] = {}
        self._kept_together: dict[tuple[tuple[Alternative, ...], int], tuple[Alternative, ...]] = {}
        self._usable: dict[frozenset[str], Counter[Resources]] = {}
        self._free: dict[int, Counter[tuple[Resources, bool]]] = {}

    def of(self, job: ObservedJob) -> tuple[Choice, frozenset[str]]:
        """The job's alternatives, and the nodes that it may use now.

        Slurm runs a job in one of its partitions: only a job of one node may use the nodes of several partitions.

        Raises:
            Infeasible: the job can never run there, or not on nodes of our choice, or not without changing a limited
                TRES, or its owner's jobs have too many different wishes.
            Closed: none of its partitions would start it now, all of its nodes are claimed, or its owner has too many
                jobs of new sizes.
        """
        choice, partitions = self._resolved(job)
        choice = self._limits.permitted(job, choice, partitions)
        allowed = self._allowed_now(job, partitions)
        if needs_alike(job, choice.alternatives):
            if not self._alike_in(choice, self._ever(job, partitions), None):
                raise Infeasible("no nodes of its partitions with the same memory could hold it alone")
            allowed = self._alike_in(choice, self._ever(job, partitions), allowed)
        return choice, allowed

    def kinds_for(self, job: ObservedJob) -> NodeKinds:
        """The kinds of the nodes that the job may ever use by its alternatives.

        Raises:
            Infeasible, Closed: as `of`.
        """
        return self._sets.kinds(self._ever(job, self._resolved(job)[1]))

    def of_first(self, job: ObservedJob, first: Alternative, among: frozenset[str]) -> frozenset[str]:
        """Those of the nodes `among` that the job may use now for an alternative which is put before all others.

        Raises:
            Infeasible, Closed: the job may not run by it; otherwise as `of`.
        """
        partitions = self._resolved(job)[1]
        choice = self._account_limits.permitted(job, Choice((first,)))
        choice = self._limits.permitted(job, choice, partitions)
        allowed = self._allowed_now(job, partitions) & among
        if not needs_alike(job, choice.alternatives):
            return allowed
        return self._alike_in(choice, self._ever(job, partitions), allowed)

    def _resolved(self, job: ObservedJob) -> tuple[Choice, tuple[str, ...]]:
        """The job's alternatives, and the partitions that they are made for; none of these is closed to the job."""
        found = self._in(job, job.partitions)
        closed = self._limits.closed(job)
        return self._in_the_others(job, closed) if closed else found

    def _ever(self, job: ObservedJob, partitions: tuple[str, ...]) -> int:
        """The nodes of these partitions that the job may ever use, by what it asks of each of its nodes."""
        bits = self._sets.of_partitions(partitions)
        if not (job.constraint or job.excluded or job.is_alone):
            return bits
        memory_mb = job.memory_per_cpu_mb if job.is_alone else None
        # A list of excluded nodes may be long; jobs with the same text share it (node_lists), so it is hashed once.
        key = job.user_id, job.constraint, id(job.excluded), memory_mb
        if key not in self._known_wishes:
            self._known_wishes[key] = self._wished(_Wish(job.constraint, job.excluded, memory_mb), job.user_id)
        return bits & self._known_wishes[key]

    def _wished(self, wish: _Wish, user_id: int) -> int:
        wishes = self._wishes[user_id]
        if wish not in wishes:
            if len(wishes) >= MOST_WISHES:
                raise Infeasible(
                    f"the jobs of its owner that wait ask for more than {MOST_WISHES} different sets of nodes "
                    "(--constraint, --exclude, --exclusive with other --mem-per-cpu): Slurm places the others"
                )
            try:
                wishes[wish] = wish.nodes(self._sets)
            except BadInput as problem:
                raise Infeasible(str(problem)) from None
        return wishes[wish]

    def _alike_in(self, choice: Choice, ever: int, allowed: frozenset[str] | None) -> frozenset[str]:
        """The nodes with the same memory that the job is to use, of the allowed ones or (None) of all."""
        key = (choice.alternatives, ever, allowed)
        if key not in self._alike:
            nodes = [node for node in self._sets.members(ever) if allowed is None or node.name in allowed]
            self._alike[key] = alike(nodes, choice.alternatives)
        return self._alike[key]

    def _in(self, job: ObservedJob, partitions: tuple[str, ...]) -> tuple[Choice, tuple[str, ...]]:
        """The job's alternatives and their partitions: all of these, or one when an alternative takes several nodes."""
        choice = self._choice(job, partitions)
        if len(partitions) > 1 and any(alternative.nodes > 1 for alternative in choice.alternatives):
            return self._in_one_partition(job, partitions)
        return choice, partitions

    def _in_the_others(self, job: ObservedJob, closed: dict[str, Reason]) -> tuple[Choice, tuple[str, ...]]:
        """The same as `_in`, for the job's partitions that are not closed to it.

        Raises:
            Closed: there are no others, or they could never hold the job; ClosedForGood if no time changes that.
        """
        others = tuple(name for name in job.partitions if name not in closed)
        why, is_for_good = "; ".join(closed.values()), all(each.kind is WaitKind.NEVER for each in closed.values())
        if not others:
            raise ClosedForGood(why) if is_for_good else Closed(why)
        try:
            return self._in(replace(job, partitions=others), others)
        except Infeasible as elsewhere:
            is_for_good = is_for_good and isinstance(elsewhere, NeverStarts)
            raise (ClosedForGood if is_for_good else Closed)(f"{why}; {elsewhere}") from None

    def room(self, choice: Choice, allowed: frozenset[str]) -> int:
        """How many jobs with this choice the allowed nodes could hold if they were empty."""
        if allowed not in self._usable:
            usable = (node for node in self._all_nodes if node.name in allowed and not node.unavailable)
            self._usable[allowed] = Counter(node.capacity for node in usable)
        return arrays.room(choice.alternatives, self._usable[allowed])

    def _in_one_partition(self, job: ObservedJob, partitions: tuple[str, ...]) -> tuple[Choice, tuple[str, ...]]:
        """The job's alternatives in one of these partitions, and that partition.

        It is the first with enough nodes that have room now; without any, the first that could ever hold the job.

        Raises:
            Infeasible: there is none; NeverStarts if none could hold it for Slurm either. The reason is the last one's.
        """
        holding_it: list[tuple[Choice, tuple[str, ...]]] = []
        found: list[Infeasible] = []
        for name in partitions:
            try:
                choice = self._choice(job, (name,))
            except Infeasible as why:
                found.append(why)
                continue
            if self._has_room_now(choice, self._allowed_bits(job, (name,))):
                return choice, (name,)
            holding_it.append((choice, (name,)))
        if holding_it:
            return holding_it[0]
        is_sure = all(isinstance(why, NeverStarts) for why in found)
        raise (NeverStarts if is_sure else Infeasible)(str(found[-1])) from None

    def _has_room_now(self, choice: Choice, bits: int) -> bool:
        """Whether as many of these nodes have room now as one of the alternatives takes."""
        if bits not in self._free:
            up = (node for node in self._sets.members(bits) if not node.unavailable)
            self._free[bits] = Counter((node.left(), not any(node.allocated)) for node in up)
        return any(
            sum(
                number
                for (free, is_empty), number in self._free[bits].items()
                if alternative.demand.within(free) and (is_empty or not alternative.exclusive)
            )
            >= alternative.nodes
            for alternative in choice.alternatives
        )

    def _choice(self, job: ObservedJob, partitions: tuple[str, ...]) -> Choice:
        ever = self._ever(job, partitions)
        if names_no_memory(job) and len({kind.capacity.memory_mb for kind in self._sets.kinds(ever)}) > 1:
            raise Infeasible(
                "it gets all the memory of its nodes, and the nodes of its partitions differ in memory: "
                "Slurm must choose them"
            )
        if not ever and self._sets.of_partitions(partitions):
            raise Infeasible(
                "no node of its partitions is left by its constraint, the nodes that it excludes, and what memory it "
                "asks for with whole nodes"
            )
        return self._account_limits.permitted(
            job, self._joined(self._spreader.choice(job, self._sets.kinds(ever)), ever)
        )

    def _joined(self, choice: Choice, ever: int) -> Choice:
        """The alternatives on one node, and on several those for which nodes that are connected are large enough.

        Raises:
            Infeasible: there is none.
        """
        if not (self._parts or self._topology.unknown):
            return choice
        key = (choice.alternatives, ever)
        if key not in self._kept_together:
            kept = (each for each in choice.alternatives if each.nodes == 1 or self._holds_together(each, ever))
            self._kept_together[key] = tuple(kept)
        if not self._kept_together[key]:
            why = self._topology.unknown or "no nodes that are connected (topology, never_across) could hold it"
            raise Infeasible(f"it runs on several nodes, and {why}: Slurm must choose them")
        return choice._replace(alternatives=self._kept_together[key])

    def _holds_together(self, alternative: Alternative, ever: int) -> bool:
        return not self._topology.unknown and any(
            holding(alternative.demand, self._sets.kinds(ever & part)) >= alternative.nodes for part in self._parts
        )

    def _allowed_now(self, job: ObservedJob, partitions: tuple[str, ...]) -> frozenset[str]:
        allowed = self._allowed_bits(job, partitions)
        if not allowed and self._kept_from(job, self._end_s(job)):
            raise Closed(KEPT)
        return self._sets.names(allowed)

    def _allowed_bits(self, job: ObservedJob, partitions: tuple[str, ...]) -> int:
        end_s = self._end_s(job)
        return self._ever(job, partitions) & ~self._reserved_until(end_s) & ~self._kept_from(job, end_s)

    def _end_s(self, job: ObservedJob) -> float:
        return inf if job.walltime_s is None else self.now_s + job.walltime_s

    def _reserved_until(self, end_s: float) -> int:
        """The nodes of the reservations that begin before `end_s`."""
        bits = 0
        for start_s, nodes in self._reservations:
            if start_s >= end_s:
                break
            bits |= nodes
        return bits

    def claims_ahead(self, job: ObservedJob) -> int:
        """How many node claims count as ahead of this job: those of pass-through jobs that were submitted no later.

        Where there are many, some more count, to the end of a step.
        """
        if not self._claims:
            return 0
        return _to_a_step(self._submit_steps, bisect_right(self._claims, job.submit_s, key=lambda claim: claim[0]))

    def _kept_from(self, job: ObservedJob, end_s: float) -> int:
        """The nodes that are kept from this job for the pass-through jobs ahead of it.

        Jobs share a result when as many claims are ahead of them and as many begin before their end. Where there are
        many, some claims count that begin later, to the end of a step.
        """
        before = self.claims_ahead(job)
        begun = _to_a_step(self._start_steps, bisect_left(self._claim_starts_s, end_s))
        key = (before, begun)
        if key not in self._kept:
            last_s = self._claim_starts_s[begun - 1] if begun else -inf
            bits = 0
            for _, start_s, nodes in self._claims[:before]:
                bits |= nodes if start_s <= last_s else 0
            self._kept[key] = bits
        return self._kept[key]


def _steps(moments_s: Sequence[float]) -> list[int]:
    """How many of these moments, in order, the first step has, the first two have, and so on."""
    count, half = len(moments_s), MOST_STEPS // 2
    if count <= MOST_STEPS:
        return [*range(1, count + 1)]
    widest = nlargest(half, range(1, count), key=lambda at: moments_s[at] - moments_s[at - 1])
    return sorted({*widest, *(count * part // half for part in range(1, half + 1))})


def _to_a_step(steps: Sequence[int], claims: int) -> int:
    """So many claims, and those of the step that has begun."""
    return steps[bisect_left(steps, claims)] if claims else 0
