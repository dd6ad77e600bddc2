"""The checker of the comparison with Slurm alone, on hand-made evidence; it needs no cluster."""

from dataclasses import replace
from math import inf

from comparison_check import IdleWait, Job, could_start, idle_waits, mean_wait_s, over_capacity
from comparison_profile import NodeSize, Part, Parts, Profile
from comparison_workload import Shape
from hypothesis import given
from hypothesis import strategies as st

MAIN = frozenset({"main"})
TWO_NODES = (NodeSize("n1", 4, 4000, MAIN), NodeSize("n2", 4, 4000, MAIN))


def on(**cores: int) -> Parts:
    """So many cores of each node, with 1000 MiB each."""
    return {name: Part(number, 1000 * number) for name, number in cores.items()}


def job(number: int, shape: Shape, submit_s: float = 0, limit_s: float = 60, **known: object) -> Job:
    """A job that waits from its submission on, and never starts unless `known` says so."""
    made = Job(number, shape, limit_s, submit_s, submit_s)
    return replace(made, **known)  # type: ignore[arg-type]  # each test names fields of Job


def tasks(number: int, **further: object) -> Shape:
    """A job of so many cores, 1000 MiB for each."""
    return replace(Shape(number, 1000), **further)  # type: ignore[arg-type]  # as above, of Shape


FULL = job(1, tasks(4), start_s=0, end_s=10, parts=on(n1=4))


def waits(*jobs: Job, until_s: float = 10) -> list[tuple[int, float, float]]:
    return [(each.job_id, each.since_s, each.until_s) for each in idle_waits(jobs, TWO_NODES, until_s)]


def test_a_job_that_waits_beside_an_idle_node_is_called_so_for_as_long_as_it_waits() -> None:
    late = job(2, tasks(2), submit_s=1, start_s=8, end_s=9, parts=on(n2=2))
    assert idle_waits([FULL, late], TWO_NODES, 10) == [IdleWait(2, 1, 8, ("n2",))]


def test_a_job_that_starts_as_soon_as_it_is_submitted_has_not_waited() -> None:
    assert waits(FULL, job(2, tasks(2), submit_s=1, start_s=1, end_s=9, parts=on(n2=2))) == []


def test_a_job_that_fits_nowhere_may_wait() -> None:
    other = job(2, tasks(4), start_s=0, end_s=10, parts=on(n2=4))
    assert waits(FULL, other, job(3, tasks(1))) == []


def test_memory_keeps_a_job_waiting_as_cores_do() -> None:
    other = job(2, tasks(1), start_s=0, end_s=10, parts={"n2": Part(1, 4000)})
    assert waits(FULL, other, job(3, tasks(1))) == []


def test_a_job_that_would_delay_an_earlier_one_by_its_time_limit_may_wait() -> None:
    wide = job(2, tasks(8))  # it can start when FULL's limit is over, at 60
    assert waits(FULL, wide, job(3, tasks(2), submit_s=1, limit_s=120)) == []


def test_a_job_that_ends_before_an_earlier_one_can_start_should_start() -> None:
    wide = job(2, tasks(8))
    assert waits(FULL, wide, job(3, tasks(2), submit_s=1, limit_s=30)) == [(3, 1, 10)]


def test_an_earlier_job_that_fits_too_takes_the_place() -> None:
    first, second = job(2, tasks(3)), job(3, tasks(3), submit_s=1)
    assert could_start([FULL, first, second], TWO_NODES, 5) == {2: on(n2=3)}


def test_held_dependent_and_limited_jobs_neither_wait_for_nodes_nor_keep_them_from_others() -> None:
    others = [job(2, tasks(4), ready_s=inf), job(3, tasks(4), ready_s=20), job(4, tasks(4), is_limited=True)]
    assert waits(FULL, *others) == []
    assert waits(FULL, *others, job(5, tasks(4), submit_s=1)) == [(5, 1, 10)]


def test_a_job_is_ready_from_its_release_on() -> None:
    assert waits(FULL, job(2, tasks(4), ready_s=7)) == [(2, 7, 10)]


def test_a_wait_that_others_interrupt_is_two_waits() -> None:
    between = job(3, tasks(4), submit_s=4, start_s=4, end_s=6, parts=on(n2=4))
    assert sorted(waits(FULL, between, job(2, tasks(4)))) == [(2, 0, 4), (2, 6, 10)]


def test_tasks_alone_may_be_split_as_slurm_splits_them_and_equal_parts_may_not() -> None:
    other = job(2, tasks(2), start_s=0, end_s=10, parts=on(n2=2))
    half = job(3, tasks(3), start_s=0, end_s=10, parts=on(n1=3))
    assert set(could_start([other, half, job(4, tasks(3))], TWO_NODES, 5)) == {4}
    assert could_start([other, half, job(4, tasks(3).in_equal_parts())], TWO_NODES, 5) == {}


def test_an_exclusive_job_needs_a_node_on_which_nothing_runs() -> None:
    alone = tasks(1, nodes_min=1, nodes_max=1, exclusive=True)
    assert could_start([FULL, job(2, alone)], TWO_NODES, 5) == {2: {"n2": Part(4, 4000)}}
    crumb = job(3, tasks(1), start_s=0, end_s=10, parts=on(n2=1))
    assert could_start([FULL, crumb, job(2, alone)], TWO_NODES, 5) == {}


def test_a_job_needs_as_many_nodes_as_it_asks_for_at_least() -> None:
    both = tasks(2, nodes_min=2, nodes_max=2)
    assert could_start([FULL, job(2, both)], TWO_NODES, 5) == {}
    assert could_start([job(2, both)], TWO_NODES, 5) == {2: on(n1=1, n2=1)}


def test_a_job_runs_in_its_partition_only() -> None:
    assert could_start([job(2, tasks(1, partition="other"))], TWO_NODES, 5) == {}


def test_jobs_that_hold_more_than_a_node_has_are_named() -> None:
    assert over_capacity([FULL], TWO_NODES) == []
    assert over_capacity([FULL, replace(FULL, id=2, start_s=3)], TWO_NODES) == ["n1 at 3: 8 cores, 8000 MiB"]


def test_the_mean_wait_is_of_jobs_that_ran() -> None:
    assert mean_wait_s([FULL, job(2, tasks(1), submit_s=1, start_s=5), job(3, tasks(1))]) == 2


shapes = st.builds(
    Shape,
    tasks=st.integers(1, 8),
    memory_per_core_mb=st.sampled_from((500, 1000, 2000)),
    nodes_min=st.sampled_from((None, 1, 2)),
    exclusive=st.booleans(),
)


@given(st.lists(st.tuples(shapes, st.integers(1, 100)), max_size=12))
def test_jobs_that_get_their_earliest_places_one_after_the_other_never_hold_more_than_there_is(
    asked: list[tuple[Shape, int]],
) -> None:
    profile, jobs = Profile(TWO_NODES, 0), []
    for number, (shape, limit_s) in enumerate(asked):
        place = profile.earliest(shape, limit_s)
        if place is not None:
            end_s = place.start_s + limit_s
            profile.take(place.parts, place.start_s, end_s)
            jobs.append(job(number, shape, start_s=place.start_s, end_s=end_s, parts=place.parts))
    assert over_capacity(jobs, TWO_NODES) == []
