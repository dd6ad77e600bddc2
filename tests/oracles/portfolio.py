"""A portfolio that matches by the plain twin of the kernel alone."""

from slurm_sns.policies.placement.fair_order import WaitingQueue
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays
from slurm_sns.policies.placement.pass_record import Schedule
from slurm_sns.policies.placement.portfolio import Portfolio


class PlainPortfolio(Portfolio):
    """The same policy without the kernel."""

    def schedule(
        self, node_arrays: NodeArrays, free: Amounts, queue: WaitingQueue, *, plainly: bool = True
    ) -> Schedule:
        """The best member's schedule."""
        return super().schedule(node_arrays, free, queue, plainly=plainly)


def plainly(policy: Portfolio) -> PlainPortfolio:
    """The policy without the kernel."""
    return PlainPortfolio(policy.rules, policy.alternatives)
