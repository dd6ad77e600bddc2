# ruff: noqa: T201 -- a program, which prints what it reports
"""submitit: a throttled array, two tasks on each of two nodes, a failure, a dependency, a cancel, a requeue."""

import json
import time

import submitit
from submitit.helpers import DelayedSubmission


def square(number: int) -> int:
    time.sleep(1)
    return number * number


def rank() -> int:
    return submitit.JobEnvironment().global_rank


def fail() -> None:
    raise ValueError("as meant")


class Resumed:
    """Works until it is interrupted, and ends at once when it runs again from its checkpoint."""

    def __init__(self) -> None:
        self.is_resumed = False

    def __call__(self) -> str:
        if not self.is_resumed:
            time.sleep(300)
        return "resumed"

    def checkpoint(self) -> DelayedSubmission:
        self.is_resumed = True
        return DelayedSubmission(self)


def executor(**parameters: object) -> submitit.AutoExecutor:
    made = submitit.AutoExecutor(folder="submitit-logs", cluster="slurm")
    made.update_parameters(timeout_min=5, slurm_partition="main", mem_gb=1, **parameters)
    return made


def wait_for_state(job: submitit.Job, state: str) -> str:
    """Wait for a state, and return it with what accounting adds, as in `CANCELLED by 2001`."""
    while not (found := job.watcher.get_state(job.job_id, mode="force")).startswith(state):
        time.sleep(1)
    return found


array = executor(slurm_array_parallelism=3).map_array(square, range(12))
ranks = executor(nodes=2, tasks_per_node=2).submit(rank)
failing = executor().submit(fail)
after = executor(slurm_additional_parameters={"dependency": f"afterany:{failing.job_id}"}).submit(square, 7)
endless = executor().submit(time.sleep, 300)
resumed = executor().submit(Resumed())

wait_for_state(endless, "RUNNING")
endless.cancel()
wait_for_state(resumed, "RUNNING")
time.sleep(5)  # until Python has set its signal handlers
resumed._interrupt()
print(
    json.dumps(
        {
            "array": [job.result() for job in array],
            "ranks": sorted(ranks.results()),
            "failing": type(failing.exception()).__name__,
            "after": after.result(),
            "resumed": resumed.result(),
            "endless": wait_for_state(endless, "CANCELLED"),
        }
    )
)
