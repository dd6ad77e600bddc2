"""One planner for partitions whose jobs share cores, and one for all others: their nodes are different ones.

Each plans on its own part of the snapshot, and their plans are put together. The planner of all others is the site's
policy: its history and its report are those of the whole.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.base import Choice, Explanation, JobRequest, NodeType, Policy


class ByPartition:
    """A policy made of two: `sharing` plans the partitions of these names, `others` all else."""

    def __init__(self, others: Policy, sharing: Policy, partitions: frozenset[str]) -> None:
        self.others = others
        self._sharing, self._partitions = sharing, partitions

    def alternatives(self, asked: JobRequest, nodes: Sequence[NodeType], /) -> Choice:
        """Those of the site's policy: it chooses geometry by profiles, and jobs without one keep their own."""
        return self.others.alternatives(asked, nodes)

    def plan(self, snapshot: Snapshot) -> Plan:
        """Both plans."""
        sharing, others = parts(snapshot, self._partitions)
        plan = self.others.plan(others)
        if not (sharing.waiting or sharing.active):
            return plan
        beside = self._sharing.plan(sharing)
        withheld = (*plan.report.withheld_for, *beside.report.withheld_for)
        return replace(
            plan,
            actions=(*plan.actions, *beside.actions),
            waiting={**plan.waiting, **beside.waiting},
            report=replace(plan.report, withheld_for=withheld),
        )

    def explain(self, snapshot: Snapshot, plan: Plan, job_id: int) -> Explanation | None:
        """That of the policy that plans the job."""
        sharing, others = parts(snapshot, self._partitions)
        if any(job.id == job_id for job in sharing.waiting):
            return self._sharing.explain(sharing, plan, job_id)
        return self.others.explain(others, plan, job_id)


def parts(snapshot: Snapshot, partitions: frozenset[str]) -> tuple[Snapshot, Snapshot]:
    """The part of the snapshot with these partitions, and the other one."""
    names = frozenset(name for pool in snapshot.pools if pool.name in partitions for name in pool.nodes)

    def part(*, is_theirs: bool) -> Snapshot:
        return replace(
            snapshot,
            nodes=tuple(node for node in snapshot.nodes if (node.name in names) is is_theirs),
            waiting=tuple(job for job in snapshot.waiting if (job.pool in partitions) is is_theirs),
            active=tuple(job for job in snapshot.active if names.isdisjoint(job.nodes) is not is_theirs),
        )

    return part(is_theirs=True), part(is_theirs=False)
