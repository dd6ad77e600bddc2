"""Any policy in the simulator: what its actions hold on the nodes."""

from collections import Counter
from dataclasses import replace

import pytest

from slurm_sns.errors import SnsError
from slurm_sns.model import Alternative, Plan, Resources, Snapshot, Start
from slurm_sns.policies.base import own_geometry
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.traces.trace import JobMaker, Trace, TraceJob

GB = 1024
TWO_NODES = NodeArrays(("n0", "n1"), amounts([Resources(4, 8 * GB)] * 2))


class Placing:
    """Starts each job at once on the nodes that are named for it."""

    alternatives = staticmethod(own_geometry)

    def __init__(self, *nodes: tuple[str, ...], cpu_share: float = 1) -> None:
        self.nodes, self.cpu_share = nodes, cpu_share
        self.seen: list[Snapshot] = []

    def plan(self, snapshot: Snapshot) -> Plan:
        self.seen.append(snapshot)
        return Plan(
            tuple(
                Start(job.id, self.nodes[job.id], job.alternatives[0], cpu_share=self.cpu_share)
                for job in snapshot.waiting
            )
        )


def of_parts(*parts: int, cores: int = 1, gb: int = 1) -> Trace:
    """Jobs of so many parts, each of them a task, that run for 10 s."""
    maker = JobMaker(1.0)
    made = [maker.job(at, 0, 10, nodes=1, cores=cores, memory_mb=gb * GB) for at in range(len(parts))]
    ways = [Alternative(count, Resources(cores, gb * GB)) for count in parts]
    jobs = [TraceJob(replace(each.job, alternatives=(way,)), 10) for each, way in zip(made, ways, strict=True)]
    return Trace(tuple(jobs), dict(Counter()))


def test_a_job_may_have_several_tasks_on_one_node():
    policy = Placing(("n0", "n0", "n1"), ("n1",))
    PlannedSimulation(TWO_NODES, of_parts(3, 1, cores=2, gb=3), policy).run()

    at_the_end_of_both = policy.seen[-1]
    assert [node.free for node in at_the_end_of_both.nodes] == [Resources(4, 8 * GB)] * 2
    assert len(policy.seen) == 2


@pytest.mark.parametrize(("parts", "words"), [({"cores": 3}, "n0 has no room"), ({"gb": 5}, "n0 has no room")])
def test_no_node_holds_more_than_it_has(parts, words):
    with pytest.raises(SnsError, match=words):
        PlannedSimulation(TWO_NODES, of_parts(2, **parts), Placing(("n0", "n0"))).run()


def test_shares_of_cpu_are_what_tasks_hold_of_the_cores_and_their_memory_is_whole():
    policy = Placing(("n0", "n0"), cpu_share=0.5)
    outcome = PlannedSimulation(TWO_NODES, of_parts(2, cores=4, gb=4), policy).run()

    assert [placed.end_s for placed in outcome.placements] == [20]
    with pytest.raises(SnsError, match="no room"):
        PlannedSimulation(TWO_NODES, of_parts(2, cores=4, gb=5), Placing(("n0", "n0"), cpu_share=0.5)).run()


def test_a_node_that_is_not_there_is_a_defect_of_the_policy():
    with pytest.raises(SnsError, match="there is no node n7"):
        PlannedSimulation(TWO_NODES, of_parts(1), Placing(("n7",))).run()
