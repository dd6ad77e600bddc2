"""Spread-n-Share on a real Slurm: programs run at the scale of their profiles, with ways and bandwidth as gres."""

import random
from collections import Counter

import evidence
import pytest

from cluster import Cluster

PROFILES = "/usr/src/slurm_sns/conf/profiles/spread-n-share.yaml"
PROGRAMS = ("mg", "cg", "lu", "ts", "bw", "bfs", "ep", "wc", "nw", "hc", "gan", "rnn")


@pytest.fixture(scope="module")
def with_profiles(shared_cluster: Cluster) -> None:
    """Restart the scheduler with the profiles of the twelve programs."""
    shared_cluster.run(f"sns profile import {PROFILES}", "slurm")
    shared_cluster.daemon("restart", "scheduler")
    shared_cluster.wait_for_scheduler()


@pytest.fixture
def profiled(with_profiles: None, cluster: Cluster) -> Cluster:  # noqa: ARG001 -- it is there
    """The cluster whose scheduler knows the twelve programs."""
    return cluster


def run_alone(cluster: Cluster, options: str) -> tuple[dict, Counter[str]]:
    """The recorded placement of a job, and how many of its tasks ran on each node."""
    number = cluster.submit(f"-o /home/alice/tasks.txt --mem-per-cpu=1G {options}", "srun hostname")
    ended = cluster.wait_for_end([number])[number]
    assert ended.state == "COMPLETED"
    start = cluster.starts([number])[number]
    assert set(ended.nodes) == set(start["nodes"])
    return start, Counter(cluster.run("cat tasks.txt", "alice").split())


@pytest.mark.parametrize(("processes", "limit", "tasks"), [
    (16, 1, [16]), (16, 2, [8, 8]), (16, 4, [4, 4, 4, 4]), (28, 1, [28]), (28, 2, [14, 14]), (28, 4, [7, 7, 7, 7]),
])  # fmt: skip
def test_a_scaling_program_runs_at_its_best_scale_when_nodes_are_free(
    profiled: Cluster, processes: int, limit: int, tasks: list[int]
) -> None:
    start, ran = run_alone(profiled, f"-n{processes} --sns-program=bw --sns-max-scale={limit}")
    assert start["scale"] == limit
    assert sorted(ran.values()) == tasks


def test_a_neutral_program_fills_idle_cores_at_scale_1(profiled: Cluster) -> None:
    # They need so much memory that each runs on a node of its own.
    busy = profiled.submit_all([("-n8 --mem=70G", "sleep 600")] + [("-n20 --mem=70G", "sleep 600")] * 3)
    profiled.wait_for("they run", lambda: all(profiled.job(each).state == "RUNNING" for each in busy))
    start, ran = run_alone(profiled, "-n16 --sns-program=ep")
    assert (start["scale"], list(ran.values())) == (1, [16])
    assert tuple(ran) == profiled.job(busy[0]).nodes, "the only node with 16 idle cores, beside the job there"


def test_a_compact_program_is_alone_on_its_node(profiled: Cluster) -> None:
    compact = profiled.submit("-n16 --mem-per-cpu=1G --sns-program=bfs", "sleep 600")
    profiled.wait_for("it runs", lambda: profiled.job(compact).state == "RUNNING")
    others = profiled.submit_all([("-n12 --mem-per-cpu=100", "sleep 2")] * 6 + [("-n1 --mem=1G -p plain", "sleep 2")])
    (node,) = profiled.job(compact).nodes
    ended = profiled.wait_for_end(others)
    assert all(node not in job.nodes for job in ended.values())
    assert profiled.job(compact).state == "RUNNING"
    assert profiled.starts([compact])[compact]["exclusive"]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ("-N1 -n16 --sns-program=mg", [16]),
        ("-n16 --ntasks-per-node=8 --sns-program=mg", [8, 8]),
        ("-n16 --distribution=cyclic --sns-program=mg", [16]),
        ("-n16 --sns-max-scale=1 --sns-program=mg", [16]),
        ("-n16 --sns-program=nobody-knows", [16]),
        ("-n16", [16]),
    ],
    ids=[
        "-N",
        "--ntasks-per-node",
        "--distribution",
        "a program that cannot leave its node",
        "unknown program",
        "no hint",
    ],
)
def test_a_geometry_that_the_owner_gives_is_kept_and_an_unknown_program_is_never_spread(
    profiled: Cluster, options: str, tasks: list[int]
) -> None:
    _, ran = run_alone(profiled, options)
    assert list(ran.values()) == tasks


