"""Tasks of an array that wait alike as one row of the queue, as squeue shows them, and the parts of a job's label."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ClusterShell.RangeSet import RangeSet

Row = Mapping[str, Any]

_LABEL = re.compile(r"(\d+)(?:_(?:(\d+)|\[([^%\]]*)(?:%(\d+))?\]))?")
#: A longer list of tasks is cut, as squeue cuts it (SLURM_BITSTR_LEN).
MOST_LISTED = 64


def label_parts(row: Row) -> tuple[int, int | None, str]:
    """A label in parts: `41` or `41_7` or `41_[8-99%5]` as the number, the task, and the expression of several."""
    found = _LABEL.fullmatch(row["label"])
    if found is None:  # no label of Slurm's; the job is shown all the same
        return row["job_id"], None, ""
    number, task, tasks, _ = found.groups()
    return int(number), None if task is None else int(task), tasks or ""


def with_folded_arrays(rows: Iterable[Row]) -> list[Row]:
    """The rows, in which tasks of an array that wait alike are one, as squeue shows them: `4711_[7,12-99%2]`.

    It stands where the first of them stood. A list of tasks that Slurm cuts off stays as it is.
    """
    alike: dict[object, list[Row]] = {}
    for at, row in enumerate(rows):
        array, task, tasks = label_parts(row)
        is_waiting_task = row["waits"] is not None and (task is not None or tasks) and not tasks.endswith("...")
        key = (array, row["state"], *row["waits"].values(), row["partition"]) if is_waiting_task else at
        alike.setdefault(key, []).append(row)
    return [each[0] if len(each) == 1 else {**each[0], "label": _joined(each)} for each in alike.values()]


def _joined(rows: Sequence[Row]) -> str:
    """The label of these rows of one array."""
    parts = [label_parts(row) for row in rows]
    listed = ",".join(tasks.replace(":", "/") or str(task) for _, task, tasks in parts)
    tasks = str(RangeSet(listed))
    if len(tasks) > MOST_LISTED:
        tasks = f"{tasks[:MOST_LISTED].rpartition(',')[0]},..."
    limits = (found.group(4) for row in rows if (found := _LABEL.fullmatch(row["label"])) and found.group(4))
    limit = next(limits, "")
    return f"{parts[0][0]}_[{tasks}{'%' * bool(limit)}{limit}]"
