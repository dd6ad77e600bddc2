"""The report on the store of a scheduler that sends nothing: what it planned to start, and what the store cannot say.

The store has no starts of Slurm. Its snapshots show jobs that still waited some time after their start was planned;
that is all it says of what Slurm did. For more there are `sns observe` and accounting.

Of a scheduler in the mode enforce there is a page where it restarts jobs, or lets jobs share cores.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from slurm_sns.cli.installations import CONTROLLER, needs
from slurm_sns.cli.json_types import PlannedStartValues, ReportJson, StoreReport
from slurm_sns.cli.live.report_of_restarts import restart_page, restart_values
from slurm_sns.cli.live.report_of_sharing import sharing_page, sharing_values
from slurm_sns.cli.live.terminal import zoned_clock
from slurm_sns.durations import duration
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.node_lists import folded
from slurm_sns.report.document import ChartPoint, ReportChart, ReportPage, ReportSection, ReportTable

if TYPE_CHECKING:
    from slurm_sns.config.configuration import Config
    from slurm_sns.store.recorded_plans import RecordedPlans, RecordedStart

TITLE = "What the scheduler has planned"
#: So many snapshots are read, evenly over the kept ones: each may hold ten thousand jobs.
MOST_SNAPSHOTS = 60
MOST_NAMED, MOST_POINTS = 10, 120
SQLITE = "sqlite:///"

KEPT = (
    "The store keeps what the scheduler decided, and no start, end or cancellation by Slurm. It does not keep "
    "partitions either, nor in which mode a plan was made: plans of an earlier enforce are among these."
)
COMPARISON = (
    "For the comparison, let sns observe --config run for some days, and call sns report with its directory. Or join "
    "the plans of --json with the starts that sacct -aXnP -o JobID,Start prints."
)


def report_of_store(config: Path) -> tuple[ReportPage, ReportJson]:
    """The page and the JSON of the plans in the store of this configuration; in enforce of restarts and shared cores.

    Raises:
        BadInput: the caller is not SlurmUser, there is no store, or the mode is enforce, no job is restarted and none
            shares cores.
        SnsError: the store does not answer, or cannot be read.
    """
    needs("sns report --config", CONTROLLER)
    from slurm_sns.cli.live.process import require_slurm_user
    from slurm_sns.config.configuration import load
    from slurm_sns.store.database import open_store
    from slurm_sns.store.recorded_plans import RecordedPlans

    found = load(config)
    if found.mode == "enforce" and found.rescheduling.restart == "off" and found.sharing_rules is None:
        raise BadInput(
            f"{config}: mode is enforce: the starts in its store were sent, and accounting has them; valid: observe, "
            "advise, rescheduling.restart: propose, or a partition in sharing.partitions"
        )
    require_slurm_user(found)
    url = found.database_url
    if url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).is_file():
        raise BadInput(f"{config}: there is no store at {url}; valid: that of a scheduler that has run")
    if found.mode == "enforce":
        return _of_enforce(found)
    values = store_values(RecordedPlans(open_store(url)), found)
    page = page_of(values)
    return page, {"about": "store", "title": page.title, "summary": list(page.summary), "store": values}


def _of_enforce(config: "Config") -> tuple[ReportPage, ReportJson]:
    """Restarts, shared cores, or both on one page."""
    from slurm_sns.slurm.state import user_name
    from slurm_sns.store.database import open_store
    from slurm_sns.store.history import StoredHistory
    from slurm_sns.store.recorded_plans import RecordedPlans

    engine = open_store(config.database_url)
    pages: list[ReportPage] = []
    values: ReportJson = {"about": "sharing", "title": "", "summary": []}
    if config.rescheduling.restart != "off":
        values["about"], values["restarts"] = "restarts", restart_values(RecordedPlans(engine).restarts(), user_name)
        pages.append(restart_page(values["restarts"]))
    if (rules := config.sharing_rules) is not None:
        values["sharing"] = sharing_values(StoredHistory(engine), rules)
        pages.append(sharing_page(values["sharing"]))
    page = ReportPage(
        "; ".join(each.title for each in pages),
        [sentence for each in pages for sentence in each.summary],
        [section for each in pages for section in each.sections],
    )
    return page, {**values, "title": page.title, "summary": list(page.summary)}


def store_values(recorded: "RecordedPlans", config: "Config") -> StoreReport:
    """The figures."""
    plans: dict[int, PlannedStartValues] = {}
    starts, began_s, ended_s = 0, None, None
    for start in recorded.starts():
        starts += 1
        began_s, ended_s = start.at_s if began_s is None else began_s, start.at_s
        if start.job_id not in plans:
            plans[start.job_id] = _planned(start)
        plans[start.job_id]["plans"] += 1
    snapshots, unread = recorded.snapshots(), Counter[str]()
    read = 0
    for cycle in _spread(snapshots, MOST_SNAPSHOTS):
        try:
            at_s, waiting = recorded.waiting(cycle)
        except SnsError as problem:
            unread[str(problem)] += 1
            continue
        read += 1
        for job_id in waiting & plans.keys():
            plan = plans[job_id]
            if at_s > plan["first_s"]:
                plan["waited_on_s"] = max(plan["waited_on_s"] or 0.0, at_s - plan["first_s"])
    values = list(plans.values())
    return {
        "mode": config.mode,
        "policy": config.policy,
        "began_s": began_s,
        "ended_s": ended_s,
        "cycles": recorded.count_cycles(),
        "jobs": len(plans),
        "starts": starts,
        "by_size": dict(Counter(map(_size, values)).most_common()),
        "by_heuristic": dict(Counter(each["heuristic"] or "none" for each in values).most_common()),
        "snapshots": len(snapshots),
        "read": read,
        "unread": dict(unread),
        "plans": values,
    }


def _planned(start: "RecordedStart") -> PlannedStartValues:
    return {
        "job": start.label,
        "first_s": start.at_s,
        "plans": 0,
        "nodes": folded(start.nodes),
        "heuristic": start.heuristic,
        "cpus": start.cores,
        "waited_on_s": None,
    }


def _spread(cycles: list[int], most: int) -> Iterator[int]:
    """At most so many of them, evenly, with the newest."""
    count = min(most, len(cycles))
    for at in range(count):
        yield cycles[(at + 1) * len(cycles) // count - 1]


def _size(plan: PlannedStartValues) -> str:
    if "[" in plan["nodes"] or "," in plan["nodes"]:
        return "several nodes"
    return "1 core" if plan["cpus"] == 1 else "several cores of a node"


def page_of(values: StoreReport) -> ReportPage:
    """The page."""
    if values["began_s"] is None or values["ended_s"] is None:
        told = "The store has no planned start: no job that would be managed had room, or the scheduler has just begun."
        return ReportPage(TITLE, [told], [_what_is_missing(values)])
    began_s, ended_s = values["began_s"], values["ended_s"]
    late = [each["waited_on_s"] for each in values["plans"] if each["waited_on_s"] is not None]
    planned = (
        f"{zoned_clock(began_s)} to {zoned_clock(ended_s)}, policy {values['policy']}, mode {values['mode']}: the "
        f"scheduler planned to start {values['jobs']:,} jobs, in {values['cycles']:,} cycles."
    )
    summary = [planned, "The store does not say when Slurm started them, so this page has no gain."]
    if late:
        summary.append(
            f"{len(late):,} of them certainly still waited later, as the kept snapshots show: at least "
            f"{duration(median(late))} in the median."
        )
    return ReportPage(TITLE, summary, [_plans(values), *_waited_on(values), _what_is_missing(values)])


def _plans(values: StoreReport) -> ReportSection:
    again = values["starts"] - values["jobs"]
    told = (
        f"{again:,} further starts were planned for jobs that had been planned before: on other nodes, or because an "
        "earlier plan did not start them. "
        "sns explain JOBID has the reasons for one job."
    )
    tables = [
        ReportTable([kind, "jobs"], [[name, f"{count:,}"] for name, count in counts.items()], frozenset({1}))
        for kind, counts in (("size", values["by_size"]), ("heuristic", values["by_heuristic"]))
    ]
    return ReportSection("What was planned", [told], tables, [_over_time(values)])


def _over_time(values: StoreReport) -> ReportChart:
    """Jobs by the period of their first plan."""
    began_s, ended_s = values["began_s"] or 0.0, values["ended_s"] or 0.0
    unit_s, unit = (86_400.0, "day") if ended_s - began_s > MOST_POINTS * 3600 else (3600.0, "hour")
    counts = Counter(int((each["first_s"] - began_s) // unit_s) for each in values["plans"])
    points = [ChartPoint(float(at), counts[at]) for at in range(int((ended_s - began_s) // unit_s) + 1)]
    labels = (f"{unit}s since the first plan", f"jobs in each {unit}")
    return ReportChart("Jobs whose start was planned for the first time", "lines", {"jobs": points}, labels)


def _waited_on(values: StoreReport) -> Iterator[ReportSection]:
    late = [each for each in values["plans"] if each["waited_on_s"] is not None]
    if not late:
        return
    late.sort(key=lambda each: (-(each["waited_on_s"] or 0.0), each["first_s"], each["job"]))
    rows = [
        [
            each["job"],
            f"{each['cpus']:,}",
            each["nodes"],
            zoned_clock(each["first_s"]),
            duration(each["waited_on_s"] or 0.0),
        ]
        for each in late[:MOST_NAMED]
    ]
    told = (
        f"{values['read']:,} of {values['snapshots']:,} kept snapshots were read. A job that waits in one had not been "
        "started by then, or was requeued; it may have been held, or kept back by a limit, in between."
    )
    table = ReportTable(["job", "cores", "nodes", "first planned", "waited on, at least"], rows, frozenset({1, 4}))
    yield ReportSection("Jobs that waited on after their plan", [told], [table])


def _what_is_missing(values: StoreReport) -> ReportSection:
    unread = [f"{count:,} snapshots could not be read: {reason}." for reason, count in values["unread"].items()]
    sentences = [
        KEPT,
        COMPARISON,
        "What the whole cluster gains needs a replay of accounting: sns report DUMP.",
        *unread,
    ]
    return ReportSection("What the store cannot say", sentences)
