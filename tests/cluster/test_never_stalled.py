"""A job that cannot start keeps no nodes idle that Slurm alone would use."""

from collections.abc import Iterator

import pytest
from limits import PHYSICS, limit, until_running

from cluster import Cluster

#: A pass-through job.
WIDE = "-p main -N4 --exclusive -t 1 --comment sns:off"
KEPT = "kept for jobs of Slurm's own"


@pytest.fixture(params=["with slurm_sns", "Slurm alone"])
def either(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster, once with slurm_sns and once with Slurm alone: the same jobs must run in both cases."""
    if request.param == "with slurm_sns":
        yield cluster
        return
    cluster.run("sns disable")
    try:
        yield cluster
    finally:
        cluster.run("sns enable")


@pytest.fixture
def occupied(either: Cluster) -> Iterator[Cluster]:
    """bob has c1 for three days, which is beyond bf_window, and another job of bob's waits for all nodes of main."""
    held = either.submit("-p main -w c1 --exclusive -t 3-0", "sleep 600", user="bob")
    until_running(either, held)
    wide = either.submit(WIDE, user="bob")
    either.wait_for("it waits for nodes", lambda: either.fields(wide)["Reason"] == "Resources")
    yield either
    either.run("scancel -u bob; scancel -u alice")


def test_idle_nodes_are_used_behind_a_wide_job_that_slurm_has_no_plan_for(occupied: Cluster) -> None:
    """Jobs that end before the wide job could start run at once, others when Slurm's backfill would start them."""
    numbers = occupied.submit_all([(f"-n1 {limit}", "sleep 30") for limit in ("-t 1", "-t 2-0", "")])
    assert {until_running(occupied, number)["NodeList"] for number in numbers} <= {"c2", "c3", "c4"}


def test_a_wide_job_that_slurm_will_start_within_its_window_is_not_held_up(cluster: Cluster) -> None:
    held = cluster.submit("-p main -w c1 --exclusive -t 10", "sleep 600", user="bob")
    until_running(cluster, held)
    wide = cluster.submit(WIDE, user="bob")
    cluster.wait_for("it waits for nodes", lambda: cluster.fields(wide)["Reason"] == "Resources")
    short, long = cluster.submit_all([("-n1 -t 1", "sleep 30"), ("-n1 -t 60", "sleep 1")])
    until_running(cluster, short)
    cluster.wait_for(
        "the long job waits for the wide one",
        lambda: any(row["job_id"] == long and KEPT in row["reason"] for row in cluster.queue()),
    )
    cluster.run(f"scancel {held} {short}")
    cluster.wait_for_end([wide, long])
    wide_began, long_began = (cluster.fields(number)["StartTime"] for number in (wide, long))
    assert wide_began <= long_began


def test_while_a_job_meets_a_limit_others_use_all_nodes(cluster: Cluster) -> None:
    with limit(cluster, PHYSICS, "GrpTRES", "cpu", "28"):
        wide = cluster.submit("-t 5 -n 112 --mem-per-cpu=1G", "true")
        met = "AssocGrpCpuLimit"
        cluster.wait_for("it has met its limit", lambda: met in cluster.try_run(f"sns explain {wide}").stdout)
        jobs = [("-t 5 -n28 --mem-per-cpu=1G", f"sleep {1 + number % 4}") for number in range(12)]
        numbers = set(cluster.submit_all(jobs, user="bob"))
        said: set[str] = set()

        def have_ended() -> bool:
            said.update(row["reason"] for row in cluster.queue() if row["job_id"] in numbers)
            return all(cluster.job(number).has_ended for number in numbers)

        cluster.wait_for("the others have ended", have_ended)
        assert [reason for reason in said if "withheld for job" in reason] == []
        notes = [each for each in cluster.explain(wide)["decisions"] if each["action"] == "note"]
        assert len(notes) == 1, "a limit that is met again is counted"
        assert cluster.job(wide).state == "PENDING"
    cluster.wait_for_end([wide])
