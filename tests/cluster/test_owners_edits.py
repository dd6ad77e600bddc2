"""Changes that an owner makes to a job after its submission, and traces that we leave in it: neither strands a job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence import Log
from heartbeat import beating

from cluster import Cluster

#: A change that an owner may make to a held job -> the words for it in the note that the job is left to Slurm.
EDITS = {
    "ReqNodeList=c2": "a node list",
    "ExcNodeList=c1": "excluded nodes",
    "Features=ssd": "constraint",
    "Prefer=ssd": "prefer",
    "ReservationName=later": "reservation",
    "Licenses=matlab:1": "licences",
    "Switches=1": "switches",
    "TresPerNode=gres/fpga:1": "gres",
    "TresPerNode=gres/llc:3": "gres",
}
#: A job that we hold, and one with a deadline; the submit filter does not see deadlines.
PLAIN, DEADLINE = "-n4 --mem=1G", "-n4 --mem=1G -t5 --deadline=now+1hour"


def row(cluster: Cluster, number: int) -> dict[str, Any]:
    return next((each for each in cluster.queue() if each["job_id"] == number), {})


def notes(cluster: Cluster, number: int) -> list[str]:
    found = cluster.try_explain(number).get("decisions", ())
    return [each["reason"] for each in found if each["action"] == "note"]


def shown(cluster: Cluster, number: int, *names: str) -> tuple[str, ...]:
    fields = cluster.fields(number)
    return tuple(fields.get(name, "") for name in names)


@pytest.fixture
def full(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with partition main full, so that managed jobs wait, and a reservation of alice's for tomorrow."""
    reserve = "ReservationName=later StartTime=now+1day Duration=60 Users=alice Nodes=s2"
    cluster.run(f"scontrol create reservation {reserve}")
    filler = cluster.submit("-N4 --exclusive", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    yield cluster
    cluster.run("scancel -u alice; scancel -u bob; scontrol delete ReservationName=later")


def edit(cluster: Cluster, edits: dict[int, str]) -> None:
    cluster.run("; ".join(f"scontrol update JobId={number} {text}" for number, text in edits.items()), "alice")


def test_a_held_job_that_its_owner_changes_so_that_we_do_not_place_it_is_left_to_slurm_with_its_changes(
    full: Cluster,
) -> None:
    cluster = full
    plain, deadline, *edited = cluster.submit_all([(each, "true") for each in (PLAIN, DEADLINE, *[PLAIN] * len(EDITS))])
    cluster.wait_for("it waits", lambda: row(cluster, edited[-1]).get("state") == "ours, waiting")
    edit(cluster, dict(zip(edited, EDITS, strict=True)))
    cluster.wait_for("they are Slurm's", lambda: not any(cluster.job(each).is_held for each in [deadline, *edited]))
    told = {number: notes(cluster, number) for number in [deadline, *edited]}
    assert told == {
        deadline: ["left to Slurm: its owner asks for deadline"],
        **{
            number: [f"left to Slurm: its owner asks for {what}"]
            for number, what in zip(edited, EDITS.values(), strict=True)
        },
    }
    for number, text in zip(edited, EDITS, strict=True):
        name, value = text.split("=", 1)
        where = {"ReservationName": "Reservation", "Switches": "Switches"}.get(name, name)
        assert shown(cluster, number, where)[0].startswith(value), text
        assert shown(cluster, number, "Nice") == ("0",)
    assert row(cluster, plain)["state"] == "ours, waiting", "nothing else changed"
    cluster.run(f"scontrol hold {edited[1]}", "alice")
    seen = cluster.status()["cycles"]
    cluster.wait_for("two cycles later", lambda: cluster.status()["cycles"] >= seen + 2)
    assert cluster.job(edited[1]).is_held, "one that was given to Slurm is held by its owner"


def test_a_job_whose_nodes_or_cpus_no_longer_suit_its_tasks_is_left_to_slurm(full: Cluster) -> None:
    cluster = full
    nodes, cpus = cluster.submit_all([("-n2 --mem=1G", "true"), ("-N2 -n4 --mem=1G", "true")])
    cluster.wait_for("they wait", lambda: row(cluster, cpus).get("state") == "ours, waiting")
    cluster.run(f"scontrol update JobId={nodes} NumNodes=4", "alice")
    refused = cluster.try_run(f"scontrol update JobId={cpus} NumTasks=1", "alice")
    assert "Task count specification invalid" in refused.stderr
    assert shown(cluster, cpus, "NumTasks", "NumCPUs") == ("4", "1"), "Slurm carries out half of it"
    cluster.wait_for("they are Slurm's", lambda: not any(cluster.job(each).is_held for each in (nodes, cpus)))
    assert notes(cluster, nodes) == [
        "left to Slurm: asks for 4 nodes and has fewer tasks, 2: how it runs is Slurm's choice"
    ]
    assert notes(cluster, cpus) == ["left to Slurm: its owner asks for overcommit"]


@pytest.fixture
def unstartable(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, where jobs that are placed in partition main do not start, for a reason that we cannot see."""
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=4")
    cluster.run("sed 's/^scheduler:/&\\n  place_timeout_s: 3600/' /etc/slurm/sns.yaml > /tmp/sns-patient.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    yield cluster
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=UNLIMITED; scancel -u alice; scancel -u bob")
    cluster.run("sns-daemon kill scheduler; rm -rf /tmp/away")


def test_a_placed_job_that_its_owner_edits_gets_its_own_nice_value_back(unstartable: Cluster) -> None:
    cluster = unstartable
    numbers = cluster.submit_all([("-n4 --mem=100G --nice=1000", "true")] * 4)
    cleared, released, moved, kept = numbers
    cluster.wait_for("they are placed", lambda: all(cluster.job(each).pinned_to for each in numbers), timeout_s=90)
    assert {shown(cluster, each, "Nice") for each in numbers} == {("-2000000000",)}, (
        "ahead of Slurm's queue whatever its nice"
    )
    (elsewhere,) = cluster.job(cleared).pinned_to
    # The owner holds it until the scheduler has seen that, and then releases it.
    cluster.run(f"scontrol hold {released}", "alice")
    held = "held by its owner after we placed it"
    cluster.wait_for("it is seen", lambda: row(cluster, released).get("state") == held)
    edit(cluster, {cleared: "ReqNodeList=", moved: f"ReqNodeList={elsewhere}"})
    cluster.run(f"scontrol release {released}", "alice")

    def is_given_back(number: int) -> bool:
        return shown(cluster, number, "Nice") == ("1000",) and not row(cluster, number)

    cluster.wait_for("they are as they were", lambda: all(is_given_back(each) for each in (cleared, released, moved)))
    assert [cluster.job(each).pinned_to for each in (cleared, released, moved)] == [(), (), (elsewhere,)]
    assert not any(cluster.job(each).is_held for each in (cleared, released, moved))

    # The store is lost, and the job is recognised by its fields in Slurm; a clean stop restores its own nice value.
    assert shown(cluster, kept, "Nice", "Extra") == ("-2000000000", "sns:1"), "the mark, up to its first blank"
    cluster.daemon("kill", "scheduler")
    cluster.run("mkdir -p /tmp/away; mv /var/lib/sns/sns.db* /tmp/away")
    cluster.daemon("start", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    cluster.wait_for("it is known", lambda: row(cluster, kept).get("state") == "placed, Slurm is starting it", 90)
    cluster.daemon("stop", "scheduler")
    assert shown(cluster, kept, "Nice", "ReqNodeList") == ("1000", "(null)")
    cluster.run("rm -f /var/lib/sns/sns.db*; mv /tmp/away/sns.db* /var/lib/sns/")


def test_jobs_that_the_filter_held_when_enforce_ended_are_released_though_nobody_has_seen_them(
    cluster: Cluster,
) -> None:
    cluster.daemon("stop", "watchdog")
    with beating(cluster):
        numbers = cluster.submit_all([("-n4", "true"), ("-n1 -a 1-3 -t1", "true")])
        own = cluster.submit("-n4 -H", "true")
        assert all(cluster.job(number).is_held for number in (*numbers[:1], own))
    cluster.run("sed 's/^mode: enforce/mode: observe/' /etc/slurm/sns.yaml > /tmp/sns-observe.yaml")
    cluster.daemon("start", "scheduler", config="/tmp/sns-observe.yaml")
    cluster.wait_for_end(numbers[:1])
    cluster.wait_for("the array, too", lambda: f"{numbers[1]}_" not in cluster.run("squeue -h -t PENDING -o %i"))
    assert cluster.job(own).is_held, "what its owner holds stays held"


@pytest.fixture
def frozen(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the faulty scheduler installed; see faulty_scheduler.py."""
    cluster.run("mkdir -p /tmp/faults")
    cluster.write("/tmp/faults/sns", Path(__file__).with_name("faulty_scheduler.py").read_text())
    cluster.run("chmod 755 /tmp/faults/sns")
    cluster.daemon("stop", "watchdog")
    yield cluster
    cluster.run("kill -CONT $(cat /run/sns/scheduler.pid); sns-daemon kill scheduler; rm -rf /tmp/faults")


def test_an_administrators_hold_that_comes_after_the_look_is_not_undone_by_the_placement(frozen: Cluster) -> None:
    cluster = frozen
    log = Log(cluster)
    with beating(cluster):
        held, other = cluster.submit_all([("-n4", "true")] * 2)
        cluster.try_run("PATH=/tmp/faults:$PATH SNS_FAULT=place:before:1:freeze sns-daemon start scheduler")
        is_frozen = "grep -q '^State:.T' /proc/$(cat /run/sns/scheduler.pid)/status"
        cluster.wait_for("it is frozen", lambda: cluster.try_run(is_frozen).returncode == 0, timeout_s=120)
        cluster.run(f"scontrol hold {held}")
        cluster.run("kill -CONT $(cat /run/sns/scheduler.pid)")
        assert cluster.wait_for_end([other])[other].state == "COMPLETED"
        seen = cluster.job(held)
        assert (seen.is_held, seen.reason, seen.pinned_to) == (True, "JobHeldAdmin", ())
        assert log.lines(f"job {held}: Slurm refused", "JobHeldAdmin")
