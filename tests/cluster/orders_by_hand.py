"""Orders for running jobs, which the executor carries out on the controller without a scheduler."""

import shlex

from cluster import PYTHON, Cluster

#: Arguments: `NAME JOBID [POOL]`. Prints `done`, or why the order was not carried out.
ORDER = """
import sys
from slurm_sns.model import Requeue, Resume, Suspend
from slurm_sns.slurm.executor import SlurmExecutor

name, number, *more = sys.argv[1:]
kinds = {"suspend": Suspend, "resume": Resume, "requeue": Requeue}
(answer,) = SlurmExecutor().execute((kinds[name](int(number), *more),))
print(answer.refused or answer.unreachable or "done")
"""


def order(cluster: Cluster, *words: object) -> str:
    """Have the executor carry out one order as SlurmUser, and return its answer."""
    return cluster.run(f"{PYTHON} -c {shlex.quote(ORDER)} {' '.join(map(str, words))}", "slurm").strip()
