"""Never worse than Slurm alone: the same random submissions with slurm_sns and without it, judged by accounting.

More seeds: tests/benchmarks/comparison.py.
"""

import sys
from collections.abc import Iterator

import pytest
from comparison_run import Pass, allowed_s, compare, prepared
from comparison_workload import MATCHING, generate

from cluster import Cluster

SEED = 1


@pytest.fixture(scope="module")
def comparing(shared_cluster: Cluster) -> Iterator[Cluster]:
    with prepared(shared_cluster):
        yield shared_cluster


def tell(ours: Pass, alone: Pass) -> None:
    """Print the waits of both runs; pytest shows this with -s, and when the test fails."""
    for name, one in (("with slurm_sns", ours), ("by Slurm alone", alone)):
        longest_s = max((each.lasted_s for each in one.idle_waits()), default=0)
        sys.stdout.write(f"{name}: mean wait {one.mean_wait_s():.2f} s; a job could have started for {longest_s} s\n")


def test_no_job_of_any_kind_waits_beside_nodes_on_which_it_could_start(comparing: Cluster) -> None:
    submissions = generate(SEED, 60, duration_s=3)
    ours, alone = compare(comparing, submissions)
    tell(ours, alone)
    assert ours.violations(allowed_s()) == []
    assert alone.not_run_once == ()


def test_managed_jobs_of_many_shapes_wait_no_longer_on_average(comparing: Cluster) -> None:
    """Judged by a pair of runs, or, where that speaks against us, by three: one pair hangs on the machine, too."""
    submissions = generate(SEED, 40, duration_s=2, mix=MATCHING)
    ours_s, alone_s = [], []
    for most in (1, 3):
        while len(ours_s) < most:
            ours, alone = compare(comparing, submissions)
            tell(ours, alone)
            assert ours.violations(allowed_s()) == []
            ours_s.append(ours.mean_wait_s())
            alone_s.append(alone.mean_wait_s())
        if sum(ours_s) <= sum(alone_s):
            break
    assert sum(ours_s) <= sum(alone_s)
