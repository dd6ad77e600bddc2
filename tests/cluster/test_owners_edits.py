"""Changes that an owner makes to a gated job: none strands it, and what we do not place is left to Slurm with them."""

import shlex
from collections.abc import Iterator

import pytest
from evidence import fill, notes
from heartbeat import beating

from cluster import Cluster

#: A change that an owner may make to a gated job -> the words for it in the note that the job is left to Slurm.
EDITS = {
    "ReqNodeList=c2": "a node list",
    "Features=[ib|opa]": "constraint",
    "Prefer=ssd": "prefer",
    "ReservationName=later": "reservation",
    "Licenses=matlab:1": "licences",
    "Switches=1": "switches",
    "TresPerNode=gres/fpga:1": "gres",
    "TresPerNode=gres/llc:3": "gres",
}
PLAIN = "-n4 --mem=1G"


def shown(cluster: Cluster, number: int, *names: str) -> tuple[str, ...]:
    fields = cluster.fields(number)
    return tuple(fields.get(name, "") for name in names)


@pytest.fixture
def full(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with partition main full, so that managed jobs wait, and a reservation of alice's for tomorrow."""
    reserve = "ReservationName=later StartTime=now+1day Duration=60 Users=alice Nodes=s2"
    cluster.run(f"scontrol create reservation {reserve}")
    fill(cluster)
    yield cluster
    cluster.run("scancel -u alice; scancel -u bob; scontrol delete ReservationName=later")


def edit(cluster: Cluster, edits: dict[int, str]) -> None:
    changes = (f"scontrol update JobId={number} {shlex.quote(text)}" for number, text in edits.items())
    cluster.run("; ".join(changes), "alice")


def test_a_gated_job_that_its_owner_changes_so_that_we_do_not_place_it_is_left_to_slurm_with_its_changes(
    full: Cluster,
) -> None:
    cluster = full
    plain, *edited = cluster.submit_all([(PLAIN, "true")] * (1 + len(EDITS)))
    cluster.wait_for("it waits", lambda: cluster.row(edited[-1]).get("state") == "waiting")
    edit(cluster, dict(zip(edited, EDITS, strict=True)))
    cluster.wait_for("they are Slurm's", lambda: not any(cluster.job(each).is_gated for each in edited))
    told = {number: notes(cluster, number) for number in edited}
    assert told == {
        number: [f"left to Slurm: its owner asks for {what}"]
        for number, what in zip(edited, EDITS.values(), strict=True)
    }
    for number, text in zip(edited, EDITS, strict=True):
        name, value = text.split("=", 1)
        where = {"ReservationName": "Reservation", "Switches": "Switches"}.get(name, name)
        assert shown(cluster, number, where)[0].startswith(value), text
    assert cluster.row(plain)["state"] == "waiting", "nothing else changed"


def test_a_job_whose_nodes_or_cpus_no_longer_suit_its_tasks_is_left_to_slurm(full: Cluster) -> None:
    cluster = full
    nodes, cpus = cluster.submit_all([("-n2 --mem=1G", "true"), ("-N2 -n4 --mem=1G", "true")])
    cluster.wait_for("they wait", lambda: cluster.row(cpus).get("state") == "waiting")
    cluster.run(f"scontrol update JobId={nodes} NumNodes=4", "alice")
    refused = cluster.try_run(f"scontrol update JobId={cpus} NumTasks=1", "alice")
    assert "Task count specification invalid" in refused.stderr
    assert shown(cluster, cpus, "NumTasks", "NumCPUs") == ("4", "1"), "Slurm carries out half of it"
    cluster.wait_for("they are Slurm's", lambda: not any(cluster.job(each).is_gated for each in (nodes, cpus)))
    assert notes(cluster, nodes) == [
        "left to Slurm: asks for 4 nodes and has fewer tasks, 2: how it runs is Slurm's choice"
    ]
    assert notes(cluster, cpus) == ["left to Slurm: its owner asks for overcommit"]


def test_jobs_that_the_filter_gated_when_enforce_ended_are_left_to_slurm_though_nobody_has_seen_them(
    cluster: Cluster,
) -> None:
    cluster.daemon("stop", "watchdog")
    with beating(cluster):
        numbers = cluster.submit_all([("-n4", "true"), ("-n1 -a 1-3 -t1", "true")])
        own = cluster.submit("-n4 -H", "true")
        assert all(cluster.job(number).is_gated for number in (*numbers[:1], own))
    cluster.run("sed 's/^mode: enforce/mode: observe/' /etc/slurm/sns.yaml > /tmp/sns-observe.yaml")
    cluster.daemon("start", "scheduler", config="/tmp/sns-observe.yaml")
    cluster.wait_for_end(numbers[:1])
    cluster.wait_for("the array, too", lambda: f"{numbers[1]}_" not in cluster.run("squeue -h -t PENDING -o %i"))
    assert cluster.job(own).is_held, "what its owner holds stays held"
