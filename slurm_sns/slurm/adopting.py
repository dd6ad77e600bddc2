"""Takes over a job that the version before held; see scheduler.adoption. It goes with the next release."""

from slurm_sns.scheduler.gate.adoption import Adoption, Becomes
from slurm_sns.slurm.api import answers, pyslurm
from slurm_sns.slurm.commands import run

#: The only priority that ends a hold.
INFINITE = 0xFFFFFFFF


def adopt(adoption: Adoption, gate_s: int) -> None:
    """Make the change. A gated job loses its hold and gets its gate in one RPC: it never starts in between (seen).

    The old mark goes by an RPC of its own, except in the record of several tasks, which has no name for that: it says
    nothing to anybody there.

    Raises:
        Refused: Slurm says no.
        Unreachable: slurmctld does not answer.
    """
    job = adoption.job
    if adoption.becomes is Becomes.GATED:
        change = pyslurm().JobSubmitDescription(
            priority=INFINITE, begin_time=gate_s, admin_comment=adoption.admin_comment
        )
        with answers():
            pyslurm().Job(job.id).modify(change)
    changes = [] if job.is_array_record else ["Extra="]
    if adoption.nice is not None:
        changes += [f"Nice={adoption.nice}", "ReqNodeList=", "TresPerNode="]
    if adoption.becomes is Becomes.FREED and job.priority == 0:
        changes.append(f"Priority={INFINITE}")
    if changes:
        run("scontrol", "update", f"JobId={job.label if job.task else job.id}", *changes)
