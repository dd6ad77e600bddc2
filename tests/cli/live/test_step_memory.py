"""The memory of a job's fullest node, as far as accounting can tell, against what the tasks really had."""

import math
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.cli.live.step_memory import StepUse, cpus_on_fullest_node, job_memory, tasks_on_fullest_node

BATCH = StepUse("batch", "COMPLETED", 0, 100, ("c1",), 1, 1, 300, 300)


def step(name: str, start_s: float, end_s: float, *task_mb: int, nodes: tuple[str, ...] = ("c1",)) -> StepUse:
    """A step whose tasks had so much all the time, as many on each node."""
    fullest = tasks_on_fullest_node(len(task_mb), len(nodes), -(-len(task_mb) // len(nodes)))
    return StepUse(name, "COMPLETED", start_s, end_s, nodes, len(task_mb), fullest, max(task_mb), sum(task_mb))


def test_one_task_is_a_number() -> None:
    assert job_memory([BATCH]) == (300, 300, 300)


def test_several_tasks_on_a_node_are_between_the_largest_and_as_many_of_it() -> None:
    assert job_memory([step("0", 0, 9, 100, 200, 300, 400)]) == (400, 1000, 1600)


def test_over_two_nodes_the_guess_is_the_mean_node_and_at_least_the_largest_task() -> None:
    assert job_memory([step("0", 0, 9, 100, 200, 300, 400, nodes=("c1", "c2"))]) == (400, 500, 800)
    assert job_memory([step("0", 0, 9, 10, 10, 10, 400, nodes=("c1", "c2"))]) == (400, 400, 800)


def test_eight_ranks_of_srun_are_not_one_rank() -> None:
    # srun -n 8 of a program with 1800 MiB, as accounting showed it: MaxRSS 1947276K
    memory = job_memory([replace(BATCH, largest_mb=20), StepUse("0", "COMPLETED", 0, 53, ("n1",), 8, 8, 1902, 15_216)])
    assert memory == (1902, 15_216, 15_216)


def test_steps_at_the_same_time_add_up_and_others_do_not() -> None:
    together = [step("0", 0, 10, 250), step("1", 9, 20, 150)]
    assert job_memory(together) == (250, 400, 400)
    one_by_one = [step("0", 0, 10, 250), step("1", 10, 20, 150)]
    assert job_memory(one_by_one) == (250, 250, 250)
    elsewhere = [step("0", 0, 10, 250), step("1", 0, 10, 150, nodes=("c2",))]
    assert job_memory(elsewhere) == (250, 250, 250)


def test_a_step_that_still_runs_counts_with_all_after_it() -> None:
    assert job_memory([replace(BATCH, end_s=math.inf), step("0", 50, 60, 100)]) == (300, 400, 400)


def test_a_sum_below_the_largest_task_is_no_bound() -> None:
    # Slurm adds what each task had at the last look: tasks that have freed their memory have little then.
    assert job_memory([StepUse("0", "COMPLETED", 0, 9, ("c1",), 2, 2, 400, 5)]) == (400, 400, 800)


def test_without_memory_in_accounting_nothing_is_known() -> None:
    assert job_memory([]) is None
    assert job_memory([replace(BATCH, largest_mb=None), replace(BATCH, largest_mb=0)]) is None


def test_without_the_layout_all_but_one_task_on_each_other_node_may_be_on_one() -> None:
    assert tasks_on_fullest_node(6, 3, 16) == 4
    assert tasks_on_fullest_node(6, 1, 2) == 6


def test_a_node_has_no_more_tasks_than_cpus() -> None:
    assert tasks_on_fullest_node(9, 2, 8) == 8
    assert tasks_on_fullest_node(16, 2, 8) == 8


names = st.sampled_from(["c1", "c2", "c3"])
steps = st.builds(
    lambda start, length, layout: (start, start + length, layout),
    st.integers(0, 20),
    st.integers(1, 20),
    st.dictionaries(names, st.lists(st.integers(1, 500), min_size=1, max_size=4), min_size=1),
)


@given(st.lists(steps, min_size=1, max_size=4))
def test_what_the_nodes_really_had_is_within_the_bounds(
    made: list[tuple[int, int, dict[str, list[int]]]],
) -> None:
    used: Counter[tuple[int, str]] = Counter()
    seen = []
    for start, end, layout in made:
        tasks = [mb for on_node in layout.values() for mb in on_node]
        cpus = [len(on_node) for on_node in layout.values()]
        most_cpus = cpus_on_fullest_node(sum(cpus), len(cpus), cpus[0])
        fullest = tasks_on_fullest_node(len(tasks), len(layout), most_cpus)
        seen.append(StepUse("0", "COMPLETED", start, end, tuple(layout), len(tasks), fullest, max(tasks), sum(tasks)))
        used.update({(second, node): sum(layout[node]) for second in range(start, end) for node in layout})
    memory = job_memory(seen)
    assert memory is not None
    assert memory.at_least_mb <= max(used.values()) <= memory.at_most_mb
    assert memory.at_least_mb <= memory.about_mb <= memory.at_most_mb
