"""CLOSIDs as a resource of a node: how many jobs with ways of their own it takes.

The kernel gives each resctrl group a CLOSID, and a machine has few (4 to 16, half as many with CDP, where code and data
have one each; `num_closids` already says so). One belongs to the root group, one to the group that jobs without ways of
their own share, and each group that somebody else has made takes another one. The rest is for jobs: one each, however
many cores or cache domains the job uses.

Every profiled job demands 2 ways or more, so a cache with 18 ways for jobs has no more than 9 of them. CLOSIDs are the
tighter limit where there are few: with CDP, or with a bandwidth controller that has 8 where the cache has 16.

So CLOSIDs are counted where sns.yaml, or the file of a simulated cluster's nodes, says how many some node has. There a
job that demands ways on a node demands one of its CLOSIDs, too (`with_closid`), and no policy plans more jobs with ways
on a node than it has CLOSIDs for. No heuristic looks at them when it scores nodes. Slurm does not know CLOSIDs: which
are in use follows from the ways of the jobs that are there (scheduler/snapshot/free_nodes.py). Where no node's
CLOSIDs are given, every amount of them is 0 and they decide nothing.

A job that Slurm starts beyond the limit loses nothing but the guarantee: it runs in the shared part, and the node says
so (node/ways/layout.py). That can happen, because Slurm starts pass-through jobs. A job that demands bandwidth and no
ways is not counted, although a node that caps bandwidth makes a group for it.
"""

from collections.abc import Iterable

from slurm_sns.model import Resources

#: The root group and the group of the jobs that share the remaining ways.
KEPT = 2
#: The fewest CLOSIDs of a node that gives jobs ways of their own.
FEWEST = KEPT + 1


def closids_for_jobs(closids: int, foreign_groups: int = 0) -> int:
    """How many jobs of a node can have a CLOSID; `closids` is the smallest `num_closids` of its resources.

    `foreign_groups` are groups in the node's resctrl tree that are not ours.
    """
    return max(0, closids - KEPT - foreign_groups)


def counted(ways: int, closids: int) -> int:
    """The capacity of a node in a cluster that counts CLOSIDs: at most so many jobs with ways at a time.

    `ways` are the node's cache ways; a node without any has no jobs with ways. `closids` is 0 where the number is not
    known: such a node has as many CLOSIDs as ways, which limits nothing, because each of these jobs demands a way.
    """
    if not ways:
        return 0
    return closids_for_jobs(closids) if closids else ways


def are_counted(capacities: Iterable[Resources]) -> bool:
    """Whether CLOSIDs are counted on nodes with these capacities."""
    return any(capacity.closids for capacity in capacities)


def with_closid(demand: Resources, *, is_counted: bool) -> Resources:
    """The demand of a job on a node, with the CLOSID that it needs there if it demands ways and CLOSIDs are counted."""
    return demand._replace(closids=1) if is_counted and demand.ways > 0 else demand
