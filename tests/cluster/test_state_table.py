"""The state table (docs/develop/managed-jobs.md) on a real Slurm: commands of users and admins lead to each row.

Slurm's own actions (a requeue, a failed prolog, a node that is away) are at the end, and in test_faults.py.
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from evidence import fill, notes
from heartbeat import by_hand

from cluster import PYTHON, Cluster, Seen
from slurm_sns.scheduler.gate.orders import LEAST_BOOSTED
from slurm_sns.submit.record import Record

pytestmark = pytest.mark.releases


def state(cluster: Cluster, number: int) -> str:
    return str(cluster.row(number).get("state", "not ours"))


def decisions(cluster: Cluster, number: int) -> list[dict[str, Any]]:
    """The decisions about the job; empty before the scheduler has seen it."""
    return list(cluster.try_explain(number).get("decisions", []))


def placements(cluster: Cluster, number: int) -> int:
    return sum(each["action"] == "start" for each in decisions(cluster, number))


def wait_for_state(cluster: Cluster, numbers: Iterable[int], wanted: str) -> None:
    wanted_of = dict.fromkeys(numbers, wanted)

    def is_so() -> bool:
        states = {each["job_id"]: each["state"] for each in cluster.queue()}
        return {number: states.get(number, "not ours") for number in wanted_of} == wanted_of

    cluster.wait_for(wanted, is_so, timeout_s=90)


def record(job: Seen) -> Record:
    """The job's record; an empty one if it has none."""
    return job.record or Record()


def has_lease(job: Seen) -> bool:
    """Whether its first gate, a minute after the submission, has been renewed: the next one is due in an hour."""
    return job.begin_s > job.submit_s + 600


def free_why(cluster: Cluster, number: int) -> str:
    return record(cluster.job(number)).free_why


def wait_for_freed(cluster: Cluster, whys: dict[int, str]) -> None:
    cluster.wait_for("they are Slurm's", lambda: {each: free_why(cluster, each) for each in whys} == whys)


def do(cluster: Cluster, user: str, *commands: str) -> None:
    """Run these commands in one shell."""
    cluster.run(" && ".join(commands), user)


def limit(cluster: Cluster, **limits: str) -> None:
    """Change partition main, as an administrator does."""
    cluster.run("scontrol update PartitionName=main " + " ".join(f"{name}={value}" for name, value in limits.items()))


