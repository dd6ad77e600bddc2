"""Pass-through jobs look as if slurm_sns were not there, at submission and at any later time."""

import json
import shlex
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import pytest

from cluster import Cluster

#: Every case of the list of pass-through jobs, by its reason. All wait, because another job has all nodes.
CASES = {
    "heterogeneous": "-n1 : -n2",
    "reservation": "-n1 --reservation=passing",
    "foreign-gres": "-p small -n1 --gres=fpga:1",
    "own-ways": "-n1 --gres=llc:4",
    "gres-per-task": "-n2 --tres-per-task=gres/llc:1",
    "constraint-with-count": "-N2 --constraint='[ib*1&opa*1]'",
    "constraint-with-choice": "-N2 --constraint='[ib|opa]'",
    "prefer": "-p small -n1 --prefer=ssd",
    "node-list": "-n4 -w c2",
    "exclusive-user": "-n1 --exclusive=user",
    "oversubscribe": "-n1 --oversubscribe",
    "contiguous": "-N2 --contiguous",
    # With a time limit: without one the job would overlap the reservation, and Slurm would count c4 sometimes only.
    "spread": "-n4 --spread-job -t30",
    "switches": "-N2 --switches=1@5",
    "licences": "-n1 --licenses=matlab:1",
    "burst-buffer": "-n1 --bb='#BB_LUA pool=disk capacity=1'",
    "sockets": "-n2 --sockets-per-node=2",
    "cores-per-socket": "-n2 --cores-per-socket=2",
    "threads": "-n2 --threads-per-core=1",
    "tasks-per-socket": "-n4 --ntasks-per-socket=2",
    "tasks-per-core": "-n4 --ntasks-per-core=1",
    "minimum-cpus": "-n1 --mincpus=4",
    "overcommit": "-N1 -n8 --overcommit",
    "range-of-nodes": "-N1-2 -n4",
    "asked-to-be-left": "-n4 --comment sns:off",
    "unmanaged-partition": "-p plain -n4",
    "one-partition-unmanaged": "-p main,plain -n4",
    "all-nodes": "-N4 --exclusive=user --mem=0",
}
#: Jobs whose reason to pass through is in the script.
SCRIPTS = {
    "burst-buffer-of-script": "#!/bin/sh\n#SBATCH -n1\n\n#BB_LUA pool=disk capacity=1\ntrue\n",
    "deadline-of-script": "#!/bin/sh\n#SBATCH -n1 -t5 --deadline=now+1hour\ntrue\n",
}
#: Commands that wait for their job.
INTERACTIVE = {"srun": "srun -n4 true", "salloc": "salloc -n4 true"}
#: A job that slurm_sns manages while it runs.
MANAGED = "-n4 --time=5"

#: Fields of `scontrol show job` that name the job or a time, or that Slurm's scheduling passes write.
ITS_OWN = frozenset(
    {"job_id", "het_job_id", "het_job_id_set", "step_id", "submit_line"}
    | {"submit_time", "eligible_time", "accrue_time", "preemptable_time", "deadline"}
    | {"start_time", "end_time", "last_sched_evaluation", "scheduled_nodes", "priority", "priority_by_partition"}
    | {"state_reason", "state_description", "burst_buffer_state"}
)
#: Flags that Slurm's scheduling passes set and clear.
LOOKED_AT = frozenset(
    {"SCHEDULING_ATTEMPTED", "BACKFILL_ATTEMPTED", "TESTING_BACKFILL", "TESTING_WHOLE_NODE_BACKFILL"}
    | {"TOP_PRIORITY_JOB", "ACCRUE_COUNT_CLEARED", "DEPENDENT"}
)

Jobs = dict[str, list[dict[str, Any]]]


def pending(cluster: Cluster) -> Jobs:
    """Alice's waiting jobs by name: their fields; a heterogeneous job has an entry for each component."""
    found: Jobs = {}
    for job in json.loads(cluster.run("scontrol show job --json"))["jobs"]:
        if job["user_name"] == "alice" and job["job_state"] == ["PENDING"]:
            found.setdefault(job["name"], []).append(job)
    return found


def submit(cluster: Cluster, cases: dict[str, str], scripts: Mapping[str, str] = MappingProxyType({})) -> Jobs:
    """Submit the cases as alice, and return her waiting jobs."""
    cluster.submit_all([(f"-J {name} {options}", "true") for name, options in cases.items()])
    for name, script in scripts.items():
        cluster.run(f"printf %s {shlex.quote(script)} | sbatch -o /dev/null -J {name}", "alice")
    return pending(cluster)


def submit_and_wait(cluster: Cluster) -> None:
    """Start the commands that wait for their job, and wait until Slurm shows the jobs."""
    for name, command in INTERACTIVE.items():
        cluster.run(f"setsid {command.replace(' ', f' -J {name} ', 1)} < /dev/null > /dev/null 2>&1 &", "alice")
    cluster.wait_for("srun and salloc wait", lambda: INTERACTIVE.keys() <= pending(cluster).keys())


def cancel_all(cluster: Cluster) -> None:
    cluster.run("scancel -u alice")
    cluster.wait_for("they are gone", lambda: not pending(cluster))


