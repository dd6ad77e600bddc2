"""A partition whose jobs share cores: what Slurm does there by itself, on two nodes of four cores with FORCE:2."""

import json
from collections.abc import Iterator

import pytest

from cluster import SHARING_NODES, Cluster

#: sed commands that let slurm_sns manage the partition.
MANAGED = (
    "s/^partitions: .*/partitions: [main, small, shared]/; "
    '/^nodes:/a\\  - {names: "f[1-2]", partitions: [shared], cores: 4, memory_mb: 32768}\n'
    "$a sharing: {partitions: [shared]}"
)
#: All cores of a node.
WHOLE = "-p shared --comment sns:off -t10 -n4 -N1"


@pytest.fixture(scope="module")
def sharing(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the nodes whose jobs share cores."""
    cluster = shared_cluster
    cluster.start_nodes(SHARING_NODES, agents=True)
    yield cluster
    cluster.run("scancel -u alice")
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 60)
    cluster.stop_nodes(SHARING_NODES)


def states(cluster: Cluster, numbers: list[int]) -> list[str]:
    return [cluster.job(each).state for each in numbers]


def test_slurm_runs_two_jobs_on_a_core_and_no_third(sharing: Cluster) -> None:
    cluster = sharing
    numbers = cluster.submit_all([(f"{WHOLE} -w f1 --mem=4G", "sleep 600")] * 3)
    cluster.wait_for("two of them run", lambda: states(cluster, numbers).count("RUNNING") == 2)
    cluster.wait_for("Slurm looks at the third", lambda: cluster.job(numbers[2]).reason not in ("None", ""))
    assert states(cluster, numbers) == ["RUNNING", "RUNNING", "PENDING"]
    shown = cluster.run("scontrol show node -o f1")
    assert "CPUAlloc=4 " in shown, "the cores of both jobs are counted once"
    assert f"AllocMem={2 * 4096} " in shown, "their memory is counted twice"
    cluster.run(f"scancel {' '.join(map(str, numbers))}")


def test_slurm_gives_no_memory_twice(sharing: Cluster) -> None:
    cluster = sharing
    numbers = cluster.submit_all([(f"{WHOLE} -w f2 --mem=20G", "sleep 600")] * 2)
    cluster.wait_for("one of them runs", lambda: "RUNNING" in states(cluster, numbers))
    cluster.wait_for("Slurm looks at the other", lambda: cluster.job(numbers[1]).reason not in ("None", ""))
    assert states(cluster, numbers) == ["RUNNING", "PENDING"]
    cluster.run(f"scancel {' '.join(map(str, numbers))}")


def test_a_job_may_run_on_all_cores_of_its_node_and_an_agent_is_there(sharing: Cluster) -> None:
    cluster = sharing
    script = "taskset -cp $$ | sed 's/.*: //' >> /tmp/mask; sleep 600"
    numbers = cluster.submit_all([("-p shared --comment sns:off -t10 -n1 -w f1", script)] * 2)
    masks = "cat /tmp/mask 2> /dev/null | wc -l"
    cluster.wait_for("both run", lambda: cluster.run(masks, node="f1").strip() == "2")
    every = cluster.run("taskset -cp 1 | sed 's/.*: //'", node="f1").strip()
    assert cluster.run("cat /tmp/mask", node="f1").split() == [every, every]
    cluster.run(f"scancel {' '.join(map(str, numbers))}")
    for name in SHARING_NODES:
        cluster.run("sns-daemon status agent", node=name)


def test_sns_check_finds_all_that_it_needs_and_what_is_wrong(sharing: Cluster) -> None:
    cluster = sharing
    cluster.run(f"sed '{MANAGED}' /etc/slurm/sns.yaml > /tmp/sns-sharing.yaml")

    def told() -> list[dict]:
        found = json.loads(cluster.try_run("sns check --json --config /tmp/sns-sharing.yaml").stdout)
        return [each for each in found if "share" in each["what"]]

    right = told()
    assert len(right) > 10
    assert [each for each in right if not each["ok"] or each.get("warning")] == []
    cluster.run("scontrol update PartitionName=shared OverSubscribe=FORCE:3")
    (wrong,) = [each for each in told() if not each["ok"]]
    cluster.run("scontrol update PartitionName=shared OverSubscribe=FORCE:2")
    assert (wrong["found"], wrong["wanted"]) == ("OverSubscribe=FORCE:3", "OverSubscribe=FORCE:2")
