"""DFRS as a policy: a snapshot becomes a plan, whose actions find their room one after the other."""

from dataclasses import replace
from fractions import Fraction

import pytest
from oracles.dfrs.instant import PlainDfrs

from slurm_sns.model import (
    ActiveJob,
    ActiveState,
    Alternative,
    Job,
    Node,
    Resources,
    Resume,
    SetShare,
    Snapshot,
    Start,
    Suspend,
)
from slurm_sns.policies.dfrs import algorithms
from slurm_sns.policies.dfrs.algorithms import Algorithm
from slurm_sns.policies.dfrs.parameters import Attempts, DfrsHistory, PeriodicParameters
from slurm_sns.policies.dfrs.policy import Dfrs
from slurm_sns.policies.registry import REGISTRY, live_policies, specification
from slurm_sns.scheduler.history import history_of, text_of

GB = 1024
NODE = Resources(4, 8 * GB)


@pytest.fixture(params=[PlainDfrs, Dfrs], ids=["plain", "compiled"])
def policy(request):
    """The policy with the kernels, or with the oracle."""

    def make(algorithm: Algorithm, period_s: int = 600) -> Dfrs:
        return request.param(algorithm, PeriodicParameters(period_s))

    return make


def waiting(identity: int, *, cores: int = 4, gb: int = 1, tasks: int = 1) -> Job:
    return Job(identity, identity, (Alternative(tasks, Resources(cores, gb * GB)),))


def running(identity: int, *nodes: str, cores: int = 4, gb: int = 1, **more) -> ActiveJob:
    known = {"submit_s": identity, "virtual_s": 100, **more}
    return ActiveJob(identity, ActiveState.RUNNING, nodes, Resources(cores, gb * GB), 0, **known)


def snapshot(*jobs: Job | ActiveJob, now_s: int = 1000, names: str = "n0 n1", **more) -> Snapshot:
    active = tuple(job for job in jobs if isinstance(job, ActiveJob))
    held = dict.fromkeys(names.split(), 0)
    for job in active:
        for name in job.nodes if not job.in_storage else ():
            held[name] += job.demand.memory_mb
    nodes = tuple(Node(name, NODE, NODE._replace(memory_mb=NODE.memory_mb - used)) for name, used in held.items())
    return Snapshot(nodes, tuple(job for job in jobs if isinstance(job, Job)), now_s=now_s, active=active, **more)


def test_newcomers_share_a_node_and_those_that_ran_give_way_first(policy):
    plan = policy(algorithms.GREEDY).plan(snapshot(running(1, "n0"), waiting(2, tasks=2)))
    # Node n1 has no load: the first task goes there, the second to the first of two equally loaded nodes.
    assert plan.actions == (
        SetShare(1, pytest.approx(1 / 2)),
        Start(2, ("n0", "n1"), waiting(2, tasks=2).alternatives[0], "", pytest.approx(1 / 2)),
    )


def test_what_finds_no_memory_is_tried_again_after_two_then_four_seconds(policy):
    greedy = policy(algorithms.GREEDY)
    full = snapshot(running(1, "n0", gb=8), waiting(2, gb=8), names="n0", now_s=10)
    first = greedy.plan(full)
    assert first.wake_s == 12
    assert "attempt 2 is at 12" in first.waiting[2]
    early = greedy.plan(replace(full, now_s=11, history=first.history))
    assert early.wake_s == 12
    second = greedy.plan(replace(full, now_s=12, history=first.history))
    assert second.wake_s == 16


def test_a_job_is_paused_for_a_newcomer_before_that_starts(policy):
    plan = policy(algorithms.GREEDY_PMTN).plan(snapshot(running(1, "n0", gb=8), waiting(2, gb=8), names="n0"))
    assert [type(action) for action in plan.actions] == [Suspend, Start]
    assert plan.actions[0].to_storage


def test_a_paused_job_is_resumed_elsewhere_at_once_only_if_jobs_may_move(policy):
    jobs = running(1, "n0", gb=5), running(2, "n1", gb=3), waiting(3, gb=6, tasks=1)
    stays = policy(algorithms.GREEDY_PMTN).plan(snapshot(*jobs, names="n0 n1"))
    assert sum(isinstance(action, Suspend) for action in stays.actions) == 1
    assert not any(isinstance(action, Resume) for action in stays.actions)
    moves = policy(algorithms.GREEDY_PMTN_MIGR).plan(snapshot(*jobs, names="n0 n1"))
    assert {type(action) for action in moves.actions} >= {Suspend, Resume, Start}


def test_a_newcomer_waits_for_the_next_multiple_of_the_period(policy):
    periodic = policy(algorithms.DYNMCB8_PER, 300)
    before = periodic.plan(snapshot(waiting(1), now_s=1000))
    assert before.actions == ()
    assert before.wake_s == 1200
    assert before.waiting == {1: "it waits for the run at 1200"}
    at_run = periodic.plan(snapshot(waiting(1), now_s=1200, history=before.history))
    assert [action.job_id for action in at_run.starts] == [1]


def test_a_run_that_comes_late_is_made(policy):
    periodic = policy(algorithms.DYNMCB8_PER, 300)
    before = periodic.plan(snapshot(waiting(1), now_s=1000))
    assert periodic.plan(snapshot(waiting(1), now_s=1201, history=before.history)).starts


def test_nothing_is_due_while_there_are_no_jobs(policy):
    plan = policy(algorithms.DYNMCB8_PER).plan(snapshot())
    assert plan.wake_s is None
    assert plan.history == DfrsHistory()


def test_the_memory_of_a_job_that_somebody_suspended_is_not_given_away(policy):
    stopped = replace(running(1, "n0", gb=8), state=ActiveState.SUSPENDED)
    plan = policy(algorithms.DYNMCB8).plan(snapshot(stopped, waiting(2, gb=2), names="n0"))
    assert plan.actions == ()


def test_a_job_in_storage_holds_nothing_and_comes_back(policy):
    stored = replace(running(1, "n0", gb=8), state=ActiveState.SUSPENDED, in_storage=True)
    plan = policy(algorithms.DYNMCB8).plan(snapshot(stored, names="n0 n1"))
    assert plan.actions == (Resume(1, ("n0",), cpu_share=1),)


def test_the_history_survives_a_restart_as_text():
    known = DfrsHistory({7: Attempts(3, 1016)}, 1200, {5: 0.25})
    form = specification("dfrs-dynmcb8-per").history
    assert history_of(form, text_of(form, known)) == known


def test_shares_of_the_oracle_are_exact():
    plan = PlainDfrs(algorithms.DYNMCB8).plan(snapshot(*(waiting(at, gb=2) for at in range(3)), names="n0"))
    assert {action.cpu_share for action in plan.starts} == {Fraction(1, 3)}


def test_no_site_can_choose_a_policy_that_needs_shares():
    assert not [name for name in live_policies() if name.startswith("dfrs-")]
    assert len([name for name in REGISTRY if name.startswith("dfrs-")]) == 7
