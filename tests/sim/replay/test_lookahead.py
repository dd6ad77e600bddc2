"""Lookahead: the compiled replay starts each job as the oracle does, and leaves room for the next arrivals."""

import numpy as np
import pytest
from oracles.lookahead import LookaheadSimulation

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.matching.max_jobs import rules_of
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.replay.lookahead_replay import ArrivalSource, Lookahead, MatchComparison, replay_ahead
from slurm_sns.sim.replay.trace_replay import replay
from slurm_sns.sim.traces.trace_builder import RecordBuilder
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from sns_reproductions.netbatch_sweeps import records_of

EVERY = [Lookahead(arrivals, counting, 90) for arrivals in ArrivalSource for counting in MatchComparison]


def small_trace(jobs, nodes):
    """Jobs as (submit_s, run_s, cores, GB)."""
    columns = np.array(jobs, dtype=np.float64).T
    builder = RecordBuilder(nodes, 1.0)
    builder.add(
        identity=np.arange(len(jobs), dtype=np.float64),
        submit_s=columns[0],
        run_s=columns[1],
        nodes=np.ones(len(jobs)),
        cores=columns[2],
        memory_mb=columns[3] * 1024,
    )
    return builder.records("jobs")


@pytest.mark.long
@pytest.mark.parametrize("lookahead", EVERY, ids=str)
def test_the_compiled_replay_and_the_oracle_start_every_job_at_the_same_time_on_the_same_node(lookahead):
    pool = POOLS["A"].nodes(0.003)
    records = records_of(generate(POOLS["A"], scale=0.003, seed=2, days=0.25), pool, 0.5)
    rules = rules_of(MatchingParameters(queue_depth=40, reservations=2))

    fast = replay_ahead(pool, records, rules, lookahead, interval_s=30)
    simulation = LookaheadSimulation(pool, records.values(), rules, lookahead, interval_s=30)
    slow = {placed.job.id: (placed.start_s, placed.nodes.tolist()) for placed in simulation.run().placements}

    got = {int(job): (int(fast.start_s[at]), list(fast.nodes(at))) for at, job in enumerate(records.identity)}
    assert got == slow
    assert (fast.start_s > records.submit_s + 30).any()


def test_looking_ahead_changes_something():
    pool = POOLS["A"].nodes(0.003)
    records = records_of(generate(POOLS["A"], scale=0.003, seed=2, days=1.5), pool, 0.4)
    rules = rules_of(MatchingParameters(queue_depth=40))
    without = replay(pool, records, rules, interval_s=30).start_s.tolist()
    starts = [replay_ahead(pool, records, rules, each, interval_s=30).start_s.tolist() for each in EVERY]
    assert any(each != without for each in starts)


def test_a_portfolio_of_one_has_nothing_to_choose():
    pool = POOLS["D"].nodes(0.003)
    records = records_of(generate(POOLS["D"], scale=0.003, seed=2, days=0.25), pool, 0.5)
    alone = rules_of(MatchingParameters(portfolio=("mix-fit",)))
    without = replay(pool, records, alone, interval_s=30)
    ahead = replay_ahead(pool, records, alone, EVERY[0], interval_s=30)
    assert ahead.start_s.tolist() == without.start_s.tolist()
    assert ahead.place.tolist() == without.place.tolist()


def test_of_two_equal_schedules_the_one_is_taken_that_leaves_room_for_the_next_job():
    # Two jobs of 1 core and 8 GB start in the same cycle under every heuristic. Worse-fit takes both nodes, best-fit
    # one of them. A job of 30 GB comes next: it fits only where one node is left whole.
    nodes = NodeArrays(("one", "two"), amounts([Resources(4, 32 * 1024)] * 2))
    records = small_trace([(0, 900, 1, 8), (0, 900, 1, 8), (31, 60, 1, 30)], nodes)
    worse_first = rules_of(MatchingParameters(portfolio=("worse-fit-memory", "best-fit-memory")))
    known = Lookahead(ArrivalSource.KNOWN, MatchComparison.TIES, 60)

    assert replay(nodes, records, worse_first, interval_s=30).start_s.tolist() == [0, 0, 900]
    assert replay_ahead(nodes, records, worse_first, known, interval_s=30).start_s.tolist() == [0, 0, 60]
    recent = Lookahead(ArrivalSource.RECENT, MatchComparison.TIES, 60)  # jobs like those two fit either way
    assert replay_ahead(nodes, records, worse_first, recent, interval_s=30).start_s.tolist() == [0, 0, 900]


def test_a_window_of_nothing_is_refused():
    with pytest.raises(BadInput, match="window of a lookahead is 0 s; valid: 1 or more"):
        Lookahead(ArrivalSource.KNOWN, MatchComparison.SUM, 0)
