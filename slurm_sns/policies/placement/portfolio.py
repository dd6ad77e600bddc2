"""A portfolio of heuristics: run each on the same queue and nodes, keep the schedule that matched the most jobs.

Inside one member's schedule jobs are taken in queue order and a job's alternatives best first, unless the order is
adaptive (below); the first alternative that finds its nodes is taken. Among schedules with equally many jobs the one of
the member wins that had its turn first (module `ties`). If the rules weigh slowdowns, the smaller sum of predicted
slowdowns wins, and only then the first turn. A portfolio of one name is that heuristic alone. Every policy that matches
jobs to nodes is a `Portfolio` with its own rules and alternatives.

If the order of alternatives is adaptive and not the whole queue is matched, every member schedules once more, with each
job's alternatives by use of the cluster, least first (module `use`). The best of these schedules is then the result.

Source: Max-Jobs paper (JSSPP 2013), section 4, figure 12. Slowdowns, members for profiled jobs and the ways kept for
jobs without profile are this project's own combination with Spread-n-Share (SC'19).
"""

from collections.abc import Callable, Sequence
from itertools import chain

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Job, Node, Plan, Report, Resources, Snapshot
from slurm_sns.policies.base import Explanation, MakeAlternatives, own_geometry
from slurm_sns.policies.placement.heuristic_names import ADAPTIVE
from slurm_sns.policies.placement.heuristics import HEURISTICS, Heuristic, heuristics_of
from slurm_sns.policies.placement.kernel_arrays import Releases
from slurm_sns.policies.placement.kernel_matching import Kernel
from slurm_sns.policies.placement.node_arrays import WAYS, Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import PassRecord, Schedule
from slurm_sns.policies.placement.ready_time_kernel import NOTHING_COMES_FREE, coming_free
from slurm_sns.policies.placement.reasons import explain, reasons_to_wait, starts
from slurm_sns.policies.placement.rules import Rules
from slurm_sns.policies.placement.waiting_queue import WaitingQueue