def test_a_local_mpirun_stays_on_the_one_node_that_its_script_knows(profiled: Cluster) -> None:
    """For a launcher that starts its processes itself, on the node of the script, the owner says -N1."""
    launcher = "for rank in $(seq $SLURM_NTASKS); do hostname & done; wait"
    number = profiled.submit("-o /home/alice/local.txt -N1 -n16 --mem-per-cpu=1G --sns-program=mg", launcher)
    (node,) = profiled.wait_for_end([number])[number].nodes
    assert profiled.run("cat local.txt", "alice").split() == [node] * 16


def test_a_hundred_jobs_never_take_more_ways_or_bandwidth_than_a_node_has(profiled: Cluster) -> None:
    draw = random.Random(3)
    jobs = [
        (
            f"-t 5 -n16 --mem-per-cpu=1G --sns-program={draw.choice(PROGRAMS)}",
            "srun hostname > mix/$SLURM_JOB_ID; sleep 1",
        )
        for _ in range(100)
    ]
    for user in ("alice", "bob"):
        profiled.run("rm -rf mix; mkdir mix", user)
    numbers = profiled.submit_all(jobs[:50], "alice") + profiled.submit_all(jobs[50:], "bob")
    ended = profiled.wait_for_end(numbers, timeout_s=400)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    starts = profiled.starts(numbers)
    assert all(set(ended[number].nodes) == set(starts[number]["nodes"]) for number in numbers)
    ran_on: dict[int, Counter[str]] = {number: Counter() for number in numbers}
    for user in ("alice", "bob"):
        for line in profiled.run("cd mix; grep -H . *", user).splitlines():
            number, node = line.split(":")
            ran_on[int(number)][node] += 1
    for number, ran in ran_on.items():
        assert set(ran) == set(starts[number]["nodes"])
        assert sorted(ran.values()) == [16 // len(ran)] * len(ran), (number, ran)

    accounted = evidence.runs(profiled, numbers)
    assert len(accounted) == 100
    assert evidence.over_capacity(accounted) == []
    assert {"gres/llc", "gres/membw"} <= {name for run in accounted for name in run.allocated}


def test_explain_shows_the_programs_class_and_every_scale_with_its_figures(profiled: Cluster) -> None:
    number = profiled.submit("-n16 --mem-per-cpu=1G --sns-program=mg", "sleep 5")
    profiled.wait_for("it is placed", lambda: "placed on" in profiled.try_run(f"sns explain {number}").stdout)
    text = profiled.run(f"sns explain {number}", "alice")
    assert "Program mg is scaling (bound by bandwidth)" in text
    assert "8 nodes; 4 are large enough" in text
    considered = profiled.explain(number)["considered"]
    assert {each["name"] for each in considered["considered"]} == {"1", "2", "4", "8"}
    assert all(each["reason"] or each["figures"]["slowdown"] for each in considered["considered"])


def test_a_job_with_whole_nodes_that_slurm_does_not_start_gets_its_own_memory_back(profiled: Cluster) -> None:
    number = profiled.submit("-n16 --mem-per-cpu=1G --sns-program=bfs --requeue", "sleep 60")
    profiled.wait_for("it runs", lambda: profiled.job(number).state == "RUNNING")
    assert profiled.fields(number)["MinMemoryNode"] == "125G"
    profiled.run(f"scontrol requeue {number}")

    def has_its_own_back() -> bool:
        seen = profiled.fields(number)  # in one look: it is placed again a second later
        return seen["JobState"] == "PENDING" and seen.get("MinMemoryCPU") == "1G" and "TresPerNode" not in seen

    profiled.wait_for("it waits with its own memory and without gres", has_its_own_back)
    profiled.wait_for("it runs again", lambda: profiled.job(number).state == "RUNNING")
