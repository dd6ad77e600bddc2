# ruff: noqa: T201 -- a program, which prints what it reports
"""psij-python: jobs of one and of several processes, a failure, a cancel of a waiting and of a running job."""

import json
import time
from datetime import timedelta

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.slurm import SlurmExecutorConfig

executor = JobExecutor.get_instance(
    "slurm", config=SlurmExecutorConfig(queue_polling_interval=3, initial_queue_polling_delay=1)
)


def submit(executable: str, *arguments: str, processes: int = 1, **custom: str) -> Job:
    attributes = JobAttributes(
        queue_name="main",
        duration=timedelta(minutes=5),
        custom_attributes={f"slurm.{name.replace('_', '-')}": value for name, value in custom.items()},
    )
    resources = ResourceSpecV1(process_count=processes, processes_per_node=processes, memory=500 * 2**20)
    job = Job(JobSpec(executable, list(arguments), resources=resources, attributes=attributes, launcher="multiple"))
    executor.submit(job)
    return job


fine = [submit("/bin/sleep", "1") for _ in range(4)]
parallel = submit("/bin/sleep", "1", processes=2)
failing = submit("/bin/false")
waiting = submit("/bin/true", begin="now+1hour")
running = submit("/bin/sleep", "300")
running.wait(target_states=[JobState.ACTIVE])
running.cancel()
time.sleep(2)
waiting.cancel()
every = {"fine": fine, "parallel": [parallel], "failing": [failing], "waiting": [waiting], "running": [running]}
print(json.dumps({what: sorted({job.wait().state.name for job in jobs}) for what, jobs in every.items()}))
