"""Any policy in the simulator: what its actions hold on the nodes."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction

import pytest
from oracles.disruptions import CountedSimulation, Disruptions
from trace_jobs import JobMaker

from slurm_sns.errors import SnsError
from slurm_sns.model import (
    Action,
    Alternative,
    Plan,
    Requeue,
    Resources,
    Resume,
    SetShare,
    Share,
    Snapshot,
    Start,
    Suspend,
)
from slurm_sns.policies.base import own_geometry
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.engine.planned import PlannedSimulation
from slurm_sns.sim.trace import Trace, TraceJob

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


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_an_exclusive_job_holds_its_nodes_as_a_whole(is_exclusive):
    first, second = of_parts(1, 1).jobs
    way = replace(first.job.alternatives[0], exclusive=is_exclusive)
    trace = Trace((replace(first, job=replace(first.job, alternatives=(way,))), second), {})

    with pytest.raises(SnsError, match="n0 has no room") if is_exclusive else nullcontext():
        PlannedSimulation(TWO_NODES, trace, Placing(("n0",), ("n0",))).run()


def test_a_jobs_expected_end_depends_on_its_alternative():
    first, second = of_parts(1, 1).jobs
    way = replace(first.job.alternatives[0], slowdown=1.5)
    slow = replace(first, job=replace(first.job, alternatives=(way,), expected_run_s=10))
    later = replace(second, job=replace(second.job, submit_s=5, expected_run_s=None))
    policy = Placing(("n0",), ("n1",))

    PlannedSimulation(TWO_NODES, Trace((slow, later), {}), policy).run()

    assert [job.expected_end_s for job in policy.seen[1].active] == [15]
    assert policy.seen[1].waiting[0].expected_run_s is None


class Scripted:
    """Carries out these actions at these moments."""

    alternatives = staticmethod(own_geometry)

    def __init__(self, script: dict[int, tuple[Action, ...]]) -> None:
        self.script = script
        self.seen: list[Snapshot] = []

    def plan(self, snapshot: Snapshot) -> Plan:
        self.seen.append(snapshot)
        later = [time_s for time_s in self.script if time_s > snapshot.now_s]
        return Plan(self.script.get(int(snapshot.now_s), ()), wake_s=min(later, default=None))


def start(identity: int, *nodes: str, gb: int = 1, share: Share = 1, cores: int = 1) -> Start:
    return Start(identity, nodes, Alternative(len(nodes), Resources(cores, gb * GB)), cpu_share=share)


def test_five_tasks_may_share_four_cores():
    policy = Placing(*(("n0",) for _ in range(5)), cpu_share=Fraction(4, 5))
    outcome = PlannedSimulation(TWO_NODES, of_parts(*[1] * 5), policy).run()
    assert {placed.end_s for placed in outcome.placements} == {Fraction(25, 2)}


def test_a_job_in_storage_gives_its_memory_back_and_a_resume_elsewhere_costs_the_penalty():
    policy = Scripted(
        {
            0: (start(0, "n0", gb=8),),
            4: (Suspend(0, to_storage=True),),
            5: (Resume(0, ("n1",)),),
        }
    )
    simulation = CountedSimulation(TWO_NODES, of_parts(1, gb=8), policy, penalty_s=7)

    (placed,) = simulation.run().placements
    assert placed.end_s == 5 + 7 + 6
    assert policy.seen[2].nodes[0].free == Resources(4, 8 * GB)
    assert policy.seen[2].active[0].virtual_s == 4
    assert simulation.disruptions[0] == Disruptions(preemptions=1)


def test_a_suspended_job_that_keeps_its_memory_pays_no_penalty():
    policy = Scripted({0: (start(0, "n0", gb=8),), 4: (Suspend(0),), 5: (Resume(0),)})
    simulation = PlannedSimulation(TWO_NODES, of_parts(1, gb=8), policy, penalty_s=7)
    assert simulation.run().placements[0].end_s == 11
    assert policy.seen[2].nodes[0].free.memory_mb == 0


def test_a_requeued_job_begins_anew():
    policy = Scripted({0: (start(0, "n0"),), 4: (Requeue(0),), 5: (start(0, "n1"),)})
    (placed,) = PlannedSimulation(TWO_NODES, of_parts(1), policy).run().placements
    assert (placed.start_s, placed.end_s) == (5, 15)


@pytest.mark.parametrize(
    ("action", "words"), [(Requeue(0, pool="p"), "there is no pool p"), (Requeue(1), "job 1: .* it is not there")]
)
def test_a_requeue_that_cannot_be_is_a_defect_of_the_policy(action, words):
    with pytest.raises(SnsError, match=words):
        PlannedSimulation(TWO_NODES, of_parts(1), Scripted({0: (start(0, "n0"),), 4: (action,)})).run()


def test_a_move_is_a_suspension_and_a_resume_at_one_moment_and_another_one_restarts_the_penalty():
    moves = (Suspend(0, to_storage=True), Resume(0, ("n1",)))
    back = (Suspend(0, to_storage=True), Resume(0, ("n0",)))
    policy = Scripted({0: (start(0, "n0"),), 4: moves, 6: back, 7: (SetShare(0, Fraction(1, 2)),)})
    simulation = CountedSimulation(TWO_NODES, of_parts(1), policy, penalty_s=7)

    assert simulation.run().placements[0].end_s == 6 + 7 + 12  # six seconds of work at half the speed
    assert simulation.disruptions[0] == Disruptions(migrations=2, tasks_moved=2)


def test_only_tasks_that_leave_a_node_are_moved_and_the_same_nodes_are_no_move():
    shuffled = (Suspend(0, to_storage=True), Resume(0, ("n1", "n0", "n0")))
    moved = (Suspend(0, to_storage=True), Resume(0, ("n1", "n1", "n0")))
    policy = Scripted({0: (start(0, "n0", "n0", "n1"),), 4: shuffled, 6: moved})
    simulation = CountedSimulation(TWO_NODES, of_parts(3), policy)
    simulation.run()
    assert simulation.disruptions[0] == Disruptions(migrations=1, tasks_moved=1)


def test_ends_in_floats_that_should_fall_together_do():
    policy = Placing(("n0",), ("n0",), cpu_share=0.3)
    trace = of_parts(1, 1)
    outcome = PlannedSimulation(TWO_NODES, trace, policy).run()
    assert len({placed.end_s for placed in outcome.placements}) == 1
    assert len(outcome.cycles) == 2
