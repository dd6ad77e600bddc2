"""Reads all of an overview that the views use, so that one of another version is told before it is shown."""

from collections.abc import Mapping
from typing import Any

from slurm_sns.cli.live.queue_view import since_s, size
from slurm_sns.cli.live.top import overview_words

Answer = Mapping[str, Any]

#: What the columns, squeue's formats and the words read of a job, and of its expected start.
OF_JOB = (
    *("account", "cpus", "demand", "job_id", "label", "name", "nodes", "over_aged", "partition", "position", "reason"),
    *("start_s", "state", "submit_s", "user", "waits"),
)
OF_START = ("high_s", "limits_s", "low_s", "not_before_s")


def read(answer: Answer, now_s: float) -> None:
    """Read it, as the views do.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the answer is of another version.
    """
    overview_words.facts(answer, now_s)
    overview_words.troubles(answer, "", now_s, now_s)
    for row in answer["jobs"]:
        _has(row, OF_JOB)
        size(row)
        since_s(row, now_s)
        if row.get("starts") is not None:
            _has(row["starts"], OF_START)
    for node in answer["nodes"]:
        overview_words.of_node(node)
        overview_words.node_told(node)
        overview_words.job_lines(node)


def _has(what: Answer, names: tuple[str, ...]) -> None:
    for name in names:
        what[name]