@pytest.fixture
def limited(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, for a test that changes partition main and its nodes."""
    yield cluster
    limit(cluster, State="UP", MaxNodes="UNLIMITED", MaxTime="UNLIMITED", MaxCPUsPerNode="UNLIMITED")
    for node in ("c1", "c2", "c3", "c4"):
        if "DRAIN" in cluster.run(f"sinfo -h -n {node} -o %T").upper():
            cluster.run(f"scontrol update NodeName={node} State=RESUME")


# --- a gated job


def test_what_people_do_to_a_gated_job_does_what_slurms_manual_says(cluster: Cluster) -> None:
    filler = fill(cluster)
    options = ("", "", "", "", "", "", "", "-H --extra=mine", "--begin=now+1hour", "-t1 --deadline=now+4minutes")
    numbers = cluster.submit_all([(f"-n4 --mem=1G {each}", "sleep 1") for each in options])
    gated, held, admins, now, asked, soon, unmarked, own, later, due = numbers
    wait_for_state(cluster, [gated, held, admins, now, asked, soon, unmarked, later, due], "waiting")
    wait_for_state(cluster, [own], "held")
    # Row 11: squeue shows what a job with a begin time shows, and its priority. The owner's own time is the gate.
    leased = [gated, held, admins, now, asked, soon, unmarked, own]
    cluster.wait_for("first gates are renewed", lambda: all(has_lease(cluster.job(each)) for each in leased))
    cluster.wait_for("Slurm says so", lambda: cluster.job(gated).reason == "BeginTime")
    seen = cluster.jobs()
    assert seen[gated].begin_s == record(seen[gated]).gate_s
    assert seen[gated].start_s == seen[gated].begin_s, "squeue's START_TIME"
    assert seen[gated].priority > 1
    assert abs(seen[later].begin_s - seen[later].submit_s - 3600) <= 1
    assert "may begin in" in cluster.row(later)["reason"]
    assert seen[due].begin_s <= seen[due].submit_s + 120, "in time for its deadline"
    gates = {number: seen[number].begin_s for number in numbers}

    for field in ("AdminComment", "SiteFactor"):
        assert "denied" in cluster.try_run(f"scontrol update JobId={gated} {field}=1", "alice").stderr
    do(cluster, "alice", f"scontrol hold {held}", f"scontrol update JobId={now} StartTime=now", f"sns release {asked}")
    do(cluster, "alice", f"scontrol update JobId={soon} StartTime=now+20 && scontrol release {own}")
    do(cluster, "root", f"scontrol hold {admins}", f"scontrol update JobId={unmarked} AdminComment=")
    assert cluster.try_run(f"sns release {gated}", "bob").returncode == 2

    wait_for_state(cluster, [held, admins], "held")
    wait_for_state(cluster, [own], "waiting")
    wait_for_freed(cluster, dict.fromkeys([now, asked], "opened-by-its-owner"))
    wait_for_state(cluster, [unmarked], "not ours")
    cluster.wait_for("row 13: its time is noted", lambda: record(cluster.job(soon)).begin_s is not None)
    seen = cluster.jobs()
    assert [seen[each].reason for each in (held, admins)] == ["JobHeldUser", "JobHeldAdmin"]
    assert {each: seen[each].begin_s for each in (held, admins, own, unmarked)} == {
        each: gates[each] for each in (held, admins, own, unmarked)
    }, "no hold and no release moves a gate"
    own_s = record(seen[soon]).begin_s or 0
    assert seen[soon].begin_s >= own_s + 30, "not shorter than the first lease"
    assert cluster.try_run(f"scontrol release {admins}", "alice").returncode != 0
    cluster.run(f"scontrol update JobId={unmarked} StartTime=now", "alice")

    cluster.run(f"scancel {filler}")
    ended = cluster.wait_for_end([gated, now, asked, soon, unmarked, own, due])
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    placed = [gated, soon, own]
    assert {each: record(ended[each]).nodes for each in placed} == {each: ended[each].nodes for each in placed}
    assert [placements(cluster, each) for each in (now, asked, unmarked)] == [0, 0, 0]
    assert ended[soon].start_s >= own_s > 0
    assert cluster.fields(own)["Extra"].startswith("mine"), "a grant may follow"
    assert {cluster.job(each).state for each in (held, admins)} == {"PENDING"}
    do(cluster, "root", f"scontrol release {admins},{held}")
    ended = cluster.wait_for_end([held, admins])
    assert [placements(cluster, each) for each in (held, admins)] == [1, 1]
    told = f"sacct -nXP -j {held} -o AdminComment"
    cluster.wait_for("accounting has the record", lambda: f" n={ended[held].nodes[0]} " in cluster.run(told, "alice"))


#: Lets the gates of these jobs lapse in three seconds.
LAPSE = """
gate=$(($(date +%s) + 3))
for job in {}; do scontrol update JobId=$job StartTime=uts$gate AdminComment="sns:2 g=$gate"; done
"""


def test_a_gate_that_lapses_is_shut_again_before_slurm_starts_the_job(cluster: Cluster) -> None:
    """Row 12. A gate that lapses while its owner holds the job looks opened by the release, and the job is Slurm's."""
    filler = fill(cluster)
    with by_hand(cluster):
        lapsed, held, array = cluster.submit_all([(f"-n4 --mem=1G {each}", "true") for each in ("", "-H", "-a 1-2")])
        cluster.run(LAPSE.format(f"{lapsed} {held} {array}"))
        lapse_s = cluster.job(lapsed).begin_s
        cluster.wait_for("Slurm tries to start it", lambda: cluster.job(lapsed).reason in ("Priority", "Resources"))
        cluster.run(f"scontrol release {held}", "alice")
        cluster.daemon("start", "scheduler")
        cluster.wait_for_scheduler()
    wait_for_state(cluster, [lapsed, array], "waiting")
    assert cluster.job(lapsed).begin_s > lapse_s
    cluster.wait_for("either is right", lambda: cluster.job(held).is_gated or bool(free_why(cluster, held)))
    cluster.run(f"scancel {filler}")
    cluster.wait_for_end([lapsed, held])
    assert placements(cluster, lapsed) == 1


# --- a placed job


@pytest.fixture
def unstartable(limited: Cluster) -> Iterator[Cluster]:
    """The cluster, where jobs that are placed in partition main do not start, for a reason that we cannot see.

    With bob's core, a job of four cores would exceed the partition's MaxCPUsPerNode.
    """
    cluster = limited
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    limit(cluster, MaxCPUsPerNode="4")
    cluster.run("sed 's/^scheduler:/&\\n  place_timeout_s: 3600/' /etc/slurm/sns.yaml > /tmp/sns-patient.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    yield cluster
    cluster.run("sns-daemon kill scheduler; rm -rf /tmp/away")


#: Fields of `scontrol show job` that differ between any two jobs, or that Slurm's passes change. (`g` is a part of the
#: record. Slurm shows an Extra that was cleared as an empty one.)
ITS_OWN = frozenset(
    {"JobId", "Priority", "Reason", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "AdminComment"}
    | {"g", "Extra", "LastSchedEval", "Scheduler", "SubmitLine", "AllocNode:Sid", "SchedNodeList", "Deadline"}
)
#: Jobs of four cores, with all ways to say their size.
SHAPES = ("-n4 --mem=2G", "-n2 -c2 --mem-per-cpu=500", "-n8 -N2 --mem=1G", "-n4 --ntasks-per-node=4 --mem=1G --nice=7")


def lasting(cluster: Cluster, number: int) -> dict[str, str]:
    return {name: value for name, value in cluster.fields(number).items() if name not in ITS_OWN}


def test_a_placed_job_that_is_held_is_taken_back_as_its_owner_wrote_it_and_stays_held(unstartable: Cluster) -> None:
    cluster = unstartable
    twins = cluster.submit_all([(f"-H {each}", "true") for each in SHAPES])
    placed = cluster.submit_all([(each, "true") for each in SHAPES])
    wait_for_state(cluster, placed, "placed, Slurm is starting it")
    seen = cluster.jobs()
    assert all(seen[each].pinned_to == record(seen[each]).nodes for each in placed)
    assert min(seen[each].priority for each in placed) > LEAST_BOOSTED, "first of all"
    do(cluster, "alice", *(f"scontrol hold {each}" for each in placed[:2]))
    do(cluster, "root", *(f"scontrol hold {each}" for each in placed[2:]))
    wait_for_state(cluster, placed, "held")
    cluster.wait_for("they are taken back", lambda: not any(cluster.job(each).pinned_to for each in placed))
    for one, other in zip(placed, twins, strict=True):
        assert lasting(cluster, one).items() ^ lasting(cluster, other).items() == set()
    seen = cluster.jobs()
    assert all(seen[each].is_held and seen[each].is_gated for each in placed)
    assert [seen[each].reason for each in placed] == ["JobHeldUser"] * 2 + ["JobHeldAdmin"] * 2
    limit(cluster, MaxCPUsPerNode="UNLIMITED")
    cluster.run("; ".join(f"scontrol release {each}" for each in (*placed, *twins)))
    ended = cluster.wait_for_end([*placed, *twins])
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    assert [placements(cluster, each) for each in placed] == [2] * 4


def test_what_an_owner_changes_in_a_placed_job_is_honoured_and_no_store_is_needed_to_know_the_rest(
    unstartable: Cluster,
) -> None:
    cluster = unstartable
    numbers = cluster.submit_all([("-n4 --mem=10G", "true")] * 6)
    kept, moved, cleared, later, half, asked = numbers
    wait_for_state(cluster, numbers, "placed, Slurm is starting it")
    seen = cluster.jobs()
    gate_s = record(seen[half]).gate_s
    elsewhere = next(name for name in ("c1", "c2") if (name,) != seen[moved].pinned_to)
    edits = {moved: f"ReqNodeList={elsewhere}", cleared: "ReqNodeList=", later: "StartTime=now+1hour"}
    edits[half] = f"StartTime=uts{gate_s}"  # as after a placement of which only a half has come
    do(
        cluster,
        "alice",
        *(f"scontrol update JobId={each} {text}" for each, text in edits.items()),
        f"sns release {asked}",
    )
    wait_for_freed(cluster, {moved: "node-list", cleared: "node-list", asked: "opened-by-its-owner"})
    wait_for_state(cluster, [later], "waiting")
    cluster.wait_for("it is placed anew", lambda: placements(cluster, half) == 2)
    seen = cluster.jobs()
    assert [seen[each].pinned_to for each in (moved, cleared, later, asked)] == [(elsewhere,), (), (), ()]
    assert max(seen[each].priority for each in (moved, cleared, later, asked)) < LEAST_BOOSTED
    assert seen[later].begin_s == record(seen[later]).begin_s == record(seen[later]).gate_s

    # The store is lost: the record in the job says what it is. A clean stop leaves every job to Slurm as it was. (The
    # watchdog would free jobs when the scheduler starts in more than the heartbeat's timeout.)
    cluster.daemon("stop", "watchdog")
    cluster.daemon("kill", "scheduler")
    cluster.run("mkdir -p /tmp/away; mv /var/lib/sns/sns.db* /tmp/away")
    cluster.daemon("start", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    wait_for_state(cluster, [kept, half], "placed, Slurm is starting it")
    wait_for_state(cluster, [moved, cleared, asked], "not ours")
    cluster.daemon("stop", "scheduler")
    assert {free_why(cluster, each) for each in (kept, half, later)} == {"clean-stop"}
    seen = cluster.jobs()
    assert [seen[each].pinned_to for each in (kept, half, later)] == [(), (), ()]
    assert seen[later].begin_s > seen[later].submit_s + 3000, "its owner's begin time stays"
    cluster.run("rm -f /var/lib/sns/sns.db*; mv /tmp/away/sns.db* /var/lib/sns/")


def test_a_placement_that_slurm_does_not_start_or_finds_impossible_is_taken_back(limited: Cluster) -> None:
    """Row 7. Slurm holds a job with impossible constraints itself: that hold is nobody's."""
    cluster = limited
    limit(cluster, MaxCPUsPerNode="2")
    impossible = cluster.submit("-n4 --mem=1G", "true")
    cluster.wait_for("it is taken back", lambda: bool(notes(cluster, impossible)), timeout_s=90)
    assert notes(cluster, impossible)[0].endswith("but Slurm did not start it: BadConstraints")
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    limit(cluster, MaxCPUsPerNode="4")
    late = cluster.submit("-n4 --mem=1G", "true")
    cluster.wait_for("it is taken back", lambda: bool(notes(cluster, late)), timeout_s=90)
    said = notes(cluster, late)[0]
    assert said.startswith("placed on c"), said
    assert ", but Slurm did not start it: " in said
    assert not said.endswith((": ", "no reason given")), "with Slurm's own reason"
    cluster.wait_for("explain says when", lambda: "tried again in" in cluster.row(late)["reason"])
    assert not any(cluster.job(each).is_held for each in (late, impossible))
    limit(cluster, MaxCPUsPerNode="UNLIMITED")
    ended = cluster.wait_for_end([late, impossible])
    assert {job.state for job in ended.values()} == {"COMPLETED"}


def test_a_job_that_its_partition_does_not_let_start_waits_unplaced_and_is_told_why(limited: Cluster) -> None:
    cluster = limited
    limit(cluster, State="DOWN")
    long, wide, plain = cluster.submit_all([("-n1 -t20", "true"), ("-N2 -n2 -t5", "true"), ("-n1 -t5", "true")])

    def reasons() -> list[str]:
        return [cluster.row(each).get("reason", "") for each in (long, wide, plain)]

    cluster.wait_for("explain says so", lambda: reasons() == ["partition main is down"] * 3)
    limit(cluster, State="UP", MaxTime="10", MaxNodes="1")
    cluster.wait_for_end([plain])
    assert reasons()[:2] == [
        "partition main allows 10 minutes, the job asks for 20",
        "partition main gives 1 to 1 nodes, the job needs 2",
    ]
    assert all(cluster.job(each).is_gated for each in (long, wide))
    limit(cluster, MaxTime="UNLIMITED", MaxNodes="UNLIMITED")
    assert {job.state for job in cluster.wait_for_end([long, wide]).values()} == {"COMPLETED"}
    assert [placements(cluster, each) for each in (long, wide, plain)] == [1, 1, 1]


# --- a job that runs


def test_a_running_job_is_left_alone_and_gated_anew_when_it_is_requeued(cluster: Cluster) -> None:
    script = "sleep $((SLURM_RESTART_COUNT ? 1 : 600))"
    numbers = cluster.submit_all(
        [(f"-n2 --mem=1G {each}", script) for each in ("--requeue --sns-exclusive", "--requeue", "", "--no-requeue")]
    )
    requeued, held, kept, never = numbers
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in numbers} == {"RUNNING"})
    cluster.wait_for("row 4: no boost", lambda: max(cluster.job(each).priority for each in numbers) < LEAST_BOOSTED)
    assert cluster.fields(requeued)["MinMemoryNode"] == "125G", "whole nodes"
    do(cluster, "alice", f"scontrol hold {kept}")
    assert cluster.try_run(f"scontrol requeue {never}", "alice").returncode != 0
    do(cluster, "alice", f"scontrol requeue {requeued}", f"scontrol requeuehold {held}", f"scontrol release {kept}")

    def is_gated_as_it_was() -> bool:
        memory, comment, _ = cluster.run(f"squeue -h -j {requeued} -O 'MinMemory:|,admin_comment:|'").split("|")
        return memory == "1G" and comment.startswith("sns:2 exclusive g=") and " n=" not in comment

    cluster.wait_for("row 5: it is gated, with its own memory", is_gated_as_it_was, every_s=0.05)
    assert cluster.wait_for_end([requeued])[requeued].state == "COMPLETED"
    assert placements(cluster, requeued) == 2
    wait_for_state(cluster, [held], "held")
    assert (cluster.job(held).pinned_to, cluster.job(held).is_gated) == ((), True)
    assert {cluster.job(each).state for each in (kept, never)} == {"RUNNING"}
    do(cluster, "alice", f"scontrol release {held}")
    assert cluster.wait_for_end([held])[held].state == "COMPLETED"
    assert placements(cluster, held) == 2


@pytest.fixture
def broken_prolog(limited: Cluster) -> Iterator[Cluster]:
    """The cluster, where c1 has a prolog that fails."""
    cluster, conf = limited, "/etc/slurm/slurm.conf"
    reread = "kill -HUP $(cat /run/slurm/slurmd.pid)"
    cluster.run(f"cp -p {conf} /tmp/kept.conf; echo Prolog=/bin/false >> {conf}; {reread}", node="c1")
    yield cluster
    cluster.run(f"cp -p /tmp/kept.conf {conf}; {reread}", node="c1")


def test_a_job_whose_prolog_fails_is_requeued_and_held_by_slurm_and_gated_by_us(broken_prolog: Cluster) -> None:
    cluster = broken_prolog
    numbers = cluster.submit_all([("-n28 --mem=1G", "sleep 2")] * 4)
    cluster.wait_for("one is requeued", lambda: any(cluster.fields(each)["Restarts"] != "0" for each in numbers))
    (failed,) = (each for each in numbers if cluster.fields(each)["Restarts"] != "0")
    wait_for_state(cluster, [failed], "held")
    seen = cluster.job(failed)
    assert (seen.is_held, seen.is_gated, seen.pinned_to) == (True, True, ())
    assert "DRAIN" in cluster.run("sinfo -h -n c1 -o %T").upper()
    cluster.run(f"scontrol release {failed}")
    ended = cluster.wait_for_end(numbers)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    assert ended[failed].nodes != ("c1",)
    assert placements(cluster, failed) == 2


def test_a_suspended_job_keeps_its_memory_and_gives_its_cores(cluster: Cluster) -> None:
    running = cluster.submit_all([("-p small -n4 --mem=20G", "sleep 3600")] * 2)
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in running} == {"RUNNING"})
    (node,) = cluster.job(running[0]).nodes
    cluster.run(f"scontrol suspend {running[0]}")
    small = cluster.submit("-p small -n1 --mem=1G", "true")
    assert cluster.wait_for_end([small])[small].nodes == (node,)
    large = cluster.submit("-p small -n1 --mem=20G", "true")
    cluster.wait_for("it finds no place", lambda: "no place" in cluster.row(large).get("reason", ""))
    assert state(cluster, running[0]) == "suspended"
    cluster.run(f"scontrol resume {running[0]}")


