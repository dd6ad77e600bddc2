"""The joint choice of page netbatch-lookahead: it finds what trying everything finds, and the head keeps its right."""

from itertools import product

import numpy as np
import pytest
from sim.replay.test_lookahead import small_trace

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import PAPER_PORTFOLIO, MatchingParameters
from slurm_sns.policies.placement.kernel_arrays import NOBODY
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch_lookahead.joint_choice import (
    ADOPTED,
    BETTER,
    FORCED,
    JOBS,
    PLACES,
    SIZE,
    STARTS,
    UNPROVEN,
    fill_window,
    replay_jointly,
    window_for,
)
from sns_reproductions.netbatch_sweeps import generated

RULES = rules_of(MatchingParameters(portfolio=PAPER_PORTFOLIO))


def machines(*sizes):
    """Machines as (cores, GB)."""
    return NodeArrays(
        tuple(f"n{at}" for at in range(len(sizes))), amounts([Resources(cores, 1024 * gb) for cores, gb in sizes])
    )


def most_by_trying(jobs, free, forced):
    """The most jobs that start under any assignment; place len(free) is none."""
    best = 0
    for places in product(range(len(free) + 1), repeat=len(jobs)):
        used = np.zeros((len(free) + 1, 2), np.int64)
        np.add.at(used, list(places), jobs)
        if (used[:-1] <= free).all() and not (forced and places[0] == len(free)):
            best = max(best, sum(place < len(free) for place in places))
    return best


def test_the_search_starts_as_many_jobs_as_trying_every_assignment():
    lots = np.random.default_rng(1)
    found_more = 0
    for _ in range(300):
        free = lots.integers(1, (7, 17), size=(lots.integers(1, 4), 2))
        jobs = lots.integers(1, (4, 9), size=(lots.integers(1, 6), 2))
        jobs = jobs[(jobs[:, np.newaxis] <= free).all(axis=2).any(axis=1)]
        if not len(jobs):
            continue
        forced = int(lots.integers(2))
        jobs[forced:] = jobs[forced:][np.lexsort((-jobs[forced:, 0], -jobs[forced:, 1]))]
        free = free[np.lexsort((free[:, 0], free[:, 1]))]
        window = window_for(1, len(free), 1)
        window.demand[:, : len(jobs)] = jobs.T
        window.free[:] = free.T
        window.state[[SIZE, FORCED, PLACES]] = len(jobs), forced, len(free)

        assert fill_window(window)
        assert window.state[STARTS] == most_by_trying(jobs, free, forced)
        assert (window.free == free.T).all()
        starts = window.place[: len(jobs)] != NOBODY
        used = np.zeros_like(free)
        np.add.at(used, window.place[: len(jobs)][starts], jobs[starts])
        assert starts.sum() == window.state[STARTS]
        assert (used <= free).all()
        assert starts[0] or not forced
        found_more += 0 < window.state[STARTS] < len(jobs)
    assert found_more > 50


def test_four_jobs_start_together_of_which_every_heuristic_leaves_one_waiting():
    nodes = machines((4, 12), (4, 8))
    records = small_trace([(0, 60, 1, 7), (0, 60, 1, 6), (0, 60, 1, 2), (0, 60, 1, 5)], nodes)
    for portfolio in (*((each,) for each in PAPER_PORTFOLIO), PAPER_PORTFOLIO):
        rules = rules_of(MatchingParameters(portfolio=portfolio))
        assert (replay(nodes, records, rules, interval_s=30).start_s > 0).any()
    found, window = replay_jointly(nodes, records, RULES, interval_s=30)

    assert found.start_s.tolist() == [0, 0, 0, 0]
    assert (window.tally[BETTER], window.tally[ADOPTED], window.tally[JOBS], window.most[0]) == (1, 1, 4, 3)


def test_the_first_job_starts_though_two_others_could_start_in_its_place():
    nodes = machines((4, 12))
    records = small_trace([(0, 60, 1, 12), (0, 60, 1, 6), (0, 60, 1, 6)], nodes)
    assert replay_jointly(nodes, records, RULES, interval_s=30)[0].start_s.tolist() == [0, 60, 60]


def test_capacity_stays_withheld_for_a_first_job_that_fits_nowhere():
    # The job of 16 GB waits for the larger machine, on which capacity is withheld: no small job gets it meanwhile.
    nodes = machines((4, 16), (4, 8))
    jobs = [(0, 90, 1, 2), (0, 90, 1, 9), (1, 60, 1, 16), *((1, 600, 1, gb) for gb in (3, 3, 2, 2))]
    records = small_trace(jobs, nodes)
    plain = replay(nodes, records, RULES, interval_s=30).start_s.tolist()
    assert plain[2] == 90
    assert replay_jointly(nodes, records, RULES, interval_s=30)[0].start_s[2] == 90


def test_on_a_generated_pool_every_job_starts_no_machine_is_over_its_capacity_and_no_cycle_starts_fewer():
    pool, records = generated(POOLS["C"], 0.5, scale=0.02, seed=1, days=1.0)
    found, window = replay_jointly(pool, records, RULES, interval_s=30)
    demand = np.array([kind[1:3] for kind in records.kinds], np.int64)[records.kind]
    events = [(found.start_s, demand), (found.end_s, -demand)]
    at_s = np.concatenate([when for when, _ in events])
    change = np.concatenate([amount for _, amount in events])
    place = np.tile(found.place, 2)
    order = np.lexsort((change[:, 0], at_s))  # finishes first
    for node in range(len(pool.names)):
        mine = order[place[order] == node]
        assert (change[mine].cumsum(axis=0) <= pool.capacity[:2, node]).all()
    assert window.tally[JOBS] == len(records)
    assert (window.matched <= window.most[0]).all()
    assert window.most[0] <= window.tally[JOBS]
    assert window.tally[ADOPTED] <= window.tally[BETTER]
    assert window.tally[ADOPTED] > 0
    assert window.tally[UNPROVEN] < window.tally[BETTER]


def test_more_than_one_reservation_is_refused():
    nodes = machines((4, 12))
    with pytest.raises(BadInput, match="2 reservations; valid: one of each"):
        replay_jointly(
            nodes, small_trace([(0, 60, 1, 1)], nodes), rules_of(MatchingParameters(reservations=2)), interval_s=30
        )
