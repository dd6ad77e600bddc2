"""What the nodes of each type are to have in resctrl, from sns.yaml: groups, their limits, mount options. Pure.

A node type is an entry of `nodes`. What only the machine knows is not in it: where the masks are, how many CLOSIDs
there are in all, what MB values mean. `sns check` compares the two (slurm/check/resctrl.py).
"""

from dataclasses import dataclass

from slurm_sns.closids import KEPT, closids_for_jobs
from slurm_sns.config import Config, NodeEntry
from slurm_sns.policies.profile import FEWEST_WAYS
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters

#: What `Groups` in node/resctrl/groups.py puts before our groups' names, and the names of node/group_writes.py.
PREFIX, SHARED, JOB = "sns_", "shared", "job"


@dataclass(frozen=True, slots=True)
class ResctrlNodeType:
    """An entry of `nodes`, as resctrl.yaml describes it; None where sns.yaml gives its jobs no such resource.

    `shared_ways` and `job_ways` are those of each cache domain, `bandwidth_gbps` is that of the node. `most_jobs` is
    how many jobs with profile could have a group of their own at once: with the CLOSIDs that sns.yaml gives, otherwise
    with any number of them. Pass-through jobs with one way or with bandwidth alone do not count in it: there could be
    one on each core, and no machine has so many CLOSIDs.
    """

    nodes: NodeEntry
    shared_ways: int | None
    job_ways: int | None
    bandwidth_gbps: int | None
    most_jobs: int

    @property
    def is_partitioned(self) -> bool:
        """Whether its nodes need resctrl."""
        return bool(self.nodes.gres)

    @property
    def closids(self) -> int:
        """One for the root group, one for the shared group, one for each of `most_jobs`."""
        return KEPT + self.most_jobs if self.is_partitioned else 0


def node_types(config: Config) -> list[ResctrlNodeType]:
    """The node types, in the order of sns.yaml."""
    shared_ways = config.parameters(SpreadingParameters).shared_ways
    return [_node_type(nodes, shared_ways) for nodes in config.nodes]


def _node_type(nodes: NodeEntry, shared_ways: int) -> ResctrlNodeType:
    shared = min(shared_ways, nodes.llc_ways)
    left = nodes.llc_ways - shared
    # A job with profile has a core at least, and FEWEST_WAYS where there are ways. A node without either has no groups.
    most = min(nodes.cores, left // FEWEST_WAYS) if nodes.llc_ways else nodes.cores
    if nodes.closids:
        most = min(most, closids_for_jobs(nodes.closids))
    return ResctrlNodeType(
        nodes,
        shared_ways=shared if nodes.llc_ways else None,
        job_ways=left if nodes.llc_ways else None,
        bandwidth_gbps=nodes.bandwidth_gbps or None,
        most_jobs=most,
    )
