"""Job arrays on a real Slurm: tasks are placed from the record, and none stays gated when the scheduler is gone."""

import json
import shlex
from collections import Counter
from dataclasses import dataclass

import pytest
from evidence import fill, in_force

from cluster import Cluster, CommandFailed, unfold
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record

pytestmark = pytest.mark.releases

PROFILES = "/usr/src/slurm_sns/conf/profiles/spread-n-share.yaml"


@dataclass(frozen=True)
class Task:
    """One task as squeue shows it; it has a job id of its own once it was split off."""

    job_id: int
    state: str
    reason: str
    nodes: tuple[str, ...]
    record: Record | None

    @property
    def is_gated(self) -> bool:
        found = self.record
        return self.state == "PENDING" and found is not None and not found.is_slurms and not found.is_placed


def tasks(cluster: Cluster, array: int) -> dict[int, Task]:
    """All tasks of the array, split off or not."""
    fields = "ArrayTaskID:|,JobID:|,State:|,Reason:|,NodeList:|,admin_comment:|"
    found = {}
    for row in cluster.run(f"squeue -a -h -r -t all -j {array} -O '{fields}'").splitlines():
        task, job_id, state, reason, nodes, comment, _ = row.split("|")
        found[int(task)] = Task(int(job_id), state, reason, unfold(nodes), records.read(comment))
    return found


def wait_for_states(cluster: Cluster, array: int, wanted: Counter[str], timeout_s: float = 300) -> dict[int, Task]:
    cluster.wait_for(
        f"the tasks of {array} are {dict(wanted)}",
        lambda: Counter(task.state for task in tasks(cluster, array).values()) == wanted,
        timeout_s,
        every_s=0.5,
    )
    return tasks(cluster, array)


def wait_for_the_end(cluster: Cluster, array: int) -> dict[int, Task]:
    left = f"squeue -a -h -j {array}"  # without -t: those that wait, run or complete
    cluster.wait_for(f"the tasks of {array} have ended", lambda: not cluster.run(left).strip(), 300, every_s=0.5)
    return tasks(cluster, array)


def is_script_removed(cluster: Cluster, task: Task) -> bool:
    """Whether the node's slurmd removed the task's script before it began.

    Plain Slurm 26.05 does so as well where a node is busy: slurmd takes the script of a slurmstepd that does not listen
    yet for one left behind ("Purging vestigial job script"). The task then ends with exit code 2.
    """
    script = f"/job{task.job_id:05}/slurm_script"
    log = cluster.run(f"grep {script} /var/log/slurm/slurmd.log", node=task.nodes[0])
    return "Purging vestigial job script" in log and f"{script}: No such file or directory" in log


def split_off(cluster: Cluster, array: int) -> int:
    """How many tasks have a job id of their own."""
    return sum(task.job_id != array for task in tasks(cluster, array).values())


def test_two_hundred_tasks_run_once_each_on_the_node_that_was_planned(cluster: Cluster) -> None:
    cluster.run("rm -rf tasks; mkdir tasks", "alice")
    script = "echo $(hostname) >> tasks/$SLURM_ARRAY_TASK_ID; sleep 1"
    array = cluster.submit("-t 5 -n1 --array=0-199", script)
    ended = wait_for_the_end(cluster, array)

    lost = {number: task for number, task in ended.items() if task.state != "COMPLETED"}
    assert all(is_script_removed(cluster, task) for task in lost.values()), lost
    assert len(ended) == 200
    assert len(lost) <= 5
    ran = {number: list(task.nodes) for number, task in ended.items() if number not in lost}
    assert read_tasks(cluster) == ran
    ran_on = {task.job_id: list(task.nodes) for task in ended.values()}
    planned_on = {
        number: each["nodes"]
        for number, decided in cluster.decisions(ran_on).items()
        for each in in_force(decided)
        if each["action"] == "start"
    }
    # What a busy Slurm does not start in time is taken back, and may be started in that moment.
    assert len(planned_on) >= 190
    assert {number: ran_on[number] for number in planned_on} == planned_on
    # The last task keeps the array's id; all others were split off and have their own.
    assert sum(task.job_id == array for task in ended.values()) == 1
    for number in (0, 7, 199):
        text = cluster.run(f"sns explain {array}_{number}", "alice")
        assert f"job {array}_{number}" in text
        assert f"placed on {ended[number].nodes[0]}" in text


