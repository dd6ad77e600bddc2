"""What `sns seff` shows: asked against used in a table for one job, and one line for each of several."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import RenderableType

from slurm_sns.cli.live.measured_use import NOT_ASKED, NOT_MEASURED
from slurm_sns.cli.live.terminal import new_table, plain
from slurm_sns.coverage.sacct import ENDED
from slurm_sns.durations import duration
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
    for name, given, used in (
        ("cache ways", job["ways"], _ways(job)),
        ("GB/s", job["bandwidth_gbps"], _measured(job, "bandwidth_gbps")),
        ("IPC", 0, _measured(job, "ipc")),
    ):
        is_told = name == "IPC" and job["not_measured"] not in ("", NOT_ASKED)
        if given or job["measured"] or is_told:
            shown.add_row(name, f"{given} given on each node" if given else "-", used)
    return shown


def _ways(job: "JobUseValues") -> str:
    seen = job["measured"]
    if seen is None:
        return job["not_measured"]
    least, most = seen["least_ways"], seen["most_ways"]
    return f"had {least}" + (f" to {most}" if most > least else "") if most else "had none of its own"


def _measured(job: "JobUseValues", quantity: Literal["bandwidth_gbps", "ipc"]) -> str:
    """The mean over the time that was measured."""
    seen = job["measured"]
    if seen is None:
        return job["not_measured"]
    mean = seen[quantity]
    if mean is None:
        return NOT_MEASURED
    return f"{mean:.3g} on average" + (" on a node" if len(seen["nodes"]) > 1 else "")


def _lines(jobs: "Sequence[JobUseValues]") -> RenderableType:
    headings = ("JOBID", "STATE", "RAN", "LIMIT", "CPUS", "BUSY", "MEMORY", "USED")
    is_measured = any(job["measured"] for job in jobs)
    more = ("IPC", "GB/S") if is_measured else ()
    shown = new_table(*headings, *more, right={"JOBID", "RAN", "LIMIT", "CPUS", "MEMORY", "IPC", "GB/S"})
    for job in jobs:
        limit = "-" if job["limit_s"] is None else duration(job["limit_s"])
        cells = (job["job"], job["state"], _ran(job), limit, _number(job["cpus"]), _busy(job))
        seen = job["measured"] or {"ipc": None, "bandwidth_gbps": None}
        means = (seen["ipc"], seen["bandwidth_gbps"]) if is_measured else ()
        measured = ("-" if mean is None else f"{mean:.3g}" for mean in means)
        shown.add_row(*map(plain, (*cells, _gib(job["asked_mb"]), _used(job), *measured)))
    return shown


def _sentences(job: "JobUseValues") -> Iterator[str]:
    if not job["memory"] and job["state"] == "RUNNING":
        yield "it runs: accounting has its use after its end; until then: sstat -a -j " + str(job["job_id"])
    yield from _neighbours(job)
    yield from job["advice"]
    won = job["smaller_request"]
    if won is None or job["enough_mb"] is None:
        return
    asked = f"with {_gib(job['enough_mb'])} on each node"
    if won["earlier_s"] is not None:
        yield f"{asked} it would have started about {duration(won['placed_s'] - won['earlier_s'])} sooner"
    elif won["cycles"]:
        yield f"{asked} it would not have started sooner (in {won['cycles']} recorded cycles in which it waited)"


def _neighbours(job: "JobUseValues") -> Iterator[str]:
    """What other jobs on its nodes cost it, where that was measured."""
    seen = job["measured"]
    if seen is None or seen["neighbours_cost"] is None:
        return
    told = f"its IPC was {seen['ipc_beside']:.3g} beside other jobs, {seen['ipc_alone']:.3g} alone on the node"
    cost = round(seen["neighbours_cost"] * 100)
    yield f"{told}: they cost it {cost}%" if cost > 0 else f"{told}: they cost it nothing"


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
