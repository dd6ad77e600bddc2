"""What the active jobs of a simulation hold on the nodes.

Each part of a running job holds its memory and, of its cores, the job's CPU share. A part of a suspended job holds only
its memory, and nothing if the job is in storage. A part of an exclusive job holds its whole node. Shares of cores are
summed as they are.
"""

from collections import Counter
from math import floor

from slurm_sns.errors import SnsError
from slurm_sns.model import NOTHING, ActiveJob, ActiveState, Resources, Seconds
from slurm_sns.policies.placement.node_arrays import NodeArrays

#: The rounding error that a sum of CPU shares may have in floats, in cores.
ROUNDING = 1e-6


class HeldCapacity:
    """The nodes, and what is held on each. An action that exceeds a node is a defect of the policy."""

    def __init__(self, nodes: NodeArrays) -> None:
        """Start without jobs."""
        capacities = nodes.capacity.T.tolist()
        self.capacity = {name: Resources(*each) for name, each in zip(nodes.names, capacities, strict=True)}
        self._held = dict.fromkeys(nodes.names, NOTHING)
        self._cores: dict[str, Seconds] = dict.fromkeys(nodes.names, 0)
        self._exclusive: set[int] = set()

    def start(self, job: ActiveJob, *, is_exclusive: bool) -> None:
        """Let a job begin to hold its nodes.

        Raises:
            SnsError: a node is not there or has no room, or the share is not valid.
        """
        if is_exclusive:
            self._exclusive.add(job.id)
        self._take(job)

    def change(self, before: ActiveJob, after: ActiveJob) -> None:
        """Let a job hold something else.

        Raises:
            SnsError: as in `start`.
        """
        self._give_back(before)
        self._take(after)

    def end(self, job: ActiveJob) -> None:
        """Free what the job holds."""
        self._give_back(job)
        self._exclusive.discard(job.id)

    def free(self, name: str) -> Resources:
        """What is free on a node: of its cores only those that are free as a whole."""
        left = self.capacity[name].minus(self._held[name])
        return left._replace(cores=max(floor(left.cores - self._cores[name] + ROUNDING), 0))

    def _take(self, job: ActiveJob) -> None:
        if not 0 < job.cpu_share <= 1:
            raise SnsError(
                f"job {job.id}: cpu_share is {job.cpu_share}; valid: above 0, at most 1; this is a defect of the policy"
            )
        for name, parts in Counter(job.nodes).items():
            if name not in self._held:
                raise SnsError(f"job {job.id}: there is no node {name}; this is a defect of the policy")
            self._hold(job, name, parts)
            cores_left = self.capacity[name].cores - self._cores[name]
            if cores_left < -ROUNDING or not self._held[name].within(self.capacity[name]._replace(cores=0)):
                raise SnsError(f"job {job.id}: node {name} has no room for it; this is a defect of the policy")

    def _give_back(self, job: ActiveJob) -> None:
        for name, parts in Counter(job.nodes).items():
            self._hold(job, name, -parts)

    def _hold(self, job: ActiveJob, name: str, parts: int) -> None:
        """Add what so many parts of the job hold on a node."""
        demand = self.capacity[name] if job.id in self._exclusive else job.demand
        if not job.in_storage:
            amount = Resources(0, *(parts * each for each in demand[1:]))
            self._held[name] = self._held[name].plus(amount)
        if job.state is not ActiveState.SUSPENDED:
            self._cores[name] += job.cpu_share * parts * demand.cores
