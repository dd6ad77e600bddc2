"""What `sns seff` shows: asked against used in a table for one job, and one line for each of several."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from slurm_sns.cli.live.terminal import duration, new_table, plain
from slurm_sns.coverage.sacct import ENDED
from slurm_sns.node_lists import folded

if TYPE_CHECKING:
    from slurm_sns.cli.json_types import JobUseValues, MemoryBoundsValues

#: Bounds this near to each other are one number for a reader.
ALIKE = 1.05
#: Why there is no memory in accounting.
NO_MEMORY = "not recorded (JobAcctGatherType, or too short)"


def parts(jobs: "Sequence[JobUseValues]") -> Iterator[RenderableType]:
    """Tables and sentences, in the order in which they are printed."""
    if len(jobs) != 1:
        yield _lines(jobs)
        for job in jobs:
            yield from (f"{plain(job['job'])}: {plain(each)}" for each in _sentences(job))
        return
    [job] = jobs
    yield f"[bold]job {plain(job['job'])}[/]: {plain(_history(job))}"
    yield _asked_and_used(job)
    yield from map(plain, _sentences(job))


def _history(job: "JobUseValues") -> str:
    """`COMPLETED on c[1-2], started 12 s after its submission`."""
    where = f" on {folded(job['nodes'])}" if job["nodes"] else ""
    if job["start_s"] is None or job["submit_s"] is None:
        return f"{job['state']}{where}"
    return f"{job['state']}{where}, started {duration(job['start_s'] - job['submit_s'])} after its submission"


def _asked_and_used(job: "JobUseValues") -> RenderableType:
    several = len(job["nodes"]) > 1
    shown = new_table("", "ASKED", "USED")
    asked = _gib(job["asked_mb"]) + (" on each node" if several else "")
    shown.add_row("memory", asked, _used(job) + (" on the fullest node" if several and job["memory"] else ""))
    shown.add_row("CPUs", _number(job["cpus"]), _busy(job))
    shown.add_row("time", "no limit" if job["limit_s"] is None else duration(job["limit_s"]), _ran(job))
    for name, given in (("cache ways", job["ways"]), ("GB/s", job["bandwidth_gbps"])):
        if given:
            # What agents measure goes into the program's profile; of one run nothing is kept.
            named = f"see its program: sns profile show {job['program']}"
            told = named if job["program"] else "not recorded of a single job"
            shown.add_row(name, f"{given} given on each node", plain(told))
    return shown


def _lines(jobs: "Sequence[JobUseValues]") -> RenderableType:
    headings = ("JOBID", "STATE", "RAN", "LIMIT", "CPUS", "BUSY", "MEMORY", "USED")
    shown = new_table(*headings, right={"JOBID", "RAN", "LIMIT", "CPUS", "MEMORY"})
    for job in jobs:
        limit = "-" if job["limit_s"] is None else duration(job["limit_s"])
        cells = (job["job"], job["state"], _ran(job), limit, _number(job["cpus"]), _busy(job))
        shown.add_row(*map(plain, (*cells, _gib(job["asked_mb"]), _used(job))))
    return shown


def _sentences(job: "JobUseValues") -> Iterator[str]:
    if not job["memory"] and job["state"] == "RUNNING":
        yield "it runs: accounting has its use after its end; until then: sstat -a -j " + str(job["job_id"])
    yield from job["advice"]
    won = job["smaller_request"]
    if won is None or job["enough_mb"] is None:
        return
    asked = f"with {_gib(job['enough_mb'])} on each node"
    if won["earlier_s"] is not None:
        yield f"{asked} it would have started about {duration(won['placed_s'] - won['earlier_s'])} sooner"
    elif won["cycles"]:
        yield f"{asked} it would not have started sooner (in {won['cycles']} recorded cycles in which it waited)"


def _used(job: "JobUseValues") -> str:
    memory = job["memory"]
    if memory is None:
        return NO_MEMORY if job["state"] in ENDED else "not known yet"
    share = f", {memory['about_mb'] / job['asked_mb']:.0%}" if job["asked_mb"] else ""
    return f"{_bounds(memory)}{share}"


def _bounds(memory: "MemoryBoundsValues") -> str:
    """`1.5 GiB`, or `about 3 GiB (at least 2 GiB, at most 4 GiB)`."""
    least, about, most = memory["at_least_mb"], memory["about_mb"], memory["at_most_mb"]
    if most <= least * ALIKE:
        return _gib(most)
    return f"about {_gib(about)} (at least {_gib(least)}, at most {_gib(most)})"


def _busy(job: "JobUseValues") -> str:
    if job["busy_cpus"] is None or not job["cpus"]:
        return "not recorded" if job["state"] in ENDED and job["ran_s"] else "-"
    return f"{job['busy_cpus']:.2g} busy, {job['busy_cpus'] / job['cpus']:.0%}"


def _ran(job: "JobUseValues") -> str:
    return "-" if job["ran_s"] is None else duration(job["ran_s"])


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _gib(mb: int | None) -> str:
    if mb is None:
        return "-"
    return f"{mb} MiB" if mb < 1024 else f"{mb / 1024:.3g} GiB"
