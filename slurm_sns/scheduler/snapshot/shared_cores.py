"""The nodes whose cores are shared, counted by what their jobs need instead of by what Slurm shows as allocated. Pure.

Slurm shows the cores that at least one job has (the union of its rows), and the memory of all jobs. For one more job a
node has what is left of so many times its cores, and never more than its cores. Slurm's rows may be fragmented: a job
that needs several cores may then find none of them with enough; it is placed anew after a while.
"""

from collections import Counter
from dataclasses import replace

from slurm_sns.scheduler.observation import Observation, ObservedJob, ObservedNode
from slurm_sns.sharing.progress import SharingJob
from slurm_sns.sharing.rules import SharingRules


def shares_cores(node: ObservedNode, rules: SharingRules) -> bool:
    """Whether the node is one of a partition that shares."""
    return not rules.partitions.isdisjoint(node.partitions)


def sharing_jobs(observation: Observation, rules: SharingRules) -> list[SharingJob]:
    """The jobs that run on nodes that share, managed or not, with the cores that they need on each node."""
    threads = {node.name: node.threads_per_core for node in observation.nodes if shares_cores(node, rules)}
    running = (job for job in observation.jobs if job.state.occupies_nodes and not job.is_completing and job.allocated)
    return [
        SharingJob(job.id, job.allocated, _cores(job, threads[job.allocated[0]]))
        for job in running
        if _is_on(job, threads)
    ]


def count_shared_cores(observation: Observation, rules: SharingRules | None) -> Observation:
    """The observation in which the nodes that share have allocated what their jobs need, several to a core."""
    if rules is None:
        return observation
    needed: Counter[str] = Counter()
    for job in sharing_jobs(observation, rules):
        needed.update(dict.fromkeys(job.nodes, job.cores))
    nodes = tuple(
        replace(node, allocated=node.allocated._replace(cores=needed[node.name]), jobs_to_a_core=rules.most_to_a_core)
        if shares_cores(node, rules)
        else node
        for node in observation.nodes
    )
    return replace(observation, nodes=nodes)


def _is_on(job: ObservedJob, threads: dict[str, int]) -> bool:
    return job.allocated[0] in threads


def _cores(job: ObservedJob, threads: int) -> int:
    """What the job has on each of its nodes: Slurm tells the CPUs of the whole job."""
    return -(-job.occupies.cores // (len(job.allocated) * threads))
