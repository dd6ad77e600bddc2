"""What the site's own Slurm says is kept: the order of its queue, the weights of its nodes, its network."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from evidence import FreedNodes

from cluster import Cluster, Seen

ACCOUNTS = tuple(f"q{number}" for number in range(1, 7))
ASSOCIATIONS = tuple(product(ACCOUNTS, ("alice", "bob")))
#: Jobs of each kind, gated and not.
JOBS = 200
BY_PRIORITY = "/tmp/sns-by-priority.yaml"


@pytest.fixture(scope="module", autouse=True)
def use_begins(running_cluster: Cluster) -> Iterator[None]:
    """Twelve associations, each with its own share, use the cluster: it takes Slurm a minute to count that."""
    cluster, add = running_cluster, "sacctmgr -i add"
    made = [f"{add} account {name} fairshare={at}" for at, name in enumerate(ACCOUNTS, 1)]
    made += [f"{add} user {user} account={name} fairshare={1 + 2 * (user == 'bob')}" for name, user in ASSOCIATIONS]
    cluster.run("; ".join(f"{command} > /dev/null" for command in made))
    try:
        numbers: list[int] = []
        for user in ("alice", "bob"):
            own = [account for account, owner in ASSOCIATIONS if owner == user]
            jobs = [(f"-p plain -A {name} -n{1 + at}", "sleep 3") for at, name in enumerate(own)]
            numbers += cluster.submit_all(jobs, user)
        cluster.wait_for_end(numbers)
        yield
    finally:
        cluster.run(f"sacctmgr -i delete account {','.join(ACCOUNTS)} > /dev/null; rm -f {BY_PRIORITY}")


@pytest.fixture
def with_usage(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster when their use counts, with all its nodes taken."""
    try:
        taken = cluster.submit("-p plain -N6 --exclusive", "sleep 600", "bob")
        cluster.wait_for("it has all nodes", lambda: cluster.job(taken).state == "RUNNING")
        usage = f"sshare -hP -a -A {','.join(ACCOUNTS)} -o user,fairshare | grep -v '^|' | grep -vc '|0.000000$'"
        cluster.wait_for("it counts", lambda: cluster.try_run(usage).stdout.strip() == str(len(ASSOCIATIONS)), 90, 1)
        yield cluster
    finally:
        cluster.run("scancel -u alice; scancel -u bob")
        cluster.wait_for("no jobs", lambda: not cluster.run("squeue -h").strip())
        cluster.daemon("restart")
        cluster.wait_for_scheduler()


def test_a_heavier_node_is_taken_last(cluster: Cluster) -> None:
    """Best fit would take the fullest node first, and c1 on a tie."""
    cluster.run("scontrol update NodeName=c1,c2 Weight=50")
    try:
        filler = cluster.submit("-n4 -w c1 -p plain", "sleep 600", "bob")
        cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
        jobs = cluster.submit_all([("-N1 -n28 --mem-per-cpu=1G", "sleep 600")] * 2 + [("-n1", "sleep 600")])
        cluster.wait_for("they run", lambda: all(cluster.job(each).state == "RUNNING" for each in jobs))
        assert {cluster.job(each).nodes for each in jobs[:2]} == {("c3",), ("c4",)}
        assert cluster.job(jobs[2]).nodes in (("c1",), ("c2",))
    finally:
        cluster.run("scontrol update NodeName=c1,c2 Weight=1")


TOPOLOGY = """\
- topology: two-switches
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: 'left,right,small'}
      - {switch: left, nodes: 'c[1-2]'}
      - {switch: right, nodes: 'c[3-4]'}
      - {switch: small, nodes: 's[1-2]'}
"""
SIDES = (frozenset({"c1", "c2"}), frozenset({"c3", "c4"}))