#: Cancels the jobs, submits another one, and logs its rows of the queue while all cancelled jobs are completing. This
#: is one process: to start the commands one by one, a busy machine may need longer than Slurm waits before it kills.
WATCH = """
import json, pathlib, subprocess, sys, time
from slurm_sns.sockets.unix_socket import ask

def run(command):
    return subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout

stubborn, seen = sys.argv[1:], []
run("scancel " + " ".join(stubborn))
number = int(run("runuser -u alice -- sbatch --parsable -D /tmp -o /dev/null -p small -n4 --wrap true"))
while True:
    rows = ask(pathlib.Path("/run/sns/scheduler.sock"), {"command": "queue"})
    if len(run("squeue -h -t COMPLETING -o %i").split()) < len(stubborn):
        break
    seen += [row for row in rows if row["job_id"] == number]  # still completing now, so also when we asked
    time.sleep(0.1)
print(json.dumps([number, seen]))
"""


def test_a_job_that_is_long_in_ending_keeps_its_node_to_itself(cluster: Cluster) -> None:
    """Jobs that ignore SIGTERM are completing for KillWait (10 s) after their cancellation."""
    cluster.run("rm -f deaf-*", "alice")
    deaf = "trap '' TERM; touch deaf-$SLURM_JOB_ID; while true; do sleep 1; done"
    stubborn = cluster.submit_all([("-p small --exclusive", deaf)] * 2)
    cluster.wait_for("they are deaf", lambda: len(cluster.run("ls | grep deaf- || true", "alice").split()) == 2)
    watched = cluster.run(f"{PYTHON} -c {shlex.quote(WATCH)} {' '.join(map(str, stubborn))}")
    number, seen = json.loads(watched)
    assert {each["state"] for each in seen} == {"waiting"}
    why = {each["reason"] for each in seen}
    assert any("is still completing on s" in each for each in why), why
    assert cluster.wait_for_end([number])[number].state == "COMPLETED"
    assert placements(cluster, number) == 1
