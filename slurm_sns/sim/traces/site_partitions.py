"""Where jobs of accounting may run: the nodes of their partitions that have the features of their constraints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from slurm_sns.constraints import admits, read
from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.slurm_conf import SiteNode


class Nowhere(Exception):
    """A job has no nodes here; the text is the reason for which it is left out."""


@dataclass(frozen=True)
class SitePartitions:
    """The nodes of a site with their partitions and features; without nodes every job may run everywhere."""

    nodes: Sequence[SiteNode] = ()

    def allowed(self, partitions: str, constraint: str) -> tuple[frozenset[str] | None, int]:
        """The names of the nodes that a job may use, None for all, and how many CPUs Slurm counts for a core of them.

        Where nodes have no partitions, or no features, those of jobs are ignored. Of nodes that differ in the CPUs of a
        core the fewest count, so that no job is taken for smaller than it is.

        Raises:
            Nowhere: there are none.
        """
        found = [node for node in self.nodes if not self._has_partitions or node.partitions & {*partitions.split(",")}]
        if not partitions:
            found = list(self.nodes)
        if self.nodes and not found:
            raise Nowhere("partition of no node here")
        if constraint and self._has_features:
            try:
                clauses = read(constraint)
            except BadInput:
                raise Nowhere("constraint with counts or brackets") from None
            found = [node for node in found if admits(clauses, node.features)]
            if not found:
                raise Nowhere("constraint that no node here meets")
        cpus_per_core = min((node.cpus_per_core for node in found), default=1)
        return None if len(found) == len(self.nodes) else frozenset(node.name for node in found), cpus_per_core

    @cached_property
    def _has_partitions(self) -> bool:
        return any(node.partitions for node in self.nodes)

    @cached_property
    def _has_features(self) -> bool:
        return any(node.features for node in self.nodes)


#: For nodes of which nothing but their size is known.
EVERYWHERE = SitePartitions()
