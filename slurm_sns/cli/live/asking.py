"""`sns status`, `sns explain JOBID`, and how any command asks the running scheduler."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from slurm_sns.cli.live import scheduler_socket
from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config
from slurm_sns.errors import BadInput

#: Ten digits are enough for every job number of Slurm.
_JOB = re.compile(r"([1-9][0-9]{0,9})(?:_([0-9]{1,10}))?")

#: The default of `watch` of procps.
WATCH_SECONDS = 2.0

Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Repeat until Ctrl-C; on a terminal the page is updated in place.")
]
SecondsOption = Annotated[
    float | None,
    typer.Argument(
        metavar="SECONDS", min=0.1, max=3600, help=f"Seconds between updates with --watch; default: {WATCH_SECONDS:g}."
    ),
]


def status(
    seconds: SecondsOption = None, *, watch: Watch = False, config: Config = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """The scheduler's state: mode, heartbeat, jobs waiting and running, how full the nodes are, what is wrong."""
    from slurm_sns.cli.live import status_view
    from slurm_sns.cli.live.watch import Look, show

    look = Look(status_view.page, status_view.plain_lines)
    show(asker(config, {"command": "status"}), look, seconds, watch=watch, as_json=as_json)


def explain(
    job: Annotated[str, typer.Argument(metavar="JOBID", help="A job's number, or a task of an array (41_7).")],
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Why a job was placed where it was, or why not yet: what each heuristic chose, what was missing where.

    For a pass-through job, which Slurm alone schedules, it says why slurm_sns leaves it to Slurm. Users can ask about
    their own jobs, root and SlurmUser about any job.
    """
    from slurm_sns.cli.live import terminal

    answer = asker(config, {"command": "explain", **named(job)})()
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    for part in terminal.explanation(answer, place_in_queue(answer), now_s=time.time()):
        terminal.show(part)


def place_in_queue(answer: dict[str, Any]) -> str:
    """How a waiting job's place in the queue comes about; empty for a job that is not planned."""
    if answer["order"] is None:
        return ""
    if answer["order"] != "slurm":
        return "the queue is ordered by the use that each account makes of its share now (queue_order: fair-now)"
    from slurm_sns.slurm.priority import terms

    return f"the queue is ordered by Slurm's priorities (queue_order: slurm); {terms(answer['job_id'])}"


def named(job: str) -> dict[str, int]:
    """`41` or `41_7` as fields of the request."""
    found = _JOB.fullmatch(job)
    if found is None:
        raise BadInput(f"JOBID {job!r}: valid are a job's number, as 41, and a task of an array, as 41_7")
    return {name: int(number) for name, number in zip(("job_id", "task"), found.groups(), strict=True) if number}


def asker(config: Path, request: dict[str, Any]) -> Callable[[], Any]:
    """A function that asks the scheduler of this configuration.

    That function raises Unreachable if no scheduler answers, with the age of the last heartbeat. If the scheduler
    answers with an error, it raises that as SnsError (BadInput when the request was at fault).
    """
    from slurm_sns.errors import Unreachable
    from slurm_sns.sockets.unix_socket import ask

    socket = scheduler_socket.path(config)

    def asked() -> Any:
        try:
            return ask(socket, request)
        except Unreachable as problem:
            seen = _last_sign_of_life(socket.with_name("heartbeat"))
            raise Unreachable(f"{problem}{seen}; while it does not run, jobs pass through to Slurm") from None

    return asked


def _last_sign_of_life(heartbeat: Path) -> str:
    """How long ago the scheduler wrote its heartbeat, by the file's time, which every user may read."""
    from slurm_sns.durations import duration

    try:
        age_s = time.time() - heartbeat.stat().st_mtime
    except OSError:
        return ""
    return f"; its last sign of life was {duration(age_s)} ago"


def interval_s(config: Path) -> float:
    """The seconds from cycle to cycle; the default if only admins may read the configuration."""
    from slurm_sns.config import configuration
    from slurm_sns.config.settings import SchedulerSection

    if scheduler_socket.is_for_admins(config):
        return SchedulerSection().interval_s
    return configuration.load(config).scheduler.interval_s
