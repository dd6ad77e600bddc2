"""A requeue that the executor carries out on the controller without a scheduler."""

import shlex

from cluster import PYTHON, Cluster

#: Argument: a job id. Prints `done`, or why the order was not carried out.
REQUEUE = """
import sys
from slurm_sns.scheduler.gate.orders import RequeueOrder
from slurm_sns.slurm.executor import SlurmExecutor

(answer,) = SlurmExecutor().execute((RequeueOrder(int(sys.argv[1])),))
print(answer.refused or answer.unreachable or "done")
"""


def requeue(cluster: Cluster, job_id: int) -> str:
    """Have the executor requeue a job as SlurmUser, and return its answer."""
    return cluster.run(f"{PYTHON} -c {shlex.quote(REQUEUE)} {job_id}", "slurm").strip()
