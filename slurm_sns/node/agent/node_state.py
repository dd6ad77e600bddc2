"""What a node says of itself, to the controller and to `sns agent --show`: what it can do, and what each run has."""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_sns.node.agent.in_force import InForce, why_shared
from slurm_sns.node.agent.ports import AgentPorts, AgentSettings
from slurm_sns.node.agent.runs_here import RunsHere
from slurm_sns.node.agent.sampling import points
from slurm_sns.node.agent.tree import NodeTree
from slurm_sns.node.counters.node_counters import NodeCounters
from slurm_sns.wire.values import JobThere, NodeFacts, NodeState


def facts_of(settings: AgentSettings, ports: AgentPorts, counters: NodeCounters) -> NodeFacts:
    """What the node can do, as it was found at the last look."""
    tree, partition = ports.tree, ports.tree.partition
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
        cores=tree.core_counts(tree.known_cores(None, ports.cores)),
    )


def state_of(
    now_s: float,
    facts: NodeFacts,
    here: RunsHere,
    tree: NodeTree,
    cores: Mapping[int, Mapping[int, int]],
    *,
    sampled_ways: int,
    troubles: Iterable[str],
) -> NodeState:
    """The state of the node at this moment (Unix seconds).

    `cores` are the cores of each job by cache domain, as far as they are known. `sampled_ways` are those of the sampled
    run, 0 if none is sampled. `troubles` says what does not work; what is empty is no trouble.
    """
    jobs = []
    for run in here.runs:
        job_id = run.run.job_id
        ways = tree.has_ways(job_id)
        why = why_shared(run, ways, tree.why_without(job_id))
        is_sampled = run is here.sampled and sampled_ways > 0
        gbps = run.bandwidth_gbps if tree.limits_bandwidth(job_id) else 0
        by_domain = tree.core_counts(cores.get(job_id, {}))
        jobs.append(JobThere(run.run, ways, gbps, why, is_sampled, run.is_found, run.claim is not None, by_domain))
    return NodeState(now_s, facts, tuple(jobs), "; ".join(filter(None, troubles)))


def shown(
    state: NodeState, here: RunsHere, in_force: InForce, now_s: float, *, is_connected: bool, reports: int
) -> dict[str, Any]:
    """The answer as JSON. `state` is of the runs `here`, `now_s` seconds since the node's boot; `reports` wait."""
    jobs, sums = [], in_force.measuring.sums()
    for there, run in zip(state.jobs, here.runs, strict=True):
        job_id = run.run.job_id
        jobs.append(
            {
                "job": job_id,
                "restarts": run.run.restarts,
                "here_s": round(now_s - run.began_s, 1),
                "ways": there.ways,
                "bandwidth_gbps": there.bandwidth_gbps,
                "granted_ways": run.ways,
                "is_sampled": there.is_sampled,
                "threads": len(in_force.tasks[job_id].threads) if job_id in in_force.tasks else 0,
                "why_shared": there.why_shared,
                "points": [
                    {"ways": each.ways, "seconds": each.seconds, "ipc": each.ipc, "gbps": each.bandwidth_gbps}
                    for each in points(sums.get(job_id, {}))
                ],
            }
        )
    return {
        "node": state.facts.node,
        "mode": state.facts.mode,
        "ways": state.facts.ways,
        "why_unpartitioned": state.facts.why_unpartitioned,
        "trouble": state.trouble,
        "is_connected": is_connected,
        "reports": reports,
        "jobs": jobs,
    }
