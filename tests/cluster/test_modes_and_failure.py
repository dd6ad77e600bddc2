"""Slurm is never worse off when slurm_sns is killed, stopped, switched off or only observes."""

import time

from evidence import Log, fill, freed_in_time

from cluster import Cluster


def test_jobs_gated_by_a_killed_scheduler_are_freed_in_time_and_none_is_lost_or_started_twice(
    cluster: Cluster,
) -> None:
    filler = fill(cluster)
    cluster.run("rm -rf starts; mkdir starts", "alice")
    script = "echo started >> starts/$SLURM_JOB_ID; sleep 1"
    numbers = cluster.submit_all([("-n4", script)] * 50)
    assert all(cluster.jobs()[number].is_gated for number in numbers)

    log = Log(cluster, "watchdog")
    cluster.daemon("kill", "scheduler")
    freed_in_time(cluster, log)
    passed_through = cluster.submit("-n4", script)
    assert not cluster.job(passed_through).is_gated

    cluster.daemon("start", "scheduler")
    cluster.wait_for_scheduler()
    managed = cluster.submit("-n4", script)
    assert cluster.job(managed).is_gated

    cluster.run(f"scancel {filler}")
    everything = [*numbers, passed_through, managed]
    ended = cluster.wait_for_end(everything)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    starts = dict(line.split(":") for line in cluster.run("grep -c started starts/* /dev/null", "alice").split())
    counted = {int(path.rsplit("/", 1)[1]): int(count) for path, count in starts.items() if path != "/dev/null"}
    assert counted == dict.fromkeys(everything, 1)
    assert cluster.explain(managed)["decisions"][-1]["action"] == "start"


def test_a_clean_stop_frees_what_is_gated(cluster: Cluster) -> None:
    fill(cluster)
    numbers = cluster.submit_all([("-n4", "true")] * 5)
    assert all(cluster.jobs()[number].is_gated for number in numbers)
    cluster.daemon("stop", "scheduler")
    assert not any(cluster.jobs()[number].is_gated for number in numbers)
    assert not cluster.job(cluster.submit("-n4", "true")).is_gated


def test_switched_off_it_frees_and_passes_through_until_it_is_switched_on_again(cluster: Cluster) -> None:
    fill(cluster)
    gated = cluster.submit("-n4", "true")
    assert cluster.job(gated).is_gated
    assert cluster.run("sns disable", "slurm") == "slurm_sns is now disabled: jobs pass through to Slurm\n"
    assert not cluster.job(cluster.submit("-n4", "true")).is_gated
    cluster.wait_for("the gated job is freed", lambda: not cluster.job(gated).is_gated, timeout_s=10)
    assert "disabled" in cluster.run("sns status", "alice")
    assert cluster.run("sns enable") == "slurm_sns is now enabled\n"
    assert cluster.job(cluster.submit("-n4", "true")).is_gated


def test_release_all_gives_the_gated_jobs_to_slurm(planned_by_hand: Cluster) -> None:
    numbers = planned_by_hand.submit_all([("-n4", "true")] * 3)
    assert planned_by_hand.run("sns release --all", "slurm").rstrip().endswith("3 jobs left to Slurm")
    assert {job.state for job in planned_by_hand.wait_for_end(numbers).values()} == {"COMPLETED"}


def test_an_ordinary_user_cannot_use_the_admins_switches(cluster: Cluster) -> None:
    for command in ("sns disable", "sns enable", "sns release --all", "sns scheduler", "sns watchdog"):
        answer = cluster.try_run(command, "alice")
        assert answer.returncode == 2, command
        assert answer.stderr.count("\n") == 1, answer.stderr


def test_observe_records_what_it_would_do_and_leaves_the_job_as_it_was(cluster: Cluster) -> None:
    filler = fill(cluster)
    cluster.run("sed 's/^mode: enforce/mode: observe/' /etc/slurm/sns.yaml > /tmp/sns-observe.yaml")
    cluster.run("sns disable", "slurm")
    cluster.daemon("stop", "scheduler")
    without = cluster.submit("-n4 --comment sns:alpha=0.9 --begin=now+30", "true")
    cluster.run("sns enable", "slurm")
    cluster.run("sns render /etc/slurm/sns --config /tmp/sns-observe.yaml")
    cluster.daemon("start", "scheduler", config="/tmp/sns-observe.yaml")
    cluster.wait_for_scheduler()
    observed = cluster.submit("-n4 --comment sns:alpha=0.9", "true")
    cluster.wait_for("it is looked at", lambda: observed in {each["job_id"] for each in cluster.queue()})

    # Fields that differ between any two jobs, or change with time.
    own = {"JobId", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "LastSchedEval", "Reason"}
    own |= {"SubmitLine", "Priority", "Scheduler", "SchedNodeList", "Deadline", "AllocNode:Sid", "--begin"}

    def lasting(number: int) -> dict[str, str]:
        return {name: value for name, value in cluster.fields(number).items() if name not in own}

    before = cluster.fields(observed)
    time.sleep(3)
    changing = {"Reason", "LastSchedEval", "StartTime", "EndTime", "SchedNodeList", "Scheduler", "AccrueTime"}
    after = cluster.fields(observed)
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    assert lasting(observed) == lasting(without)
    cluster.run(f"scancel {filler}")
    assert cluster.wait_for_end([observed])[observed].state == "COMPLETED"


def test_a_placed_job_whose_node_is_gone_is_slurms_again_when_the_scheduler_is_gone_too(cluster: Cluster) -> None:
    """Without us the job would wait for that node for ever: only we take nodes off a job."""
    number = cluster.submit("-n4 --requeue", "sleep 60")
    cluster.wait_for("it runs", lambda: cluster.job(number).state == "RUNNING")
    (node,) = cluster.job(number).nodes
    cluster.daemon("kill", "scheduler")
    try:
        cluster.run(f"scontrol update NodeName={node} State=DRAIN Reason=test; scontrol requeue {number}")
        cluster.wait_for("it runs elsewhere", lambda: cluster.job(number).nodes not in ((), (node,)), timeout_s=60)
    finally:
        cluster.run(f"scontrol update NodeName={node} State=RESUME")


def test_a_job_that_asks_to_be_alone_is_alone(cluster: Cluster) -> None:
    alone = cluster.submit("-n2 --mem=1G --sns-exclusive", "sleep 600")
    cluster.wait_for("it runs", lambda: cluster.job(alone).state == "RUNNING")
    (node,) = cluster.job(alone).nodes
    others = cluster.submit_all([("-n10 --mem=1G", "sleep 1")] * 9)
    assert all(job.nodes != (node,) for job in cluster.wait_for_end(others).values())
    assert cluster.job(alone).state == "RUNNING"
