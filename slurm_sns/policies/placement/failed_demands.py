"""Alternatives that found too few nodes in a cycle: larger ones need not be tried in it.

Free capacity only shrinks while a cycle runs. So an alternative fails if it asks for at least as much as one that has
failed, with the same allowed nodes. This is exact, and it makes a long queue of similar jobs cheap.
"""

from slurm_sns.model import Alternative, Resources

#: (nodes, demand) of an alternative that found too few nodes.
Failure = tuple[int, Resources]
Allowed = frozenset[str] | None


class FailedShapes:
    """The alternatives that have failed in this cycle, by their shape: allowed nodes, exclusive, nodes, demand."""

    def __init__(self) -> None:
        self._seen: set[tuple[Allowed, bool, int, Resources]] = set()
        self._failures: dict[tuple[Allowed, bool], list[Failure]] = {}

    def cover(self, alternative: Alternative, allowed: Allowed) -> bool:
        """Whether this alternative must fail because an equal or smaller one has failed."""
        shape = (allowed, alternative.exclusive, alternative.nodes, alternative.demand)
        if shape in self._seen:
            return True
        failures = self._failures.get(shape[:2])
        if failures is None:
            return False
        for nodes, demand in failures:
            if nodes <= alternative.nodes and demand.within(alternative.demand):
                self._seen.add(shape)
                return True
        return False

    def add(self, alternative: Alternative, allowed: Allowed) -> None:
        """Remember that this alternative found too few nodes, and forget failures that are at least as large."""
        nodes, demand = alternative.nodes, alternative.demand
        self._seen.add((allowed, alternative.exclusive, nodes, demand))
        failures = self._failures.setdefault((allowed, alternative.exclusive), [])
        failures[:] = [old for old in failures if not (nodes <= old[0] and demand.within(old[1]))]
        failures.append((nodes, demand))
