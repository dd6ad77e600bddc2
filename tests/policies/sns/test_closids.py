"""How many more jobs with ways of their own a node takes."""

import pytest

from slurm_sns.model import Resources
from slurm_sns.policies.sns.closids import closids_for_jobs, closids_free, needs_closid


@pytest.mark.parametrize(
    ("closids", "foreign", "for_jobs"), [(16, 0, 14), (16, 1, 13), (8, 0, 6), (4, 0, 2), (2, 0, 0), (1, 3, 0)]
)
def test_the_root_group_the_shared_group_and_foreign_groups_take_a_closid_each(closids, foreign, for_jobs):
    assert closids_for_jobs(closids, foreign) == for_jobs


def test_only_jobs_with_ways_take_closids():
    demands = [Resources(4, 1024, 3, 10), Resources(4, 1024, 0, 10), Resources(4, 1024)]

    assert closids_free(14, demands) == 13


def test_where_bandwidth_is_capped_a_job_with_bandwidth_takes_one_too():
    demand = Resources(4, 1024, 0, 10)

    assert not needs_closid(demand)
    assert needs_closid(demand, caps_bandwidth=True)
    assert closids_free(14, [demand], caps_bandwidth=True) == 13


def test_a_node_with_more_jobs_than_closids_takes_no_more():
    assert closids_free(2, [Resources(1, 1024, 2)] * 3) == 0
