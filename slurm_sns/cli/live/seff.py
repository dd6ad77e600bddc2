"""`sns seff JOBID...`: what jobs of yours asked for and what they used, from accounting, and what to ask for next time.

It needs nothing but `sacct`. On a host where the scheduler answers it also says what agents have measured of a job, and
when it would have started with the memory that is enough for it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config
from slurm_sns.errors import BadInput, SnsError

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import JobUseValues, MemoryBoundsValues
    from slurm_sns.cli.live.job_use import JobUse
    from slurm_sns.cli.live.measured_use import Measured
    from slurm_sns.cli.live.step_memory import MemoryBounds

#: At most so many questions to the scheduler in one call: each of them plans cycles of the past again.
MOST_QUESTIONS = 3


def seff(
    jobs: Annotated[
        list[str], typer.Argument(metavar="JOBID...", help="A job's number, an array's, or a task of one (41_7).")
    ],
    config: Config = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """What jobs of yours asked for and used: memory, CPUs, time, what agents measured; what to ask for the next time.

    Memory is that of the fullest node. Accounting knows the largest task of each step, so it is a number only for one
    task, and otherwise a guess between two bounds. Steps that ran at the same time add up.
    """
    from slurm_sns.cli.live import seff_view, terminal
    from slurm_sns.cli.live.job_use import has_smaller_request
    from slurm_sns.cli.live.measured_use import measured

    found = _own(_asked(jobs), config)
    _complain_of_missing(jobs, found)
    savers = [each for each in found if each.placed and has_smaller_request(each)][:MOST_QUESTIONS]
    won = {each.job_id: _smaller_request(each, config) for each in savers}
    seen = measured(found, config)
    values = [_values(each, won.get(each.job_id), seen.get(each.job_id)) for each in found]
    if as_json:
        print(json.dumps(values, indent=2))
        return
    for part in seff_view.parts(values):
        terminal.show(part)


def _asked(jobs: Sequence[str]) -> "list[JobUse]":
    """What accounting has of these jobs, whoever owns them.

    Raises:
        BadInput: one is no job's number.
        SnsError: sacct cannot be run, or does not answer.
    """
    from slurm_sns.cli.live.asking import named
    from slurm_sns.cli.live.job_use import COLUMNS, DELIMITER, VARIABLES, jobs_of
    from slurm_sns.slurm.api import run

    for job in jobs:
        named(job)
    columns = [f"--format={','.join(COLUMNS)}", "-P", f"--delimiter={DELIMITER}"]
    return jobs_of(run("sacct", f"--jobs={','.join(jobs)}", *columns, variables=VARIABLES))


def _own(jobs: "Sequence[JobUse]", config: Path) -> "list[JobUse]":
    """The jobs of the caller; all of them for root and SlurmUser. sacct itself may show those of others."""
    user = os.geteuid()
    is_admin = user in _admins(config)
    return [each for each in jobs if is_admin or each.user_id == user]


def _admins(config: Path) -> frozenset[int]:
    from slurm_sns.cli.live.process import admins
    from slurm_sns.config import configuration

    try:
        return admins(configuration.load(config))
    except SnsError:  # no configuration on this host, or one that only admins may read
        return frozenset({0})


def _complain_of_missing(jobs: Sequence[str], found: "Sequence[JobUse]") -> None:
    """Say in one line which jobs are not there.

    Raises:
        BadInput: none of them is.
    """
    from slurm_sns.cli.live.asking import named

    missing = [job for job in jobs if not any(each.is_of(**named(job)) for each in found)]
    if not missing:
        return
    told = f"job {', '.join(missing)}: no such job in accounting, or not yours"
    if not found:
        raise BadInput(told)
    typer.echo(f"sns: {told}", err=True)


def _smaller_request(job: "JobUse", config: Path) -> Any:
    """The scheduler's answer; None where it knows none, or no scheduler answers here."""
    from slurm_sns.cli.live.asking import asker

    request = {"command": "smaller-request", "job_id": job.job_id, "memory_mb": job.enough_mb}
    try:
        return asker(config, request)()
    except SnsError:  # a login node without the scheduler's socket, or a job that it has forgotten
        return None


def _values(job: "JobUse", smaller_request: Any, seen: "Measured | None") -> "JobUseValues":
    from slurm_sns.cli.live.job_use import advice

    return {
        "job": job.label,
        "job_id": job.job_id,
        "state": job.state,
        "nodes": list(job.nodes),
        "submit_s": job.submit_s,
        "start_s": job.start_s,
        "end_s": job.end_s,
        "ran_s": job.ran_s,
        "limit_s": job.limit_s,
        "cpus": job.cpus,
        "busy_cpus": job.busy_cpus,
        "asked_mb": job.asked_mb,
        "memory": _bounds(job.memory),
        "steps": [
            {
                "step": each.name,
                "state": each.state,
                "nodes": list(each.nodes),
                "tasks": each.tasks,
                "largest_task_mb": each.largest_mb,
                "memory": _bounds(each.memory),
            }
            for each in job.steps
        ],
        "program": job.program,
        "ways": job.ways,
        "bandwidth_gbps": job.bandwidth_gbps,
        "measured": None if seen is None else seen.use,
        "not_measured": "" if seen is None else seen.why_not,
        "enough_mb": job.enough_mb,
        "smaller_request": smaller_request,
        "advice": list(advice(job)),
    }


def _bounds(memory: "MemoryBounds | None") -> "MemoryBoundsValues | None":
    if memory is None:
        return None
    least_mb, about_mb, most_mb = memory
    return {"at_least_mb": least_mb, "about_mb": about_mb, "at_most_mb": most_mb}
