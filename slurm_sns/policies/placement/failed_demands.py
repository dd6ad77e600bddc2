"""What has not fitted once in a cycle need not be tried again.

Free capacity only shrinks while a cycle runs, so a job that asks for at least as much, of the same nodes, as one that
has failed fails too. This is exact, and it makes a long queue of similar jobs cheap.
"""

from slurm_sns.model import Alternative, Resources

#: (nodes, demand) of an alternative that found too few nodes.
Failure = tuple[int, Resources]
Allowed = frozenset[str] | None


class FailedShapes:
    """The shapes that have failed in this cycle."""

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
        """Remember that this alternative found too few nodes; larger ones that it covers are forgotten."""
        nodes, demand = alternative.nodes, alternative.demand
        self._seen.add((allowed, alternative.exclusive, nodes, demand))
        failures = self._failures.setdefault((allowed, alternative.exclusive), [])
        failures[:] = [old for old in failures if not (nodes <= old[0] and demand.within(old[1]))]
        failures.append((nodes, demand))
