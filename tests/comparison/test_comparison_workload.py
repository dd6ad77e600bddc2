"""The generator of the comparison with Slurm alone."""

from comparison_workload import EVERYTHING, LIMITED_CORES, MATCHING, Shape, generate


def test_the_same_seed_makes_the_same_submissions_and_another_seed_others() -> None:
    assert generate(1, 50, 20) == generate(1, 50, 20)
    assert generate(1, 50, 20) != generate(2, 50, 20)


def test_every_kind_comes_and_no_other_in_the_order_of_the_moments() -> None:
    made = generate(1, 400, 20)
    assert {each.kind for each in made} == set(EVERYTHING)
    assert [each.at_s for each in made] == sorted(each.at_s for each in made)
    assert {each.kind for each in generate(1, 200, 20, MATCHING)} == set(MATCHING)


def test_a_job_depends_on_an_earlier_one() -> None:
    dependent = [(number, each) for number, each in enumerate(generate(1, 400, 20)) if each.after is not None]
    assert dependent
    assert all(each.dependency and 0 <= each.after < number for number, each in dependent if each.after is not None)


def test_no_dependency_waits_for_a_job_that_never_runs() -> None:
    for seed in range(20):
        made = generate(seed, 200, 20)
        assert not [each for each in made if each.after is not None and made[each.after].never_runs]


def test_a_limited_job_alone_is_within_its_limit() -> None:
    assert all(each.shape.tasks <= LIMITED_CORES for each in generate(1, 400, 20) if each.is_limited)


def test_a_shape_says_what_sbatch_is_asked_for() -> None:
    assert Shape(4, 500).options() == "-p main --mem-per-cpu=500M -n4"
    assert Shape(8, 500, nodes_min=2, nodes_max=2, tasks_per_node=4).options().endswith("-N2 --ntasks-per-node=4")
    assert Shape(6, 500, nodes_min=1, nodes_max=3).options().endswith("-N1-3 -n6")
    assert Shape(1, 500, nodes_min=1, nodes_max=1, exclusive=True).options().endswith("-N1 -n1 --exclusive")


def test_a_job_that_says_its_tasks_alone_gets_the_fewest_nodes_in_equal_parts() -> None:
    assert Shape(40, 500).in_equal_parts() == Shape(40, 500, nodes_min=2, nodes_max=2, tasks_per_node=20)
    fixed = Shape(4, 500, nodes_min=4, nodes_max=4)
    assert fixed.in_equal_parts() == fixed
