"""What `sns observe` prints and writes: each look as a line of JSON, and the same as text. Names of others are `-`."""

import os
import sys
from pathlib import Path

from slurm_sns.cli.json_types import AdviceOutcomeValues, ObserveJson, OvertakenValues
from slurm_sns.cli.live.terminal import clock, new_table, plain, show
from slurm_sns.cli.looks_file import LOOKS, VERSION
from slurm_sns.durations import duration
from slurm_sns.log import printable
from slurm_sns.node_lists import folded
from slurm_sns.scheduler.advice import AdviceLook, AdviceSummary, Comparison

#: So many rows of a table are printed; looks.jsonl has all.
MOST_ROWS = 40
#: So many jobs are named in one row.
MOST_NAMES = 5


def complain(text: str) -> None:
    """Print a line about something that went wrong on standard error."""
    print(f"sns: {printable(text)}", file=sys.stderr, flush=True)


def line_of(look: AdviceLook, summary: AdviceSummary) -> ObserveJson:
    """The look, without what is known of how it was made."""
    earlier = {each.advice.key for each in look.waiting}
    mine = os.getuid()
    return {
        "version": VERSION,
        "began_s": look.at_s,
        "at_s": look.at_s,
        "read_s": 0.0,
        "plan_s": 0.0,
        "policy": "",
        "partitions": [],
        "pending": look.pending,
        "managed": look.managed,
        "not_managed": dict(look.left_to_slurm),
        "advices": [
            {
                "job": each.label,
                "user": each.user if each.user_id == mine else "-",
                "tasks": each.tasks,
                "nodes": folded(each.nodes),
                "heuristic": each.heuristic,
                "partition": ",".join(each.partitions),
                "cpus": each.cpus,
            }
            for each in look.advices
            if each.key not in earlier
        ],
        "as_before": sum(each.key in earlier for each in look.advices),
        "outcomes": [
            {
                "job": each.label,
                "comparison": each.comparison.value,
                "seconds": each.seconds,
                "nodes": folded(each.nodes),
                "on_same_nodes": each.on_same_nodes,
                "partition": ",".join(each.partitions),
                "cpus": each.cpus,
            }
            for each in look.outcomes
        ],
        "overtaken": [
            {"job": each.advice.label, "since_s": each.since_s, "others": list(each.others)}
            for each in look.waiting
            if each.others
        ],
        "left_out": {},
        "hidden": [],
        "summary": {
            "looks": summary.looks,
            "advised": summary.advised,
            "earlier": summary.counts[Comparison.EARLIER],
            "earlier_mean_s": summary.mean_earlier_s,
            "same": summary.counts[Comparison.SAME],
            "on_same_nodes": summary.on_same_nodes,
            "later": summary.counts[Comparison.LATER],
            "gone": summary.counts[Comparison.GONE],
            "still_waiting": summary.still_waiting,
        },
    }


def show_look(line: ObserveJson) -> None:
    """Print a look."""
    advices, before = line["advices"], line["as_before"]
    again = f", {before:,} of them as before" if before else ""
    show(
        f"{clock(line['at_s'])}  {line['pending']:,} jobs wait, {line['managed']:,} of them would be managed; "
        f"{len(advices) + before:,} would start now{again}"
    )
    if advices:
        table = new_table("  JOB", "USER", "TASKS", "NODES", "HEURISTIC", right=("TASKS",))
        for each in advices[:MOST_ROWS]:
            table.add_row(
                *map(plain, (f"  {each['job']}", each["user"], each["tasks"], each["nodes"], each["heuristic"]))
            )
        show(table)
    outcomes = [(each["job"], _told(each)) for each in line["outcomes"]]
    outcomes += [(each["job"], _waits(each)) for each in line["overtaken"]]
    if outcomes:
        table = new_table("  EARLIER", "WHAT SLURM DID")
        for job, told in outcomes[:MOST_ROWS]:
            table.add_row(plain(f"  {job}"), plain(told))
        show(table)
    if max(len(advices), len(outcomes)) > MOST_ROWS:
        show(f"  only {MOST_ROWS} rows of a table are shown; {LOOKS} has all")
    for reason, count in sorted(line["left_out"].items()):
        show(plain(f"  left out: {count:,} times {reason}"))
    if {"jobs", "nodes"} & set(line["hidden"]):
        show("  Slurm shows you your own jobs only (PrivateData): the other jobs that wait are not planned")
    sys.stdout.flush()  # a look takes half a minute, and may be read in a pipe


def _told(outcome: AdviceOutcomeValues) -> str:
    """What Slurm did about a job."""
    if outcome["comparison"] == Comparison.GONE:
        return "gone: cancelled, or ended between two looks"
    where = f"started on {outcome['nodes']}"
    if outcome["comparison"] == Comparison.LATER:
        return f"{where}; at the look before we would have let it wait"
    where += ", the same nodes" if outcome["on_same_nodes"] else ", other nodes"
    if outcome["comparison"] == Comparison.SAME:
        return f"{where}, at the same time"
    return f"{where}; we would have started it {duration(outcome['seconds'] or 0.0)} earlier"


def _waits(overtaken: OvertakenValues) -> str:
    others = overtaken["others"]
    named = ", ".join(others[:MOST_NAMES]) + (", ..." if len(others) > MOST_NAMES else "")
    return f"still waits, after {duration(overtaken['since_s'])}; Slurm started {named} there"


def end(summary: AdviceSummary, out: Path) -> None:
    """Print the sum of all looks."""
    counts, mean_s = summary.counts, summary.mean_earlier_s
    show("")
    looks = "1 look" if summary.looks == 1 else f"{summary.looks:,} looks"
    show(f"{looks}; {summary.advised:,} jobs that we would have started. Slurm started")
    more = "" if mean_s is None else f", {duration(mean_s)} on average"
    show(f"  {counts[Comparison.EARLIER]:6,} of them later than we would have{more}")
    show(f"  {counts[Comparison.SAME]:6,} at the same time")
    show(f"  {counts[Comparison.LATER]:6,} others that we would have let wait at the look before")
    show(f"{summary.still_waiting:,} still wait, {counts[Comparison.GONE]:,} are gone.")
    show("The seconds are those of each job alone, and no forecast: docs/admins/observe.md says why.")
    show(plain(f"All looks are in {out / LOOKS}; sns report {out} puts them together. Next: docs/admins/install.md"))
