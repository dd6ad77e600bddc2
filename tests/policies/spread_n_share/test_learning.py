"""Learning profiles from jobs: who explores, who waits, and what follows from a run. Nothing runs here."""

from dataclasses import replace

import pytest

from slurm_sns.model import Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.spread_n_share.drift import Monitored
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence, Measurement
from slurm_sns.policies.spread_n_share.exploration import Exploration, ExplorationStep
from slurm_sns.policies.spread_n_share.learning import LearnableJob, Learning, Offer
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.policies.spread_n_share.scales import choose

NODES = (NodeType(Resources(28, 128 * 1024, 20, 118), 8),)
PARAMETERS = SpreadingParameters()
SIXTEEN = Request(16)
FIRST, SECOND, THIRD = (LearnableJob(number, ("mg", 16), SIXTEEN) for number in (1, 2, 3))
OTHER = LearnableJob(9, ("cg", 16), SIXTEEN)
TIMING, SAMPLING = ExplorationStep(1, samples=False), ExplorationStep(1, samples=True)
IPC = {2: 0.5, 4: 0.8, 8: 0.95, 20: 1.0}
GBPS = {2: 60.0, 4: 50.0, 8: 42.0, 20: 40.0}
ORDINARY = Monitored(scale=1, ways=4, ipc=0.8, bandwidth_gbps=50.0)
STRANGE = replace(ORDINARY, ipc=0.4)


@pytest.fixture
def learning():
    return Learning(Exploration(PARAMETERS), NODES)


def measurement(step, time_s=100.0):
    return Measurement(step.scale, None, IPC, GBPS) if step.samples else Measurement(step.scale, time_s)


def explore(learning, job, time_s=100.0):
    """Let the job take the step that it is offered now, and measure it."""
    step = learning.offers([job])[job.id].step
    learning.started(job, step)
    assert learning.ended(job.id) == step
    learning.measured(job, measurement(step, time_s))
    return step


def explore_all(learning, job, time_s=100.0):
    """Let the job take steps until none is left; those that it took."""
    steps = []
    while learning.offers([job])[job.id].step is not None:
        steps.append(explore(learning, job, time_s))
        assert len(steps) < 20
    return steps


def test_of_an_unknown_program_the_first_job_explores_on_empty_nodes_and_the_others_wait(learning):
    offers = learning.offers([FIRST, SECOND, OTHER])

    assert offers[FIRST.id].step == TIMING
    assert [alternative.exclusive for alternative in offers[FIRST.id].alternatives] == [True]
    assert offers[SECOND.id] == Offer(())
    assert offers[OTHER.id].step == TIMING


def test_an_offer_that_is_not_taken_is_made_again_to_whoever_is_first_then(learning):
    learning.offers([FIRST, SECOND])

    assert learning.offers([SECOND, FIRST])[SECOND.id].step == TIMING


def test_nobody_else_explores_a_program_while_a_step_runs(learning):
    learning.started(FIRST, TIMING)

    assert learning.offers([SECOND, THIRD]) == {SECOND.id: Offer(()), THIRD.id: Offer(())}


def test_once_the_time_is_told_the_next_job_samples(learning):
    explore(learning, FIRST)

    assert learning.offers([SECOND, THIRD])[SECOND.id].step == SAMPLING
    assert learning.of(FIRST.key).profile() is None


def test_once_the_curves_are_told_jobs_run_by_the_profile_and_the_first_explores_further(learning):
    explore(learning, FIRST)
    explore(learning, FIRST)

    by_profile = choose(SIXTEEN, learning.of(FIRST.key).profile(), NODES, PARAMETERS).alternatives
    offers = learning.offers([SECOND, THIRD])
    assert offers[THIRD.id] == Offer(by_profile)
    assert offers[SECOND.id].step == ExplorationStep(2, samples=False)
    assert offers[SECOND.id].alternatives[1:] == by_profile


def test_a_run_that_gave_nothing_leaves_its_step_to_the_next_job(learning):
    learning.started(FIRST, TIMING)

    assert learning.ended(FIRST.id) == TIMING
    assert learning.ended(FIRST.id) is None
    assert learning.offers([SECOND])[SECOND.id].step == TIMING


def test_no_step_is_taken_at_a_scale_at_which_the_program_cannot_run():
    learning = Learning(Exploration(PARAMETERS), NODES, can_run=lambda _key, scale: scale == 1)

    assert explore_all(learning, FIRST) == [TIMING, SAMPLING]


def test_programs_are_told_apart_by_their_number_of_processes_too(learning):
    learning.started(FIRST, TIMING)
    larger = LearnableJob(4, ("mg", 28), Request(28))

    assert learning.offers([larger])[larger.id].step == TIMING


def test_three_strange_runs_begin_a_renewal_and_the_old_profile_stands_until_it_is_complete(learning):
    explore_all(learning, FIRST)
    old = learning.of(FIRST.key).profile()
    for _ in range(3):
        learning.monitored(SECOND, STRANGE)

    assert explore(learning, THIRD, time_s=50.0) == TIMING
    assert learning.of(FIRST.key).profile() == old
    explore_all(learning, THIRD, time_s=50.0)
    assert learning.of(FIRST.key).renewal is None
    assert learning.of(FIRST.key).profile().runs[0].time_s == 50.0


def test_an_ordinary_run_changes_no_alternative(learning):
    explore_all(learning, FIRST)
    before = learning.offers([SECOND])

    learning.monitored(SECOND, ORDINARY)

    assert learning.offers([SECOND]) == before


def test_what_is_kept_over_a_restart_goes_on_where_it_was(learning):
    explore(learning, FIRST)
    learning.started(SECOND, SAMPLING)

    again = Learning(Exploration(PARAMETERS), NODES, known=dict(learning.known), steps=dict(learning.steps))

    assert again.offers([THIRD]) == {THIRD.id: Offer(())}
    assert again.ended(SECOND.id) == SAMPLING
    again.measured(SECOND, measurement(SAMPLING))
    assert again.of(SECOND.key).profile() is not None
    assert learning.of(SECOND.key) == KnownEvidence("mg", 16).with_measurement(measurement(TIMING))
