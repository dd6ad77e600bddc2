"""The starts by the rule of `squeue --start`: whole nodes are booked, in queue order, until limits."""

from math import inf

import numpy as np

from slurm_sns.estimates.look_ahead import EXACT, Scene
from slurm_sns.model import ActiveJob, ActiveState, Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.sim.replay.booked_starts import booked_starts

RULES = rules_of(MatchingParameters())


def job(identity: int, nodes: int = 1, cores: int = 4) -> Job:
    return Job(identity, identity, (Alternative(nodes, Resources(cores, 1024)),), order=(identity,))


def held(identity: int, *nodes: str) -> ActiveJob:
    return ActiveJob(identity, ActiveState.RUNNING, nodes, Resources(4, 0), 0)


def starts(waiting, active, run_s, end_s, most=100) -> list[float]:
    nodes = tuple(Node(name, Resources(4, 4096), Resources(4 * (name == "c"), 4096)) for name in "abc")
    scene = Scene(RULES, Snapshot(nodes, tuple(waiting), active=tuple(active)), EXACT)
    return booked_starts(scene, np.array(run_s, np.float64), np.array(end_s, np.float64), most).tolist()


def test_a_job_starts_when_enough_nodes_have_come_free():
    active = [held(8, "a"), held(9, "b")]

    assert starts([job(1, nodes=2)], active, [60], [300, 500]) == [300]
    assert starts([job(1, nodes=3)], active, [60], [300, 500]) == [500]


def test_a_later_job_goes_first_where_no_booking_is_in_its_way():
    active = [held(8, "a"), held(9, "b")]
    wide, short, long = job(1, nodes=3), job(2), job(3)

    assert starts([wide, short, long], active, [60, 200, 600], [300, 500]) == [500, 0, 560]


def test_a_booking_takes_the_whole_node():
    small = [job(each, cores=1) for each in (1, 2)]

    assert starts(small, [held(8, "a", "b")], [60, 60], [1000]) == [0, 60]


def test_jobs_behind_those_that_are_booked_for_and_behind_an_endless_one_have_no_start():
    assert starts([job(1), job(2)], [held(8, "a", "b")], [60, 60], [1000], most=1) == [0, inf]
    assert starts([job(1, nodes=2)], [held(8, "a", "b")], [60], [inf]) == [inf]
