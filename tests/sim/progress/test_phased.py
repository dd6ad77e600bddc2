"""Progress in phases: the mean is the profile's, and only neighbours and missing ways make a difference."""

import pytest

from slurm_sns.sim.engine.spreading_policies import CE, CS, SNS
from slurm_sns.sim.progress.phased import Phases, in_phase
from slurm_sns.sim.request import CONTENTION
from slurm_sns.sim.workloads.sequences import jobs_of, population, sequence
from sns_reproductions.spread_n_share import place, shipped_programs


def times(policy, phases, seed=1, jobs=20):
    drawn = jobs_of(sequence(population(shipped_programs()), seed))[:jobs]
    return [(each.start_s, each.end_s) for each in place(policy, CONTENTION, drawn, phases=phases)]


@pytest.mark.parametrize("name", ["mg", "cg", "ep"])
def test_the_two_phases_have_the_profiles_mean_at_every_number_of_ways(name):
    run = shipped_programs()[name].at(16)[1]
    memory, cache = (in_phase(run, 0.5, is_memory_phase=each) for each in (True, False))

    for ways in range(2, 21):
        assert (memory.kept_at(ways) + cache.kept_at(ways)) / 2 == pytest.approx(run.kept_at(ways))
        assert (memory.bandwidth_at(ways) + cache.bandwidth_at(ways)) / 2 == pytest.approx(run.bandwidth_at(ways))
    assert memory.bandwidth_at(20) == 1.5 * run.bandwidth_at(20)
    assert memory.full_ipc == cache.full_ipc == run.full_ipc


def test_bandwidth_and_need_of_cache_alternate():
    run = shipped_programs()["cg"].at(16)[1]
    memory, cache = (in_phase(run, 1.0, is_memory_phase=each) for each in (True, False))

    assert memory.kept_at(2) == 1
    assert cache.kept_at(2) < run.kept_at(2)
    assert cache.bandwidth_at(2) == 0


@pytest.mark.parametrize("policy", [CS, SNS])
def test_phases_of_no_size_change_nothing(policy):
    assert times(policy, Phases(0.0, 30, 1)) == times(policy, None)


def test_jobs_that_are_alone_with_all_ways_run_as_long_as_without_phases():
    assert times(CE, Phases(1.0, 30, 1)) == times(CE, None)


def test_under_cs_phases_make_jobs_slower_and_a_seed_gives_the_same_times_again():
    apart, again, other = (times(CS, Phases(1.0, 60, seed)) for seed in (1, 1, 2))

    assert apart == again
    assert apart != other
    assert sum(end_s for _, end_s in apart) > sum(end_s for _, end_s in times(CS, None))
