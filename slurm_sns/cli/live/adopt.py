"""`sns adopt`: takes over the jobs that the version before held. It goes with the next release."""

import time

from slurm_sns.cli.options import DEFAULT_CONFIG, Config
from slurm_sns.errors import Refused

#: So long have admins to start the new scheduler.
GATED_S = 600


def adopt(config: Config = DEFAULT_CONFIG) -> None:
    """Take over the waiting jobs that the version before held in Slurm. Run it once, before the new scheduler starts.

    Jobs that it held are gated, and never start in between; all others of its jobs become Slurm's. After a clean stop
    of that version there are none.
    """
    from collections import Counter

    from slurm_sns import config as configuration
    from slurm_sns.cli.live.control import require_admin
    from slurm_sns.scheduler.gate.adoption import adoption
    from slurm_sns.slurm.executor import adopt as adopt_one
    from slurm_sns.slurm.state import JobsAlone

    settings = configuration.load(config)
    require_admin(settings)
    gate_s = int(time.time()) + GATED_S
    counts: Counter[str] = Counter()
    for job in JobsAlone().observe().jobs:
        found = adoption(job, gate_s)
        if found is None:
            continue
        try:
            adopt_one(found, gate_s)
        except Refused as refusal:
            print(f"job {job.label}: Slurm refused the change: {refusal}")
            continue
        print(f"job {job.label}: {found.becomes}")
        counts[found.becomes.name.lower()] += 1
    told = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    print(told or "no job of the version before waits")
    if counts:
        print(
            "now start the scheduler: a gate that nobody renews opens by itself; once `sns status` answers, start "
            "the watchdog: it gives all to Slurm while it finds no heartbeat"
        )