@pytest.fixture
def with_switches(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a topology of two switches for its large nodes."""
    cluster.write("/etc/slurm/topology.yaml", TOPOLOGY)
    change_topology(cluster, "SwitchName=left")
    try:
        yield cluster
    finally:
        cluster.run("scancel -u alice; scancel -u bob; rm -f /etc/slurm/topology.yaml")
        change_topology(cluster, "")


def change_topology(cluster: Cluster, shown: str) -> None:
    cluster.run("scontrol reconfigure")

    def is_so() -> bool:
        said = cluster.try_run("scontrol show topology; cluster-health ctl && echo ready").stdout
        return "ready" in said and (shown in said if shown else "SwitchName" not in said)

    cluster.wait_for(f"the topology shows {shown or 'no switch'}", is_so)
    cluster.wait_for_scheduler()


def needlessly_across(
    jobs: list[Seen], placed_s: dict[int, float], freed_s: dict[int, float], slots: int = 4
) -> tuple[int, int]:
    """How many jobs lie across both switches, and how many of them while one switch had surely room.

    In the way of a job was what was placed before it, or in the same cycle, whose order is the policy's, and had not
    left its nodes a second before: a node on which a job is completing takes no other.
    """
    across = needless = 0
    for job in jobs:
        if any(set(job.nodes) <= side for side in SIDES):
            continue
        across += 1
        there = [each for each in jobs if placed_s[each.id] <= placed_s[job.id] <= freed_s[each.id] + 1]
        taken = Counter(node for each in there if each is not job for node in each.nodes)
        needless += any(all(taken[node] < slots for node in side) for side in SIDES)
    return across, needless


def test_what_lies_across_needlessly_is_seen() -> None:
    """The check itself: an empty cluster, one side taken, both sides half taken, and a side that became free."""
    seen = {"user": "alice", "state": "COMPLETED", "reason": "", "priority": 1, "pinned_to": (), "submit_s": 0}

    def job(number: int, nodes: str, start_s: float, end_s: float) -> Seen:
        return Seen(id=number, nodes=tuple(nodes.split()), start_s=start_s, end_s=end_s, cpus=28, **seen)

    def counted(*jobs: Seen) -> tuple[int, int]:
        starts_s, ends_s = ({each.id: getattr(each, name) for each in jobs} for name in ("start_s", "end_s"))
        return needlessly_across(list(jobs), starts_s, ends_s, slots=1)

    crosses = job(9, "c1 c3", 10, 11)
    assert counted(crosses) == (1, 1)
    assert counted(job(1, "c2", 9, 20), crosses) == (1, 1)
    assert counted(job(1, "c2", 9, 20), job(2, "c4", 10, 20), crosses) == (1, 0)
    assert counted(job(1, "c2", 1, 8), job(2, "c4", 10, 20), crosses) == (1, 1)
    assert counted(job(1, "c2", 1, 9), job(2, "c4", 10, 20), crosses) == (1, 0)
    assert counted(job(1, "c1 c2", 9, 20)) == (0, 0)


def test_no_job_lies_across_switches_when_it_need_not(with_switches: Cluster, record_property) -> None:
    """100 jobs of a quarter of one or two nodes, for a second: placed by us, and by Slurm alone."""
    cluster, counts = with_switches, {}
    for name, partition in (("ours", "main"), ("Slurm's", "plain -x s1,s2")):
        draw = Random(17)
        shapes = [draw.choice(("-N2 -n14 --ntasks-per-node=7", "-N1 -n7")) for _ in range(100)]
        jobs = [
            (f"-p {partition} -t1 --mem-per-cpu=100 {shape}", f"sleep {draw.choice((0.5, 1.5))}") for shape in shapes
        ]
        freed = FreedNodes(cluster)
        ended = cluster.wait_for_end(cluster.submit_all(jobs), 180)
        cluster.wait_for("their nodes are free", lambda: not cluster.run("squeue -h").strip())
        freed_s = freed.of_jobs()
        assert [job.state for job in ended.values()] == ["COMPLETED"] * 100
        placed_s = {number: job.start_s for number, job in ended.items()}
        if name == "ours":
            placed_s = {number: start["at_s"] for number, start in cluster.starts(ended).items()}
        counts[name] = needlessly_across(list(ended.values()), placed_s, freed_s)
        record_property(name, counts[name])
    assert counts["ours"][1] == 0, counts


def test_a_job_across_switches_waits_where_they_are_not_connected(with_switches: Cluster) -> None:
    """never_across: the top of the tree joins them on paper only. A job that fits on neither side is Slurm's."""
    cluster, config = with_switches, "/tmp/sns-two-fabrics.yaml"
    cluster.run(f"sed 's/^scheduler:/scheduler:\\n  never_across: [top]/' /etc/slurm/sns.yaml > {config}")
    cluster.daemon("restart", config=config)
    cluster.wait_for_scheduler()
    try:
        half = cluster.submit_all([("-n28 --mem-per-cpu=100 -N1 -C avx2", "sleep 600")] * 2)  # on c2 and c4
        cluster.wait_for("they run", lambda: all(cluster.job(each).state == "RUNNING" for each in half))
        waits, larger = cluster.submit_all([("-N2 -n2", "true"), ("-N3 -n3", "true")])
        why = "no nodes that are connected"
        cluster.wait_for(
            "the larger one is Slurm's", lambda: why in (cluster.try_explain(larger).get("pass_through") or "")
        )
        assert cluster.job(waits).is_gated
        cluster.run(f"scancel {half[0]}")
        side = next(each for each in SIDES if set(cluster.job(half[1]).nodes).isdisjoint(each))
        assert set(cluster.wait_for_end([waits])[waits].nodes) == side
    finally:
        cluster.run("scancel -u alice")
        cluster.daemon("restart")
        cluster.wait_for_scheduler()


def slurms_order(jobs: list[Seen]) -> list[int]:
    """As slurmctld sorts them (sort_job_queue2): all are of one partition tier."""
    return [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.submit_s, job.id))]


def test_the_queue_has_the_order_that_slurm_would_give_it(with_usage: Cluster) -> None:
    cluster, draw = with_usage, Random(7)
    cluster.run(f"sed 's/queue_order: .*/queue_order: slurm/' /etc/slurm/sns.yaml > {BY_PRIORITY}")
    cluster.daemon("restart", config=BY_PRIORITY)
    cluster.wait_for_scheduler()
    wanted = [(*draw.choice(ASSOCIATIONS), draw.choice((0, 0, 0, 5, 100))) for _ in range(JOBS)]
    twins: dict[int, int] = {}
    for user in ("alice", "bob"):
        options = [f"-n1 -A {account} --nice={nice}" for account, owner, nice in wanted if owner == user]
        numbers = cluster.submit_all(
            [(f"-p {part} {each}", "true") for each in options for part in ("main", "plain")], user
        )
        twins |= dict(zip(numbers[::2], numbers[1::2], strict=True))
    assert len(twins) == JOBS

    def agree() -> bool:
        seen = cluster.jobs()
        ungated = slurms_order([seen[number] for number in twins.values()])
        planned = [row["job_id"] for row in cluster.queue() if row["job_id"] in twins]
        return [twins[number] for number in planned] == ungated

    cluster.wait_for("the order is that of the same jobs without a gate", agree, 30, 1)
    seen = cluster.jobs()
    assert len({seen[number].priority for number in twins}) > len(ASSOCIATIONS)
    number = next(iter(twins))
    said = cluster.run(f"sns explain {number} --config {BY_PRIORITY}")
    assert f"ordered by Slurm's priorities (queue_order: slurm); priority {cluster.job(number).priority}: " in said
    assert "fair-share " in said
