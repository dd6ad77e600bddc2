from clusters import GB, job, node, placed, plan

from slurm_sns.model import Project, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs

FOUR_CORES = (node("A", cores=4, gb=40),)


def order(waiting, nodes=FOUR_CORES, projects=None) -> list[int]:
    starts = max_jobs().plan(Snapshot(tuple(nodes), tuple(waiting), projects or {})).starts
    return [start.job_id for start in starts]


def test_one_project_is_first_in_first_out():
    assert order([job(3), job(1), job(2)]) == [3, 1, 2]


def test_projects_take_turns_because_each_match_moves_their_ratio():
    waiting = [job(1, project="p"), job(2, project="p"), job(3, project="q"), job(4, project="q")]

    assert order(waiting) == [1, 3, 2, 4]


def test_a_project_with_twice_the_share_gets_two_jobs_for_one():
    waiting = [*(job(at, project="p") for at in (1, 2, 3, 4)), *(job(at, project="q") for at in (5, 6, 7, 8))]
    projects = {"p": Project(share=2.0), "q": Project(share=1.0)}

    assert order(waiting, projects=projects) == [1, 5, 2, 3]


def test_what_a_project_runs_already_counts_against_it():
    waiting = [job(1, project="busy"), job(2, project="idle")]

    assert order(waiting, projects={"busy": Project(used=Resources(1, GB))}) == [2, 1]


def test_the_larger_fraction_of_cores_and_memory_counts():
    # p holds a quarter of the cores, q four tenths of the memory: p is behind by cores alone, not by the larger one.
    projects = {"p": Project(used=Resources(1, 0)), "q": Project(used=Resources(0, 16 * GB))}

    assert order([job(1, project="q"), job(2, project="p")], projects=projects) == [2, 1]


def test_equal_ratios_go_to_the_older_head_then_to_the_name():
    assert order([job(1, project="q", order=(7,)), job(2, project="p", order=(7,))]) == [2, 1]
    assert order([job(1, project="p", order=(8,)), job(2, project="q", order=(7,))]) == [2, 1]


def test_equal_fractions_tie_whatever_the_arithmetic():
    # 3 of 30 cores at share 3 is as much as 1 of 30 at share 1.
    projects = {"z": Project(3.0, Resources(3, 0)), "a": Project(1.0, Resources(1, 0))}
    nodes = [node("A", cores=30, gb=64)]

    assert order([job(1, project="z", order=(1,)), job(2, project="a", order=(2,))], nodes, projects) == [1, 2]


def test_a_job_that_is_not_matched_counts_against_queue_depth_and_the_next_of_its_project_follows():
    waiting = [job(1, cores=64, project="p"), job(2, project="p"), job(3, project="q")]

    assert placed(plan(FOUR_CORES, waiting, "first-fit", queue_depth=2, reservations=0)) == {2: "A"}


def test_over_aged_jobs_precede_every_project_and_count_for_their_own():
    waiting = [job(1, project="p"), job(2, project="q"), job(3, project="p", over_aged=True)]

    assert order(waiting) == [3, 2, 1]


def test_after_an_unmatched_job_the_older_head_of_equal_projects_is_next():
    waiting = [
        job(1, cores=64, project="p", order=(1,)),
        job(3, project="p", order=(3,)),
        job(2, project="q", order=(2,)),
    ]

    assert order(waiting) == [2, 3]
