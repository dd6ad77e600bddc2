"""The jobs of a site's log: what `sacct -P` prints, or the events of the Slurm simulator of the University at Buffalo.

Of sacct any columns do, as long as State or ElapsedRaw, AllocCPUS (or AllocTRES) and one of SubmitLine, ReqTRES,
Constraints, NNodes are among them: what several columns say of a job is put together. Steps, and records that cannot be
read, are left out; the latter are counted.
"""

import csv
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from slurm_sns.coverage.sbatch_options import memory_mb, submission
from slurm_sns.errors import BadInput
from slurm_sns.submit.submission import Submission

#: One event of the Slurm simulator of the University at Buffalo.
EVENT = re.compile(r"-dt\s+(?P<submit>[0-9.]+) -e submit_batch_job \| -sim-walltime\s+(?P<run>[0-9.]+) (?P<options>.*)")
_ELAPSED = re.compile(
    r"(?:(?P<days>[0-9]+)-)?(?:(?P<hours>[0-9]+):)?(?P<minutes>[0-9]+):(?P<seconds>[0-9]+)(?:\.[0-9]*)?"
)
#: TRES that are no gres: what a job always has, and what follows from it.
_PLAIN_TRES = frozenset({"cpu", "mem", "node", "billing", "energy", "vmem", "pages", "fs/disk"})
_NOTHING = frozenset({"", "None", "Unknown", "(null)", "N/A"})
#: What makes such a log. A constraint or a command line may have a `|`, so a tab stands between the columns.
COMMAND = (
    "sacct -aPX --delimiter=$'\\t' -S now-7days -o "
    "JobID,User,Partition,State,ElapsedRaw,AllocCPUS,NNodes,ReqTRES,Constraints,Reservation,SubmitLine"
)
_NEEDS = ("JobID", "User")
_SHOWS = ("SubmitLine", "ReqTRES", "AllocTRES", "Constraints", "NNodes")


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """What one job (of an array: one task) asked for, as far as the log shows it; its core-hours, 0 if it never ran."""

    user: str
    asked: Submission
    core_hours: float


@dataclass
class JobLog:
    """The jobs of a log. `unread` counts the records that were left out, by reason; `columns` are those of sacct."""

    jobs: list[LoggedJob] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    columns: frozenset[str] = frozenset()


def read_log(name: str, text: str) -> JobLog:
    """The jobs of a log in any of the forms.

    Raises:
        BadInput: it has none of them, or no job is left.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    found = _events(text.splitlines()) if EVENT.fullmatch(first.strip()) else _sacct(name, first, text.splitlines())
    if not found.jobs:
        raise BadInput(f"{name}: no job in it: {', '.join(found.unread) or 'it has no records'}")
    return found


def _events(lines: Iterable[str]) -> JobLog:
    log = JobLog()
    for line in filter(str.strip, lines):
        found = EVENT.fullmatch(line.strip())
        try:
            if found is None:
                raise BadInput("it is no event")  # noqa: TRY301  one place counts what is left out
            words = shlex.split(found["options"])
            asked = submission(words)
            user = next((word.partition("=")[2] for word in words if word.startswith("--uid=")), "")
            log.jobs.append(LoggedJob(user, asked, (asked.num_tasks or 1) * float(found["run"]) / 3600))
        except (BadInput, ValueError, OverflowError) as problem:
            log.unread[f"a line cannot be read ({problem})"] += 1
    return log


def _sacct(name: str, first: str, lines: list[str]) -> JobLog:
    delimiter = "\t" if "\t" in first else "|"
    columns = frozenset(first.split(delimiter))
    missing = [each for each in _NEEDS if each not in columns]
    if missing or not columns & set(_SHOWS):
        raise BadInput(
            f"{name}: no output of sacct -P with the columns {', '.join(_NEEDS)} and one of {', '.join(_SHOWS)}, "
            f"and no events; try: {COMMAND}"
        )
    log = JobLog(columns=columns)
    csv.field_size_limit(max(csv.field_size_limit(), *map(len, lines)))
    for row in csv.DictReader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE):
        try:
            if None in row:
                raise BadInput(f"it has more columns than the first line: is {delimiter!r} part of one?")  # noqa: TRY301
            job = _job_of(row)
            if job is not None:
                log.jobs.append(job)
        except (BadInput, ValueError, TypeError, OverflowError) as problem:
            log.unread[f"a record cannot be read ({str(problem)[:60]})"] += 1
    return log


def _job_of(row: Mapping[str, str]) -> LoggedJob | None:
    """The job of one record of sacct; None for a step."""
    number = row["JobID"]
    if "." in number:
        return None
    asked = _asked(row)
    cpus = int(row.get("AllocCPUS") or _tres(row.get("AllocTRES")).get("cpu") or 0)
    core_hours = cpus * _elapsed_s(row) / 3600
    if not math.isfinite(core_hours):
        raise BadInput("its times are no numbers")
    return LoggedJob(row["User"], asked, core_hours)


def _asked(row: Mapping[str, str]) -> Submission:
    """What the job asked for: by its command line where there is one, and by what sacct shows of every job."""
    command, *words = shlex.split(_said(row, "SubmitLine")) or ["sbatch"]
    program = command.rpartition("/")[2]
    asked = submission(words) if program == "sbatch" else Submission(batch=program not in ("srun", "salloc"))
    if program == "scrontab":
        asked = replace(asked, cron=True)
    shown: dict[str, object] = {"partition": _said(row, "Partition") or asked.partition}
    if constraint := _said(row, "Constraints"):
        shown["features"] = constraint
    if reservation := _said(row, "Reservation"):
        shown["reservation"] = reservation
    if nodes := _said(row, "ReqNodes"):
        shown["req_nodes"] = "" if nodes.isdecimal() else nodes
    gres = [each for each in _tres(_said(row, "ReqTRES")) if each not in _PLAIN_TRES and not each.startswith("license")]
    if gres and not asked.tres_per_node:
        shown["tres_per_node"] = ",".join(gres)
    if "+" in row["JobID"]:
        shown["het_job_offset"] = 0
    if asked.min_nodes is None and _said(row, "NNodes").isdecimal():
        shown["min_nodes"] = int(row["NNodes"])
    if asked.min_mem_per_node is None and asked.min_mem_per_cpu is None and (memory := _said(row, "ReqMem")):
        per_cpu = memory.endswith("c")
        shown["min_mem_per_cpu" if per_cpu else "min_mem_per_node"] = memory_mb(memory)
    return replace(asked, **shown)  # type: ignore[arg-type]  # each has the type of its field


def _said(row: Mapping[str, str], column: str) -> str:
    value = row.get(column) or ""
    return "" if value in _NOTHING else value


def _tres(text: str | None) -> dict[str, str]:
    """`cpu=4,gres/gpu=1` by name."""
    return {name: amount for name, has, amount in (each.partition("=") for each in (text or "").split(",")) if has}


def _elapsed_s(row: Mapping[str, str]) -> float:
    if raw := _said(row, "ElapsedRaw"):
        return float(raw)
    return duration_s(_said(row, "Elapsed") or "0:0")


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
