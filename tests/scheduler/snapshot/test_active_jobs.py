"""The jobs that have nodes and the pools, as a policy sees them live."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from live import ENFORCE, FOREIGN, NOW, SLURMS, SUBMIT, job, look, node, pinned, running, situation
from test_situation import clusters

from slurm_sns.model import NOTHING, ActiveJob, ActiveState, JobPool, QueueStatistics, Resources
from slurm_sns.scheduler.observation import JobState, ObservedPartition
from slurm_sns.scheduler.snapshot.situation import Carried, read_situation

HOLDS = {"cpus": 7, "occupies": Resources(7, 7001), "start_s": 99_500}


def active(*jobs, nodes=None, **fields) -> tuple[ActiveJob, ...]:
    return situation(look(*jobs, nodes=nodes, **fields)).snapshot.active


def test_a_running_job_says_where_it_is_and_what_each_part_holds() -> None:
    runs = running(1, "c1", "c2", ways=4, bandwidth_gbps=10, may_restart=True, **HOLDS)
    assert active(runs) == (
        ActiveJob(
            id=1,
            state=ActiveState.RUNNING,
            nodes=("c1", "c2"),
            demand=Resources(4, 3501, 4, 10),
            since_s=99_500,
            submit_s=SUBMIT,
            project="physics",
            pool="main",
            priority=1500,
            may_restart=True,
        ),
    )


def test_cores_are_cores_where_nodes_have_threads() -> None:
    (seen,) = active(running(1, "c1", **HOLDS), nodes=[node("c1", threads_per_core=2)])
    assert seen.demand.cores == 4


@pytest.mark.parametrize(
    ("state", "suspended_s", "expected"),
    [
        (JobState.SUSPENDED, 99_800, (ActiveState.SUSPENDED, 99_800)),
        (JobState.RUNNING, 99_800, (ActiveState.RUNNING, 99_800)),
        (JobState.RUNNING, 99_000, (ActiveState.RUNNING, 99_500)),
        (JobState.RUNNING, 0, (ActiveState.RUNNING, 99_500)),
    ],
    ids=["suspended", "resumed", "suspended in an earlier run", "never suspended"],
)
def test_the_present_state_began_at_the_start_or_at_the_last_suspension(state, suspended_s: int, expected) -> None:
    (seen,) = active(running(1, "c1", state=state, suspended_s=suspended_s, **HOLDS))
    assert (seen.state, seen.since_s) == expected


def test_a_placed_job_is_starting_since_it_was_placed_with_what_it_will_take() -> None:
    placed = pinned(1, "c1", "c2", tasks=4, cpus=4, tasks_per_node=2, ways=3)
    (seen,) = active(placed)
    assert (seen.state, seen.nodes, seen.since_s) == (ActiveState.STARTING, ("c1", "c2"), NOW - 1)
    assert seen.demand[:2] == (2, 2000)


def test_a_job_of_somebody_elses_is_active_too_and_what_waits_or_has_ended_is_not() -> None:
    others = running(3, "c1", **FOREIGN, partitions=("plain",))
    ended = running(4, "c1", state=JobState.ENDED)
    assert [(each.id, each.pool) for each in active(job(1), job(2, **SLURMS), others, ended)] == [(3, "plain")]


@pytest.mark.parametrize(("may_restart", "is_batch"), [(False, True), (True, False)])
def test_only_a_batch_job_that_slurm_may_requeue_may_restart(may_restart: bool, is_batch: bool) -> None:
    (seen,) = active(running(1, "c1", may_restart=may_restart, is_batch=is_batch))
    assert not seen.may_restart


def test_a_job_that_an_earlier_enforce_has_placed_is_active_in_any_mode() -> None:
    seen = situation(look(pinned(1, "c1", reason="AssocGrpCpuLimit")), settings=replace(ENFORCE, mode="observe"))
    assert [(each.id, each.since_s) for each in seen.snapshot.active] == [(1, NOW - 1)]


def test_the_pools_are_the_managed_partitions_with_their_nodes_in_the_machine_lists_order() -> None:
    names = {"c2": {"main"}, "c1": {"main", "urgent"}, "s1": {"small", "plain"}}
    nodes = [node(name, partitions=frozenset(of)) for name, of in names.items()]
    partitions = tuple(ObservedPartition(name) for name in ("urgent", "plain", "main", "small"))
    assert situation(look(nodes=nodes, partitions=partitions)).snapshot.pools == (
        JobPool("urgent", ("c1",)),
        JobPool("main", ("c2", "c1")),
        JobPool("small", ("s1",), QueueStatistics()),
    )


CHANGES = [
    {"state": JobState.SUSPENDED, "suspended_s": 99_700},
    {"allocated": ("c2",)},
    {"priority": 2000},
    {"account": "chemistry"},
    {"may_restart": True},
    {"start_s": 99_900, "submit_s": 99_600},
    {"state": JobState.ENDED},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_what_changes_between_two_looks_is_seen_and_what_does_not_is_the_same_value(change: dict) -> None:
    jobs = (running(1, "c1", **HOLDS), running(2, "c1", **HOLDS))
    before = active(*jobs)
    after = look(replace(jobs[0], **change), jobs[1])
    seen = read_situation(after, {}, ENFORCE, NOW, carried=Carried(active=before)).snapshot.active
    assert seen == active(*after.jobs)
    assert seen[-1] is before[1]


@settings(max_examples=60)
@given(clusters())
def test_a_job_is_active_or_waits_and_never_both(case) -> None:
    observation, known = case
    seen = read_situation(observation, known, ENFORCE, NOW)
    states = {each.id: each.state for each in seen.snapshot.active}
    assert len(states) == len(seen.snapshot.active)
    assert not states.keys() & {each.id for each in seen.snapshot.waiting}
    assert {number for number, state in states.items() if state is ActiveState.RUNNING} == {
        each.id for each in observation.jobs if each.state is JobState.RUNNING
    }
    assert all(each.nodes and NOTHING.within(each.demand) for each in seen.snapshot.active)
