"""Yields by placements, and virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.sharing.progress import RunProgress, SharingJob, yields


def test_a_job_goes_on_by_the_part_that_its_busiest_node_has_for_it():
    jobs = [
        SharingJob(1, ("f1", "f2"), 4),
        SharingJob(2, ("f1",), 4),
        SharingJob(3, ("f2",), 2),
        SharingJob(4, ("f3",), 1),
    ]
    assert yields({"f1": 4, "f2": 4, "f3": 4}, jobs) == {1: 0.5, 2: 0.5, 3: pytest.approx(4 / 6), 4: 1.0}


def test_a_node_whose_cores_are_not_known_has_enough_for_all():
    assert yields({"a": 0}, [SharingJob(1, ("a",), 4), SharingJob(2, ("b",), 4)]) == {1: 1.0, 2: 1.0}


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 9)).map(
            lambda pair: (tuple(sorted(pair[0])), pair[1])
        ),
        max_size=9,
    )
)
def test_no_node_gives_more_than_it_has(placed):
    cores = {"a": 4, "b": 8, "c": 1}
    jobs = [SharingJob(number, nodes, need) for number, (nodes, need) in enumerate(placed)]
    parts = yields(cores, jobs)
    for name, has in cores.items():
        assert sum(parts[job.id] * job.cores for job in jobs if name in job.nodes) <= has + 1e-9
    assert all(0 < part <= 1 for part in parts.values())


def test_virtual_time_is_the_integral_of_the_yield_and_a_new_run_begins_it_anew():
    at = RunProgress().after(0, 100.0, 0.5)
    assert (at.virtual_s, at.all_s) == (50.0, 50.0)
    at = at.after(0, 200.0, 1.0)
    assert at.virtual_s == 150.0
    assert at.after(0, 190.0, 1.0).virtual_s == 150.0, "the time was set back"
    again = at.after(1, 10.0, 0.5)
    assert (again.virtual_s, again.before_s, again.all_s) == (5.0, 150.0, 155.0)
