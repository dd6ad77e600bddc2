"""What can be done about a job: a request to the scheduler or a command of Slurm, and the question before it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slurm_sns.cli.live.squeue_options import numbers
from slurm_sns.errors import BadInput
from slurm_sns.log import printable
from slurm_sns.node_lists import folded

Row = Mapping[str, Any]

#: The states in which Slurm can change a request and nothing is running or being started with it.
WAITS = ("waiting", "held", "would wait")
_TIME = re.compile(r"-t ([0-9:-]+)")
_MEMORY = re.compile(r"--mem(-per-cpu)?=([0-9]+)([MG])")
_LABEL = re.compile(r"([0-9]+(?:_(?:[0-9]+|\[[0-9,:/-]+\]))?)(?:%[0-9]+)?")
_LIMIT = re.compile(r"%[0-9]+\]")


class ReleaseOrder(NamedTuple):
    """A job, or all waiting tasks of its array, given to Slurm: the request, and the question before it."""

    request: dict[str, Any]
    question: str


def explain_request(row: Row) -> dict[str, Any]:
    """The question why; of several tasks in one line, of the first."""
    number, task = numbers(row)
    return {"command": "explain", "job_id": number, **({"task": task} if task >= 0 else {})}


def how_to_check(row: Row) -> str:
    """The command that shows what has become of the job."""
    number, task = numbers(row)
    return f"sns explain {number}{f'_{task}' if task >= 0 else ''}"


def release(row: Row) -> ReleaseOrder:
    """What gives the job to Slurm; of tasks in one line, their whole array, as the scheduler takes one task or all."""
    number, _ = numbers(row)
    if "[" in row["label"]:
        what, request = f"all waiting tasks of array {number}", {"command": "release", "job_id": number}
    else:
        what = f"job {row['label']} ({printable(row['name'])})"
        request = {**explain_request(row), "command": "release"}
    question = (
        f"Give {what} to Slurm? It leaves the queue of slurm_sns, and Slurm starts it in its own order; a job that is"
        " held stays held. This cannot be taken back."
    )
    return ReleaseOrder(request, question)


def changes_now(row: Row, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The changes with which the job would start now, of an answer to `explain_request`.

    Raises:
        BadInput: the job does not wait: a change would be one of a job that runs.
    """
    job = answer["job"]
    if job is None or job["state"] not in WAITS:
        state = "it is no longer in Slurm" if job is None else f"it is {printable(job['state'])}"
        raise BadInput(f"{row['label']} no longer waits ({state}): nothing was changed")
    return [{"options": str(each["options"]), "nodes": list(each["nodes"])} for each in answer.get("would_start", [])]


class SmallerRequest(NamedTuple):
    """A change with which the job would start now: the command that makes it, or none; and the question or advice."""

    command: list[str]
    told: str


def smaller_request(label: str, change: Mapping[str, Any]) -> SmallerRequest:
    """Slurm can change time and memory of a waiting job; what it cannot is said with the options of sbatch."""
    where = f"With it the job would have started on {folded(change['nodes'])} in the last cycle; the next may differ."
    words, name = _update_of(change["options"]), _job_name(label)
    if words is None:
        advice = f"submit {label} again with {change['options']}"
        return SmallerRequest([], f"Slurm cannot change this of a waiting job: {advice}")
    if name is None:
        return SmallerRequest([], f"Slurm does not list all tasks of {label}: scontrol update JobId=EACH_TASK {words}")
    command = ["scontrol", "update", f"JobId={name}", words]
    return SmallerRequest(command, f"Run this as yourself?\n\n{shlex.join(command)}\n\n{where}")


def _update_of(options: str) -> str | None:
    """The option of sbatch as a field of `scontrol update`; None if it is another one."""
    if found := _TIME.fullmatch(options):
        return f"TimeLimit={found[1]}"
    if found := _MEMORY.fullmatch(options):
        memory_mb = int(found[2]) * (1024 if found[3] == "G" else 1)
        return f"{'MinMemoryCPU' if found[1] else 'MinMemoryNode'}={memory_mb}"
    return None


def _job_name(label: str) -> str | None:
    """The label as scontrol takes it, without the limit of an array; None where tasks are cut off."""
    found = _LABEL.fullmatch(_LIMIT.sub("]", label))
    return None if found is None else found[1]


def switch_question(*, disabled: bool) -> str:
    """What turning slurm_sns on or off does."""
    if disabled:
        return "Enable slurm_sns? It manages jobs that are submitted from then on."
    return "Disable slurm_sns? Waiting jobs are given to Slurm, and new ones pass through, until it is enabled again."


def change_lines(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each change, to choose from."""
    return [f"{each['options']}  on {folded(each['nodes'])}" for each in changes]
