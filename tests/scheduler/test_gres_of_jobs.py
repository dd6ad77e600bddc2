"""Ways that Slurm counts for a running job reach its nodes also without a grant."""

from dataclasses import replace

from slurm_sns.scheduler.agent_link import REVISION, ungranted
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.wire.values import Change, JobThere, NodeFacts, NodeState, RunId

RUN = RunId(7, 1)
JOB = ObservedJob(7, 1, 0, JobState.RUNNING, restarts=1, allocated=("c1", "c2"), ways=4, bandwidth_gbps=20)
CHANGE = Change(RUN, REVISION, 4, 20)


def state(name: str, *jobs: JobThere) -> NodeState:
    return NodeState(0.0, NodeFacts(name), jobs)


def test_the_nodes_that_have_nothing_for_the_job_are_told() -> None:
    states = {"c1": state("c1", JobThere(RUN, ways=4, bandwidth_gbps=20)), "c2": state("c2", JobThere(RUN))}
    assert ungranted([JOB], states) == {"c2": [CHANGE]}


def test_a_node_where_the_job_has_not_begun_waits_for_its_grant() -> None:
    assert ungranted([JOB], {"c1": state("c1"), "c2": state("c2", JobThere(RunId(7, 0)))}) == {}


def test_a_job_that_waits_to_be_told_which_array_task_it_is_gets_all_of_its_grant_then() -> None:
    assert ungranted([JOB], {"c1": state("c1", JobThere(RUN, awaits_task=True))}) == {}


def test_jobs_that_have_no_ways_in_slurm_or_do_not_run_are_left_alone() -> None:
    states = {"c1": state("c1", JobThere(RUN))}
    for job in (replace(JOB, ways=0, bandwidth_gbps=0), replace(JOB, state=JobState.ENDED)):
        assert ungranted([job], states) == {}


def test_bandwidth_alone_is_told_too() -> None:
    found = ungranted([replace(JOB, ways=0)], {"c1": state("c1", JobThere(RUN))})
    assert found == {"c1": [Change(RUN, REVISION, 0, 20)]}


def test_a_job_that_an_agent_has_found_gets_what_slurm_counts_whatever_its_group_shows() -> None:
    states = {"c1": state("c1", JobThere(RUN, ways=18, is_found=True)), "c2": state("c2", JobThere(RUN, ways=18))}
    assert ungranted([JOB], states) == {"c1": [CHANGE]}
    assert ungranted([replace(JOB, ways=0, bandwidth_gbps=0)], states) == {"c1": [Change(RUN, REVISION)]}
