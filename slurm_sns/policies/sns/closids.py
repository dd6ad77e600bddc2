"""CLOSIDs as a resource of a node: how many more jobs with ways of their own it takes.

The kernel gives each resctrl group a CLOSID, and a machine has few (4 to 16, half as many with CDP, where code and data
have one each; `num_closids` already says so). One belongs to the root group, one to the group that jobs without ways of
their own share, and each group that somebody else has made takes another one. The rest is for jobs: one each, however
many cores or cache domains the job uses.

Every profiled job demands 2 ways or more, so a cache with 18 ways for jobs has no more than 9 of them. CLOSIDs are the
tighter limit where there are few: with CDP, or with a bandwidth controller that has 8 where the cache has 16.

A scheduler that counts them does not send a node more jobs with ways than it can separate. One that does not count them
loses nothing but the guarantee: such a job runs in the shared part, and the node says so (way_layout.py).
"""

from collections.abc import Iterable

from slurm_sns.model import Resources

#: The root group and the group of the jobs that share the remaining ways.
KEPT = 2


def closids_for_jobs(closids: int, foreign_groups: int = 0) -> int:
    """How many jobs of a node can have a CLOSID; `closids` is the smallest `num_closids` of its resources.

    `foreign_groups` are groups in the node's resctrl tree that are not ours.
    """
    return max(0, closids - KEPT - foreign_groups)


def needs_closid(demand: Resources, *, caps_bandwidth: bool = False) -> bool:
    """Whether a job with this demand on the node needs a CLOSID: it owns ways, or its bandwidth is capped there."""
    return demand.ways > 0 or (caps_bandwidth and demand.bandwidth_gbps > 0)


def closids_free(for_jobs: int, demands: Iterable[Resources], *, caps_bandwidth: bool = False) -> int:
    """How many more jobs with ways the node takes; `demands` are those of the jobs that are there, or placed there.

    The result is 0 where more jobs are there than have a CLOSID.
    """
    return max(0, for_jobs - sum(needs_closid(each, caps_bandwidth=caps_bandwidth) for each in demands))
