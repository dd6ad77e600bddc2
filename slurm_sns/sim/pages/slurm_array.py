"""Do pieces of work as one Slurm job array, through submitit: the only module that imports it.

An array has one task for each piece; where Slurm allows no array so large, a task does several pieces. The array is an
ordinary batch job of the user who calls: Slurm or slurm_sns places its tasks like any others. Results come back through
files in `folder`. All nodes must see this folder, and this Python installation, under the same path.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from submitit import Executor, Job, SlurmExecutor
from submitit.core.utils import FailedSubmissionError, UncompletedJobError

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sim.pages.running import Item, ReportProgress, Result, no_report

#: Slurm's default MaxArraySize is 1001.
MOST_TASKS = 1000
#: How often we look for the files of the tasks. Slurm itself is asked by submitit, at growing intervals.
LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class SlurmArray:
    """A job array of one-core tasks, at most `count` at a time; `partition` None: Slurm's default partition.

    `minutes` and `memory_gb` are the limits of one task.
    """

    folder: Path
    count: int
    partition: str | None = None
    minutes: int = 60
    memory_gb: int = 4

    def __call__(
        self, function: Callable[[Item], Result], pieces: Sequence[Item], report: ReportProgress = no_report
    ) -> list[Result]:
        """The results in the order of the pieces.

        Raises:
            BadInput: there is no Slurm here, or it refuses the array.
            SnsError: a task failed; the others have been waited for.
        """
        return in_array(self.executor(), function, pieces, report) if pieces else []

    def executor(self) -> Executor:
        """Submitit's executor with the parameters of the array.

        Raises:
            BadInput: there is no Slurm here.
        """
        try:
            executor = SlurmExecutor(self.folder.absolute())
        except RuntimeError:
            raise BadInput("there is no srun here; valid: --slurm on a machine that submits to Slurm") from None
        given = {} if self.partition is None else {"partition": self.partition}
        executor.update_parameters(
            job_name="sns-reproduce",
            time=self.minutes,
            mem=f"{self.memory_gb}G",
            cpus_per_task=1,
            array_parallelism=self.count,
            # The script itself is the task: a step of one process would add nothing.
            use_srun=False,
            **given,
        )
        return executor


def in_array(
    executor: Executor, function: Callable[[Item], Result], pieces: Sequence[Item], report: ReportProgress
) -> list[Result]:
    """Submit the array, wait for it, and return the results in the order of the pieces.

    Raises:
        BadInput: Slurm refuses the array.
        SnsError: a task failed; the others have been waited for.
    """
    report(0, len(pieces))
    tasks = min(len(pieces), MOST_TASKS)
    shares = [pieces[at::tasks] for at in range(tasks)]
    try:
        jobs = executor.map_array(partial(do_share, function), shares)
    except (FailedSubmissionError, UncompletedJobError) as problem:  # UncompletedJobError: sbatch's own message
        raise BadInput(f"Slurm refuses the array: {_last_line(str(problem))}") from None
    try:
        _wait(jobs, [len(share) for share in shares], report)
    except BaseException:  # also an interrupt: nobody waits for the array any more
        _cancel(jobs)
        raise
    found = [_result(job) for job in jobs]
    return [found[at % tasks][at // tasks] for at in range(len(pieces))]


def do_share(function: Callable[[Any], Any], share: Sequence[Any]) -> list[Any]:
    """Do the pieces of one task."""
    return [function(piece) for piece in share]


def _wait(jobs: Sequence[Job[Any]], sizes: Sequence[int], report: ReportProgress) -> None:
    """Wait until all tasks have ended, whether they succeeded or failed."""
    left = list(zip(jobs, sizes, strict=True))
    while left:
        time.sleep(LOOK_EVERY_S)
        left = [(job, size) for job, size in left if not job.done()]
        report(sum(sizes) - sum(size for _, size in left), sum(sizes))


def _cancel(jobs: Sequence[Job[Any]]) -> None:
    """Cancel the whole array."""
    first = jobs[0]
    type(first)(first.paths.folder, str(first.job_id).split("_", maxsplit=1)[0]).cancel(check=False)


def _result(job: Job[Any]) -> Any:
    problem = job.exception()
    if problem is not None:
        raise SnsError(
            f"task {job.job_id} of the array failed: {_last_line(str(problem))} (its log: {job.paths.stderr}); "
            "the results of the other tasks are kept, --resume runs what is missing"
        )
    return job.result()


def _last_line(text: str) -> str:
    """The line of a Python traceback or of sbatch's output that says what was wrong."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in said if "rror" in line and not line.startswith(("You can", "- "))]
    return (told or said or ["it does not say why"])[-1]
