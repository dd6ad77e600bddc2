"""The queues of the Max-Jobs paper's figures 3 and 4 on two real nodes of 4 cores and 32 GB, one heuristic at a time.

The scheduler is stopped while the jobs are submitted; one cycle then plans them all.
"""

from collections.abc import Iterator

import pytest
from heartbeat import by_hand

from cluster import Cluster

FIGURE_3 = ["-n1 --mem=16G"] * 2 + ["-n1 --mem=4G"] * 6
FIGURE_4 = ["-n1 --mem=8G"] * 3 + ["-n1 --mem=32G"]

#: Heuristic -> the node of each job as the paper's figures draw it ("": left waiting), A = s1, B = s2.
#: Figure 3(a): Best-Fit puts both large jobs on A and four small ones on B. 3(b), 9: Worse-Fit and Mix-Fit place all.
PLACES_3 = {
    "best-fit-memory": ["s1", "s1", "s2", "s2", "s2", "s2", "", ""],
    "best-fit-cores": ["s1", "s1", "s2", "s2", "s2", "s2", "", ""],
    "worse-fit-memory": ["s1", "s2", "s1", "s2", "s1", "s2", "s1", "s2"],
    "worse-fit-cores": ["s1", "s2", "s1", "s2", "s1", "s2", "s1", "s2"],
    "mix-fit": ["s1", "s2", "s1", "s1", "s2", "s2", "s1", "s2"],
}
#: Figure 4: Worse-Fit spreads the small jobs, and the large one finds no empty node; 4, 10: Best-Fit and Mix-Fit place
#: all.
PLACES_4 = {
    "best-fit-memory": ["s1", "s1", "s1", "s2"],
    "best-fit-cores": ["s1", "s1", "s1", "s2"],
    "worse-fit-memory": ["s1", "s2", "s1", ""],
    "worse-fit-cores": ["s1", "s2", "s1", ""],
    "mix-fit": ["s1", "s1", "s1", "s2"],
}
CASES = [
    pytest.param(queue, heuristic, places, id=f"{figure}-{heuristic}")
    for figure, queue, drawn in (("figure-3", FIGURE_3, PLACES_3), ("figure-4", FIGURE_4, PLACES_4))
    for heuristic, places in drawn.items()
]


@pytest.fixture(scope="module")
def idle_cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The idle cluster; all queues run on it, one after the other."""
    with by_hand(shared_cluster):
        yield shared_cluster


@pytest.mark.parametrize(("queue", "heuristic", "places"), CASES)
def test_one_cycle_places_the_papers_queue_as_the_paper_says(
    idle_cluster: Cluster, queue: list[str], heuristic: str, places: list[str]
) -> None:
    cluster = idle_cluster
    config = f"/tmp/sns-{heuristic}.yaml"
    cluster.run(f"sed 's/^matching:/matching:\\n  portfolio: [{heuristic}]/' /etc/slurm/sns.yaml > {config}")
    numbers = cluster.submit_all([(f"-p small {options}", "sleep 1") for options in queue])
    assert all(cluster.jobs()[number].is_gated for number in numbers)
    cluster.run(f"NUMBA_CACHE_DIR=/var/lib/sns/numba sns scheduler --cycles 1 --config {config}", "slurm")
    planned = cluster.jobs()
    assert ["".join(planned[number].pinned_to) for number in numbers] == places
    assert [planned[number].is_gated for number in numbers] == [not place for place in places]
    placed = {number: place for number, place in zip(numbers, places, strict=True) if place}
    ended = cluster.wait_for_end(placed)
    assert {number: "".join(job.nodes) for number, job in ended.items()} == placed
    cluster.run("scancel -u alice")
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip())
