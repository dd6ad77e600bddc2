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
    nodes = {node.name: node for node in observation.nodes if shares_cores(node, rules)}
    running = (job for job in observation.jobs if job.state.occupies_nodes and not job.is_completing)
    found = ((job, next((nodes[name] for name in job.allocated if name in nodes), None)) for job in running)
    return [SharingJob(job.id, job.allocated, _cores(job, node)) for job, node in found if node is not None]


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


def _cores(job: ObservedJob, node: ObservedNode) -> int:
    """The cores that the job may have on one of its nodes, which are like this one: Slurm tells the CPUs of all.

    With a number of tasks per node they are equally many on each. Otherwise Slurm may give all but one of each other
    node to the first (-N2 -n16 was seen as 15 and 1); then nobody is limited below that.
    """
    cores = -(-job.occupies.cores // node.threads_per_core)
    others = len(job.allocated) - 1
    if not others or job.tasks_per_node:
        return -(-cores // (others + 1))
    return max(-(-cores // (others + 1)), min(cores - others, node.capacity.cores))
