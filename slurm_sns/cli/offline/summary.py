"""The output of `sns simulate`: the summary of a replay, as JSON data and as a small table."""

import resource
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm_sns.sim.request import SimulationRequest
    from slurm_sns.sim.runners.replay import Replay, Result


def summary_of(
    asked: "SimulationRequest",
    replay: "Replay",
    result: "Result",
    *,
    load_factor: float,
    seed: int,
    read_s: float,
    wall_s: float,
) -> dict[str, Any]:
    """The summary, as --json prints it and summary.json keeps it; `wall_s` is the time of the replay alone."""
    return {
        "policy": asked.name,
        **replay.settings,
        "age_limit_s": asked.age_limit_s,
        "load_factor": load_factor,
        "seed": seed,
        "jobs": replay.jobs,
        "dropped": replay.dropped,
        **asdict(result.metrics()),
        **result.more(),
        "read_s": round(read_s, 3),
        "wall_s": round(wall_s, 3),
        "jobs_per_s": round(replay.jobs / max(wall_s, 1e-9), 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),  # Linux counts KiB
    }


def print_table(summary: dict[str, Any]) -> None:
    """Print the summary as a table."""
    from rich.console import Console
    from rich.table import Table

    def percent(fraction: float | None) -> str:
        return "-" if fraction is None else f"{fraction:.1f} %"

    def utilisation(name: str) -> str:
        return percent(None if summary[name] is None else 100 * summary[name])

    def amount(name: str) -> str:
        return "-" if summary[name] is None else f"{summary[name]:,.2f}"

    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("policy", summary["policy"])
    table.add_row("jobs", f"{summary['jobs']:,}")
    for reason, count in summary["dropped"].items():
        table.add_row("dropped", f"{count:,} {reason}")
    table.add_row("mean wait", f"{amount('mean_wait_s')} s")
    if "mean_run_s" in summary:
        table.add_row("mean run", f"{amount('mean_run_s')} s")
        table.add_row("mean turnaround", f"{amount('mean_turnaround_s')} s")
    if "learn" in summary:
        table.add_row(
            "profiles learnt",
            f"{summary['programs_learnt']} of {summary['programs']}, in {summary['exploring_runs']} exploring runs",
        )
    table.add_row("mean slowdown", amount("mean_slowdown"))
    table.add_row("max bounded stretch", amount("max_bounded_stretch"))
    if "migrations" in summary:
        table.add_row("mean bounded stretch", amount("mean_bounded_stretch"))
        preempted, moved = summary["preemption_gb_per_s"], summary["migration_gb_per_s"]
        table.add_row("preemptions", f"{summary['preemptions']:,}, {preempted:.3g} GB/s")
        table.add_row(
            "migrations", f"{summary['migrations']:,} (of {summary['tasks_moved']:,} tasks), {moved:.3g} GB/s"
        )
    if "restarts" in summary:
        suspended, mean_s = summary["jobs_suspended"], amount("mean_suspended_s")
        table.add_row("suspensions", f"{summary['suspensions']:,} of {suspended:,} jobs, mean {mean_s} s a job")
        table.add_row("restarts", f"{summary['restarts']:,}, {summary['wasted_core_s'] / 3600:,.1f} core hours lost")
    table.add_row("mean queue length", amount("mean_queue_length"))
    table.add_row(
        "utilisation", f"cores {utilisation('utilisation_cores')}, memory {utilisation('utilisation_memory')}"
    )
    table.add_row("load", f"cores {percent(summary['load_cores'])}, memory {percent(summary['load_memory'])}")
    if len(summary.get("portfolio", ())) > 1:
        cycles = max(summary["cycles_with_waiting"], 1)
        for member, count in summary["wins"].items():
            table.add_row(
                f"wins {member}", f"{100 * count / cycles:.1f} % of {summary['cycles_with_waiting']:,} cycles"
            )
    table.add_row("time", f"read {summary['read_s']:.1f} s, replay {summary['wall_s']:.1f} s")
    table.add_row("", f"{summary['jobs_per_s']:,.0f} jobs/s, {summary['peak_rss_mb']:,.0f} MB")
    Console(file=sys.stdout).print(table)
