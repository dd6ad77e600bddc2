"""The ids of array tasks that Slurm keeps in their array's record: numbers of ours, larger than any id of Slurm's."""

#: Slurm's job ids have 32 bits.
_BITS = 32


def task_id(array_id: int, task: int) -> int:
    """The id of this task of this array."""
    return (array_id << _BITS) + task + 1


def label(job_id: int) -> str:
    """What Slurm calls the job with this id: `41`, or `41_7` for an array's task."""
    task = task_of(job_id)
    return str(job_id) if task is None else f"{task[0]}_{task[1]}"


def task_of(job_id: int) -> tuple[int, int] | None:
    """The array id and the task number of such an id; None for an id of Slurm's."""
    array_id, task = job_id >> _BITS, job_id & ((1 << _BITS) - 1)
    return (array_id, task - 1) if array_id else None


def record_of(job_id: int) -> int:
    """The id of Slurm's record that this job is, or that it is a task of."""
    return (task_of(job_id) or (job_id,))[0]
