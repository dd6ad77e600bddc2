"""What the controller is told of a node: what the node can do, and what each run on it has."""

from collections.abc import Iterable

from slurm_sns.node.agent.needs import why_shared
from slurm_sns.node.agent.ports import AgentSettings
from slurm_sns.node.agent.runs_here import RunsHere
from slurm_sns.node.agent.tree import NodeTree
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.wire.values import JobThere, NodeFacts, NodeState


def facts_of(settings: AgentSettings, tree: NodeTree, counters: NodeCounters) -> NodeFacts:
    """What the node can do, as it was found at the last look."""
    partition = tree.partition
    caches = () if partition is None else partition.machine.last_level
    return NodeFacts(
        settings.node,
        settings.software,
        "observe" if settings.observes else "partition",
        min((cache.mask.bit_count() for cache in caches), default=0),
        0 if partition is None else partition.closids_for_jobs(),
        limits_bandwidth=partition is not None and partition.limits_bandwidth,
        measures_ipc=counters.measures_ipc,
        measures_bandwidth=counters.measures_bandwidth,
        why_unpartitioned=tree.why_not,
    )


def state_of(
    now_s: float, facts: NodeFacts, here: RunsHere, tree: NodeTree, *, sampled_ways: int, troubles: Iterable[str]
) -> NodeState:
    """The state of the node at this moment (Unix seconds).

    `sampled_ways` are those of the sampled run, 0 if none is sampled. `troubles` says what does not work; what is empty
    is no trouble.
    """
    jobs = []
    for run in here.runs:
        job_id = run.run.job_id
        ways = tree.has_ways(job_id)
        why = why_shared(run, ways, tree.why_without(job_id))
        is_sampled = run is here.sampled and sampled_ways > 0
        gbps = run.bandwidth_gbps if tree.limits_bandwidth(job_id) else 0
        jobs.append(JobThere(run.run, ways, gbps, why, is_sampled, run.is_found, awaits_task=run.claim is not None))
    return NodeState(now_s, facts, tuple(jobs), "; ".join(filter(None, troubles)))
