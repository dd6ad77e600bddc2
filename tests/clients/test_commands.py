"""Slurm's own commands, as scripts and client programs use them: what they do with managed jobs."""

import time
from itertools import pairwise

import pytest
from clients.installed import Clients

from cluster import Cluster, Seen


def in_turn(jobs: list[Seen]) -> bool:
    """Whether each job began after the one before it had ended."""
    return all(after.start_s >= before.end_s > 0 for before, after in pairwise(jobs))


def test_jobs_of_one_name_run_one_after_the_other(clients: Clients, cluster: Cluster) -> None:
    with clients.timed("4 x 2 s, -d singleton"):
        numbers = cluster.submit_all([("-J chain -d singleton", "sleep 2")] * 4)
        ended = cluster.wait_for_end(numbers)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    assert in_turn([ended[number] for number in numbers])
    assert clients.passed_through() == []


def test_a_chain_of_successes_runs_in_order(clients: Clients, cluster: Cluster) -> None:
    with clients.timed("afterok chain of 5 x 1 s"):
        numbers = [cluster.submit("-n1")]
        for _ in range(4):
            numbers.append(cluster.submit(f"-n1 -d afterok:{numbers[-1]}"))
        ended = cluster.wait_for_end(numbers)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    assert in_turn([ended[number] for number in numbers])
    assert clients.passed_through() == []


@pytest.mark.parametrize(
    ("kind", "first", "after"),
    [
        ("afterok", "true", "COMPLETED"),
        ("afterok", "false", "CANCELLED"),
        ("afternotok", "false", "COMPLETED"),
        ("afternotok", "true", "CANCELLED"),
        ("afterany", "false", "COMPLETED"),
        ("after", "sleep 3", "COMPLETED"),
    ],
)
def test_a_dependency_decides_whether_the_second_job_runs(
    clients: Clients, cluster: Cluster, kind: str, first: str, after: str
) -> None:
    with clients.timed(f"{kind} of `{first}`: {after}"):
        number = cluster.submit("-n1", first)
        second = cluster.submit(f"-n1 -d {kind}:{number} --kill-on-invalid-dep=yes", "true")
        ended = cluster.wait_for_end([number, second])
    assert ended[second].state == after
    assert clients.passed_through() == []


def test_a_throttled_array_never_runs_more_tasks_than_its_limit(clients: Clients) -> None:
    with clients.timed("array of 20 x 1 s, at most 3"):
        clients.run(
            "mkdir throttled && sbatch -o /dev/null -a 0-19%3 --wrap "
            "'date +%s.%N > throttled/$SLURM_ARRAY_TASK_ID; sleep 1; date +%s.%N >> throttled/$SLURM_ARRAY_TASK_ID'"
        )
        clients.cluster.wait_for("all tasks end", lambda: not clients.cluster.run("squeue -h -u alice").strip())
    lines = clients.run("paste -d' ' - - < <(cat throttled/*)").splitlines()
    spans = [tuple(map(float, line.split())) for line in lines]
    assert len(spans) == 20
    assert max(sum(start <= moment < end for start, end in spans) for moment, _ in spans) <= 3
    assert clients.passed_through() == []


def test_sbatch_wait_ends_with_the_jobs_exit_code(clients: Clients) -> None:
    with clients.timed("sbatch --wait, 1 s"):
        assert clients.try_run("sbatch -W -o /dev/null --wrap 'sleep 1; exit 3'").returncode == 3
    with clients.timed("a job that runs sbatch --wait itself"):
        clients.run("sbatch -W -o /dev/null --wrap 'sbatch -W -o /dev/null --wrap \"sleep 1\"'")
    assert clients.passed_through() == []


def test_a_held_job_stays_held_until_its_owner_releases_it(clients: Clients, cluster: Cluster) -> None:
    fillers = cluster.submit_all([("-p small -n4", "sleep 300")] * 2)
    cluster.wait_for("no node is free", lambda: {cluster.job(each).state for each in fillers} == {"RUNNING"})
    number = cluster.submit("-p small -n4")
    cluster.wait_for("it waits", lambda: cluster.job(number).is_gated)
    accounting = "sacct -X -n -P -o JobID -s PD -S now-1hours"
    cluster.wait_for(
        "accounting lists it",
        lambda: str(number) in cluster.run(f"{accounting} -E now+3days", "alice").split(),
        every_s=1,
    )
    cluster.run(f"scontrol hold {number}", "alice")
    cluster.run("scancel " + " ".join(map(str, fillers)))
    cluster.wait_for_end(fillers)
    time.sleep(5)
    assert cluster.job(number).reason == "JobHeldUser"
    with clients.timed("a held job is released"):
        cluster.run(f"scontrol release {number}", "alice")
        ended = cluster.wait_for_end([number])
    assert ended[number].state == "COMPLETED"
    assert clients.passed_through() == []
