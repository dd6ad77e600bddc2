"""Sets of nodes over several looks."""

from live import node

from slurm_sns.scheduler.snapshot.node_sets import NodeSets


def test_equal_sets_of_two_looks_are_the_very_same_object() -> None:
    """Policies keep what they worked out for an object: with new ones in each cycle they would keep more and more."""

    def look() -> frozenset[str]:
        sets = NodeSets([node("c1"), node("c2"), node("s1")])
        return sets.names(sets.of_partitions(["main"]))

    first, again = look(), look()
    assert first == {"c1", "c2"}
    assert first is again
