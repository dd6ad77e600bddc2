"""FCFS: jobs start in queue order, and the first that finds no place holds back the others."""

import pytest
from clusters import GB, job, node, placed
from oracles.batch.policies import fcfs

from slurm_sns.errors import BadInput
from slurm_sns.model import Alternative, Project, Resources, Snapshot
from slurm_sns.policies.base import JobRequest
from slurm_sns.policies.baselines.parameters import BatchParameters

FOUR = tuple(map(node, "abcd"))


def whole(identity: int, nodes: int, **fields):
    return job(identity, alternatives=(Alternative(nodes, Resources(4, GB), exclusive=True),), **fields)


def plan(*waiting, nodes=FOUR, projects=None, **parameters):
    return fcfs(BatchParameters(**parameters)).plan(Snapshot(nodes, waiting, projects or {}))


def test_jobs_start_in_queue_order():
    made = plan(whole(1, 1), whole(2, 2), whole(3, 1))

    assert placed(made) == {1: "a", 2: "b+c", 3: "d"}
    assert made.starts[0].reason == "in queue order"
    assert not made.waiting


def test_no_job_overtakes_the_first_that_finds_no_place():
    made = plan(whole(1, 3), whole(2, 2), whole(3, 1))

    assert placed(made) == {1: "a+b+c"}
    assert made.waiting == {
        2: "needs 2 empty nodes with 4 cores and 1024 MiB each; nodes that fit: 1",
        3: "behind job 2, which finds no place yet",
    }


def test_the_project_that_holds_least_of_its_share_comes_first():
    waiting = (whole(1, 2, project="physics"), whole(2, 2, project="physics"), whole(3, 2, project="chemistry"))

    assert list(placed(plan(*waiting, projects={"physics": Project(1.0), "chemistry": Project(1.0)}))) == [1, 3]


def test_a_cycle_looks_at_queue_depth_jobs():
    made = plan(whole(1, 1), whole(2, 1), whole(3, 1), queue_depth=2)

    assert list(placed(made)) == [1, 2]
    assert made.waiting == {3: "behind the first 2 jobs of the queue (queue_depth)"}


def test_jobs_are_placed_as_the_chosen_policy_places_them():
    waiting = (job(1, cores=2), job(2, cores=2), job(3, cores=4))

    assert placed(plan(*waiting, placement="first-fit")) == {1: "a", 2: "a", 3: "b"}
    assert placed(plan(*waiting, placement="worse-fit-cores")) == {1: "a", 2: "b", 3: "c"}


@pytest.mark.parametrize(("placement", "is_exclusive"), [("ce", True), ("cs", False), ("mix-fit", False)])
def test_a_jobs_alternatives_are_those_of_the_chosen_policy(placement, is_exclusive):
    own = Alternative(1, Resources(2, GB))
    choice = fcfs(BatchParameters(placement)).alternatives(JobRequest(own), ())

    assert [each.exclusive for each in choice.alternatives] == [is_exclusive]


def test_another_way_of_placing_is_refused():
    with pytest.raises(BadInput, match="placement is 'magic'; valid: ce, cs, sns, first-fit"):
        fcfs(BatchParameters("magic"))
