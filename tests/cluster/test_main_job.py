"""slurm_sns's main task on a real Slurm: jobs are gated, planned, placed, and run exactly where they were planned."""

import json
import random
import time
from datetime import datetime

import evidence
import pytest

from cluster import Cluster

pytestmark = pytest.mark.releases

#: Shapes that fit the 28-core and the 4-core nodes; memory stays below what the nodes have.
SHAPES = (
    "-n1",
    "-n2 --mem=8G",
    "-n4",
    "-n4 -c2",
    "-n8 --mem-per-cpu=1G",
    "-n12",
    "-n16 --mem=32G",
    "-n28 --mem-per-cpu=2G",
    "-n40",
    "-N2 -n2",
    "-N2 --ntasks-per-node=3",
    "-N1 -n6",
    "-n1 --mem=60G",
    "-p small -n1 --mem=16G",
    "-p small -n2 --mem=4G",
    "-p small -n6 --mem-per-cpu=1G",
    "-p main,small -n2 --mem=2G",
    "--sns-alpha=0.9 -n8",
    "--comment sns:heuristic=mix-fit -n5",
)


def test_sixty_mixed_jobs_run_exactly_where_they_were_planned(cluster: Cluster) -> None:
    draw = random.Random(7)
    jobs = [(f"-t 5 {draw.choice(SHAPES)}", f"sleep {draw.randint(1, 4)}") for _ in range(60)]
    numbers = cluster.submit_all(jobs[:30], "alice") + cluster.submit_all(jobs[30:], "bob")
    first_seen_s: dict[int, float] = {}
    waits_s: dict[int, float] = {}

    def all_ended() -> bool:
        asked_s, seen, told_s = time.monotonic(), cluster.jobs(), time.monotonic()
        completing = {node for job in seen.values() if job.state == "COMPLETING" for node in job.nodes}
        for number in numbers:
            job = seen[number]
            if job.pinned_to and job.reason == "Resources" and not completing & set(job.pinned_to):
                # From the end of the first query to the beginning of this one: never more than the real wait.
                waited_s = asked_s - first_seen_s.setdefault(number, told_s)
                waits_s[number] = max(waited_s, waits_s.get(number, 0))
            else:
                first_seen_s.pop(number, None)
        return all(seen[number].has_ended for number in numbers)

    cluster.wait_for("60 jobs end", all_ended, timeout_s=180, every_s=0.5)
    ended = cluster.jobs()
    assert {ended[number].state for number in numbers} == {"COMPLETED"}
    # While another job completes on a node, Slurm starts nothing there and gives Resources as reason: not counted.
    assert max(waits_s.values(), default=0) < 2, waits_s

    decided = cluster.decisions(numbers)
    assert all([each["action"] for each in decisions] == ["start"] for decisions in decided.values())
    ran_on = {number: set(ended[number].nodes) for number in numbers}
    assert ran_on == {number: set(decisions[0]["nodes"]) for number, decisions in decided.items()}

    sent_s = rpc_times(cluster)
    delays_s = [ended[number].start_s - sent_s[number] for number in numbers]
    assert sum(delay_s <= 5 for delay_s in delays_s) >= 57, sorted(delays_s)


def rpc_times(cluster: Cluster) -> dict[int, float]:
    """When each job's placement was sent, from the scheduler's log."""
    times = {}
    for line in cluster.run("grep ' placed on ' /var/log/sns/scheduler.log").splitlines():
        day, clock, _, number, *_ = line.split()
        # The log is in the container's time zone, which is UTC.
        times[int(number.rstrip(":"))] = datetime.fromisoformat(f"{day} {clock.replace(',', '.')}+00:00").timestamp()
    return times


def test_slurms_accounting_shows_no_node_over_its_cores_or_memory(cluster: Cluster) -> None:
    draw = random.Random(11)
    shapes = [shape for shape in SHAPES if "small" not in shape]
    numbers = cluster.submit_all([(f"-t 5 {draw.choice(shapes)}", "sleep 2") for _ in range(40)])
    ended = cluster.wait_for_end(numbers)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    accounted = evidence.runs(cluster, numbers)
    assert len(accounted) == 40
    assert evidence.over_capacity(accounted) == []


def test_a_job_of_equal_parts_runs_all_its_tasks_on_the_planned_nodes(cluster: Cluster) -> None:
    number = cluster.submit("-n40 -o /home/alice/parts.txt", "srun hostname")
    nodes = cluster.wait_for_end([number])[number].nodes
    printed = cluster.run("cat /home/alice/parts.txt", "alice").split()
    assert len(nodes) == 2
    assert sorted(printed) == sorted(list(nodes) * 20)


