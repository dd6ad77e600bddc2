"""Slurm alone with a fine backfill, compared with conservative backfilling on exclusive nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.batch.conservative import AsSlurm, conservative
from oracles.batch.slurm import limit_of

from slurm_sns.model import Alternative, Job, Node, Resources
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import replay_as_slurm
from slurm_sns.sim.trace import Trace, TraceJob, of_values

COUNT, SIZE = 8, Resources(4, 8192)
#: Each job is planned, for as long as it takes, at each event.
FINE = SlurmParameters(
    bf_interval_s=1,
    bf_resolution_s=1,
    bf_max_job_test=1_000_000,
    bf_window_s=31_536_000,
    batch_sched_delay_s=0,
    epilog=True,
    exclusive=True,
)


def job(at: int, submit_s: int, nodes: int, run_s: int, limit_s: int) -> TraceJob:
    asked = Alternative(nodes, Resources(4, 1024), exclusive=True)
    return TraceJob(Job(at, submit_s, (asked,), (submit_s,), expected_run_s=limit_s), min(run_s, limit_s))


def random_jobs(seed: int) -> list[TraceJob]:
    draw = np.random.default_rng(seed)
    submits_s = np.sort(draw.integers(0, 720, 40)).tolist()
    nodes, limits_s = draw.choice([1, 1, 1, 2, 3, 5, 8], 40).tolist(), (60 * draw.integers(1, 21, 40)).tolist()
    runs_s = draw.integers(1, np.array(limits_s) + 1).tolist()
    return [job(at, *each) for at, each in enumerate(zip(submits_s, nodes, runs_s, limits_s, strict=True))]


def as_slurm(jobs: list[TraceJob]) -> list[int]:
    nodes = NodeArrays.of([Node(f"n{at}", SIZE, SIZE) for at in range(COUNT)])
    return list(map(int, replay_as_slurm(nodes, of_values(Trace(tuple(jobs), {})), FINE).start_s))


def as_conservative(jobs: list[TraceJob], rules: AsSlurm) -> list[int]:
    return conservative(COUNT, jobs, [limit_of(each.job) for each in jobs], rules)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1_000_000))
def test_it_is_conservative_backfilling_with_three_rules_of_slurm(seed):
    jobs = random_jobs(seed)
    assert as_slurm(jobs) == as_conservative(jobs, AsSlurm(True, True, True))


def test_a_job_that_ends_as_a_booking_begins_is_in_its_way():
    jobs = [job(0, 0, 7, 600, 600), job(1, 0, 8, 60, 60), job(2, 0, 1, 600, 600)]
    assert as_conservative(jobs, AsSlurm()) == [0, 600, 0]
    assert as_slurm(jobs) == as_conservative(jobs, AsSlurm(keeps_apart=True)) == [0, 600, 660]


def test_mean_waits_differ_by_a_few_percent():
    ratios = []
    for seed in range(20):
        jobs = random_jobs(seed)
        submits_s = [each.job.submit_s for each in jobs]
        ours, plain = (np.subtract(each, submits_s) for each in (as_slurm(jobs), as_conservative(jobs, AsSlurm())))
        ratios.append(ours.mean() / plain.mean())
    assert 0.95 < np.mean(ratios) < 1.05
    assert max(ratios) < 1.25
