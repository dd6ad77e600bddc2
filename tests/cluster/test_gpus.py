"""Jobs with GPUs on a real Slurm: placed where GPUs are free, merged with ways, restored as their owners wrote them."""

from collections.abc import Iterator

import pytest
from gpus_beside_slurm import MANAGED, tried
from slurm_conf import added_to_slurm_conf, restart

from cluster import GPU_NODES, Cluster
from slurm_sns.submit import record as records

PROFILES = "/usr/src/slurm_sns/conf/profiles/spread-n-share.yaml"
LONG = "sleep 600"
#: What a placement may change in a job, or Slurm because of one.
OWN = (
    *("NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "NtasksPerN:B:S:C", "MinCPUsNode", "ReqNodeList", "ReqTRES"),
    *(
        "MinMemoryCPU",
        "MinMemoryTRES",
        "TresPerJob",
        "TresPerNode",
        "TresPerTask",
        "CpusPerTres",
        "MemPerTres",
        "Features",
    ),
)


@pytest.fixture(scope="module")
def gpus(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the nodes that have GPUs, managed."""
    cluster = shared_cluster
    cluster.start_nodes(GPU_NODES)
    try:
        with added_to_slurm_conf(cluster, sns_yaml=MANAGED):
            cluster.run(f"sns profile import {PROFILES}", "slurm")
            restart(cluster)
            yield cluster
    finally:
        restart(cluster)
        cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 60)
        cluster.stop_nodes(GPU_NODES)


@pytest.fixture(autouse=True)
def no_jobs(gpus: Cluster) -> Iterator[None]:
    yield
    gpus.run("scancel -u alice; scancel -u bob")
    gpus.wait_for("no jobs", lambda: not gpus.run("squeue -a -h").strip())


def submit(cluster: Cluster, *options: str, script: str = LONG) -> list[int]:
    return cluster.submit_all([(f"-p gpu -t 60 {each}", script) for each in options])


def wait_until_running(cluster: Cluster, *numbers: int) -> dict[int, tuple[str, ...]]:
    """The nodes of these jobs, all of which we have placed."""
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in numbers} == {"RUNNING"})
    jobs = cluster.jobs()
    assert all(jobs[each].record.nodes == jobs[each].nodes for each in numbers)
    return {each: jobs[each].nodes for each in numbers}


def shown(cluster: Cluster, number: int | str) -> dict[str, str]:
    fields = cluster.fields(number)
    return {name: fields.get(name, "").strip() for name in OWN}


def test_jobs_are_placed_where_gpus_of_their_type_are_free(gpus: Cluster) -> None:
    whole = wait_until_running(gpus, *submit(gpus, "-n1 --gres=gpu:a:4", "-n2 --gpus-per-task=a:2"))
    assert {node for (node,) in whole.values()} == {"g1", "g2"}
    others = wait_until_running(gpus, *submit(gpus, "-n1 --gpus-per-node=b:1 --mem-per-gpu=1000", "-n1 --gpus=2"))
    assert set(others.values()) == {("g3",)}, "cores are free elsewhere, GPUs are not"
    (late,) = submit(gpus, "-n1 --gpus=a:3 --cpus-per-gpu=2")
    gpus.wait_for_cycles(2)
    assert gpus.row(late)["demand"]["gpus"] == {"a": 3}
    gpus.run(f"scancel {min(whole)}")
    assert wait_until_running(gpus, late) == {late: whole[min(whole)]}
    assert gpus.fields(late)["NumCPUs"] == "6"


@pytest.mark.parametrize("asked", ["--gres=gpu:a:2", "--gpus-per-node=1", "--gpus=a:2", "--gres=gpu", "--gres=gpu:a"])
def test_gpus_are_merged_with_ways_and_restored_as_their_owner_wrote_them(gpus: Cluster, asked: str) -> None:
    (number,) = submit(gpus, f"-H -n16 --mem-per-cpu=1000 --sns-program=mg {asked}")
    before = shown(gpus, number)
    gpus.run(f"scontrol release {number}")
    assert wait_until_running(gpus, number) == {number: ("g1",)}
    placed = shown(gpus, number)
    assert placed["TresPerNode"].startswith(before["TresPerNode"])
    assert "gres/llc:" in placed["TresPerNode"]
    assert "gres/gpu=" in gpus.fields(number)["AllocTRES"]
    gpus.run(f"scontrol requeuehold {number}")
    gpus.wait_for("the placement is taken back", lambda: gpus.job(number).is_gated)
    after = shown(gpus, number)
    assert {name: (value, after[name]) for name, value in before.items() if value != after[name]} == {}


def test_a_job_with_gpus_of_each_task_is_restored_too(gpus: Cluster) -> None:
    (number,) = submit(gpus, "-H -n2 --gpus-per-task=a:1 --mem-per-gpu=1000 --cpus-per-gpu=2")
    before = shown(gpus, number)
    gpus.run(f"scontrol release {number}")
    wait_until_running(gpus, number)
    gpus.run(f"scontrol requeuehold {number}")
    gpus.wait_for("the placement is taken back", lambda: gpus.job(number).is_gated)
    assert shown(gpus, number) == before


def test_the_tasks_of_an_array_get_gpus(gpus: Cluster) -> None:
    (array,) = submit(gpus, "-n16 --mem-per-cpu=1000 --sns-program=mg --gres=gpu:a:1 --array=1-2", script="sleep 1")
    rows = f"squeue -a -h -r -t all -j {array} -O 'State:|,NodeList:|,admin_comment:|'"
    gpus.wait_for(
        "they have ended", lambda: {row.split("|")[0] for row in gpus.run(rows).splitlines()} == {"COMPLETED"}
    )
    for row in gpus.run(rows).splitlines():
        _, nodes, comment, _ = row.split("|")
        assert nodes == "g1"
        assert records.read(comment).ways > 0


def test_a_task_of_an_array_with_gpus_is_restored_and_placed_again(gpus: Cluster) -> None:
    (array,) = submit(gpus, "-H -n16 --mem-per-cpu=1000 --sns-program=mg --gres=gpu:a:1 --array=1-2")
    task = f"{array}_1"
    before = shown(gpus, task)
    state, comment = (f"squeue -a -h -r -j {task} -O '{field}:|'" for field in ("State", "admin_comment"))
    gpus.run(f"scontrol release {array}")
    gpus.wait_for("it runs", lambda: "RUNNING" in gpus.run(state))
    assert shown(gpus, task)["TresPerNode"].startswith(f"{before['TresPerNode']},gres/llc:")
    gpus.run(f"scontrol requeuehold {task}")
    gpus.wait_for("the placement is taken back", lambda: " n=" not in gpus.run(comment))
    assert shown(gpus, task) == before
    gpus.run(f"scancel {array}_2; scontrol release {task}")
    gpus.wait_for("it runs again", lambda: "RUNNING" in gpus.run(state))
    assert "gres/llc:" in shown(gpus, task)["TresPerNode"]


def test_no_placement_has_more_gpus_than_there_are(gpus: Cluster) -> None:
    numbers = submit(gpus, *["-n1 --gres=gpu:2", "-n1 --gpus=a:2", "-n1 --gpus-per-task=1"] * 6, script="sleep 1")
    gpus.wait_for_end(numbers)
    decided = gpus.decisions(numbers)
    assert all([each["action"] for each in told] == ["start"] for told in decided.values()), decided


REFUSED = (
    "--gres=gpu:99",
    "--gres=gpu:c:1",
    "--gres=gpu:1,gpu:a:1",
    "--gpus=99",
    "--gres=gpu:a:b:c:1",
    "--gres=gpu:x",
    "--gpus=-1",
)


def test_what_slurm_refuses_is_refused_in_slurms_words(gpus: Cluster) -> None:
    for asked in REFUSED:
        told = [
            gpus.try_run(f"sbatch -p gpu -n1 {comment} {asked} --wrap true", "alice")
            for comment in ("", "--comment=sns:off")
        ]
        assert (told[0].returncode, told[0].stderr) == (told[1].returncode, told[1].stderr), asked
        assert told[0].returncode != 0, asked


def test_our_count_is_slurms(gpus: Cluster) -> None:
    seen = list(tried(gpus, 8, seed=7))
    assert [each for each in seen if each.fits != each.starts] == []
    assert {each.starts for each in seen} == {True, False}