def test_jobs_of_the_unmanaged_partition_run_as_if_we_were_not_there(cluster: Cluster) -> None:
    numbers = cluster.submit_all([("-p plain -n4", "sleep 1")] * 3)
    seen = cluster.jobs()
    assert not any(seen[number].record or seen[number].pinned_to for number in numbers)
    assert {job.state for job in cluster.wait_for_end(numbers).values()} == {"COMPLETED"}


def test_users_see_their_own_jobs_and_admins_all(cluster: Cluster) -> None:
    alice, bob = cluster.submit("-n1", "sleep 600", "alice"), cluster.submit("-n1", "sleep 600", "bob")
    cluster.wait_for("both run", lambda: all(cluster.job(each).state == "RUNNING" for each in (alice, bob)))
    cluster.wait_for("queue shows them", lambda: str(bob) in cluster.run("sns queue"))
    assert str(alice) in cluster.run("sns queue", "alice").split()
    assert str(bob) not in cluster.run("sns queue", "alice").split()
    assert {str(alice), str(bob)} <= set(cluster.run("sns queue", "slurm").split())
    assert "placed on" in cluster.run(f"sns explain {alice}", "alice")
    other = cluster.try_run(f"sns explain {alice}", "bob")
    assert other.returncode == 2
    assert other.stderr == f"sns: error: job {alice}: no job of yours that Slurm or slurm_sns knows\n"


def test_explain_says_why_a_job_waits_and_what_is_missing_where(cluster: Cluster) -> None:
    fillers = cluster.submit_all([("-n26", "sleep 600")] * 4)
    cluster.wait_for("nodes fill", lambda: all(cluster.job(each).state == "RUNNING" for each in fillers))
    waiting = cluster.submit("-n8", "true")
    cluster.wait_for("it is planned", lambda: "HEURISTIC" in cluster.try_run(f"sns explain {waiting}").stdout)
    text = cluster.run(f"sns explain {waiting}", "alice")
    assert "lacks 6 cores" in text
    assert all(name in text for name in ("best-fit-memory", "worse-fit-cores", "mix-fit"))
    assert "finds no place yet; capacity is withheld for it on c1" in cluster.run("sns queue", "alice")


def test_check_finds_nothing_wrong_and_says_what_is_when_something_is(cluster: Cluster) -> None:
    assert cluster.run("sns check").rstrip().endswith("0 wrong")
    cluster.run("sed 's/memory_mb: 128000/memory_mb: 96000/' /etc/slurm/sns.yaml > /tmp/sns-wrong.yaml")
    wrong = cluster.try_run("sns check --config /tmp/sns-wrong.yaml")
    assert wrong.returncode == 1
    assert "nodes c[1-4] as sns.yaml says: found 28 cores, 96000 MiB, wanted 28 cores, 128000 MiB" in wrong.stdout


def test_check_finds_what_is_wrong_on_a_running_cluster(cluster: Cluster) -> None:
    def is_well() -> bool:
        return cluster.try_run("sns check").returncode == 0

    cluster.wait_for("all is well", is_well, 300, every_s=2)
    cluster.daemon("stop", "watchdog")
    try:
        cluster.run("chmod 0777 /etc/slurm/sns; sns disable; echo >> /usr/local/share/lua/5.1/sns_judge.lua")
        answer = cluster.try_run("sns check --json")
    finally:
        cluster.run("chmod 0755 /etc/slurm/sns; sns enable; sed -i '$d' /usr/local/share/lua/5.1/sns_judge.lua")
        cluster.daemon("start", "watchdog")
    wrong = {each["what"]: each.get("run") for each in json.loads(answer.stdout) if not each["ok"]}
    assert answer.returncode == 1
    assert wrong.pop("/etc/slurm/sns") == "chmod 0755 /etc/slurm/sns"
    assert wrong.pop("sns watchdog runs") == "systemctl enable --now sns-watchdog"
    assert wrong.pop("kill switch /var/lib/sns/disabled is off") == "sns enable"
    assert "outdated" in next(each["found"] for each in json.loads(answer.stdout) if "modules" in each["what"])
    assert [what for what in wrong if "modules" not in what] == []
    cluster.wait_for("all is well", is_well, 300, every_s=2)
