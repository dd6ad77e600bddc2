"""Slurm's limits of users, accounts and QOS hold for placed jobs as they hold for any other.

When SlurmUser changes a TRES of a job, slurmctld no longer checks limits on this TRES for the job. So a placement must
not change a TRES that is limited.
"""

import shlex
from collections.abc import Iterator

import pytest
from limits import ALICE, PHYSICS, limit, until_running

from cluster import PYTHON, Cluster


@pytest.fixture
def memory_limit(cluster: Cluster) -> Iterator[Cluster]:
    """A limit of 50 GiB for all jobs of alice's account together.

    The scheduler reads limits once a minute and at its start, so it is restarted.
    """
    with limit(cluster, PHYSICS, "GrpTRES", "mem", "51200"):
        cluster.daemon("restart", "scheduler")
        cluster.wait_for_scheduler()
        yield cluster
    cluster.daemon("restart", "scheduler")


def test_a_job_with_a_memory_limit_gets_no_whole_nodes(memory_limit: Cluster) -> None:
    cluster = memory_limit
    number = cluster.submit("-t 5 -n4 --mem=1G --sns-exclusive", "sleep 30")
    assert until_running(cluster, number)["MinMemoryNode"] == "1G"
    why = "left to Slurm: whole nodes change its memory, which is limited"
    cluster.wait_for("it is recorded", lambda: why in cluster.try_run(f"sns explain {number}").stdout)
    assert f"job {number}: {why}" in cluster.run("tail -n 20 /var/log/sns/scheduler.log")


def test_a_limit_of_nodes_holds_for_jobs_that_say_their_tasks_alone(cluster: Cluster) -> None:
    with limit(cluster, ALICE, "GrpTRES", "node", "2"):
        first, second = cluster.submit_all([("-t 5 -n16 --mem-per-cpu=1G", "sleep 30")] * 2)
        wide = cluster.submit("-t 5 -n40 --mem-per-cpu=1G", "sleep 5")
        until_running(cluster, first)
        until_running(cluster, second)
        ended: set[str] = set()

        def is_refused() -> bool:
            ended.add(cluster.job(wide).state)
            return "AssocGrpNodeLimit" in cluster.try_run(f"sns explain {wide}").stdout

        cluster.wait_for("Slurm has refused it", is_refused)
        assert ended == {"PENDING"}
        cluster.run(f"scancel {first} {second}")
        assert len(cluster.wait_for_end([wide])[wide].nodes) == 2


#: Places a job on one node, takes the placement back, and places the job on two nodes.
TWICE = """
import sys, time
from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind
from slurm_sns.slurm.executor import SlurmExecutor

job, gate_s = int(sys.argv[1]), int(time.time()) + 3600
orders = (
    GateOrder(job, OrderKind.PLACE, nodes=("c1",), tasks_per_node=16, tasks=16, gres=(3, 20)),
    GateOrder(job, OrderKind.REGATE, begin_s=gate_s, nodes=(), tasks_per_node=0, tasks=16, gres=(0, 0)),
    GateOrder(job, OrderKind.PLACE, nodes=("c1", "c2"), tasks_per_node=8, tasks=16),
)
for order in orders:
    assert not any(answer.refused or answer.unreachable for answer in SlurmExecutor().execute((order,))), order
"""


def test_a_job_that_is_placed_again_on_more_nodes_keeps_all_its_tasks(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = cluster.submit("-t 5 -n16 --mem-per-cpu=1G --begin=now+1hour", "true")
    cluster.run(f"{PYTHON} -c {shlex.quote(TWICE)} {number}", "slurm")
    asked = cluster.fields(number)
    assert (asked["NumTasks"], asked["NumCPUs"], asked["ReqNodeList"]) == ("16", "16", "c1,c2")
    assert (asked["MinCPUsNode"], asked.get("TresPerNode")) == ("8", None), "nothing is left of the first placement"
