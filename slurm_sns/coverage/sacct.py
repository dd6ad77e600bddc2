"""What `sacct -P` prints: the header, and the words and units of its fields, as values.

One reader for all that looks at accounting: `sns coverage`, traces of `sns simulate`, `sns pseudonyms`. It needs
nothing but Python, because `sns coverage` runs where neither numpy nor pandas is.

Memory: up to 20.11 ReqMem ends in `n` (on each node) or `c` (for each CPU). Since 21.08 it is the memory of ReqTRES,
which the whole job asked for (src/sacct/print.c of both).
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from slurm_sns.coverage.sbatch_options import memory_mb
from slurm_sns.errors import BadInput

#: Lists of columns for all that reads a dump. sacct adds up its options -o; in short ones a help text can break lines.
_LISTS = (
    "JobID,JobIDRaw,User,Account,Partition,State",
    "Submit,Start,ElapsedRaw,TimelimitRaw,NNodes",
    "AllocCPUS,ReqMem,ReqTRES,AllocTRES,Priority",
    "Constraints,Reservation,SubmitLine",
)
COLUMNS = tuple(",".join(_LISTS).split(","))
#: What makes a dump. A constraint or a command line may have a `|`, so a tab stands between the columns.
COMMAND = " ".join(["sacct -aPX --delimiter=$'\\t' -S now-7days", *(f"-o {each}" for each in _LISTS)])
#: What makes the list of the nodes, or a short one.
NODES = "scontrol -o show node"
SINFO = "sinfo -N -o '%N|%c|%m|%z|%w|%f|%R'"
#: Those that may stand between the columns.
DELIMITERS = "\t|,;"
#: TRES that are no gres: what a job always has, and what follows from it.
_PLAIN_TRES = frozenset({"cpu", "mem", "node", "billing", "energy", "vmem", "pages", "fs/disk"})
_NOTHING = frozenset({"", "None", "Unknown", "(null)", "N/A"})
_ELAPSED = re.compile(
    r"(?:(?P<days>[0-9]+)-)?(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+):(?P<seconds>[0-9]+)(?:\.[0-9]*)?"
)
#: A job, an array's task, tasks that are not yet apart, a component of a heterogeneous job; and a step of one of them.
_JOB = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10})|(_\[.*)|(\+[0-9]+))?(\..+)?")
_COUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]*)?)([KMGT]?)")
_THOUSANDS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

#: What `job_number` says of records that are no jobs of their own.
STEP, TASK_RANGE, COMPONENT = -1, -2, -3
#: The number of an array's task where only its JobID is known: the array's in the lower bits. Those of a federation
#: have 32 of them.
_ARRAY_BITS = 32

ENDED = frozenset(
    {
        *("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL"),
        *("DEADLINE", "REQUEUED", "REVOKED"),
    }
)
NOT_ENDED = frozenset(
    {
        *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED", "SIGNALING"),
        *("REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "STAGE_OUT", "RESV_DEL_HOLD"),
    }
)


class SacctHeader(NamedTuple):
    """The columns that the first line names, in their order, and what stands between them."""

    delimiter: str
    columns: tuple[str, ...]


def header_in(line: str) -> SacctHeader | None:
    """The header that this line is: it names JobID or JobIDRaw, among others. None if it is no header of sacct."""
    line = line.strip("\r\n")
    delimiter = next((each for each in DELIMITERS if each in line), "\0")
    columns = tuple(name.strip() for name in line.split(delimiter))
    return SacctHeader(delimiter, columns) if {"JobID", "JobIDRaw"} & {*columns} and len(columns) > 1 else None


def said(row: Mapping[str, str], column: str) -> str:
    """What the column says; empty for sacct's words for nothing."""
    value = row.get(column) or ""
    return "" if value in _NOTHING else value


def tres(text: str | None) -> dict[str, str]:
    """`cpu=4,gres/gpu=1` by name."""
    return {name: amount for name, has, amount in (each.partition("=") for each in (text or "").split(",")) if has}


def gres_in(text: str | None) -> list[str]:
    """The generic resources among TRES."""
    return [
        each
        for each, amount in tres(text).items()
        if each not in _PLAIN_TRES and not each.startswith("license") and amount.strip("0KMGT.")
    ]


def job_number(text: str) -> int:
    """The number of the job, or of the array's task, of a JobID or JobIDRaw; STEP, TASK_RANGE or COMPONENT.

    Raises:
        BadInput: it is no job's.
    """
    found = _JOB.fullmatch(text)
    if not found:
        raise BadInput(f"JobID {text[:20]!r}: valid are numbers as 123 and 123_4")
    job, task, tasks, component, step = found.groups()
    if step:
        return STEP
    if tasks:
        return TASK_RANGE
    if component:
        return COMPONENT
    return int(job) + (0 if task is None else int(task) + 1 << _ARRAY_BITS)


def job_text(number: int) -> str:
    """A job's number as sacct shows it: `7`, or `7_3` for a task of which only that is known."""
    task, job = divmod(number, 1 << _ARRAY_BITS)
    return f"{job}_{task - 1}" if task else str(job)


def state_in(text: str) -> str:
    """The state without what follows it: `CANCELLED by 1234`."""
    return text.partition(" ")[0].rstrip("+")


def count_in(text: str) -> int:
    """`4`, `1K` (1024 nodes).

    Raises:
        BadInput: it is no count.
    """
    found = _COUNT.fullmatch(text)
    if not found:
        raise BadInput(f"count {text[:20]!r}: valid are numbers, also with K or M")
    return round(float(found[1]) * _THOUSANDS[found[2]])


def requested_memory_mb(text: str) -> tuple[int, str]:
    """ReqMem in MiB, and of what: `n` of each node, `c` of each CPU, otherwise of the whole job.

    Raises:
        BadInput: it is no memory.
    """
    return memory_mb(text), text[-1] if text[-1:] in ("n", "c") else ""


def moment_s(text: str) -> float:
    """`2026-11-27T20:00:00` or seconds since 1970, as seconds. A local time is read as if it were UTC.

    Raises:
        BadInput: it is none of these.
    """
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"time {text[:20]!r}: valid are times as 2026-11-27T20:00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def duration_s(text: str) -> float:
    """`3-00:00:00`, `1:30` in seconds.

    Raises:
        BadInput: it is no such time.
    """
    found = _ELAPSED.fullmatch(text)
    if not found:
        raise BadInput(f"time {text[:20]!r}: valid are times as 3-00:00:00")
    parts = {name: int(value or 0) for name, value in found.groupdict().items()}
    return ((parts["days"] * 24 + parts["hours"]) * 60 + parts["minutes"]) * 60 + parts["seconds"]


def time_limit_s(text: str) -> float:
    """Timelimit, or TimelimitRaw in minutes, in seconds; 0 for UNLIMITED, Partition_Limit and what is not known."""
    if text.isascii() and text.isdecimal():
        return 60.0 * int(text)
    try:
        return duration_s(text)
    except BadInput:
        return 0.0