def set_filter(cluster: Cluster, *, on: bool) -> None:
    """Add the submit filter to Slurm's configuration, or remove it."""
    wanted = "= lua" if on else "= (null)"
    if wanted in cluster.run("scontrol show config | grep JobSubmitPlugins"):
        return
    change = "sns render /etc/slurm/sns" if on else "sed -i 's/^JobSubmitPlugins/#&/' /etc/slurm/sns/slurm.conf"
    cluster.run(f"{change} && scontrol reconfigure")
    shows = "scontrol show config | grep JobSubmitPlugins; cluster-health ctl && echo ready"

    def is_so() -> bool:
        shown = cluster.try_run(shows).stdout
        return wanted in shown and "ready" in shown

    cluster.wait_for(f"JobSubmitPlugins {wanted}", is_so)
    cluster.wait_for_cycles(1)  # while Slurm did not answer, the heartbeat may have become old


@pytest.fixture(scope="module")
def without_us(shared_cluster: Cluster) -> Iterator[Jobs]:
    """The cases' jobs on a Slurm without the submit filter; a pass-through job has all nodes, also in the tests."""
    cluster = shared_cluster
    filler = cluster.submit("-p plain -N6 --exclusive", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    when = "StartTime=now+2hours Duration=9 Flags=IGNORE_JOBS"
    cluster.run(f"scontrol create reservation ReservationName=passing Users=alice Nodes=c4 {when}")
    try:
        set_filter(cluster, on=False)
        submit(cluster, {**CASES, "managed": MANAGED}, SCRIPTS)
        submit_and_wait(cluster)
        yield pending(cluster)
    finally:
        cancel_all(cluster)
        cluster.run("scontrol delete ReservationName=passing")
        set_filter(cluster, on=True)


def lasting(job: dict[str, Any]) -> dict[str, Any]:
    """The job's fields that change only when somebody changes them."""
    fields = {name: value for name, value in job.items() if name not in ITS_OWN}
    return {**fields, "flags": sorted(set(job["flags"]) - LOOKED_AT)}


def differences(before: Jobs, after: Jobs) -> dict[str, dict[str, tuple[Any, Any]]]:
    """For each job that is not the same in both, the fields that differ: name -> (before, after)."""
    found: dict[str, dict[str, tuple[Any, Any]]] = {}
    for name in before.keys() | after.keys():
        ones, others = map(lasting, before.get(name, [])), map(lasting, after.get(name, []))
        for one, other in zip_longest(ones, others, fillvalue={}):
            differ = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
            found.setdefault(name, {}).update({key: (one.get(key), other.get(key)) for key in differ})
    return {name: fields for name, fields in found.items() if fields}


def test_what_we_do_not_place_is_as_if_we_were_not_there_and_stays_so(
    shared_cluster: Cluster, without_us: Jobs
) -> None:
    cluster = shared_cluster
    assert without_us.keys() == {*CASES, *SCRIPTS, *INTERACTIVE, "managed"}
    assert len(without_us["heterogeneous"]) == 2
    cancel_all(cluster)
    set_filter(cluster, on=True)
    submit(cluster, {**CASES, "managed": MANAGED}, SCRIPTS)
    submit_and_wait(cluster)
    with_us = pending(cluster)
    managed = differences(without_us, with_us).pop("managed")
    # Slurm's first pass over a job sets the other two: it passes over a gated one.
    assert {"admin_comment"} <= managed.keys() <= {"admin_comment", "max_nodes", "flags"}, managed
    assert differences(without_us, with_us).keys() == {"managed"}, differences(without_us, with_us)

    cluster.wait_for_cycles(5)
    later = differences(with_us, pending(cluster))
    assert later.pop("managed", {}).keys() <= {"admin_comment"}, "its gate may be renewed"
    assert later == {}
    listed = {each["name"] for each in json.loads(cluster.run("sns queue --json"))}
    assert listed == {"managed"}
    cancel_all(cluster)


def test_while_we_are_switched_off_or_show_no_sign_of_life_every_job_is_as_if_we_were_not_there(
    shared_cluster: Cluster, without_us: Jobs
) -> None:
    cluster, plain = shared_cluster, {"managed": without_us["managed"]}
    cancel_all(cluster)
    set_filter(cluster, on=True)
    cluster.run("sns disable", "slurm")
    assert differences(plain, submit(cluster, {"managed": MANAGED})) == {}
    cluster.run("sns enable", "slurm")
    cluster.wait_for_cycles(2)
    assert differences(plain, pending(cluster)) == {}, "it stays Slurm's when we are switched on again"

    cancel_all(cluster)
    cluster.daemon("kill", "scheduler")
    # Each call submits a job.
    cluster.wait_for("the heartbeat is stale", lambda: not passes_as_managed(cluster), every_s=0.5)
    cancel_all(cluster)
    assert differences(plain, submit(cluster, {"managed": MANAGED})) == {}
    cluster.daemon("start", "scheduler")
    cluster.wait_for_scheduler()
    assert differences(plain, pending(cluster)) == {}
    cancel_all(cluster)


def passes_as_managed(cluster: Cluster) -> bool:
    """Whether the filter gates a job that it would manage."""
    return cluster.job(cluster.submit(MANAGED)).is_gated
