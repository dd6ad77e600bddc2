"""Which nodes a job asks for: --constraint, -x and --exclusive, placed as Slurm itself would allow it."""

import random
import re
from collections.abc import Sequence

import pytest
from random_constraints import constraint

from cluster import Cluster, unfold
from slurm_sns import constraints

#: So many random constraints are compared with Slurm's own answers.
CONSTRAINTS = 200
WHY_NOT = "Requested node configuration is not available"


def features(cluster: Cluster, partition: str) -> dict[str, set[str]]:
    """The features of each node of a partition."""
    lines = cluster.run(f"sinfo -h -N -p {partition} -o '%N %f'").splitlines()
    return {node: set(shown.split(",")) for node, shown in (line.split(maxsplit=1) for line in lines)}


def admitted(text: str, nodes: dict[str, set[str]]) -> set[str]:
    """The nodes that a constraint admits, by our reading."""
    constraint = constraints.read(text)
    return {name for name, features in nodes.items() if constraints.admits(constraint, features)}


def slurms_answers(cluster: Cluster, asked: Sequence[tuple[str, int]]) -> list[str]:
    """What `sbatch --test-only` says to each constraint with each number of nodes."""
    cluster.write("/tmp/asked", "".join(f"{count} {text}\n" for text, count in asked), "alice")
    test = 'sbatch --test-only -p plain -t1 -N $count -C "$text" --wrap true 2>&1 < /dev/null | tail -1'
    said = cluster.run(f"while read -r count text; do {test}; done < /tmp/asked", "alice", timeout_s=300)
    return said.splitlines()


def test_a_constraint_admits_the_nodes_that_slurm_takes(shared_cluster: Cluster) -> None:
    """Slurm places a job on all nodes that we say are admitted, and has none for a job of one more."""
    draw = random.Random(39)
    nodes = features(shared_cluster, "plain")
    texts = [constraint(draw) for _ in range(CONSTRAINTS)]
    ours = [admitted(text, nodes) for text in texts]
    asked = [(text, max(len(found), 1)) for text, found in zip(texts, ours, strict=True)]
    one_more = [(text, len(found) + 1) for text, found in zip(texts, ours, strict=True) if 0 < len(found) < len(nodes)]
    for text, found, said in zip(texts, ours, slurms_answers(shared_cluster, asked), strict=True):
        on = re.search(r"on nodes (\S+) in", said)
        assert (set(unfold(on[1])) if on else set()) == found, (text, said)
        assert on or WHY_NOT in said, (text, said)
    assert len(one_more) > CONSTRAINTS / 2
    for (text, _), said in zip(one_more, slurms_answers(shared_cluster, one_more), strict=True):
        assert WHY_NOT in said, (text, said)


@pytest.mark.parametrize("text", ["nosuch", "ib&&opa", "(ib", "ib|nosuch"])
def test_a_wrong_constraint_is_slurms_own_error(cluster: Cluster, text: str) -> None:
    managed, plain = (
        cluster.try_run(f"sbatch -p {name} -C '{text}' --wrap true", "alice") for name in ("main", "plain")
    )
    assert (managed.stderr, managed.returncode) == (plain.stderr, plain.returncode)
    assert managed.returncode != 0


def test_jobs_run_where_they_ask_to_run(cluster: Cluster) -> None:
    """Each is placed by us, on nodes that it admits, beside others where it does not exclude them."""
    asked = {
        "-n4 -C ib": {"c1", "c2"},
        "-n4 -C 'opa&avx512'": {"c3"},
        "-n4 -C '(ib|big)&avx2'": {"c2", "c4"},
        "-N2 -n8 -C avx512": {"c1", "c3"},
        "-n4 -x c1,c2,c3": {"c4"},
        "-n4 -C ib -x c1": {"c2"},
        "-p small -n1 -C ssd": {"s1"},
        "-n8 --sns-alpha=0.9 -C opa": {"c3", "c4"},
    }
    numbers = cluster.submit_all([(options, "true") for options in asked])
    ended = cluster.wait_for_end(numbers)
    starts = cluster.starts(numbers)
    for number, (options, nodes) in zip(numbers, asked.items(), strict=True):
        assert ended[number].state == "COMPLETED", options
        assert set(starts[number]["nodes"]) == set(ended[number].nodes) <= nodes, options


def test_a_job_waits_for_the_nodes_that_it_asks_for_and_sees_features_change(cluster: Cluster) -> None:
    full = cluster.submit("-N1 -n28 -C 'opa&avx2' --mem=1G", "sleep 600", "bob")
    cluster.wait_for("c4 is full", lambda: cluster.job(full).nodes == ("c4",))
    waits = cluster.submit("-n2 -C big", "true")
    cluster.wait_for("it waits", lambda: "cores" in cluster.row(waits).get("reason", ""))
    try:
        cluster.run("scontrol update NodeName=c3 AvailableFeatures=opa,avx512,big ActiveFeatures=opa,avx512,big")
        assert cluster.wait_for_end([waits])[waits].nodes == ("c3",)
        assert cluster.starts([waits])[waits]["nodes"] == ["c3"]
    finally:
        cluster.run("scontrol update NodeName=c3 AvailableFeatures=opa,avx512 ActiveFeatures=opa,avx512")
        cluster.run(f"scancel {full}")


def test_exclusive_jobs_have_their_nodes_alone(cluster: Cluster) -> None:
    """An exclusive job gets all cores and the memory that it asks for, as without us, and nobody beside it."""
    beside = cluster.submit("-n2 -x c2,c3,c4", "sleep 600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(beside).nodes == ("c1",))
    plain = cluster.submit("-p plain -n1 --exclusive", "sleep 600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(plain).state == "RUNNING")
    alone = cluster.submit_all([("-n1 --exclusive", "sleep 600"), ("-N1 -n2 --exclusive --mem=2G", "sleep 600")])
    cluster.wait_for("they run", lambda: all(cluster.job(each).state == "RUNNING" for each in alone))
    starts = cluster.starts(alone)
    where = [cluster.job(each).nodes for each in alone]
    assert [tuple(starts[each]["nodes"]) for each in alone] == where
    assert len({*where, ("c1",), cluster.job(plain).nodes}) == 4
    ours, slurms = (cluster.fields(each) for each in (alone[0], plain))
    same = ("NumCPUs", "MinMemoryCPU", "OverSubscribe", "AllocTRES", "NumNodes")
    assert {name: ours.get(name) for name in same} == {name: slurms.get(name) for name in same}
    assert cluster.fields(alone[1])["MinMemoryNode"] == "2G"
    late = cluster.submit("-n2 -x c1", "true")
    cluster.wait_for("it waits", lambda: "cores" in cluster.row(late).get("reason", ""))
    cluster.run(f"scancel {alone[0]}")
    assert cluster.wait_for_end([late])[late].nodes == where[0]