def read_tasks(cluster: Cluster) -> dict[int, list[str]]:
    """The nodes that each task wrote, one line for each of its starts."""
    found: dict[int, list[str]] = {}
    for line in cluster.run("grep . tasks/*", "alice").splitlines():
        path, node = line.split(":")
        found.setdefault(int(path.rsplit("/", 1)[1]), []).append(node)
    return found


def test_an_arrays_limit_is_kept_and_its_owner_may_change_cancel_and_requeue_tasks(cluster: Cluster) -> None:
    filler = fill(cluster)
    array = cluster.submit("-t 5 -n1 --requeue --array=0-23%5", "sleep 2")
    cluster.wait_for("the queue shows it", lambda: f"{array}_[0-23%5]" in cluster.run("sns queue", "alice"))
    assert all(task.is_gated for task in tasks(cluster, array).values())
    assert split_off(cluster, array) == 0
    assert "HEURISTIC" in cluster.run(f"sns explain {array}_3", "alice")
    for named in (f"{array}_20", str(array)):
        assert "0-23 waiting; at most 5 at a time" in cluster.run(f"sns explain {named}", "alice")
    assert cluster.try_run(f"sns explain {array}_3", "bob").returncode == 2

    cluster.run(f"scancel {array}_2 {array}_17; scontrol hold {array}_4", "alice")
    cluster.try_run(f"scontrol update JobId={array} TimeLimit=3", "alice")  # complains about the cancelled tasks
    assert {cluster.fields(f"{array}_{number}")["TimeLimit"] for number in (3, 20)} == {"00:03:00"}
    assert {task.is_gated for number, task in tasks(cluster, array).items() if number not in (2, 17)} == {True}
    assert tasks(cluster, array)[4].reason == "JobHeldUser"
    cluster.run(f"scancel {filler}")
    # Task 0 runs, or has just ended.
    cluster.wait_for("task 0 is started", lambda: tasks(cluster, array)[0].state != "PENDING", every_s=0.1)
    requeued = cluster.try_run(f"scontrol requeue {array}_0", "alice").returncode == 0

    wait_for_states(cluster, array, Counter({"COMPLETED": 21, "PENDING": 1}))
    cluster.run(f"scontrol release {array}_4", "alice")
    wait_for_states(cluster, array, Counter({"COMPLETED": 22}))
    runs = accounted(cluster, array, 22 + requeued)
    for _, moment, _ in runs:
        assert sum(began <= moment < over for _, began, over in runs) <= 5
    began_s = sorted(began for _, began, _ in runs)
    assert began_s[20] - began_s[0] <= 30, "five tasks of two seconds at a time, refilled in each cycle"
    if requeued:
        decided = in_force(cluster.explain(f"{array}_0")["decisions"])
        assert [each["action"] for each in decided].count("start") == 2


def accounted(cluster: Cluster, array: int, number: int) -> list[tuple[str, int, int]]:
    """Task, start and end of each run of the array, once slurmdbd knows `number` runs."""

    def rows() -> list[tuple[str, int, int]]:
        columns = "JobID,Start,End"
        lines = cluster.run(f"SLURM_TIME_FORMAT=%s sacct -nPXD -j {array} -o {columns}").splitlines()
        split = [line.split("|") for line in lines]
        return [(task, int(start), int(end)) for task, start, end in split if start.isdigit() and end.isdigit()]

    cluster.wait_for(f"slurmdbd knows {number} runs", lambda: len(rows()) >= number)
    return rows()


#: The ways in which the scheduler can be gone -> how it comes back.
GONE = {
    "sns-daemon kill scheduler": "sns-daemon start scheduler",  # the watchdog frees the gated jobs
    "sns disable": "sns enable",
    "sns-daemon stop scheduler": "sns-daemon start scheduler",
}


def test_no_task_of_an_array_stays_gated_when_we_are_gone(cluster: Cluster) -> None:
    for leave, come_back in GONE.items():
        filler = fill(cluster)
        array = cluster.submit("-t 5 -n28 --array=0-9", "true")
        assert all(task.is_gated for task in tasks(cluster, array).values())
        cluster.run(leave)
        assert_none_stays_gated(cluster, array)
        cluster.run(f"scancel {filler}")
        wait_for_states(cluster, array, Counter({"COMPLETED": 10}))
        cluster.run(come_back)
        cluster.wait_for_scheduler()


