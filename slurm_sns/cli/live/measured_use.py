"""What agents have measured of jobs, asked of the scheduler, and what it comes to over the nodes of a job.

The neighbours' cost compares a run with itself: its IPC beside other jobs with its IPC alone on the same node. Nothing
else is compared, so it is known only of a run that was both for a while.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from slurm_sns.errors import SnsError, Unreachable

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import MeasuredUseValues
    from slurm_sns.cli.live.job_use import JobUse
    from slurm_sns.scheduler.answers.answer_types import MeasuredAnswer, MeasuredOnNode

#: So many jobs are asked about at once: the scheduler takes no more.
JOBS_AT_ONCE = 300
#: Shorter times are not compared: a program's beginning is not like its middle.
LEAST_COMPARED_S = 10.0
#: Why there is nothing, in the words that are shown.
NO_AGENTS = "not measured: no agent on the nodes"
NOT_YET = "not known yet: agents report after its end"
NOT_MEASURED = "not measured"
NOT_ASKED = "not known: no scheduler answers here"


class Measured(NamedTuple):
    """What was measured of a job; or None, and a few words on why."""

    use: "MeasuredUseValues | None"
    why_not: str


def measured(jobs: "Collection[JobUse]", config: Path) -> Mapping[int, Measured]:
    """What was measured of those of these jobs that have started, by job id."""
    from slurm_sns.cli.live.asking import asker

    found: dict[int, Measured] = {}
    begun = [job for job in jobs if job.start_s is not None]
    for first in range(0, len(begun), JOBS_AT_ONCE):
        part = begun[first : first + JOBS_AT_ONCE]
        try:
            answer = asker(config, {"command": "measured", "job_ids": [job.job_id for job in part]})()
        except SnsError as problem:
            away = isinstance(problem, Unreachable) or not os.access(config, os.F_OK)  # such as a login node
            why = NOT_ASKED if away else f"not known: {problem}"
            return {**dict.fromkeys((job.job_id for job in begun), Measured(None, why)), **found}
        found |= {job.job_id: _of_job(job, answer) for job in part}
    return found


def _of_job(job: "JobUse", answer: "MeasuredAnswer") -> Measured:
    nodes = answer["jobs"].get(str(job.job_id), [])
    # One that ended before this run began was an earlier run, or an earlier job with this number.
    of_this_run = [each for each in nodes if each["ended_s"] >= (job.start_s or 0.0)]
    if of_this_run:
        return Measured(over_nodes(of_this_run), "")
    if not answer["has_agents"]:
        return Measured(None, NO_AGENTS)
    return Measured(None, NOT_MEASURED if job.has_ended else NOT_YET)


def over_nodes(nodes: "Collection[MeasuredOnNode]") -> "MeasuredUseValues":
    """The means over the nodes, each weighed by the seconds in which it was measured."""
    compared = [
        (each["ipc_alone"], each["ipc_beside"], each["seconds"])
        for each in nodes
        if LEAST_COMPARED_S <= each["alone_s"] <= each["seconds"] - LEAST_COMPARED_S
    ]
    both = [(alone, beside, seconds) for alone, beside, seconds in compared if alone and beside is not None]
    ipc_alone = _mean((alone, seconds) for alone, _, seconds in both)
    ipc_beside = _mean((beside, seconds) for _, beside, seconds in both)
    return {
        "nodes": list(nodes),
        "least_ways": min(each["least_ways"] for each in nodes),
        "most_ways": max(each["most_ways"] for each in nodes),
        "bandwidth_gbps": _mean((each["bandwidth_gbps"], each["seconds"]) for each in nodes),
        "ipc": _mean((each["ipc"], each["seconds"]) for each in nodes),
        "ipc_alone": ipc_alone,
        "ipc_beside": ipc_beside,
        "neighbours_cost": 1 - ipc_beside / ipc_alone if ipc_alone and ipc_beside is not None else None,
    }


def _mean(weighed: Iterable[tuple[float | None, float]]) -> float | None:
    known = [(value, seconds) for value, seconds in weighed if value is not None]
    total_s = fsum(seconds for _, seconds in known)
    return fsum(value * seconds for value, seconds in known) / total_s if total_s else None
