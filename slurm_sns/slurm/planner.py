"""The Planner port on pyslurm: one RPC places and releases a held job.

Seen with Slurm 26.05 and pyslurm 25.11: INFINITE is the only priority that releases; `nodes=` is ignored in an update,
the count follows from the tasks on each node or stays the job's own. Clearing a node list needs an empty string, which
pyslurm cannot send, and its user hold crashes (it writes to an unset pointer): both rare steps go through scontrol,
whose arguments are numbers of ours.
"""

from collections.abc import Sequence

from slurm_sns.model import Start
from slurm_sns.scheduler.arrays import Split
from slurm_sns.scheduler.placing import Answers, Placement, one_by_one
from slurm_sns.scheduler.records import NO_MEMORY, OwnMemory
from slurm_sns.slurm.api import answers, pyslurm
from slurm_sns.slurm.commands import run
from slurm_sns.slurm.senders import Senders
from slurm_sns.slurm.translate import BANDWIDTH, WAYS

INFINITE = 0xFFFFFFFF
#: Fewer placements are sent from here: they take less than a tenth of a second.
MANY = 64


class SlurmPlanner:
    """Changes jobs as SlurmUser."""

    def __init__(self) -> None:
        self._senders = Senders()

    def place(self, start: Start, nice: int, memory_per_node_mb: int | None = None) -> None:
        """Pin the held job to `start.nodes`, release it, put it ahead of Slurm's own queue: one RPC."""
        demand = start.alternative.demand
        gres = {name: amount for name, amount in ((WAYS, demand.ways), (BANDWIDTH, demand.bandwidth_gbps)) if amount}
        change = pyslurm().JobSubmitDescription(
            required_nodes=list(start.nodes),
            ntasks_per_node=start.alternative.tasks_per_node,
            gres_per_node=gres or None,
            memory_per_node=memory_per_node_mb,
            nice=nice,
            priority=INFINITE,
        )
        with answers():
            pyslurm().Job(start.job_id).modify(change)

    def place_all(self, placements: Sequence[Placement]) -> Answers:
        """Place each, in one RPC a job; many of them by several processes."""
        return one_by_one(self, placements) if len(placements) < MANY else self._senders.place(placements)

    def release(self, job_id: int) -> None:
        """Give a held job to Slurm as it is."""
        with answers():
            pyslurm().Job(job_id).modify(pyslurm().JobSubmitDescription(priority=INFINITE))

    def unpin(self, address: str, nice: int, own_memory: OwnMemory = NO_MEMORY, *, hold: bool = True) -> None:
        """Clear the node list, our gres and our boost, restore its memory where given, then hold as the owner would.

        In this order: a crash in between leaves a job that Slurm runs, not one that nobody releases.
        """
        changes = ["ReqNodeList=", "TresPerNode=", f"Nice={nice}"]
        if own_memory.per_cpu_mb is not None:
            changes.append(f"MinMemoryCPU={own_memory.per_cpu_mb}")
        elif own_memory.per_node_mb is not None:
            changes.append(f"MinMemoryNode={own_memory.per_node_mb}")
        run("scontrol", "update", f"JobId={address}", *changes)
        if hold:
            run("scontrol", "uhold", address)

    def split(self, split: Split) -> None:
        """Split these tasks off their array: any change of some tasks of a record does that (seen), one RPC for all.

        pyslurm cannot name tasks.
        """
        tasks = ",".join(map(str, split.tasks))
        run("scontrol", "update", f"JobId={split.array_id}_[{tasks}]", f"Nice={split.nice}")
