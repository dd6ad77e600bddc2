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

from slurm_sns.coverage.sacct import (
    COMMAND,
    STEP,
    SacctHeader,
    duration_s,
    gres_in,
    header_in,
    job_number,
    requested_memory_mb,
    said,
    tres,
)
from slurm_sns.coverage.sbatch_options import submission
from slurm_sns.errors import BadInput
from slurm_sns.submit.submission import Submission

#: One event of the Slurm simulator of the University at Buffalo.
EVENT = re.compile(r"-dt\s+(?P<submit>[0-9.]+) -e submit_batch_job \| -sim-walltime\s+(?P<run>[0-9.]+) (?P<options>.*)")
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
    header = header_in(first) or SacctHeader("|", ())
    delimiter, columns = header.delimiter, frozenset(header.columns)
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
    if job_number(row["JobID"]) == STEP:
        return None
    asked = _asked(row)
    cpus = int(row.get("AllocCPUS") or tres(row.get("AllocTRES")).get("cpu") or 0)
    core_hours = cpus * _elapsed_s(row) / 3600
    if not math.isfinite(core_hours):
        raise BadInput("its times are no numbers")
    return LoggedJob(row["User"], asked, core_hours)


def _asked(row: Mapping[str, str]) -> Submission:
    """What the job asked for: by its command line where there is one, and by what sacct shows of every job."""
    command, *words = shlex.split(said(row, "SubmitLine")) or ["sbatch"]
    program = command.rpartition("/")[2]
    asked = submission(words) if program == "sbatch" else Submission(batch=program not in ("srun", "salloc"))
    if program == "scrontab":
        asked = replace(asked, cron=True)
    shown: dict[str, object] = {"partition": said(row, "Partition") or asked.partition}
    if constraint := said(row, "Constraints"):
        shown["features"] = constraint
    if reservation := said(row, "Reservation"):
        shown["reservation"] = reservation
    if nodes := said(row, "ReqNodes"):
        shown["req_nodes"] = "" if nodes.isdecimal() else nodes
    if not (asked.tres_per_node or asked.tres_per_task or asked.tres_per_job or asked.tres_per_socket):
        shown["tres_per_node"] = _gres(row.get("ReqTRES"))
    if "+" in row["JobID"]:
        shown["het_job_offset"] = 0
    if asked.min_nodes is None and said(row, "NNodes").isdecimal():
        shown["min_nodes"] = int(row["NNodes"])
    if asked.min_mem_per_node is None and asked.min_mem_per_cpu is None and (memory := said(row, "ReqMem")):
        amount_mb, of = requested_memory_mb(memory)
        parts = max(1, int(row["NNodes"])) if not of and said(row, "NNodes").isdecimal() else 1
        shown["min_mem_per_cpu" if of == "c" else "min_mem_per_node"] = -(-amount_mb // parts)
    return replace(asked, **shown)  # type: ignore[arg-type]  # each has the type of its field


def _gres(text: str | None) -> str:
    """The generic resources among TRES, as if a job asked for them by node; GPUs by type where it names one."""
    gres, amounts = gres_in(text), tres(text)
    has_type = any(each.startswith("gres/gpu:") for each in gres)
    return ",".join(f"{each}={amounts[each]}" for each in gres if not (has_type and each == "gres/gpu"))


def _elapsed_s(row: Mapping[str, str]) -> float:
    if raw := said(row, "ElapsedRaw"):
        return float(raw)
    return duration_s(said(row, "Elapsed") or "0:0")
