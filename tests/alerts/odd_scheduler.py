#!/opt/sns/bin/python
"""`sns` with a policy that a test chooses by SNS_ODD: it plans what no policy of ours does.

idle     starts nothing, though there is room
slow     plans for three seconds
crowded  starts every job on the first node, though that is full
"""

# This must come first, as in `sns`: the imports below import numba, which would otherwise compile everything again.
# ruff: noqa: E402
from slurm_sns.cli.compiled_code import keep_by_state

keep_by_state()

import os
import sys
import time

from slurm_sns.cli import main
from slurm_sns.model import Plan, Reason, Snapshot, Start, WaitKind
from slurm_sns.scheduler.counters import TimedPolicy

PLAN = TimedPolicy.plan


def idle(_policy: TimedPolicy, snapshot: Snapshot) -> Plan:
    return Plan(waiting={job.id: Reason("waits", WaitKind.RESOURCES, "cores") for job in snapshot.waiting})


def slow(policy: TimedPolicy, snapshot: Snapshot) -> Plan:
    time.sleep(3)
    return PLAN(policy, snapshot)


def crowded(_policy: TimedPolicy, snapshot: Snapshot) -> Plan:
    first = (snapshot.nodes[0].name,)
    return Plan(tuple(Start(job.id, first, job.alternatives[0]) for job in snapshot.waiting))


TimedPolicy.plan = {"idle": idle, "slow": slow, "crowded": crowded}[os.environ["SNS_ODD"]]  # type: ignore[method-assign]
sys.exit(main())