class Portfolio:
    """A policy that matches by a portfolio, with the compiled kernel."""

    def __init__(self, rules: Rules, alternatives: MakeAlternatives = own_geometry) -> None:
        """Check the rules.

        Raises:
            BadInput: a portfolio that is empty or repeats, an unknown heuristic, queue_depth < 1, reservations < 0.
        """
        _check(rules)
        self.rules = rules
        self.alternatives = alternatives
        self._heuristics = heuristics_of(rules.beta)
        self._kernel = Kernel(rules)
        self._less_shared_ways: tuple[NodeArrays, NodeArrays] | None = None
        self._last_nodes: tuple[tuple[tuple[str, Resources, int, tuple[str, ...]], ...], NodeArrays] | None = None

    @property
    def asks_for_ends(self) -> bool:
        """Whether a schedule depends on what running jobs will give back."""
        return self.rules.until_start

    def plan(self, snapshot: Snapshot) -> Plan:
        """The starts of the best schedule, and for every other job why it waits."""
        node_arrays = self._arrays_of(snapshot.nodes)
        free = node_arrays.amounts([node.free for node in snapshot.nodes])
        queue = WaitingQueue.of(snapshot.waiting, snapshot.projects, snapshot.now_s)
        coming = NOTHING_COMES_FREE
        if self.asks_for_ends:
            active = snapshot.active, snapshot.completing
            coming = coming_free(node_arrays, free, active, float(snapshot.now_s))
        schedule = self.schedule(node_arrays, free, queue, coming)
        return Plan(
            starts(schedule),
            reasons_to_wait(schedule, snapshot.waiting, self.rules.queue_depth),
            report=Report(
                schedule.chosen,
                schedule.matched,
                tuple(each.job.id for each in schedule.withheld if each.start_s is None),
            ),
            record=schedule.record,
        )

    def explain(self, snapshot: Snapshot, plan: Plan, job_id: int) -> Explanation:
        """What the pass that gave this plan did with the job, member by member, from what it wrote down.

        A plan without its record is made again.

        Raises:
            BadInput: the job is not among the snapshot's waiting jobs.
        """
        if not isinstance(plan.record, PassRecord):
            plan = self.plan(snapshot)
        assert isinstance(plan.record, PassRecord)  # noqa: S101  it was made by `plan`
        return explain(
            snapshot,
            plan,
            job_id,
            plan.record,
            lambda member, job: self._chooser(member)(job),
            adaptive_depth=self.rules.queue_depth if self.rules.order == ADAPTIVE else None,
        )

    def schedule(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, coming: Releases = NOTHING_COMES_FREE
    ) -> Schedule:
        """The best member's schedule, without reasons. `free` and `queue` are not changed.

        `coming` is what running jobs will give back, of use only under the rule `until_start`.
        """
        node_arrays, free = self._unshared(node_arrays, free)
        profiled = not self.rules.only_for_profiled or some_profiled(queue)
        return self._kernel.run(node_arrays, free, queue, coming, some_profiled=profiled)

    def _arrays_of(self, nodes: Sequence[Node]) -> NodeArrays:
        """The arrays of these nodes; those of the last plan, whose tables serve again, if the nodes are the same."""
        key = tuple([(node.name, node.capacity, node.weight, node.switches) for node in nodes])
        known = self._last_nodes  # read once: another thread may explain a job of another snapshot meanwhile
        if known is None or known[0] != key:
            known = self._last_nodes = (key, NodeArrays.of(nodes))
        return known[1]

    def _unshared(self, node_arrays: NodeArrays, free: Amounts) -> tuple[NodeArrays, Amounts]:
        """The nodes, and what is free on them, without the ways that are kept for jobs without profile."""
        if not self.rules.shared_ways:
            return node_arrays, free
        found = self._less_shared_ways  # read once: another thread may explain a job of another snapshot meanwhile
        if found is None or found[0] is not node_arrays:
            found = self._less_shared_ways = (node_arrays, self.rules.unshared(node_arrays))
        left = free.copy()
        left[WAYS] -= node_arrays.capacity[WAYS] - found[1].capacity[WAYS]
        return found[1], left

    def _chooser(self, member: str) -> Callable[[Job], Heuristic]:
        """The heuristic for a job: the one it names, else the default, else the member's; `idlest` with our beta."""
        by_default = self._heuristics[self.rules.default_heuristic or member]

        def choose(job: Job) -> Heuristic:
            # A name that is not known here was refused at submit; one that slipped through must not stop the cycle.
            return self._heuristics.get(job.heuristic, by_default) if job.heuristic else by_default

        return choose


def some_profiled(queue: WaitingQueue) -> bool:
    """Whether some queued job has a profile: several alternatives, or a demand of ways or bandwidth."""
    jobs = chain(queue.over_aged, *queue.by_project.values())
    return any(has_profile(job.alternatives) for job in jobs)


def has_profile(alternatives: tuple[Alternative, ...]) -> bool:
    """Whether these are a profiled job's. It is so cheap for each job of a long queue that no result is cached."""
    if len(alternatives) != 1:
        return bool(alternatives)
    demand = alternatives[0].demand
    return bool(demand.ways or demand.bandwidth_gbps)


def _check(rules: Rules) -> None:
    if not rules.portfolio:
        raise BadInput(f"portfolio is empty; valid: one or more of {', '.join(HEURISTICS)}")
    named = [("portfolio", name) for name in rules.portfolio]
    if rules.default_heuristic is not None:
        named.append(("default_heuristic", rules.default_heuristic))
    for where, name in named:
        if name not in HEURISTICS:
            raise BadInput(f"{where}: heuristic '{name}' is unknown; valid: {', '.join(HEURISTICS)}")
    if len(set(rules.portfolio)) < len(rules.portfolio):
        raise BadInput(f"portfolio names a heuristic twice: {', '.join(rules.portfolio)}; valid: each at most once")
    if rules.queue_depth < 1:
        raise BadInput(f"queue_depth is {rules.queue_depth}; valid: 1 or more")
    if rules.reservations < 0:
        raise BadInput(f"reservations is {rules.reservations}; valid: 0 or more")
