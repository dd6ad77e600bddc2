"""Every text that the submit filter says to a user, in one place: Lua gets them in the rendered table.

`say` fills the `{name}` of a text. It never searches a filled value again, so a user's text cannot name another value.
What a user wrote appears only through `quote`: printable ASCII, of limited length, whatever the bytes were.
"""

import re
from collections.abc import Mapping

SHOWN_BYTES = 40  # enough to recognise a value, short enough for one line

_HAS = "the largest node of partition {partitions} has {cores} cores, {cpus} CPUs and {memory_mb} MiB"

MESSAGES: Mapping[str, str] = {
    "alpha": "sns: {key} {value}: alpha must be a number above 0 and at most 1, such as 0.9",
    "program": "sns: {key} {value}: a program name is 1 to 64 of the characters A-Z a-z 0-9 . _ + -",
    "max-scale": "sns: {key} {value}: the largest scale must be a whole number from 1 to 64",
    "heuristic": "sns: {key} {value}: unknown heuristic; valid are {valid}",
    "flag": "sns: {key} {value}: valid are yes, no, and the name without a value",
    "restartable": "sns: {key} {value}: valid are yes, no, the name without a value, and the seconds between two "
    "checkpoints, a whole number from 1 to 604800",
    "missing": "sns: {key}: a value is missing, such as {example}",
    "unknown": "sns: {key} {value}: unknown hint; valid are {valid}",
    "duplicate": "sns: {key}: given twice; give each hint once",
    "long": "sns: --comment {value}: hints have at most {most} bytes; valid are {valid}",
    "off": "sns: --comment sns:off stands alone: it cannot be combined with other hints",
    "managed": "sns: slurm_sns will place this job; see: sns queue",
    "task-cpus": "sns: no node has {asked} CPUs for one task: " + _HAS,
    "node-memory": "sns: no node has {asked} MiB of memory: " + _HAS,
    "task-both": "sns: no node has both {asked} CPUs and {asked_mb} MiB for one task: " + _HAS,
    "job-nodes": "sns: the job wants {asked} nodes and only {count} can hold a task of it: " + _HAS,
    "job-tasks": "sns: {asked} tasks (CPUs per task: {task_cpus}, MiB per task: {task_mb}) do not fit: at most {count} "
    "do, on the nodes that the job may use ({nodes}); " + _HAS,
}


def say(name: str, values: Mapping[str, str | int]) -> str:
    """The message `name` with its `{...}` filled from `values`."""
    return re.sub(r"\{(\w+)\}", lambda match: str(values[match.group(1)]), MESSAGES[name])


def as_bytes(text: str) -> bytes:
    """The bytes from which `text` was decoded; half a surrogate pair that stands for none becomes a question mark."""
    return re.sub("[\ud800-\udc7f\udd00-\udfff]", "?", text).encode("utf-8", "surrogateescape")


def quote(text: str) -> str:
    """`text` for a message: in quotes, at most `SHOWN_BYTES` bytes, all but printable ASCII as question marks."""
    data = as_bytes(text)
    shown = "".join(chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x27 else "?" for byte in data[:SHOWN_BYTES])
    return f"'{shown}...'" if len(data) > SHOWN_BYTES else f"'{shown}'"
