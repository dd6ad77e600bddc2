"""Fluid jobs, most of which wait: what is remembered of them from instant to instant changes no result."""

import numpy as np
import pytest
from pytest_mock import MockerFixture

from slurm_sns.policies.dfrs.algorithms import ALGORITHMS, GANG, GREEDY_RETRY_AT_EVENTS, SHARES, Algorithm
from slurm_sns.policies.dfrs.fluid_arrays import WAITING, copy
from slurm_sns.policies.dfrs.job_lists import add_waiting, remove_waiting
from slurm_sns.policies.dfrs.order_kernel import sort_by_submit
from slurm_sns.policies.placement.compiled import entry_point
from slurm_sns.sim.replay import fluid_replay
from slurm_sns.sim.replay.fluid_loop import FluidReplay, replay_some
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import whole_nodes
from slurm_sns.sim.workloads.dfrs_synthetic import paper_trace, scaled

NODES, JOBS, LOAD = 32, 1000, 4.0
EVERY = {**ALGORITHMS, "retry-at-events": GREEDY_RETRY_AT_EVENTS, "gang": GANG, "shares": SHARES}


@entry_point
def list_anew(cluster, jobs):
    """List all waiting jobs in submit order, as if nothing was known of them yet."""
    cluster.space.least[0] = 0.0
    waiting = jobs[: cluster.lists.counts[WAITING]]
    copy(waiting, cluster.lists.waiting[: len(waiting)])
    sort_by_submit(waiting, cluster.space.key, cluster.space.spare)
    for job in waiting:
        remove_waiting(cluster, job)
    for job in waiting:
        add_waiting(cluster, job)


def replayed(algorithm: Algorithm, trace: TraceArrays, mocker: MockerFixture, *, forgets: bool) -> tuple[TraceRun, int]:
    """The replay moment by moment, and at how many moments some priorities were too low to be ordered."""
    moments = 0

    def step(algorithm: Algorithm, replay: FluidReplay, most: int) -> bool:
        nonlocal moments
        for _ in range(most):
            if forgets:
                list_anew(replay.cluster, np.zeros(JOBS, np.int64))
            moments += replay.cluster.space.least[0] > 0.0
            if not replay_some(algorithm, replay, 1):
                return False
        return True

    mocker.patch.object(fluid_replay, "replay_some", step)
    return fluid_replay.replay_fluid(whole_nodes(NODES), trace, algorithm, penalty_s=300), moments


@pytest.mark.long
@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY)
def test_a_replay_that_looks_at_all_waiting_jobs_anew_at_each_moment_is_the_same(algorithm: Algorithm, mocker):
    trace = scaled(paper_trace(np.random.default_rng(1), jobs=JOBS, nodes=NODES), NODES, LOAD)
    ordinary, moments = replayed(algorithm, trace, mocker, forgets=False)
    anew, none = replayed(algorithm, trace, mocker, forgets=True)
    for name in ("start_s", "end_s", "wall_s", "spread", "preemptions", "migrations", "used", "instants"):
        assert np.asarray(getattr(anew, name)).tolist() == np.asarray(getattr(ordinary, name)).tolist()
    assert none == 0
    assert (moments > 0) == (algorithm.packs_at_events or algorithm.packs_periodically)