def assert_none_stays_gated(cluster: Cluster, array: int) -> None:
    cluster.wait_for("nothing is gated", lambda: not any(task.is_gated for task in tasks(cluster, array).values()))


#: Places the tasks of an array on c1, and prints what came of each and how many updates slurmctld was asked for.
PLACE = """
import json, sys
from slurm_sns.scheduler.gate.orders import BOOST, OPEN, GateOrder, OrderKind
from slurm_sns.slurm.api import run
from slurm_sns.slurm.executor import SlurmExecutor
from slurm_sns.task_ids import task_id, task_of

def updates():
    words = [line.split() for line in run("sdiag").splitlines()]
    of_updates = next((line for line in words if line[:1] == ["REQUEST_UPDATE_JOB"]), ["count:0"])
    return int(next(word for word in of_updates if word.startswith("count:")).removeprefix("count:"))

array, *tasks = map(int, sys.argv[1:])
orders = [
    GateOrder(
        task_id(array, task), OrderKind.PLACE, "sns:2 n=c1 at=8", OPEN, ("c1",), site_factor=BOOST,
        address=f"{array}_{task}",
    )
    for task in tasks
]
before = updates()
answers = {task_of(each.order.job_id)[1]: str(each.refused or each.unreachable or "")
           for each in SlurmExecutor().execute(orders)}
print(json.dumps([updates() - before, answers]))
"""


def test_tasks_on_one_node_are_placed_by_one_rpc_and_a_refused_one_costs_itself_only(cluster: Cluster) -> None:
    """By the scheduler's own executor, while no scheduler sends updates that would count, too."""
    cluster.daemon("stop")
    try:
        place_tasks(cluster)
    finally:
        cluster.daemon("start")
        cluster.wait_for_scheduler()


def place_tasks(cluster: Cluster) -> None:
    array = cluster.submit("-p plain -t 5 -n1 --begin=now+1hour --array=0-7", "sleep 60")
    cluster.run(f"scontrol update JobId={array}_2 StartTime=now", "alice")
    cluster.wait_for("task 2 runs", lambda: tasks(cluster, array)[2].state == "RUNNING", every_s=0.5)
    words = " ".join(map(str, (array, 0, 1, 2, 3, 4, 5)))
    updates, answers = json.loads(cluster.run(f"/opt/sns/bin/python -c {shlex.quote(PLACE)} {words}", "slurm"))

    assert "not supported" in answers.pop("2"), "a running job keeps its nodes"
    assert set(answers.values()) == {""}
    placed = tasks(cluster, array)
    assert {number for number, task in placed.items() if task.record is not None} == {0, 1, 3, 4, 5}
    assert split_off(cluster, array) == 6, "tasks 6 and 7 wait in the record as before"
    assert updates == 3, "tasks 0 to 4, the boost of 3 and 4 that Slurm forgot after 2, and the last one alone"
    cluster.wait_for(
        "they run", lambda: all(tasks(cluster, array)[number].state == "RUNNING" for number in (0, 1, 3, 4, 5))
    )
    assert {task.nodes for number, task in tasks(cluster, array).items() if number in (0, 1, 3, 4, 5)} == {("c1",)}
    cluster.run(f"scancel {array}")


def test_the_tasks_of_a_spreadable_array_are_spread(cluster: Cluster) -> None:
    cluster.run(f"sns profile import {PROFILES}", "slurm")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()
    options = "-t 5 -n16 --mem-per-cpu=1G --sns-program=bw --sns-max-scale=2 --array=1-7:2"
    array = cluster.submit(options, "srun hostname; sleep 1")
    ended = wait_for_states(cluster, array, Counter({"COMPLETED": 4}))
    starts = cluster.starts(task.job_id for task in ended.values())
    assert sorted(ended) == [1, 3, 5, 7]
    for task in ended.values():
        assert set(task.nodes) == set(starts[task.job_id]["nodes"])
        assert len(task.nodes) == starts[task.job_id]["scale"]
    assert 2 in {start["scale"] for start in starts.values()}
    with pytest.raises(CommandFailed, match="Invalid job array specification"):  # Slurm's own limit, in its own words
        cluster.submit("-n1 --array=0-3000", "true")
